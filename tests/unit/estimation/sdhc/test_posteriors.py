"""Closed forms of the cut normal law against 50-digit arithmetic, from -40 to 40 standard deviations and beyond."""

import mpmath as mp
import numpy as np
import pytest

from censafe.estimation.sdhc.posteriors import (
    log_interval,
    shortest_interval,
    truncated_mean,
    truncated_quantile,
    truncated_variance,
)

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
