"""Records for the engine: batches are decoded by several threads and added in the order of the files.

They are read two times afterwards, to be sorted by block. So they lie in a file of plain Parquet columns, which the engine reads where it is: a
table of its own would first be packed and written as one that may change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.model.engine import fetch
from censafe.model.work_ahead import worked_ahead
from censafe.population.detailed.encode import Combinations
from censafe.population.files.relation import engine_errors, quote_paths

if TYPE_CHECKING:
    import duckdb

    from censafe.model.engine import Engine
    from censafe.population.detailed.encode import Encoded, Encoder
    from censafe.population.detailed.files import Batches


_FLUSH_ROWS = 1 << 20
_PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}
_BITS = 32


@dataclass
class LoadedRecords:
    """CONFIDENTIAL. What came of the records of one table.

    Args:
        outside: rows of states outside the filter, by number of the state.
        unusable: rows of the filter that cannot be counted.
    """

    seen: NDArray[np.bool_]
    rows: int = 0
    stored: int = 0
    unusable: int = 0
    outside: NDArray[np.int64] = field(default_factory=lambda: np.zeros(100, np.int64))
    faults: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BITS, np.int64))
    examples: dict[int, list[str]] = field(default_factory=dict)
    combinations: Combinations = field(default_factory=Combinations)

    def count(
        self,
        rows: int,
        unusable: int,
        outside: NDArray[np.int64],
        faults: NDArray[np.int64],
        examples: Mapping[int, list[str]],
        most: int,
    ) -> None:
        """Count what a batch has, and keep the first examples of every fault, `most` of each."""
        self.rows += rows
        self.unusable += unusable
        self.outside += outside
        self.faults += faults
        for bit, texts in examples.items():
            stored = self.examples.setdefault(bit, [])
            stored += texts[: most - len(stored)]

    def add(self, part: Encoded, examples: int) -> dict[str, NDArray[Any]]:
        """Count a batch and return its columns with ordinals of the combinations of the whole table."""
        self.count(part.rows, part.unusable, part.outside, part.faults, part.examples, examples)
        ordinals = self.combinations.number(part.high, part.low)
        columns = dict(part.columns)
        columns["COMBO"] = ordinals[columns["COMBO"]]
        self.seen[columns["BLOCK"]] = True
        self.stored += len(columns["COMBO"])
        return columns


def load_records(
    con: duckdb.DuckDBPyConnection,
    path: Path,
    batches: Batches,
    encoder: Encoder,
    *,
    blocks: int,
    threads: int | None,
    examples: int = 0,
) -> LoadedRecords:
    """Give the engine a view of the usable records."""
    loaded = LoadedRecords(np.zeros(blocks, bool))
    parts: list[dict[str, NDArray[Any]]] = []
    waiting = 0
    schema = pa.schema([(name, pa.from_numpy_dtype(one.dtype)) for name, one in encoder.no_rows().items()])
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with engine_errors("records"), pq.ParquetWriter(path, schema, **_PLAIN) as writer:
        for part in _encoded(batches, encoder, threads or min(8, os.cpu_count() or 1)):
            parts.append(loaded.add(part, examples))
            waiting += len(parts[-1]["COMBO"])
            if waiting >= _FLUSH_ROWS:
                writer.write_table(_rows(parts))
                parts, waiting = [], 0
        writer.write_table(_rows(parts or [encoder.no_rows()]))
    with engine_errors("records"):
        con.execute(
            f"CREATE OR REPLACE VIEW {path.stem} AS SELECT * FROM read_parquet([{quote_paths((path,))}])"
        )
    return loaded


def _encoded(batches: Batches, encoder: Encoder, threads: int) -> Iterator[Encoded]:
    """Encoded batches in order; whole tasks side by side, or batches of the only task."""
    if len(batches.tasks) == 1:
        yield from worked_ahead(encoder.encode, batches.tasks[0](), threads, ahead=threads + 1)
        return
    for parts in worked_ahead(
        lambda task: [encoder.encode(batch) for batch in task()], batches.tasks, threads, ahead=threads + 1
    ):
        yield from parts


def _rows(parts: list[dict[str, NDArray[Any]]]) -> pa.Table:
    return pa.table({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


_KEYS = ("HIGH", "LOW")
_REPORT = "REPORT"


def load_on_workers(
    engine: Engine, table: str, batches: Batches, encoder: Encoder, *, blocks: int, examples: int
) -> LoadedRecords:
    """Fill a table of the engine with the usable records of Parquet files."""
    columns = {name: pa.from_numpy_dtype(values.dtype) for name, values in encoder.no_rows().items()}
    cells = [name for name in columns if name not in ("BLOCK", "COMBO")]
    schema = pa.schema(
        [("BLOCK", pa.int32()), *((key, pa.int64()) for key in _KEYS)]
        + [(name, pa.int16()) for name in cells]
        + [(_REPORT, pa.string())]
    )
    work = [_encoding(task, encoder, cells, schema) for task in batches.tasks]
    decoded = engine.compute(f"{table}_decoded", work, schema)
    loaded = _reported(fetch(decoded.filter(decoded[_REPORT].notnull()).select(_REPORT)), blocks, examples)
    rows = decoded.filter(decoded.BLOCK.notnull())
    combinations = fetch(rows.select(*_KEYS).distinct()).sort_by([(key, "ascending") for key in _KEYS])
    packed = [combinations[key].to_numpy().view(np.uint64) for key in _KEYS]
    ordinals = loaded.combinations.number(*packed)
    numbered = engine.hold(
        f"{table}_combos", combinations.append_column("COMBO", pa.array(ordinals, pa.int32()))
    )
    engine.store(table, rows.join(numbered, list(_KEYS)).select("BLOCK", *cells, "COMBO"), shared=True)
    loaded.seen[fetch(rows.select("BLOCK").distinct())["BLOCK"].to_numpy()] = True
    loaded.stored = int(fetch(rows.count())[0][0].as_py())
    engine.drop(f"{table}_decoded", f"{table}_combos")
    return loaded


def _encoding(
    task: Callable[[], Iterator[pa.RecordBatch]], encoder: Encoder, cells: Sequence[str], schema: pa.Schema
) -> Callable[[], Iterator[pa.RecordBatch]]:
    def encoded() -> Iterator[pa.RecordBatch]:
        for batch in task():
            part = encoder.encode(batch)
            yield _numbers(part, cells, schema)
            yield _report(part, schema)

    return encoded


def _numbers(part: Encoded, cells: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    combo = part.columns["COMBO"]
    columns: dict[str, Any] = {"BLOCK": part.columns["BLOCK"]}
    columns |= {"HIGH": part.high[combo].view(np.int64), "LOW": part.low[combo].view(np.int64)}
    columns |= {name: part.columns[name].astype(np.int16) for name in cells}
    nothing = pa.nulls(len(combo), pa.string())
    return pa.RecordBatch.from_arrays([*map(pa.array, columns.values()), nothing], schema=schema)


def _report(part: Encoded, schema: pa.Schema) -> pa.RecordBatch:
    report = {
        "rows": part.rows,
        "unusable": part.unusable,
        "outside": part.outside.tolist(),
        "faults": part.faults.tolist(),
        "examples": {str(bit): texts for bit, texts in part.examples.items()},
    }
    values = {name: [None] for name in schema.names} | {_REPORT: [json.dumps(report)]}
    return pa.RecordBatch.from_pydict(values, schema=schema)


def _reported(reports: pa.Table, blocks: int, examples: int) -> LoadedRecords:
    """What all batches together found; in the order of their text, which no engine changes."""
    loaded = LoadedRecords(np.zeros(blocks, bool))
    for text in sorted(reports[_REPORT].to_pylist()):
        report = json.loads(text)
        outside, faults = (np.array(report[name], np.int64) for name in ("outside", "faults"))
        texts = {int(bit): texts for bit, texts in report["examples"].items()}
        loaded.count(report["rows"], report["unusable"], outside, faults, texts, examples)
    return loaded
