"""Closed forms of the cut normal law against 50-digit arithmetic, from -40 to 40 standard deviations and beyond."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from censafe.estimation.sdhc.counts import sum_distribution
from censafe.estimation.sdhc.draws import drawn_counts, drawn_ratios
from censafe.estimation.sdhc.posteriors import (
    count_posterior,
    geometric_scale,
    log_interval,
    shortest_interval,
    summed,
    truncated_mean,
    truncated_quantile,
    truncated_variance,
)
from censafe.estimation.sdhc.ratios.intervals import RatioModel
from censafe.estimation.sdhc.ratios.quadrature import estimate_joint
from censafe.model.sdhc import EstimateSettings

STANDARD = (-1e6, -1e4, -40, -30, -20, -10, -5, -3.01, -3, -2.99, -1, -0.1, 0, 0.5, 1, 3, 5, 8, 10, 20, 40)


def below(z: mp.mpf) -> mp.mpf:
    return mp.erfc(-z / mp.sqrt(2)) / 2


@pytest.mark.parametrize("z", STANDARD)
def test_mean_and_variance_have_all_their_digits(z: float) -> None:
    with mp.workdps(50):
        hazard = mp.npdf(mp.mpf(z)) / below(mp.mpf(z))
        mean, variance = mp.mpf(z) + hazard, 1 - hazard * (hazard + mp.mpf(z))
        assert float(abs(truncated_mean(z, 1.0) / mean - 1)) < 1e-13
        assert float(abs(truncated_variance(z, 1.0) / variance - 1)) < 1e-12


@pytest.mark.parametrize("z", STANDARD)
@pytest.mark.parametrize("p", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_quantiles_leave_the_right_tail(z: float, p: float) -> None:
    with mp.workdps(50):
        beyond = below(mp.mpf(z) - mp.mpf(float(truncated_quantile(p, z, 1.0)))) / below(mp.mpf(z))
        assert float(abs(beyond / (1 - mp.mpf(p)) - 1)) < 1e-12


def test_published_check_value_where_the_usual_formula_fails() -> None:
    assert float(truncated_mean(-100, 147.8)) == pytest.approx(1.4372, abs=5e-5)


def test_scale_goes_through() -> None:
    assert truncated_mean([-6.0], [4.0])[0] == pytest.approx(2 * truncated_mean([-3.0], [1.0])[0], rel=1e-14)


def test_shortest_interval_has_its_probability_and_is_not_longer() -> None:
    z = np.linspace(-5, 6, 23)
    low, high = shortest_interval(0.9, z, 1.0)
    mass = np.exp(log_interval(low - z, high - z) - log_interval(-z, np.full_like(z, np.inf)))
    assert mass == pytest.approx(np.full_like(z, 0.9), abs=1e-12)
    tails = truncated_quantile(0.95, z, 1.0) - truncated_quantile(0.05, z, 1.0)
    assert (high - low <= tails + 1e-12).all()


def test_interval_logs_survive_both_far_tails() -> None:
    with mp.workdps(50):
        expected = float(mp.log(below(mp.mpf(-50)) - below(mp.mpf(-51))))
    assert log_interval([-51.0, 50.0], [-50.0, 51.0]).tolist() == pytest.approx(
        [expected, expected], rel=1e-14
    )


# Coverage of the intervals at fixed true counts, by integration over the noise, against the specification's table.


# true count, equal-tailed coverage and length, shortest coverage and length, bias, root mean squared error; in sigma
TABLE = [
    (0.0, 0.000, 1.95, 0.909, 1.74, 0.904, 1.000),
    (0.25, 0.869, 2.09, 0.931, 1.89, 0.761, 0.900),
    (0.5, 0.925, 2.23, 0.941, 2.05, 0.632, 0.827),
    (1.0, 0.945, 2.51, 0.941, 2.36, 0.415, 0.765),
    (1.5, 0.939, 2.76, 0.910, 2.65, 0.254, 0.787),
    (2.0, 0.924, 2.96, 0.880, 2.89, 0.139, 0.844),
    (3.0, 0.905, 3.20, 0.874, 3.18, 0.031, 0.946),
    (5.0, 0.900, 3.29, 0.899, 3.29, 0.001, 0.999),
]
U = (np.arange(40_000) + 0.5) / 40_000 * 18 - 9
WEIGHT = np.exp(-(U**2) / 2) / np.exp(-(U**2) / 2).sum()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} sigma")
def test_coverage_bias_and_length_are_those_of_the_table(row: tuple[float, ...]) -> None:
    truth, covered, length, covered_shortest, length_shortest, bias, error = row
    z = truth + U
    low, high = truncated_quantile(0.05, z, 1.0), truncated_quantile(0.95, z, 1.0)
    assert float(WEIGHT @ ((low <= truth) & (truth <= high))) == pytest.approx(covered, abs=0.005)
    assert float(WEIGHT @ (high - low)) == pytest.approx(length, abs=0.006)
    low, high = shortest_interval(0.9, z, 1.0)
    assert float(WEIGHT @ ((low <= truth) & (truth <= high))) == pytest.approx(covered_shortest, abs=0.005)
    assert float(WEIGHT @ (high - low)) == pytest.approx(length_shortest, abs=0.006)
    off = truncated_mean(z, 1.0) - truth
    assert float(WEIGHT @ off) == pytest.approx(bias, abs=0.005)
    assert float(WEIGHT @ off**2) ** 0.5 == pytest.approx(error, abs=0.005)


def test_truths_drawn_evenly_are_covered_nine_times_in_ten() -> None:
    rng = np.random.default_rng(3)
    truth = rng.uniform(0, 20, 200_000)
    z = truth + rng.standard_normal(truth.size)
    low, high = truncated_quantile(0.05, z, 1.0), truncated_quantile(0.95, z, 1.0)
    covered = float(np.mean((low <= truth) & (truth <= high)))
    assert covered == pytest.approx(0.9, abs=4 * (0.09 / truth.size) ** 0.5)


# Quantiles of sums against the single cell's closed form, draws, and exact discrete arithmetic.


P = (0.05, 0.5, 0.95)


def quantiles(z: ArrayLike, variance: ArrayLike) -> list[float]:
    found: list[float] = sum_distribution(z, variance).quantiles(np.array(P)).tolist()
    return found


@pytest.mark.parametrize("z", [-500, -64, -3, 0, 5, 30, 84, 86, 4000])
def test_one_cell_has_the_quantiles_of_its_closed_form(z: float) -> None:
    expected = truncated_quantile(P, z, 147.8)
    assert quantiles([z], [147.8]) == pytest.approx(expected, rel=2e-3, abs=1e-4 * expected[1])


def test_published_example() -> None:
    low, _, high = quantiles([-64, 30, 5], [147.8] * 3)
    assert [low, high] == pytest.approx([20.9, 69.06], abs=0.03)


def test_cells_of_different_width_against_draws() -> None:
    z, v = np.array([-64, 30, 5, 100, -3, 0.0, 20, 10]), np.array([147.8, 9, 147.8, 1e3, 1, 147.8, 60, 2.0])
    u = np.random.default_rng(5).random((400_000, 8))
    r = z / np.sqrt(v)
    draws = (z - np.sqrt(v) * ndtri_exp(np.log1p(-u) + log_ndtr(r))).sum(axis=1)
    error = 4 * np.sqrt(0.05 * 0.95 / len(draws)) / np.exp(-(1.645**2) / 2) * np.sqrt(2 * np.pi) * draws.std()
    assert quantiles(z, v) == pytest.approx(np.quantile(draws, P), abs=error)


def test_discrete_posterior_is_the_normalized_likelihood() -> None:
    posterior = count_posterior(2, 4.0, "gaussian")
    y = np.arange(0, 200)
    likelihood = np.exp(-((y - 2.0) ** 2) / 8)
    assert posterior.mean == pytest.approx(float(y @ likelihood / likelihood.sum()), rel=1e-12)
    total = np.cumsum(likelihood) / likelihood.sum()
    assert posterior.quantiles(P).tolist() == [int(np.argmax(total >= p)) for p in P]


def test_shortest_discrete_interval_is_found_by_search() -> None:
    posterior = count_posterior(1, 9.0, "gaussian")
    total = np.concatenate([[0], np.cumsum(posterior.mass)])
    ends = range(total.size)
    lengths = [(j - i, i) for i in ends for j in ends if total[j] - total[i] >= 0.9]
    length, start = min(lengths)
    assert posterior.shortest(0.9) == (posterior.first + start, posterior.first + start + length - 1)


def test_sum_of_discrete_posteriors_adds_means_and_variances() -> None:
    cells = [count_posterior(z, 3.0, "geometric") for z in (-4, 0, 7, 50)]
    total = summed(cells)
    assert total.mean == pytest.approx(sum(cell.mean for cell in cells), rel=1e-9)
    assert total.variance == pytest.approx(sum(cell.variance for cell in cells), rel=1e-9)


def test_continuous_and_discrete_means_agree_under_wide_noise() -> None:
    wide = count_posterior(-20, 2500.0, "gaussian")
    assert wide.mean == pytest.approx(float(truncated_mean(-20, 2500.0)), abs=0.5)


def test_scale_of_the_geometric_law() -> None:
    k = np.arange(-4000, 4001)
    weight = np.exp(-np.abs(k) / 7.5)
    assert float(geometric_scale(k**2 @ weight / weight.sum())) == pytest.approx(7.5, rel=1e-12)


# A million draws, orders that must hold, and the limits of the cut normal law.


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
