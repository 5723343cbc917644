"""Checks of finished estimates: what is wrong stops, what is odd is reported."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from censafe.errors import CheckError
from censafe.estimation.sdhc.discrete import geometric_scale
from censafe.model.sdhc_cells import key_text
from censafe.model.sdhc_estimates import CountEstimates, EstimateFinding, RatioEstimates
from censafe.model.sdhc_settings import EstimateSettings

__all__ = ["count_findings", "ratio_findings"]

_FAR = 6.0  # standard deviations between noisy count and estimate, the reference's limit
_RARE = 1e-9
_SLACK = 1e-9  # quadrature may leave a ratio this far beyond its bound


def count_findings(found: CountEstimates, settings: EstimateSettings) -> tuple[EstimateFinding, ...]:
    """What the reference's check of its output looks for, made fit for noisy counts below 0.

    Args:
        found: estimates of one table.
        settings: with the conventions; in the reference's, findings name what its check stops at.

    Raises:
        CheckError: an estimate below 0, or the ends of an interval in the wrong order.

    Source: the reference stops when an estimate is 0 or lies more than 6 standard deviations from its noisy count. Both
        happen by design when a small count has much noise, so that here the second is asked of positive noisy counts only,
        and of others whether noise alone explains them.
    """
    wrong = (found.pred < 0) | (found.low < 0) | (found.low > found.high)
    for group, column in np.argwhere(wrong)[:1].tolist():
        where = key_text(found.table, found.keys[group], found.cells[column])
        raise CheckError(f"{where}: estimate or interval is impossible; do not publish the estimates")
    return tuple(_odd_counts(found, settings))


def _odd_counts(found: CountEstimates, settings: EstimateSettings) -> Iterator[EstimateFinding]:
    sigma = np.sqrt(found.variance)
    apart = np.abs(found.pred - found.noisy) > _FAR * sigma + 0.5  # half a person by rounding
    if settings.conventions == "reference":
        apart = np.abs(found.pred - found.noisy) > _FAR * sigma
        yield from _at(found, found.pred == 0, "the reference's check stops: the estimate is 0")
        yield from _at(found, apart, "the reference's check stops: more than 6 standard deviations apart")
        return
    yield from _at(
        found,
        apart & (found.noisy > 0),
        "the estimate lies more than 6 standard deviations from the noisy count",
    )
    rare = (found.noisy <= 0) & (sigma > 0) & (_tail(found, sigma) < _RARE)
    yield from _at(found, rare, "the noisy count is lower than noise about 0 explains (one in 10^9)")
    below = (found.noisy < 0) & (sigma == 0)
    yield from _at(found, below, "a count without noise is below 0; the estimate is 0")


def _tail(found: CountEstimates, sigma: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float64]:
    """Probability of a noisy count this low when the true count is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where(sigma > 0, found.noisy / sigma, 0.0)
        wide = np.exp(np.minimum(found.noisy, 0) / geometric_scale(np.where(sigma > 0, found.variance, 1.0)))
    return np.where(found.geometric, wide, ndtr(r))


def ratio_findings(found: RatioEstimates, settings: EstimateSettings) -> tuple[EstimateFinding, ...]:
    """Ratios whose noisy denominator is 0, after a check that all estimates lie within their bounds.

    Args:
        found: estimates of one table.
        settings: with the largest ratio.

    Raises:
        CheckError: a ratio outside its bounds or not a number, or the ends of an interval in the wrong order.
    """
    lowest = np.asarray(found.lowest)
    inside = (found.ratio >= lowest - _SLACK) & (found.ratio <= settings.trun + _SLACK)
    wrong = ~(inside & (found.low <= found.high) & np.isfinite(found.low) & np.isfinite(found.high))
    for group, column in np.argwhere(wrong)[:1].tolist():
        where = key_text(found.table, found.keys[group], found.cells[column])
        raise CheckError(f"{where}: the ratio is outside its bounds; do not publish the estimates")
    return tuple(_at(found, found.den == 0, "the noisy denominator is 0; the noisy ratio is not a number"))


def _at(
    found: CountEstimates | RatioEstimates, where: np.typing.NDArray[np.bool_], text: str
) -> Iterator[EstimateFinding]:
    for group, column in np.argwhere(where).tolist():
        yield EstimateFinding(found.table, found.keys[group], found.cells[column], text)
