"""Block histograms from an IPUMS extract of the 1940 census: fixed width, every household followed by its persons."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spines.tree import build_spine
from censafe.model.folders import matching_files
from censafe.population.blocks.layout import (
    BlockData,
    HistogramLayout,
    facility_findings,
    histograms_of,
    no_persons,
)
from censafe.population.blocks.lookup import count_repeated
from censafe.population.files.fixed_width import RECORD, FixedFile, Numbers, fixed_layout
from censafe.population.findings import Finding, merge_findings, raise_if_fatal, stated

_CELLS: Final = 192
_UNITS: Final = 9  # eight kinds, then vacant housing units
_ENTRIES: Final = _CELLS + _UNITS
_MOST_SERIAL: Final = 10**8
_HOUSEHOLD, _PERSON = fixed_layout("ipums_household"), fixed_layout("ipums_person")
_HOUSEHOLD_FIELDS: Final = ("SERIAL", "STATEFIP", "COUNTY", "ENUMDIST", "GQ", "GQTYPE", "NUMPREC")
_PERSON_FIELDS: Final = ("AGE", "RACE", "HISPAN")
_FIELDS: Final = {name: _HOUSEHOLD.fields[name] for name in _HOUSEHOLD_FIELDS} | {
    name: _PERSON.fields[name] for name in _PERSON_FIELDS
}
"""Of both kinds of record, in which SERIAL stands in the same place."""
_VACANT_UNIT, _NOT_REPORTED = 8, 9
_SHAPE: Final = (8, 2, 2, 6)
_RULES: Final = (
    "RECTYPE", "SERIAL", "duplicate", "geocode", "GQ", "GQTYPE", "orphan", "vacant", "AGE", "RACE", "HISPAN",
)  # fmt: skip
_Ints = NDArray[np.int64]


def find_ipums(folder: Path) -> tuple[Path, ...]:
    """The extracts in a folder: files whose names end in .dat or .dat.gz, in the order of their names."""
    return matching_files(folder, "*.dat", "*.dat.gz")


def read_ipums(paths: tuple[Path, ...], layout: HistogramLayout, *, hispanic9: bool = False) -> BlockData:
    """Read the persons and units of all enumeration districts.

    Districts in which all units are vacant stay, with nobody. A file may be gzip-compressed; several files must not share
    household numbers.

    Source:
        uscensusbureau/census2020-das-e2e, reader of the 1940 extract.
    """
    if layout.schema is None or layout.schema.shape != _SHAPE or len(layout.unit_columns) != _UNITS:
        raise DataError(
            f"{paths[0].name}: an extract of 1940 holds hhgq x age18plus x hispanic x race (8 x 2 x 2 x 6) and nine kinds of unit, "
            "which is not the schema of this configuration; fix: use the configuration e2e-1940"
        )
    problems: list[Finding] = []
    seen = np.zeros(_MOST_SERIAL // 64 + 1, np.uint64)
    entries = [entry for path in paths for entry in _read_file(path, seen, problems, hispanic9=hispanic9)]
    raise_if_fatal(merge_findings(problems), "extract of 1940")
    if not entries:
        raise DataError(f"{paths[0].name}: there are no records; allowed: one household record or more")
    keys, counts = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    districts, district = np.unique(keys // _ENTRIES, return_inverse=True)
    spine = build_spine(districts, layout.rules)
    cell = keys % _ENTRIES
    of_unit = cell >= _CELLS
    facilities = np.zeros((len(districts), _UNITS), np.int32)
    np.add.at(facilities, (district[of_unit], cell[of_unit] - _CELLS), counts[of_unit])
    persons = histograms_of(spine, (district * _CELLS + cell)[~of_unit], counts[~of_unit], _CELLS)[0]
    name = paths[0].name
    problems += no_persons(name, int(persons.count.sum(dtype=np.int64)))
    problems += facility_findings(persons, facilities, layout, (name, name))
    raise_if_fatal(merge_findings(problems), "extract of 1940")
    return BlockData(spine, persons, facilities, None, (), paths, findings=merge_findings(problems))


class _Homes(NamedTuple):
    """One entry a household."""

    serial: Numbers  # -1 where it has none
    district: _Ints  # geocode of ten digits
    kind: Numbers
    vacant: NDArray[np.bool_]
    expected: Numbers  # persons by NUMPREC; -1 in group quarters, and where it has none
    met: _Ints


_NO_HOME: Final = _Homes(
    np.full(1, -1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.bool_), np.full(1, -1, np.int32), np.zeros(1, np.int64)
)  # fmt: skip


def _read_file(
    path: Path, seen: NDArray[np.uint64], problems: list[Finding], *, hispanic9: bool
) -> list[tuple[_Ints, _Ints]]:
    """Keys (district times entries, plus the cell of a person or the kind of a unit) and counts of the pieces of a file.

    Args:
        seen: a bit for each number of a household of this file and those before.
    """
    file, bad, others, last = FixedFile(path, _HOUSEHOLD.width), dict.fromkeys(_RULES, 0), 0, _NO_HOME
    entries = []
    for numbers in file.pieces(_FIELDS, lambda numbers, text: numbers, min(4, os.cpu_count() or 1)):
        homes = _households(numbers, seen, bad)
        homes = _Homes._make(map(np.concatenate, zip(*[last, homes], strict=True)))
        entries.append(_count_piece(numbers, homes, bad, hispanic9=hispanic9))
        others += int(np.count_nonzero((homes.expected >= 0)[:-1] & (homes.expected != homes.met)[:-1]))
        last = _Homes._make(column[-1:] for column in homes)
    short = file.complete and bool(last.met[0] < last.expected[0])
    problems += file.findings({**_HOUSEHOLD.words, **_PERSON.words}, bad)
    problems += stated("ipums.truncated", path.name, int(short))
    problems += stated("ipums.persons", path.name, others)
    return entries


def _households(numbers: dict[str, Numbers], seen: NDArray[np.uint64], bad: dict[str, int]) -> _Homes:
    """The households of a piece of a file, nobody met yet."""
    here = numbers[RECORD] == ord(_HOUSEHOLD.record)
    serial, state, county, district, gq, gqtype, persons = (numbers[name][here] for name in _HOUSEHOLD_FIELDS)
    kind = _FIELDS["GQTYPE"].levels_at(gqtype).astype(np.int32)
    nowhere = (state < 0) | (county < 0) | (district < 0)
    code = (state * np.int64(10**4) + county) * 10**4 + district
    bad["SERIAL"] += int(np.count_nonzero(serial < 0))
    bad["duplicate"] += count_repeated(seen, serial)
    bad["geocode"] += int(np.count_nonzero(nowhere))
    bad["GQ"] += int(np.count_nonzero(gq < 0))
    bad["GQTYPE"] += int(np.count_nonzero(kind < 0))
    kind = np.maximum(kind, 0)
    return _Homes(
        serial, np.where(nowhere, 0, code), kind, (gq == 0) & (kind == 0), np.where(kind == 0, persons, -1), np.zeros(len(serial), np.int64)
    )  # fmt: skip


def _count_piece(
    numbers: dict[str, Numbers], homes: _Homes, bad: dict[str, int], *, hispanic9: bool
) -> tuple[_Ints, _Ints]:
    """Keys and counts of the units and the persons of a piece of a file.

    Args:
        homes: of the piece, behind the last one before it; takes how many persons were met.
    """
    record = numbers[RECORD]
    here, person = record == ord(_HOUSEHOLD.record), record == ord(_PERSON.record)
    bad["RECTYPE"] += int(np.count_nonzero(~here & ~person))
    home = np.cumsum(here)[person]
    serial, age, race, origin = (numbers[name][person] for name in ("SERIAL", *_PERSON_FIELDS))
    orphan = (homes.serial[home] < 0) | (serial != homes.serial[home])
    counted = ~orphan & ~homes.vacant[home]
    bad["orphan"] += int(np.count_nonzero(orphan))
    bad["vacant"] += int(np.count_nonzero(~orphan & ~counted))
    home, age, race, origin = home[counted], age[counted], race[counted], origin[counted]
    other_race = _FIELDS["RACE"].levels_at(race) < 0
    bad["AGE"] += int(np.count_nonzero(age < 0))
    bad["RACE"] += int(np.count_nonzero(other_race))
    bad["HISPAN"] += int(np.count_nonzero(_FIELDS["HISPAN"].levels_at(origin) < 0))
    homes.met[:] += np.bincount(home, minlength=len(homes.met))
    hispanic = np.where(origin == _NOT_REPORTED, hispanic9, origin > 0)
    cell = ((homes.kind[home] * 2 + (age >= 18)) * 2 + hispanic) * 6 + np.where(other_race, 0, race - 1)
    unit = _CELLS + np.where(homes.vacant, _VACANT_UNIT, homes.kind)[1:]
    districts, place = np.unique(homes.district, return_inverse=True)
    local = np.concatenate([place[home] * _ENTRIES + cell, place[1:] * _ENTRIES + unit])
    counts = np.bincount(local)
    filled = np.flatnonzero(counts)
    return districts[filled // _ENTRIES] * _ENTRIES + filled % _ENTRIES, counts[filled]
