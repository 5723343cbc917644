"""Equal counts for areas of different types that consist of the same blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.detailed.additive import gather
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.class_rows import ClassRows, Units, class_rows, combined_rows, donated
from censafe.model.groups.estimates import CoterminousChange, CoterminousReport, GroupEstimates, GroupNoise


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

    Source: SafeTab-H paper, section 6.3.3; the rules are ours, specification of SafeTab, section 8.3.
    """
    if len({found.table for found in estimates}) > 1 or len({e.level.name for e in estimates}) < len(
        estimates
    ):
        raise ValueError("coterminous areas are made equal in one table, with every level once")
    results = list(estimates)
    changes: list[CoterminousChange] = []
    for iteration_level in sorted({found.level.iteration_level for found in estimates}):
        chosen = [i for i, found in enumerate(estimates) if found.level.iteration_level == iteration_level]
        rows = class_rows([estimates[i] for i in chosen], classes)
        if not len(rows.row):
            continue
        units = combined_rows(rows) if mode == "combined" else donated(rows)
        for position, i in enumerate(chosen):
            targets = _targets(rows, position, respect_granularity=respect_granularity)
            results[i], change = _replaced(rows, units, targets, position)
            if len(change.region):
                changes.append(change)
    return tuple(results), CoterminousReport(mode, classes.classes, tuple(changes))


@dataclass(frozen=True, eq=False)
class _Targets:
    """The units that one level gets, with the region and the iteration they get there."""

    estimates: GroupEstimates
    unit: NDArray[np.int64]
    region: NDArray[np.int32]
    iteration: NDArray[np.int32]
    shared: NDArray[np.bool_]


def _targets(rows: ClassRows, position: int, *, respect_granularity: bool) -> _Targets:
    found = rows.levels[position]
    region = rows.regions[position, rows.area_class]
    unit = np.flatnonzero(region >= 0)
    names = np.array(found.level.iterations, np.str_)
    wanted = rows.codes[rows.code[unit]]
    candidate = np.isin(wanted, names)
    if respect_granularity:
        unit, wanted = unit[candidate], wanted[candidate]
    elif not candidate.all():
        found = _with_iterations(found, wanted[~candidate])
        names = np.array(found.level.iterations, np.str_)
    alone = np.count_nonzero(rows.regions >= 0, axis=0) < 2
    return _Targets(
        found,
        unit,
        region[unit].astype(np.int32),
        np.searchsorted(names, wanted).astype(np.int32),
        ~alone[rows.area_class[unit]],
    )


def _with_iterations(found: GroupEstimates, codes: NDArray[np.str_]) -> GroupEstimates:
    names = np.array(found.level.iterations, np.str_)
    new = np.union1d(names, codes)
    places = np.searchsorted(new, names)
    detailed_only = np.zeros(len(new), np.bool_)
    detailed_only[places] = found.level.detailed_only
    level = replace(found.level, iterations=tuple(new.tolist()), detailed_only=detailed_only)
    return replace(found, level=level, iteration=places[found.iteration].astype(np.int32))


def _replaced(
    rows: ClassRows, units: Units, targets: _Targets, position: int
) -> tuple[GroupEstimates, CoterminousChange]:
    """Take all rows of class areas out of a level and put the units' rows in."""
    old = targets.estimates
    stay = np.ones(old.rows, np.bool_)
    stay[rows.row[rows.level == position]] = False
    remaining = np.flatnonzero(stay)
    region = np.concatenate((old.region[remaining], targets.region))
    iteration = np.concatenate((old.iteration[remaining], targets.iteration))
    order = np.lexsort((iteration, region))
    stat_level = _donor_stat_levels(rows)[targets.unit]
    old_cells, old_starts = gather(old.values, old.indptr, remaining)
    cells, starts = gather(units.values, units.indptr, targets.unit)
    all_starts = np.concatenate((old_starts, old_starts[-1] + starts[1:]))
    values, indptr = gather(np.concatenate((old_cells, cells)), all_starts, order)
    noise = units.noise[targets.unit] + len(old.noises)
    new = replace(
        old,
        region=region[order],
        iteration=iteration[order],
        stat_level=np.concatenate((old.stat_level[remaining], stat_level))[order],
        indptr=indptr,
        values=values,
        noise=np.concatenate((old.noise[remaining], noise))[order].astype(np.int32),
        noises=(*old.noises, *units.noises),
        conditional=np.concatenate((old.conditional[remaining], units.conditional[targets.unit]))[order],
        near=np.concatenate((old.near[remaining], units.near[targets.unit]))[order],
        shared=np.concatenate((old.shared[remaining], targets.shared))[order],
    )
    return _with_distinct_noises(new), _change(rows, targets, cells, starts, stat_level)


def _donor_stat_levels(rows: ClassRows) -> NDArray[np.int8]:
    row, level = rows.row[rows.donors], rows.level[rows.donors]
    stat_level = np.zeros(len(row), np.int8)
    for position, found in enumerate(rows.levels):
        inside = level == position
        stat_level[inside] = found.stat_level[row[inside]]
    return stat_level


def _with_distinct_noises(estimates: GroupEstimates) -> GroupEstimates:
    """Drop noises that no row has, and name equal ones once."""
    distinct: dict[GroupNoise, int] = {}
    renamed = np.zeros(len(estimates.noises), np.int32)
    for i in np.unique(estimates.noise).tolist():
        renamed[i] = distinct.setdefault(estimates.noises[i], len(distinct))
    return replace(estimates, noise=renamed[estimates.noise], noises=tuple(distinct))


def _change(
    rows: ClassRows,
    targets: _Targets,
    values: NDArray[np.int64],
    starts: NDArray[np.int64],
    stat_level: NDArray[np.int8],
) -> CoterminousChange:
    old = targets.estimates
    place, there = _old_rows(targets)
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
        region=old.level.regions[targets.region[differs]],
        iteration=np.array(old.level.iterations, np.str_)[targets.iteration[differs]],
        before=before[differs],
        after=(sums[starts[1:]] - sums[starts[:-1]])[differs],
        donor=kinds[rows.level[rows.donors][targets.unit]][differs],
    )


def _old_rows(targets: _Targets) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the targets stood before, and whether they did."""
    old, width = targets.estimates, len(targets.estimates.level.iterations)
    if not old.rows:
        return np.zeros(len(targets.unit), np.int64), np.zeros(len(targets.unit), np.bool_)
    before = old.region.astype(np.int64) * width + old.iteration
    wanted = targets.region.astype(np.int64) * width + targets.iteration
    place = np.minimum(np.searchsorted(before, wanted), old.rows - 1)
    return place, before[place] == wanted
