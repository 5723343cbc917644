"""Published tables of areas in files of their own: of the Census API, tidycensus, NHGIS, or written here; a row an area, or a row an area and cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.area_tables import STORED, TEXT, column_names, number_faults, read_table, texts_of
from censafe.geography.identifiers import GEOID_LEVELS, geocode_texts, plain_codes
from censafe.geography.packed import PackedFile
from censafe.model.parsing import parse_json
from censafe.results.summary import AreaRecords

Cells = Mapping[str, Mapping[str, int]]
"""Number of cells of every table, by product."""
_VARIABLE: Final = re.compile(r"([A-Z]+[0-9]+[A-Z]*)_([0-9]{3})N?")
_AREA_COLUMNS: Final = ("geoid", "geo_id", "geoid20", "geocode", "gisjoin")
_PARTS: Final = {"state": 2, "county": 3, "tract": 6, "block group": 1, "block": 4}
"""Columns of the Census API that make a GEOID, and their digits."""
_NUMBERS: Final = ("value", "estimate", "count")
_NATION: Final = "us"
_LEVELS: Final = {0: _NATION, **GEOID_LEVELS}
_ORDER: Final = (_NATION, "state", "county", "tract", "block_group", "block", "place", "cousub")
_GEOCODE: Final = 16
_JOINED: Final = r"^G([0-9]{2})0(?:([0-9]{3})0)?([0-9]*)$"
_CODEBOOK: Final = re.compile(r"Source code:\s+(\S+)\s+NHGIS code:\s+(\S+)")
_LABELS: Final = "GIS Join Match Code"
_JSON: Final = ".json"


@dataclass(frozen=True, eq=False)
class TableFiles:
    """Tables of areas.

    Args:
        words: of the form.
        cells: number of cells of every table of the product.
        columns: codes, names and values of variables such as P12_002, by level; all of shape (areas,), codes rising.
    """

    product: str
    words: str
    cells: Mapping[str, int] = field(repr=False)
    columns: Mapping[str, tuple[NDArray[np.str_], NDArray[np.str_], Mapping[str, NDArray[np.float64]]]] = (
        field(repr=False)
    )

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of which there are areas."""
        return tuple(word for word in _ORDER if word in self.columns)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Tables of which every cell is there for every area."""
        return frozenset(table for table in self.cells if not self.missing(table))

    def missing(self, table: str) -> list[str]:
        """Cells of a table that are not there for every level."""
        names = _variables(table, self.cells[table])
        return [name for name in names if any(name not in values for _, _, values in self.columns.values())]

    def areas(self, word: str) -> AreaRecords:
        """The areas of a level."""
        codes, names, _ = self.columns[word]
        return AreaRecords(codes, names, ())

    def values(self, table: str, areas: AreaRecords) -> NDArray[np.float64]:
        """Cells of a table for the areas of a level, shape (areas, cells)."""
        values = next(own for codes, _, own in self.columns.values() if codes is areas.codes)
        return np.column_stack([values[name] for name in _variables(table, self.cells[table])])


def _variables(table: str, cells: int) -> list[str]:
    return [f"{table}_{number:03d}" for number in range(1, cells + 1)]


def read_table_files(files: Sequence[PackedFile], cells: Cells) -> TableFiles | None:
    """The tables of some files; None where none of them is one."""
    codebooks = [one for one in files if "codebook" in one.name.lower()]
    codes = {code: table for one in codebooks for table, code in _CODEBOOK.findall(_text(one))}
    read = [(file, table) for file in files if (table := _table(file, codes)) is not None]
    if not read:
        return None
    forms = sorted({form for _, (form, _) in read})
    product = _product({name for _, (_, table) in read for name in _names(table)}, cells)
    columns: dict[str, Any] = {}
    for file, (_, table) in read:
        for level, own in _by_level(file, table).items():
            if level in columns and not np.array_equal(columns[level][0], own[0]):
                raise DataError(
                    f"{file}: other areas of the level {level} than another file has; fix: give the files of one extract"
                )
            columns[level] = own if level not in columns else (*own[:2], columns[level][2] | own[2])
    packing = "".join(f", {words}" for words in sorted({file.packing for file, _ in read} - {""}))
    return TableFiles(product, f"tables of areas ({' and '.join(forms)}){packing}", cells[product], columns)


def _product(names: set[str], cells: Cells) -> str:
    """The product whose tables the variables are, the one with the most complete tables."""
    scores = {}
    for product, tables in cells.items():
        known = {name for table, number in tables.items() for name in _variables(table, number)}
        complete = sum(names.issuperset(_variables(table, number)) for table, number in tables.items())
        scores[product] = (-len(names - known), complete)
    return max(scores, key=lambda product: scores[product])


def _names(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if _VARIABLE.fullmatch(name)]


def _text(file: PackedFile) -> str:
    with file.open() as stream:
        return stream.read().decode("utf-8", errors="replace")


def _table(file: PackedFile, codes: Mapping[str, str]) -> tuple[str, pa.Table] | None:
    """Words for the form of a file and its rows: one an area, with variables such as P12_002, and `code` and `name`."""
    if file.suffix not in (*TEXT, *STORED, _JSON) or "codebook" in file.name.lower():
        return None
    if file.suffix == _JSON:
        rows = parse_json(_text(file), str(file), DataError)
        if not (
            isinstance(rows, list)
            and rows
            and all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
        ):
            return None
        names = [str(name) for name in rows[0]]
    else:
        try:
            names = column_names(file, "the tables")
        except (DataError, OSError, pa.ArrowException, UnicodeDecodeError):
            return None
    lower = {name.lower(): name for name in names}
    area = next((lower[name] for name in _AREA_COLUMNS if name in lower), None)
    parts = [lower[name] for name in _PARTS if name in lower]
    nhgis = {
        name: f"{codes[name[:-3]]}_{name[-3:]}"
        for name in names
        if name[:-3] in codes and name[-3:].isdigit()
    }
    wide = {name: name.removesuffix("N") for name in names if _VARIABLE.fullmatch(name)} | nhgis
    number = next((lower[name] for name in _NUMBERS if name in lower), None)
    item = "variable" in lower or {"table", "item"} <= set(lower)
    if (area is None and not parts) or not (wide or (number and item)):
        return None
    if file.suffix == _JSON:
        table = pa.table(
            [
                pa.array(["" if value is None else str(value) for value in column])
                for column in zip(*rows[1:], strict=True)
            ],
            names,
        )
    else:
        table = read_table(file, "the tables")
    code = texts_of(table[area]) if area else _joined_parts(table, parts)
    keep = pc.invert(pc.equal(code, _LABELS))  # a second header of NHGIS
    named = texts_of(table[lower["name"]]) if "name" in lower else pa.chunked_array([[""] * table.num_rows])
    base = pa.table({"code": code, "name": named})
    if wide:
        for name, variable in wide.items():
            base = base.append_column(variable, texts_of(table[name]))
        form = "NHGIS" if nhgis else "a row an area"
        return form, base.filter(keep)
    variable = _long_variables(table, lower)
    return "a row an area and cell", _spread(
        file, base.append_column("variable", variable).append_column("value", texts_of(table[number]))
    )


def _joined_parts(table: pa.Table, parts: Sequence[str]) -> pa.ChunkedArray:
    """GEOIDs from the columns of the Census API, which has the block group beside the block in none of its codes."""
    texts = []
    for name in parts:
        if name.lower() == "block group" and any(one.lower() == "block" for one in parts):
            continue
        texts.append(pc.utf8_lpad(texts_of(table[name]), _PARTS[name.lower()], "0"))
    return pc.binary_join_element_wise(*texts, "")


def _long_variables(table: pa.Table, lower: Mapping[str, str]) -> pa.ChunkedArray:
    if "variable" in lower:
        return pc.replace_substring_regex(texts_of(table[lower["variable"]]), "N$", "")
    number = pc.utf8_lpad(texts_of(table[lower["item"]]), 3, "0")
    return pc.binary_join_element_wise(texts_of(table[lower["table"]]), number, "_")


def _spread(file: PackedFile, rows: pa.Table) -> pa.Table:
    """A row an area from a row an area and cell; cells that an area lacks are empty."""
    codes, area = np.unique(np.array(rows["code"].to_pylist(), np.str_), return_inverse=True)
    names, cell = np.unique(np.array(rows["variable"].to_pylist(), np.str_), return_inverse=True)
    key = area * len(names) + cell
    if len(np.unique(key)) < len(key):
        raise DataError(
            f"{file}: {len(key) - len(np.unique(key)):,} rows repeat an area and cell; fix: give each once"
        )
    values = np.full(len(codes) * len(names), "", object)
    values[key] = np.array(rows["value"].to_pylist(), object)
    grid = values.reshape(len(codes), len(names))
    first = np.zeros(len(codes), np.int64)
    first[area[::-1]] = np.arange(len(area))[::-1]
    columns = {
        name: pa.array(grid[:, place].tolist())
        for place, name in enumerate(names.tolist())
        if _VARIABLE.fullmatch(name)
    }
    return pa.table({"code": codes.tolist(), "name": rows["name"].take(pa.array(first)), **columns})


def _by_level(file: PackedFile, table: pa.Table) -> dict[str, Any]:
    """Codes, names and values by level."""
    texts = pc.replace_substring_regex(plain_codes(table["code"]), _JOINED, r"\1\2\3")
    codes = np.array(texts.to_pylist(), np.str_)
    length = np.char.str_len(codes)
    length = np.where(length == _GEOCODE, _GEOCODE - 1, length)
    wrong = ~np.isin(length, list(_LEVELS)) | ~((codes == "") | np.char.isdigit(codes))
    if wrong.any():
        raise DataError(
            f"{file}: {int(wrong.sum()):,} codes of areas are not GEOIDs of 2, 5, 7, 10, 11, 12 or 15 digits, such as {codes[wrong][0]}; fix: write the codes as text with "
            "leading zeros, which spreadsheets drop"
        )
    names = np.array(table["name"].to_pylist(), np.str_)
    values = {name: _numbers(file, name, table[name]) for name in _names(table)}
    levels = {}
    for digits in np.unique(length).tolist():
        rows = np.flatnonzero(length == digits)
        own = codes[rows]
        if _LEVELS[digits] == "block":
            own = np.array(geocode_texts(pa.array(own), _GEOCODE).to_pylist(), np.str_)
        order = np.argsort(own, kind="stable")
        if len(np.unique(own)) < len(own):
            raise DataError(
                f"{file}: {len(own) - len(np.unique(own)):,} rows repeat an area of the level {_LEVELS[digits]}; fix: give each once"
            )
        columns = {name: column[rows][order] for name, column in values.items()}
        # a cell that is empty for every area of a level belongs to other levels
        columns = {name: column for name, column in columns.items() if not np.isnan(column).all()}
        levels[_LEVELS[digits]] = (own[order].astype(f"U{_GEOCODE}"), names[rows][order], columns)
    return levels


def _numbers(file: PackedFile, name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    plain = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    faults = number_faults(plain)
    if faults:
        raise DataError(f"{file}, {name}: {'; '.join(faults)}; allowed: numbers; fix: correct these cells")
    return np.asarray(plain.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
