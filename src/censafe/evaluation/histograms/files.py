"""Histogram files of any origin: geocode, cell and count, as Parquet or CSV."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.spine import pack_geocodes

__all__ = ["BlockCells", "read_block_cells", "read_geocodes", "whole_geocodes"]

_COLUMNS: Final = ("geocode", "cell", "count")
_CENSUS_DIGITS: Final = 16


@dataclass(frozen=True, eq=False)
class BlockCells:
    """CONFIDENTIAL or public. Rows of a file.

    Args:
        name: of the file.
        schema: that its metadata name; empty when they name none.
        codes: int64, shape (rows,), geocodes as numbers.
        cell: int64, shape (rows,).
        count: int64, shape (rows,).
    """

    name: str
    schema: str
    codes: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)


def read_block_cells(path: Path, digits: int) -> BlockCells:
    """Read a file, or all files of a folder.

    Args:
        path: Parquet or CSV with the columns geocode, cell and count, or a folder of either.
        digits: of a geocode; where 16, codes of 15 digits are read as well.

    Raises:
        DataError: columns are missing, or values are not of the right form.
        StorageError: nothing can be read there.
    """
    tables = [_table(file, _COLUMNS) for file in _files(path)]
    columns = []
    for name in _COLUMNS[1:]:
        values = [_whole(table.column(name), path.name, name) for table in tables]
        columns.append(np.concatenate(values))
    codes = np.concatenate([_codes(table.column("geocode"), digits, path.name) for table in tables])
    named = {(table.schema.metadata or {}).get(b"schema", b"").decode() for table in tables}
    if len(named) > 1:
        raise DataError(f"{path.name}: its files name different schemas; allowed: one schema")
    return BlockCells(path.name, named.pop(), codes, *columns)


def read_geocodes(path: Path, digits: int) -> NDArray[np.int64]:
    """Geocodes of a file or folder with a column ``geocode``, each once, rising.

    Args:
        path: Parquet or CSV, or a folder of either.
        digits: of a geocode.

    Raises:
        DataError: the column is missing or has values of another form.
        StorageError: nothing can be read there.
    """
    found = [_codes(_table(file, _COLUMNS[:1]).column("geocode"), digits, path.name) for file in _files(path)]
    return np.unique(np.concatenate(found))


def whole_geocodes(texts: NDArray[np.str_], digits: int) -> NDArray[np.int64]:
    """Geocodes as numbers; -1 where a text is none. Census blocks of 15 digits get their block group, the block's first digit.

    Example:
        >>> whole_geocodes(np.array(["440010301001000"]), 16).tolist()
        [4400103010011000]
    """
    if digits != _CENSUS_DIGITS or not len(texts) or bool((np.strings.str_len(texts) == digits).any()):
        return pack_geocodes(texts, digits)
    short = pack_geocodes(texts, digits - 1)
    tract, block = np.divmod(short, 10_000)
    return np.where(short < 0, -1, tract * 100_000 + block // 1_000 * 10_000 + block)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted([*path.glob("*.parquet"), *path.glob("*.csv")])
        if not found:
            raise StorageError(f"{path}: the folder holds no Parquet or CSV file; name a file of histograms")
        return found
    if not path.is_file():
        raise StorageError(f"{path}: there is no such file; name a file of histograms")
    return [path]


def _table(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """The named columns of a file; geocodes of a CSV stay text."""
    try:
        if path.suffix == ".csv":
            options = pa_csv.ConvertOptions(
                column_types={"geocode": pa.string()}, include_columns=list(columns)
            )
            return pa_csv.read_csv(path, convert_options=options)
        table = pq.read_table(path)
        return table.select(list(columns))
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except (KeyError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataError(
            f"{path.name}: not a file of histograms; allowed: the columns {', '.join(columns)} as Parquet or CSV"
        ) from None


def _whole(column: Any, file: str, name: str) -> NDArray[np.int64]:
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(f"{file}, {name}: not whole numbers in every row; allowed: whole numbers from 0")
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64)
    if bool((values < 0).any()):
        raise DataError(f"{file}, {name}: {int((values < 0).sum())} values are below 0; allowed: 0 or more")
    return values


def _codes(column: Any, digits: int, file: str) -> NDArray[np.int64]:
    """Geocodes as numbers, each distinct text read once."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    texts = column.dictionary
    if column.null_count or not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise DataError(f"{file}, geocode: not text in every row; allowed: {digits} decimal digits as text")
    codes = whole_geocodes(np.array(texts.to_pylist(), np.str_), digits)
    wrong = int((codes < 0).sum())
    if wrong:
        raise DataError(
            f"{file}, geocode: {wrong} codes are not of the right form; allowed: {digits} decimal digits, leading zeros included"
        )
    return codes[column.indices.to_numpy()]
