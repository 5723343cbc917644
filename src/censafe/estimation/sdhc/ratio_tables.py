"""Ratios with intervals for the tables of averages, total and parts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.sdhc.cells import GroupedCells
from censafe.estimation.sdhc.counts import margin_factor
from censafe.estimation.sdhc.draws import drawn_ratios, generator
from censafe.estimation.sdhc.ratio_types import RatioEstimate, RatioModel
from censafe.estimation.sdhc.ratios import estimate_joint, estimate_single
from censafe.estimation.sdhc.rules import RatioRules
from censafe.estimation.sdhc.unbounded_ratios import unbounded_joint, unbounded_single
from censafe.model.sdhc_cells import Key, key_text
from censafe.model.sdhc_estimates import RatioEstimates
from censafe.model.sdhc_settings import EstimateSettings

__all__ = ["estimate_ratios", "matched"]

Floats = NDArray[np.float64]
Noisy = tuple[float, float]

_REFERENCE_DRAWS = 10_000
_MOST_DRAWS = 1_000_000


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
        settings: of bounds, tails and method. Intervals of ratios are equal-tailed and their model continuous.
        workers: threads; results do not depend on them.

    Raises:
        DataError: groups that are in one of the two only, or a part that is exact while the others are noisy.

    Example:
        >>> rules = RatioRules("PH1", "PH1_num", "PH1_denom", 1, "shared")
        >>> keys, exact = (("STATE", "44", "A"),), np.array([[False]])
        >>> num = GroupedCells("PH1_num", keys, (2, 3), np.array([[300, 700]]), np.full((1, 2), 1709.0), exact)
        >>> den = GroupedCells("PH1_denom", keys, (1,), np.array([[380]]), np.full((1, 1), 1709.0), exact)
        >>> found = estimate_ratios(num, den, rules, EstimateSettings())
        >>> found.cells, found.ratio.round(3).tolist()
        ((2, 3, 1), [[0.799, 1.865, 2.664]])
    """
    den = matched(num, den)
    bottoms, bottom_variances = _with_total(den, rules.form == "shared")
    tops, top_variances = _with_total(num, shared=False)
    model = RatioModel(rules.lowest, settings.trun, settings.alpha)

    def solve(group: int) -> list[RatioEstimate]:
        top = list(zip(tops[group].tolist(), top_variances[group].tolist(), strict=True))
        bottom = list(zip(bottoms[group].tolist(), bottom_variances[group].tolist(), strict=True))
        try:
            return _fits(top, bottom, rules, model, _Drawing(settings, rules.table, num.keys[group]))
        except _MixedError as error:
            raise DataError(
                f"{key_text(rules.table, num.keys[group])}: some counts are exact and others noisy, so that "
                "their ratio has no estimate near its bounds"
            ) from error

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


class _MixedError(ValueError):
    """Exact and noisy counts in one ratio."""


@dataclass(frozen=True)
class _Drawing:
    settings: EstimateSettings
    table: str
    key: Key

    def fit(self, parts: Sequence[Noisy], den: Noisy, model: RatioModel) -> tuple[RatioEstimate, ...]:
        draws = min(max(self.settings.iteration_num, _REFERENCE_DRAWS), _MOST_DRAWS)
        return drawn_ratios(parts, den, model, draws, generator(self.settings.seed, self.table, self.key))


def _with_total(cells: GroupedCells, shared: bool) -> tuple[NDArray[np.int64], Floats]:
    """Counts and variances of two parts and their sum, or three times the same."""
    count, variance = cells.count, cells.variance
    if shared:
        return np.repeat(count, 3, axis=1), np.repeat(variance, 3, axis=1)
    return np.hstack([count, count.sum(axis=1, keepdims=True)]), np.hstack(
        [variance, variance.sum(axis=1, keepdims=True)]
    )


def _fits(
    top: Sequence[Noisy], bottom: Sequence[Noisy], rules: RatioRules, model: RatioModel, drawing: _Drawing
) -> list[RatioEstimate]:
    """First part, second part, total."""
    if rules.form == "shared":
        total, first, second = _joint(top[0], top[1], bottom[0], model, drawing)
        return [first, second, total]
    return [_single(num, den, model, drawing) for num, den in zip(top, bottom, strict=True)]


def _joint(
    first: Noisy, second: Noisy, den: Noisy, model: RatioModel, drawing: _Drawing
) -> tuple[RatioEstimate, ...]:
    if first[1] == second[1] == den[1] == 0:
        bottom = max(den[0], 1.0)
        one, other = max(first[0], 0.0), max(second[0], 0.0)
        least = (model.lowest, 0.0, 0.0)
        return tuple(
            _known(num, bottom, low, model) for num, low in zip((one + other, one, other), least, strict=True)
        )
    if drawing.settings.method == "sample":
        return drawing.fit((first, second), den, model)
    far = unbounded_joint(first, second, den, model)
    if far is None and 0 in (first[1], second[1], den[1]):
        raise _MixedError
    return far or estimate_joint(first, second, den, model)


def _single(num: Noisy, den: Noisy, model: RatioModel, drawing: _Drawing) -> RatioEstimate:
    if num[1] == den[1] == 0:
        return _known(max(num[0], 0.0), max(den[0], 1.0), model.lowest, model)
    if drawing.settings.method == "sample":
        return drawing.fit((num,), den, model)[0]
    far = unbounded_single(num, den, model)
    if far is None and 0 in (num[1], den[1]):
        raise _MixedError
    return far or estimate_single(num, den, model)


def _known(num: float, den: float, lowest: float, model: RatioModel) -> RatioEstimate:
    ratio = min(max(num / den, lowest), model.largest)
    return RatioEstimate(ratio, ratio, ratio, num, den)
