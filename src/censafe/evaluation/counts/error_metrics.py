"""CONFIDENTIAL. The error metrics of one sample of true and published counts, from different values and how often each occurs."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_WIDEST: Final = 1 << 22


@dataclass(frozen=True, eq=False)
class Tally:
    """Values in ascending order, each once, and their counts.

    Args:
        values: shape (v,).
        counts: int64, shape (v,).
    """

    values: NDArray[Any] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    @property
    def number(self) -> int:
        """How many values there are, repetitions included."""
        return int(self.counts.sum())

    @property
    def total(self) -> float:
        """Sum of all values."""
        return float((self.values.astype(np.float64) * self.counts).sum())

    @property
    def squares(self) -> float:
        """Sum of all squared values."""
        return float((self.values.astype(np.float64) ** 2 * self.counts).sum())

    @property
    def mean(self) -> float:
        """Mean; NaN without values."""
        return self.total / self.number if self.number else float("nan")

    @property
    def deviation(self) -> float:
        """Standard deviation with one degree of freedom less; NaN below two values."""
        if self.number < 2:
            return float("nan")
        centered = (self.values.astype(np.float64) - self.mean) ** 2
        return float(np.sqrt((centered * self.counts).sum() / (self.number - 1)))

    def quantile(self, share: float) -> float:
        """Quantile by linear interpolation; NaN without values.

        Example:
            >>> tally_of(np.array([0, 0, 10, 3, 2])).quantile(0.75)
            3.0
        """
        if not self.number:
            return float("nan")
        place = (self.number - 1) * share
        ends = np.cumsum(self.counts)
        low, high = (
            float(self.values[np.searchsorted(ends, int(at), side="right")])
            for at in (np.floor(place), np.ceil(place))
        )
        return low + (high - low) * float(place - np.floor(place))

    def absolute(self) -> Tally:
        """The tally of absolute values."""
        values, place = np.unique(np.abs(self.values), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, self.counts)
        return Tally(values, counts)

    def margin(self, confidence: Fraction) -> float:
        """Smallest size that at least this share of all values does not exceed; NaN without values."""
        if not self.number:
            return float("nan")
        sizes = self.absolute()
        needed = -(-confidence.numerator * self.number // confidence.denominator)
        return float(sizes.values[np.searchsorted(np.cumsum(sizes.counts), needed)])

    def share_within(self, margin: float) -> float:
        """Share of values of at most this size; NaN without values."""
        inside = int(self.counts[np.abs(self.values) <= margin].sum())
        return inside / self.number if self.number else float("nan")

    def with_zeros(self, zeros: int) -> Tally:
        """The same with more zeros."""
        if not zeros:
            return self
        place = int(np.searchsorted(self.values, 0))
        if place < len(self.values) and self.values[place] == 0:
            counts = self.counts.copy()
            counts[place] += zeros
            return Tally(self.values, counts)
        return Tally(np.insert(self.values, place, 0), np.insert(self.counts, place, zeros))

    def without_zeros(self) -> Tally:
        """The same without its zeros."""
        nonzero = self.values != 0
        return Tally(self.values[nonzero], self.counts[nonzero])


def tally_of(values: NDArray[Any]) -> Tally:
    """Count equal values.

    Args:
        values: whole or other numbers, shape (n,).
    """
    if values.dtype.kind in "iu" and len(values):
        low = int(values.min())
        if int(values.max()) - low < _WIDEST:
            counts = np.bincount(values - low)
            distinct_values = np.flatnonzero(counts)
            return Tally(distinct_values + low, counts[distinct_values])
    distinct, counts = np.unique(values, return_counts=True)
    return Tally(distinct, counts.astype(np.int64))


def sorted_quantile(ordered: NDArray[np.float64], zeros: int, share: float) -> float:
    """Quantile of numbers of zero or more to which zeros are added, by linear interpolation.

    Args:
        ordered: rising, shape (n,).
    """
    number = len(ordered) + zeros
    if not number:
        return float("nan")
    place = (number - 1) * share
    low, high = (
        0.0 if at < zeros else float(ordered[at - zeros])
        for at in (int(np.floor(place)), int(np.ceil(place)))
    )
    return low + (high - low) * float(place - np.floor(place))


METRICS: Final = (
    "mean_ae", "median_ae", "p90_ae", "pct95_ae", "max_ae", "rmse", "me", "median_d", "min_d", "max_d", "sd_r", "mape",
    "malpe", "median_ape", "p90_ape", "p95_ape", "max_ape", "mean_relative_error", "total_relative_error", "cv",
    "ape_2_to_5", "ape_over_5", "ape_over_10", "ae_over_200", "up_over_50000", "down_over_50000", "up_from_20_to_100",
    "down_from_100_to_20", "n_cells", "n_zero_zero", "n_from_zero", "count_median",
    "count_pct95", "count_mean", "count_std",
)  # fmt: skip

_NAN: Final = float("nan")
_LARGE: Final = 50_000
_FEW: Final = 20
_MANY: Final = 100
DEVIATIONS: Final = 1.6448536269514722
"""Standard deviations from the middle to an end of a 90 % interval."""
MetricInterval = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class ErrorSample:
    """CONFIDENTIAL. Counts that are not zero on both sides, and how many are.

    Args:
        confidential: shape (m,).
        published: shape (m,).
        area: position of the area of every entry, shape (m,).
    """

    confidential: NDArray[np.int64] = field(repr=False)
    published: NDArray[Any] = field(repr=False)
    area: NDArray[np.int32] = field(repr=False)
    zero_zero: int
    areas: int
    domain: int


def error_metrics(sample: ErrorSample, *, non_zero_counts: bool = False) -> dict[str, MetricInterval]:
    """Every metric of ``METRICS`` with its interval (NaN without one).

    The percent difference is 100 (P - C) / C; where C is zero it is 0 for P = 0 and 200, with the sign of P, otherwise.
    ``mean_relative_error`` is the mean of abs(P - C) / C where C is not zero, ``total_relative_error`` the sum of errors over
    the sum of counts, and ``cv`` 100 rmse over the mean count.
    """
    number = len(sample.confidential) + sample.zero_zero
    if not number:
        return dict.fromkeys(METRICS, (_NAN, _NAN, _NAN)) | dict.fromkeys(
            ("n_cells", "n_zero_zero", "n_from_zero"), (0.0, _NAN, _NAN)
        )
    residual = sample.published - sample.confidential
    signed = tally_of(residual).with_zeros(sample.zero_zero)
    count = tally_of(sample.confidential).with_zeros(sample.zero_zero)
    metrics = {
        **_sizes(signed),
        **_percents(sample, residual, number),
    }
    true = count.total
    metrics["total_relative_error"] = signed.absolute().total / true if true else _NAN
    metrics["cv"] = 100 * metrics["rmse"] / count.mean if true else _NAN
    counted = count.without_zeros() if non_zero_counts else count
    metrics |= {
        "count_median": counted.quantile(0.5),
        "count_pct95": counted.quantile(0.95),
        "count_mean": counted.mean,
        "count_std": counted.deviation,
    }
    # counts that reach 50,000 on one side only, and those below 20 on one side and of 100 or more on the other
    side, public = sample.confidential, sample.published
    large, was_large = public >= _LARGE, side >= _LARGE
    metrics |= {
        "up_over_50000": float((large & ~was_large).sum()),
        "down_over_50000": float((was_large & ~large).sum()),
        "up_from_20_to_100": float(((side < _FEW) & (public >= _MANY)).sum()),
        "down_from_100_to_20": float(((side >= _MANY) & (public < _FEW)).sum()),
    }
    metrics["n_cells"] = float(number)
    metrics["n_zero_zero"] = float(sample.domain - len(sample.confidential))
    metrics["n_from_zero"] = float(((sample.confidential == 0) & (residual != 0)).sum())
    intervals = _intervals(sample, residual, number)
    return {name: (metrics[name], *intervals.get(name, (_NAN, _NAN))) for name in METRICS}


def _sizes(signed: Tally) -> dict[str, float]:
    absolute = signed.absolute()
    return {
        "mean_ae": absolute.mean,
        "median_ae": absolute.quantile(0.5),
        "p90_ae": absolute.quantile(0.9),
        "pct95_ae": absolute.quantile(0.95),
        "max_ae": float(absolute.values[-1]),
        "rmse": float(np.sqrt(signed.squares / signed.number)),
        "me": signed.mean,
        "median_d": signed.quantile(0.5),
        "min_d": float(signed.values[0]),
        "max_d": float(signed.values[-1]),
        "sd_r": signed.deviation,
        "ae_over_200": float(absolute.counts[absolute.values > 200].sum()),
    }


def _percents(sample: ErrorSample, residual: NDArray[Any], number: int) -> dict[str, float]:
    known = sample.confidential > 0
    wrong = residual != 0
    percent = 100.0 * residual[known & wrong] / sample.confidential[known & wrong]
    from_zero = np.sign(sample.published[~known & wrong])
    malpe = (float(percent.sum()) + 200.0 * float(from_zero.sum())) / number
    np.abs(percent, out=percent)
    total = float(percent.sum())
    ape = np.sort(np.concatenate([percent, np.full(len(from_zero), 200.0)]))
    exact = number - len(ape)
    above = len(ape) - np.searchsorted(ape, [5.0, 10.0], side="right")
    between = np.searchsorted(ape, 5.0, side="right") - np.searchsorted(ape, 2.0, side="left")
    return {
        "mape": (total + 200.0 * len(from_zero)) / number,
        "malpe": malpe,
        "median_ape": sorted_quantile(ape, exact, 0.5),
        "p90_ape": sorted_quantile(ape, exact, 0.9),
        "p95_ape": sorted_quantile(ape, exact, 0.95),
        "max_ape": float(ape[-1]) if len(ape) else 0.0,
        "mean_relative_error": total / 100 / int(known.sum()) if known.any() else _NAN,
        "ape_2_to_5": float(between),
        "ape_over_5": float(above[0]),
        "ape_over_10": float(above[1]),
    }


def _intervals(sample: ErrorSample, residual: NDArray[Any], number: int) -> dict[str, tuple[float, float]]:
    """Intervals of means from sums by area: areas are clusters, a ratio estimator where their numbers of answers differ."""
    if sample.areas < 2:
        return {}
    entries = np.bincount(sample.area)
    present = entries > 0
    size = entries[present].astype(np.float64)
    if sample.zero_zero:
        size[:] = number / sample.areas
    silent = sample.areas - len(size) if sample.zero_zero else 0
    floats = residual.astype(np.float64)
    intervals = {}
    for name, values in (("mean_ae", np.abs(floats)), ("me", floats), ("rmse", floats * floats)):
        sums = np.bincount(sample.area, weights=values)[present]
        mean = float(sums.sum()) / number
        squares = float(((sums - mean * size) ** 2).sum()) + silent * (mean * number / sample.areas) ** 2
        width = DEVIATIONS * float(np.sqrt(squares * sample.areas / (sample.areas - 1))) / number
        low, high = mean - width, mean + width
        intervals[name] = (
            (low, high) if name != "rmse" else (float(np.sqrt(max(low, 0.0))), float(np.sqrt(high)))
        )
    return intervals
