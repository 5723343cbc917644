"""CONFIDENTIAL or public. Counts of the lowest areas by cell, whatever form the file or folder of either side has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import GeocodeForm
from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import HistogramSchema
from censafe.model.topdown.pl94 import TABLE_ITEMS
from censafe.population.blocks.imputation import RULE, imputed_cells
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.results.districts import is_district_microdata, read_district_microdata
from censafe.results.forms import nearest_form
from censafe.results.histogram_files import BlockCells, is_unit_table, read_block_cells, read_unit_table
from censafe.results.microdata import MicrodataRows, shows_cells
from censafe.results.source import PublishedSource, recognize
from censafe.results.summary import AreaTables

_LARGEST: Final = 2**31 - 1
_OCCUPANCY: Final = 2
_TABLES: Final = {ProtectedUnit.PERSON: ("P1", "P2", "P3", "P4", "P5"), ProtectedUnit.HOUSEHOLD: ("H1",)}
_SHAPES: Final = {ProtectedUnit.PERSON: (8, 2, 2, 63), ProtectedUnit.HOUSEHOLD: (2,)}
_NEAR: Final = 0.25  # of the columns of microdata that a file may lack to be taken for damaged microdata


def published_form(path: Path) -> PublishedSource | None:
    """Microdata or tables of areas at a path; None where it holds something else, such as histograms."""
    if not path.exists():
        return None
    source = recognize(path, census_forms())
    if source is None and path.is_file() and not is_district_microdata(path):
        layouts = [one for one in microdata_layouts().values() if shows_cells(one)]
        near = nearest_form(path, layouts)
        if near is not None and near.share < _NEAR:
            raise DataError(f"{near.words}; fix: give all columns of the microdata")
    return None if source is None or source.is_run else source


def shows_schema(source: PublishedSource, schema: HistogramSchema) -> bool:
    """Whether microdata or tables show the cells of a schema."""
    if source.tables is None:
        return _microdata_rows(source, schema) is not None
    shown = schema.schema.shape == _SHAPES[schema.record]
    return shown and not _missing(source.tables, _TABLES[schema.record])


def imputation_notes(path: Path, schema: HistogramSchema) -> tuple[str, ...]:
    """What of the persons of a path is made up by a rule, because no table has it."""
    source = published_form(path) if schema.record is ProtectedUnit.PERSON else None
    return () if source is None or source.tables is None else (RULE,)


def block_rows(path: Path, form: GeocodeForm, schema: HistogramSchema) -> BlockCells:
    """Checked rows of microdata, tables of areas, files of histograms or, for occupied and vacant units, tables of units."""
    source = published_form(path)
    if source is not None:
        rows = (
            _of_microdata(source, schema)
            if source.tables is None
            else _of_tables(source, source.tables, schema)
        )
    elif is_district_microdata(path):
        rows = read_district_microdata(path, schema)
    elif not is_unit_table(path):
        rows = read_block_cells(path, form, schema.schema)
    elif schema.schema.cells == _OCCUPANCY:
        return read_unit_table(path, form)
    else:
        raise DataError(
            f"{path.name}: a table of units tells occupied and vacant ones only; allowed for the schema {schema.name}: a file of "
            "histograms"
        )
    if rows.schema not in ("", schema.name):
        raise DataError(
            f"{rows.name}: histograms of the schema {rows.schema}; allowed: {schema.name}, as of the truth"
        )
    wrong = int((rows.cell >= schema.schema.cells).sum())
    if wrong:
        raise DataError(
            f"{rows.name}, cell: {wrong} rows are outside the schema {schema.name}; allowed: 0 to {schema.schema.cells - 1}"
        )
    if bool((rows.count > _LARGEST).any()):
        raise DataError(f"{rows.name}, count: values do not fit 32 bits; allowed: at most {_LARGEST:,}")
    return rows


def _microdata_rows(source: PublishedSource, schema: HistogramSchema) -> MicrodataRows | None:
    """The rows that show the cells of a schema."""
    for rows in source.rows.values():
        schemas = (rows.layout.schema, *(() if rows.layout.beside is None else (rows.layout.beside.schema,)))
        if any(one.schema.shape == schema.schema.shape for one in schemas):
            return rows
    return None


def _of_microdata(source: PublishedSource, schema: HistogramSchema) -> BlockCells:
    """Persons or units by block and cell."""
    rows = _microdata_rows(source, schema)
    if rows is None:
        raise DataError(
            f"{source.path.name}: {source.words}, which cannot be counted in the schema {schema.name}; allowed: persons and units of the redistricting data and of the "
            "DHC; fix: compare the files of histograms"
        )
    geounits = rows.geounits
    if rows.layout.beside is None:
        level = rows.histograms(geounits)
    else:
        level = rows.joined_histograms(geounits)[rows.layout.schema.schema.shape != schema.schema.shape]
    counted = np.flatnonzero(np.diff(level.node_ptr))
    row = np.repeat(np.arange(len(counted)), np.diff(level.node_ptr)[counted])
    codes = level.geounits[counted].astype(np.int64)
    return BlockCells(
        source.path.name, "", codes, row, level.cell.astype(np.int64), level.count.astype(np.int64)
    )


def _missing(tables: AreaTables, names: tuple[str, ...]) -> list[str]:
    """What tables of the redistricting data lack, in words."""
    if tables.product != "pl94":
        return ["tables of the redistricting data"]
    return [one for name in names for one in tables.missing(name)]


def _of_tables(source: PublishedSource, tables: AreaTables, schema: HistogramSchema) -> BlockCells:
    """Persons or housing units of blocks from tables of the redistricting data, whoever wrote them.

    The joint of kind of quarters with age, origin and race is in no table; it is made up by the rule of the P.L. 94-171 reader.
    """
    path, needed = source.path, _TABLES[schema.record]
    if schema.schema.shape != _SHAPES[schema.record]:
        raise DataError(
            f"{path.name}: redistricting tables hold hhgq x votingage x hispanic x cenrace (8 x 2 x 2 x 63) and occupancy, which is "
            f"not the schema {schema.name}; fix: give a file of histograms"
        )
    missing = [*_missing(tables, needed), *(["numbers of blocks"] if "block" not in tables.levels else [])]
    if missing:
        some = f"{', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}"
        raise DataError(
            f"{path.name}: {source.words}, lacks {some}; allowed: every cell of {', '.join(needed)} of every block"
        )
    areas = tables.areas("block")
    order = np.argsort(areas.codes, kind="stable")
    values = {name: tables.values(name, areas, needed)[order] for name in needed}
    for name, own in values.items():
        empty, wrong = np.isnan(own).any(axis=1), ((own < 0) | (own != np.rint(own))).any(axis=1)
        if empty.any() or wrong.any():
            words = "empty cells" if empty.any() else "values that are not whole numbers from 0"
            number = int((empty if empty.any() else wrong).sum())
            raise DataError(
                f"{path.name}: {number:,} blocks have {words} in {name}; allowed: items 1 to {TABLE_ITEMS[name]} of every block"
            )
    codes = areas.codes[order].astype(np.int64)
    counts = {name: own.astype(np.int32) for name, own in values.items()}
    return BlockCells(path.name, "", codes, *_cells_of_tables(path, counts, schema))


def _cells_of_tables(
    path: Path, tables: dict[str, NDArray[np.int32]], schema: HistogramSchema
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Block, cell and count of every row, each of shape (rows,)."""
    if schema.record is ProtectedUnit.HOUSEHOLD:
        blocks = len(tables["H1"])
        counts = tables["H1"][:, [2, 1]].reshape(-1).astype(np.int64)
        return np.repeat(np.arange(blocks), 2), np.tile([0, 1], blocks), counts
    keys, counts, failed = imputed_cells(tables)
    negative = int((counts < 0).sum())
    if failed or negative:
        raise DataError(
            f"{path.name}: tables of {failed or negative} blocks do not fit each other; allowed: P4 within P2 and P3, both within P1, "
            "and group quarters of P5 that fit P1 and P3; fix: copy the file again"
        )
    return *np.divmod(keys, schema.schema.cells), counts
