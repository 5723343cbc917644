"""Compiled parser of the 1940 extract: household records, each followed by its persons, added up by district."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.histograms.line_kernels import mark, next_line, number, slot_of

__all__ = [
    "CELLS", "KIND_OF_GQTYPE", "MOST_SERIAL", "RULES", "UNITS", "WIDTH", "Districts", "add_lines", "empty_districts", "fill_slots",
    "new_place",
]  # fmt: skip

WIDTH = 273
CELLS = 192
UNITS = 9  # eight kinds, then vacant housing units
MOST_SERIAL = 10**8
KIND_OF_GQTYPE = (0, -1, 1, 2, 3, -1, 4, 5, 6, 7)  # level of hhgq; 1 and 5 do not occur

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
_VACANT_UNIT, _NOT_REPORTED, _MOST_HISPANIC = 8, 9, 4
# what is remembered between lines: of the household, and how many districts there are
_HOUSEHOLD, _DISTRICT, _KIND, _IS_VACANT, _EXPECTED, _MET, _FOUND = range(7)
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
        np.zeros((room, CELLS), np.int32),
        np.zeros((room, UNITS), np.int32),
    )


@_kernel
def _district(found: Districts, place: _Ints, code: int) -> int:
    """Position of a district, a new one where it is not there yet."""
    mask = len(found.slots) - 1
    slot = slot_of(code, mask)
    while found.slots[slot] >= 0:
        if found.codes[found.slots[slot]] == code:
            return found.slots[slot]
        slot = (slot + 1) & mask
    new = place[_FOUND]
    found.slots[slot] = new
    found.codes[new] = code
    place[_FOUND] = new + 1
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
    kinds: _Ints,
    seen: NDArray[np.uint64],
    found: Districts,
    place: _Ints,
    bad: _Ints,
) -> None:
    serial = number(text, at + 7, 8)
    place[_HOUSEHOLD] = serial
    if serial < 0:
        bad[_SERIAL] += 1
    elif mark(seen, serial):
        bad[_DUPLICATE] += 1
    state, county, district = number(text, at + 53, 2), number(text, at + 55, 4), number(text, at + 124, 4)
    gq, gqtype = number(text, at + 93, 1), number(text, at + 94, 1)
    kind = kinds[gqtype] if gqtype >= 0 else -1
    if kind < 0:
        bad[_GQTYPE] += 1
        kind = 0
    if gq < 0:
        bad[_GQ] += 1
    place[_KIND] = kind
    place[_IS_VACANT] = gq == 0 and kind == 0
    expected = number(text, at + 15, 2)
    place[_EXPECTED] = expected if kind == 0 else -1
    place[_MET] = 0
    if state < 0 or county < 0 or district < 0:
        bad[_GEOCODE] += 1
        state, county, district = 0, 0, 0
    code = (state * 10**4 + county) * 10**4 + district
    if place[_FOUND] == 0 or found.codes[place[_DISTRICT]] != code:
        place[_DISTRICT] = _district(found, place, code)
    found.units[place[_DISTRICT], _VACANT_UNIT if place[_IS_VACANT] else kind] += 1


@_kernel
def _person(
    text: NDArray[np.uint8], at: int, hispanic9: bool, found: Districts, place: _Ints, bad: _Ints
) -> None:
    if place[_HOUSEHOLD] < 0 or number(text, at + 7, 8) != place[_HOUSEHOLD]:
        bad[_ORPHAN] += 1
        return
    if place[_IS_VACANT]:
        bad[_VACANT] += 1
        return
    age, race, origin = number(text, at + 73, 3), number(text, at + 84, 1), number(text, at + 88, 1)
    hispanic = hispanic9 if origin == _NOT_REPORTED else origin > 0
    if age < 0:
        bad[_AGE] += 1
    if race < 1 or race > 6:
        bad[_RACE] += 1
        race = 1
    if origin < 0 or (origin > _MOST_HISPANIC and origin != _NOT_REPORTED):
        bad[_HISPAN] += 1
    cell = ((place[_KIND] * 2 + (age >= 18)) * 2 + hispanic) * 6 + race - 1
    found.cells[place[_DISTRICT], cell] += 1
    place[_MET] += 1


@_kernel
def add_lines(
    text: NDArray[np.uint8],
    start: int,
    kinds: _Ints,
    hispanic9: bool,
    seen: NDArray[np.uint64],
    found: Districts,
    place: _Ints,
    bad: _Ints,
) -> int:
    """Add up the records of a chunk of lines.

    Args:
        text: the chunk.
        start: where to begin.
        kinds: level of hhgq by GQTYPE, -1 for codes that do not occur.
        hispanic9: whether an origin that was not reported counts as Hispanic.
        seen: one bit for each SERIAL.
        found: takes the counts.
        place: what is remembered between lines.
        bad: how many records break each of the RULES.

    Returns:
        Where it stopped: the length of the chunk, or earlier when `found` has no room for another district.
    """
    at = start
    while at < len(text):
        length, after = next_line(text, at, WIDTH)
        if length != WIDTH:
            bad[_LENGTH] += 1
            place[_EXPECTED] = -1
        elif text[at] == 72:
            if place[_FOUND] == len(found.codes):
                return at
            if place[_EXPECTED] >= 0 and place[_EXPECTED] != place[_MET]:
                bad[_NUMPREC] += 1
            _household(text, at, kinds, seen, found, place, bad)
        elif text[at] == 80:
            _person(text, at, hispanic9, found, place, bad)
        else:
            bad[_RECTYPE] += 1
        at = after
    return at
