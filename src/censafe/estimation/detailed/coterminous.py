"""Equal counts for areas of different types that consist of the same blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.detailed.additive import gather, row_seeds, spread
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.totals import LEAST_VARIANCE
from censafe.model.groups import (
    CoterminousChange,
    CoterminousReport,
    GroupEstimates,
    GroupNoise,
    NoiseTerm,
)
from censafe.privacy.noise.variance import variance_of_cells

_TIES = ("USA", "STATE", "COUNTY", "PLACE", "TRACT", "AIANNH")


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Groups of areas that are in a class, sorted by (class, iteration) and then by preference of the level.

    A unit is one class with one iteration; its first entry is the donor.

    Args:
        codes: sorted iteration codes of all levels together.
        regions: int64[levels, classes], position of the class's area in each level's regions, -1 for none.
        level: int64[entries], position in ``levels``.
        row: int64[entries], row in the estimates of that level.
        starts: int64[units + 1], where the entries of a unit begin.
        area_class: int64[units].
        code: int64[units], position in ``codes``.
        indptr: int64[entries + 1], where the cells of an entry begin in ``values``.
        values: int64, cells of all entries.
        noise: int64[entries], position in ``noises``.
    """

    levels: tuple[GroupEstimates, ...]
    codes: NDArray[np.str_]
    regions: NDArray[np.int64]
    level: NDArray[np.int64]
    row: NDArray[np.int64]
    starts: NDArray[np.int64]
    area_class: NDArray[np.int64]
    code: NDArray[np.int64]
    indptr: NDArray[np.int64]
    values: NDArray[np.int64]
    noise: NDArray[np.int64]
    noises: tuple[GroupNoise, ...]

    @property
    def donors(self) -> NDArray[np.int64]:
        """The first entry of every unit."""
        return self.starts[:-1]

    def column(self, name: str) -> NDArray[Any]:
        """A column of the estimates, of the entries."""
        column = np.zeros(len(self.row), getattr(self.levels[0], name).dtype)
        for position, level in enumerate(self.levels):
            inside = self.level == position
            column[inside] = getattr(level, name)[self.row[inside]]
        return column


def class_rows(levels: Sequence[GroupEstimates], classes: AreaClasses) -> ClassRows:
    """Gather the groups of areas that are in a class."""
    codes = np.unique(np.concatenate([np.array(estimates.level.iterations, np.str_) for estimates in levels]))
    regions = np.full((len(levels), len(classes.classes)), -1, np.int64)
    # rank of every level: the largest budget first, larger areas first where budgets are equal
    ties = [_TIES.index(estimates.level.region_type.removeprefix("PR-")) for estimates in levels]
    places = range(len(levels))
    ranked = sorted(places, key=lambda place: (-levels[place].cost, ties[place], place))
    preference = [ranked.index(place) for place in places]
    columns: list[tuple[NDArray[np.int64], ...]] = []
    cells: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    for position, estimates in enumerate(levels):
        area_class = _class_of_regions(estimates, classes)
        inside = np.flatnonzero(area_class >= 0)
        regions[position, area_class[inside]] = inside
        row = np.flatnonzero(area_class[estimates.region] >= 0).astype(np.int64)
        code = np.searchsorted(codes, np.array(estimates.level.iterations, np.str_))[estimates.iteration[row]]
        unit = area_class[estimates.region[row]] * len(codes) + code
        noise = estimates.noise[row].astype(np.int64) + sum(len(other.noises) for other in levels[:position])
        rank, level = (np.full(len(row), number, np.int64) for number in (preference[position], position))
        columns.append((unit.astype(np.int64), rank, level, row, noise))
        values, starts = gather(estimates.values, estimates.indptr, row)
        cells.append(values)
        sizes.append(np.diff(starts))
    unit, rank, level, row, noise = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
    order = np.lexsort((rank, unit))
    values, indptr = gather(np.concatenate(cells), indptr, order)
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    return ClassRows(
        levels=tuple(levels),
        codes=codes,
        regions=regions,
        level=level[order],
        row=row[order],
        starts=np.append(first, len(order)),
        area_class=unit[order][first] // len(codes),
        code=unit[order][first] % len(codes),
        indptr=indptr,
        values=values,
        noise=noise[order],
        noises=tuple(noise for estimates in levels for noise in estimates.noises),
    )


def _class_of_regions(estimates: GroupEstimates, classes: AreaClasses) -> NDArray[np.int64]:
    area_class = np.full(len(estimates.level.regions), -1, np.int64)
    members = classes.by_type(estimates.level.region_type)
    if members and len(estimates.level.regions):
        names = np.array(list(members), np.str_)
        places = np.minimum(np.searchsorted(estimates.level.regions, names), len(estimates.level.regions) - 1)
        there = estimates.level.regions[places] == names
        area_class[places[there]] = np.array(list(members.values()), np.int64)[there]
    return area_class


@dataclass(frozen=True, eq=False)
class Units:
    """The cells that all areas of a class get, by unit (class and iteration).

    Args:
        values: int64, cells of all units.
        indptr: int64[units + 1].
        noise: int64[units], position in ``noises``.
    """

    values: NDArray[np.int64]
    indptr: NDArray[np.int64]
    noise: NDArray[np.int64]
    noises: tuple[GroupNoise, ...]
    conditional: NDArray[np.bool_]
    near: NDArray[np.bool_]


def donated(rows: ClassRows) -> Units:
    """The donor's cells as they are."""
    values, indptr = gather(rows.values, rows.indptr, rows.donors)
    donors = rows.donors
    return Units(
        values, indptr, rows.noise[donors], rows.noises, rows.column("conditional")[donors], rows.column("near")[donors]
    )  # fmt: skip


def combined_rows(rows: ClassRows) -> Units:
    """The donor's cells with the mean of all areas' totals, weighted by their inverse variances.

    Units with rows that were made equal before are left as they are, because such rows are not independent.
    """
    donor = donated(rows)
    entries = np.diff(rows.starts)
    unit = np.repeat(np.arange(len(entries)), entries)
    fresh = (entries > 1) & ~np.logical_or.reduceat(rows.column("shared"), rows.donors)
    sums = np.add.reduceat(rows.values, rows.indptr[:-1])
    weights = np.array([_precision(noise) for noise in rows.noises])[rows.noise]
    mean = np.bincount(unit, weights * sums) / np.bincount(unit, weights)
    change = np.where(fresh, np.rint(mean).astype(np.int64) - sums[rows.donors], 0)
    regions = [
        str(rows.levels[level].level.regions[rows.levels[level].region[row]])
        for level, row in zip(rows.level[rows.donors].tolist(), rows.row[rows.donors].tolist(), strict=True)
    ]
    seeds = row_seeds(regions, rows.codes[rows.code].tolist())
    noise, noises = _combined_noises(rows, fresh)
    return replace(
        donor,
        values=spread(donor.values, donor.indptr, change, seeds),
        noise=noise,
        noises=noises,
        conditional=np.where(
            fresh, np.logical_or.reduceat(rows.column("conditional"), rows.donors), donor.conditional
        ),
        near=np.where(fresh, np.logical_or.reduceat(rows.column("near"), rows.donors), donor.near),
    )


def _precision(noise: GroupNoise) -> float:
    """Inverse variance of a total; under budgets of thousands the variance is too small for a float."""
    return 1 / max(variance_of_cells(noise, noise.cells), LEAST_VARIANCE)


def _combined_noises(
    rows: ClassRows, fresh: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], tuple[GroupNoise, ...]]:
    entries = np.diff(rows.starts)
    members = np.full((len(entries), int(entries.max())), -1, np.int64)
    for place in range(members.shape[1]):
        has = (entries > place) & (fresh | (place == 0))
        members[has, place] = rows.noise[rows.donors[has] + place]
    distinct, inverse = np.unique(members, axis=0, return_inverse=True)
    noises = tuple(_combined([rows.noises[i] for i in row if i >= 0]) for row in distinct.tolist())
    return inverse.reshape(-1).astype(np.int64), noises


def _combined(members: list[GroupNoise]) -> GroupNoise:
    donor, *rest = members
    if not rest:
        return donor
    precisions = [_precision(noise) for noise in members]
    weight, *weights = [precision / sum(precisions) for precision in precisions]
    others = [NoiseTerm(term.law, term.draws, weight * term.weight) for term in donor.others]
    others += [
        NoiseTerm(term.law, term.draws, share / donor.cells * term.weight)
        for noise, share in zip(rest, weights, strict=True)
        for term in noise.terms(noise.cells)
    ]
    shift = donor.shift + (weight - 1) * (1 + donor.cells * donor.shift) / donor.cells
    return GroupNoise(donor.law, donor.cells, shift, tuple(others))


def coterminous(
    estimates: Sequence[GroupEstimates],
    classes: AreaClasses,
    *,
    mode: Literal["donor", "combined"] = "donor",
    respect_granularity: bool = True,
) -> tuple[tuple[GroupEstimates, ...], CoterminousReport]:
    """Give all areas of a class the same counts, group by group.

    In each class and iteration the donor is the area whose level has the largest budget among those that publish the
    group; USA, STATE, COUNTY, PLACE, TRACT, AIANNH in this order where budgets are equal. ``donor`` copies its cells, and so
    its table, to all areas of the class. ``combined`` first replaces its total by the mean of the areas' totals,
    weighted by their inverse variances and rounded, and adds the difference evenly to its cells, in whole numbers.

    Totals that are published only above a limit enter a mean with the bias of that choice, which is small unless they are within a few
    standard deviations of the limit; such results keep the flag ``conditional``. A second application changes nothing.

    With ``respect_granularity`` an area gets only the iterations that its level tabulates; without it, those of all areas of its class.

    Source: SafeTab-H paper, section 6.3.3; the rules are ours, specification of SafeTab, section 8.3.
    """
    if len({estimate.table for estimate in estimates}) > 1 or len({e.level.name for e in estimates}) < len(
        estimates
    ):
        raise ValueError("coterminous areas are made equal in one table, with every level once")
    results = list(estimates)
    changes: list[CoterminousChange] = []
    for iteration_level in sorted({estimate.level.iteration_level for estimate in estimates}):
        chosen = [
            i for i, estimate in enumerate(estimates) if estimate.level.iteration_level == iteration_level
        ]
        rows = class_rows([estimates[i] for i in chosen], classes)
        if not len(rows.row):
            continue
        units = combined_rows(rows) if mode == "combined" else donated(rows)
        for position, i in enumerate(chosen):
            results[i], change = _replaced(rows, units, position, respect_granularity=respect_granularity)
            if len(change.region):
                changes.append(change)
    return tuple(results), CoterminousReport(mode, classes.classes, tuple(changes))


def _with_iterations(old: GroupEstimates, codes: NDArray[np.str_]) -> GroupEstimates:
    """A level that tabulates more iterations."""
    names = np.array(old.level.iterations, np.str_)
    union = np.union1d(names, codes)
    places = np.searchsorted(union, names).astype(np.int32)
    detailed_only = np.isin(union, names[old.level.detailed_only])
    level = replace(old.level, iterations=tuple(union.tolist()), detailed_only=detailed_only)
    return replace(old, level=level, iteration=places[old.iteration])


def _replaced(
    rows: ClassRows, units: Units, position: int, *, respect_granularity: bool
) -> tuple[GroupEstimates, CoterminousChange]:
    """Take all rows of class areas out of a level, and put in those of the units, or of these whose iteration the level tabulates."""
    old, place = rows.levels[position], rows.regions[position, rows.area_class]
    if not respect_granularity:
        old = _with_iterations(old, rows.codes[rows.code[place >= 0]])
    names = np.array(old.level.iterations, np.str_)
    unit = np.flatnonzero((place >= 0) & np.isin(rows.codes[rows.code], names))
    new_region = place[unit].astype(np.int32)
    new_iteration = np.searchsorted(names, rows.codes[rows.code[unit]]).astype(np.int32)
    several = np.count_nonzero(rows.regions >= 0, axis=0) > 1
    stay = np.ones(old.rows, np.bool_)
    stay[rows.row[rows.level == position]] = False
    remaining = np.flatnonzero(stay)
    region = np.concatenate((old.region[remaining], new_region))
    iteration = np.concatenate((old.iteration[remaining], new_iteration))
    order = np.lexsort((iteration, region))
    stat_level = rows.column("stat_level")[rows.donors][unit]
    old_cells, old_starts = gather(old.values, old.indptr, remaining)
    cells, starts = gather(units.values, units.indptr, unit)
    all_starts = np.concatenate((old_starts, old_starts[-1] + starts[1:]))
    values, indptr = gather(np.concatenate((old_cells, cells)), all_starts, order)
    noise = units.noise[unit] + len(old.noises)
    new = replace(
        old,
        region=region[order],
        iteration=iteration[order],
        stat_level=np.concatenate((old.stat_level[remaining], stat_level))[order],
        indptr=indptr,
        values=values,
        noise=np.concatenate((old.noise[remaining], noise))[order].astype(np.int32),
        noises=(*old.noises, *units.noises),
        conditional=np.concatenate((old.conditional[remaining], units.conditional[unit]))[order],
        near=np.concatenate((old.near[remaining], units.near[unit]))[order],
        shared=np.concatenate((old.shared[remaining], several[rows.area_class[unit]]))[order],
    )
    donor = rows.level[rows.donors][unit]
    change = _change(rows, old, new_region, new_iteration, cells, starts, stat_level, donor)
    # drop noises that no row has, and name equal ones once
    distinct: dict[GroupNoise, int] = {}
    renamed = np.zeros(len(new.noises), np.int32)
    for i in np.unique(new.noise).tolist():
        renamed[i] = distinct.setdefault(new.noises[i], len(distinct))
    return replace(new, noise=renamed[new.noise], noises=tuple(distinct)), change


def _change(
    rows: ClassRows,
    old: GroupEstimates,
    region: NDArray[np.int32],
    iteration: NDArray[np.int32],
    values: NDArray[np.int64],
    starts: NDArray[np.int64],
    stat_level: NDArray[np.int8],
    donor: NDArray[np.int64],
) -> CoterminousChange:
    """Which of the rows that were put in differ from what stood there before."""
    place, there = np.zeros(len(region), np.int64), np.zeros(len(region), np.bool_)
    if old.rows:
        width = len(old.level.iterations)
        keys = old.region.astype(np.int64) * width + old.iteration
        new_keys = region.astype(np.int64) * width + iteration
        place = np.minimum(np.searchsorted(keys, new_keys), old.rows - 1)
        there = keys[place] == new_keys
    same = np.flatnonzero(there & (old.stat_level[place] == stat_level)) if old.rows else place[:0]
    cells, indptr = gather(old.values, old.indptr, place[same])
    new, _ = gather(values, starts, same)
    owner = np.repeat(np.arange(len(same)), np.diff(indptr))
    differs = np.ones(len(place), np.bool_)
    differs[same] = np.bincount(owner, cells != new, minlength=len(same)) > 0
    before = np.full(len(place), np.nan)
    before[there] = old.totals[place[there]]
    sums = np.concatenate(([0], np.cumsum(values)))
    kinds = np.array([level.level.region_type for level in rows.levels], np.str_)
    return CoterminousChange(
        level=old.level.name,
        region=old.level.regions[region[differs]],
        iteration=np.array(old.level.iterations, np.str_)[iteration[differs]],
        before=before[differs],
        after=(sums[starts[1:]] - sums[starts[:-1]])[differs],
        donor=kinds[donor][differs],
    )
