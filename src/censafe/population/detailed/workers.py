"""Records decoded where an engine has its workers: every group of row groups of a Parquet file is a task of its own.

A worker reads the file, encodes its rows as this process would, and gives back numbers. What it found wrong comes as one row of text a
batch, and combinations of codes as they are packed; they are numbered here, in the order of their packed form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from censafe.model.fetching import fetch
from censafe.population.detailed.encode import Encoded
from censafe.population.detailed.load import LoadedRecords

if TYPE_CHECKING:
    from censafe.model.engine import Engine
    from censafe.population.detailed.encode import Encoder
    from censafe.population.detailed.files import Batches


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
    found = fetch(rows.select(*_KEYS).distinct()).sort_by([(key, "ascending") for key in _KEYS])
    packed = [found[key].to_numpy().view(np.uint64) for key in _KEYS]
    ordinals = loaded.combinations.number(*packed)
    numbered = engine.hold(f"{table}_combos", found.append_column("COMBO", pa.array(ordinals, pa.int32())))
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
    found = {
        "rows": part.rows,
        "unusable": part.unusable,
        "outside": part.outside.tolist(),
        "faults": part.faults.tolist(),
        "examples": {str(bit): texts for bit, texts in part.examples.items()},
    }
    values = {name: [None] for name in schema.names} | {_REPORT: [json.dumps(found)]}
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
