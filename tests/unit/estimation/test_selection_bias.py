"""What choosing the table by the first total does to the pooled total near a threshold.

One threshold, groups of 1 and of 8 cells (tables of stat level 0 and 1), f = 0.1: the first total has nine times the
variance of a cell of the second stage. 400,000 groups a true count; the standard error of a mean is about 0.0016 sigma1.
"""

from fractions import Fraction

import numpy as np
import pytest

from censafe.model import GroupMeasurements, NoiseLaw
from support.group_measurements import level, totals

GROUPS = 400_000
THRESHOLD = 10_000
CELL = 400.0  # variance of a cell of the second stage
FIRST = 9 * CELL
SIGMA = FIRST**0.5
SHARE = {size: size * CELL / (FIRST + size * CELL) for size in (1, 8)}
STATES = level("state_1", [f"{n:06}" for n in range(GROUPS)], ["1001"])


def _measured(true: int, seed: int) -> GroupMeasurements:
    rng = np.random.default_rng(seed)
    stage1 = true + np.rint(rng.normal(0, SIGMA, GROUPS)).astype(np.int64)
    stat_level = (stage1 >= THRESHOLD).astype(np.int8)
    sizes = np.where(stat_level == 1, 8, 1)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    values = np.repeat(np.where(stat_level == 1, true // 8, true), sizes)
    values[indptr[:-1]] += np.where(stat_level == 1, true % 8, 0)
    values += np.rint(rng.normal(0, CELL**0.5, len(values))).astype(np.int64)
    ordinals = np.arange(GROUPS, dtype=np.int32)
    return GroupMeasurements(
        level=STATES,
        table="t1t2",
        region=ordinals,
        iteration=np.zeros(GROUPS, np.int32),
        stat_level=stat_level,
        stage1=stage1,
        indptr=indptr,
        values=values,
        laws={"stage1": NoiseLaw.gaussian(Fraction(3600)), "stage2": NoiseLaw.gaussian(Fraction(400))},
        costs={"stage1": Fraction(1, 10), "stage2": Fraction(9, 10)},
        source="seeded",
    )


def _bias(true: int, seed: int = 1) -> dict[str, float]:
    """Mean error of the total in first-stage standard deviations."""
    measured = _measured(true, seed)
    pooled = totals(measured, t1="pooled", thresholds=(THRESHOLD,))
    fallback = totals(measured, t1="pooled", thresholds=(THRESHOLD,), near="fallback")
    long = measured.stat_level == 1
    return {
        "stage2": float(measured.sums.mean() - true) / SIGMA,
        "pooled": float(pooled.totals.mean() - true) / SIGMA,
        "pooled, long table": float(pooled.totals[long].mean() - true) / SIGMA if long.any() else 0.0,
        "pooled, short table": float(pooled.totals[~long].mean() - true) / SIGMA if (~long).any() else 0.0,
        "fallback": float(fallback.totals.mean() - true) / SIGMA,
        "flagged": float(pooled.near.mean()),
    }


def test_at_the_threshold_the_bias_is_what_theory_says_and_falling_back_removes_it() -> None:
    found = _bias(THRESHOLD)
    mills = (2 / np.pi) ** 0.5
    assert found["stage2"] == pytest.approx(0, abs=0.01)
    assert found["pooled, long table"] == pytest.approx(mills * SHARE[8], abs=0.015)
    assert found["pooled, short table"] == pytest.approx(-mills * SHARE[1], abs=0.015)
    assert found["pooled"] == pytest.approx(mills / 2 * (SHARE[8] - SHARE[1]), abs=0.015)
    assert found["pooled"] > 0.1
    assert found["fallback"] == pytest.approx(0, abs=0.01)
    assert found["flagged"] > 0.99


def test_far_from_the_threshold_there_is_no_bias_and_hardly_a_flag() -> None:
    found = _bias(THRESHOLD + round(7 * SIGMA))
    assert found["pooled"] == pytest.approx(0, abs=0.01)
    assert found["flagged"] < 0.001


def test_falling_back_makes_no_bias_where_noise_decides_on_it() -> None:
    """Three deviations above the threshold half of the groups fall back."""
    found = _bias(THRESHOLD + round(3 * SIGMA))
    assert 0.3 < found["flagged"] < 0.7
    assert found["fallback"] == pytest.approx(0, abs=0.01)
