"""The groups of all areas with the same blocks, and what these have in common: the donor's cells, or a combined total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.detailed.additive import gather, row_seeds, spread
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.totals import LEAST_VARIANCE
from censafe.model.groups.estimates import GroupEstimates, GroupNoise, NoiseTerm
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

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column of the estimates, of the entries, bool[entries]."""
        found = np.zeros(len(self.row), np.bool_)
        for position, level in enumerate(self.levels):
            inside = self.level == position
            found[inside] = getattr(level, name)[self.row[inside]]
        return found


def class_rows(levels: Sequence[GroupEstimates], classes: AreaClasses) -> ClassRows:
    """Gather the groups of areas that are in a class."""
    codes = np.unique(np.concatenate([np.array(found.level.iterations, np.str_) for found in levels]))
    regions = np.full((len(levels), len(classes.classes)), -1, np.int64)
    preference = _preference(levels)
    columns: list[tuple[NDArray[np.int64], ...]] = []
    cells: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    for position, found in enumerate(levels):
        area_class = _class_of_regions(found, classes)
        inside = np.flatnonzero(area_class >= 0)
        regions[position, area_class[inside]] = inside
        row = np.flatnonzero(area_class[found.region] >= 0).astype(np.int64)
        code = np.searchsorted(codes, np.array(found.level.iterations, np.str_))[found.iteration[row]]
        unit = area_class[found.region[row]] * len(codes) + code
        noise = found.noise[row].astype(np.int64) + sum(len(one.noises) for one in levels[:position])
        rank, level = (np.full(len(row), one, np.int64) for one in (preference[position], position))
        columns.append((unit.astype(np.int64), rank, level, row, noise))
        values, starts = gather(found.values, found.indptr, row)
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
        noises=tuple(noise for found in levels for noise in found.noises),
    )


def _preference(levels: Sequence[GroupEstimates]) -> list[int]:
    """Rank of every level: the largest budget first, larger areas first where budgets are equal."""

    def key(position: int) -> tuple[object, ...]:
        found = levels[position]
        return (-found.cost, _TIES.index(found.level.region_type.removeprefix("PR-")), position)

    ranked = sorted(range(len(levels)), key=key)
    return [ranked.index(position) for position in range(len(levels))]


def _class_of_regions(found: GroupEstimates, classes: AreaClasses) -> NDArray[np.int64]:
    area_class = np.full(len(found.level.regions), -1, np.int64)
    members = classes.by_type(found.level.region_type)
    if members and len(found.level.regions):
        names = np.array(list(members), np.str_)
        places = np.minimum(np.searchsorted(found.level.regions, names), len(found.level.regions) - 1)
        there = found.level.regions[places] == names
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
        values, indptr, rows.noise[donors], rows.noises, rows.flags("conditional")[donors], rows.flags("near")[donors]
    )  # fmt: skip


def combined_rows(rows: ClassRows) -> Units:
    """The donor's cells with the mean of all areas' totals, weighted by their inverse variances.

    Units with rows that were made equal before are left as they are, because such rows are not independent.
    """
    donor = donated(rows)
    entries = np.diff(rows.starts)
    unit = np.repeat(np.arange(len(entries)), entries)
    fresh = (entries > 1) & ~np.logical_or.reduceat(rows.flags("shared"), rows.donors)
    sums = np.add.reduceat(rows.values, rows.indptr[:-1])
    weights = np.array([_precision(noise) for noise in rows.noises])[rows.noise]
    mean = np.bincount(unit, weights * sums) / np.bincount(unit, weights)
    change = np.where(fresh, np.rint(mean).astype(np.int64) - sums[rows.donors], 0)
    names, seeds = rows.codes[rows.code].tolist(), _donor_regions(rows)
    noise, noises = _combined_noises(rows, fresh)
    return Units(
        values=spread(donor.values, donor.indptr, change, row_seeds(seeds, names)),
        indptr=donor.indptr,
        noise=noise,
        noises=noises,
        conditional=np.where(
            fresh, np.logical_or.reduceat(rows.flags("conditional"), rows.donors), donor.conditional
        ),
        near=np.where(fresh, np.logical_or.reduceat(rows.flags("near"), rows.donors), donor.near),
    )


def _precision(noise: GroupNoise) -> float:
    """Inverse variance of a total; under budgets of thousands the variance is too small for a float."""
    return 1 / max(variance_of_cells(noise, noise.cells), LEAST_VARIANCE)


def _donor_regions(rows: ClassRows) -> list[str]:
    level, row = rows.level[rows.donors], rows.row[rows.donors]
    return [
        str(rows.levels[one].level.regions[rows.levels[one].region[place]])
        for one, place in zip(level.tolist(), row.tolist(), strict=True)
    ]


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
