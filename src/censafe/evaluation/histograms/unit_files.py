"""Housing units and facilities of blocks, from the tables that TopDown reads and the files that it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.evaluation.histograms.files import BlockCells, table_columns, whole_geocodes

__all__ = ["facilities_of", "is_unit_table", "read_unit_table"]

_HOMES, _OCCUPIED = "gq0", "occupied"
_FACILITIES: Final = tuple(f"gq{kind}" for kind in range(1, 8))


def is_unit_table(path: Path) -> bool:
    """Whether a file has the columns geocode, gq0 and occupied."""
    return path.is_file() and {"geocode", _HOMES, _OCCUPIED} <= set(_names(path))


def read_unit_table(path: Path, digits: int) -> BlockCells:
    """Vacant (cell 0) and occupied (cell 1) housing units of blocks.

    Args:
        path: CSV or Parquet with geocode, gq0 (housing units) and occupied.
        digits: of a geocode.

    Raises:
        DataError: values are of another form, or more units are occupied than there are.
        StorageError: the file cannot be read.
    """
    table = _table(path)
    codes = _codes(path, table, digits)
    homes, occupied = (_whole(path, table, name) for name in (_HOMES, _OCCUPIED))
    wrong = int((occupied > homes).sum())
    if wrong:
        raise DataError(
            f"{path.name}: {wrong} blocks have more occupied than housing units; allowed: at most as many"
        )
    order = np.argsort(codes)
    row = np.repeat(np.arange(len(codes)), 2)
    count = np.column_stack([homes - occupied, occupied])[order].reshape(-1)
    return BlockCells(path.name, "", codes[order], row, np.tile([0, 1], len(codes)), count)


def facilities_of(path: Path, digits: int, blocks: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Facilities of group quarters, shape (blocks, 8), column 0 unused; None where the file does not have them.

    Args:
        path: as of :func:`read_unit_table`.
        digits: of a geocode.
        blocks: geocodes as numbers, rising; those that the file does not have get none.
    """
    if not set(_FACILITIES) <= set(_names(path)):
        return None
    table = _table(path)
    codes = _codes(path, table, digits)
    place = np.searchsorted(blocks, codes)
    inside = place < len(blocks)
    inside[inside] = blocks[place[inside]] == codes[inside]
    found = np.zeros((len(blocks), 8), np.int64)
    for kind, name in enumerate(_FACILITIES, 1):
        found[place[inside], kind] = _whole(path, table, name)[inside]
    return found


def _names(path: Path) -> list[str]:
    try:
        return table_columns(path)
    except (OSError, pa.ArrowInvalid):
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None


def _table(path: Path) -> Any:
    options = pa_csv.ConvertOptions(column_types={"geocode": pa.string()})
    try:
        return (
            pq.read_table(path)
            if path.suffix == ".parquet"
            else pa_csv.read_csv(path, convert_options=options)
        )
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path.name}: rows that do not have the columns of the header; allowed: a table of units as Parquet or CSV"
        ) from None


def _codes(path: Path, table: Any, digits: int) -> NDArray[np.int64]:
    column = table.column("geocode").cast(pa.string()).combine_chunks()
    codes = whole_geocodes(column, digits)
    wrong, twice = int((codes < 0).sum()), len(codes) - len(np.unique(codes))
    if wrong or twice:
        raise DataError(
            f"{path.name}, geocode: {wrong or twice} codes are {'not of the right form' if wrong else 'repeated'}; allowed: "
            f"{digits} decimal digits, each block once"
        )
    return codes


def _whole(path: Path, table: Any, name: str) -> NDArray[np.int64]:
    column = table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(f"{path.name}, {name}: not whole numbers in every row; allowed: whole numbers from 0")
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64)
    if bool((values < 0).any()):
        raise DataError(
            f"{path.name}, {name}: {int((values < 0).sum())} values are below 0; allowed: 0 or more"
        )
    return values
