"""Tables of a run in one file a level, from estimated histograms: those of the redistricting data, P1 to P5 and H1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.identifiers import AreaNames
from censafe.model.cells.counting import LineSums
from censafe.model.cells.lines import CensusTable
from censafe.model.compiled import compiled
from censafe.model.schema import Schema
from censafe.model.sparse import SparseLevel
from censafe.publication.atomic import HashedStream, atomic_folder
from censafe.publication.microdata.histograms import arrow_texts
from censafe.publication.stamps import Stamp, stamp_metadata
from censafe.publication.tables.csv_rows import NumberedRows, write_csv

_LARGEST = 2**31 - 1
_TILE = 64
_CHUNK = 50_001  # no power of two: columns that far apart share no place in the cache
_Ints = NDArray[np.int64]


class TableItems:
    """The items of tables that count one histogram.

    Args:
        tables: of counts.
    """

    def __init__(self, tables: Sequence[CensusTable], schema: Schema) -> None:
        sums = LineSums.of([line for table in tables for line in table.lines], schema)
        times = sums.times[sums.times > 0].astype(np.int64)
        combination, item = np.repeat(sums.times.nonzero(), times, axis=1)
        self.names = tuple(name for table in tables for name in table.items)
        self.of_cell = sums.of_cell
        self.start = np.searchsorted(combination, np.arange(len(sums.times) + 1))
        self.item = item


@dataclass(frozen=True, eq=False)
class TableLevel:
    """The estimates of one level.

    Args:
        histograms: of the same geounits.
    """

    name: str
    histograms: tuple[SparseLevel, ...]

    def __post_init__(self) -> None:
        if any(not np.array_equal(one.geounits, self.geounits) for one in self.histograms):
            raise ValueError(f"level {self.name}: histograms must be of the same geounits")

    @property
    def geounits(self) -> NDArray[np.str_]:
        """Of every histogram."""
        return self.histograms[0].geounits


def table_items(level: TableLevel, items: Sequence[TableItems], first: int, last: int) -> NDArray[np.int32]:
    """Items of the tables of every histogram for a range of geounits, int32, shape (last - first, items).

    Source:
        2020 Census P.L. 94-171 technical documentation, tables P1 to P5 and H1.
    """
    counts = np.zeros((last - first, sum(len(own.names) for own in items)), np.int32)
    start = 0
    for histogram, own in zip(level.histograms, items, strict=True):
        if histogram.total > _LARGEST:
            raise CheckError(
                f"level {level.name}: more than {_LARGEST:,} records, which no table of items can hold"
            )
        _add_up(
            histogram.node_ptr, histogram.cell, histogram.count, own.of_cell, own.start, own.item + start,
            first, last, counts,
        )  # fmt: skip
        start += len(own.names)
    return counts


@compiled()
def _add_up(
    node_ptr: _Ints,
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
    of_cell: NDArray[np.int32],
    start: _Ints,
    item: _Ints,
    first: int,
    last: int,
    out: NDArray[np.int32],
) -> None:
    """Add every cell of some geounits to its items, shape (geounits, items)."""
    for node in range(first, last):
        for entry in range(node_ptr[node], node_ptr[node + 1]):
            combination = of_cell[cell[entry]]
            if combination >= 0:
                for place in range(start[combination], start[combination + 1]):
                    out[node - first, item[place]] += count[entry]


@compiled()
def _turn(items: NDArray[np.int32], turned: NDArray[np.int32]) -> None:
    """Make columns of rows, some rows at a time, which stay in the cache."""
    for first in range(0, items.shape[0], _TILE):
        last = min(first + _TILE, items.shape[0])
        for item in range(items.shape[1]):
            for row in range(first, last):
                turned[item, row] = items[row, item]


def write_pl94_tables(
    folder: Path,
    copies: Path,
    levels: Sequence[TableLevel],
    items: Sequence[TableItems],
    *,
    stamp: Stamp | None = None,
    areas: AreaNames | None = None,
) -> dict[Path, str]:
    """Write the tables of every level, one Parquet file a level with a copy as CSV, named after it; the SHA-256 of each.

    A row is a geounit, with a column for every item of every histogram's tables, P1_001 to H1_003.
    """
    known, files, texts = areas or AreaNames(census=False), dict[Path, str](), dict[Path, str]()
    with atomic_folder(folder) as temporary:
        for level in levels:
            codes = [(name, pa.string()) for name in ("geocode", *known.columns)]
            counts = [pa.field(name, pa.int32(), nullable=False) for own in items for name in own.names]
            schema = pa.schema([*codes, *counts], stamp_metadata(stamp))
            # most items of most blocks are zero: plain pages pack as small as dictionaries and are made faster
            dictionaries = [name for name, _ in codes]
            name = f"{level.name}.parquet"
            with (temporary / name).open("wb") as file, HashedStream(file) as stream:
                with pq.ParquetWriter(
                    stream, schema, compression="zstd", compression_level=1, use_dictionary=dictionaries,
                    write_statistics=dictionaries,
                ) as writer:  # fmt: skip
                    copy = copies / f"{level.name}.csv"
                    texts[copy] = write_csv(copy, schema.names, _rows(level, items, schema, known, writer))
                files[folder / name] = stream.sha256
    return files | texts


def _rows(
    level: TableLevel,
    items: Sequence[TableItems],
    schema: pa.Schema,
    areas: AreaNames,
    writer: pq.ParquetWriter,
) -> Iterator[NumberedRows]:
    """Write rows of geounits with a column for every item; they are given on for the copy."""
    nodes = len(level.geounits)
    turned = np.empty((sum(len(own.names) for own in items), min(_CHUNK, nodes)), np.int32)
    for first in range(0, nodes, _CHUNK):
        last = min(first + _CHUNK, nodes)
        counts = table_items(level, items, first, last)
        geocodes = level.geounits[first:last]
        codes = [arrow_texts(one) for one in (geocodes, *areas.codes_and_names(geocodes).values())]
        _turn(counts, turned)
        columns = (pa.array(column[: last - first]) for column in turned)
        writer.write_table(pa.table([*codes, *columns], schema=schema))
        yield NumberedRows(codes, counts)
