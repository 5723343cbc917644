"""Ratios by quadrature against the published values of rejection sampling, draws, and finer grids."""

import numpy as np
import pytest

from censafe.estimation.sdhc.ratios.intervals import RatioModel
from censafe.estimation.sdhc.ratios.quadrature import estimate_joint, estimate_single

V = 1709.0
JOINT = [
    ((300, 700, 380), (V, V, V), 1, (2.6639, 0.7992, 1.8647), (2.1683, 3.2689)),
    ((20, -10, 30), (V, V, V), 2, (4.0124, 2.3414, 1.6709), (2.0890, 8.2625)),
    ((5000, 12000, 6400), (92408, 92408, 90909), 2, (2.6622, 0.7830, 1.8792), (2.4374, 2.9072)),
    ((-60, 40, -30), (V, V, V), 1, (3.6897, 1.0022, 2.6874), (1.1715, 8.4511)),
]


@pytest.mark.parametrize(("z", "v", "lowest", "ratios", "ends"), JOINT)
def test_published_values_of_joint_fits(z, v, lowest, ratios, ends) -> None:  # type: ignore[no-untyped-def]
    found = estimate_joint(*zip(z, v, strict=True), RatioModel(lowest))
    assert tuple(one.ratio for one in found) == pytest.approx(ratios, abs=3e-3)
    assert (found[0].low, found[0].high) == pytest.approx(ends, abs=8e-3)
    assert found[0].num == pytest.approx(found[1].num + found[2].num, rel=1e-12)


@pytest.mark.parametrize(
    ("z", "v", "expected"),
    [
        ((5000, 2000), (92408, 45454), (2.5294, 2.0606, 3.0980)),
        ((100, 60), (V, V), (2.5079, 1.0740, 6.2708)),
        ((30, -20), (V, V), (3.2320, 1.1048, 7.9687)),
    ],
)
def test_published_values_of_single_fits(z, v, expected) -> None:  # type: ignore[no-untyped-def]
    found = estimate_single(*zip(z, v, strict=True), RatioModel(1))
    assert (found.ratio, found.low, found.high) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("z", [(300, 700, 380), (-60, 40, -30), (-1000, 100, 500)])
def test_doubling_the_nodes_changes_nothing(z: tuple[float, ...]) -> None:
    pairs = [(value, V) for value in z]
    for one, other in zip(
        estimate_joint(*pairs, RatioModel(1)), estimate_joint(*pairs, RatioModel(1), nodes=256), strict=True
    ):
        assert vars(one) == pytest.approx(vars(other), rel=1e-6)


def test_quantiles_of_the_parts_against_draws() -> None:
    rng = np.random.default_rng(11)
    z, model = (20.0, -10.0, 30.0), RatioModel(2)
    draws = rng.normal(z, V**0.5, (3_000_000, 3))
    total = draws[:, 0] + draws[:, 1]
    accepted = (draws[:, :2] >= 0).all(axis=1) & (draws[:, 2] >= 1)
    accepted &= (total >= 2 * draws[:, 2]) & (total <= 10 * draws[:, 2])
    found = estimate_joint(*((value, V) for value in z), model)
    for part in (0, 1):
        ratios = draws[accepted, part] / draws[accepted, 2]
        share = [np.mean(ratios <= end) for end in (found[part + 1].low, found[part + 1].high)]
        assert share == pytest.approx([0.05, 0.95], abs=4 * (0.0475 / accepted.sum()) ** 0.5)


def test_numerator_far_below_the_denominator_still_has_weights() -> None:
    found = estimate_single((-1000, V), (500, V), RatioModel(1))
    assert 1 <= found.low < found.ratio < found.high <= 10


@pytest.mark.parametrize(("num", "den"), [((500, 4.0), (300, 92408.0)), ((3000, 1.0), (1500, 92408.0))])
def test_narrow_numerators_over_wide_denominators_have_points_enough(
    num: tuple[float, float], den: tuple[float, float]
) -> None:
    found, finer = (estimate_single(num, den, RatioModel(1), nodes) for nodes in (None, 20_480))
    assert vars(found) == pytest.approx(vars(finer), rel=1e-7)


def test_a_coarse_approximation_that_holds_too_little_gives_way_to_the_curve_itself() -> None:
    pairs = ((776, 1708.7740605273193), (1953, 1708.7740605273193), (961, 1709.4017094017095))
    equal = estimate_joint(*pairs, RatioModel(2.0, 10.0, 0.05))
    shortest = estimate_joint(*pairs, RatioModel(2.0, 10.0, 0.05, shortest=True))
    for one, other in zip(shortest, equal, strict=True):
        assert one.high - one.low <= other.high - other.low + 1e-6
        assert abs(one.low - other.low) < 0.1
