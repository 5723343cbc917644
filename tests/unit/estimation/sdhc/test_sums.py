"""Quantiles of sums against the single cell's closed form, draws, and exact discrete arithmetic."""

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from censafe.estimation.sdhc.counts import sum_distribution
from censafe.estimation.sdhc.posteriors import (
    count_posterior,
    geometric_scale,
    summed,
    truncated_mean,
    truncated_quantile,
)

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
