"""Coverage of the S-DHC intervals on a synthetic nation, 200 repetitions, against what is predicted for its true counts.

Prediction: coverage at a true count over sigma, by integration over the noise; the specification tabulates this integral at
eight points (``tests/unit/estimation/sdhc/test_posteriors.py`` holds it within 0.005 there). Intervals with their own ends are
compared with it as it stands; published intervals, whose ends are rounded outwards, with the integral with the same rounding.
False alarms: with more than 2,800 cells and 200 repetitions a standard error is below 0.0004, so that 0.01 is missed once in
10^100. Smallest defect: 0.01 of coverage; swapping the two predictions, or 88% intervals, are found.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.estimation.sdhc.posteriors import shortest_interval, truncated_quantile

Floats = NDArray[np.float64]

REPETITIONS = 200
WITHIN = 0.01
# variance of noise: PH3 of states, PH2 of states, PH4 of states
VARIANCES = (147.82, 1708.77, 14782.24)
_NOISE = 8.0


def nation(rng: np.random.Generator) -> Floats:
    """Counts of 51 states, 8 groups and 7 cells: from none to hundreds of thousands, a third below 10."""
    size = np.exp(
        rng.normal(0, 1.0, (51, 1, 1)) + rng.normal(3.5, 2.5, (1, 8, 1)) + rng.normal(0, 1.0, (1, 1, 7))
    )
    return np.asarray(rng.poisson(size), np.float64)


def held(truth: Floats, z: Floats, variance: float, tail: float = 0.05) -> list[NDArray[np.bool_]]:
    """Equal-tailed and shortest intervals, each with its own ends and with rounded ones."""
    equal = truncated_quantile(tail, z, variance), truncated_quantile(1 - tail, z, variance)
    found = []
    for low, high in (equal, shortest_interval(1 - 2 * tail, z, variance)):
        found += [(low <= truth) & (truth <= high), (np.floor(low) <= truth) & (truth <= np.ceil(high))]
    return found


def predicted(truth: Floats, variance: float) -> Floats:
    """Mean coverage for these true counts, in the order of ``held``; the noise is continuous where ends are not rounded."""
    sigma = variance**0.5
    totals = np.zeros(4)
    values, number = np.unique(np.minimum(truth, np.ceil(_NOISE * sigma)), return_counts=True)
    whole = np.arange(-int(_NOISE * sigma), int(_NOISE * sigma) + 1)
    fine = (np.arange(2000) + 0.5) / 2000 * 2 * _NOISE * sigma - _NOISE * sigma
    for one, count in zip(values, number, strict=True):
        for kind, noise in ((0, fine), (1, whole)):
            weight = np.exp(-(noise**2) / (2 * variance))
            inside = held(one, one + noise, variance)
            totals[[kind, 2 + kind]] += (
                count * np.array([weight @ inside[kind], weight @ inside[2 + kind]]) / weight.sum()
            )
    return totals / truth.size


def found(truth: Floats, variance: float, rng: np.random.Generator, tail: float = 0.05) -> Floats:
    tallies = np.zeros(4)
    for _ in range(REPETITIONS):
        noise = rng.normal(size=truth.shape) * variance**0.5
        plain = held(truth, truth + noise, variance, tail)
        rounded = held(truth, truth + np.rint(noise), variance, tail)
        tallies += [plain[0].mean(), rounded[1].mean(), plain[2].mean(), rounded[3].mean()]
    return tallies / REPETITIONS


@pytest.mark.parametrize("variance", VARIANCES)
def test_coverage_is_within_a_point_of_the_prediction(variance: float) -> None:
    rng = np.random.default_rng([25, int(variance)])
    truth = nation(rng)[::3]
    expected, actual = predicted(truth, variance), found(truth, variance, rng)
    assert actual == pytest.approx(expected, abs=WITHIN)
    assert expected[0] < 0.9, "the nation has too few small counts to test anything"


def test_intervals_of_another_level_are_found_out() -> None:
    rng = np.random.default_rng(25)
    truth = nation(rng)[::6]
    short = found(truth, VARIANCES[0], rng, tail=0.06)
    assert (np.abs(short - predicted(truth, VARIANCES[0])) > WITHIN).all()
