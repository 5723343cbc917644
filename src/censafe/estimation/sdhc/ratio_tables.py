"""Ratios with intervals for the tables of averages, total and parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.sdhc.cells import GroupedCells
from censafe.estimation.sdhc.counts import margin_factor
from censafe.estimation.sdhc.lattice_ratios import NoisyCount
from censafe.estimation.sdhc.ratio_fits import GroupFit
from censafe.estimation.sdhc.ratio_types import RatioEstimate, UnansweredError
from censafe.estimation.sdhc.rules import RatioRules
from censafe.model.sdhc_cells import key_text
from censafe.model.sdhc_estimates import RatioEstimates
from censafe.model.sdhc_settings import EstimateSettings

__all__ = ["estimate_ratios", "matched"]

Floats = NDArray[np.float64]


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
