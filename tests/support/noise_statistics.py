"""A statistical suite for integer noise, with the false-alarm rate and the power it claims.

Five tests on N draws against an exact law: chi-square of abs(X), two-sided variance, count beyond 4 standard
deviations, balance of signs, lag-1 correlation. Each rejects a right law with probability ``ALPHA``.
Seeds are fixed; with CENSAFE_FRESH_SEEDS=1 they are fresh, and a rejection is repeated once with another seed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from censafe.model import NoiseLaw

ALPHA = 1e-6
DRAWS = 1_000_000
_CELLS = 2000


@dataclass(frozen=True, eq=False)
class ExactLaw:
    """Probabilities of abs(X) = 0, 1, ... in double precision, and moments of X."""

    folded: NDArray[np.float64]
    variance: float
    fourth: float

    @classmethod
    def of(cls, law: NoiseLaw) -> ExactLaw:
        """Sum the weights until they vanish in double precision."""
        parameter = float(law.parameter)
        reach = 40 * parameter**0.5 if law.kind == "gaussian" else 45 * parameter
        k = np.arange(int(reach) + 40, dtype=np.float64)
        weights = np.exp(-k * k / (2 * parameter) if law.kind == "gaussian" else -k / parameter)
        weights[1:] *= 2
        folded = weights / weights.sum()
        return cls(folded, float(folded @ k**2), float(folded @ k**4))


def smallest_sigma_defect(exact: ExactLaw, draws: int = DRAWS, power: float = 0.95) -> float:
    """The smallest relative change of sigma that the variance test sees with the given power."""
    spread = np.sqrt((exact.fourth / exact.variance**2 - 1) / draws)
    return float(spread * (stats.norm.isf(ALPHA / 2) + stats.norm.ppf(power)) / 2)


def chi_square(counts: NDArray[np.int64], exact: ExactLaw) -> float:
    """P-value of observed counts of abs(X), cells pooled to at least draws / 2000 expected (and 10)."""
    draws = int(counts.sum())
    size = max(len(counts), len(exact.folded))
    observed, expected = np.zeros(size), np.zeros(size)
    observed[: len(counts)] = counts
    expected[: len(exact.folded)] = draws * exact.folded
    before = np.cumsum(expected) - expected
    # A cell joins the pool in which its expectation begins; the last pool joins the one before.
    pools = np.unique(np.floor(before / max(10.0, draws / _CELLS)), return_inverse=True)[1]
    seen, wanted = np.bincount(pools, observed), np.bincount(pools, expected)
    while len(wanted) > 1 and wanted[-1] < 10:
        seen, wanted = _join_last(seen), _join_last(wanted)
    if len(wanted) == 1:
        return 1.0
    statistic = float(((seen - wanted) ** 2 / wanted).sum())
    return float(stats.chi2.sf(statistic, len(wanted) - 1))


def _join_last(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(values[:-2], values[-2] + values[-1])


def p_values(values: NDArray[np.int64], exact: ExactLaw) -> dict[str, float]:
    """P-value of every test of the suite."""
    draws, size = len(values), np.abs(values)
    real = values.astype(np.float64)
    spread = np.sqrt((exact.fourth - exact.variance**2) / draws)
    deviation = exact.variance**0.5
    edge = (
        int(np.floor(4 * deviation * (1 + 1e-9))) + 1
    )  # the last bits of a computed variance do not move it
    tail = float(exact.folded[edge:].sum())
    signed = int(np.count_nonzero(values))
    lag = float(real[1:] @ real[:-1]) / (exact.variance * np.sqrt(draws - 1))
    return {
        "chi-square": chi_square(np.bincount(size), exact),
        "variance": float(2 * stats.norm.sf(abs(np.mean(real**2) - exact.variance) / spread)),
        "tail": float(stats.binomtest(int(np.count_nonzero(size >= edge)), draws, tail).pvalue),
        "sign": float(stats.binomtest(int(np.count_nonzero(values > 0)), signed).pvalue) if signed else 1.0,
        "lag": float(2 * stats.norm.sf(abs(lag))),
    }


def rejected(values: NDArray[np.int64], exact: ExactLaw) -> set[str]:
    """Names of the tests that reject."""
    return {name for name, p in p_values(values, exact).items() if p < ALPHA}


def assert_drawn_from(exact: ExactLaw, sample: Callable[[int], NDArray[np.int64]], seed: int) -> None:
    """Fail when a test rejects; with fresh seeds, only when one rejects twice in a row."""
    fresh = os.environ.get("CENSAFE_FRESH_SEEDS") == "1"
    first = rejected(sample(secrets.randbits(60) if fresh else seed), exact)
    if first and fresh:
        first &= rejected(sample(secrets.randbits(60)), exact)
    assert first == set()
