"""Compiled kernels that draw the people and units of a tract.

Every tract is drawn from its own stream of random words, so the result does not depend on how tracts are spread
over files or workers. The codes of a unit are derived from the people drawn, never the other way round, which
makes the records consistent by construction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.synthetic.members import Home, draw_household, draw_race
from censafe.population.synthetic.structures import (
    Chances,
    DrawnPersons,
    DrawnUnits,
    Tracts,
    Words,
    pick,
    sex,
    uniform,
    waiting,
)

_kernel = compiled()

_MOST_FACILITIES = 256

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@_kernel
def _household_type(partner: int, male: bool, family: int, minors: int, size: int) -> tuple[int, int]:
    """HHT and HHT2 from the partner's code (0 none), the sex of the householder, family, own minors and size."""
    relatives = family > 1
    other = (2 if male else 3) if relatives else (5 if male else 7)
    if partner == 21 or partner == 23:
        return 1, 1 if minors > 0 else 2
    if partner > 0:
        return other, 3 if minors > 0 else 4
    first = 9 if male else 5
    if size == 1:
        return (4 if male else 6), first
    if not relatives:
        return other, first + 3
    return other, first + 1 if minors > 0 else first + 2


@_kernel
def _tenure(c: Chances, hht2: int, age: int, race: int, hispanic: int, words: Words) -> int:
    band = 0
    while band + 2 < len(c.bands) and age >= c.bands[band + 1]:
        band += 1
    group = 7 if hispanic == 2 else min(race, 7) - 1
    if uniform(words) < c.own[hht2 - 1, band, group]:
        return 2 if uniform(words) < c.free_and_clear[band] else 1
    return 4 if uniform(words) < c.no_payment else 3


@_kernel
def describe_household(
    c: Chances, words: Words, o: DrawnPersons, p: int, n: int, units: DrawnUnits, u: int
) -> None:
    """Fill the codes of occupied housing unit `u` from its members."""
    partner = 0
    family = 0
    minors = 0
    for i in range(p, p + n):
        code = o.relship[i]
        if 21 <= code <= 24:
            partner = code
        if code == 20 or code == 21 or code == 23 or 25 <= code <= 33:
            family += 1
        if 25 <= code <= 27 and o.age[i] < 18:
            minors += 1
    hht, hht2 = _household_type(partner, o.sex[p] == 1, family, minors, n)
    units.hht[u] = hht
    units.hht2[u] = hht2
    units.cplt[u] = (
        1 if partner == 21 else 2 if partner == 23 else 3 if partner == 22 else 4 if partner == 24 else 5
    )
    units.npf[u] = family if family > 1 else 0
    units.race[u] = o.race[p]
    units.hispanic[u] = o.hispanic[p]
    units.tenure[u] = _tenure(c, hht2, o.age[p], o.race[p], o.hispanic[p], words)


@_kernel
def _blocks(c: Chances, persons: int, words: Words) -> tuple[_Floats, _Ints]:
    """Where each block of a tract ends, in persons, and its four-digit number."""
    blocks = max(1, persons // c.block_persons)
    groups = min(9, blocks, max(1, (persons + c.group_persons // 2) // c.group_persons))
    ends = np.empty(blocks)
    total = 0.0
    for b in range(blocks):
        total += (-math.log(1.0 - uniform(words))) ** 1.5
        ends[b] = total
    numbers = np.empty(blocks, np.int64)
    last = -1
    first = 0
    for b in range(blocks):
        ends[b] *= persons / total
        group = b * groups // blocks
        if group != last:
            first = b
        last = group
        numbers[b] = (group + 1) * 1000 + (b - first) % 1000
    return ends, numbers


@_kernel
def draw_facilities(c: Chances, persons: int, words: Words) -> tuple[_Ints, _Ints, _Floats, int]:
    """Kind, size and place (in persons, ascending) of the group quarters of a tract, and the persons left for homes.

    The quarters are the points of a Poisson process along the tract and take at most half of its persons.
    """
    kinds = np.empty(_MOST_FACILITIES, np.int64)
    sizes = np.empty(_MOST_FACILITIES, np.int64)
    places = np.empty(_MOST_FACILITIES)
    room = persons // 2
    homes = persons
    count = 0
    place = -math.log(1.0 - uniform(words)) / c.facilities
    while place < persons and room > 0 and count < _MOST_FACILITIES:
        kinds[count] = pick(c.facility, words)
        sizes[count] = min(room, 1 + waiting(c.facility_size[kinds[count]], words))
        places[count] = place
        room -= sizes[count]
        homes -= sizes[count]
        count += 1
        place -= math.log(1.0 - uniform(words)) / c.facilities
    return kinds[:count], sizes[:count], places[:count], homes


@_kernel
def draw_residents(
    c: Chances, home: Home, kind: int, words: Words, o: DrawnPersons, p: int, size: int
) -> None:
    """Draw the `size` residents of group quarters from person `p` on."""
    for i in range(p, p + size):
        years = waiting(c.facility_years[kind], words)
        o.age[i] = min(c.facility_ages[kind, 1], c.facility_ages[kind, 0] + years)
        o.relship[i] = c.facility_relship[kind]
        o.sex[i] = sex(c.facility_male[kind], words)
        draw_race(c, home, words, o, i)


@_kernel
def _place_unit(units: DrawnUnits, u: int, rtype: int, mafid: int, tract: int, block: int) -> None:
    units.rtype[u] = rtype
    units.mafid[u] = mafid
    units.tract[u] = tract
    units.block[u] = block


@_kernel
def _draw_tract(
    c: Chances, t: Tracts, index: int, words: Words, o: DrawnPersons, units: DrawnUnits, p: int, u: int
) -> tuple[int, int]:
    persons = t.persons[index]
    home = (t.state[index], t.dominant[index])
    words[0] = t.seed[index]
    ends, numbers = _blocks(c, persons, words)
    kinds, sizes, places, homes = draw_facilities(c, persons, words)
    mafid = t.first_mafid[index] - u
    block = facility = done = 0
    while done < persons:
        while block + 1 < len(ends) and done >= ends[block]:
            block += 1
        quarters = facility < len(sizes) and (homes == 0 or done >= places[facility])
        _place_unit(units, u, 4 if quarters else 2, mafid + u, index, numbers[block])
        if quarters:
            size = sizes[facility]
            draw_residents(c, home, kinds[facility], words, o, p, size)
            units.quarters[u] = 1 + kinds[facility]
            facility += 1
        else:
            size = draw_household(c, home, words, o, p, homes)
            describe_household(c, words, o, p, size, units, u)
            homes -= size
        units.pop[u] = size
        o.mafid[p : p + size] = mafid + u
        p += size
        done += size
        u += 1
        if not quarters and uniform(words) < t.vacancy[index]:
            _place_unit(units, u, 2, mafid + u, index, numbers[block])
            u += 1
    return p, u


@_kernel
def draw_tracts(c: Chances, t: Tracts, o: DrawnPersons, units: DrawnUnits) -> int:
    """Draw all tracts of `t` into zeroed arrays.

    Args:
        o: people, one row for every person of the tracts.
        units: units, two rows for every person of the tracts (the most that can be needed).
    """
    words = np.zeros(1, np.uint64)
    start = np.zeros(2, np.int64)  # literal zeros would compile everything once more
    p, u = start[0], start[1]
    for index in range(len(t.persons)):
        p, u = _draw_tract(c, t, index, words, o, units, p, u)
    return u
