"""The redistricting tables P1 to P5 and H1, from estimated histograms, at every level of a spine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.model.pl94 import GQ_ITEMS, TABLE_ITEMS, item_names, race_matrix
from censafe.model.sparse import SparseLevel
from censafe.publication.atomic import atomic_folder
from censafe.publication.stamps import Stamp

__all__ = ["TableLevel", "table_items", "write_pl94_tables"]

_CELLS = 252  # votingage 2, hispanic 2, cenrace 63
_KINDS = 8
_CHUNK = 4_000
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


def table_items(level: TableLevel, first: int, last: int) -> _Ints:
    """Items of the tables for a range of geounits.

    Args:
        level: the estimates.
        first: of the geounits.
        last: one past the last of them.

    Returns:
        int64, shape (last - first, 301) in the order of :func:`item_names`; 298 without occupancy.

    Source:
        2020 Census P.L. 94-171 technical documentation, tables P1 to P5 and H1.
    """
    persons = _dense(level.persons, first, last, _CELLS, lambda cell: cell % _CELLS).reshape(-1, 2, 2, 63)
    kinds = _dense(level.persons, first, last, _KINDS, lambda cell: cell // _CELLS)
    everyone, adults = persons.sum(axis=1), persons[:, 1]
    parts = [
        _by_race(everyone.sum(axis=1)),
        _with_origin(everyone),
        _by_race(adults.sum(axis=1)),
        _with_origin(adults),
        _quarters(kinds),
    ]
    if level.occupancy is not None:
        vacant, occupied = _dense(level.occupancy, first, last, 2, lambda cell: cell).T
        parts.append(np.stack([vacant + occupied, occupied, vacant], axis=1))
    return np.concatenate(parts, axis=1)


def _dense(level: SparseLevel, first: int, last: int, width: int, column: Callable[[_Ints], _Ints]) -> _Ints:
    """Sums of the cells that share a column, shape (geounits, width)."""
    entries = slice(int(level.node_ptr[first]), int(level.node_ptr[last]))
    node = np.repeat(np.arange(last - first), np.diff(level.node_ptr[first : last + 1]))
    place = node * width + column(level.cell[entries].astype(np.int64))
    # weights are added as doubles, exact below 2**53
    sums = np.bincount(place, level.count[entries], (last - first) * width)
    return sums.astype(np.int64).reshape(-1, width)


def _by_race(persons: _Ints) -> _Ints:
    """The 71 items of P1 or P3 from persons by race, shape (geounits, 63)."""
    # doubles go through the fast matrix product and are exact below 2**53
    return (persons.astype(np.float64) @ race_matrix().T.astype(np.float64)).astype(np.int64)


def _with_origin(persons: _Ints) -> _Ints:
    """The 73 items of P2 or P4 from persons by origin and race, shape (geounits, 2, 63)."""
    not_hispanic, hispanic = _by_race(persons[:, 0]), persons[:, 1].sum(axis=1)
    total = not_hispanic[:, 0] + hispanic
    return np.column_stack([total, hispanic, not_hispanic])


def _quarters(kinds: _Ints) -> _Ints:
    """The 10 items of P5 from persons by kind of quarters, shape (geounits, 8)."""
    items = np.zeros((len(kinds), TABLE_ITEMS["P5"]), np.int64)
    items[:, list(GQ_ITEMS)] = kinds[:, 1:]
    items[:, 1], items[:, 6] = kinds[:, 1:5].sum(axis=1), kinds[:, 5:].sum(axis=1)
    items[:, 0] = items[:, 1] + items[:, 6]
    return items


def write_pl94_tables(
    folder: Path,
    levels: Sequence[TableLevel],
    *,
    form: Literal["tidy", "wide"] = "tidy",
    file_format: Literal["parquet", "csv"] = "parquet",
    stamp: Stamp | None = None,
    replace: bool = False,
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

    Returns:
        The files, in the order of the levels.

    Raises:
        StorageError: the folder exists and `replace` is false, or it cannot be written.
    """
    metadata = {"private": "true" if stamp is None else "false", **({"stamp": stamp} if stamp else {})}
    with atomic_folder(folder, replace=replace) as temporary:
        for level in levels:
            path = temporary / f"{level.name}.{file_format}"
            schema = _schema(level, form).with_metadata(metadata)
            with _writer(path, schema, file_format) as writer:
                for batch in _batches(level, schema, form):
                    writer.write_table(batch)
    return tuple(folder / f"{level.name}.{file_format}" for level in levels)


def _writer(path: Path, schema: pa.Schema, file_format: str) -> pq.ParquetWriter | pc.CSVWriter:
    if file_format == "parquet":
        return pq.ParquetWriter(path, schema, compression="zstd")
    return pc.CSVWriter(path, schema, write_options=pc.WriteOptions(quoting_style="none"))


def _names(level: TableLevel) -> tuple[str, ...]:
    return item_names() if level.occupancy is not None else item_names()[: -TABLE_ITEMS["H1"]]


def _schema(level: TableLevel, form: str) -> pa.Schema:
    if form == "wide":
        return pa.schema([("geocode", pa.string()), *((name, pa.int64()) for name in _names(level))])
    return pa.schema(
        [("geocode", pa.string()), ("table", pa.string()), ("item", pa.int16()), ("count", pa.int64())]
    )


def _batches(level: TableLevel, schema: pa.Schema, form: str) -> Iterator[pa.Table]:
    names = _names(level)
    for first in range(0, level.persons.nodes, _CHUNK):
        last = min(first + _CHUNK, level.persons.nodes)
        items = table_items(level, first, last)
        geocodes = level.persons.geounits[first:last]
        if form == "wide":
            columns = [pa.array(geocodes.tolist(), pa.string()), *(pa.array(column) for column in items.T)]
        else:
            row, item = np.divmod(np.arange(items.size), len(names))
            tables = [name.split("_")[0] for name in names]
            numbers = np.array([int(name.split("_")[1]) for name in names], np.int16)
            columns = [
                pa.array(geocodes.tolist(), pa.string()).take(pa.array(row)),
                pa.array(tables, pa.string()).take(pa.array(item)),
                pa.array(numbers[item]),
                pa.array(items.reshape(-1)),
            ]
        yield pa.table(columns, schema=schema)
