"""Tables as frames and files: one row for each area and cell, or one row for each area."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import ConfigError, UsageError
from censafe.geography.identifiers import AreaNames, region_gisjoins
from censafe.model.cells.counting import AreaBlocks, tabulated
from censafe.model.cells.lines import CensusTable
from censafe.model.entries import nearest
from censafe.model.safe_text import WORKBOOK_OPTIONS, csv_table
from censafe.model.schema import Schema
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.intervals import CellIntervals, valued
from censafe.products.topdown.census_tables.linear import LinearIntervals
from censafe.products.topdown.census_tables.source import OFF_SPINE, Geography, TableSource
from censafe.publication.atomic import atomic_write
from censafe.publication.stamps import Stamp

FORMATS: Final = (".csv", ".parquet", ".xlsx")
_DECIMALS: Final = 4
_NAMED: Final = 12
_MOST_ROWS: Final = 1_048_575  # below the header of a sheet


def table_pieces(
    source: TableSource, table: CensusTable, geography: Geography, *, wide: bool, confidence: float = 0.9
) -> Iterator[pa.Table]:
    """A table of a run in pieces of some areas each.

    Args:
        wide: one row an area with a column for each cell, not one row for each area and cell.

    Returns:
        Tables with the codes and names of the areas; ``table``, ``variable``, ``label`` and ``value``, or one column for each variable. With
        replicates also ``low``, ``high``, ``bias`` and ``rmse``, with linear estimates ``low``, ``high``, ``estimate`` and ``sd``, or two more columns for each variable, ``_low`` and ``_high``.
    """
    for areas, values, intervals in valued(source, table, geography, confidence):
        identifiers = _identifiers(source, geography, geography.areas.names[areas])
        yield _stamped((_wide if wide else _long)(table, identifiers, values, intervals), source.stamp)


def level_pieces(
    table: CensusTable, schema: Schema, level: SparseLevel, areas: AreaNames, stamp: Stamp | None
) -> Iterator[pa.Table]:
    """A table for all geounits of a level, one row each, in pieces."""
    codes = np.asarray(level.geounits)
    for piece, values in tabulated(table, schema, level, AreaBlocks(codes, np.arange(len(codes)))):
        identifiers = {"geocode": codes[piece], **areas.codes_and_names(codes[piece])}
        yield _stamped(_wide(table, identifiers, values, None), stamp)


def _stamped(piece: pa.Table, stamp: Stamp | None) -> pa.Table:
    words = {"private": "true" if stamp is None else "false", **({} if stamp is None else {"stamp": stamp})}
    return piece.replace_schema_metadata(words)


def _identifiers(
    source: TableSource, geography: Geography, codes: NDArray[np.str_]
) -> dict[str, NDArray[np.str_]]:
    """What names areas: GEOID, GISJOIN and NAME in census geography, otherwise their code."""
    if geography.listed:
        return {geography.name: codes}
    if geography.name in OFF_SPINE:
        joined = region_gisjoins(geography.name.upper(), codes)
        return {"GEOID": codes, "GISJOIN": joined, "NAME": source.names.names_by_code(codes)}
    identifiers = source.names.codes_and_names(codes)
    return identifiers if "GEOID" in identifiers else {"geocode": codes, **identifiers}


def _values(table: CensusTable, values: NDArray[np.float64]) -> pa.Array:
    if table.median:
        return pa.array(values.reshape(-1), from_pandas=True)
    return pa.array(np.rint(values).astype(np.int64).reshape(-1))


def _ends(
    table: CensusTable, intervals: CellIntervals | LinearIntervals, ends: NDArray[np.float64]
) -> pa.Array:
    """Ends of intervals: whole numbers, but for those of linear estimates."""
    if isinstance(intervals, LinearIntervals):
        return _rounded(ends)
    return _values(table, ends)


def _rounded(numbers: NDArray[np.float64]) -> pa.Array:
    """To four decimals, which is more than a count needs."""
    return pa.array(np.round(numbers.reshape(-1), _DECIMALS) + 0.0, from_pandas=True)


def _rounded_table(piece: pa.Table) -> pa.Table:
    """The same with numbers that are not whole, which are medians and linear estimates, to four decimals."""
    for place, column in enumerate(piece.columns):
        if pa.types.is_floating(column.type):
            piece = piece.set_column(place, piece.field(place), pc.round(column, _DECIMALS))
    return piece


def _wide(
    table: CensusTable,
    identifiers: dict[str, NDArray[np.str_]],
    values: NDArray[np.float64],
    intervals: CellIntervals | LinearIntervals | None,
) -> pa.Table:
    columns: dict[str, Any] = {
        name: pa.array(texts.tolist(), pa.string()) for name, texts in identifiers.items()
    }
    for number, variable in enumerate(table.variables):
        columns[variable] = _values(table, values[:, number])
        if intervals is not None:
            columns[f"{variable}_low"] = _ends(table, intervals, intervals.low[:, number])
            columns[f"{variable}_high"] = _ends(table, intervals, intervals.high[:, number])
    return pa.table(columns)


def _long(
    table: CensusTable,
    identifiers: dict[str, NDArray[np.str_]],
    values: NDArray[np.float64],
    intervals: CellIntervals | LinearIntervals | None,
) -> pa.Table:
    areas, cells = values.shape
    columns: dict[str, Any] = {}
    for name, texts in identifiers.items():
        index = np.repeat(np.arange(areas, dtype=np.int32), cells)
        columns[name] = pa.DictionaryArray.from_arrays(index, pa.array(texts.tolist(), pa.string())).cast(
            pa.string()
        )
    columns["table"] = pa.array([table.name] * (areas * cells), pa.string())
    for name, words in (("variable", table.variables), ("label", tuple(full_labels(table)))):
        index = np.tile(np.arange(cells, dtype=np.int32), areas)
        columns[name] = pa.DictionaryArray.from_arrays(index, pa.array(words, pa.string())).cast(pa.string())
    columns["value"] = _values(table, values)
    if intervals is not None:
        columns |= {
            "low": _ends(table, intervals, intervals.low),
            "high": _ends(table, intervals, intervals.high),
        }
        for name, numbers in intervals.statistics.items():
            columns[name] = _rounded(numbers)
    return pa.table(columns)


def full_labels(table: CensusTable) -> Iterator[str]:
    """Labels with those of the lines above, such as ``Total!!Male!!Under 5 years``, as the Bureau's API writes them."""
    above: list[str] = []
    for line in table.lines:
        above[line.depth :] = [line.label.rstrip(":")]
        yield "!!".join(above)


def line_number(table: CensusTable, name: str) -> int:
    """Place of a line of a table by its label, its label with those above it, or its variable; of the total, or the only line, without a name.

    Example:
        >>> from censafe.products.topdown.census_tables.definitions import census_tables
        >>> table = census_tables("pl94")["H1"]
        >>> [line_number(table, name) for name in ("", "occupied", "Total!!Vacant", "H1_003N")]
        [0, 1, 2, 2]
    """
    labels = [line.label.rstrip(":") for line in table.lines]
    full = list(full_labels(table))
    if not name:
        if len(labels) == 1 or (table.lines[0].depth == 0 and all(line.depth for line in table.lines[1:])):
            return 0
        places = []
    else:
        forms = zip(labels, full, table.variables, strict=True)
        places = [place for place, own in enumerate(forms) if name.casefold() in map(str.casefold, own)]
    if len(places) == 1:
        return places[0]
    what = (
        f"{len(places)} lines are called {name!r}"
        if places
        else f"there is no line {name!r}"
        if name
        else "it has no total"
    )
    some = ", ".join(full[:_NAMED]) + (", ..." if len(full) > _NAMED else "")
    raise ConfigError(
        f"table {table.name}: {what}.{nearest(name, full) if name else ''} Allowed as `line`: {some}"
    )


def write_pieces(path: Path, pieces: Iterator[pa.Table]) -> int:
    """Write pieces of one form to a file, which appears complete or not at all; text and sheets have four decimals at most."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{path.name}: a file of tables ends in {', '.join(FORMATS)}")
    if path.suffix == ".xlsx":
        return _write_sheet(path, list(pieces))
    rows = 0
    first = next(pieces)
    with atomic_write(path) as temporary:
        opened = (
            pq.ParquetWriter(temporary, first.schema, compression="zstd")
            if path.suffix == ".parquet"
            else pa_csv.CSVWriter(str(temporary), first.schema)
        )
        with opened as writer:
            for piece in itertools.chain([first], pieces):
                writer.write_table(piece if path.suffix == ".parquet" else csv_table(_rounded_table(piece)))
                rows += piece.num_rows
    return rows


def _write_sheet(path: Path, pieces: Sequence[pa.Table]) -> int:
    import xlsxwriter

    table = _rounded_table(pa.concat_tables(pieces))
    if table.num_rows > _MOST_ROWS:
        raise UsageError(
            f"{path.name}: {table.num_rows:,} rows do not fit into a sheet of {_MOST_ROWS:,}; fix: one row an area, fewer tables or areas, or a .parquet file"
        )
    with atomic_write(path) as temporary:
        book = xlsxwriter.Workbook(str(temporary), WORKBOOK_OPTIONS)
        sheet = book.add_worksheet("tables")
        for column, name in enumerate(table.column_names):
            sheet.write_row(0, column, [name])
            sheet.write_column(1, column, table.column(name).to_pylist())
        sheet.freeze_panes(1, 0)
        book.close()
    return table.num_rows
