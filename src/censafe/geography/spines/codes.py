"""Codes of the geounits of parted spines: nested, with running numbers where census codes do not tell geounits apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model.arrays import Integers

# the path of a block is the flag of the areas before its 16 digits; what is left of it at a level
STATE_UNIT, COUNTY_UNIT, TRACT_UNIT = 10**14, 10**11, 10**5
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
class PartedPath:
    """The blocks of a parted spine, in its order, and how the codes of the geounits above them are made.

    Args:
        codes: of every block, its 16 digits with the flag of the areas before them.
        county: five digits of the county of every block within its half state; None for ``10`` and the county.
    """

    codes: Integers = field(repr=False)
    parts: tuple[CodePart, ...] = REDISTRICTING_PARTS
    county: Integers | None = field(default=None, repr=False)


def parents_of(above: Integers, starts: Integers) -> NDArray[np.int32]:
    """Position of the geounit that holds each geounit of a lower level, from the first blocks of both.

    Example:
        >>> parents_of(np.array([0, 4]), np.array([0, 2, 4, 9])).tolist()
        [0, 0, 1, 1]
    """
    return (np.searchsorted(above, starts, side="right") - 1).astype(np.int32)


def parted_spine(starts: Mapping[str, Integers], root: SpineLevel, path: PartedPath) -> Spine:
    """The tree of cuts of blocks that are ordered by the flag of the areas first.

    Codes are those of the Census Bureau's noisy measurement files: flag 1, state 2, county 5, running numbers of the levels below,
    then the 16 digits of the block.
    """
    cuts = _part_cuts(starts, path)
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
            above = cuts[path.parts[-1].name]
            prefix = above.codes[parents_of(above.starts, own)]
            codes = path.codes % 10**_BLOCK_DIGITS
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


def _part_cuts(starts: Mapping[str, Integers], path: PartedPath) -> dict[str, _Cut]:
    """Cuts and codes from the states down to the block groups, those above the root of the run included."""
    found: dict[str, _Cut] = {}
    above = _Cut(np.zeros(1, np.int64), np.zeros(1, np.int64), 0)
    units = {"State": STATE_UNIT, "County": COUNTY_UNIT, "Tract": TRACT_UNIT}
    for part in path.parts:
        cut = starts.get(part.name)
        if cut is None:
            cut = np.flatnonzero(np.diff(path.codes // units.get(part.name, 10**4), prepend=-1))
        parent = parents_of(above.starts, cut)
        own = np.zeros(len(cut), np.int64)
        if part.name == "State":
            own = path.codes[cut] // STATE_UNIT
        elif part.name == "County":
            own = path.codes[cut] // COUNTY_UNIT % _COUNTIES + _UNCHANGED
            own = own if path.county is None else path.county[cut]
        number = _running(parent, own) + part.first
        width = max(part.running, len(str(int(number.max()))) if number.any() else 0)
        digits = above.digits + part.digits + width
        if digits > _MOST_DIGITS:
            raise ValueError("the codes of a parted spine have more than 19 digits above the blocks")
        codes = (above.codes[parent] * 10**part.digits + own) * 10**width + number
        above = found[part.name] = _Cut(cut, codes, digits)
    return found


def _running(parent: NDArray[np.int32], own: Integers) -> Integers:
    """Number, from 0, of every geounit among its neighbours of the same parent and code."""
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
