"""A million draws, orders that must hold, and the limits of the cut normal law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.estimation.sdhc.counts import sum_distribution
from censafe.estimation.sdhc.draws import drawn_counts, drawn_ratios
from censafe.estimation.sdhc.posteriors import truncated_mean, truncated_quantile
from censafe.estimation.sdhc.ratios.intervals import RatioModel
from censafe.estimation.sdhc.ratios.quadrature import estimate_joint
from censafe.model.sdhc import EstimateSettings

DRAWS = 1_000_000
Z = (-100, -64, 5, 30, 400)
VARIANCE = 147.8
TAILS = (0.05, 0.95)


def four_errors(draws: np.ndarray, ends: np.ndarray) -> None:
    """Both ends leave their tails, as far as a million draws can tell."""
    held = [np.mean(draws <= end) for end in ends]
    assert held == pytest.approx(list(TAILS), abs=4 * (0.0475 / DRAWS) ** 0.5)


def test_a_million_draws_agree_with_closed_forms_within_four_standard_errors() -> None:
    size = len(Z)
    draws = drawn_counts(
        np.array(Z, np.int64),
        np.full(size, VARIANCE),
        np.full(size, False),
        EstimateSettings(),
        np.random.default_rng(7),
    )
    assert draws.shape == (DRAWS, size)
    error = draws.std(axis=0) / DRAWS**0.5
    assert (np.abs(draws.mean(axis=0) - truncated_mean(Z, VARIANCE)) < 4 * error).all()
    for cell, z in enumerate(Z):
        four_errors(draws[:, cell], truncated_quantile(TAILS, z, VARIANCE))
    four_errors(draws[:, 1:4].sum(axis=1), sum_distribution(Z[1:4], [VARIANCE] * 3).quantiles(TAILS))


def test_a_million_draws_agree_with_quadrature_within_four_standard_errors() -> None:
    parts, den, model = ((300.0, 1709.0), (700.0, 1709.0)), (380.0, 1709.0), RatioModel(1)
    found = drawn_ratios(parts, den, model, DRAWS, np.random.default_rng(3))
    for one, exact in zip(found, estimate_joint(*parts, den, model), strict=True):
        spread = (exact.high - exact.low) / 3.3
        assert one.ratio == pytest.approx(exact.ratio, abs=4 * spread / DRAWS**0.5)
        # error of a normal law's 5% quantile: 2.1 standard deviations over the root of the number of draws
        assert (one.low, one.high) == pytest.approx(
            (exact.low, exact.high), abs=4 * 2.3 * spread / DRAWS**0.5
        )


@settings(max_examples=100)
@given(st.floats(-60, 60), st.floats(1e-6, 5), st.floats(0.001, 0.999))
def test_quantiles_grow_with_the_noisy_count(z: float, more: float, p: float) -> None:
    assert truncated_quantile(p, z + more, 1.0) >= truncated_quantile(p, z, 1.0)


@settings(max_examples=100)
@given(st.floats(-1e5, 1e5), st.floats(0.1, 1e5))
def test_means_lie_within_their_intervals(z: float, variance: float) -> None:
    low, high = truncated_quantile(TAILS, z, variance)
    assert low <= truncated_mean(z, variance) <= high


def test_limits_far_above_and_far_below_zero() -> None:
    assert truncated_quantile(TAILS, 9.0, 1.0) == pytest.approx([9 - 1.6448536, 9 + 1.6448536], abs=1e-7)
    assert truncated_mean(9.0, 1.0) == pytest.approx(9.0, rel=1e-15)
    assert truncated_quantile(TAILS, -1e6, 1.0) == pytest.approx(-np.log1p(-np.array(TAILS)) / 1e6, rel=1e-9)
