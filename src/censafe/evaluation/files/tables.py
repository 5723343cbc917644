"""Published tables P1 to P5 and H1 as histograms of blocks: a state's P.L. 94-171 folder, or the tables that TopDown writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.evaluation.files.histograms import BlockCells, geocode_numbers, table_columns
from censafe.geography.area_tables import STORED, read_table
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import block_words
from censafe.geography.packed import PACKED, PackedFile, packed_files
from censafe.geography.parquet_tables import read_validated
from censafe.geography.spines.tree import LevelRule
from censafe.geography.summary_files import state_files
from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import HistogramSchema
from censafe.population.blocks.imputation import RULE, imputed_cells
from censafe.population.blocks.layout import HistogramLayout
from censafe.population.blocks.legacy import find_legacy, read_legacy
from censafe.products.topdown.census_tables.definitions import census_tables

_TIDY: Final = ("geocode", "table", "item", "count")
_WIDE: Final = ("geocode", "P1_001")
_ALLOWED: Final = f"{', '.join(_TIDY)} or geocode, P1_001 to H1_003"
_SHAPE: Final = (8, 2, 2, 63)
_DIGITS: Final = 16
_KINDS: Final = 8


def is_legacy_folder(path: Path) -> bool:
    """Whether a folder or an archive holds a state's P.L. 94-171 files in the legacy layout."""
    return bool(_legacy_files(path))


def _legacy_files(path: Path) -> tuple[Path | PackedFile, ...]:
    """The header and the three segments; none where they are not there."""
    if path.is_dir():
        return find_legacy(path)
    if path.suffix.lower() not in PACKED:
        return ()
    states = [one for one in state_files(packed_files(path)) if one.product == "pl"]
    if not states:
        return ()
    if len(states) > 1 or states[0].header is None or sorted(states[0].segments) != [1, 2, 3]:
        raise DataError(
            f"{path.name}: P.L. 94-171 files of {len(states)} states, or not all four of a state; allowed: the header and the three segments of one state; fix: give "
            "such an archive"
        )
    return (states[0].header, *(states[0].segments[number] for number in (1, 2, 3)))


def is_table_file(path: Path) -> bool:
    """Whether a file holds redistricting tables: a row an item (geocode, table, item, count), or one an area (geocode, P1_001 ...)."""
    if not path.is_file() or path.suffix.lower() not in (*STORED, ".csv", ".zip"):
        return False
    names = _names(path)
    return set(_TIDY) <= names or set(_WIDE) <= names


def holds_units(path: Path) -> bool:
    """Whether a file of tables has H1, the occupancy of housing units."""
    names = _names(path)
    if not set(_TIDY) <= names:
        return "H1_001" in names
    return "H1" in _read(path, _TIDY).column("table").unique().cast(pa.string()).to_pylist()


def imputation_notes(path: Path, schema: HistogramSchema) -> tuple[str, ...]:
    """What of the persons of a source is made up by a rule, because no table has it."""
    tables = is_table_file(path) or is_legacy_folder(path)
    return (RULE,) if tables and schema.record is ProtectedUnit.PERSON else ()


def read_legacy_cells(path: Path, schema: HistogramSchema) -> BlockCells:
    """Persons or housing units of the blocks of a state's P.L. 94-171 folder."""
    persons = schema.record is ProtectedUnit.PERSON
    _require(path, schema)
    layout = HistogramLayout(
        schema=schema.schema if persons else None,
        rules=(LevelRule("Whole", 0), LevelRule("Block", _DIGITS)),
        unit_columns=tuple(f"gq{kind}" for kind in range(_KINDS)),
        occupied=True,
        least=(),
        most=(),
        empty=np.zeros(schema.schema.cells if persons else 0, np.bool_),
        census_blocks=True,
    )
    blocks = read_legacy(_legacy_files(path), layout)
    read = blocks.persons if persons else blocks.units
    if read is None:
        raise DataError(f"{path}: there is no occupancy of housing units")
    codes = blocks.spine.leaf.codes
    row = np.repeat(np.arange(len(codes)), np.diff(read.node_ptr))
    return BlockCells(path.name, "", codes, row, read.cell.astype(np.int64), read.count.astype(np.int64))


def read_table_cells(path: Path, schema: HistogramSchema) -> BlockCells:
    """The same from the tables of blocks that TopDown writes, such as ``tables/Block.parquet``.

    The joint of kind of quarters with age, origin and race is in no table; it is made up by the rule of the P.L. 94-171 reader.

    Args:
        path: Parquet or CSV with one row an item (geocode, table, item from 1, count), or one row a block (geocode and the items
            P1_001 to H1_003).
    """
    _require(path, schema)
    tables, codes = _tables_of(path)
    if schema.record is ProtectedUnit.HOUSEHOLD:
        if "H1" not in tables:
            raise DataError(f"{path.name}: no table H1; allowed for housing units: tables with H1")
        row = np.repeat(np.arange(len(codes)), 2)
        counts = tables["H1"][:, [2, 1]].reshape(-1).astype(np.int64)
        return BlockCells(path.name, "", codes, row, np.tile([0, 1], len(codes)), counts)
    keys, counts, failed = imputed_cells(tables)
    negative = int((counts < 0).sum())
    if failed or negative:
        raise DataError(
            f"{path.name}: tables of {failed or negative} blocks do not fit each other; allowed: P4 within P2 and P3, both within P1, "
            "and group quarters of P5 that fit P1 and P3; fix: copy the file again"
        )
    row, cell = np.divmod(keys, schema.schema.cells)
    return BlockCells(path.name, "", codes, row, cell, counts)


def _require(path: Path, schema: HistogramSchema) -> None:
    shape = (2,) if schema.record is ProtectedUnit.HOUSEHOLD else _SHAPE
    if schema.schema.shape != shape:
        raise DataError(
            f"{path.name}: redistricting tables hold hhgq x votingage x hispanic x cenrace (8 x 2 x 2 x 63) and occupancy, which is "
            f"not the schema {schema.name}; fix: give a file of histograms"
        )


def _tables_of(path: Path) -> tuple[dict[str, NDArray[np.int32]], NDArray[np.int64]]:
    """Items of every block by table, shape (blocks, items), blocks rising, and the geocodes."""
    names = _names(path)
    tidy = set(_TIDY) <= names
    columns = (
        _TIDY if tidy else ("geocode", *(one for items in _items().values() for one in items if one in names))
    )
    rows = _read(path, columns)
    empty = max(rows.column(name).null_count for name in columns)
    if empty:
        words = ", ".join(_TIDY) if tidy else "every column"
        raise DataError(f"{path.name}: {empty} rows have empty cells; allowed: {words} in every row")
    codes, block = _blocks(path, rows)
    if tidy:
        return _from_rows(path, rows, codes, block), codes
    if len(codes) < len(block):
        raise DataError(
            f"{path.name}, geocode: {len(block) - len(codes)} rows repeat a block; allowed: every block once"
        )
    return _from_columns(path, rows, block), codes


def _blocks(path: Path, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Geocodes that occur as numbers, rising, and the position of that of every row."""
    texts = rows.column("geocode").cast(pa.string()).combine_chunks().dictionary_encode()
    known = geocode_numbers(texts.dictionary, GeocodeForm(_DIGITS), f"{path.name}, geocode")
    wrong = int((known < 0).sum())
    if wrong:
        raise DataError(
            f"{path.name}, geocode: {wrong} codes are not of the right form; allowed: {block_words(GeocodeForm(_DIGITS))}; fix: name the "
            "tables of blocks"
        )
    codes, place = np.unique(known, return_inverse=True)
    return codes, place[texts.indices.to_numpy()]


def _from_rows(
    path: Path, rows: Any, codes: NDArray[np.int64], block: NDArray[np.int64]
) -> dict[str, NDArray[np.int32]]:
    """Tables of a file with one row an item."""
    names = np.array(rows.column("table").cast(pa.string()).to_pylist(), np.str_)
    item = rows.column("item").to_numpy().astype(np.int64) - 1
    count = rows.column("count").to_numpy().astype(np.int32)
    tables = {}
    for table, items in _items().items():
        width = len(items)
        own = names == table
        if table == "H1" and not own.any():
            continue
        key = block[own] * width + item[own]
        inside = (item[own] >= 0) & (item[own] < width)
        if not inside.all() or not np.array_equal(np.sort(key), np.arange(len(codes) * width)):
            raise _incomplete(path, table)
        tables[table] = np.zeros((len(codes), width), np.int32)
        tables[table].reshape(-1)[key] = count[own]
    return tables


def _from_columns(path: Path, rows: Any, block: NDArray[np.int64]) -> dict[str, NDArray[np.int32]]:
    """Tables of a file with one row a block."""
    tables = {}
    for table, names in _items().items():
        present = [name for name in names if name in rows.column_names]
        if table == "H1" and not present:
            continue
        if len(present) < len(names):
            raise _incomplete(path, table)
        tables[table] = np.zeros((len(block), len(names)), np.int32)
        for item, name in enumerate(names):
            tables[table][block, item] = rows.column(name).to_numpy()
    return tables


def _incomplete(path: Path, table: str) -> DataError:
    return DataError(
        f"{path.name}: items of {table} are missing or given twice; allowed: items 1 to {len(_items()[table])} of every block, once"
    )


def _items() -> dict[str, tuple[str, ...]]:
    """Names of the items of every table."""
    return {name: table.items for name, table in census_tables("pl94").items()}


def _names(path: Path) -> set[str]:
    """Names of the columns; none where the file cannot be read."""
    try:
        return set(table_columns(path))
    except (DataError, OSError, pa.ArrowInvalid):
        return set()


def _read(path: Path, columns: Sequence[str]) -> Any:
    """Columns of a file: codes and names of tables are text, all others whole numbers."""

    def kind(name: str) -> pa.DataType:
        return pa.int64() if name in columns and name not in ("geocode", "table") else pa.string()

    try:
        if path.suffix.lower() in STORED:
            return read_validated(path, columns=list(columns))
        return read_table(path, "the tables", kind).select(list(columns))
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except (KeyError, pa.ArrowInvalid, UnicodeDecodeError):  # the last of names of columns
        raise DataError(
            f"{path.name}: not tables of the redistricting data; allowed: {_ALLOWED}, with whole numbers"
        ) from None
