"""All S-DHC estimates of a set of published noisy tables, and their checks: what is wrong stops, what is odd is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.special import ndtr

from censafe.errors import CheckError, DataError
from censafe.estimation.sdhc.counts import GroupedCells, estimate_counts, grouped
from censafe.estimation.sdhc.posteriors import geometric_scale
from censafe.estimation.sdhc.ratios.tables import estimate_ratios
from censafe.estimation.sdhc.settings import CountRules, RatioRules
from censafe.model.sdhc import (
    CountEstimates,
    Estimated,
    EstimatedFile,
    EstimateFinding,
    EstimateSettings,
    NoisyCells,
    RatioEstimates,
    key_text,
)

_FAR = 6.0  # standard deviations between noisy count and estimate, the reference's limit
_RARE = 1e-9
_SLACK = 1e-9  # quadrature may leave a ratio this far beyond its bound


def count_findings(estimates: CountEstimates, settings: EstimateSettings) -> tuple[EstimateFinding, ...]:
    """What the reference's check of its output looks for, made fit for noisy counts below 0.

    Source: the reference stops when an estimate is 0 or lies more than 6 standard deviations from its noisy count. Both
        happen by design when a small count has much noise, so that here the second is required of positive noisy counts only,
        and of others whether noise alone explains them.
    """
    wrong = (estimates.pred < 0) | (estimates.low < 0) | (estimates.low > estimates.high)
    for group, column in np.argwhere(wrong)[:1].tolist():
        where = key_text(estimates.table, estimates.keys[group], estimates.cells[column])
        raise CheckError(f"{where}: estimate or interval is impossible; do not publish the estimates")
    return tuple(_odd_counts(estimates, settings))


def _odd_counts(estimates: CountEstimates, settings: EstimateSettings) -> Iterator[EstimateFinding]:
    sigma = np.sqrt(estimates.variance)
    apart = np.abs(estimates.pred - estimates.noisy) > _FAR * sigma + 0.5  # half a person by rounding
    if settings.conventions == "reference":
        apart = np.abs(estimates.pred - estimates.noisy) > _FAR * sigma
        yield from _at(estimates, estimates.pred == 0, "the reference's check stops: the estimate is 0")
        yield from _at(estimates, apart, "the reference's check stops: more than 6 standard deviations apart")
        return
    yield from _at(
        estimates,
        apart & (estimates.noisy > 0),
        "the estimate lies more than 6 standard deviations from the noisy count",
    )
    rare = (estimates.noisy <= 0) & (sigma > 0) & (_tail(estimates, sigma) < _RARE)
    yield from _at(estimates, rare, "the noisy count is lower than noise about 0 explains (one in 10^9)")
    below = (estimates.noisy < 0) & (sigma == 0)
    yield from _at(estimates, below, "a count without noise is below 0; the estimate is 0")


def _tail(estimates: CountEstimates, sigma: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float64]:
    """Probability of a noisy count this low when the true count is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where(sigma > 0, estimates.noisy / sigma, 0.0)
        wide = np.exp(
            np.minimum(estimates.noisy, 0) / geometric_scale(np.where(sigma > 0, estimates.variance, 1.0))
        )
    return np.where(estimates.geometric, wide, ndtr(r))


def ratio_findings(estimates: RatioEstimates, settings: EstimateSettings) -> tuple[EstimateFinding, ...]:
    """Ratios whose noisy denominator is 0, after a check that all estimates lie within their bounds."""
    lowest = np.asarray(estimates.lowest)
    inside = (estimates.ratio >= lowest - _SLACK) & (estimates.ratio <= settings.trun + _SLACK)
    wrong = ~(
        inside & (estimates.low <= estimates.high) & np.isfinite(estimates.low) & np.isfinite(estimates.high)
    )
    for group, column in np.argwhere(wrong)[:1].tolist():
        where = key_text(estimates.table, estimates.keys[group], estimates.cells[column])
        raise CheckError(f"{where}: the ratio is outside its bounds; do not publish the estimates")
    return tuple(
        _at(estimates, estimates.den == 0, "the noisy denominator is 0; the noisy ratio is not a number")
    )


def _at(
    estimates: CountEstimates | RatioEstimates, where: np.typing.NDArray[np.bool_], text: str
) -> Iterator[EstimateFinding]:
    for group, column in np.argwhere(where).tolist():
        yield EstimateFinding(estimates.table, estimates.keys[group], estimates.cells[column], text)


def estimate_tables(
    noisy: Mapping[str, NoisyCells],
    counts: Sequence[CountRules],
    ratios: Sequence[RatioRules],
    settings: EstimateSettings,
    *,
    workers: int = 1,
) -> Estimated:
    """Estimate every table of counts and ratios whose noisy counts are there, type of region by type of region."""
    files: list[EstimatedFile] = []
    remarks: list[str] = []
    for rules in counts:
        table = noisy.get(rules.table)
        if table is None:
            remarks.append(f"{rules.table} has no noisy counts, so it is not estimated")
            continue
        for kind, rows in _by_type(table, settings, remarks):
            estimates = estimate_counts(grouped(rows, rules.basis), rules, settings, workers=workers)
            files.append(EstimatedFile(kind, estimates, count_findings(estimates, settings)))
    for ratio in ratios:
        files += _ratio_files(noisy, ratio, settings, remarks, workers)
    remarks += _remarks_on_models(files, settings)
    return Estimated(tuple(files), tuple(dict.fromkeys(remarks)))


def _ratio_files(
    noisy: Mapping[str, NoisyCells],
    rules: RatioRules,
    settings: EstimateSettings,
    remarks: list[str],
    workers: int,
) -> Iterator[EstimatedFile]:
    absent = [name for name in (rules.numerator, rules.denominator) if name not in noisy]
    if absent:
        remarks.append(f"{' and '.join(absent)}: no noisy counts, so {rules.table} is not estimated")
        return
    bottoms = dict(_by_type(noisy[rules.denominator], settings, remarks))
    for kind, tops in _by_type(noisy[rules.numerator], settings, remarks):
        if kind not in bottoms:
            raise DataError(f"{rules.denominator} has no rows of type {kind}, and {rules.numerator} has")
        num: GroupedCells = grouped(tops, rules.parts)
        den = grouped(bottoms.pop(kind), rules.denominators)
        estimates = estimate_ratios(num, den, rules, settings, workers=workers)
        yield EstimatedFile(kind, estimates, ratio_findings(estimates, settings))
    if bottoms:
        raise DataError(
            f"{rules.numerator} has no rows of type {next(iter(bottoms))}, and {rules.denominator} has"
        )


def _by_type(
    table: NoisyCells, settings: EstimateSettings, remarks: list[str]
) -> Iterator[tuple[str, NoisyCells]]:
    """Rows of each type of region, in the order of first appearance, but for the types left out."""
    for kind in dict.fromkeys(table.region_type.tolist()):
        if kind.upper() in settings.exclude_levels:
            remarks.append(f"regions of type {kind} are left out (exclude_levels)")
        else:
            yield kind, table.selected(np.asarray(table.region_type == kind))


def _remarks_on_models(files: Sequence[EstimatedFile], settings: EstimateSettings) -> Iterator[str]:
    """What is to be known where the noise is not normal, or ratios are drawn from another model than counts."""
    for shape, noun in ((CountEstimates, "counts"), (RatioEstimates, "ratios")):
        own = [file.estimates for file in files if isinstance(file.estimates, shape)]
        if not any(bool(estimates.geometric.any()) for estimates in own):
            continue
        text = f"{noun} have two-sided geometric noise"
        ratios = shape is RatioEstimates
        exact = settings.model == "discrete" and settings.method == "exact" if ratios else True
        if exact and settings.conventions == "censafe":
            yield f"{text}; they are estimated by its exact law over whole numbers"
        else:
            more = "; model = discrete has its exact law" if ratios else ""
            yield f"{text}; the normal model is an approximation of it{more}"
    drawn = settings.method == "sample" and settings.model == "discrete"
    if drawn and any(isinstance(file.estimates, RatioEstimates) for file in files):
        yield "ratios are drawn from the continuous model; only counts are drawn as whole numbers"
