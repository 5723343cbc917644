"""Areas that intervals are made for: the published levels, the geounits of the spine, and areas of a list.

A list is a table that says which areas blocks lie in: places, districts, school districts, or any others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.errors import DataError
from censafe.estimation.topdown.whole_tree.sums import (
    Functionals,
    fewest_members,
    level_sums,
    union_covariances,
)
from censafe.estimation.topdown.whole_tree.sweep import LinearTree
from censafe.geography.area_lists import read_block_areas
from censafe.geography.identifiers import AreaNames
from censafe.geography.own_codes import AreaCodes
from censafe.geography.spines.paths import RunSpine
from censafe.model.arrays import Floats
from censafe.model.observer import Observer

_Number = TypeVar("_Number", np.int64, np.float64)
_SPINE: Final = "spine "
_STATE: Final = "State"
_BATCH: Final = 1 << 22  # numbers of covariances that are worked on at a time


@dataclass(frozen=True, eq=False)
class AreaSet:
    """Areas of one kind, as unions of blocks.

    Args:
        kind: such as ``County``, ``spine County`` or a column of the list of areas.
        codes: of the areas, shape (areas,).
        names: of the areas, empty where they are not known, shape (areas,).
        area_of: area of every block in the standard order, -1 for none, shape (blocks,).
        level: of the run's spine whose geounits the areas are; empty where they are not.
        geounit: geounit of every area, shape (areas,); None where it has the same place.
    """

    kind: str
    codes: NDArray[np.str_] = field(repr=False)
    names: NDArray[np.str_] = field(repr=False)
    area_of: NDArray[np.int64] = field(repr=False)
    level: str = ""
    geounit: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def number(self) -> int:
        """How many areas there are."""
        return len(self.codes)

    def sums(self, blocks: NDArray[_Number]) -> NDArray[_Number]:
        """Sums over the blocks of every area, shape (areas, F), from values of the blocks in the standard order."""
        inside = np.flatnonzero(self.area_of >= 0)
        member = csr_array(
            (np.ones(len(inside), blocks.dtype), (self.area_of[inside], inside)),
            shape=(self.number, len(self.area_of)),
        )
        return np.asarray(member @ blocks)


@dataclass(frozen=True, eq=False)
class AreaEstimates:
    """Unbiased estimates of the areas of one kind.

    Args:
        values: shape (areas, F).
        variances: shape (areas, F).
    """

    areas: AreaSet
    values: Floats = field(repr=False)
    variances: Floats = field(repr=False)


def area_sets(
    run: RunSpine,
    listed: Path | None,
    observer: Observer,
    areas: AreaNames | None = None,
    own: AreaCodes | None = None,
) -> tuple[AreaSet, ...]:
    """All kinds of areas of a run, the widest level first, the areas of the list last."""
    known = areas or AreaNames()
    sets = [*_published(run, known), *_walked(run)]
    if listed is None:
        return tuple(sets)
    leaf = run.standard.leaf
    kinds, remarks = read_block_areas(listed, leaf.codes, leaf.form, own)
    taken = {one.kind for one in sets}
    for kind in kinds:
        if kind.name in taken:
            raise DataError(
                f"{listed}: column {kind.name} has the name of a level; fix: give it another name"
            )
        sets.append(AreaSet(kind.name, kind.codes, known.names_by_code(kind.codes), kind.area_of))
    for text in remarks:
        observer.remark(text)
    return tuple(sets)


def _published(run: RunSpine, areas: AreaNames) -> Iterator[AreaSet]:
    """The levels under whose codes everything is published."""
    standard, walked = run.standard, run.spine
    for depth, level in enumerate(standard.levels):
        codes = level.geounits
        by_code = replace(areas, census=True) if level.name == _STATE else areas
        names = by_code.names(codes)
        area_of = standard.ancestors(depth).astype(np.int64)
        own, geounit = "", None
        same = walked.levels[depth].name == level.name
        if walked is standard or (same and level.nodes == walked.levels[depth].nodes == 1):
            own = level.name
        elif level is standard.leaf:
            own, geounit = level.name, _back(run)
        yield AreaSet(level.name, codes, names, area_of, own, geounit)


def _walked(run: RunSpine) -> Iterator[AreaSet]:
    """The geounits of the levels of another spine, above the blocks."""
    if run.spine is run.standard:
        return
    back = _back(run)
    for depth, level in enumerate(run.spine.levels[:-1]):
        codes = level.geounits
        ancestors = run.spine.ancestors(depth).astype(np.int64)
        area_of = ancestors if back is None else ancestors[back]
        yield AreaSet(_SPINE + level.name, codes, np.full(len(codes), ""), area_of, level.name)


def _back(run: RunSpine) -> NDArray[np.int64] | None:
    """Place in the order of the run of every block of the standard order; None where they agree."""
    if run.order is None:
        return None
    place = np.empty_like(run.order)
    place[run.order] = np.arange(len(place))
    return place


def area_estimates(
    tree: LinearTree, functionals: Functionals, run: RunSpine, sets: Sequence[AreaSet]
) -> Iterator[AreaEstimates]:
    """Unbiased estimates and their variances for every kind of areas, in their order."""
    names = [level.name for level in tree.levels]
    used = {area_set.level for area_set in sets} | {names[-1]}
    every = zip(names, level_sums(tree, functionals), strict=True)
    levels = {name: level for name, level in every if name in used}
    back = _back(run)
    blocks = levels[names[-1]].values
    standard = blocks if back is None else blocks[back]
    for area_set in sets:
        if area_set.level:
            level, chosen = levels[area_set.level], area_set.geounit
            rows = slice(None) if chosen is None else chosen
            yield AreaEstimates(area_set, level.values[rows], level.variances[level.pattern[rows]])
        else:
            yield AreaEstimates(
                area_set, area_set.sums(standard), _variances(tree, functionals, run, area_set)
            )


def _variances(tree: LinearTree, functionals: Functionals, run: RunSpine, areas: AreaSet) -> Floats:
    """Variances of sums over unions of blocks, some areas at a time."""
    union_of = areas.area_of if run.order is None else areas.area_of[run.order]
    variances = np.empty((areas.number, functionals.number))
    step = max(1, _BATCH // max(1, functionals.moments[:1].size))
    members = fewest_members(tree, union_of)
    for first in range(0, areas.number, step):
        last = min(first + step, areas.number)
        rows = {depth: one.among(first, last) for depth, one in members.items()}
        variances[first:last] = functionals.variances(union_covariances(tree, rows, last - first))
    return variances
