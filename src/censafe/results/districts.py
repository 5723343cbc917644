"""Microdata detail files of the 1940 test, read in pieces and added up to enumeration districts and cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CensafeError, DataError
from censafe.geography.files import STORED, PackedFile, packed_files
from censafe.model.topdown.histograms import HistogramSchema
from censafe.results.histogram_files import BlockCells
from censafe.results.microdata import RowCounter, coded, number_batches, text_header

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
    return path.is_file() and path.suffix.lower() not in STORED and set(_DISTRICT) <= set(_columns(path))


def _columns(path: Path) -> list[str]:
    """Names of the columns of a text file; none where it is no text."""
    try:
        return text_header(_file(path)).names
    except CensafeError:
        return []


def _file(path: Path) -> PackedFile:
    """The one file that a path stands for."""
    files = packed_files(path)
    if len(files) != 1:
        raise DataError(
            f"{path.name}: the archive holds {len(files)} files; fix: unpack it and give the file"
        )
    return files[0]


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
    unit_file = _unit_file(path)
    units, kinds = (np.zeros(0, np.int64),) * 2 if unit_file is None else _kinds_of_units(unit_file)
    counter = RowCounter(schema.schema.cells)
    columns = (*_DISTRICT, _UNIT, *_PERSON)
    missing = [name for name in columns if name not in _columns(path)]
    if missing:
        raise DataError(f"{path.name}: no column {', '.join(missing)}; fix: name the file of persons of 1940")
    for batch in number_batches(_file(path), columns, _LAYOUT):
        code, unit = _keys_of_microdata_1940(path, batch)
        kind = np.zeros(len(unit), np.int64) if unit_file is None else _kinds_of(path, unit, units, kinds)
        adult = coded(path, batch, "QAGE", 0, 116) >= _ADULT
        hispanic, race = coded(path, batch, "CENHISP", 1, 2), coded(path, batch, "CENRACE", 1, 6)
        counter.add(code, np.ravel_multi_index((kind, adult.astype(np.int64), hispanic, race), _SHAPE))
    codes, keys, counts = counter.finished()
    return BlockCells(path.name, "", codes, *np.divmod(keys, schema.schema.cells), counts)


def lacks_units(path: Path) -> bool:
    """Whether a file is microdata of 1940 without the file of units that tells the kinds of quarters."""
    return is_district_microdata(path) and _unit_file(path) is None


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
    of_person: NDArray[np.int64] = kinds[at]
    return of_person


def _unit_file(path: Path) -> Path | None:
    """The file of units in the folder of a file of persons; None where it lies alone."""
    others = [one for one in sorted(path.parent.iterdir()) if one != path and is_district_microdata(one)]
    unit_files = [one for one in others if {_UNIT, _KIND} <= set(_columns(one))]
    if others and len(unit_files) != 1:
        raise DataError(
            f"{path.name}: {len(unit_files)} files of units (columns {_UNIT} and {_KIND}) in its folder; allowed: one, which says the "
            "kinds of quarters of the persons, or no other file of districts"
        )
    return unit_files[0] if unit_files else None


def _kinds_of_units(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys of all units, rising, and their kinds of quarters."""
    keys, kinds = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for batch in number_batches(_file(path), (*_DISTRICT, _UNIT, _KIND), _LAYOUT):
        kind = _KIND_OF_CODE[coded(path, batch, _KIND, 0, len(_KIND_OF_CODE))]
        wrong = int((kind < 0).sum())
        if wrong:
            raise DataError(
                f"{path.name}, {_KIND}: {wrong} codes are out of range; allowed: 0, 2 to 4, 6 to 9"
            )
        keys.append(_keys_of_microdata_1940(path, batch)[1])
        kinds.append(kind)
    unit, kind = np.concatenate(keys), np.concatenate(kinds)
    if bool((np.diff(unit) <= 0).any()):
        order = np.argsort(unit, kind="stable")
        unit, kind = unit[order], kind[order]
    repeated = int((np.diff(unit) == 0).sum())
    if repeated:
        raise DataError(
            f"{path.name}, {_UNIT}: {repeated} units are given twice; allowed: once in a district"
        )
    return unit, kind


def _keys_of_microdata_1940(path: Path, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """District of every row, and its unit as one number."""
    code = np.zeros(batch.num_rows, np.int64)
    for name, width in _DISTRICT.items():
        code = code * 10**width + coded(path, batch, name, 0, 10**width)
    return code, code * _MOST_UNITS + coded(path, batch, _UNIT, 0, _MOST_UNITS)
