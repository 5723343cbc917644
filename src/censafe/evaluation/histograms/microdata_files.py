"""Microdata detail files of the redistricting data, ours or the Bureau's, added up to blocks and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.evaluation.histograms.delimited import (
    CellRows,
    added_rows,
    coded,
    file_header,
    number_batches,
    rows_of_parts,
)
from censafe.evaluation.histograms.files import BlockCells
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["is_microdata", "read_microdata"]

_BLOCK: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}


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
    return path.is_file() and path.suffix != ".parquet" and set(_BLOCK) <= set(file_header(path)[0])


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
    columns = _columns(path, file_header(path)[0], schema)
    wanted = [*_BLOCK, *(column.name for column in columns)]
    cells = schema.schema.cells
    parts = []
    for batch in number_batches(path, wanted, "the redistricting microdata"):
        code, cell = _keys(path, batch, columns)
        parts.append(added_rows(CellRows(code, cell, np.ones(len(code), np.int64)), cells))
    return rows_of_parts(path, parts, cells)


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
        code = code * 10**width + coded(path, batch, name, 0, 10**width)
    if columns[0].name == _STATUS:
        cell = _CELL_OF_STATUS[coded(path, batch, _STATUS, 0, 3)]
    else:
        cell = np.zeros(batch.num_rows, np.int64)
        for column in columns:
            cell = cell * column.levels + coded(path, batch, column.name, column.first, column.levels)
    kept = cell >= 0
    return code[kept], cell[kept]
