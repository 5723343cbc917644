"""Coverage of the intervals at fixed true counts, by integration over the noise, against the specification's table."""

import numpy as np
import pytest

from censafe.estimation.sdhc.posteriors import shortest_interval, truncated_mean, truncated_quantile

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
