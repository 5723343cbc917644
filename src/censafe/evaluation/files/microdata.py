"""Microdata detail files of the redistricting data and of the 1940 test, read in pieces and added up to geocodes and cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.evaluation.files.histograms import BlockCells
from censafe.geography.identifiers import require_known_blocks
from censafe.model.topdown.histograms import HistogramSchema
from censafe.publication.microdata.reading import coded, file_header, microdata_files, number_batches


class RecordRows(NamedTuple):
    """Geocode, cell and number of records of every row."""

    code: NDArray[np.int64]
    cell: NDArray[np.int64]
    number: NDArray[np.int64]


def added_rows(rows: RecordRows, cells: int) -> RecordRows:
    """One row a geocode and cell, rising."""
    codes, block = np.unique(rows.code, return_inverse=True)
    # a geocode of 16 digits times the number of cells would not fit 64 bits; the position of a block does
    keys, place = np.unique(block * cells + rows.cell, return_inverse=True)
    count = np.zeros(len(keys), np.int64)
    np.add.at(count, place, rows.number)
    return RecordRows(codes[keys // cells], keys % cells, count)


def rows_of_parts(path: Path, parts: Sequence[RecordRows], cells: int) -> BlockCells:
    """Added-up pieces of a file as one."""
    empty = RecordRows(*(np.zeros(0, np.int64) for _ in range(3)))
    whole = added_rows(RecordRows(*(np.concatenate(one) for one in zip(empty, *parts, strict=True))), cells)
    codes, row = np.unique(whole.code, return_inverse=True)
    return BlockCells(path.name, "", codes, row, whole.cell, whole.number)


_BLOCK: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}


class _Column(NamedTuple):
    """A column of the file that says the level of an attribute."""

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
    """Whether a file is text with the columns of a block."""
    return path.is_file() and path.suffix.lower() != ".parquet" and set(_BLOCK) <= set(file_header(path))


def read_microdata(path: Path, schema: HistogramSchema) -> BlockCells:
    """Count the rows of a file of persons or units by block and cell.

    Lines that start with ``#`` before the header are passed over, group quarters in a file of units as well. Columns beyond
    those of the block and the cell may be there or not.
    """
    columns = _columns(path, file_header(path), schema)
    wanted = [*_BLOCK, *(column.name for column in columns)]
    cells = schema.schema.cells
    parts = []
    for batch in number_batches(path, wanted, "the redistricting microdata"):
        code, cell = _keys(path, batch, columns)
        parts.append(added_rows(RecordRows(code, cell, np.ones(len(code), np.int64)), cells))
    found = rows_of_parts(path, parts, cells)
    require_known_blocks(
        f"{path.name}: {', '.join(_BLOCK)}", found.codes, np.zeros(len(found.codes), np.bool_)
    )
    return found


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
    valid = cell >= 0
    return code[valid], cell[valid]


_DISTRICT: Final = {"TABBLKST": 2, "TABBLKCOU": 4, "ENUMDIST": 4}
_UNIT: Final = "EUID"
_KIND: Final = "GQTYPE"
_PERSON: Final = ("QAGE", "CENHISP", "CENRACE")
_SHAPE: Final = (8, 2, 2, 6)
_KIND_OF_CODE: Final = np.array([0, -1, 1, 2, 3, -1, 4, 5, 6, 7])  # of GQTYPE 0 to 9
_MOST_UNITS: Final = 10**8
_ADULT: Final = 18
_LAYOUT: Final = "the microdata of 1940"


def is_district_microdata(path: Path) -> bool:
    """Whether a file is text with the columns of an enumeration district."""
    return path.is_file() and path.suffix.lower() != ".parquet" and set(_DISTRICT) <= set(file_header(path))


def read_district_microdata(path: Path, schema: HistogramSchema) -> BlockCells:
    """Count the persons of a file by district and cell.

    The kind of quarters of a person is that of its unit (EUID) in the file of units in the same folder. Without such a file
    the kinds are not known, and every person is counted as one of a household; see :func:`lacks_units`.
    Lines that start with ``#`` before a header are passed over.
    """
    if tuple(attribute.levels for attribute in schema.schema.attributes) != _SHAPE:
        raise DataError(
            f"{path.name}: microdata of 1940 cannot be counted in the schema {schema.name}; allowed: kinds of quarters 8, voting "
            "age 2, Hispanic origin 2, race 6"
        )
    beside = _units_beside(path)
    units, kinds = (np.zeros(0, np.int64),) * 2 if beside is None else _kinds_of_units(beside)
    parts = []
    columns = (*_DISTRICT, _UNIT, *_PERSON)
    missing = [name for name in columns if name not in file_header(path)]
    if missing:
        raise DataError(f"{path.name}: no column {', '.join(missing)}; fix: name the file of persons of 1940")
    for batch in number_batches(path, columns, _LAYOUT):
        code, unit = _keys_of_microdata_1940(path, batch)
        kind = np.zeros(len(unit), np.int64) if beside is None else _kinds_of(path, unit, units, kinds)
        adult = coded(path, batch, "QAGE", 0, 116) >= _ADULT
        hispanic, race = coded(path, batch, "CENHISP", 1, 2), coded(path, batch, "CENRACE", 1, 6)
        cell = np.ravel_multi_index((kind, adult.astype(np.int64), hispanic, race), _SHAPE)
        parts.append(added_rows(RecordRows(code, cell, np.ones(len(code), np.int64)), schema.schema.cells))
    return rows_of_parts(path, parts, schema.schema.cells)


def lacks_units(path: Path) -> bool:
    """Whether a file is microdata of 1940 without the file of units that tells the kinds of quarters."""
    return is_district_microdata(path) and _units_beside(path) is None


def _kinds_of(
    path: Path, unit: NDArray[np.int64], units: NDArray[np.int64], kinds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Kind of quarters of every person."""
    at = np.minimum(np.searchsorted(units, unit), max(len(units) - 1, 0))
    missing = len(unit) if not len(units) else int((units[at] != unit).sum())
    if missing:
        raise DataError(
            f"{path.name}, {_UNIT}: {missing} persons are in units that the file of units does not have; fix: compare files "
            "of one publication"
        )
    found: NDArray[np.int64] = kinds[at]
    return found


def _units_beside(path: Path) -> Path | None:
    """The file of units in the folder of a file of persons; None where it lies alone."""
    others = [one for one in microdata_files(path.parent) if one != path and is_district_microdata(one)]
    found = [one for one in others if {_UNIT, _KIND} <= set(file_header(one))]
    if others and len(found) != 1:
        raise DataError(
            f"{path.name}: {len(found)} files of units (columns {_UNIT} and {_KIND}) in its folder; allowed: one, which says the "
            "kinds of quarters of the persons, or no other file of districts"
        )
    return found[0] if found else None


def _kinds_of_units(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys of all units, rising, and their kinds of quarters."""
    keys, kinds = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for batch in number_batches(path, (*_DISTRICT, _UNIT, _KIND), _LAYOUT):
        kind = _KIND_OF_CODE[coded(path, batch, _KIND, 0, len(_KIND_OF_CODE))]
        wrong = int((kind < 0).sum())
        if wrong:
            raise DataError(
                f"{path.name}, {_KIND}: {wrong} codes are out of range; allowed: 0, 2 to 4, 6 to 9"
            )
        keys.append(_keys_of_microdata_1940(path, batch)[1])
        kinds.append(kind)
    whole, kind = np.concatenate(keys), np.concatenate(kinds)
    if bool((np.diff(whole) <= 0).any()):
        order = np.argsort(whole, kind="stable")
        whole, kind = whole[order], kind[order]
    repeated = int((np.diff(whole) == 0).sum())
    if repeated:
        raise DataError(
            f"{path.name}, {_UNIT}: {repeated} units are given twice; allowed: once in a district"
        )
    return whole, kind


def _keys_of_microdata_1940(path: Path, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """District of every row, and its unit as one number."""
    code = np.zeros(batch.num_rows, np.int64)
    for name, width in _DISTRICT.items():
        code = code * 10**width + coded(path, batch, name, 0, 10**width)
    return code, code * _MOST_UNITS + coded(path, batch, _UNIT, 0, _MOST_UNITS)
