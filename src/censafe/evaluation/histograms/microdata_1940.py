"""Microdata detail files of the 1940 test: persons with the kinds of their units, added up to districts and cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.evaluation.histograms.delimited import (
    CellRows,
    added_rows,
    coded,
    file_header,
    number_batches,
    rows_of_parts,
)
from censafe.evaluation.histograms.files import BlockCells
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["is_district_microdata", "lacks_units", "read_district_microdata"]

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
    """Whether a file is pipe-delimited text with the columns of an enumeration district."""
    return path.is_file() and path.suffix != ".parquet" and set(_DISTRICT) <= set(file_header(path)[0])


def read_district_microdata(path: Path, schema: HistogramSchema) -> BlockCells:
    """Count the persons of a file by district and cell.

    The kind of quarters of a person is that of its unit (EUID) in the file of units in the same folder. Without such a file
    the kinds are not known, and every person is counted as one of a household; see :func:`lacks_units`.
    Lines that start with ``#`` before a header are passed over.

    Args:
        path: pipe-delimited text of persons, with a header.
        schema: hhgq 8, age18plus 2, hispanic 2, race 6.

    Raises:
        DataError: columns are missing, a code is outside its range, or the file of units lacks units of persons.
        StorageError: a file cannot be read.
    """
    if tuple(attribute.levels for attribute in schema.schema.attributes) != _SHAPE:
        raise DataError(
            f"{path.name}: microdata of 1940 cannot be counted in the schema {schema.name}; allowed: kinds of quarters 8, voting "
            "age 2, Hispanic origin 2, race 6"
        )
    beside = _units_beside(path)
    units, kinds = (np.zeros(0, np.int64),) * 2 if beside is None else _kinds_of_units(beside)
    parts = []
    _has(path, (*_DISTRICT, _UNIT, *_PERSON))
    for batch in number_batches(path, (*_DISTRICT, _UNIT, *_PERSON), _LAYOUT):
        code, unit = _keys(path, batch)
        kind = np.zeros(len(unit), np.int64) if beside is None else _kinds_of(path, unit, units, kinds)
        adult = coded(path, batch, "QAGE", 0, 116) >= _ADULT
        hispanic, race = coded(path, batch, "CENHISP", 1, 2), coded(path, batch, "CENRACE", 1, 6)
        cell = np.ravel_multi_index((kind, adult.astype(np.int64), hispanic, race), _SHAPE)
        parts.append(added_rows(CellRows(code, cell, np.ones(len(code), np.int64)), schema.schema.cells))
    return rows_of_parts(path, parts, schema.schema.cells)


def lacks_units(path: Path) -> bool:
    """Whether a file is microdata of 1940 without the file of units that tells the kinds of quarters.

    Raises:
        DataError: several files of units lie beside it.
    """
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
    others = [one for one in sorted(path.parent.glob("*.txt")) if one != path and is_district_microdata(one)]
    found = [one for one in others if {_UNIT, _KIND} <= set(file_header(one)[0])]
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
        keys.append(_keys(path, batch)[1])
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


def _keys(path: Path, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """District of every row, and its unit as one number."""
    code = np.zeros(batch.num_rows, np.int64)
    for name, width in _DISTRICT.items():
        code = code * 10**width + coded(path, batch, name, 0, 10**width)
    return code, code * _MOST_UNITS + coded(path, batch, _UNIT, 0, _MOST_UNITS)


def _has(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in file_header(path)[0]]
    if missing:
        raise DataError(f"{path.name}: no column {', '.join(missing)}; fix: name the file of persons of 1940")
