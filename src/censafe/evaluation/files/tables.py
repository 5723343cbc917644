"""Published tables P1 to P5 and H1 as histograms of blocks: a state's P.L. 94-171 folder, or the tables that TopDown writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.evaluation.files.histograms import BlockCells, table_columns, whole_geocodes
from censafe.geography.spines.tree import LevelRule
from censafe.model import ExactHistograms, ProtectedUnit
from censafe.model.histograms import HistogramSchema
from censafe.model.pl94 import TABLE_ITEMS
from censafe.population.blocks import HistogramLayout
from censafe.population.blocks.legacy import RULE, find_legacy, imputed_cells, read_legacy

__all__ = [
    "holds_units",
    "is_legacy_folder",
    "is_table_file",
    "made_up",
    "read_legacy_cells",
    "read_table_cells",
]

_COLUMNS: Final = ("geocode", "table", "item", "count")
_SHAPE: Final = (8, 2, 2, 63)
_DIGITS: Final = 16
_KINDS: Final = 8


def is_legacy_folder(path: Path) -> bool:
    """Whether a folder holds a state's P.L. 94-171 files in the legacy layout."""
    return path.is_dir() and bool(find_legacy(path))


def is_table_file(path: Path) -> bool:
    """Whether a file has one row an item of the redistricting tables: geocode, table, item, count."""
    if not path.is_file() or path.suffix not in (".parquet", ".csv"):
        return False
    try:
        return set(_COLUMNS) <= set(table_columns(path))
    except (OSError, pa.ArrowInvalid):
        return False


def holds_units(path: Path) -> bool:
    """Whether a file of tables has H1, the occupancy of housing units."""
    return "H1" in _rows(path).column("table").unique().cast(pa.string()).to_pylist()


def made_up(path: Path, schema: HistogramSchema) -> tuple[str, ...]:
    """What of the persons of a source is made up by a rule, because no table has it."""
    tables = is_table_file(path) or is_legacy_folder(path)
    return (RULE,) if tables and schema.record is ProtectedUnit.PERSON else ()


def read_legacy_cells(path: Path, schema: HistogramSchema) -> BlockCells:
    """Persons or housing units of the blocks of a state's P.L. 94-171 folder.

    Args:
        path: folder with the header and three segments.
        schema: hhgq 8, votingage 2, hispanic 2, cenrace 63 for persons; two cells, vacant and occupied, for units.

    Raises:
        DataError: everything that is wrong with the files, or another schema.
        StorageError: a file cannot be opened.
    """
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
    blocks = read_legacy(find_legacy(path), layout)
    read = blocks.persons if persons else blocks.units
    if read is None:
        raise DataError(f"{path}: there is no occupancy of housing units")
    return _of_histograms(path.name, blocks.spine.leaf.codes, read)


def _of_histograms(name: str, codes: NDArray[np.int64], read: ExactHistograms) -> BlockCells:
    row = np.repeat(np.arange(len(codes)), np.diff(read.node_ptr))
    return BlockCells(name, "", codes, row, read.cell.astype(np.int64), read.count.astype(np.int64))


def read_table_cells(path: Path, schema: HistogramSchema) -> BlockCells:
    """The same from the tables of blocks that TopDown writes, such as ``tables/Block.parquet``.

    The joint of kind of quarters with age, origin and race is in no table; it is made up by the rule of the P.L. 94-171 reader.

    Args:
        path: Parquet or CSV with one row an item: geocode, table, item (from 1) and count.
        schema: as of :func:`read_legacy_cells`.

    Raises:
        DataError: items are missing, given twice or do not fit each other, or another schema.
        StorageError: the file cannot be read.
    """
    _require(path, schema)
    tables, codes = _wide(path)
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
    wanted = (2,) if schema.record is ProtectedUnit.HOUSEHOLD else _SHAPE
    if schema.schema.shape != wanted:
        raise DataError(
            f"{path.name}: redistricting tables hold hhgq x votingage x hispanic x cenrace (8 x 2 x 2 x 63) and occupancy, which is "
            f"not the schema {schema.name}; fix: give a file of histograms"
        )


def _wide(path: Path) -> tuple[dict[str, NDArray[np.int32]], NDArray[np.int64]]:
    """Items of every block by table, blocks rising, and the geocodes."""
    rows = _rows(path)
    empty = max(rows.column(name).null_count for name in _COLUMNS)
    if empty:
        raise DataError(
            f"{path.name}: {empty} rows have empty cells; allowed: {', '.join(_COLUMNS)} in every row"
        )
    texts = rows.column("geocode").cast(pa.string()).combine_chunks().dictionary_encode()
    known = whole_geocodes(texts.dictionary, _DIGITS)
    wrong = int((known < 0).sum())
    if wrong:
        raise DataError(
            f"{path.name}, geocode: {wrong} codes are not of the right form; allowed: {_DIGITS} decimal digits; fix: name the "
            "tables of blocks"
        )
    codes, place = np.unique(known, return_inverse=True)
    block = place[texts.indices.to_numpy()]
    names = np.array(rows.column("table").cast(pa.string()).to_pylist(), np.str_)
    item = rows.column("item").to_numpy().astype(np.int64) - 1
    count = rows.column("count").to_numpy().astype(np.int32)
    tables = {}
    for table, width in TABLE_ITEMS.items():
        own = names == table
        if table == "H1" and not own.any():
            continue
        key = block[own] * width + item[own]
        inside = (item[own] >= 0) & (item[own] < width)
        if not inside.all() or not np.array_equal(np.sort(key), np.arange(len(codes) * width)):
            raise DataError(
                f"{path.name}: items of {table} are missing or given twice; allowed: items 1 to {width} of every block, once"
            )
        tables[table] = np.zeros((len(codes), width), np.int32)
        tables[table].reshape(-1)[key] = count[own]
    return tables, codes


def _rows(path: Path) -> Any:
    try:
        if path.suffix == ".parquet":
            return pq.read_table(path, columns=list(_COLUMNS))
        types = {"geocode": pa.string(), "table": pa.string(), "item": pa.int64(), "count": pa.int64()}
        options = pa_csv.ConvertOptions(column_types=types, include_columns=list(_COLUMNS))
        return pa_csv.read_csv(path, convert_options=options)
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path.name}: not tables of the redistricting data; allowed: {', '.join(_COLUMNS)}, with whole numbers"
        ) from None
