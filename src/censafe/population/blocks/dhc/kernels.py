"""Compiled recodes of persons and units of the Census Edited File to cells of the DHC histograms, with the checks of every record.

A key is block * cells + cell, and a cell the number of the levels in C order, the last attribute changing fastest. A record
that breaks a rule is counted under that rule and gets the key -1 where it has no cell; nothing else of it is kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.blocks.dhc.tables import AGES, HouseholdRecodes, PersonRecodes

PERSON_RULES: Final = (
    "QSEX", "QAGE", "CENHISP", "CENRACE", "RELSHIP", "QGQTYP", "MAFID", "unit", "vacant", "other-quarters", "inside",
)  # fmt: skip
UNIT_RULES: Final = (
    "RTYPE", "MAFID", "FINAL_POP", "VACS", "QGQTYP", "OIDTB", "quarters", "vacant-quarters", "vacant-persons", "no-persons",
    "TEN", "HHSEX", "HHLDRAGE", "HHSPAN", "HHRACE", "HHT", "CPLT", "MULTG", "PAOC", "PAC", "P18", "P60", "P65", "P75", "type",
)  # fmt: skip
PERSON_DOUBTS: Final = ("C1", "alone", "householder-age", "householder-sex", "C10")
"""Contradictions of a person and its unit that change no cell of another record."""
_D_RTYPE, _D_ALONE, _D_AGE, _D_SEX, _D_RACE = range(len(PERSON_DOUBTS))
MEMBER_COUNTS: Final = (
    "HOUSEHOLDERS",
    "PARTNERS",
    "FAMILY",
    "MEMBERS_P18",
    "MEMBERS_P60",
    "MEMBERS_P65",
    "MEMBERS_P75",
)
"""Persons of a household that are counted, at most 255 of each."""
_M_HEADS, _M_PARTNERS, _M_FAMILY, _M_18, _M_60, _M_65, _M_75 = range(len(MEMBER_COUNTS))
NO_TYPE: Final = 15
"""HHT2 of a unit that has none."""
(
    _P_SEX,
    _P_AGE,
    _P_HISPANIC,
    _P_RACE,
    _P_RELSHIP,
    _P_KIND,
    _P_MAFID,
    _P_UNIT,
    _P_VACANT,
    _P_OTHER,
    _P_INSIDE,
) = range(len(PERSON_RULES))
(_RTYPE, _MAFID, _POP, _VACS, _KIND, _BLOCK, _QUARTERS, _VACANT_QUARTERS, _VACANT_PERSONS, _NO_PERSONS,
 _TEN, _SEX, _AGE, _HISPANIC, _RACE, _HHT, _CPLT, _MULTG, _PAOC, _PAC, _P18, _P60, _P65, _P75, _TYPE) = range(
    len(UNIT_RULES)
)  # fmt: skip
_RACES, _TYPES, _LARGEST, _SINGLE_RACES = 63, 522, 7, 6
_PERSON_CELLS, _HOUSEHOLD_CELLS = 42 * 2 * AGES * 2 * _RACES, 2 * 9 * 2 * 7 * 4 * 3 * _TYPES
_MOST_MAFID = 10**9

_Column = NDArray[np.int32]
_Ints = NDArray[np.int64]
_kernel = compiled()


class PersonFields(NamedTuple):
    """Fields of persons as numbers, -1 where a field holds none; one entry a person."""

    mafid: _Column
    sex: _Column
    age: _Column
    hispanic: _Column
    race: _Column
    relship: _Column
    quarters: _Column


class UnitFields(NamedTuple):
    """Fields of units as numbers, -1 where a field holds none; one entry a unit."""

    rtype: _Column
    mafid: _Column
    pop: _Column
    age: _Column
    hispanic: _Column
    race: _Column
    tenure: _Column
    vacs: _Column
    quarters: _Column
    hht: _Column
    cplt: _Column
    multg: _Column
    paoc: _Column
    p18: _Column
    p60: _Column
    p65: _Column
    p75: _Column
    pac: _Column
    sex: _Column


class Claims(NamedTuple):
    """What units say of their persons; one entry a unit, zero but for occupied housing units."""

    head: _Column  # age, sex, Hispanic origin and race of the householder: bits 0-6, 7-8, 9-10 and 11-16
    types: _Column  # HHT, HHT2, CPLT, PAOC, PAC: three bits each, HHT2 four
    ages: _Column  # P18, P60, P65, P75: seven bits each


class UnitFacts(NamedTuple):
    """What persons need of their units; one entry a unit."""

    mafid: _Column
    block: _Column  # position in the spine, -1 where unknown
    pop: _Column
    kind: NDArray[np.int8]  # hhgq25
    vacant: NDArray[np.bool_]


@_kernel
def _relgq(relship: int, kind: int, pop: int) -> int:
    """Level of relgq; -1 where RELSHIP is outside 20 to 38."""
    if relship >= 37:
        return 17 + kind if kind > 0 else -1
    if relship == 20:
        return 0 if pop <= 1 else 1
    return relship - 19 if relship > 20 else -1


@_kernel
def recode_persons(
    t: PersonRecodes,
    people: PersonFields,
    more: tuple[_Column, _Column],
    unit: _Column,
    units: UnitFacts,
    head: _Column,
    bad: _Ints,
    edits: _Ints,
    doubts: _Ints,
    keys: _Ints,
) -> None:
    """Keys of persons in the DHC histogram.

    Args:
        more: RTYPE and LIVE_ALONE, -1 where a field holds none; of no length where the file does not have them.
        unit: position of each person's unit, -1 for none.
        units: all units.
        edits: how many persons of each level of relgq have an age that the edit rules forbid, shape (42,).
    """
    rtype, alone = more
    for row in range(len(unit)):
        keys[row] = -1
        sex, age, hispanic, race = people.sex[row], people.age[row], people.hispanic[row], people.race[row]
        relship, code, home = people.relship[row], people.quarters[row], unit[row]
        kind = int(t.kind[code]) if 0 <= code < len(t.kind) else -1
        known = True
        for rule, wrong in (
            (_P_SEX, sex < 1 or sex > 2),
            (_P_AGE, age < 0 or age >= AGES),
            (_P_HISPANIC, hispanic < 1 or hispanic > 2),
            (_P_RACE, race < 1 or race > _RACES),
            (_P_RELSHIP, relship < 20 or relship > 38),
            (_P_KIND, kind < 0),
        ):
            bad[rule] += wrong
            known &= not wrong
        if home < 0:
            continue
        bad[_P_VACANT] += units.vacant[home]
        bad[_P_OTHER] += kind >= 0 and kind != units.kind[home]
        if not known:
            continue
        inside = (relship >= 37) == (kind > 0)
        bad[_P_INSIDE] += not inside
        if not inside or units.block[home] < 0:
            continue
        if len(rtype) > 0 and rtype[row] >= 0:
            doubts[_D_RTYPE] += rtype[row] != (5 if kind > 0 else 3)
        if len(alone) > 0 and alone[row] >= 0:
            doubts[_D_ALONE] += alone[row] != (0 if kind > 0 else 1 if units.pop[home] == 1 else 2)
        if relship == 20 and head[home] > 0:
            said = head[home]
            doubts[_D_AGE] += age != said & 127
            doubts[_D_SEX] += sex != said >> 7 & 3
            doubts[_D_RACE] += hispanic != said >> 9 & 3 or race != said >> 11
        level = _relgq(relship, kind, units.pop[home])
        edits[level] += age < t.youngest[level] or age > t.oldest[level]
        cell = (((level * 2 + sex - 1) * AGES + age) * 2 + hispanic - 1) * _RACES + race - 1
        keys[row] = units.block[home] * _PERSON_CELLS + cell


@_kernel
def _household_bad(t: HouseholdRecodes, u: UnitFields, row: int, bad: _Ints) -> bool:
    """Count the fields of a household that hold no code of its universe; whether there is one."""
    broken = False
    for rule, value, low, high in (
        (_TEN, u.tenure[row], 1, 4),
        (_SEX, u.sex[row], 1, 2),
        (_AGE, u.age[row], 15, AGES - 1),
        (_HISPANIC, u.hispanic[row], 1, 2),
        (_RACE, u.race[row], 1, _RACES),
        (_HHT, u.hht[row], 1, 7),
        (_CPLT, u.cplt[row], 0, 5),
        (_MULTG, u.multg[row], 0, 2),
        (_PAOC, u.paoc[row], 1, 4),
        (_PAC, u.pac[row], 1, 4),
        (_P18, u.p18[row], 0, 99),
        (_P60, u.p60[row], 0, 99),
        (_P65, u.p65[row], 0, 99),
        (_P75, u.p75[row], 0, 99),
    ):
        wrong = value < low or value > high
        bad[rule] += wrong
        broken |= wrong
    return broken


@_kernel
def _household(t: HouseholdRecodes, u: UnitFields, row: int, bad: _Ints, edits: _Ints) -> int:
    """Cell of a household; -1 for one without."""
    if _household_bad(t, u, row, bad):
        return -1
    kind = t.household_type[
        min(u.pop[row], _LARGEST), u.cplt[row], u.paoc[row], u.pac[row], u.multg[row],
        1 if u.hht[row] <= 3 else 0, 1 if u.p18[row] > 0 else 0,
    ]  # fmt: skip
    bad[_TYPE] += kind < 0
    if kind < 0:
        return -1
    age, sex = t.age[u.age[row]], u.sex[row] - 1
    elderly = 3 if u.p75[row] > 0 else 2 if u.p65[row] > 0 else 1 if u.p60[row] > 0 else 0
    rule = t.rule[sex, age, elderly, kind]
    if rule > 0:
        edits[rule - 1] += 1
    race = min(u.race[row], _SINGLE_RACES + 1) - 1
    tenure = min(u.tenure[row], 3) - 1
    cell = ((sex * 9 + age) * 2 + u.hispanic[row] - 1) * 7 + race
    return int(((cell * 4 + elderly) * 3 + tenure) * _TYPES + kind)


@_kernel
def _unit(t: HouseholdRecodes, u: UnitFields, row: int, bad: _Ints) -> int:
    """hhgq25 of a unit after the checks that all units pass; -1 where its code does not occur."""
    rtype, code, pop, vacs = u.rtype[row], u.quarters[row], u.pop[row], u.vacs[row]
    kind = int(t.kind[code]) if 0 <= code < len(t.kind) else -1
    bad[_RTYPE] += rtype != 2 and rtype != 4
    bad[_MAFID] += u.mafid[row] < 0 or u.mafid[row] >= _MOST_MAFID
    bad[_POP] += pop < 0
    bad[_VACS] += vacs < 0 or vacs > 7
    bad[_KIND] += kind < 0
    if kind >= 0:
        bad[_QUARTERS] += (rtype == 2 and kind > 0) or (rtype == 4 and kind == 0)
    bad[_VACANT_QUARTERS] += rtype == 4 and vacs > 0
    bad[_VACANT_PERSONS] += rtype == 2 and vacs > 0 and pop > 0
    bad[_NO_PERSONS] += vacs == 0 and pop == 0
    return kind


@_kernel
def _claim(u: UnitFields, hht2: _Column, row: int, claims: Claims) -> None:
    """Keep what an occupied housing unit with valid codes says of its persons."""
    claims.head[row] = u.age[row] | u.sex[row] << 7 | u.hispanic[row] << 9 | u.race[row] << 11
    two = hht2[row] if len(hht2) > 0 and 1 <= hht2[row] <= 12 else NO_TYPE
    couple = 5 if u.cplt[row] == 0 else u.cplt[row]
    claims.types[row] = u.hht[row] | two << 3 | couple << 7 | u.paoc[row] << 10 | u.pac[row] << 13
    claims.ages[row] = u.p18[row] | u.p60[row] << 7 | u.p65[row] << 14 | u.p75[row] << 21


@_kernel
def recode_units(
    t: HouseholdRecodes,
    u: UnitFields,
    hht2: _Column,
    facts: UnitFacts,
    claims: Claims,
    bad: _Ints,
    edits: _Ints,
    keys: _Ints,
    levels: NDArray[np.int8],
) -> None:
    """Keys of households, levels of units, and what persons need of them.

    Args:
        edits: how many households break each edit rule, shape (22,).
    """
    for row in range(len(keys)):
        keys[row] = -1
        kind = _unit(t, u, row, bad)
        vacs = u.vacs[row]
        facts.pop[row] = max(u.pop[row], 0)
        facts.kind[row] = max(kind, 0)
        facts.vacant[row] = vacs > 0
        bad[_BLOCK] += facts.block[row] < 0
        if kind > 0:
            levels[row] = 10 + kind
        elif vacs > 0:
            levels[row] = 3 + min(vacs, 7)
        else:
            levels[row] = min(max(u.tenure[row], 1), 4) - 1
            if kind == 0 and u.pop[row] > 0:
                cell = _household(t, u, row, bad, edits)
                if cell >= 0:
                    _claim(u, hht2, row, claims)
                if cell >= 0 and facts.block[row] >= 0:
                    keys[row] = facts.block[row] * _HOUSEHOLD_CELLS + cell


@_kernel
def count_members(
    unit: _Column,
    people: PersonFields,
    flags_of: NDArray[np.uint16],
    persons: _Column,
    members: NDArray[np.uint8],
    flags: NDArray[np.uint16],
) -> None:
    """Add the persons of a piece to those of their units.

    Args:
        unit: position of each person's unit, -1 for none.
        flags_of: of persons, as tables.member_flags has them.
        members: persons of every unit by MEMBER_COUNTS, shape (units, 7).
        flags: of every unit: those of the rules of households, four of children, and four of generations.
    """
    counted = np.zeros(len(MEMBER_COUNTS), np.bool_)
    for row in range(len(unit)):
        position, relship, age = unit[row], people.relship[row], people.age[row]
        if position < 0:
            continue
        persons[position] += 1
        counted[_M_HEADS] = relship == 20
        counted[_M_PARTNERS] = 21 <= relship <= 24
        counted[_M_FAMILY] = relship == 20 or relship == 21 or relship == 23 or 25 <= relship <= 33
        counted[_M_18], counted[_M_60], counted[_M_65], counted[_M_75] = (
            age < 18,
            age >= 60,
            age >= 65,
            age >= 75,
        )
        for kind in range(len(counted)):
            if counted[kind] and members[position, kind] < 255:
                members[position, kind] += 1
        if 20 < relship <= 36:
            flags[position] |= flags_of[relship, 0 if age < 6 else 1 if age < 18 else 2]


@_kernel
def count_levels(block: _Column, level: NDArray[np.int8], counts: NDArray[np.int32]) -> None:
    """Add units to the counts of their blocks and levels, shape (blocks, levels); those of block -1 are left out."""
    for row in range(len(block)):
        if block[row] >= 0:
            counts[block[row], level[row]] += 1


@_kernel
def sum_groups(
    pointer: _Ints, cell: _Column, count: _Column, group: NDArray[np.int16], sums: NDArray[np.int32],
    out_pointer: _Ints, out_cell: _Column, out_count: _Column,
) -> None:  # fmt: skip
    """Sums of the counts of every geounit over groups of cells.

    Args:
        pointer: of the geounits, shape (n + 1,).
        sums: zeroed, shape (groups,).
        out_pointer: takes the pointer, shape (n + 1,).
    """
    entry = 0
    for node in range(len(pointer) - 1):
        first = entry
        for i in range(pointer[node], pointer[node + 1]):
            place = group[cell[i]]
            if sums[place] == 0:
                out_cell[entry] = place
                entry += 1
            sums[place] += count[i]
        out_cell[first:entry].sort()
        for i in range(first, entry):
            out_count[i] = sums[out_cell[i]]
            sums[out_cell[i]] = 0
        out_pointer[node + 1] = entry
