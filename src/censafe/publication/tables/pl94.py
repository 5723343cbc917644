"""The redistricting tables P1 to P5 and H1, from estimated histograms, at every level of a spine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.area_names import AreaNames
from censafe.model.compiled import compiled
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.pl94 import GQ_ITEMS, TABLE_ITEMS, item_names, race_matrix
from censafe.publication.atomic import atomic_folder
from censafe.publication.large_files import HashedStream
from censafe.publication.microdata.histograms import arrow_texts
from censafe.publication.stamps import Stamp, stamp_metadata
from censafe.publication.tables.csv_rows import NumberedRows, write_csv

_KINDS = 8
_NONINSTITUTIONAL = 5  # first level of hhgq outside of institutions
_LARGEST = 2**31 - 1
_TILE = 64
_CHUNK = 50_001  # no power of two: columns that far apart share no place in the cache
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableLevel:
    """The estimates of one level.

    Args:
        occupancy: histograms of the same geounits, cell 0 vacant and 1 occupied; None leaves H1 out.
    """

    name: str
    persons: SparseLevel
    occupancy: SparseLevel | None = None

    def __post_init__(self) -> None:
        if self.occupancy is not None and not np.array_equal(self.occupancy.geounits, self.persons.geounits):
            raise ValueError("occupancy and persons must be of the same geounits")


def table_items(level: TableLevel, first: int, last: int) -> NDArray[np.int32]:
    """Items of the tables for a range of geounits.

    Returns:
        int32, shape (last - first, 301) in the order of :func:`item_names`; 298 without occupancy.

    Source:
        2020 Census P.L. 94-171 technical documentation, tables P1 to P5 and H1.
    """
    persons = level.persons
    if persons.total > _LARGEST:
        raise CheckError(
            f"level {level.name}: more than {_LARGEST:,} persons, which no table of items can hold"
        )
    items = np.zeros((last - first, len(_names(level))), np.int32)
    _add_up(persons.node_ptr, persons.cell, persons.count, *_items_of_cells(), first, last, items)
    if level.occupancy is not None:
        homes = level.occupancy
        _add_up(homes.node_ptr, homes.cell, homes.count, *_items_of_homes(), first, last, items)
    return items


@compiled()
def _add_up(
    node_ptr: _Ints,
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
    item_ptr: _Ints,
    items: _Ints,
    first: int,
    last: int,
    out: NDArray[np.int32],
) -> None:
    """Add every cell of some geounits to its items, shape (geounits, items)."""
    for node in range(first, last):
        for entry in range(node_ptr[node], node_ptr[node + 1]):
            for place in range(item_ptr[cell[entry]], item_ptr[cell[entry] + 1]):
                out[node - first, items[place]] += count[entry]


@compiled()
def _turn(items: NDArray[np.int32], turned: NDArray[np.int32]) -> None:
    """Make columns of rows, some rows at a time, which stay in the cache."""
    for first in range(0, items.shape[0], _TILE):
        last = min(first + _TILE, items.shape[0])
        for item in range(items.shape[1]):
            for row in range(first, last):
                turned[item, row] = items[row, item]


@lru_cache(maxsize=1)
def _items_of_cells() -> tuple[_Ints, _Ints]:
    """Positions of the items that each of the 2,016 cells of a person counts in, and where those of a cell start."""
    starts = dict(zip(TABLE_ITEMS, np.cumsum([0, *TABLE_ITEMS.values()]).tolist(), strict=False))
    races = [np.flatnonzero(column) for column in race_matrix().T]
    chosen: list[list[int]] = []
    for kind in range(_KINDS):
        for adult, hispanic, race in np.ndindex(2, 2, 63):
            items: list[int] = []
            for by_race, by_origin in (("P1", "P2"), ("P3", "P4"))[: 1 + adult]:
                items += (starts[by_race] + races[race]).tolist()
                items += [starts[by_origin], starts[by_origin] + 1] if hispanic else []
                items += (
                    [] if hispanic else [starts[by_origin], *(starts[by_origin] + 2 + races[race]).tolist()]
                )
            if kind:
                items += [
                    starts["P5"] + item
                    for item in (0, 1 if kind < _NONINSTITUTIONAL else 6, GQ_ITEMS[kind - 1])
                ]
            chosen.append(items)
    return _pointers(chosen)


@lru_cache(maxsize=1)
def _items_of_homes() -> tuple[_Ints, _Ints]:
    """The same for vacant and occupied housing units."""
    start = len(item_names()) - TABLE_ITEMS["H1"]
    return _pointers([[start, start + 2], [start, start + 1]])


def _pointers(chosen: list[list[int]]) -> tuple[_Ints, _Ints]:
    pointer = np.cumsum([0, *(len(items) for items in chosen)]).astype(np.int64)
    return pointer, np.array([item for items in chosen for item in items], np.int64)


def write_pl94_tables(
    folder: Path,
    copies: Path,
    levels: Sequence[TableLevel],
    *,
    stamp: Stamp | None = None,
    areas: AreaNames | None = None,
) -> dict[Path, str]:
    """Write the tables of every level, one Parquet file a level with a copy as CSV, named after it; the SHA-256 of each.

    A row is a geounit, with columns P1_001 to H1_003.
    """
    known, files, texts = areas or AreaNames(census=False), dict[Path, str](), dict[Path, str]()
    with atomic_folder(folder) as temporary:
        for level in levels:
            codes = [(name, pa.string()) for name in ("geocode", *known.columns)]
            items = [pa.field(name, pa.int32(), nullable=False) for name in _names(level)]
            schema = pa.schema([*codes, *items], stamp_metadata(stamp))
            # most items of most blocks are zero: plain pages pack as small as dictionaries and are made faster
            dictionaries = [name for name, _ in codes]
            name = f"{level.name}.parquet"
            with (temporary / name).open("wb") as file, HashedStream(file) as stream:
                with pq.ParquetWriter(
                    stream, schema, compression="zstd", compression_level=1, use_dictionary=dictionaries,
                    write_statistics=dictionaries,
                ) as writer:  # fmt: skip
                    copy = copies / f"{level.name}.csv"
                    texts[copy] = write_csv(copy, schema.names, _rows(level, schema, known, writer))
                files[folder / name] = stream.sha256
    return files | texts


def _names(level: TableLevel) -> tuple[str, ...]:
    return item_names() if level.occupancy is not None else item_names()[: -TABLE_ITEMS["H1"]]


def _rows(
    level: TableLevel, schema: pa.Schema, areas: AreaNames, writer: pq.ParquetWriter
) -> Iterator[NumberedRows]:
    """Write rows of geounits with a column for every item; they are given on for the copy."""
    nodes = level.persons.nodes
    turned = np.empty((len(_names(level)), min(_CHUNK, nodes)), np.int32)
    for first in range(0, nodes, _CHUNK):
        last = min(first + _CHUNK, nodes)
        items = table_items(level, first, last)
        geocodes = level.persons.geounits[first:last]
        codes = [arrow_texts(one) for one in (geocodes, *areas.codes_and_names(geocodes).values())]
        _turn(items, turned)
        columns = (pa.array(column[: last - first]) for column in turned)
        writer.write_table(pa.table([*codes, *columns], schema=schema))
        yield NumberedRows(codes, items)
