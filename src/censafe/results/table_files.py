"""Published tables of areas in files of their own: of the Census API, tidycensus, NHGIS, or written here; a row an area, or a row an area and cell."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.files import (
    STORED,
    TEXT,
    PackedFile,
    column_names,
    number_faults,
    read_table,
    texts_of,
)
from censafe.geography.identifiers import GEOID_LEVELS, geocode_texts, plain_codes
from censafe.model.parsing import parse_json
from censafe.results.summary import AreaRecords

Cells = Mapping[str, Mapping[str, int]]
"""Number of cells of every table, by product."""
_VARIABLE: Final = re.compile(r"([A-Z]+[0-9]+[A-Z]*)_([0-9]{3})N?")
_AREA_COLUMNS: Final = ("geoid", "geo_id", "geoid20", "geocode", "gisjoin", "geounit")
_PARTS: Final = {"state": 2, "county": 3, "tract": 6, "block group": 1, "block": 4}
"""Columns of the Census API that make a GEOID, and their digits."""
_ITEM: Final = "item"
_CELLS: Final = (("variable",), ("table", _ITEM), ("table", "line"), ("table", "cell"))
_NUMBERS: Final = ("value", "estimate", "count")
_NATION: Final = "us"
_LEVELS: Final = {0: _NATION, **GEOID_LEVELS}
_ORDER: Final = (_NATION, "state", "county", "tract", "block_group", "block", "place", "cousub")
_GEOCODE: Final = 16
_JOINED: Final = r"^G([0-9]{2})0(?:([0-9]{3})0)?([0-9]*)$"
_CODEBOOK: Final = re.compile(r"Source code:\s+(\S+)\s+NHGIS code:\s+(\S+)")
_LABELS: Final = "GIS Join Match Code"
_JSON: Final = ".json"


class _Form(NamedTuple):
    """What the header of a file says of its rows.

    Args:
        areas: columns whose codes together are that of an area.
        name: column of the names of areas; None without.
        variables: of columns such as P12_002N, where a row is an area.
        cell: columns that tell table and cell, where a row is an area and cell.
        value: column of the numbers of such rows.
        rows: those of JSON, which has no header of its own; None where they are read later.
    """

    file: PackedFile
    words: str
    areas: tuple[str, ...]
    name: str | None
    variables: Mapping[str, str]
    cell: tuple[str, ...]
    value: str
    rows: pa.Table | None

    @property
    def sparse(self) -> bool:
        """Whether lines without a row are 0, as tables of an attack are written."""
        return len(self.cell) > 1 and self.cell[1].lower() != _ITEM

    def read(self) -> tuple[NDArray[np.str_], NDArray[np.str_], dict[str, NDArray[np.float64]]]:
        """Codes and names of the areas, and the values of each variable, all of shape (areas,)."""
        rows = read_table(self.file, "the tables") if self.rows is None else self.rows
        code = _joined([texts_of(rows[name]) for name in self.areas], self.areas)
        if self.variables:
            keep = pc.invert(pc.equal(code, _LABELS))  # a second header of NHGIS
            rows, code = rows.filter(keep), code.filter(keep)
        names = pa.chunked_array([[""] * rows.num_rows]) if self.name is None else texts_of(rows[self.name])
        if self.variables:
            values = {
                variable: _numbers(self.file, variable, rows[name])
                for name, variable in self.variables.items()
            }
        else:
            code, names, values = self._spread(rows, code, names)
        texts = pc.replace_substring_regex(plain_codes(code), _JOINED, r"\1\2\3")
        return np.array(texts.to_pylist(), np.str_), np.array(names.to_pylist(), np.str_), values

    def _spread(self, rows: pa.Table, code: pa.ChunkedArray, names: pa.ChunkedArray) -> tuple[Any, Any, Any]:
        """A row an area from a row an area and cell; cells that an area lacks are empty, or 0."""
        cell = [texts_of(rows[name]) for name in self.cell]
        if len(cell) > 1:
            cell[1] = pc.utf8_lpad(cell[1], 3, "0")
        areas, variables = pc.unique(code), pc.unique(pc.binary_join_element_wise(*cell, "_"))
        area = pc.index_in(code, value_set=areas).to_numpy().astype(np.int64)
        variable = pc.index_in(pc.binary_join_element_wise(*cell, "_"), value_set=variables).to_numpy()
        key = area * len(variables) + variable
        repeated = len(key) - np.count_nonzero(np.bincount(key))
        if repeated:
            raise DataError(f"{self.file}: {repeated:,} rows repeat an area and cell; fix: give each once")
        grid = np.full((len(areas), len(variables)), 0.0 if self.sparse else np.nan)
        grid.flat[key] = _numbers(self.file, self.value, rows[self.value])
        first = np.zeros(len(areas), np.int64)
        first[area[::-1]] = np.arange(len(area))[::-1]
        values = {
            name.removesuffix("N") if _VARIABLE.fullmatch(name) else name: grid[:, place]
            for place, name in enumerate(variables.to_pylist())
        }
        return areas, names.take(pa.array(first)), values


@dataclass(frozen=True, eq=False)
class TableFiles:
    """Tables of areas; their rows are read when they are needed.

    Args:
        words: of the form.
        forms: of the files.
        products: number of cells of every table, by product.
    """

    words: str
    forms: tuple[_Form, ...] = field(repr=False)
    products: Cells = field(repr=False)

    @property
    def _sparse(self) -> bool:
        return all(form.sparse for form in self.forms)

    @cached_property
    def columns(
        self,
    ) -> Mapping[str, tuple[NDArray[np.str_], NDArray[np.str_], Mapping[str, NDArray[np.float64]]]]:
        """Codes, names and values of variables such as P12_002, by level; all of shape (areas,), codes rising."""
        columns: dict[str, Any] = {}
        for form in self.forms:
            for level, own in _by_level(form.file, *form.read(), sparse=form.sparse).items():
                if level in columns and not np.array_equal(columns[level][0], own[0]):
                    raise DataError(
                        f"{form.file}: other areas of the level {level} than another file has; fix: give the files of one extract"
                    )
                columns[level] = own if level not in columns else (*own[:2], columns[level][2] | own[2])
        return columns

    @property
    def _names(self) -> set[str]:
        return {name for _, _, values in self.columns.values() for name in values}

    @cached_property
    def product(self) -> str:
        """The product whose tables the variables are, the one with the most complete tables; the first of tables of an attack."""
        if self._sparse:
            return next(iter(self.products))
        names, scores = self._names, {}
        for product, tables in self.products.items():
            known = {name for table, number in tables.items() for name in _variables(table, number)}
            complete = sum(names.issuperset(_variables(table, number)) for table, number in tables.items())
            scores[product] = (-len(names - known), complete)
        return max(scores, key=scores.__getitem__)

    @property
    def cells(self) -> Mapping[str, int]:
        """Number of cells of every table of the product."""
        return self.products[self.product]

    @property
    def unknown(self) -> list[str]:
        """Cells of no table of the product."""
        return sorted(
            self._names - {name for table, cells in self.cells.items() for name in _variables(table, cells)}
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of which there are areas."""
        return tuple(word for word in _ORDER if word in self.columns)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Tables of which every cell is there for every area."""
        return frozenset(table for table in self.cells if not self.missing(table))

    def missing(self, table: str, word: str = "") -> list[str]:
        """Cells of a table that are not there for a level, or for every one."""
        names = _variables(table, self.cells[table])
        levels = [values for level, (_, _, values) in self.columns.items() if word in ("", level)]
        missing = [name for name in names if any(name not in values for values in levels)]
        return [] if self._sparse and len(missing) < len(names) else missing

    def areas(self, word: str) -> AreaRecords:
        """The areas of a level."""
        codes, names, _ = self.columns[word]
        return AreaRecords(codes, names, ())

    def values(self, table: str, areas: AreaRecords, also: Collection[str] = ()) -> NDArray[np.float64]:
        """Cells of a table for the areas of a level, shape (areas, cells)."""
        values = next(own for codes, _, own in self.columns.values() if codes is areas.codes)
        zeros = np.zeros(len(areas.codes))
        return np.column_stack([values.get(name, zeros) for name in _variables(table, self.cells[table])])


def _variables(table: str, cells: int) -> list[str]:
    return [f"{table}_{number:03d}" for number in range(1, cells + 1)]


def read_table_files(files: Sequence[PackedFile], cells: Cells) -> TableFiles | None:
    """The tables of some files; None where none of them is one."""
    codebooks = [one for one in files if "codebook" in one.name.lower()]
    codes = {code: table for one in codebooks for table, code in _CODEBOOK.findall(_text(one))}
    forms = tuple(form for file in files if (form := _form(file, codes)) is not None)
    if not forms:
        return None
    words = " and ".join(sorted({form.words for form in forms}))
    packing = "".join(f", {words}" for words in sorted({form.file.packing for form in forms} - {""}))
    return TableFiles(f"tables of areas ({words}){packing}", forms, cells)


def _text(file: PackedFile) -> str:
    with file.open() as stream:
        return stream.read().decode("utf-8", errors="replace")


def _form(file: PackedFile, codes: Mapping[str, str]) -> _Form | None:
    """The form of a file; None where it is no table of areas."""
    if file.suffix not in (*TEXT, *STORED, _JSON) or "codebook" in file.name.lower():
        return None
    rows = None
    try:
        if file.suffix == _JSON:
            rows = _json_rows(file)
        names = column_names(file, "the tables") if rows is None else rows.column_names
    except (DataError, OSError, pa.ArrowException, UnicodeDecodeError):
        return None
    lower = {name.lower(): name for name in names}
    area = next((lower[name] for name in _AREA_COLUMNS if name in lower), None)
    areas = (area,) if area is not None else tuple(lower[name] for name in _PARTS if name in lower)
    nhgis = {
        name: f"{codes[name[:-3]]}_{name[-3:]}"
        for name in names
        if name[:-3] in codes and name[-3:].isdigit()
    }
    wide = {name: name.removesuffix("N") for name in names if _VARIABLE.fullmatch(name)} | nhgis
    value = next((lower[name] for name in _NUMBERS if name in lower), "")
    cell = next((own for own in _CELLS if set(own) <= set(lower)), ())
    if not areas or not (wide or (value and cell)):
        return None
    words = "NHGIS" if nhgis else "a row an area" if wide else "a row an area and cell"
    return _Form(
        file, words, areas, lower.get("name"), wide, tuple(lower[name] for name in cell), value, rows
    )


def _json_rows(file: PackedFile) -> pa.Table:
    """Rows of JSON in the form of the Census API: a list of lists, of which the first has the names."""
    rows = parse_json(_text(file), str(file), DataError)
    if not (
        isinstance(rows, list)
        and rows
        and all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
    ):
        raise DataError(f"{file}: no list of rows")
    columns = [
        ["" if value is None else str(value) for value in column] for column in zip(*rows[1:], strict=True)
    ]
    return pa.table(columns, [str(name) for name in rows[0]])


def _joined(texts: Sequence[pa.ChunkedArray], names: Sequence[str]) -> pa.ChunkedArray:
    """Codes of areas: one column, or GEOIDs from the columns of the Census API, whose block begins with its block group."""
    if len(texts) == 1 and names[0].lower() not in _PARTS:
        return texts[0]
    parts = dict(zip((name.lower() for name in names), texts, strict=True))
    if "block" in parts:
        parts.pop("block group", None)
    padded = [pc.utf8_lpad(text, _PARTS[name], "0") for name, text in parts.items()]
    return pc.binary_join_element_wise(*padded, "")


def _by_level(
    file: PackedFile,
    codes: NDArray[np.str_],
    names: NDArray[np.str_],
    values: Mapping[str, NDArray[np.float64]],
    *,
    sparse: bool,
) -> dict[str, Any]:
    """Codes, names and values by level."""
    length = np.char.str_len(codes)
    length = np.where(length == _GEOCODE, _GEOCODE - 1, length)
    wrong = ~np.isin(length, list(_LEVELS)) | ~((codes == "") | np.char.isdigit(codes))
    if wrong.any():
        raise DataError(
            f"{file}: {int(wrong.sum()):,} codes of areas are not GEOIDs of 2, 5, 7, 10, 11, 12 or 15 digits, such as {codes[wrong][0]}; fix: write the codes as text with "
            "leading zeros, which spreadsheets drop"
        )
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
        columns = {name: column for name, column in columns.items() if sparse or not np.isnan(column).all()}
        levels[_LEVELS[digits]] = (own[order].astype(f"U{_GEOCODE}"), names[rows][order], columns)
    return levels


def _numbers(file: PackedFile, name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        texts = texts_of(column)
        column = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        faults = number_faults(column)
        if faults:
            raise DataError(
                f"{file}, {name}: {'; '.join(faults)}; allowed: numbers; fix: correct these cells"
            )
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def table_rows(path: Path, file_column: str | None) -> pa.Table:
    """All rows of the tables of a file or folder, of any columns; a further column names their file, where that is requested."""
    places = _tables_of(path)
    if not places:
        raise StorageError(
            f"{path}: the folder holds no CSV or Parquet file; name a file or a folder of tables"
        )
    tables = [read_table(one, "the table") for one in places]
    if file_column is not None:
        tables = [
            table
            if file_column in table.column_names
            else table.append_column(
                file_column, pa.array([path_of_table.stem] * table.num_rows, pa.string())
            )
            for path_of_table, table in zip(places, tables, strict=True)
        ]
    try:
        return pa.concat_tables(_decoded(table) for table in tables)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataError(f"{path}: tables of different columns; allowed: tables of the same columns") from None


def _tables_of(path: Path) -> list[Path]:
    """The file, or those of a folder; Parquet where a folder holds both, which it does for copies of one table."""
    if not path.is_dir():
        return [path]
    every = sorted(one for one in path.rglob("*") if one.is_file())
    by_ending = ([one for one in every if one.suffix.lower() == ending] for ending in (".parquet", ".csv"))
    return next((one for one in by_ending if one), [])


def _decoded(table: pa.Table) -> pa.Table:
    """Columns of codes as their values, which alone can be sorted and joined; nothing of the metadata, no lists or bytes."""
    table = table.select(
        [
            place
            for place, kind in enumerate(table.schema.types)
            if not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
        ]
    )
    types = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema
    ]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
