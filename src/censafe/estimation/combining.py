"""What the areas of a class have in common: the donor's cells, or these with a combined total."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.additive import gather, row_seeds, spread
from censafe.estimation.class_rows import ClassRows
from censafe.estimation.totals import LEAST_VARIANCE
from censafe.model.group_estimates import GroupNoise, NoiseTerm
from censafe.privacy.group_noise import variance_of_cells

__all__ = ["Units", "combined", "donated"]


@dataclass(frozen=True, eq=False)
class Units:
    """The cells that all areas of a class get, by unit (class and iteration).

    Args:
        values: int64, cells of all units.
        indptr: int64[units + 1].
        noise: int64[units], position in ``noises``.
        noises: the noises of the units.
        conditional: bool[units].
        near: bool[units].
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


def combined(rows: ClassRows) -> Units:
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
