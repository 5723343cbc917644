"""Compiled kernels that draw blocks, facilities and households of a tract, and describe each household by its members.

A tract is a walk over its blocks. With h persons in households to place, of which d are placed, a block takes households
until d has risen by 1 + an exponential number; a facility whose point of the Poisson process (scaled to h) lies below
that bound stands in the block, or in one of its own before it. The walk ends when h = d and no facility is left, so every
block that is not empty holds a person.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.synthetic.dhc.chances import DhcBlocks, DhcChances, DhcUnits
from censafe.population.synthetic.kernels import describe_household, draw_facilities, draw_residents
from censafe.population.synthetic.members import Home, draw_household
from censafe.population.synthetic.structures import (
    Chances,
    DrawnPersons,
    Tracts,
    Words,
    packed,
    pick,
    records,
    uniform,
    waiting,
)

_kernel = compiled()

_PERSON, _UNIT, _BLOCK, _FACILITY, _PLACED, _GROUP, _IN_GROUP, _FIRST_PERSON, _FIRST_UNIT = range(9)
# Positions of a walk: next person, unit, block and facility; persons of households placed in the tract; block group and
# blocks in it; first person and unit of the tract


class TractFacilities(NamedTuple):
    """Group quarters of a tract: kind, persons, and place in persons, rising."""

    kind: NDArray[np.int64]
    size: NDArray[np.int64]
    place: NDArray[np.float64]


class Walk(NamedTuple):
    """What is drawn from, what is filled, and how far."""

    c: Chances  # with the 24 kinds of group quarters
    d: DhcChances
    tracts: Tracts
    people: DrawnPersons  # a row for every person
    units: DhcUnits  # two rows for every person
    blocks: DhcBlocks  # two rows for every person
    words: Words
    at: NDArray[np.int64]

    @property
    def held(self) -> tuple[int, int]:
        """Units and blocks drawn."""
        return int(self.at[_UNIT]), int(self.at[_BLOCK])


def new_walk(c: Chances, d: DhcChances, tracts: Tracts) -> Walk:
    """A walk over some tracts that has not begun."""
    persons = int(tracts.persons.sum())
    return Walk(
        packed(c),
        packed(d),
        tracts,
        records(DrawnPersons, persons),
        records(DhcUnits, 2 * persons),
        records(DhcBlocks, 2 * persons),
        np.zeros(1, np.uint64),
        np.zeros(9, np.int64),
    )


@_kernel
def _age_class(young: int, older: int) -> int:
    """PAOC and PAC: 1 under 6 only, 2 aged 6 to 17 only, 3 both, 4 none."""
    if young > 0:
        return 3 if older > 0 else 1
    return 2 if older > 0 else 4


@_kernel
def _unmarried(partner: int, male: bool) -> int:
    """UPART of a household of several persons."""
    if partner == 24:
        return 1 if male else 3
    if partner == 22:
        return 2 if male else 4
    return 5


@_kernel
def _members(o: DrawnPersons, p: int, n: int, units: DhcUnits, u: int) -> None:
    """Fill what the Census Edited File says of household `u` beside the codes of the other layouts.

    Three generations are a householder with a child and either a grandchild or a parent (also of the spouse).
    """
    own_young = own_older = young = older = 0
    child = grandchild = parent = False
    partner = 0
    for i in range(p, p + n):
        code, age = o.relship[i], o.age[i]
        couple = code <= 24
        partner = code if 21 <= code <= 24 else partner
        own = 25 <= code <= 27
        young += age < 6 and not couple
        older += 6 <= age < 18 and not couple
        own_young += age < 6 and own
        own_older += 6 <= age < 18 and own
        child |= own
        grandchild |= code == 30
        parent |= code == 29 or code == 31
        units.p18[u] += age < 18
        units.p60[u] += age >= 60
        units.p65[u] += age >= 65
        units.p75[u] += age >= 75
    units.paoc[u] = _age_class(own_young, own_older)
    units.pac[u] = _age_class(young, older)
    units.multg[u] = 0 if n <= 2 else 2 if child and (grandchild or parent) else 1
    units.upart[u] = 0 if n == 1 else _unmarried(partner, o.sex[p] == 1)
    units.age[u] = o.age[p]
    units.sex[u] = o.sex[p]
    if n == 1:
        units.cplt[u] = 0


@_kernel
def _unit(s: Walk, index: int, rtype: int, size: int) -> int:
    """Place the next unit in the current block; its position."""
    u, b = s.at[_UNIT], s.at[_BLOCK] - 1
    s.units.rtype[u] = rtype
    s.units.mafid[u] = s.tracts.first_mafid[index] + u - s.at[_FIRST_UNIT]
    s.units.tract[u] = index
    s.units.block[u] = s.blocks.block[b]
    s.units.place[u] = b
    s.units.pop[u] = size
    p = s.at[_PERSON]
    s.people.mafid[p : p + size] = s.units.mafid[u]
    s.at[_PERSON] += size
    s.at[_UNIT] += 1
    return int(u)


@_kernel
def _vacant(s: Walk, index: int) -> None:
    u = _unit(s, index, 2, 0)
    s.units.vacs[u] = 1 + pick(s.d.reasons, s.words)


@_kernel
def _open_block(s: Walk, index: int) -> None:
    """Start a block, in the block group that the persons placed so far ask for."""
    persons, c, at = s.tracts.persons[index], s.c, s.at
    groups = min(9, max(1, (persons + c.group_persons // 2) // c.group_persons))
    group = 1 + min(groups - 1, (at[_PERSON] - at[_FIRST_PERSON]) * groups // persons)
    if group != at[_GROUP]:
        at[_GROUP], at[_IN_GROUP] = group, 0
    s.blocks.tract[at[_BLOCK]] = index
    s.blocks.block[at[_BLOCK]] = group * 1000 + at[_IN_GROUP]
    at[_IN_GROUP] += 1
    at[_BLOCK] += 1


@_kernel
def _empty_block(s: Walk, index: int) -> None:
    """A block without anybody, at times with a vacant housing unit; two MAFIDs a person are never exceeded."""
    _open_block(s, index)
    room = s.at[_UNIT] - s.at[_FIRST_UNIT] < s.at[_PERSON] - s.at[_FIRST_PERSON]
    if room and uniform(s.words) < s.d.vacant_block:
        _vacant(s, index)


@_kernel
def _homes(s: Walk, index: int, home: Home, stop: int, homes: int) -> None:
    """Households, and vacant units between them, until `stop` persons of the tract are placed in households."""
    while s.at[_PLACED] < stop:
        p = s.at[_PERSON]
        size = draw_household(s.c, home, s.words, s.people, p, homes - s.at[_PLACED])
        u = _unit(s, index, 2, size)
        describe_household(s.c, s.words, s.people, p, size, s.units, u)
        _members(s.people, p, size, s.units, u)
        s.at[_PLACED] += size
        for _ in range(math.floor(s.tracts.vacancy[index] + uniform(s.words))):
            _vacant(s, index)


@_kernel
def _quarters(s: Walk, index: int, home: Home, found: TractFacilities, bound: float) -> bool:
    """TractFacilities whose place is below `bound`; whether the block has no housing units because of them."""
    first = s.at[_FACILITY]
    while s.at[_FACILITY] < len(found.size) and found.place[s.at[_FACILITY]] < bound:
        f = s.at[_FACILITY]
        if f > first and found.place[f] != found.place[f - 1] and uniform(s.words) < s.d.apart:
            break
        draw_residents(s.c, home, found.kind[f], s.words, s.people, s.at[_PERSON], found.size[f])
        u = _unit(s, index, 4, found.size[f])
        s.units.quarters[u] = 1 + found.kind[f]
        s.at[_FACILITY] += 1
    return bool(s.at[_FACILITY] > first and uniform(s.words) < s.d.apart)


@_kernel
def _draw_tract(s: Walk, index: int) -> None:
    c, at, words = s.c, s.at, s.words
    words[0] = s.tracts.seed[index]
    state, persons = s.tracts.state[index], s.tracts.persons[index]
    kinds, sizes, places, homes = draw_facilities(c, persons, words)
    for item in range(1, len(places)):
        if uniform(words) < s.d.beside:
            places[item] = places[item - 1]
    found = TractFacilities(kinds, sizes, places)
    at[_FACILITY] = at[_PLACED] = at[_GROUP] = 0
    at[_FIRST_PERSON], at[_FIRST_UNIT] = at[_PERSON], at[_UNIT]
    while at[_PERSON] - at[_FIRST_PERSON] < persons:
        if uniform(words) < s.d.empty:
            _empty_block(s, index)
        _open_block(s, index)
        own = uniform(words) < s.d.block_group
        home = (state, pick(c.group[state], words) if own else s.tracts.dominant[index])
        stop = min(homes, at[_PLACED] + 1 + waiting(s.d.inhabited, words))
        bound = persons if stop == homes else stop * persons / homes
        if not _quarters(s, index, home, found, bound):
            _homes(s, index, home, stop, homes)


@_kernel
def draw_dhc_tracts(s: Walk) -> None:
    """Draw all tracts into the zeroed arrays of a walk, whose positions then say how many units and blocks there are."""
    for index in range(len(s.tracts.persons)):
        _draw_tract(s, index)
