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

_OLDEST_CHILD = 89  # by the Bureau's edit rules

Home = tuple[int, int]
"""Row of the state, and the group that is more frequent in the tract."""
_Members = tuple[int, int, int]  # first person of the household, members so far, most members


@_kernel
def draw_race(c: Chances, home: Home, words: Words, o: DrawnPersons, i: int) -> None:
    """Race and Hispanic origin of person `i`."""
    state, dominant = home
    group = dominant if uniform(words) < c.dominant else pick(c.group[state], words)
    o.hispanic[i] = 2 if group == 7 else 1
    if group < 6:
        o.race[i] = group + 1
    elif group == 6:
        o.race[i] = 1 + pick(c.races[0], words)
    else:
        o.race[i] = 1 + pick(c.races[c.hispanic_row[state]], words)


@_kernel
def _kin_race(c: Chances, home: Home, other: float, words: Words, o: DrawnPersons, i: int, of: int) -> None:
    if uniform(words) < other:
        draw_race(c, home, words, o, i)
    else:
        o.race[i] = o.race[of]
        o.hispanic[i] = o.hispanic[of]


@_kernel
def _householder(c: Chances, kind: int, words: Words, o: DrawnPersons, p: int) -> None:
    band = pick(c.head_age[kind], words)
    low = c.bands[band]
    high = c.bands[band + 1]
    if band == 0 and c.least[kind] == 1 and uniform(words) < c.minor_head:
        age = 15 + int(uniform(words) * 3)
    elif band == len(c.bands) - 2:
        age = min(high - 1, low + waiting(4.0, words))
    else:
        age = low + int(uniform(words) * (high - low))
    o.age[p] = age
    o.relship[p] = 20
    if kind < 4:
        o.sex[p] = sex(c.male_head, words)
    else:
        o.sex[p] = 2 if kind < 8 else 1


@_kernel
def _partner(c: Chances, kind: int, words: Words, o: DrawnPersons, p: int) -> None:
    married = kind < 2
    same = uniform(words) < c.same_sex[0 if married else 1]
    o.relship[p + 1] = (23 if same else 21) if married else (24 if same else 22)
    o.sex[p + 1] = o.sex[p] if same else 3 - o.sex[p]
    years = (uniform(words) + uniform(words) + uniform(words) - 1.5) * 9.0
    older = 0.0 if same else (2.0 if o.sex[p + 1] == 1 else -2.0)
    o.age[p + 1] = min(105, max(18, int(o.age[p] + years + older)))


@_kernel
def _youngest_parent(kind: int, o: DrawnPersons, p: int) -> int:
    return min(o.age[p], o.age[p + 1]) if kind < 4 else o.age[p]


@_kernel
def _minor_age(parent: int, words: Words) -> int:
    for _ in range(6):
        age = parent - int(17.0 + (uniform(words) + uniform(words)) * 12.0)
        if 0 <= age < 18:
            return age
    high = min(17, parent - 15)
    low = max(0, min(high, parent - 45))
    return low + int(uniform(words) * (high - low + 1))


@_kernel
def _youngest_child(o: DrawnPersons, p: int) -> int:
    """The age that the Bureau's edit rules ask of an own child of householder `p`."""
    if o.age[p] >= 75:
        return 18 if o.sex[p] == 2 else 6
    return 6 if o.age[p] >= 60 and o.sex[p] == 2 else 0


@_kernel
def _child_race(c: Chances, home: Home, kind: int, words: Words, o: DrawnPersons, p: int, i: int) -> None:
    of = p + 1 if kind < 4 and uniform(words) < 0.5 else p
    _kin_race(c, home, c.kin_other, words, o, i, of)
    if kind < 4 and o.race[p] != o.race[p + 1] and uniform(words) < c.combined:
        o.race[i] = c.code[c.mask[o.race[p]] | c.mask[o.race[p + 1]]]


@_kernel
def _minors(
    c: Chances, home: Home, kind: int, words: Words, o: DrawnPersons, p: int, n: int, room: int
) -> int:
    remaining = 1 + pick(c.minors, words)
    parent = _youngest_parent(kind, o, p)
    while remaining > 0 and n < room:
        i = p + n
        code = 25 + pick(c.own_minor, words)
        o.relship[i] = 25 if code == 27 and kind >= 4 else code
        o.age[i] = max(_minor_age(parent, words), _youngest_child(o, p))
        o.sex[i] = sex(0.512, words)
        _child_race(c, home, kind, words, o, p, i)
        n += 1
        remaining -= 1
    return n


@_kernel
def _possible(code: int, head: int, parent: int, kind: int) -> int:
    """The relationship itself where the ages allow it, else a sibling or another relative."""
    if code <= 27:
        if parent < 33:
            return 28
        return 25 if code == 27 and kind >= 4 else code
    if code == 29 or code == 31:
        return 28 if head > 70 else (29 if kind >= 4 else code)
    if (code == 30 and head < 36) or (code == 32 and head < 38):
        return 33
    return code


@_kernel
def _relative_age(code: int, head: int, parent: int, words: Words) -> int:
    if code <= 27:
        return min(_OLDEST_CHILD, parent - 15, 18 + waiting(9.0, words))
    if code == 28:
        return max(0, min(100, head + int((uniform(words) - 0.5) * 20.0)))
    if code == 29 or code == 31:
        return head + 18 + int(uniform(words) * 20.0)
    if code == 30:
        return int(uniform(words) * min(22, head - 32))
    if code == 32:
        return min(head - 15, 20 + int(uniform(words) * 20.0))
    return 12 + int(uniform(words) * 65.0)


@_kernel
def _relative(c: Chances, kind: int, words: Words, o: DrawnPersons, p: int, i: int) -> None:
    head = o.age[p]
    parent = _youngest_parent(kind, o, p)
    row = 0 if head < 35 else (1 if head < 55 else 2)
    code = _possible(25 + pick(c.relatives[row], words), head, parent, kind)
    o.relship[i] = code
    o.age[i] = _relative_age(code, head, parent, words)
    o.sex[i] = sex(0.49, words)


@_kernel
def _nonrelative(c: Chances, words: Words, o: DrawnPersons, p: int, i: int) -> None:
    head = o.age[p]
    code = 34 + pick(c.nonrelatives, words)
    if code == 35 and head < 25:
        code = 34
    o.relship[i] = code
    if code == 34:
        o.age[i] = max(16, min(100, head + int((uniform(words) - 0.5) * 16.0)))
    else:
        o.age[i] = int(uniform(words) * 18.0) if code == 35 else 12 + int(uniform(words) * 58.0)
    o.sex[i] = sex(0.53, words)


@_kernel
def _others(
    c: Chances,
    home: Home,
    kind: int,
    words: Words,
    o: DrawnPersons,
    members: _Members,
    more: float,
    related: bool,
) -> int:
    """Draw further relatives, or nonrelatives, each with chance `more`; how many members there are then."""
    p, n, room = members
    needed = (kind == 6 or kind == 10) if related else (kind == 7 or kind == 11)
    other = c.kin_other if related else 1.0 - c.nonrelative_same
    while n < room and (needed or uniform(words) < more):
        i = p + n
        if related:
            _relative(c, kind, words, o, p, i)
        else:
            _nonrelative(c, words, o, p, i)
        _kin_race(c, home, other, words, o, i, p)
        needed = False
        n += 1
    return n


@_kernel
def draw_household(c: Chances, home: Home, words: Words, o: DrawnPersons, p: int, room: int) -> int:
    """Draw the members from person `p` on, at most `room`; how many there are."""
    kind = pick(c.kind, words)
    room = min(room, c.largest)
    if room < c.least[kind]:
        kind = 4 if kind < 8 else 8
    _householder(c, kind, words, o, p)
    draw_race(c, home, words, o, p)
    if kind == 4 or kind == 8:
        return 1
    n = 1
    if kind < 4:
        _partner(c, kind, words, o, p)
        _kin_race(c, home, c.spouse_other, words, o, p + 1, p)
        n = 2
    crowded = uniform(words) < c.crowded
    if kind == 0 or kind == 2 or kind == 5 or kind == 9:
        n = _minors(c, home, kind, words, o, p, n, room)
    more = c.crowded_more if crowded and c.more_relatives[kind] > 0.0 else c.more_relatives[kind]
    n = _others(c, home, kind, words, o, (p, n, room), more, True)
    more = c.crowded_more if crowded else c.more_nonrelatives[kind]
    return _others(c, home, kind, words, o, (p, n, room), more, False)


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
