"""The spine of the DHC: counties in parts by county subdivision and place (Prim), subsets of tracts, block groups that follow areas.

Blocks are ordered by nested keys and geounits begin where a key changes: sorting and differences, whatever the number of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import NO_AIANNH, NO_PLACE, BlockAreas
from censafe.geography.spines.tree import PL94_US, LevelRule
from censafe.model.arrays import Flags, Integers

_NUMBERS = 1 << 62
STATE_UNIT, COUNTY_UNIT, TRACT_UNIT, BLOCK_GROUP_UNIT = 10**14, 10**11, 10**5, 10**4
"""What is left of the 16 digits of a block, divided by one of these, is the code of its state, county, tract or block group."""
STRONG_MCD_STATES: Final = (9, 23, 25, 26, 27, 33, 34, 36, 42, 44, 50, 55)


def joined_keys(keys: Sequence[Integers]) -> Integers:
    """One number for several keys: equal where all keys are, and in their order, the first key deciding first.

    Args:
        keys: one or more, each int64 of shape (blocks,).

    Returns:
        int64, shape (blocks,), not negative.

    Example:
        >>> joined_keys([np.array([7, 7, 2]), np.array([-1, 5, 5])]).tolist()
        [35, 41, 6]
    """
    joined = np.zeros(len(keys[0]), np.int64)
    if not len(joined):
        return joined
    size = 1
    for key in keys:
        low, span = int(key.min()), int(key.max()) - int(key.min()) + 1
        own = key.astype(np.int64) - low if span < _NUMBERS else key
        if span * size >= _NUMBERS:
            own, span = _ranks(own)
        if span * size >= _NUMBERS:
            joined, size = _ranks(joined)
        if span * size >= _NUMBERS:
            raise ValueError("the keys have more combinations than numbers of 64 bits")
        joined, size = joined * span + own, size * span
    return joined


def _ranks(values: Integers) -> tuple[Integers, int]:
    distinct, rank = np.unique(values, return_inverse=True)
    return rank.reshape(-1).astype(np.int64), len(distinct)


def nested_order(keys: Sequence[Integers]) -> tuple[Integers, tuple[Integers, ...]]:
    """Blocks sorted by keys, each of which parts what those before it hold together.

    Args:
        keys: the widest first, each int64 of shape (blocks,). Blocks of equal keys keep their order.

    Returns:
        Position of every block of the new order in the old one, shape (blocks,), and for every key the first blocks of its
        geounits in the new order, rising.

    Example:
        >>> order, (wide, narrow) = nested_order([np.array([2, 1, 2, 2]), np.array([5, 5, 3, 5])])
        >>> order.tolist(), wide.tolist(), narrow.tolist()
        ([1, 2, 0, 3], [0, 1], [0, 1, 2])
    """
    order = np.argsort(joined_keys(keys), kind="stable").astype(np.int64)
    starts = []
    begins = np.zeros(len(order), np.bool_)
    for key in keys:
        own = key[order]
        begins[1:] |= own[1:] != own[:-1]
        begins[:1] = True
        starts.append(np.flatnonzero(begins))
    return order, tuple(starts)


def fanout_limits(sizes: Integers, cutoff: int) -> Integers:
    """Most members of a run: int(sqrt(size) + cutoff + 1).

    Example:
        >>> fanout_limits(np.array([1, 9, 10, 100]), 12).tolist()
        [14, 16, 16, 23]
    """
    return np.floor(np.sqrt(sizes) + cutoff).astype(np.int64) + 1


def runs(groups: Integers, members: int, most: Integers) -> Integers:
    """Where runs begin when every group is cut into runs of at most so many neighbors, all full but the last.

    Args:
        groups: first member of every group, rising from 0, shape (groups,).
        most: members of a run, shape (groups,).

    Example:
        >>> runs(np.array([0, 5]), 7, np.array([2, 3])).tolist()
        [0, 2, 4, 5]
    """
    sizes = np.diff(groups, append=members)
    within = np.arange(members, dtype=np.int64) - np.repeat(groups, sizes)
    return np.flatnonzero(within % np.repeat(most, sizes) == 0)


def block_groups(tracts: Integers, keys: Integers, fanout_cutoff: int) -> tuple[Integers, Integers]:
    """Order of the blocks that puts those of a tract with one key next to each other, and where their groups begin in it.

    A group is cut into runs of at most int(sqrt(blocks of the tract) + fanout_cutoff) + 1 blocks, in the order of the blocks.

    Args:
        tracts: first block of every tract, rising from 0.
        keys: of every block, shape (blocks,).

    Source: optimized spine of the 2020 redistricting production.

    Example:
        >>> order, starts = block_groups(np.array([0]), np.array([7, 3, 7, 3, 3]), 0)
        >>> order.tolist(), starts.tolist()
        ([1, 3, 4, 0, 2], [0, 3])
    """
    sizes = np.diff(tracts, append=len(keys))
    tract = np.repeat(np.arange(len(tracts), dtype=np.int64), sizes)
    order, (_, alike) = nested_order([tract, keys])
    limits = fanout_limits(sizes, fanout_cutoff)[tract[alike]]
    return order, runs(alike, len(order), limits)


PRIM_LEVELS: Final = (
    "US", "State", "County", "Prim", "Tract_Subset_Group", "Tract_Subset", "Block_Group", "Block",
)  # fmt: skip
"""Names of the levels of the spine; a run of one state or of Puerto Rico has no US."""

GUESSED: Final = (
    "The input has no functional status of places and county subdivisions and no crosswalk to Prims: a Prim is a county, by place "
    "everywhere and by county subdivision in the states where these govern."
)
NO_DISTRICTS: Final = "The input has no school districts: block groups do not follow any."
"""What a run says of its spine where the input lacks columns."""

MAJOR_KINDS: Final = (
    tuple(range(1, 7)), tuple(range(7, 10)), (10,), tuple(range(11, 16)), (16,), (17, 18), tuple(range(19, 25)),
)  # fmt: skip
"""The seven major kinds among the 25 kinds of units of the DHC, of which kind 0 are housing units."""

_NONE: Final = NO_PLACE
_PUERTO_RICO: Final = 72
_SUBDIVISIONS: Final = ("A", "B", "C")
_PLACES: Final = ("A", "B", "F")
# consolidated and other governments that the status of their place does not show
_NAMED_PLACES: Final = ((22, 36255), (11, 50000), (15, 71550), (20, 71450))
_FIVE: Final = 100_000


def facility_patterns(
    facilities: NDArray[np.integer], kinds: Sequence[Sequence[int]] = MAJOR_KINDS
) -> Integers:
    """Which major kinds of group quarters every block has, one bit each, the first kind the highest.

    Args:
        facilities: counts of units by kind, shape (blocks, kinds of units).

    Example:
        >>> units = np.zeros((3, 25), np.int64)
        >>> units[0, [0, 6]], units[1, [24, 10]] = 1, 2
        >>> facility_patterns(units).tolist()
        [64, 17, 0]
    """
    patterns = np.zeros(len(facilities), np.int64)
    for columns in kinds:
        patterns = patterns * 2 + (facilities[:, list(columns)] > 0).any(axis=1)
    return patterns


def published_rules(root: str) -> tuple[LevelRule, ...]:
    """The standard levels of a run on this spine, under which everything is published: those of the redistricting data.

    Example:
        >>> [rule.name for rule in published_rules("State")]
        ['State', 'County', 'Tract', 'Block_Group', 'Block']
    """
    if root not in PRIM_LEVELS[:3]:
        raise ValueError(f"the spine prim starts at {', '.join(PRIM_LEVELS[:3])}, not at {root}")
    return PL94_US[PRIM_LEVELS.index(root) :]


def prim_keys(
    codes: Integers,
    place: NDArray[np.integer],
    place_status: NDArray[np.str_],
    cousub: NDArray[np.integer],
    cousub_status: NDArray[np.str_],
) -> Integers:
    """Prim of every block by the rule of the 2020 production: state 2, county 3, county subdivision 5, place 5 digits.

    The county subdivision counts in counties where any county subdivision has the functional status A, B or C. The place
    counts where its status is A, B or F, and in four named places. In Puerto Rico neither counts.

    Args:
        codes: geocodes of 16 digits as numbers, shape (blocks,). The blocks must be all of their counties, because one block
            decides whether the county subdivisions of its county count.
        place: 99999 for none, shape (blocks,).
        place_status: functional status of the place, one capital letter, blank for none, shape (blocks,).
        cousub: county subdivision, 99999 for none, shape (blocks,).
        cousub_status: as that of the place.

    Source: 2020 production of the DHC, primitive geounits from GRF-C.

    Example:
        >>> codes = np.array([44, 48, 48, 72]) * 10**14 + 10**11
        >>> place, status = np.array([7, 7, 99999, 7]), np.array(["S", "A", "", "A"])
        >>> prim_keys(codes, place, status, np.array([5, 5, 5, 5]), np.array(["A", "S", "S", "A"])).tolist()
        [440010000599999, 480019999900007, 480019999999999, 720019999999999]
    """
    county = codes // COUNTY_UNIT
    governed = np.unique(county[np.isin(cousub_status, _SUBDIVISIONS)])
    named = np.zeros(len(codes), np.bool_)
    for state, code in _NAMED_PLACES:
        named |= (codes // STATE_UNIT == state) & (place == code)
    return _keys(codes, place, cousub, np.isin(county, governed), named | np.isin(place_status, _PLACES))


def guessed_prim_keys(codes: Integers, place: NDArray[np.integer], cousub: NDArray[np.integer]) -> Integers:
    """The same without functional status: all places count, and county subdivisions in the states where they govern.

    Example:
        >>> codes = np.array([44, 48]) * 10**14 + 10**11
        >>> guessed_prim_keys(codes, np.array([7, 7]), np.array([5, 5])).tolist()
        [440010000500007, 480019999900007]
    """
    strong = np.isin(codes // STATE_UNIT, STRONG_MCD_STATES)
    return _keys(codes, place, cousub, strong, np.ones(len(codes), np.bool_))


def _keys(
    codes: Integers, place: NDArray[np.integer], cousub: NDArray[np.integer], subdivided: Flags, placed: Flags
) -> Integers:
    mainland = codes // STATE_UNIT != _PUERTO_RICO
    subdivision = np.where(subdivided & mainland, cousub, _NONE).astype(np.int64)
    own = np.where(placed & mainland, place, _NONE).astype(np.int64)
    return (codes // COUNTY_UNIT * _FIVE + subdivision) * _FIVE + own


def prim_cuts(
    areas: BlockAreas, inside: Flags, pattern: Integers, fanout_cutoff: int
) -> tuple[Integers, dict[str, Integers], tuple[str, ...]]:
    """Cut blocks into half states, counties, Prims, tract-subset groups, tract subsets and block groups.

    A tract subset is a tract inside a Prim. Tract subsets of a Prim are put together, in the order of their tracts, in runs of at
    most int(sqrt(tract subsets of the Prim) + fanout_cutoff + 1). Blocks of a tract subset that agree in area, kinds of group
    quarters, school districts and block group are put together in runs of at most int(sqrt(blocks of the tract subset) +
    fanout_cutoff + 1). No areas off the spine are weighed against each other here.

    Args:
        inside: whether a block is in an area of a type that parts its state, shape (blocks,).
        pattern: which major kinds of group quarters a block has, one bit each, the first kind the highest, shape (blocks,).

    Returns:
        Position in the order of the geocodes of every block of the new order, shape (blocks,); by name of the level, its first
        blocks in the new order, rising; and in sentences where the keys of the blocks come from.

    Source: 2020 production of the DHC, Prim branch of the optimized spine.

    Example:
        >>> codes = np.array([440010001001000, 440010001001001, 440010002001000]) * 10 + 1
        >>> zero, inside = np.zeros(3, np.int64), np.array([False, True, False])
        >>> areas = BlockAreas(codes, zero, zero, zero, {"prim": zero, "districts": zero})
        >>> order, starts, *_ = prim_cuts(areas, inside, zero, 12)
        >>> order.tolist(), starts["Tract_Subset"].tolist()
        ([0, 2, 1], [0, 1, 2])
    """
    codes, notes = areas.codes, list(areas.notes)
    prim, districts = areas.keys.get("prim"), areas.keys.get("districts")
    if prim is None:
        prim = guessed_prim_keys(codes, areas.place, areas.cousub)
        notes.append(GUESSED)
    if districts is None:
        districts = np.zeros(len(codes), np.int64)
        notes.append(NO_DISTRICTS)
    aiannh = np.where(inside, areas.aiannh, NO_AIANNH).astype(np.int64)
    wide = [inside * 100 + codes // STATE_UNIT, codes // COUNTY_UNIT % 1000, prim, codes // TRACT_UNIT]
    order, (states, counties, prims, subsets) = nested_order(wide)
    firsts = np.searchsorted(subsets, prims).astype(np.int64)
    sizes = np.diff(firsts, append=len(subsets))
    subset_groups = subsets[runs(firsts, len(subsets), fanout_limits(sizes, fanout_cutoff))]
    keys = joined_keys([aiannh, pattern, districts, codes // BLOCK_GROUP_UNIT % 10])
    within, groups = block_groups(subsets, keys[order], fanout_cutoff)
    starts = {
        "State": states, "County": counties, "Prim": prims, "Tract_Subset_Group": subset_groups, "Tract_Subset": subsets,
        "Block_Group": groups, "Block": np.arange(len(order), dtype=np.int64),
    }  # fmt: skip
    return order[within], starts, tuple(notes)
