"""Records for the engine: batches are decoded by several threads and added in the order of the files.

They are read two times afterwards, to be sorted by block. So they lie in a file of plain Parquet columns, which the engine reads where it is: a
table of its own would first be packed and written as one that may change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.model.work_ahead import worked_ahead
from censafe.population.detailed.encode import Combinations
from censafe.population.files.relation import engine_errors, quote_paths

if TYPE_CHECKING:
    import duckdb

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
