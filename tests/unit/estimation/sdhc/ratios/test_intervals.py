"""Shortest intervals of ratios against a scan of the distribution function on a finer grid."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from censafe.estimation.sdhc.ratios.intervals import Curve, RatioModel, ratio_ends
from censafe.estimation.sdhc.ratios.quadrature import _Joint, estimate_joint, estimate_single
from censafe.estimation.sdhc.ratios.unbounded import unbounded_single

V = 1709.0
CASES = [((300, 700, 380), 1), ((20, -10, 30), 2), ((-60, 40, -30), 1)]


def scanned(curve: Curve, least: float, last: float) -> float:
    """Length of the shortest of many intervals of 90%."""
    found = []
    for low in np.linspace(max(least, 1e-12), last, 30):
        p = curve(low) + 0.9
        if p < 1:
            found.append(brentq(lambda x, p=p: curve(x) - p, low, 10.0, xtol=1e-10) - low)
    return min(found)


@pytest.mark.parametrize(("z", "lowest"), CASES)
def test_shortest_intervals_hold_their_level_and_none_is_shorter(z: tuple[int, ...], lowest: float) -> None:
    pairs = [(value, V) for value in z]
    model = RatioModel(lowest, shortest=True)
    equal = estimate_joint(*pairs, RatioModel(lowest))
    curves = _Joint(*pairs, model, 128).curves()
    for cell, (found, other) in enumerate(zip(estimate_joint(*pairs, model), equal, strict=True)):
        below, least = curves[cell], lowest if cell == 0 else 0.0
        assert below(found.high) - below(max(found.low, 1e-12)) == pytest.approx(0.9, abs=1e-6)
        length = found.high - found.low
        assert length < other.high - other.low
        assert length <= scanned(below, least, (other.low + other.high) / 2) * (1 + 1e-5)
        assert (found.ratio, found.num) == (other.ratio, other.num)


def test_density_that_only_falls_has_its_interval_at_the_bound() -> None:
    found = estimate_single((100, V), (60, V), RatioModel(1, shortest=True))
    assert (found.low, found.high) == pytest.approx((1.0, 4.751109), abs=1e-6)


def test_density_that_only_rises_has_its_interval_at_the_upper_bound() -> None:
    low, high = ratio_ends(lambda x: ((x - 1) / 9) ** 2, RatioModel(1, shortest=True), 1.0)
    assert (low, high) == pytest.approx((1 + 9 * 0.1**0.5, 10.0), abs=1e-6)


def test_two_modes_still_give_an_interval_of_the_level() -> None:
    def curve(x: float) -> float:
        return float(np.arcsin(((x - 1) / 9) ** 0.5) * 2 / np.pi)

    low, high = ratio_ends(curve, RatioModel(1, shortest=True), 1.0)
    equal = ratio_ends(curve, RatioModel(1), 1.0)
    assert curve(high) - curve(low) == pytest.approx(0.9, abs=1e-5)
    assert high - low <= (equal[1] - equal[0]) * (1 + 1e-6)


def test_far_from_the_bounds_equal_densities_end_the_interval() -> None:
    num, den, model = (5_000, V), (2_000, V), RatioModel(1, shortest=True)
    found = unbounded_single(num, den, model)
    assert found is not None

    def density(x: float) -> float:
        draws = np.linspace(-7, 7, 20_001) * V**0.5
        weight = np.exp(-(draws**2) / (2 * V))
        d = den[0] + draws
        return float((weight * d * np.exp(-((x * d - num[0]) ** 2) / (2 * V))).sum())

    assert density(found.low) == pytest.approx(density(found.high), rel=1e-5)
    equal = unbounded_single(num, den, replace(model, shortest=False))
    assert equal is not None
    assert found.high - found.low < equal.high - equal.low
