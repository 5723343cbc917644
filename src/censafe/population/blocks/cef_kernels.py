"""Compiled parsers of the 2020 Census Edited File: units with their blocks, and persons with their units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.files.fixed_width import fixed_layout, number_at, outside
from censafe.population.files.lines import next_line

MOST_MAFID = 10**9
_UNIT, _PERSON = fixed_layout("cef_unit").fields, fixed_layout("cef_per").fields
_RTYPE_AT, _MAFID_AT, _QUARTERS_AT, _VACS_AT, _POP_AT, _BLOCK_AT, _STATE_AT = (
    _UNIT[name].place for name in ("RTYPE", "MAFID", "QGQTYP", "VACS", "FINAL_POP", "OIDTB", "BCUSTATEFP")
)
_HOME_AT, _AGE_AT, _ORIGIN_AT, _RACE_AT, _INSIDE_AT, _RECORD_AT, _RELSHIP_AT, _ALONE_AT = (
    _PERSON[name].place
    for name in ("MAFID", "QAGE", "CENHISP", "CENRACE", "QGQTYP", "RTYPE", "RELSHIP", "LIVE_ALONE")
)
_TYPES, _VACANCIES = _UNIT["RTYPE"].level_of, _UNIT["VACS"].level_of
_AGES, _ORIGINS, _RACE_CODES = (_PERSON[name].level_of for name in ("QAGE", "CENHISP", "CENRACE"))
UNIT_WIDTH, PERSON_WIDTH = fixed_layout("cef_unit").width, fixed_layout("cef_per").width
KIND_OF_GQ = _UNIT["QGQTYP"].level_of
"""Level of hhgq by code of group quarters, 0 for housing units, -1 for codes that do not occur."""

UNIT_RULES = (
    "length", "RTYPE", "MAFID", "duplicate", "QGQTYP", "VACS", "FINAL_POP", "OIDTB", "quarters", "vacant-quarters",
    "vacant-persons", "no-persons",
)  # fmt: skip
PERSON_RULES = (
    "length", "MAFID", "unit", "QAGE", "CENHISP", "CENRACE", "QGQTYP", "vacant", "other-quarters",
)  # fmt: skip
(_LENGTH, _RTYPE, _MAFID, _DUPLICATE, _QGQTYP, _VACS, _FINAL_POP, _OIDTB, _QUARTERS, _VACANT_QUARTERS, _VACANT_PERSONS,
 _NO_PERSONS) = range(len(UNIT_RULES))  # fmt: skip
_P_LENGTH, _P_MAFID, _P_UNIT, _P_AGE, _P_HISPANIC, _P_RACE, _P_QGQTYP, _P_VACANT, _P_OTHER = range(
    len(PERSON_RULES)
)
_RACES = 63
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_Slots = NDArray[np.int32]
_kernel = compiled()


@_kernel
def mark(seen: NDArray[np.uint64], item: int) -> bool:
    """Set the bit of an item; whether it was set before."""
    word, bit = item >> 6, np.uint64(1) << np.uint64(item & 63)
    if seen[word] & bit:
        return True
    seen[word] |= bit
    return False


@_kernel
def slot_of(key: int, mask: int) -> int:
    """Where a whole number is looked for first in a table of `mask` + 1 slots."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed >> np.uint64(32)) & mask)


class BlockTable(NamedTuple):
    """Blocks by the text of OIDTB: open addressing over the blocks in any order."""

    slots: _Slots
    texts: _Bytes  # (blocks, characters of OIDTB), left-justified, zeros behind
    block: NDArray[np.int32]  # position of the block in the spine


class UnitColumns(NamedTuple):
    """One entry a unit."""

    mafid: NDArray[np.int32]
    block: NDArray[np.int32]  # -1 where GRF-C has none
    kind: NDArray[np.int8]
    vacant: NDArray[np.int8]
    expected: NDArray[np.int32]  # FINAL_POP
    heads: NDArray[np.int8]  # householders, at most 2; -1 where no person says what it is to the householder


@_kernel
def _key(text: _Bytes, first: int, stop: int) -> int:
    """A whole number that depends on all characters."""
    key = np.uint64(0xCBF29CE484222325)
    for i in range(first, stop):
        key = (key ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
    return int(np.int64(key >> np.uint64(1)))


@_kernel
def _same(stored: _Bytes, text: _Bytes, first: int, stop: int) -> bool:
    length = stop - first
    if length < len(stored) and stored[length] != 0:
        return False
    i = 0
    while i < length and stored[i] == text[first + i]:
        i += 1
    return i == length


@_kernel
def _fill_blocks(slots: _Slots, texts: _Bytes) -> int:
    """Enter the texts; how many are there already."""
    mask = len(slots) - 1
    repeated = 0
    for row in range(len(texts)):
        stop = 0
        while stop < texts.shape[1] and texts[row, stop] != 0:
            stop += 1
        slot = slot_of(_key(texts[row], 0, stop), mask)
        while slots[slot] >= 0 and not _same(texts[slots[slot]], texts[row], 0, stop):
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            repeated += 1
        else:
            slots[slot] = row
    return repeated


def block_table(texts: _Bytes, block: NDArray[np.int32]) -> tuple[BlockTable, int]:
    """A table of blocks by OIDTB, and how many texts are given twice.

    Args:
        texts: shape (blocks, characters of OIDTB), left-justified, zeros behind.
        block: position in the spine of each, shape (blocks,).
    """
    slots = empty_slots(len(texts))
    repeated = _fill_blocks(slots, texts)
    return BlockTable(slots, texts, block), repeated


def empty_slots(items: int) -> _Slots:
    """An empty table of 2^k slots, at least twice as many as items."""
    return np.full(1 << max(4, (2 * items - 1).bit_length()), -1, np.int32)


@_kernel
def find_block(table: BlockTable, text: _Bytes, first: int, stop: int) -> int:
    """Position of the block whose OIDTB stands there between blanks, or -1."""
    while first < stop and text[first] == 32:
        first += 1
    while stop > first and text[stop - 1] == 32:
        stop -= 1
    mask = len(table.slots) - 1
    slot = slot_of(_key(text, first, stop), mask)
    while table.slots[slot] >= 0:
        row = table.slots[slot]
        if _same(table.texts[row], text, first, stop):
            return table.block[row]
        slot = (slot + 1) & mask
    return -1


@_kernel
def _same_place(text: _Bytes, one: int, other: int) -> bool:
    i = _BLOCK_AT.width - 1  # the last characters differ most
    while i >= 0 and text[one + i] == text[other + i]:
        i -= 1
    return i < 0


@_kernel
def block_of(table: BlockTable, text: _Bytes, at: int, before: int, last: int) -> int:
    """Position of the block of the unit at `at`, which often is that of the unit at `before`."""
    if last >= 0 and _same_place(text, before + _BLOCK_AT.start, at + _BLOCK_AT.start):
        return last
    return find_block(table, text, at + _BLOCK_AT.start, at + _BLOCK_AT.start + _BLOCK_AT.width)


@_kernel
def _unit(
    text: _Bytes, at: int, block: int, kinds: NDArray[np.int8], states: NDArray[np.int8], seen: NDArray[np.uint64], bad: _Ints,
    foreign: _Ints, units: UnitColumns, row: int,
) -> None:  # fmt: skip
    rtype, mafid = number_at(text, at, _RTYPE_AT), number_at(text, at, _MAFID_AT)
    code, vacancy = number_at(text, at, _QUARTERS_AT), number_at(text, at, _VACS_AT)
    persons = number_at(text, at, _POP_AT)
    kind = int(kinds[code]) if code >= 0 else -1
    bad[_RTYPE] += outside(_TYPES, rtype)
    bad[_MAFID] += mafid < 0
    bad[_QGQTYP] += kind < 0
    bad[_VACS] += outside(_VACANCIES, vacancy)
    bad[_FINAL_POP] += persons < 0
    bad[_OIDTB] += block < 0
    if mafid >= 0 and mark(seen, mafid):
        bad[_DUPLICATE] += 1
    if kind >= 0:
        bad[_QUARTERS] += (rtype == 2 and kind > 0) or (rtype == 4 and kind == 0)
    bad[_VACANT_QUARTERS] += rtype == 4 and vacancy > 0
    bad[_VACANT_PERSONS] += rtype == 2 and vacancy > 0 and persons > 0
    bad[_NO_PERSONS] += vacancy == 0 and persons == 0
    units.mafid[row] = mafid
    units.block[row] = block
    units.kind[row] = max(kind, 0)
    units.vacant[row] = vacancy > 0
    units.expected[row] = max(persons, 0)
    units.heads[row] = -1
    state = number_at(text, at, _STATE_AT)
    foreign[0] += state >= 0 and block >= 0 and state != states[block]


@_kernel
def parse_units(
    text: _Bytes,
    start: int,
    kinds: NDArray[np.int8],
    table: BlockTable,
    states: NDArray[np.int8],
    seen: NDArray[np.uint64],
    bad: _Ints,
    foreign: _Ints,
    units: UnitColumns,
) -> int:
    """Read the units of a chunk of lines; how many there are.

    Args:
        foreign: takes how many units are of another state than their block, shape (1,).
        units: takes the units; as long as the chunk has lines.
    """
    row = 0
    at, before, block = start, start, -1
    while at < len(text):
        length, after = next_line(text, at, UNIT_WIDTH)
        if length == UNIT_WIDTH:
            block = block_of(table, text, at, before, block)
            _unit(text, at, block, kinds, states, seen, bad, foreign, units, row)
            row += 1
            before = at
        else:
            bad[_LENGTH] += 1
        at = after
    return row


@_kernel
def enter_units(slots: _Slots, mafid: NDArray[np.int32]) -> int:
    """Enter units by MAFID into an empty table of 2^k slots; how many have the number of an earlier one."""
    mask = len(slots) - 1
    repeated = 0
    for row in range(len(mafid)):
        if mafid[row] < 0:
            continue
        slot = slot_of(mafid[row], mask)
        while slots[slot] >= 0 and mafid[slots[slot]] != mafid[row]:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = row
        else:
            repeated += 1
    return repeated


@_kernel
def _person(text: _Bytes, at: int, kinds: NDArray[np.int8], units: UnitColumns, unit: int, bad: _Ints) -> int:
    """Cell of a person, with 2,016 for every block before that of the unit."""
    age, origin, race = (
        number_at(text, at, _AGE_AT),
        number_at(text, at, _ORIGIN_AT),
        number_at(text, at, _RACE_AT),
    )
    code = number_at(text, at, _INSIDE_AT)
    kind = int(kinds[code]) if code >= 0 else -1
    bad[_P_AGE] += outside(_AGES, age)
    bad[_P_HISPANIC] += outside(_ORIGINS, origin)
    bad[_P_RACE] += outside(_RACE_CODES, race)
    bad[_P_QGQTYP] += kind < 0
    bad[_P_VACANT] += units.vacant[unit]
    if kind >= 0:
        bad[_P_OTHER] += kind != units.kind[unit]
    hispanic = 1 if origin == 2 else 0
    cell = ((max(kind, 0) * 2 + (age >= 18)) * 2 + hispanic) * _RACES + min(max(race, 1), _RACES) - 1
    return max(int(units.block[unit]), 0) * 2016 + cell


@_kernel
def _doubts(text: _Bytes, at: int, units: UnitColumns, unit: int, doubts: _Ints) -> None:
    """Count what a person contradicts in its unit: record type, whether it lives alone; and householders."""
    inside = units.kind[unit] > 0
    record, alone, relship = (
        number_at(text, at, _RECORD_AT),
        number_at(text, at, _ALONE_AT),
        number_at(text, at, _RELSHIP_AT),
    )
    doubts[0] += record >= 0 and record != (5 if inside else 3)
    doubts[1] += alone >= 0 and alone != (0 if inside else 1 if units.expected[unit] == 1 else 2)
    if relship >= 0:
        units.heads[unit] = min(max(units.heads[unit], 0) + (relship == 20), 2)


@_kernel
def parse_persons(
    text: _Bytes,
    start: int,
    kinds: NDArray[np.int8],
    slots: _Slots,
    units: UnitColumns,
    met: NDArray[np.int32],
    bad: _Ints,
    doubts: _Ints,
    keys: _Ints,
) -> int:
    """Read the persons of a chunk of lines; how many have a unit.

    Args:
        units: of the file.
        doubts: how many persons have another RTYPE and LIVE_ALONE than their unit allows, shape (2,).
    """
    at, row = start, 0
    mask, unit = len(slots) - 1, -1
    while at < len(text):
        length, after = next_line(text, at, PERSON_WIDTH)
        if length != PERSON_WIDTH:
            bad[_P_LENGTH] += 1
        else:
            mafid = number_at(text, at, _HOME_AT)
            if unit < 0 or units.mafid[unit] != mafid:
                slot = slot_of(mafid, mask)
                while slots[slot] >= 0 and units.mafid[slots[slot]] != mafid:
                    slot = (slot + 1) & mask
                unit = slots[slot]
            if mafid < 0:
                bad[_P_MAFID] += 1
            elif unit < 0:
                bad[_P_UNIT] += 1
            else:
                keys[row] = _person(text, at, kinds, units, unit, bad)
                _doubts(text, at, units, unit, doubts)
                met[unit] += 1
                row += 1
        at = after
    return row
