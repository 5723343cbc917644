"""Ratios with intervals for the tables of averages, and which model is fitted to each population group.

PH8 has owners and renters together: the ratio of the total that two fitted parts imply.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.sdhc.counts import GroupedCells, margin_factor
from censafe.estimation.sdhc.draws import drawn_ratios, drawn_tenure, generator
from censafe.estimation.sdhc.posteriors import log_interval
from censafe.estimation.sdhc.ratios.intervals import (
    Curve,
    RatioEstimate,
    RatioModel,
    UnansweredError,
    ratio_ends,
    require_noise,
)
from censafe.estimation.sdhc.ratios.quadrature import (
    denominator_law,
    denominator_nodes,
    estimate_joint,
    estimate_single,
    legendre,
)
from censafe.estimation.sdhc.ratios.unbounded import unbounded_single
from censafe.estimation.sdhc.ratios.whole_numbers import NoisyCount, lattice_joint, lattice_single
from censafe.estimation.sdhc.settings import RatioRules
from censafe.model.arrays import Floats
from censafe.model.sdhc import EstimateSettings, Key, RatioEstimates, key_text

_Noisy = tuple[float, float]

_NODES = 96
_COARSE = 40
_INNER = 4  # a quarter of the points of the denominator's law, of which only a part is integrated over
_TAIL = 9.5  # standard deviations beyond which a numerator has no weight


def estimate_tenure(
    first: tuple[_Noisy, _Noisy], second: tuple[_Noisy, _Noisy], model: RatioModel
) -> RatioEstimate:
    """Posterior of (n2 + n3) / (d2 + d3), where each part lies within the bounds of its own ratio.

    The two parts have the posteriors of their own fits, which are independent; the total follows from them, and so lies
    between them in every possible truth.

    Source: n2 + n3 <= x (d2 + d3) where the independent n2 - x d2 and n3 - x d3 have a sum of 0 or less; quadrature over
        the first, with the density of the one and the distribution function of the other by quadrature over d.

    Example:
        >>> estimate = estimate_tenure(((300, 1709), (100, 1709)), ((700, 1709), (350, 1709)), RatioModel(1))
        >>> round(estimate.ratio, 3), round(estimate.low, 2), round(estimate.high, 2)
        (2.235, 1.78, 2.79)
    """
    total = tuple((one[0] + other[0], one[1] + other[1]) for one, other in zip(first, second, strict=True))
    if all(unbounded_single(num, den, model) is not None for num, den in (first, second)):
        far = unbounded_single(total[0], total[1], model)
        if far is not None:
            return far
    parts = _Part(first, model), _Part(second, model)
    low, high = ratio_ends(_curve(parts, model, _NODES), model, model.lowest, _curve(parts, model, _COARSE))
    first_part, second_part = parts
    weight = first_part.weight[:, None] * second_part.weight[None, :]
    number = first_part.mean[:, None] + second_part.mean[None, :]
    den = first_part.at[:, None] + second_part.at[None, :]
    return RatioEstimate(
        float((weight * number / den).sum()),
        low,
        high,
        float((weight * number).sum()),
        float((weight * den).sum()),
    )


def _curve(parts: tuple[_Part, _Part], model: RatioModel, nodes: int) -> Curve:
    """Distribution function of the ratio of the totals."""
    first, second = parts
    x_nodes, gauss = legendre(nodes)

    def below(x: float) -> float:
        if x <= model.lowest:
            return 0.0
        if x >= model.largest:
            return 1.0
        low, high = first.range(x)
        kinks = (model.lowest - x, 0.0, model.largest - x)
        edges = [low, *(kink for kink in kinks if low < kink < high), high]
        at = np.concatenate([(b - a) / 2 * x_nodes + (a + b) / 2 for a, b in pairwise(edges)])
        factor = np.concatenate([(b - a) / 2 * gauss for a, b in pairwise(edges)])
        density = first.excess(at, x, density=True) * factor
        return float(density @ second.excess(-at, x, density=False) / density.sum())

    return below


class _Part:
    """The posterior of one numerator and denominator."""

    def __init__(self, noisy: tuple[_Noisy, _Noisy], model: RatioModel) -> None:
        (self._zn, vn), (self._zd, self._vd) = noisy
        points = denominator_nodes(vn, self._vd)
        law = denominator_law(*noisy, model, points)
        self._sn, self._model, self._inner = vn**0.5, model, points // _INNER
        self.at, self.weight, self.mean = law.at, law.weight, law.mean
        self._first, self._last = law.low, law.high
        _, gauss = legendre(points)
        self._top = float(self._log_weight(self.at).max())
        weight = np.exp(self._log_weight(self.at) - self._top)
        self._norm = float(weight @ gauss) * (law.high - law.low) / 2

    def _log_weight(self, d: Floats) -> Floats:
        a, b = (self._model.lowest * d - self._zn) / self._sn, (self._model.largest * d - self._zn) / self._sn
        return np.asarray(-((d - self._zd) ** 2) / (2 * self._vd) + log_interval(a, b))

    def range(self, x: float) -> tuple[float, float]:
        """Where num - x den has weight."""
        low, high = self._model.lowest * self.at, self._model.largest * self.at
        mode = np.clip(self._zn, low, high)
        start = np.maximum(low, mode - _TAIL * self._sn) - x * self.at
        end = np.minimum(high, mode + _TAIL * self._sn) - x * self.at
        return float(start.min()), float(end.max())

    def excess(self, a: Floats, x: float, *, density: bool) -> Floats:
        """Density of num - x den at every ``a``, or the probability that it is at most ``a``.

        For ``a`` above 0 denominators below a / (largest - x) lie wholly below, for others those below -a / (x - lowest)
        wholly above; only those beyond need quadrature.
        """
        positive = a > 0
        first = np.where(positive, a / (self._model.largest - x), -a / (x - self._model.lowest))
        first = np.clip(first, self._first, self._last)
        nodes, gauss = legendre(self._inner)
        half = ((self._last - first) / 2)[:, None]
        d = half * nodes + ((self._last + first) / 2)[:, None]
        n = (x * d + a[:, None] - self._zn) / self._sn
        base = -((d - self._zd) ** 2) / (2 * self._vd) - self._top
        if density:
            inside = np.exp(base - n**2 / 2) / (self._sn * np.sqrt(2 * np.pi))
            return np.asarray((half * gauss * inside).sum(axis=1) / self._norm)
        least, most = (bound * d - self._zn for bound in (self._model.lowest, self._model.largest))
        near = np.where(positive[:, None], n, least / self._sn)
        far = np.where(positive[:, None], most / self._sn, n)
        share = (half * gauss * np.exp(base + log_interval(near, np.maximum(far, near)))).sum(
            axis=1
        ) / self._norm
        return np.asarray(np.where(positive, 1 - share, share))


_REFERENCE_DRAWS = 10_000
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class GroupFit:
    """The ratios of one population group."""

    rules: RatioRules
    settings: EstimateSettings
    key: Key

    @property
    def model(self) -> RatioModel:
        """Bounds, tails and kind of interval."""
        settings = self.settings
        return RatioModel(self.rules.lowest, settings.trun, settings.alpha, settings.interval == "shortest")

    def ratios(self, top: Sequence[NoisyCount], bottom: Sequence[NoisyCount]) -> list[RatioEstimate]:
        """Estimates of first part, second part and total."""
        first, second = top
        if self.rules.form == "shared":
            total, first_ratio, second_ratio = self._joint(first, second, bottom[0])
            return [first_ratio, second_ratio, total]
        parts = [self._single(num, den) for num, den in zip(top, bottom, strict=True)]
        if self.settings.ph8 == "joint":
            return [*parts, self._tenure(top, bottom)]
        return [*parts, self._single(first + second, bottom[0] + bottom[1])]

    def _joint(self, first: NoisyCount, second: NoisyCount, den: NoisyCount) -> tuple[RatioEstimate, ...]:
        counts, model = (first, second, den), self.model
        if not any(count.variance for count in counts):
            bottom, first_z, second_z = max(den.z, 1), max(first.z, 0), max(second.z, 0)
            least = (model.lowest, 0.0, 0.0)
            nums = (first_z + second_z, first_z, second_z)
            return tuple(_known(num, bottom, low, model) for num, low in zip(nums, least, strict=True))
        if self.settings.method == "sample":
            return self._drawn((first, second), den)
        if self.settings.model == "discrete":
            return lattice_joint(first, second, den, model)
        return estimate_joint(first.pair, second.pair, den.pair, model)

    def _single(self, num: NoisyCount, den: NoisyCount) -> RatioEstimate:
        model = self.model
        if not num.variance and not den.variance:
            return _known(max(num.z, 0), max(den.z, 1), model.lowest, model)
        if self.settings.method == "sample":
            return self._drawn((num,), den)[0]
        if self.settings.model == "discrete":
            return lattice_single(num, den, model)
        return estimate_single(num.pair, den.pair, model)

    def _tenure(self, top: Sequence[NoisyCount], bottom: Sequence[NoisyCount]) -> RatioEstimate:
        counts = (*top, *bottom)
        if not any(count.variance for count in counts):
            return self._single(top[0] + top[1], bottom[0] + bottom[1])
        require_noise(*(count.variance for count in counts))
        first, second = ((num.pair, den.pair) for num, den in zip(top, bottom, strict=True))
        if self.settings.method == "sample":
            return drawn_tenure(first, second, self.model, self._draws, self._generator())
        return estimate_tenure(first, second, self.model)

    @property
    def _draws(self) -> int:
        return min(max(self.settings.iteration_num, _REFERENCE_DRAWS), _MOST_DRAWS)

    def _generator(self) -> np.random.Generator:
        return generator(self.settings.seed, self.rules.table, self.key)

    def _drawn(self, parts: Sequence[NoisyCount], den: NoisyCount) -> tuple[RatioEstimate, ...]:
        return drawn_ratios(
            [part.pair for part in parts], den.pair, self.model, self._draws, self._generator()
        )


def _known(num: float, den: float, lowest: float, model: RatioModel) -> RatioEstimate:
    ratio = min(max(num / den, lowest), model.largest)
    return RatioEstimate(ratio, ratio, ratio, num, den)


def matched(num: GroupedCells, den: GroupedCells) -> GroupedCells:
    """The denominators in the order of the numerators' groups."""
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

    Example:
        >>> rules = RatioRules("PH1", "PH1_num", "PH1_denom", 1, "shared")
        >>> keys, exact = (("STATE", "44", "A"),), np.full((1, 2), False)
        >>> num = GroupedCells("PH1_num", keys, (2, 3), np.array([[300, 700]]), np.full((1, 2), 1709.0), exact)
        >>> den = GroupedCells("PH1_denom", keys, (1,), np.array([[380]]), np.full((1, 1), 1709.0), exact[:, :1])
        >>> estimate = estimate_ratios(num, den, rules, EstimateSettings())
        >>> estimate.cells, estimate.ratio.round(3).tolist()
        ((2, 3, 1), [[0.799, 1.865, 2.664]])
    """
    den = matched(num, den)
    bottoms, bottom_variances = _with_total(den, rules.form == "shared")
    tops, top_variances = _with_total(num, shared=False)

    with ThreadPoolExecutor(workers) as pool:
        fits = list(pool.map(partial(_fit, num, den, rules, settings), range(len(num.keys))))
    ratio, low, high, num_mean, den_mean = (
        np.array([[getattr(fit, name) for fit in row] for row in fits]).reshape(-1, 3)
        for name in ("ratio", "low", "high", "num", "den")
    )
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
        ratio=ratio,
        low=low,
        high=high,
        num_mean=num_mean,
        den_mean=den_mean,
    )


def _fit(
    num: GroupedCells, den: GroupedCells, rules: RatioRules, settings: EstimateSettings, group: int
) -> list[RatioEstimate]:
    key = num.keys[group]
    try:
        return GroupFit(rules, settings, key).ratios(_noisy(num, group), _noisy(den, group))
    except UnansweredError as error:
        raise DataError(f"{key_text(rules.table, key)}: {error}") from error


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
