"""How like siblings are, fitted to noisy measurements alone.

Correlations follow from second moments of the measurements, less what noise adds to these. How much of that the estimate
should use is tried out: noise is added to the measurements of some parents, the estimate is made from these, and compared with what
is left when the same noise is taken off the measurements, which tells as much about an estimate as a second measurement would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.likeness import Likeness, size_classes
from censafe.estimation.topdown.normal_equations import LevelObjective, StoredAnswers
from censafe.estimation.topdown.parents import BatchFound, FamilyRules, estimate_batch
from censafe.model.families import Families

__all__ = ["STRENGTHS", "LikenessFit", "correlations", "fit_likeness", "with_likeness"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STRENGTHS: Final = (0.1, 0.3, 1.0)
"""Factors of the likeness that are tried; without any it is 0."""

_ADDED: Final = 0.25  # variance of the added noise, in that of the measurements
_SEED: Final = 2020
_ERRORS: Final = 2.0  # standard errors by which the finest counts must gain
_FEWEST: Final = 10  # parents, below which standard errors say little
_LEAST: Final = 1e-9  # share of the largest eigenvalue below which cells are not measured


@dataclass(frozen=True)
class LikenessFit:
    """What was fitted.

    Args:
        correlation: of two records of a geounit, by step.
        strength: the factor chosen; 0 where none is better than no likeness.
        parents: on which it was fitted.
        gains: for every strength that was tried, the change of the squared error of a geounit that is to be expected, by partition of
            the cells: the whole, then those of the steps, coarse to fine.
    """

    correlation: tuple[float, ...]
    strength: float
    parents: int
    gains: tuple[tuple[float, ...], ...]


def with_likeness(
    objective: LevelObjective,
    labels: NDArray[np.int32],
    fits: Sequence[LikenessFit],
    fit_of: NDArray[np.integer],
    records: NDArray[np.integer],
) -> LevelObjective:
    """The objective of a level with the likeness of siblings.

    Args:
        objective: of geounits with none below them.
        labels: groups of the steps, as of ``Likeness``.
        fits: correlations and strengths.
        fit_of: which of them each geounit has, shape (geounits,).
        records: of every geounit as estimated before, shape (geounits,).

    Raises:
        CheckError: the objective holds information from below.
    """
    if objective.below is not None:
        raise CheckError("the likeness of siblings is for geounits with none below them")
    strengths = np.array([fit.strength for fit in fits])
    of, size = size_classes(np.where(strengths[fit_of] > 0, records, 0))
    keys = np.stack([objective.kinds.astype(np.int64), fit_of.astype(np.int64), of])
    (kind, fit, sized), kinds = np.unique(keys, axis=1, return_inverse=True)
    steps = len(labels) - 1
    correlation = np.array([one.correlation if one.strength > 0 else (0.0,) * steps for one in fits])
    alike = Likeness(labels, correlation.reshape(-1, steps)[fit], size[sized], strengths[fit])
    return replace(
        objective, weights=objective.weights[kind], kinds=kinds.ravel().astype(np.int32), alike=alike
    )


def fit_likeness(
    objective: LevelObjective,
    rules: FamilyRules,
    families: Families,
    counts: Integers,
    labels: NDArray[np.int32],
) -> LikenessFit:
    """Fit correlations, and choose the strength by which the estimate of some parents' children gains most.

    Of the strengths by which the squared error of the finest counts is seen to fall, and that of no coarser ones to rise, the one by
    which it falls most is chosen. Seen is what is more than two standard errors, of ten parents at least.

    Args:
        objective: stored measurements of the level of the children, which have none below them.
        rules: of the level.
        families: some parents.
        counts: of their cells.
        labels: groups of the steps.

    Source: Oliveira, Lei & Tibshirani (2021), "Unbiased risk estimation in the normal means problem via coupled bootstrap
        techniques".
    """
    correlation = correlations(objective, families, counts, labels)
    nothing = LikenessFit(correlation, 0.0, families.parents, ())
    split = _Split.of(objective, rules, families, counts)
    if split is None:
        return nothing
    plain = split.estimate(split.objective)
    records = _records(plain)
    one = np.zeros(len(records), np.int64)
    errors = _errors(split, plain, labels)
    gains: list[tuple[float, ...]] = []
    best, strength = 0.0, 0.0
    for tried in STRENGTHS:
        liked = with_likeness(split.objective, labels, (replace(nothing, strength=tried),), one, records)
        found = split.estimate(liked)
        both = plain.done & found.done
        if not both.any():
            continue
        change = (_errors(split, found, labels) - errors)[both]
        total = change.sum(axis=0)
        noise = _ERRORS * change.std(axis=0) * np.sqrt(len(change))
        gains.append(tuple((total / max(1, split.children(both))).tolist()))
        seen = len(change) >= _FEWEST and total[-1] + noise[-1] < 0.0 and (total - noise <= 0.0).all()
        if seen and total[-1] < best:
            best, strength = float(total[-1]), tried
    return replace(nothing, strength=strength, gains=tuple(gains))


def correlations(
    objective: LevelObjective, families: Families, counts: Integers, labels: NDArray[np.int32]
) -> tuple[float, ...]:
    """Correlation of two records of a geounit in every step, from unbiased second moments, between 0 and 1.

    Args:
        objective: measurements of the level of the children.
        families: some parents.
        counts: of their cells.
        labels: groups of the steps.
    """
    spread, few, many = (np.zeros(len(labels) - 1) for _ in range(3))
    for _, cells, p, z, of, covariance in _estimates(objective, families, counts):
        for step in range(len(labels) - 1):
            coarse, fine = _members(labels[step][cells]), _members(labels[step + 1][cells])
            above = coarse[(fine @ coarse.T > 0).argmax(axis=1)]
            share = (fine @ p) / (above @ p)
            rest = fine - share[:, None] * above
            weight = share * (1.0 - share)
            squares = ((z @ rest.T) ** 2).sum()
            sizes = (z @ above.T) ** 2
            for kind, v in enumerate(covariance):
                squares -= (of == kind).sum() * np.einsum("ij,jk,ik->", rest, v, rest)
                sizes[of == kind] -= np.einsum("ij,jk,ik->i", above, v, above)
            spread[step] += squares
            few[step] += weight @ (above @ p)
            many[step] += weight @ (sizes.sum(axis=0) - above @ p)
    found = np.where(many > 0, (spread - few) / np.where(many > 0, many, 1.0), 1.0)
    return tuple(np.clip(found, 0.0, 1.0).tolist())


def _estimates(
    objective: LevelObjective, families: Families, counts: Integers
) -> Iterator[tuple[int, NDArray[np.int32], Integers, Floats, Integers, Floats]]:
    """Parents whose cells are measured: place, cells, counts, estimates of the children without limits, and covariances by kind."""
    for parent in range(families.parents):
        span = slice(int(families.cell_ptr[parent]), int(families.cell_ptr[parent + 1]))
        cells = families.cell[span]
        children = families.child[families.child_ptr[parent] : families.child_ptr[parent + 1]]
        h, of, b = objective.equations(int(children[0]), int(children[-1]) + 1, cells.astype(np.int64))
        values = np.linalg.eigvalsh(h)
        if (values[:, 0] > _LEAST * values[:, -1]).all():
            covariance: Floats = np.linalg.inv(h).astype(np.float64)
            z = np.einsum("ck,ckl->cl", b, covariance[of])
            yield parent, cells, counts[span], z, of.astype(np.int64), covariance


def _members(label: NDArray[np.integer]) -> Floats:
    """Which cells every group has, shape (groups, cells)."""
    groups, of = np.unique(label, return_inverse=True)
    found = np.zeros((len(groups), len(label)))
    found[of.ravel(), np.arange(len(label))] = 1.0
    return found


@dataclass(frozen=True, eq=False)
class _Split:
    """Measurements of the children of some parents with noise added, and estimates of the same cells from what is left.

    Args:
        objective: with added noise, of these children alone.
        rules: the same.
        families: with children numbered in their order.
        counts: of the parents' cells.
        others: estimates without limits from what is left, by parent; None where the cells are not measured.
    """

    objective: LevelObjective
    rules: FamilyRules
    families: Families
    counts: Integers
    others: tuple[Floats | None, ...]

    @staticmethod
    def of(
        objective: LevelObjective, rules: FamilyRules, families: Families, counts: Integers
    ) -> _Split | None:
        """Split the measurements; None where they are not stored, or not whole."""
        if not isinstance(objective.source, StoredAnswers):
            return None
        rows, rng = families.child, np.random.default_rng(_SEED)
        kinds = np.ascontiguousarray(objective.kinds[rows])
        values, added, left = [], [], []
        for query, whole in enumerate(objective.source.values):
            own, weight = whole[rows].astype(np.int64), objective.weights[kinds, query]
            deviation = np.sqrt(_ADDED / np.where(weight > 0, weight, np.inf))
            noise = np.rint(rng.standard_normal(own.shape) * deviation[:, None]).astype(np.int64)
            values.append(own + noise)
            added.append(noise)
            left.append(own)
        own_families = replace(families, child=np.arange(len(rows), dtype=np.int64))
        alone = replace(objective, kinds=kinds)
        noisy = replace(
            alone, weights=objective.weights / (1.0 + _ADDED), source=StoredAnswers(tuple(values))
        )
        others: list[Floats | None] = [None] * families.parents
        rest = replace(alone, source=StoredAnswers(tuple(left)))
        taken = replace(alone, source=StoredAnswers(tuple(added)))
        for (place, _, _, z, _, _), (_, _, _, e, _, _) in zip(
            _estimates(rest, own_families, counts), _estimates(taken, own_families, counts), strict=True
        ):
            others[place] = z - e / _ADDED
        return _Split(noisy, _of_children(rules, rows), own_families, counts, tuple(others))

    def estimate(self, objective: LevelObjective) -> BatchFound:
        """Integer histograms of the children."""
        return estimate_batch(objective, self.rules, self.families, self.counts)

    def children(self, chosen: NDArray[np.bool_]) -> int:
        """Children of some parents."""
        return int(np.diff(self.families.child_ptr)[chosen].sum())


def _of_children(rules: FamilyRules, rows: Integers) -> FamilyRules:
    """The rules of some geounits, in their order."""
    return replace(
        rules,
        lower=np.ascontiguousarray(rules.lower[rows]),
        upper=np.ascontiguousarray(rules.upper[rows]),
        totals=np.ascontiguousarray(rules.totals[rows]) if len(rules.totals) else rules.totals,
        least=np.ascontiguousarray(rules.least[rows]),
        most=np.ascontiguousarray(rules.most[rows]),
    )


def _records(found: BatchFound) -> Integers:
    """Records of every child."""
    child = np.repeat(np.arange(len(found.sizes)), found.sizes)
    return np.bincount(child, found.count, len(found.sizes)).astype(np.int64)


def _errors(split: _Split, found: BatchFound, labels: NDArray[np.int32]) -> Floats:
    """Squared errors of every parent's children but for a constant, by partition, shape (parents, partitions)."""
    errors = np.zeros((split.families.parents, len(labels) + 1))
    families = split.families
    first = np.append(0, np.cumsum(found.sizes))
    for parent, other in enumerate(split.others):
        cells = families.cell[families.cell_ptr[parent] : families.cell_ptr[parent + 1]]
        start, stop = (int(families.child_ptr[parent + end]) for end in (0, 1))
        if other is None or not found.done[parent]:
            continue
        entries = slice(int(first[start]), int(first[stop]))
        x = np.zeros((stop - start, len(cells)))
        child = np.repeat(np.arange(stop - start), found.sizes[start:stop])
        x[child, np.searchsorted(cells, found.cell[entries])] = found.count[entries]
        for partition, label in enumerate((np.zeros_like(labels[0]), *labels)):
            groups = _members(label[cells]).T
            own = x @ groups
            errors[parent, partition] = (own * own - 2.0 * own * (other @ groups)).sum()
    return errors
