"""The spine of the DHC made slowly: blocks one by one, dictionaries and texts, from the rules of the specification."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

LEVELS = ("US", "State", "County", "Prim", "Tract_Subset_Group", "Tract_Subset", "Block_Group", "Block")
NAMED = {("22", "36255"), ("11", "50000"), ("15", "71550"), ("20", "71450")}


class Block(NamedTuple):
    """A row of GRF-C with the kinds of group quarters of the block, all as text; area 9999 outside."""

    code: str
    area: str
    place: str
    place_status: str
    cousub: str
    cousub_status: str
    districts: str
    pattern: str

    @property
    def flag(self) -> str:
        return "0" if self.area == "9999" else "1"


@dataclass
class Slow:
    """Code of the geounit of every block at every level, and the share of every geounit."""

    codes: dict[str, tuple[str, ...]]
    shares: dict[str, dict[str, Fraction]]


def prim_of(block: Block, governed: set[str]) -> str:
    state, county = block.code[:2], block.code[:5]
    if state == "72":
        return county + "9" * 10
    cousub = block.cousub if county in governed else "99999"
    named = block.place_status in ("A", "B", "F") or (state, block.place) in NAMED
    return county + cousub + (block.place if named else "99999")


def cut(members: Sequence, limit: int) -> list:
    return [members[first : first + limit] for first in range(0, len(members), limit)]


def grouped(members: Sequence, key) -> list[tuple]:
    found = defaultdict(list)
    for one in members:
        found[key(one)].append(one)
    return sorted(found.items())


def slow_spine(
    blocks: Sequence[Block],
    own: Sequence[Fraction],
    *,
    cutoff: int,
    bypass: bool,
    crosswalk: Mapping[str, str] | None = None,
) -> Slow:
    """The tree as nested lists of lists of blocks, then budgets from below, then codes from above."""
    governed = {one.code[:5] for one in blocks if one.cousub_status in ("A", "B", "C")}
    prims = crosswalk or {one.code: prim_of(one, governed) for one in blocks}
    states = []
    for (flag, state), in_state in grouped(blocks, lambda one: (one.flag, one.code[:2])):
        counties = []
        for county, in_county in grouped(in_state, lambda one: "10" + one.code[2:5]):
            parts = [
                tract_subset_groups(in_prim, cutoff)
                for _, in_prim in grouped(in_county, lambda one: prims[one.code])
            ]
            counties.append((county, parts))
        states.append((flag + state, counties))
    codes = assign_codes(states)
    return Slow(codes, budgets(codes, own, bypass=bypass))


def tract_subset_groups(in_prim: Sequence[Block], cutoff: int) -> list:
    subsets = [
        block_groups(sorted(members), cutoff) for _, members in grouped(in_prim, lambda one: one.code[:11])
    ]
    return cut(subsets, int(sqrt(len(subsets)) + cutoff + 1))


def block_groups(members: list[Block], cutoff: int) -> list:
    def key(one: Block) -> str:
        return "99999" + one.area + one.pattern + one.districts + one.code[:12]

    limit = int(sqrt(len(members)) + cutoff + 1)
    return [group for _, alike in grouped(members, key) for group in cut(alike, limit)]


def assign_codes(states: list) -> dict[str, tuple[str, ...]]:
    """Running numbers from 1, as wide as the largest number of children at the level."""
    counties = [county for _, some in states for county in some]
    prims = [prim for _, some in counties for prim in some]
    groups = [group for prim in prims for group in prim]
    subsets = [subset for group in groups for subset in group]
    wide = [
        len(str(max(len(one) for one in some)))
        for some in ([some for _, some in counties], prims, groups, subsets)
    ]
    found = {}
    for state, in_state in states:
        for county, in_county in in_state:
            head = state + county
            for i, prim in enumerate(in_county, 1):
                first = head + str(i).zfill(wide[0])
                for j, group in enumerate(prim, 1):
                    second = first + str(j).zfill(wide[1])
                    for k, subset in enumerate(group, 1):
                        third = second + str(k).zfill(wide[2])
                        for m, members in enumerate(subset, 1):
                            fourth = third + str(m).zfill(wide[3])
                            for one in members:
                                path = ("", state, head, first, second, third, fourth, fourth + one.code)
                                found[one.code] = path
    return found


def budgets(
    codes: Mapping[str, tuple[str, ...]], own: Sequence[Fraction], *, bypass: bool
) -> dict[str, dict[str, Fraction]]:
    shares = {
        name: dict.fromkeys({path[depth] for path in codes.values()}, own[depth])
        for depth, name in enumerate(LEVELS)
    }
    for depth in range(len(LEVELS) - 2, -1, -1) if bypass else ():
        children = defaultdict(set)
        for path in codes.values():
            children[path[depth]].add(path[depth + 1])
        for parent, some in children.items():
            if len(some) == 1:
                (child,) = some
                shares[LEVELS[depth]][parent] += shares[LEVELS[depth + 1]][child]
                shares[LEVELS[depth + 1]][child] = Fraction(0)
    return shares
