"""CONFIDENTIAL. What tables of summary metrics say of counts: errors, rates, shares, ages, largest kinds and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.counts.error_metrics import METRICS, ErrorSample, MetricInterval, error_metrics
from censafe.evaluation.summary.conditions import CONDITIONS, YEARS, Condition, Side, median_age
from censafe.evaluation.summary.counts import Counted
from censafe.evaluation.summary.tables import ErrorRate, Line, SummaryRequest

_Numbers = NDArray[Any]
Found = dict[str, MetricInterval]
_NAN: Final = float("nan")
_MALE, _FEMALE = SummaryRequest("person", ("male",)), SummaryRequest("person", ("female",))
COUNT_METRICS: Final = ("n_below", "median_reduction", "n_differs")


@dataclass(frozen=True, eq=False)
class Given:
    """CONFIDENTIAL. What a row is measured from.

    Args:
        included: areas of the row, shape (areas,).
        no_quarters: areas without facilities of group quarters; None where they are not known.
    """

    counts: Mapping[SummaryRequest, Counted] = field(repr=False)
    included: NDArray[np.bool_] = field(repr=False)
    run: int
    rates: Mapping[str, ErrorRate]
    totals: tuple[float, float] = (_NAN, _NAN)
    no_quarters: NDArray[np.bool_] | None = field(default=None, repr=False)

    def sides(self, request: SummaryRequest) -> tuple[_Numbers, _Numbers]:
        """True and published counts at the areas of the row."""
        counted = self.counts[request]
        return counted.true[self.included], counted.published[self.run][self.included]


def required(line: Line, rates: Mapping[str, ErrorRate]) -> tuple[SummaryRequest, ...]:
    """What must be counted so that a row has any number."""
    if line.measure == "rate":
        rate = rates[line.options[0]]
        return (rate.of, rate.to)
    if line.measure == "ages and sexes":
        return ()
    if line.measure == "largest":
        return line.among
    if line.measure == "condition" and len(line.options) == 1:
        return CONDITIONS[line.options[0]].requests(line.request.terms)
    return (line.request,) if line.measure in ("counts", "shares") else ()


def welcome(line: Line) -> tuple[tuple[SummaryRequest, ...], ...]:
    """Further groups of counts, each of which gives some of the numbers of a row."""
    if line.measure == "ages and sexes":
        return (tuple(line.request.within([year]) for year in YEARS), (_MALE, _FEMALE))
    if line.measure == "condition" and len(line.options) > 1:
        return tuple(CONDITIONS[name].requests(line.request.terms) for name in line.options)
    return ()


def size_request(line: Line) -> SummaryRequest | None:
    """What the class of areas of a row is by; None for all areas."""
    if line.size.low is None:
        return None
    if line.size.by == "own":
        return line.request
    return SummaryRequest("person", (line.size.by,) if line.size.by else ())


def measure_summary(line: Line, given: Given) -> Found:
    """Metrics of a row, each with its interval (NaN without one); those that need counts not at hand are left out."""
    return _MEASURES[line.measure](line, given)


def _counts(line: Line, given: Given) -> Found:
    true, public = given.sides(line.request)
    number = len(true)
    if not number:
        return dict.fromkeys((*METRICS, *COUNT_METRICS), (_NAN, _NAN, _NAN))
    some = np.flatnonzero((true != 0) | (public != 0))
    sample = ErrorSample(
        true[some], public[some], some.astype(np.int32), number - len(some), areas=number, domain=number
    )
    below = public < true
    reduced = 100.0 * (public[below] - true[below]) / true[below]
    return error_metrics(sample) | _alone(
        {
            "n_below": below.sum(),
            "median_reduction": np.median(reduced) if len(reduced) else _NAN,
            "n_differs": (public != true).sum(),
        }
    )


def _rate(line: Line, given: Given) -> Found:
    rate = given.rates[line.options[0]]
    above, below = given.sides(rate.of), given.sides(rate.to)
    true, public = (
        rate.scale
        * np.divide(of, to, out=np.full(len(of), 0.0 if rate.empty_is_zero else _NAN), where=to > 0)
        for of, to in zip(above, below, strict=True)
    )
    known = ~(np.isnan(true) | np.isnan(public))
    change = (public - true)[known]
    if not len(change):
        return _alone({"n_undefined": len(known)})
    base = np.where(true[known] > 0, true[known], (true[known] + public[known]) / 2)
    percent = np.abs(np.divide(100 * change, base, out=np.zeros(len(change)), where=base > 0))
    size = np.abs(change)
    (true_of, public_of), (true_to, public_to) = above, below
    full, empty = (public_of == public_to) & (public_to > 0), (public_of == 0) & (public_to > 0)
    true_full, true_empty = (true_of == true_to) & (true_to > 0), (true_of == 0) & (true_to > 0)
    return _alone(
        {
            "mean_ae": size.mean(),
            "rmse": np.sqrt((change**2).mean()),
            "me": change.mean(),
            "ape_2_to_5": ((percent >= 2) & (percent <= 5)).sum(),
            "ape_over_5": (percent > 5).sum(),
            "full_only_published": (full & ~true_full).sum(),
            "none_only_published": (empty & ~true_empty).sum(),
            "points_2_to_5": ((size >= 2) & (size <= 5)).sum(),
            "points_over_5": (size > 5).sum(),
            "up_to_90": ((public[known] >= 90) & (true[known] < 90)).sum(),
            "n_undefined": (~known).sum(),
        }
    )


def _shares(line: Line, given: Given) -> Found:
    true, public = given.sides(line.request)
    of_true, of_public = given.totals
    if not (len(true) and of_true > 0 and of_public > 0):
        return {"taes": (_NAN, _NAN, _NAN)}
    return _alone({"taes": np.abs(true / of_true - public / of_public).sum()})


def _ages_and_sexes(line: Line, given: Given) -> Found:
    found: dict[str, float] = {}
    undefined = 0
    years = [line.request.within([year]) for year in YEARS]
    if all(year in given.counts for year in years):
        both = [given.sides(year) for year in years]
        true, public = (median_age(np.stack([pair[side] for pair in both], axis=1)) for side in (0, 1))
        found["median_age_change"], undefined = _mean_change(true, public)
    if {_MALE, _FEMALE} <= set(given.counts):
        ratios = [
            np.divide(100.0 * men, women, out=np.full(len(men), _NAN), where=women > 0)
            for men, women in zip(given.sides(_MALE), given.sides(_FEMALE), strict=True)
        ]
        found["sex_ratio_change"], more = _mean_change(*ratios)
        undefined = max(undefined, more)
    return _alone({**found, "n_undefined": undefined})


def _mean_change(true: _Numbers, public: _Numbers) -> tuple[float, int]:
    """Mean absolute change, and how many areas have none because a side has no value."""
    change = np.abs(public - true)
    known = ~np.isnan(change)
    return (float(change[known].mean()) if known.any() else _NAN), int((~known).sum())


def _largest(line: Line, given: Given) -> Found:
    sides = [given.sides(request) for request in line.among]
    true, public = (np.stack([side[at] for side in sides], axis=1) for at in (0, 1))
    largest = true == true.max(axis=1, initial=0)[:, None]
    # of several that are largest any may stay so
    changed = (true.sum(axis=1) > 0) & ~largest[np.arange(len(true)), public.argmax(axis=1)]
    return _alone({"largest_changed": changed.sum()})


def _condition(line: Line, given: Given) -> Found:
    found: Found = {}
    for name in line.options:
        condition = CONDITIONS[name]
        if all(request in given.counts for request in condition.requests(line.request.terms)):
            met = _met(condition, line, given)
            found |= met if len(line.options) == 1 else {}
            found[f"n_{name.replace('-', '_')}"] = met["met_published"]
    return found


def _met(condition: Condition, line: Line, given: Given) -> Found:
    """Universe, number and percent of both sides."""
    asked = condition.requests(line.request.terms)
    known = None if given.no_quarters is None else given.no_quarters[given.included]
    true, public = (
        Side({request: given.sides(request)[at] for request in asked}, line.request.terms, known)
        for at in (0, 1)
    )
    found: dict[str, float] = {}
    for words, side in (("true", true), ("published", public)):
        universe, met = condition.test(side, true)
        inside = int(universe.sum())
        found |= {
            f"universe_{words}": inside,
            f"met_{words}": int(met.sum()),
            f"percent_met_{words}": 100 * int(met.sum()) / inside if inside else _NAN,
        }
    return _alone(found)


def _alone(values: Mapping[str, Any]) -> Found:
    """Numbers without intervals."""
    return {name: (float(value), _NAN, _NAN) for name, value in values.items()}


_MEASURES: Final[Mapping[str, Callable[[Line, Given], Found]]] = {
    "counts": _counts,
    "rate": _rate,
    "shares": _shares,
    "ages and sexes": _ages_and_sexes,
    "largest": _largest,
    "condition": _condition,
}
