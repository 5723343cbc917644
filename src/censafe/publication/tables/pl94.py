"""The redistricting tables P1 to P5 and H1, from estimated histograms, at every level of a spine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.area_names import AreaNames
from censafe.model.compiled import compiled
from censafe.model.safe_text import csv_table
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.pl94 import GQ_ITEMS, TABLE_ITEMS, item_names, race_matrix
from censafe.publication.atomic import atomic_folder
from censafe.publication.stamps import Stamp

__all__ = ["TableLevel", "table_items", "write_pl94_tables"]

_KINDS = 8
_NONINSTITUTIONAL = 5  # first level of hhgq outside of institutions
_CHUNK = 4_000
_LARGEST = 2**31 - 1
_WIDE_CHUNK = 50_001  # no power of two: columns that far apart share no place in the cache
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableLevel:
    """The estimates of one level.

    Args:
        name: of the level; names the file.
        persons: histograms over hhgq 8, votingage 2, hispanic 2, cenrace 63.
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

    Args:
        level: the estimates.
        first: of the geounits.
        last: one past the last of them.

    Returns:
        int32, shape (last - first, 301) in the order of :func:`item_names`; 298 without occupancy.

    Raises:
        CheckError: a level has more than 2,147,483,647 persons.

    Source:
        2020 Census P.L. 94-171 technical documentation, tables P1 to P5 and H1.
    """
    persons = level.persons
    if persons.total > _LARGEST:
        raise CheckError(
            f"level {level.name}: more than {_LARGEST:,} persons, which no table of items can hold"
        )
    found = np.zeros((len(_names(level)), last - first), np.int32)
    _add_up(persons.node_ptr, persons.cell, persons.count, *_items_of_cells(), first, last, found)
    if level.occupancy is not None:
        homes = level.occupancy
        _add_up(homes.node_ptr, homes.cell, homes.count, *_items_of_homes(), first, last, found)
    return found.T


@compiled()
def _add_up(
    node_ptr: _Ints,
    cell: NDArray[np.int32],
    count: NDArray[np.int32],
    item_ptr: _Ints,
    items: _Ints,
    first: int,
    last: int,
    found: NDArray[np.int32],
) -> None:
    """Add every cell of some geounits to its items, shape (items, geounits)."""
    for node in range(first, last):
        for entry in range(node_ptr[node], node_ptr[node + 1]):
            for place in range(item_ptr[cell[entry]], item_ptr[cell[entry] + 1]):
                found[items[place], node - first] += count[entry]


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
    levels: Sequence[TableLevel],
    *,
    form: Literal["tidy", "wide"] = "tidy",
    file_format: Literal["parquet", "csv"] = "parquet",
    stamp: Stamp | None = None,
    replace: bool = False,
    areas: AreaNames | None = None,
) -> tuple[Path, ...]:
    """Write the tables of every level, one file a level, named after it.

    Args:
        folder: final name; it appears there complete or not at all.
        levels: the estimates.
        form: ``tidy``, one row an item (geocode, table, item, count), or ``wide``, one row a geounit with columns P1_001 to
            H1_003.
        file_format: ``parquet`` or ``csv``.
        stamp: ``"NOT PRIVATE"`` for estimates from measurements drawn with a test key; kept in the metadata of Parquet files.
        replace: whether a folder of this name may be replaced.
        areas: codes and names that stand beside the geocodes; None for geocodes alone.

    Returns:
        The files, in the order of the levels.

    Raises:
        StorageError: the folder exists and `replace` is false, or it cannot be written.
    """
    metadata = {"private": "true" if stamp is None else "false", **({"stamp": stamp} if stamp else {})}
    with atomic_folder(folder, replace=replace) as temporary:
        for level in levels:
            path = temporary / f"{level.name}.{file_format}"
            known = areas or AreaNames(census=False)
            schema = _schema(level, form, known.columns).with_metadata(metadata)
            with _writer(path, schema, file_format) as writer:
                for batch in _batches(level, schema, form, known):
                    writer.write_table(csv_table(batch) if file_format == "csv" else batch)
    return tuple(folder / f"{level.name}.{file_format}" for level in levels)


def _writer(path: Path, schema: pa.Schema, file_format: str) -> pq.ParquetWriter | pc.CSVWriter:
    if file_format == "parquet":
        # most items of most blocks are zero: plain pages pack as small as dictionaries and are made faster
        dictionaries = [name for name in schema.names if schema.field(name).type == pa.string()]
        return pq.ParquetWriter(
            path, schema, compression="zstd", compression_level=1, use_dictionary=dictionaries
        )
    return pc.CSVWriter(path, schema, write_options=pc.WriteOptions(quoting_style="needed"))


def _names(level: TableLevel) -> tuple[str, ...]:
    return item_names() if level.occupancy is not None else item_names()[: -TABLE_ITEMS["H1"]]


def _schema(level: TableLevel, form: str, beside: Sequence[str]) -> pa.Schema:
    codes = [(name, pa.string()) for name in ("geocode", *beside)]
    if form == "wide":
        return pa.schema([*codes, *((name, pa.int32()) for name in _names(level))])
    return pa.schema([*codes, ("table", pa.string()), ("item", pa.int16()), ("count", pa.int32())])


def _batches(level: TableLevel, schema: pa.Schema, form: str, areas: AreaNames) -> Iterator[pa.Table]:
    names = _names(level)
    step = _CHUNK if form == "tidy" else _WIDE_CHUNK
    for first in range(0, level.persons.nodes, step):
        last = min(first + step, level.persons.nodes)
        items = table_items(level, first, last)
        geocodes = level.persons.geounits[first:last]
        codes = [pa.array(one.tolist(), pa.string()) for one in (geocodes, *areas.beside(geocodes).values())]
        if form == "wide":
            columns = [*codes, *(pa.array(column) for column in items.T)]
        else:
            row, item = np.divmod(np.arange(items.size), len(names))
            tables = [name.split("_")[0] for name in names]
            numbers = np.array([int(name.split("_")[1]) for name in names], np.int16)
            columns = [
                *(one.take(pa.array(row)) for one in codes),
                pa.array(tables, pa.string()).take(pa.array(item)),
                pa.array(numbers[item]),
                pa.array(items.reshape(-1)),
            ]
        yield pa.table(columns, schema=schema)
