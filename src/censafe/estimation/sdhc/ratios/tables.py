"""Ratios with intervals for the tables of averages, and which model is fitted to each population group."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.sdhc.counts import GroupedCells, margin_factor
from censafe.estimation.sdhc.draws import drawn_ratios, drawn_tenure, generator
from censafe.estimation.sdhc.ratios.intervals import RatioEstimate, RatioModel, UnansweredError
from censafe.estimation.sdhc.ratios.quadrature import estimate_joint, estimate_single
from censafe.estimation.sdhc.ratios.tenure import estimate_tenure
from censafe.estimation.sdhc.ratios.unbounded import unbounded_joint, unbounded_single
from censafe.estimation.sdhc.ratios.whole_numbers import NoisyCount, lattice_joint, lattice_single
from censafe.estimation.sdhc.settings import RatioRules
from censafe.model.arrays import Floats
from censafe.model.sdhc import EstimateSettings, Key, RatioEstimates, key_text

__all__ = ["GroupFit", "estimate_ratios", "matched"]


_Noisy = tuple[float, float]

_REFERENCE_DRAWS = 10_000
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class GroupFit:
    """The ratios of one population group.

    Args:
        rules: which ratios there are.
        settings: of bounds, tails, model and method.
        key: of the group, from which its draws follow.
    """

    rules: RatioRules
    settings: EstimateSettings
    key: Key

    @property
    def model(self) -> RatioModel:
        """Bounds, tails and kind of interval."""
        settings = self.settings
        return RatioModel(self.rules.lowest, settings.trun, settings.alpha, settings.interval == "shortest")

    def ratios(self, top: Sequence[NoisyCount], bottom: Sequence[NoisyCount]) -> list[RatioEstimate]:
        """Estimates of first part, second part and total.

        Args:
            top: noisy numerators of the two parts.
            bottom: the noisy denominator of all three, or those of the two parts.

        Raises:
            UnansweredError: no estimate follows from these counts.
        """
        first, second = top
        if self.rules.form == "shared":
            total, one, other = self._joint(first, second, bottom[0])
            return [one, other, total]
        parts = [self._single(num, den) for num, den in zip(top, bottom, strict=True)]
        if self.settings.ph8 == "joint":
            return [*parts, self._tenure(top, bottom)]
        return [*parts, self._single(first + second, bottom[0] + bottom[1])]

    def _joint(self, first: NoisyCount, second: NoisyCount, den: NoisyCount) -> tuple[RatioEstimate, ...]:
        counts, model = (first, second, den), self.model
        if not any(count.variance for count in counts):
            bottom, one, other = max(den.z, 1), max(first.z, 0), max(second.z, 0)
            least = (model.lowest, 0.0, 0.0)
            nums = (one + other, one, other)
            return tuple(_known(num, bottom, low, model) for num, low in zip(nums, least, strict=True))
        if self.settings.method == "sample":
            return self._drawn((first, second), den)
        if self.settings.model == "discrete":
            return lattice_joint(first, second, den, model)
        pairs = [_pair(count) for count in counts]
        far = unbounded_joint(pairs[0], pairs[1], pairs[2], model)
        if far is None:
            _all_noisy(counts)
        return far or estimate_joint(pairs[0], pairs[1], pairs[2], model)

    def _single(self, num: NoisyCount, den: NoisyCount) -> RatioEstimate:
        model = self.model
        if not num.variance and not den.variance:
            return _known(max(num.z, 0), max(den.z, 1), model.lowest, model)
        if self.settings.method == "sample":
            return self._drawn((num,), den)[0]
        if self.settings.model == "discrete":
            return lattice_single(num, den, model)
        far = unbounded_single(_pair(num), _pair(den), model)
        if far is None:
            _all_noisy((num, den))
        return far or estimate_single(_pair(num), _pair(den), model)

    def _tenure(self, top: Sequence[NoisyCount], bottom: Sequence[NoisyCount]) -> RatioEstimate:
        counts = (*top, *bottom)
        if not any(count.variance for count in counts):
            return self._single(top[0] + top[1], bottom[0] + bottom[1])
        _all_noisy(counts)
        first, second = ((_pair(num), _pair(den)) for num, den in zip(top, bottom, strict=True))
        if self.settings.method == "sample":
            return drawn_tenure(first, second, self.model, self._draws, self._generator())
        return estimate_tenure(first, second, self.model)

    @property
    def _draws(self) -> int:
        return min(max(self.settings.iteration_num, _REFERENCE_DRAWS), _MOST_DRAWS)

    def _generator(self) -> np.random.Generator:
        return generator(self.settings.seed, self.rules.table, self.key)

    def _drawn(self, parts: Sequence[NoisyCount], den: NoisyCount) -> tuple[RatioEstimate, ...]:
        pairs = [_pair(part) for part in parts]
        return drawn_ratios(pairs, _pair(den), self.model, self._draws, self._generator())


def _pair(count: NoisyCount) -> _Noisy:
    return count.z, count.variance


def _all_noisy(counts: Sequence[NoisyCount]) -> None:
    if not all(count.variance for count in counts):
        raise UnansweredError(
            "some counts are exact and others noisy, so that their ratio has no estimate near its bounds"
        )


def _known(num: float, den: float, lowest: float, model: RatioModel) -> RatioEstimate:
    ratio = min(max(num / den, lowest), model.largest)
    return RatioEstimate(ratio, ratio, ratio, num, den)


def matched(num: GroupedCells, den: GroupedCells) -> GroupedCells:
    """The denominators in the order of the numerators' groups.

    Raises:
        DataError: a numerator without denominator, or the reverse; names the group.
    """
    rows = {key: row for row, key in enumerate(den.keys)}
    for key in num.keys:
        if key not in rows:
            raise DataError(f"{key_text(num.table, key)}: a numerator without its denominator in {den.table}")
    known = set(num.keys)
    for key in den.keys:
        if key not in known:
            raise DataError(f"{key_text(den.table, key)}: a denominator without its numerator in {num.table}")
    return den.rows([rows[key] for key in num.keys])


def estimate_ratios(
    num: GroupedCells,
    den: GroupedCells,
    rules: RatioRules,
    settings: EstimateSettings,
    *,
    workers: int = 1,
) -> RatioEstimates:
    """Posterior means and quantiles of bounded ratios.

    Args:
        num: noisy parts of the numerators, columns in the order of ``rules.parts``.
        den: noisy denominators, columns in the order of ``rules.denominators``.
        rules: which ratios there are.
        settings: of bounds, tails and method.
        workers: threads; results do not depend on them.

    Raises:
        DataError: groups that are in one of the two only, or counts from which no estimate of a ratio follows.

    Example:
        >>> rules = RatioRules("PH1", "PH1_num", "PH1_denom", 1, "shared")
        >>> keys, exact = (("STATE", "44", "A"),), np.full((1, 2), False)
        >>> num = GroupedCells("PH1_num", keys, (2, 3), np.array([[300, 700]]), np.full((1, 2), 1709.0), exact)
        >>> den = GroupedCells("PH1_denom", keys, (1,), np.array([[380]]), np.full((1, 1), 1709.0), exact[:, :1])
        >>> found = estimate_ratios(num, den, rules, EstimateSettings())
        >>> found.cells, found.ratio.round(3).tolist()
        ((2, 3, 1), [[0.799, 1.865, 2.664]])
    """
    den = matched(num, den)
    bottoms, bottom_variances = _with_total(den, rules.form == "shared")
    tops, top_variances = _with_total(num, shared=False)

    def solve(group: int) -> list[RatioEstimate]:
        key = num.keys[group]
        try:
            return GroupFit(rules, settings, key).ratios(_noisy(num, group), _noisy(den, group))
        except UnansweredError as error:
            raise DataError(f"{key_text(rules.table, key)}: {error}") from error

    with ThreadPoolExecutor(workers) as pool:
        fits = list(pool.map(solve, range(len(num.keys))))
    names = ("ratio", "low", "high", "num", "den")
    solved = {
        name: np.array([[getattr(fit, name) for fit in row] for row in fits]).reshape(-1, 3) for name in names
    }
    part_lowest = 0.0 if rules.form == "shared" else rules.lowest
    return RatioEstimates(
        table=rules.table,
        keys=num.keys,
        cells=(*rules.parts, rules.total),
        lowest=(part_lowest, part_lowest, rules.lowest),
        num=tops,
        num_variance=top_variances,
        den=bottoms,
        den_variance=bottom_variances,
        geometric=np.asarray(num.geometric.any(axis=1) | den.geometric.any(axis=1)),
        factor=margin_factor(settings),
        ratio=solved["ratio"],
        low=solved["low"],
        high=solved["high"],
        num_mean=solved["num"],
        den_mean=solved["den"],
    )


def _noisy(cells: GroupedCells, group: int) -> list[NoisyCount]:
    values = zip(
        cells.count[group].tolist(),
        cells.variance[group].tolist(),
        cells.geometric[group].tolist(),
        strict=True,
    )
    return [NoisyCount(z, (variance,), (geometric,)) for z, variance, geometric in values]


def _with_total(cells: GroupedCells, shared: bool) -> tuple[NDArray[np.int64], Floats]:
    """Counts and variances of two parts and their sum, or three times the same."""
    count, variance = cells.count, cells.variance
    if shared:
        return np.repeat(count, 3, axis=1), np.repeat(variance, 3, axis=1)
    return np.hstack([count, count.sum(axis=1, keepdims=True)]), np.hstack(
        [variance, variance.sum(axis=1, keepdims=True)]
    )
