from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from censafe.evaluation.counts.cells import cells_of_counts
from censafe.evaluation.loss import (
    calibrate,
    epl_curve,
    epl_summary,
    linear_noise_examples,
    pooled_residuals,
    residuals_of,
)
from censafe.model import NoiseLaw

FIXTURE = np.array([-2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3, -3, 0, 1, -1])


def summary(residuals: Any, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (row["estimator"], row["statistic"]): row for row in epl_summary(residuals, **options).to_pylist()
    }


def geometric(rng: np.random.Generator, z: float, size: Any) -> np.ndarray:
    chance = -np.expm1(-z)
    return rng.geometric(chance, size) - rng.geometric(chance, size)


def test_the_frame_of_the_fixture() -> None:
    curve = epl_curve(residuals_of(FIXTURE), bandwidth_factor=0.1)
    assert curve.column("x").to_pylist() == pytest.approx([-1.8, -0.8, 0.2, 1.2])
    expected = [-1.098610, -0.510824, 0.510826]
    assert curve.column("smooth_epl").to_pylist()[:3] == pytest.approx(expected, abs=2e-6)
    found = summary(residuals_of(FIXTURE), mode="as_published")
    assert found["kernel", "max"]["value"] == pytest.approx(1.098610, abs=2e-6)
    assert [key for key, row in found.items() if row["reported"]] == [("kernel", "max")]
    wider = summary(residuals_of(FIXTURE), mode="as_published", bandwidth_factor=0.5)
    assert wider["kernel", "max"]["value"] == pytest.approx(0.647474, abs=1e-6)


@pytest.mark.parametrize("factor", [0.1, 0.4])
def test_the_kernel_and_the_bins_agree_with_scipy_and_numpy(factor: float) -> None:
    r = geometric(np.random.default_rng(1), 0.2, 3_000)
    curve = epl_curve(residuals_of(r), bandwidth_factor=factor)
    x = curve.column("x").to_numpy()
    density = len(r) * gaussian_kde(r, bw_method=factor)(x)
    assert curve.column("smooth_hist").to_numpy() == pytest.approx(density, rel=1e-9)
    bound = max(abs(np.percentile(r, 5)), abs(np.percentile(r, 95)))
    edges = np.arange(-bound, bound)
    held = np.histogram(r, edges)[0]
    assert curve.column("hist").to_numpy().tolist() == held.tolist()
    after = held.sum() - np.cumsum(held)
    assert curve.column("epl_cusum").to_numpy()[:-2] == pytest.approx(np.log(after[1:-1] / after[:-2]))


def test_ratios_of_whole_residuals_point_away_from_zero() -> None:
    r = np.repeat([-2, -1, 0, 1, 2, 4], [30, 60, 100, 50, 24, 90])
    found = summary(residuals_of(r), n_min=25)
    assert found["discrete", "median"]["value"] == pytest.approx(np.log(2))
    assert found["discrete", "max"]["value"] == pytest.approx(np.log(2))
    assert found["discrete", "max"]["n_grid"] == 3
    assert summary(residuals_of(r), n_min=51)["discrete", "max"]["value"] == pytest.approx(np.log(100 / 60))


@pytest.mark.parametrize(
    ("values", "value", "reason"),
    [(np.zeros(50, np.int64), np.inf, "all_equal"), (np.zeros(0, np.int64), np.nan, "too_few")],
)
def test_nothing_to_compare_has_a_reason(values: Any, value: float, reason: str) -> None:
    row = epl_summary(residuals_of(values)).to_pylist()[0]
    assert (repr(row["value"]), row["reason"], row["reported"]) == (repr(value), reason, True)
    assert epl_curve(residuals_of(values)).num_rows == 0


def test_a_grid_that_is_too_small_or_few_counts_have_a_reason() -> None:
    found = summary(residuals_of(np.array([0] * 99 + [1])))
    assert found["kernel", "max"]["reason"] == "no_ratio"
    assert found["discrete", "median"]["reason"] == "too_few"


def test_corrected_mode_takes_whole_residuals_where_there_are_enough_and_the_kernel_elsewhere() -> None:
    rng = np.random.default_rng(2)
    for r, expected in (
        (geometric(rng, 0.5, 5_000), "discrete"),
        (geometric(rng, 0.005, 500), "kernel"),
        (FIXTURE / 2, "kernel"),
    ):
        assert [key for key, row in summary(residuals_of(r)).items() if row["reported"]] == [
            (expected, "median")
        ]


def test_a_grid_of_millions_is_thinned() -> None:
    r = np.random.default_rng(3).normal(0, 400_000, 300).round().astype(np.int64)
    curve = epl_curve(residuals_of(r), bandwidth_factor=0.3)
    assert curve.num_rows == 4_000
    x = curve.column("x").to_numpy()[:3]
    kde = gaussian_kde(r, bw_method=0.3)
    assert curve.column("smooth_epl").to_numpy()[:3] == pytest.approx(np.log(kde(x) / kde(x + 1)), abs=1e-9)


def test_intervals_resample_areas_and_show_the_bias_of_the_maximum() -> None:
    rng = np.random.default_rng(4)
    true = rng.integers(0, 50, (900, 12))
    noise = geometric(rng, 0.3, (900, 12))
    residuals = pooled_residuals([cells_of_counts(true, true + noise)], groups=128)
    assert residuals.by_group is not None
    assert np.array_equal(residuals.by_group.sum(axis=0), residuals.counts)
    assert residuals.by_group.sum(axis=1).max() == 12 * 8  # 900 areas dealt to 128 groups
    found = summary(residuals)
    assert found["discrete", "max"]["bias"] > 0.02
    median = found["discrete", "median"]
    assert median["lo"] < 0.3 < median["hi"] and median["hi"] - median["lo"] < 0.2
    assert epl_summary(residuals) == epl_summary(residuals)
    assert np.isnan(summary(residuals_of(noise.ravel()))["discrete", "max"]["lo"])


def test_noise_of_half_the_promised_variance_raises_the_loss() -> None:
    # planted defect: variance is 2 / z^2, so half of it is a loss larger by the root of two
    rng = np.random.default_rng(5)
    promised, planted = (
        summary(residuals_of(geometric(rng, z, 100_000)))["discrete", "median"]["value"]
        for z in (0.2, 0.2 * 2**0.5)
    )
    assert planted / promised == pytest.approx(2**0.5, rel=0.05)


def test_calibration_names_law_truth_and_bias() -> None:
    rows = calibrate(NoiseLaw.gaussian(Fraction(9)), [20_000], trials=5).to_pylist()
    found = {(row["estimator"], row["statistic"]): row for row in rows}
    assert found["discrete", "max"]["bias"] > 0.03
    assert abs(found["discrete", "mean"]["bias"]) < 0.02
    assert found["kernel", "median"]["truth"] == pytest.approx(found["kernel", "median"]["mean"], abs=0.03)


def test_linear_noise_loses_epsilon_its_half_and_its_quarter() -> None:
    frame = linear_noise_examples([0.05, 0.1])
    ratios = np.array(frame.column("ratio").to_pylist()).reshape(2, 3)
    assert ratios == pytest.approx(np.array([[1, 0.5, 0.25]] * 2), abs=0.08)
