"""Microdata detail files of the redistricting data, ours or the Bureau's, added up to blocks and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.evaluation.histograms.files import BlockCells
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["is_microdata", "read_microdata"]

_BLOCK: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}
_BLOCK_BYTES: Final = 1 << 24


@dataclass(frozen=True)
class _Column:
    """A column of the file that says the level of an attribute.

    Args:
        name: of the column.
        levels: of the attribute.
        first: code of its first level.
    """

    name: str
    levels: int
    first: int


_PERSONS: Final = (
    _Column("GQTYPE_PL", 8, 0),
    _Column("VOTING_AGE", 2, 1),
    _Column("CENHISP", 2, 1),
    _Column("CENRACE", 63, 1),
)
_STATUS: Final = "HH_STATUS"
_CELL_OF_STATUS: Final = np.array([-1, 1, 0])  # 0 is a group quarters, 1 occupied, 2 vacant


def is_microdata(path: Path) -> bool:
    """Whether a file is pipe-delimited text with the columns of a block."""
    return path.is_file() and path.suffix != ".parquet" and set(_BLOCK) <= set(_header(path)[0])


def read_microdata(path: Path, schema: HistogramSchema) -> BlockCells:
    """Count the rows of a file of persons or units by block and cell.

    Lines that start with ``#`` before the header are passed over, group quarters in a file of units as well. Columns beyond
    those of the block and the cell may be there or not.

    Args:
        path: pipe-delimited text with a header.
        schema: hhgq 8, votingage 2, hispanic 2, cenrace 63 for persons; two cells, vacant and occupied, for units.

    Raises:
        DataError: columns are missing, a code is outside its range, or the file cannot hold this schema.
        StorageError: the file cannot be read.
    """
    names, skipped = _header(path)
    columns = _columns(path, names, schema)
    wanted = [*_BLOCK, *(column.name for column in columns)]
    parts = [_Rows(*(np.zeros(0, np.int64) for _ in range(3)))]
    try:
        with pa_csv.open_csv(
            path,
            pa_csv.ReadOptions(skip_rows=skipped, block_size=_BLOCK_BYTES),
            pa_csv.ParseOptions(delimiter="|"),
            pa_csv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.int64()), include_columns=wanted),
        ) as reader:
            for batch in reader:
                code, cell = _keys(path, batch, columns)
                parts.append(_added(_Rows(code, cell, np.ones(len(code), np.int64)), schema))
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path.name}: rows that do not have the columns of the header, or codes that are not digits; allowed: the layout "
            "of the redistricting microdata"
        ) from None
    whole = _added(_Rows(*(np.concatenate(one) for one in zip(*parts, strict=True))), schema)
    codes, row = np.unique(whole.code, return_inverse=True)
    return BlockCells(path.name, "", codes, row, whole.cell, whole.number)


class _Rows(NamedTuple):
    """Geocode, cell and number of persons or units of every row."""

    code: NDArray[np.int64]
    cell: NDArray[np.int64]
    number: NDArray[np.int64]


def _added(rows: _Rows, schema: HistogramSchema) -> _Rows:
    """One row a geocode and cell, rising."""
    cells = schema.schema.cells
    codes, block = np.unique(rows.code, return_inverse=True)
    # a geocode of 16 digits times the number of cells would not fit 64 bits; the position of a block does
    keys, place = np.unique(block * cells + rows.cell, return_inverse=True)
    count = np.zeros(len(keys), np.int64)
    np.add.at(count, place, rows.number)
    return _Rows(codes[keys // cells], keys % cells, count)


def _header(path: Path) -> tuple[list[str], int]:
    """Columns, and how many lines stand before them."""
    try:
        with path.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream):
                if not line.startswith("#"):
                    return line.rstrip("\r\n").split("|"), number
    except (OSError, UnicodeDecodeError):
        raise StorageError(
            f"{path.name}: the file cannot be read as text; check that it is complete"
        ) from None
    return [], 0


def _columns(path: Path, names: list[str], schema: HistogramSchema) -> tuple[_Column, ...]:
    shape = tuple(attribute.levels for attribute in schema.schema.attributes)
    layouts: Mapping[tuple[int, ...], tuple[_Column, ...]] = {
        tuple(column.levels for column in _PERSONS): _PERSONS,
        (2,): (_Column(_STATUS, 3, 0),),
    }
    if shape not in layouts:
        raise DataError(
            f"{path.name}: microdata of the redistricting data cannot be counted in the schema {schema.name}; allowed: its "
            "persons and units; fix: compare the files of histograms"
        )
    missing = [column.name for column in layouts[shape] if column.name not in names]
    if missing:
        raise DataError(f"{path.name}: no column {', '.join(missing)}; fix: name the file of {schema.name}")
    return layouts[shape]


def _keys(
    path: Path, batch: Any, columns: tuple[_Column, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Geocode and cell of every row that has one."""
    code = np.zeros(batch.num_rows, np.int64)
    for name, width in _BLOCK.items():
        code = code * 10**width + _within(path, batch, name, 0, 10**width)
    if columns[0].name == _STATUS:
        cell = _CELL_OF_STATUS[_within(path, batch, _STATUS, 0, 3)]
    else:
        cell = np.zeros(batch.num_rows, np.int64)
        for column in columns:
            cell = cell * column.levels + _within(path, batch, column.name, column.first, column.levels)
    kept = cell >= 0
    return code[kept], cell[kept]


def _within(path: Path, batch: Any, name: str, first: int, levels: int) -> NDArray[np.int64]:
    column = batch.column(name)
    values: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False) - first
    wrong = int(((values < 0) | (values >= levels)).sum())
    if wrong:
        raise DataError(
            f"{path.name}, {name}: {wrong} codes are out of range; allowed: {first} to {first + levels - 1}"
        )
    return values
