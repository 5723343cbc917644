"""The spine of a run: the standard levels, states divided by American Indian areas, optimized; geounits that are passed over; how far areas off the spine are from it.

A spine is stored as nested cuts of the row of its blocks: of every level, the first block of each geounit.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import unpack_geocodes
from censafe.geography.grfc import NO_AIANNH, BlockAreas
from censafe.geography.spines.paths import LevelShares, RunSpine, check_path_sums, ranked_paths
from censafe.geography.spines.prim import (
    BLOCK_GROUP_UNIT,
    COUNTY_UNIT,
    PRIM_LEVELS,
    STATE_UNIT,
    STRONG_MCD_STATES,
    TRACT_UNIT,
    block_groups,
    joined_keys,
    prim_cuts,
    published_rules,
)
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model.arrays import Integers
from censafe.model.sparse import ExactHistograms, SparseLevel

Starts = NDArray[np.int64]


@dataclass(frozen=True)
class BypassRule:
    """When a parent is passed over.

    Args:
        pure: pure DP: a parent with several children is passed over, too, where that gives each child more accuracy.
        most_children: of the parent above, once a parent with several children is passed over.
    """

    pure: bool
    most_children: int = 150


def bypass(
    starts: Sequence[Starts], shares: Mapping[str, Sequence[Fraction]], rule: BypassRule | None
) -> tuple[tuple[Starts, ...], dict[str, tuple[LevelShares, ...]]]:
    """Move the budget of children to the level of their parent, from the lowest parents up.

    A parent with one child is always passed over; under pure DP also one of c children where the least share of a child
    is at least (c - 1) / 2 times its own and the parent above has few enough children afterwards. Every child of
    a parent that is passed over becomes a geounit of the parent's level with both shares, and its own only child with
    the share 0. A parent with several children is passed over only where the rule holds for every histogram.

    Returns:
        First blocks of the geounits by level, and of every histogram, the share of every geounit, one entry a level, root first.

    Source: 2020 production, optimized spine; path sums are equal by construction and checked by
        :func:`censafe.geography.spines.paths.check_path_sums`.

    Example:
        >>> cuts = [np.array([0]), np.array([0, 1]), np.array([0, 1, 2])]
        >>> _, moved = bypass(cuts, {"persons": [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]}, BypassRule(pure=False))
        >>> [[str(level.values[i]) for i in level.index] for level in moved["persons"]]
        [['1/2'], ['1/2', '1/3'], ['0', '1/6', '1/6']]
    """
    cuts = [np.asarray(cut, np.int64) for cut in starts]
    moved = {
        name: [
            LevelShares((share,), np.zeros(len(cut), np.int32)) for share, cut in zip(own, cuts, strict=True)
        ]
        for name, own in shares.items()
    }
    if rule is not None:
        for depth in range(len(cuts) - 2, -1, -1):
            passed = _passed_over(cuts, moved, depth, rule)
            if passed.any():
                _pass_over(cuts, moved, depth, passed)
    return tuple(cuts), {name: tuple(levels) for name, levels in moved.items()}


def _edges(cuts: Sequence[Starts], depth: int) -> NDArray[np.int64]:
    """First child of every geounit of a level, and one past the last child of the last."""
    return np.append(np.searchsorted(cuts[depth + 1], cuts[depth]), len(cuts[depth + 1]))


def _passed_over(
    cuts: Sequence[Starts], shares: Mapping[str, list[LevelShares]], depth: int, rule: BypassRule
) -> NDArray[np.bool_]:
    children = np.diff(_edges(cuts, depth))
    passed: NDArray[np.bool_] = children == 1
    if not rule.pure or depth == 0:
        return passed
    worth = ~passed
    for levels in shares.values():
        worth &= _worth_it(levels[depth], levels[depth + 1], _edges(cuts, depth))
    above = np.searchsorted(cuts[depth - 1], cuts[depth], side="right") - 1
    number = np.bincount(above)
    for parent in np.flatnonzero(worth).tolist():
        more = int(children[parent]) - 1
        if number[above[parent]] + more <= rule.most_children:
            number[above[parent]] += more
            passed[parent] = True
    return passed


def _worth_it(own: LevelShares, below: LevelShares, edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the least share of a parent's children is at least (children - 1) / 2 times its own."""
    order = sorted(range(len(below.values)), key=below.values.__getitem__)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    least = np.minimum.reduceat(rank[below.index], edges[:-1])
    cases, case = np.unique(np.stack([least, own.index, np.diff(edges)]), axis=1, return_inverse=True)
    worth = [
        below.values[order[low]] >= Fraction(children - 1, 2) * own.values[kind]
        for low, kind, children in cases.T.tolist()
    ]
    return np.array(worth, np.bool_)[case.reshape(-1)]


def _pass_over(
    cuts: list[Starts], shares: Mapping[str, list[LevelShares]], depth: int, passed: NDArray[np.bool_]
) -> None:
    """Give every child of the parents that are passed over a geounit of their level, and its share."""
    edges = _edges(cuts, depth)
    parent_of = np.repeat(np.arange(len(passed)), np.diff(edges))
    first = np.zeros(len(parent_of), np.bool_)
    first[edges[:-1]] = True
    moved = passed[parent_of]
    heads = np.flatnonzero(first | moved)  # the children that begin a geounit of the parents' level
    cuts[depth] = cuts[depth + 1][heads]
    for levels in shares.values():
        own, below = levels[depth], levels[depth + 1]
        pair = own.index[parent_of[heads]].astype(np.int64) * (len(below.values) + 1)
        pair += np.where(moved[heads], below.index[heads] + 1, 0)
        levels[depth] = _added(own.values, (Fraction(0), *below.values), pair)
        zero = np.where(moved, 0, below.index + 1).astype(np.int64)
        levels[depth + 1] = _added((Fraction(0),), (Fraction(0), *below.values), zero)


def _added(own: Sequence[Fraction], more: Sequence[Fraction], pair: NDArray[np.int64]) -> LevelShares:
    """Sums of two shares named by ``own position * len(more) + more position``, the largest value first."""
    pairs, place = ranked_paths(pair)
    sums = [own[p // len(more)] + more[p % len(more)] for p in pairs.tolist()]
    values = sorted(set(sums), reverse=True)
    position = np.array([values.index(value) for value in sums], np.int32)
    return LevelShares(tuple(values), position[place])


_COUNTIES = 1000
_UNCHANGED = 10_000  # a county that keeps its code has the digits 10 before it
_BLOCK_DIGITS = 16
_MOST_DIGITS = 19  # of a code that begins with a flag of 0 or 1


@dataclass(frozen=True)
class CodePart:
    """What a level adds to the code of its parent: digits of its own, then a running number."""

    name: str
    digits: int
    running: int
    first: int = 0


REDISTRICTING_PARTS = (
    CodePart("State", 3, 0),
    CodePart("County", 5, 1),
    CodePart("Tract", 0, 4),
    CodePart("Block_Group", 0, 2),
)
PRIM_PARTS = (
    CodePart("State", 3, 0),
    CodePart("County", 5, 0),
    CodePart("Prim", 0, 1, 1),
    CodePart("Tract_Subset_Group", 0, 1, 1),
    CodePart("Tract_Subset", 0, 1, 1),
    CodePart("Block_Group", 0, 1, 1),
)


@dataclass(frozen=True, eq=False)
class _Cut:
    """First blocks of the geounits of a level, their codes and the length of these."""

    starts: Integers = field(repr=False)
    codes: Integers = field(repr=False)
    digits: int


@dataclass(frozen=True, eq=False)
class PartedBlocks:
    """Blocks in the order of a parted spine, where the geounits of the levels of the run begin, and how their codes are made.

    Args:
        order: position in the standard order of every block.
        path: of every block, its 16 digits with the flag of the areas before them.
    """

    order: Integers = field(repr=False)
    starts: Mapping[str, Integers] = field(repr=False)
    path: Integers = field(repr=False)
    parts: tuple[CodePart, ...] = REDISTRICTING_PARTS
    notes: tuple[str, ...] = ()


def parents_of(above: Integers, starts: Integers) -> NDArray[np.int32]:
    """Position of the geounit that holds each geounit of a lower level, from the first blocks of both.

    Example:
        >>> parents_of(np.array([0, 4]), np.array([0, 2, 4, 9])).tolist()
        [0, 0, 1, 1]
    """
    return (np.searchsorted(above, starts, side="right") - 1).astype(np.int32)


def parted_spine(starts: Mapping[str, Integers], root: SpineLevel, parted: PartedBlocks) -> Spine:
    """The tree of cuts of blocks that are ordered by the flag of the areas first.

    Codes are those of the Census Bureau's noisy measurement files: flag 1, state 2, county 5, running numbers of the levels below,
    then the 16 digits of the block.
    """
    cuts = _part_cuts(starts, parted)
    names, places = tuple(starts), tuple(starts.values())
    levels = []
    for depth, (name, own) in enumerate(starts.items()):
        parent, edges = _links(places, depth)
        if name in cuts:
            cut = cuts[name]
            levels.append(SpineLevel(name, cut.digits, "", cut.codes, parent, edges))
        elif name != names[-1]:
            levels.append(SpineLevel(name, 0, root.constant, root.codes, parent, edges))
        else:
            above = cuts[parted.parts[-1].name]
            prefix = above.codes[parents_of(above.starts, own)]
            codes = parted.path % 10**_BLOCK_DIGITS
            levels.append(SpineLevel(name, _BLOCK_DIGITS, "", codes, parent, edges, prefix, above.digits))
    return Spine(tuple(levels))


def split_spine(standard: Spine, starts: Sequence[Integers]) -> Spine:
    """The standard tree after some of its geounits were split: these have a running number after their code."""
    levels = []
    for depth, level in enumerate(standard.levels):
        parent, edges = _links(starts, depth)
        own = level.codes[standard.ancestors(depth)[starts[depth]]]
        number = _running(np.zeros(len(own), np.int32), own)
        width, most = 0, int(number.max())
        while level.form.base**width <= most and most:
            width += 1
        codes, digits = own * level.form.base**width + number, level.digits + width
        levels.append(
            SpineLevel(level.name, digits, level.constant, codes, parent, edges, alphabet=level.alphabet)
        )
    return Spine(tuple(levels))


def _part_cuts(starts: Mapping[str, Integers], parted: PartedBlocks) -> dict[str, _Cut]:
    """Cuts and codes from the states down to the block groups, those above the root of the run included."""
    cuts: dict[str, _Cut] = {}
    above = _Cut(np.zeros(1, np.int64), np.zeros(1, np.int64), 0)
    units = {"State": STATE_UNIT, "County": COUNTY_UNIT, "Tract": TRACT_UNIT}
    for part in parted.parts:
        cut = starts.get(part.name)
        if cut is None:
            cut = _starts_of(parted.path // units.get(part.name, BLOCK_GROUP_UNIT))
        parent = parents_of(above.starts, cut)
        own = np.zeros(len(cut), np.int64)
        if part.name == "State":
            own = parted.path[cut] // STATE_UNIT
        elif part.name == "County":
            own = parted.path[cut] // COUNTY_UNIT % _COUNTIES + _UNCHANGED
        number = _running(parent, own) + part.first
        width = max(part.running, len(str(int(number.max()))) if number.any() else 0)
        digits = above.digits + part.digits + width
        if digits > _MOST_DIGITS:
            raise ValueError("the codes of a parted spine have more than 19 digits above the blocks")
        codes = (above.codes[parent] * 10**part.digits + own) * 10**width + number
        above = cuts[part.name] = _Cut(cut, codes, digits)
    return cuts


def _starts_of(keys: Integers) -> Integers:
    """First block of every geounit, from a key of each block that is not negative and changes where a geounit begins."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


def _running(parent: NDArray[np.int32], own: Integers) -> Integers:
    """Number, from 0, of every geounit among its neighbors of the same parent and code."""
    changed = np.ones(len(own), np.bool_)
    changed[1:] = (np.diff(parent) != 0) | (np.diff(own) != 0)
    place = np.arange(len(own))
    return place - np.maximum.accumulate(np.where(changed, place, 0))


def _links(starts: Sequence[Integers], depth: int) -> tuple[NDArray[np.int32], Integers]:
    """Parents and first children of the geounits of a level."""
    own = starts[depth]
    parent = np.full(len(own), -1, np.int32) if depth == 0 else parents_of(starts[depth - 1], own)
    if depth == len(starts) - 1:
        return parent, np.zeros(len(own) + 1, np.int64)
    below = starts[depth + 1]
    return parent, np.append(np.searchsorted(below, own), len(below)).astype(np.int64)


_NAMED = 5
_CODES = 10_000
_OUTSIDE, _INSIDE, _WRONG = 0, 1, 2


def inside_areas(aiannh: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which blocks lie in an area of a type that the spine of 2020 tells apart.

    Args:
        aiannh: AIANNHCE of every block, 9999 for none, shape (blocks,).

    Source: ranges of AIANNHCE by type of area, ``aiannh_types.csv``.

    Example:
        >>> inside_areas(np.array([10, 8500, 9100, 9999], np.int32)).tolist()
        [True, False, True, False]
    """
    types = _types()
    kind = types[np.clip(aiannh, 0, _CODES - 1)]
    wrong = (kind == _WRONG) | (aiannh < 0) | (aiannh >= _CODES)
    if wrong.any():
        codes = [f"{code:04d}" for code in np.unique(aiannh[wrong])[:_NAMED].tolist()]
        raise DataError(
            f"AIANNHCE: {int(wrong.sum())} blocks have codes of no type of area, such as {', '.join(codes)}; allowed: the ranges "
            "of aiannh_types.csv, or 9999 for none; fix: take the areas from GRF-C of the 2020 tabulation geography"
        )
    return np.asarray(kind == _INSIDE)


@cache
def _types() -> NDArray[np.int8]:
    """Of every code, whether it is outside or inside such an area, or no code of an area."""
    types = np.full(_CODES, _WRONG, np.int8)
    types[NO_AIANNH] = _OUTSIDE
    text = files("censafe.geography").joinpath("aiannh_types.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        codes = slice(int(row["aiannhce_from"]), int(row["aiannhce_to"]) + 1)
        types[codes] = _INSIDE if row["used_for_aian_spine_2020"] == "1" else _OUTSIDE
    return types


_Histograms = TypeVar("_Histograms", ExactHistograms, SparseLevel)


@dataclass(frozen=True)
class SpineChoice:
    """How the spine of a run is made.

    Args:
        name: ``standard``; ``aian``: states parted by American Indian, Alaska Native and Hawaiian areas; ``optimized``:
            these, with block groups that follow places and facilities; ``prim``: that of the DHC, with the levels
            :data:`censafe.geography.spines.prim.PRIM_LEVELS`.
        shares: of every histogram, the share of every level of the run, root first; their sum is what each path spends.
        fanout_cutoff: a tract of n blocks has optimized block groups of at most int(sqrt(n) + fanout_cutoff) + 1 blocks.
    """

    name: str
    bypass: BypassRule | None
    shares: Mapping[str, Sequence[Fraction]]
    fanout_cutoff: int = 12


def build_run_spine(
    standard: Spine,
    choice: SpineChoice,
    areas: BlockAreas | None = None,
    patterns: NDArray[np.integer] | None = None,
) -> RunSpine:
    """The spine of a run, with the share of every geounit and the proof that every path spends the same.

    Args:
        patterns: number that tells apart which kinds of group quarters a block has, shape (blocks,); optimized block groups
            hold blocks of one pattern; None where it plays no part.

    Example:
        >>> from censafe.geography.spines.tree import PL94_PR, build_spine
        >>> codes = np.array([440010001001000, 440010001001001]) * 10 + 1
        >>> areas = BlockAreas(codes, np.array([9999, 10]), np.array([99999, 99999]), np.array([1, 1]))
        >>> choice = SpineChoice("aian", None, {"persons": [Fraction(1, 5)] * 5})
        >>> parted = build_run_spine(build_spine(codes, PL94_PR), choice, areas)
        >>> parted.spine.levels[0].geounits.tolist(), parted.spine.levels[1].geounits.tolist()
        (['044', '144'], ['044100010', '144100010'])
    """
    parted = None
    if choice.name != "standard":
        blocks = standard.leaf.nodes
        pattern = np.zeros(blocks, np.int64) if patterns is None else patterns.astype(np.int64)
        part = _prim if choice.name == "prim" else _parted
        parted = part(standard, choice, _checked(standard, areas), pattern)
    starts = standard.starts if parted is None else tuple(parted.starts.values())
    starts, shares = bypass(starts, choice.shares, choice.bypass)
    if parted is not None:
        spine = parted_spine(dict(zip(parted.starts, starts, strict=True)), standard.levels[0], parted)
    elif any(len(cut) != level.nodes for cut, level in zip(starts, standard.levels, strict=True)):
        spine = split_spine(standard, starts)
    else:
        spine = standard
    for name, own in choice.shares.items():
        check_path_sums(spine, shares[name], sum(own, Fraction(0)))
    if parted is None:
        return RunSpine(choice.name, spine, standard, None, shares)
    return RunSpine(choice.name, spine, standard, parted.order, shares, parted.notes)


def standard_levels(run: RunSpine, levels: Sequence[_Histograms], cells: int) -> tuple[_Histograms, ...]:
    """Histograms of the standard levels, from those of the blocks of a run: what is published."""
    if run.spine is run.standard:
        return tuple(levels)
    blocks = levels[-1]
    if run.order is not None:
        back = np.empty_like(run.order)
        back[run.order] = np.arange(len(back))
        blocks = reordered(blocks, back, run.standard.leaf.geounits)
    else:  # the same order, under codes of another spine
        blocks = type(blocks)(run.standard.leaf.geounits, blocks.node_ptr, blocks.cell, blocks.count)
    return sum_histograms(run.standard, blocks, cells)


def _checked(standard: Spine, areas: BlockAreas | None) -> BlockAreas:
    """The areas, if they are those of the blocks."""
    if areas is None:
        raise DataError(
            "areas: the input does not say in which American Indian area, place and county subdivision its blocks are, which "
            "this spine needs; fix: give the columns or GRF-C beside the input, or --set spine=standard"
        )
    codes = standard.leaf.codes
    if not np.array_equal(areas.codes, codes):
        missing = np.setdiff1d(codes, areas.codes)
        foreign = np.setdiff1d(areas.codes, codes)
        named = unpack_geocodes(np.append(missing, foreign)[:_NAMED], _BLOCK_DIGITS).tolist()
        raise DataError(
            f"areas: {len(missing)} blocks of the data have no areas and {len(foreign)} blocks with areas are not in the "
            f"data, such as {', '.join(named)}; fix: give areas for exactly the blocks of the unit file"
        )
    return areas


def _parted(standard: Spine, choice: SpineChoice, areas: BlockAreas, pattern: Integers) -> PartedBlocks:
    """The standard levels within parted states, with block groups of their own where these are needed."""
    inside = inside_areas(areas.aiannh)
    order = np.argsort(inside, kind="stable").astype(np.int64)
    path = _paths(areas.codes, inside, order)
    if choice.name == "optimized":
        aiannh = np.where(inside, areas.aiannh, NO_AIANNH)[order]
        # off-spine entity: the county subdivision in states of strong minor civil divisions, outside the areas; else the place
        strong = np.isin(path % 10**_BLOCK_DIGITS // STATE_UNIT, STRONG_MCD_STATES) & (aiannh == NO_AIANNH)
        entity = np.where(strong, areas.cousub[order], areas.place[order])
        keys = joined_keys([entity, aiannh, pattern[order]])
        within, groups = block_groups(_starts_of(path // TRACT_UNIT), keys, choice.fanout_cutoff)
        order, path = order[within], path[within]
    else:
        groups = _starts_of(path // BLOCK_GROUP_UNIT)
    levels = {
        "US": np.zeros(1, np.int64),
        "State": _starts_of(path // STATE_UNIT),
        "County": _starts_of(path // COUNTY_UNIT),
        "Tract": _starts_of(path // TRACT_UNIT),
        "Block_Group": groups,
        "Block": np.arange(len(order), dtype=np.int64),
    }
    return PartedBlocks(order, {name: levels[name] for name in standard.names}, path)


def _prim(standard: Spine, choice: SpineChoice, areas: BlockAreas, pattern: Integers) -> PartedBlocks:
    """The levels of the DHC from the root of the standard tree down."""
    root = published_rules(standard.names[0])[0].name
    inside = inside_areas(areas.aiannh)
    order, cuts, notes = prim_cuts(areas, inside, pattern, choice.fanout_cutoff)
    levels = {"US": np.zeros(1, np.int64), **cuts}
    starts = {name: levels[name] for name in PRIM_LEVELS[PRIM_LEVELS.index(root) :]}
    return PartedBlocks(order, starts, _paths(areas.codes, inside, order), PRIM_PARTS, notes)


def _paths(codes: Integers, inside: NDArray[np.bool_], order: Integers) -> Integers:
    """Codes of the blocks in another order, with the flag of the areas before them."""
    return codes[order] + inside[order].astype(np.int64) * 10**_BLOCK_DIGITS


def entity_distances(spine: Spine, entity: NDArray[np.integer]) -> tuple[Integers, Integers]:
    """Distance of every area from the spine.

    At a block, an area costs 1 where the block is in it and its complement 1 where it is not. At a parent, both are
    the sum over the children, or one more than the sum of the other: the parent itself, less what does not belong.

    Args:
        entity: area of every block, in the order of the tree, -1 for none, shape (blocks,).

    Returns:
        The areas in rising order, and the distance of each, both int64, shape (areas,).

    Source: off-spine entity distance of the 2020 production spine.

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> rules = (LevelRule("US", 0), LevelRule("Tract", 1), LevelRule("Block", 2))
        >>> spine = build_spine(np.array(["10", "11", "12", "13", "20"]), rules)
        >>> areas, distances = entity_distances(spine, np.array([5, 5, 5, -1, 8]))
        >>> areas.tolist(), distances.tolist()  # tract 1 less one block; tract 2
        ([5, 8], [2, 1])
    """
    areas, place = np.unique(entity, return_inverse=True)
    first = int(np.searchsorted(areas, 0))
    node = np.flatnonzero(entity >= 0)
    area = place[node].astype(np.int64) - first
    areas = areas[first:].astype(np.int64)
    inside, outside = np.ones(len(node), np.int64), np.zeros(len(node), np.int64)
    for above, level in zip(spine.levels[-2::-1], spine.levels[:0:-1], strict=True):
        key = level.parent[node].astype(np.int64) * max(len(areas), 1) + area
        keys, group = np.unique(key, return_inverse=True)
        node, area = np.divmod(keys, max(len(areas), 1))
        # children that do not meet the area cost nothing inside and one each outside
        others = np.diff(above.first_child)[node] - np.bincount(group, minlength=len(keys))
        sum_in, sum_out = np.zeros(len(keys), np.int64), others.astype(np.int64)
        np.add.at(sum_in, group, inside)
        np.add.at(sum_out, group, outside)
        inside, outside = np.minimum(sum_in, sum_out + 1), np.minimum(sum_out, sum_in + 1)
    distances = np.zeros(len(areas), np.int64)
    np.add.at(distances, area, inside)
    return areas, distances
