"""Block histograms from an IPUMS extract of the 1940 census: fixed width, every household followed by its persons."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spines.tree import build_spine
from censafe.model.compiled import compiled
from censafe.model.folders import matching_files
from censafe.population.blocks.cef_kernels import mark, slot_of
from censafe.population.blocks.layout import (
    BlockData,
    HistogramLayout,
    facility_findings,
    no_persons,
    table_histograms,
)
from censafe.population.files.fixed_width import FixedFile, field_words, fixed_layout, number_at, outside
from censafe.population.files.lines import next_line
from censafe.population.findings import Finding, finding, merge_findings, raise_if_fatal

DISTRICT_CELLS = 192
UNITS = 9  # eight kinds, then vacant housing units
MOST_SERIAL = 10**8
_HOUSEHOLD_LAYOUT, _PERSON_LAYOUT = fixed_layout("ipums_household"), fixed_layout("ipums_person")
KIND_OF_GQTYPE = _HOUSEHOLD_LAYOUT.fields["GQTYPE"].level_of
"""Level of hhgq by code; -1 for codes that do not occur."""

_HOME, _ONE = _HOUSEHOLD_LAYOUT.fields, _PERSON_LAYOUT.fields
_SERIAL_AT, _STATE_AT, _COUNTY_AT, _DISTRICT_AT, _GQ_AT, _GQTYPE_AT, _NUMPREC_AT = (
    _HOME[name].place for name in ("SERIAL", "STATEFIP", "COUNTY", "ENUMDIST", "GQ", "GQTYPE", "NUMPREC")
)
_P_SERIAL_AT, _AGE_AT, _RACE_AT, _HISPAN_AT = (
    _ONE[name].place for name in ("SERIAL", "AGE", "RACE", "HISPAN")
)
_RACES, _ORIGINS = _ONE["RACE"].level_of, _ONE["HISPAN"].level_of
_HOUSEHOLD_RECORD, _PERSON_RECORD = ord(_HOUSEHOLD_LAYOUT.record), ord(_PERSON_LAYOUT.record)
WIDTH = _HOUSEHOLD_LAYOUT.width
RULES = (
    "length", "RECTYPE", "SERIAL", "duplicate", "geocode", "GQ", "GQTYPE", "orphan", "vacant", "AGE", "RACE",
    "HISPAN", "NUMPREC",
)  # fmt: skip
(
    _LENGTH,
    _RECTYPE,
    _SERIAL,
    _DUPLICATE,
    _GEOCODE,
    _GQ,
    _GQTYPE,
    _ORPHAN,
    _VACANT,
    _AGE,
    _RACE,
    _HISPAN,
    _NUMPREC,
) = range(len(RULES))
_VACANT_UNIT, _NOT_REPORTED = 8, 9
# what is remembered between lines: of the household, and how many districts there are
_HOUSEHOLD, _DISTRICT, _KIND, _IS_VACANT, _EXPECTED, _MET, _DISTRICT_COUNT = range(7)
_Ints = NDArray[np.int64]
_kernel = compiled()


class Districts(NamedTuple):
    """Counts by district; room for as many districts as `codes` is long."""

    slots: NDArray[np.int32]  # (4 * room,) open addressing: district, or -1
    codes: _Ints  # (room,) geocode of ten digits
    cells: NDArray[np.int32]  # (room, 192)
    units: NDArray[np.int32]  # (room, 9)


def new_place() -> _Ints:
    """What is remembered between lines, before the first one."""
    place = np.zeros(7, np.int64)
    place[_HOUSEHOLD] = -1
    return place


def empty_districts(room: int) -> Districts:
    """Room for districts, a power of two."""
    return Districts(
        np.full(4 * room, -1, np.int32),
        np.zeros(room, np.int64),
        np.zeros((room, DISTRICT_CELLS), np.int32),
        np.zeros((room, UNITS), np.int32),
    )


@_kernel
def _district(districts: Districts, place: _Ints, code: int) -> int:
    """Position of a district, a new one where it is not there yet."""
    mask = len(districts.slots) - 1
    slot = slot_of(code, mask)
    while districts.slots[slot] >= 0:
        if districts.codes[districts.slots[slot]] == code:
            return districts.slots[slot]
        slot = (slot + 1) & mask
    new = place[_DISTRICT_COUNT]
    districts.slots[slot] = new
    districts.codes[new] = code
    place[_DISTRICT_COUNT] = new + 1
    return new


@_kernel
def fill_slots(slots: NDArray[np.int32], codes: _Ints) -> None:
    """Enter all districts into an empty table."""
    mask = len(slots) - 1
    for district in range(len(codes)):
        slot = slot_of(codes[district], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = district


@_kernel
def _household(
    text: NDArray[np.uint8],
    at: int,
    kinds: NDArray[np.int8],
    seen: NDArray[np.uint64],
    districts: Districts,
    place: _Ints,
    bad: _Ints,
) -> None:
    serial = number_at(text, at, _SERIAL_AT)
    place[_HOUSEHOLD] = serial
    if serial < 0:
        bad[_SERIAL] += 1
    elif mark(seen, serial):
        bad[_DUPLICATE] += 1
    state, county, district = (
        number_at(text, at, _STATE_AT),
        number_at(text, at, _COUNTY_AT),
        number_at(text, at, _DISTRICT_AT),
    )
    gq, gqtype = number_at(text, at, _GQ_AT), number_at(text, at, _GQTYPE_AT)
    kind = int(kinds[gqtype]) if gqtype >= 0 else -1
    if kind < 0:
        bad[_GQTYPE] += 1
        kind = 0
    if gq < 0:
        bad[_GQ] += 1
    place[_KIND] = kind
    place[_IS_VACANT] = gq == 0 and kind == 0
    expected = number_at(text, at, _NUMPREC_AT)
    place[_EXPECTED] = expected if kind == 0 else -1
    place[_MET] = 0
    if state < 0 or county < 0 or district < 0:
        bad[_GEOCODE] += 1
        state, county, district = 0, 0, 0
    code = (state * 10**4 + county) * 10**4 + district
    if place[_DISTRICT_COUNT] == 0 or districts.codes[place[_DISTRICT]] != code:
        place[_DISTRICT] = _district(districts, place, code)
    districts.units[place[_DISTRICT], _VACANT_UNIT if place[_IS_VACANT] else kind] += 1


@_kernel
def _person(
    text: NDArray[np.uint8], at: int, hispanic9: bool, districts: Districts, place: _Ints, bad: _Ints
) -> None:
    if place[_HOUSEHOLD] < 0 or number_at(text, at, _P_SERIAL_AT) != place[_HOUSEHOLD]:
        bad[_ORPHAN] += 1
        return
    if place[_IS_VACANT]:
        bad[_VACANT] += 1
        return
    age, race, origin = (
        number_at(text, at, _AGE_AT),
        number_at(text, at, _RACE_AT),
        number_at(text, at, _HISPAN_AT),
    )
    hispanic = hispanic9 if origin == _NOT_REPORTED else origin > 0
    if age < 0:
        bad[_AGE] += 1
    if outside(_RACES, race):
        bad[_RACE] += 1
        race = 1
    if outside(_ORIGINS, origin):
        bad[_HISPAN] += 1
    cell = ((place[_KIND] * 2 + (age >= 18)) * 2 + hispanic) * 6 + race - 1
    districts.cells[place[_DISTRICT], cell] += 1
    place[_MET] += 1


@_kernel
def add_lines(
    text: NDArray[np.uint8],
    start: int,
    kinds: NDArray[np.int8],
    hispanic9: bool,
    seen: NDArray[np.uint64],
    districts: Districts,
    place: _Ints,
    bad: _Ints,
) -> int:
    """Add up the records of a chunk of lines."""
    at = start
    while at < len(text):
        length, after = next_line(text, at, WIDTH)
        if length != WIDTH:
            bad[_LENGTH] += 1
            place[_EXPECTED] = -1
        elif text[at] == _HOUSEHOLD_RECORD:
            if place[_DISTRICT_COUNT] == len(districts.codes):
                return at
            if place[_EXPECTED] >= 0 and place[_EXPECTED] != place[_MET]:
                bad[_NUMPREC] += 1
            _household(text, at, kinds, seen, districts, place, bad)
        elif text[at] == _PERSON_RECORD:
            _person(text, at, hispanic9, districts, place, bad)
        else:
            bad[_RECTYPE] += 1
        at = after
    return at


_SHAPE: Final = (8, 2, 2, 6)
_FIRST_ROOM: Final = 1 << 14
_WORDS: Final = field_words(_HOUSEHOLD_LAYOUT) | field_words(_PERSON_LAYOUT) | {
    "duplicate": ("SERIAL", "duplicate", "household records with the number of another one", "one household record a number"),
    "geocode": ("STATEFIP, COUNTY, ENUMDIST", "form", "codes of places that are not digits", "2, 4 and 4 digits"),
    "orphan": ("SERIAL", "no-household", "persons that do not follow the record of their household",
               "every household record, then its persons"),
    "vacant": ("GQ", "vacant", "persons in vacant units", "no persons after a household record with GQ 0 and GQTYPE 0"),
}  # fmt: skip
"""Column, rule, problem and what is allowed, by rule of the kernel."""


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
    if layout.schema is None or layout.schema.shape != _SHAPE or len(layout.unit_columns) != UNITS:
        raise DataError(
            f"{paths[0].name}: an extract of 1940 holds hhgq x age18plus x hispanic x race (8 x 2 x 2 x 6) and nine kinds of unit, "
            "which is not the schema of this configuration; fix: use the configuration e2e-1940"
        )
    districts, problems = empty_districts(_FIRST_ROOM), list[Finding]()
    seen = np.zeros(MOST_SERIAL // 64 + 1, np.uint64)
    place = new_place()
    for path in paths:
        districts = _add_file(path, hispanic9, seen, districts, place, problems)
    raise_if_fatal(merge_findings(problems), "extract of 1940")
    count = int(place[_DISTRICT_COUNT])
    if not count:
        raise DataError(f"{paths[0].name}: there are no records; allowed: one household record or more")
    spine = build_spine(districts.codes[:count], layout.rules)
    order = np.argsort(districts.codes[:count])
    persons = table_histograms(spine, districts.cells[:count][order])
    facilities = districts.units[:count][order]
    name = paths[0].name
    problems += no_persons(name, int(persons.count.sum(dtype=np.int64)))
    problems += facility_findings(persons, facilities, layout, (name, name))
    raise_if_fatal(merge_findings(problems), "extract of 1940")
    return BlockData(spine, persons, facilities, None, (), paths, findings=merge_findings(problems))


def _add_file(
    path: Path,
    hispanic9: bool,
    seen: NDArray[np.uint64],
    districts: Districts,
    place: NDArray[np.int64],
    problems: list[Finding],
) -> Districts:
    """Add up one file; the districts, in a larger table where there was no room."""
    bad = np.zeros(len(RULES), np.int64)
    place[:_DISTRICT_COUNT] = new_place()[:_DISTRICT_COUNT]
    file = FixedFile(path, WIDTH)
    for chunk in file.chunks():
        at, stop = 0, len(chunk)
        while (at := add_lines(chunk, at, KIND_OF_GQTYPE, hispanic9, seen, districts, place, bad)) < stop:
            districts = _doubled(districts)
    short = 0 <= place[_MET] < place[_EXPECTED]
    problems += file.findings(RULES, _WORDS, bad)
    problems += _household_findings(path.name, int(bad[_NUMPREC]), bool(short) and not file.cut)
    return districts


def _doubled(districts: Districts) -> Districts:
    room = len(districts.codes)
    larger = empty_districts(2 * room)
    larger.codes[:room], larger.cells[:room], larger.units[:room] = (
        districts.codes,
        districts.cells,
        districts.units,
    )
    fill_slots(larger.slots, districts.codes)
    return larger


def _household_findings(file: str, others: int, short: bool) -> list[Finding]:
    return finding(
        file, "NUMPREC", "truncated", int(short), "the last household has fewer persons than it says",
        "all persons of every household", "a file that was cut short must be copied again",
    ) + finding(
        file, "NUMPREC", "persons", others, "households with another number of person records",
        "as many persons as NUMPREC says", "check that no records are missing", "warn",
    )  # fmt: skip
