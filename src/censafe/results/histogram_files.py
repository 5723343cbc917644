"""Histogram files of any origin, geocode, cell and count, and the housing units and facilities of blocks beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.files import (
    STORED,
    column_names,
    number_faults,
    numbers_where_possible,
    read_table,
    read_validated,
)
from censafe.geography.geocodes import DIGITS, GeocodeForm
from censafe.geography.identifiers import block_words, geocode_texts, require_known_blocks, short_geoids
from censafe.model import Schema
from censafe.model.folders import matching_files

_COLUMNS: Final = ("geocode", "cell", "count")
_CENSUS_BLOCK: Final = 16


@dataclass(frozen=True, eq=False)
class BlockCells:
    """CONFIDENTIAL or public. Rows of a file.

    Args:
        codes: int64, shape (b,), geocodes that occur, as numbers.
        row: int64, shape (rows,), position of the geocode of every row.
        cell: int64, shape (rows,).
        count: int64, shape (rows,).
    """

    name: str
    schema: str
    codes: NDArray[np.int64] = field(repr=False)
    row: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int64] = field(repr=False)
    count: NDArray[np.int64] = field(repr=False)


def read_block_cells(path: Path, form: GeocodeForm, schema: Schema | None = None) -> BlockCells:
    """Read a file, or all files of a folder.

    Args:
        path: Parquet or CSV with the columns geocode, cell and count, or a folder of either. In the place of ``cell`` there may be
            one column for each attribute of the schema (levels from 0), and then without ``count`` every row is one record.
    """
    choices = (
        _COLUMNS,
        *(() if schema is None else (("geocode", *schema.names, "count"), ("geocode", *schema.names))),
    )
    tables = [_table(file, choices) for file in _files(path)]
    cell = np.concatenate([_cells(table, schema, path.name) for table in tables])
    count = np.concatenate(
        [
            _integers(table.column("count"), path.name, "count")
            if "count" in table.column_names
            else np.ones(table.num_rows, np.int64)
            for table in tables
        ]
    )
    read = [_codes(table.column("geocode"), form, path.name) for table in tables]
    codes, place = np.unique(np.concatenate([known for known, _ in read]), return_inverse=True)
    ends = np.cumsum([0, *(len(known) for known, _ in read)]).tolist()
    parts = [
        place[start : start + len(known)][index] for start, (known, index) in zip(ends, read, strict=False)
    ]
    row = np.concatenate(parts)
    if schema is not None and any("count" not in table.column_names for table in tables):
        key, count = np.unique(row * schema.cells + cell, return_counts=True)
        row, cell = np.divmod(key, schema.cells)
    named = {(table.schema.metadata or {}).get(b"schema", b"").decode() for table in tables}
    if len(named) > 1:
        raise DataError(f"{path.name}: its files name different schemas; allowed: one schema")
    return BlockCells(path.name, named.pop(), codes, row, cell, count)


def _cells(table: pa.Table, schema: Schema | None, file: str) -> NDArray[np.int64]:
    """Flat index of the cell of every row, from the column of it or from those of the attributes."""
    if schema is None or "cell" in table.column_names:
        return _integers(table.column("cell"), file, "cell")
    cell = np.zeros(table.num_rows, np.int64)
    for attribute in schema.attributes:
        level = _integers(table.column(attribute.name), file, attribute.name)
        wrong = int((level >= attribute.levels).sum())
        if wrong:
            raise DataError(
                f"{file}, {attribute.name}: {wrong} levels are not in the schema {schema.name}; allowed: 0 to "
                f"{attribute.levels - 1}"
            )
        cell = cell * attribute.levels + level
    return cell


def read_geocodes(path: Path, form: GeocodeForm) -> NDArray[np.int64]:
    """Geocodes of a file or folder with a column ``geocode``, each once, rising."""
    codes = [
        _codes(_table(file, (_COLUMNS[:1],)).column("geocode"), form, path.name)[0] for file in _files(path)
    ]
    return np.unique(np.concatenate(codes))


def table_columns(path: Path) -> list[str]:
    """Names of the columns of a file of any form that tables are read in."""
    return column_names(path, "the file")


def geocode_numbers(texts: pa.Array, form: GeocodeForm, place: str = "geocode") -> NDArray[np.int64]:
    """Geocodes as numbers; -1 where a text is none. Census blocks given by a GEOID or GISJOIN get their block group.

    Example:
        >>> geocode_numbers(pa.array(["440010301001000", "4400103010011001", "44", None]), GeocodeForm(16)).tolist()
        [4400103010011000, 4400103010011001, -1, -1]
    """
    if form.alphabet != DIGITS:
        return form.pack(np.array([text or "" for text in texts.to_pylist()], np.str_))
    short = short_geoids(texts)
    texts = geocode_texts(texts, form.length)
    length = pc.fill_null(pc.utf8_length(texts), 0).to_numpy(zero_copy_only=False)
    decimal = pc.fill_null(pc.ascii_is_decimal(texts), fill_value=False)
    good = decimal.to_numpy(zero_copy_only=False) & (length == form.length)
    if not good.all():
        texts = pc.if_else(pa.array(good), texts, "0")
    codes: NDArray[np.int64] = pc.cast(texts, pa.int64()).to_numpy(zero_copy_only=False)
    codes = np.where(good, codes, -1)
    if form.length == _CENSUS_BLOCK:
        require_known_blocks(place, codes, short, listed=False)
    return codes


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = list(matching_files(path, "*.parquet", "*.csv"))
        if not files:
            raise StorageError(f"{path}: the folder holds no Parquet or CSV file; name a file of histograms")
        return files
    if not path.is_file():
        raise StorageError(f"{path}: there is no such file; name a file of histograms")
    return [path]


def _table(path: Path, choices: tuple[tuple[str, ...], ...]) -> pa.Table:
    """The columns of the first choice that a file has; geocodes of a CSV stay text."""
    try:
        names = table_columns(path)
        columns = next((list(one) for one in choices if set(one) <= set(names)), list(choices[0]))
        if path.suffix.lower() not in STORED:
            return numbers_where_possible(
                read_table(path, "the file of histograms").select(columns), ["geocode"]
            )
        return read_validated(path, columns=columns, read_dictionary=["geocode"]).select(columns)
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except (KeyError, pa.ArrowInvalid, pa.ArrowTypeError, UnicodeDecodeError):
        allowed = " or ".join(", ".join(one) for one in choices)
        raise DataError(
            f"{path.name}: not a file of histograms; allowed: the columns {allowed} as Parquet or CSV"
        ) from None


def _integers(column: Any, file: str, name: str) -> NDArray[np.int64]:
    numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    read = column.to_numpy() if numbers and not column.null_count else None
    if read is None or not np.array_equal(read, np.floor(read)):
        raise DataError(
            f"{file}, {name}: not whole numbers in every row{_faults(column)}; allowed: whole numbers from 0"
        )
    values: NDArray[np.int64] = read.astype(np.int64)
    if bool((values < 0).any()):
        raise DataError(
            f"{file}, {name}: {int((values < 0).sum())} values are below 0{_faults(column)}; allowed: 0 or more"
        )
    return values


def _faults(column: Any) -> str:
    return "".join(f"; {fault}" for fault in number_faults(column.cast(pa.string())))


def _codes(column: Any, form: GeocodeForm, file: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Geocodes that occur as numbers, rising, and the position of that of every row; each text is read once a chunk."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    kind = column.type.value_type
    if column.null_count or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{file}, geocode: not text in every row; allowed: {block_words(form)} as text")
    parts, rows, start = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for chunk in column.chunks:
        index = chunk.indices.to_numpy()
        used = np.bincount(index, minlength=len(chunk.dictionary)) > 0
        parts.append(geocode_numbers(chunk.dictionary.filter(pa.array(used)), form, f"{file}, geocode"))
        rows.append((np.cumsum(used) - 1 + start)[index])
        start += len(parts[-1])
    numbers = np.concatenate(parts)
    wrong = int((numbers < 0).sum())
    if wrong:
        raise DataError(
            f"{file}, geocode: {wrong} codes are not of the right form; allowed: {block_words(form)}, leading zeros included"
        )
    codes, place = np.unique(numbers, return_inverse=True)
    return codes, place[np.concatenate(rows)]


_HOMES, _OCCUPIED = "gq0", "occupied"
_FACILITIES: Final = tuple(f"gq{kind}" for kind in range(1, 8))


def is_unit_table(path: Path) -> bool:
    """Whether a file has the columns geocode, gq0 and occupied."""
    return path.is_file() and {"geocode", _HOMES, _OCCUPIED} <= set(_names(path))


def read_unit_table(path: Path, form: GeocodeForm) -> BlockCells:
    """Vacant (cell 0) and occupied (cell 1) housing units of blocks."""
    table = _table_of_unit_files(path)
    codes = _codes_of_unit_files(path, table, form)
    homes, occupied = (_integers(table.column(name), path.name, name) for name in (_HOMES, _OCCUPIED))
    wrong = int((occupied > homes).sum())
    if wrong:
        raise DataError(
            f"{path.name}: {wrong} blocks have more occupied than housing units; allowed: at most as many"
        )
    order = np.argsort(codes)
    row = np.repeat(np.arange(len(codes)), 2)
    count = np.column_stack([homes - occupied, occupied])[order].reshape(-1)
    return BlockCells(path.name, "", codes[order], row, np.tile([0, 1], len(codes)), count)


def facilities_of(path: Path, form: GeocodeForm, blocks: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Facilities of group quarters, shape (blocks, 8), column 0 unused; None where the file does not have them."""
    if not set(_FACILITIES) <= set(_names(path)):
        return None
    table = _table_of_unit_files(path)
    codes = _codes_of_unit_files(path, table, form)
    place = np.searchsorted(blocks, codes)
    inside = place < len(blocks)
    inside[inside] = blocks[place[inside]] == codes[inside]
    facilities = np.zeros((len(blocks), 8), np.int64)
    for kind, name in enumerate(_FACILITIES, 1):
        facilities[place[inside], kind] = _integers(table.column(name), path.name, name)[inside]
    return facilities


def _names(path: Path) -> list[str]:
    try:
        return table_columns(path)
    except (OSError, pa.ArrowInvalid):
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None


def _table_of_unit_files(path: Path) -> Any:
    try:
        if path.suffix.lower() in STORED:
            return read_validated(path)
        return numbers_where_possible(read_table(path, "the table of units"), ["geocode"])
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path.name}: rows that do not have the columns of the header; allowed: a table of units as Parquet or CSV"
        ) from None


def _codes_of_unit_files(path: Path, table: Any, form: GeocodeForm) -> NDArray[np.int64]:
    column = table.column("geocode").cast(pa.string()).combine_chunks()
    codes = geocode_numbers(column, form, f"{path.name}, geocode")
    wrong, twice = int((codes < 0).sum()), len(codes) - len(np.unique(codes))
    if wrong or twice:
        raise DataError(
            f"{path.name}, geocode: {wrong or twice} codes are {'not of the right form' if wrong else 'repeated'}; allowed: "
            f"{block_words(form)}, each block once"
        )
    return codes
