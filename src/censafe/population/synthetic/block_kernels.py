"""Compiled kernels that draw the histograms of the blocks of a tract, household by household, without keeping persons.

Every tract is drawn from its own stream of random words, so the result does not depend on how tracts are spread over
files. Members of a household mostly share race and origin, which makes blocks as uneven as real ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.synthetic.structures import Words, pick, uniform, waiting

_kernel = compiled()

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Counts = NDArray[np.int32]
_Home = tuple[int, int]  # row of the state, and the group that is more frequent in the tract


class BlockChances(NamedTuple):
    """Everything random that does not depend on the place."""

    group: _Floats  # (states, 8) cumulative shares of the eight race and origin groups
    races: _Floats  # (3, 63) cumulative shares: multiple not Hispanic, Hispanic, Hispanic in Puerto Rico
    hispanic_row: _Ints  # (states,) row of `races`
    dominant: float  # probability that a household is of its tract's group rather than of the state's mix
    kin_other: float  # probability that a member's race is drawn anew
    size: _Floats  # (7,) cumulative shares of households of 1 to 7 persons
    minor: _Floats  # (7,) probability that a member but the first is under 18
    large_more: float
    facilities: float  # expected facilities per person
    facility: _Floats  # cumulative shares of kinds among facilities
    facility_size: _Floats
    facility_level: _Ints  # level of hhgq of every kind
    race_level: _Ints  # (63,) level of race of every race code
    race_levels: int
    inhabited: float  # mean of the persons of a block that has any
    empty: float  # probability of an empty block before one with somebody
    group_persons: int  # persons of a block group


class TractColumns(NamedTuple):
    """One entry a tract."""

    state: _Ints
    persons: _Ints
    seed: NDArray[np.uint64]
    dominant: _Ints
    vacancy: _Floats  # vacant units per occupied unit


class DrawnBlocks(NamedTuple):
    """What a kernel fills: one entry a block, and one entry a person (sorted by cell within a block)."""

    tract: _Counts
    group: _Counts  # block group of the tract, from 1
    units: _Counts  # (blocks, 8) occupied housing units, then facilities by level of hhgq
    vacant: _Counts
    end: _Ints  # one past the last person of the block
    cell: _Counts


@_kernel
def _origin_race(c: BlockChances, home: _Home, words: Words) -> int:
    """Hispanic origin and race level, flattened."""
    state, dominant = home
    group = dominant if uniform(words) < c.dominant else pick(c.group[state], words)
    if group < 6:
        return c.race_level[group]
    if group == 6:
        return c.race_level[pick(c.races[0], words)]
    return c.race_levels + c.race_level[pick(c.races[c.hispanic_row[state]], words)]


@_kernel
def _household(c: BlockChances, home: _Home, room: int, words: Words, cell: _Counts, place: int) -> int:
    """Persons of one household, at most `room` of them; where the next person goes."""
    size = 1 + pick(c.size, words)
    minor = c.minor[size - 1]
    if size == 7:
        size += waiting(c.large_more, words)
    size = min(size, room)
    width = 2 * c.race_levels
    shared = _origin_race(c, home, words)
    for member in range(size):
        own = _origin_race(c, home, words) if member and uniform(words) < c.kin_other else shared
        adult = 0 if member and uniform(words) < minor else 1
        cell[place + member] = adult * width + own
    return place + size


@_kernel
def _facility(
    c: BlockChances, home: _Home, room: int, words: Words, cell: _Counts, place: int, units: _Counts
) -> int:
    """Adults of one facility, at most `room` of them; where the next person goes."""
    kind = pick(c.facility, words)
    level = c.facility_level[kind]
    size = min(1 + waiting(c.facility_size[kind], words), room)
    width = 2 * c.race_levels
    for member in range(size):
        cell[place + member] = (level * 2 + 1) * width + _origin_race(c, home, words)
    units[level] += 1
    return place + size


@_kernel
def _block(
    c: BlockChances, home: _Home, vacancy: float, limit: int, words: Words, o: DrawnBlocks, b: int, place: int
) -> int:
    """Facilities, then households, of a block with at least one person; where the next person goes."""
    persons = min(1 + waiting(c.inhabited, words), limit - place)
    for _ in range(math.floor(c.facilities * persons + uniform(words))):
        if place < limit:
            place = _facility(c, home, limit - place, words, o.cell, place, o.units[b])
    stop = min(place + persons, limit)
    while place < stop:
        place = _household(c, home, stop - place, words, o.cell, place)
        o.units[b, 0] += 1
        o.vacant[b] += math.floor(vacancy + uniform(words))
    return place


@_kernel
def _sort(cells: _Counts, counts: _Ints) -> None:
    """Put the cells of a block in order; those of many persons by counting."""
    if len(cells) < len(counts):
        cells.sort()
        return
    for cell in cells:
        counts[cell] += 1
    place = 0
    for cell in range(len(counts)):
        for _ in range(counts[cell]):
            cells[place] = cell
            place += 1
        counts[cell] = 0


@_kernel
def draw_blocks(c: BlockChances, t: TractColumns, o: DrawnBlocks) -> int:
    """Draw the blocks of all tracts; the number of blocks."""
    b = 0
    place = 0
    counts = np.zeros(o.units.shape[1] * 4 * c.race_levels, np.int64)  # one entry a cell
    for tract in range(len(t.persons)):
        words = np.array([t.seed[tract]], np.uint64)
        home = (t.state[tract], t.dominant[tract])
        persons = t.persons[tract]
        groups = min(9, max(1, (persons + c.group_persons // 2) // c.group_persons))
        first = place
        while place < first + persons:
            group = 1 + (place - first) * groups // persons
            if uniform(words) < c.empty:
                o.tract[b], o.group[b], o.end[b] = tract, group, place
                b += 1
            start = place
            place = _block(c, home, t.vacancy[tract], first + persons, words, o, b, place)
            _sort(o.cell[start:place], counts)
            o.tract[b], o.group[b], o.end[b] = tract, group, place
            b += 1
    return b
