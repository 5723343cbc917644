"""Draws from the same posteriors, to compare the exact method with; and the generators of these draws."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from censafe.estimation.sdhc.posteriors import noisy_posterior, truncated_quantile
from censafe.estimation.sdhc.ratios.intervals import RatioEstimate, RatioModel
from censafe.model.arrays import Floats
from censafe.model.sdhc import EstimateSettings, Key

_Noisy = tuple[float, float]

_CHAINS = 500
_WARM = 300  # sweeps before draws are used
_ENOUGH = 0.02  # share of independent draws within the bounds below which chains take over


@dataclass(frozen=True, eq=False)
class Drawn:
    """Sorted draws of one quantity."""

    sorted: Floats = field(repr=False)

    def quantiles(self, p: Sequence[float]) -> Floats:
        """Quantiles, linear between draws."""
        return np.asarray(np.quantile(self.sorted, p))

    def shortest(self, level: float) -> tuple[float, float]:
        """Shortest interval that holds the given share of the draws."""
        size = int(np.ceil(level * self.sorted.size))
        widths = self.sorted[size - 1 :] - self.sorted[: self.sorted.size - size + 1]
        best = int(np.argmin(widths))
        return float(self.sorted[best]), float(self.sorted[best + size - 1])


def generator(seed: int, table: str, key: Key) -> np.random.Generator:
    """Generator of one population group, the same whatever is drawn before it."""
    return np.random.default_rng([seed, zlib.crc32("|".join((table, *key)).encode())])


def drawn_counts(
    count: NDArray[np.int64],
    variance: Floats,
    geometric: NDArray[np.bool_],
    settings: EstimateSettings,
    rng: np.random.Generator,
) -> Floats:
    """Independent draws of the counts of some cells, shape (draws, cells).

    Args:
        count: noisy counts, shape (cells,).
        variance: published variances, shape (cells,).
        geometric: whether the noise is two-sided geometric, shape (cells,).
    """
    draws = np.empty((settings.iteration_num, count.size))
    for cell, (z, v, wide) in enumerate(
        zip(count.tolist(), variance.tolist(), geometric.tolist(), strict=True)
    ):
        u = rng.random(settings.iteration_num)
        if v == 0:
            draws[:, cell] = max(z, 0)
        elif settings.model == "discrete" or (wide and settings.conventions == "censafe"):
            posterior = noisy_posterior(z, v, geometric=wide)
            draws[:, cell] = posterior.first + np.searchsorted(np.cumsum(posterior.mass), u)
        else:
            draws[:, cell] = truncated_quantile(u, z, v)
    return draws


def drawn_ratios(
    parts: Sequence[_Noisy], den: _Noisy, model: RatioModel, draws: int, rng: np.random.Generator
) -> tuple[RatioEstimate, ...]:
    """Estimates from draws of numerators and denominator within their bounds: total first when there are two parts.

    Independent draws are accepted where they meet the bounds; where few do, Gibbs chains take over.
    """
    drawn = _within(parts, den, model, draws, rng)
    bottom = drawn[:, -1]
    columns = [drawn[:, part] for part in range(len(parts))]
    tops = [sum(columns[1:], columns[0]), *columns] if len(columns) > 1 else columns
    return tuple(_summary(top, bottom, model) for top in tops)


def drawn_tenure(
    first: tuple[_Noisy, _Noisy],
    second: tuple[_Noisy, _Noisy],
    model: RatioModel,
    draws: int,
    rng: np.random.Generator,
) -> RatioEstimate:
    """Estimate of (n2 + n3) / (d2 + d3) from draws of two parts that lie within the bounds of their own ratios."""
    first_draws, second_draws = (_within((num,), den, model, draws, rng) for num, den in (first, second))
    both = rng.permutation(first_draws) + second_draws  # chains start alike and must not be paired
    return _summary(both[:, 0], both[:, 1], model)


def _summary(top: Floats, bottom: Floats, model: RatioModel) -> RatioEstimate:
    ratio = top / bottom
    drawn = Drawn(np.sort(ratio))
    equal = drawn.quantiles((model.tail, 1 - model.tail))
    low, high = drawn.shortest(1 - 2 * model.tail) if model.shortest else equal
    return RatioEstimate(
        float(ratio.mean()), float(low), float(high), float(top.mean()), float(bottom.mean())
    )


def _within(
    parts: Sequence[_Noisy], den: _Noisy, model: RatioModel, draws: int, rng: np.random.Generator
) -> Floats:
    """Draws of the parts and the denominator, shape (draws, parts + 1)."""
    z = np.array([*(value for value, _ in parts), den[0]], np.float64)
    sigma = np.sqrt(np.array([*(variance for _, variance in parts), den[1]]))
    floor = np.array([0.0] * len(parts) + [1.0])
    accepted = _independent(z, sigma, floor, model, draws, rng)
    return accepted if len(accepted) == draws else _chains(z, sigma, floor, model, draws, rng)


def _independent(
    z: Floats, sigma: Floats, floor: Floats, model: RatioModel, draws: int, rng: np.random.Generator
) -> Floats:
    accepted: list[Floats] = []
    missing = draws
    while missing > 0:
        u = rng.random((draws, z.size))
        proposed = floor + truncated_quantile(u, z - floor, sigma**2)
        top, bottom = proposed[:, :-1].sum(axis=1), proposed[:, -1]
        inside = proposed[(top >= model.lowest * bottom) & (top <= model.largest * bottom)]
        if len(inside) < _ENOUGH * draws:
            return np.empty((0, z.size))
        accepted.append(inside[:missing])
        missing -= len(accepted[-1])
    return np.concatenate(accepted)


def _chains(
    z: Floats, sigma: Floats, floor: Floats, model: RatioModel, draws: int, rng: np.random.Generator
) -> Floats:
    state = np.empty((_CHAINS, z.size))
    state[:, -1] = max(z[-1], (z[:-1].sum()) / model.largest, 1.0) + sigma[-1]
    middle = (model.lowest + model.largest) / 2
    state[:, :-1] = state[:, -1:] * middle / (z.size - 1)
    states = []
    for sweep in range(_WARM + -(-draws // _CHAINS)):
        for column in range(z.size):
            top = state[:, :-1].sum(axis=1)
            if column == z.size - 1:
                low, high = np.maximum(1.0, top / model.largest), top / model.lowest
            else:
                others, bottom = top - state[:, column], state[:, -1]
                low = np.maximum(floor[column], model.lowest * bottom - others)
                high = model.largest * bottom - others
            state[:, column] = _between(z[column], sigma[column], low, high, rng)
        if sweep >= _WARM:
            states.append(state.copy())
    return np.concatenate(states)[:draws]


def _between(z: float, sigma: float, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Draws of a normal variable that lies between two bounds, from the tail in which they lie."""
    a, b = (low - z) / sigma, (high - z) / sigma
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    lower, upper = log_ndtr(a), log_ndtr(b)
    u = rng.random(a.shape)
    standard = ndtri_exp(upper + np.log(u + (1 - u) * np.exp(np.minimum(lower - upper, 0.0))))
    return np.clip(z + sigma * np.where(flip, -standard, standard), low, high)
