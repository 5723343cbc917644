"""Ratios over whole numbers against a walk through all numbers, and against the continuous model under wide noise."""

from dataclasses import astuple
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.sdhc.counts import GroupedCells
from censafe.estimation.sdhc.posteriors import geometric_scale
from censafe.estimation.sdhc.ratios.intervals import RatioEstimate, RatioModel, UnansweredError
from censafe.estimation.sdhc.ratios.quadrature import estimate_joint
from censafe.estimation.sdhc.ratios.tables import estimate_ratios
from censafe.estimation.sdhc.ratios.whole_numbers import (
    CountWeights,
    NoisyCount,
    RatioLattice,
    _mode,
    lattice_joint,
    lattice_single,
)
from censafe.estimation.sdhc.settings import RatioRules, parse_estimate_settings

Floats = NDArray[np.float64]
CASES = [
    ((5, 2), (2.0, 2.0), 1), ((0, -2), (9.0, 9.0), 1), ((10, -15), (9.0, 9.0), 1), ((12, 8), (0.04, 0.05), 1),
    ((3, 7, 4), (4.0, 9.0, 4.0), 1), ((-3, 1, 6), (4.0, 9.0, 4.0), 2), ((9, 30, 14), (4.0, 2.0, 1.0), 2),
]  # fmt: skip


def walked(
    z: tuple[int, ...], v: tuple[float, ...], lowest: float, *, geometric: bool
) -> list[tuple[Floats, ...]]:
    """Sorted ratios with their probabilities, numerators and denominators: total, then parts."""
    last = len(z) - 1
    most = [
        int(max(value, 0) + 12 * variance**0.5 + (60 if geometric else 5))
        for value, variance in zip(z, v, strict=True)
    ]
    axes = [np.arange(0 if axis < last else 1, end) for axis, end in enumerate(most)]
    numbers = np.meshgrid(*axes, indexing="ij")
    logs = np.zeros(numbers[0].shape)
    for number, value, variance in zip(numbers, z, v, strict=True):
        lag = np.abs(number - value)
        logs -= lag / float(geometric_scale(variance)) if geometric else lag**2 / (2 * variance)
    total, den = sum(numbers[:-1]), numbers[-1]
    allowed = (total >= lowest * den) & (total <= 10 * den)
    mass = np.exp(logs[allowed] - logs[allowed].max())
    mass /= mass.sum()
    tops = [total] if last == 1 else [total, *numbers[:-1]]
    return [(top[allowed] / den[allowed], mass, top[allowed], den[allowed]) for top in tops]


def expected(one: tuple[Floats, ...], *, shortest: bool) -> tuple[float, ...]:
    ratio, mass, top, den = one
    at, index = np.unique(ratio, return_inverse=True)
    total = np.concatenate([[0.0], np.cumsum(np.bincount(index, mass))])
    low, high = (at[np.searchsorted(total[1:], p - 1e-12)] for p in (0.05, 0.95))
    if shortest:
        last = np.searchsorted(total, total + 0.9 - 1e-12)
        lengths = [(at[j - 1] - at[i], at[i], at[j - 1]) for i, j in enumerate(last) if j <= at.size]
        _, low, high = min(lengths)
    return float(ratio @ mass), float(low), float(high), float(top @ mass), float(den @ mass)


def fitted(
    z: tuple[int, ...], v: tuple[float, ...], model: RatioModel, *, geometric: bool
) -> tuple[RatioEstimate, ...]:
    counts = [NoisyCount(value, (variance,), (geometric,)) for value, variance in zip(z, v, strict=True)]
    if len(counts) == 2:
        return (lattice_single(counts[0], counts[1], model),)
    return lattice_joint(counts[0], counts[1], counts[2], model)


@pytest.mark.parametrize("geometric", [False, True])
@pytest.mark.parametrize("shortest", [False, True])
@pytest.mark.parametrize(("z", "v", "lowest"), CASES)
def test_every_number_agrees_with_a_walk_through_all(z, v, lowest, shortest, geometric) -> None:  # type: ignore[no-untyped-def]
    found = fitted(z, v, RatioModel(lowest, shortest=shortest), geometric=geometric)
    for one, laid in zip(found, walked(z, v, lowest, geometric=geometric), strict=True):
        got = (one.ratio, one.low, one.high, one.num, one.den)
        assert got == pytest.approx(expected(laid, shortest=shortest), rel=1e-7)


def test_wide_noise_far_from_the_bounds_is_as_in_the_continuous_model() -> None:
    counts = [NoisyCount(z, (1709.0,), (False,)) for z in (2_000, 3_000, 1_900)]
    pairs = [(count.z, count.variance) for count in counts]
    for one, other in zip(
        lattice_joint(*counts, RatioModel(1)), estimate_joint(*pairs, RatioModel(1)), strict=True
    ):
        assert (one.ratio, one.num, one.den) == pytest.approx((other.ratio, other.num, other.den), rel=1e-8)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-4)


def test_noise_of_several_cells_is_their_convolution() -> None:
    first, second = (NoisyCount(z, (6.0,), (True,)) for z in (4, 9))
    den = NoisyCount(4, (3.0,), (False,))
    found = lattice_single(first + second, den, RatioModel(1))
    k = np.arange(-400, 401)
    law = np.convolve(*[np.exp(-np.abs(k) / float(geometric_scale(6.0)))] * 2, mode="same")
    n, d = np.meshgrid(np.arange(1, 200), np.arange(1, 60), indexing="ij")
    mass = law[n - 13 + 400] * np.exp(-((d - 4) ** 2) / 6.0) * ((n >= d) & (n <= 10 * d))
    assert found.ratio == pytest.approx(float((n / d * mass).sum() / mass.sum()), rel=1e-9)


def test_a_numerator_far_below_its_denominator_has_an_answer() -> None:
    counts = [NoisyCount(z, (1709.0,), (False,)) for z in (-1000, 500)]
    found = lattice_single(counts[0], counts[1], RatioModel(1))
    n, d = np.meshgrid(np.arange(1, 300), np.arange(1, 150), indexing="ij")
    logs = np.where((n >= d) & (n <= 10 * d), -((n + 1000) ** 2 + (d - 500.0) ** 2) / (2 * 1709), -np.inf)
    mass = np.exp(logs - logs.max())
    assert found.ratio == pytest.approx(float((n / d * mass).sum() / mass.sum()), rel=1e-9)
    assert found.den == pytest.approx(float((d * mass).sum() / mass.sum()), rel=1e-9)
    assert 1 <= found.low <= found.ratio <= found.high <= 10


def test_likeliest_values_within_bounds_are_the_nearest_ones() -> None:
    counts = [NoisyCount(z, (v,), (False,)) for z, v in ((-40, 9.0), (10, 4.0), (50, 25.0))]
    rows = [[1.0, 1.0, -1.0], [-1.0, -1.0, 10.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    mode = _mode(counts, rows, [0, 0, 1, 0, 0])
    # the first part stays at 0; the second and the denominator meet where their pulls balance
    assert mode == pytest.approx(
        [0.0, (10 / 4 + 50 / 25) / (1 / 4 + 1 / 25), (10 / 4 + 50 / 25) / (1 / 4 + 1 / 25)]
    )


def test_windows_of_sums_are_those_of_single_differences() -> None:
    rng = np.random.default_rng(4)
    weights = CountWeights(7, rng.random(9))
    low, high = np.array([-3, 5, 9, 40]), np.array([-1, 30, 12, 60])
    others = np.arange(2, 14)
    expected_rooms = weights.between(low[:, None] - others, high[:, None] - others)
    assert weights.rooms(low, high, others) == pytest.approx(expected_rooms, abs=1e-15)
    assert weights.between(np.array([8]), np.array([10]))[0] == pytest.approx(weights.weight[1:4].sum())


def test_recomputed_and_kept_sums_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = fitted((3, 7, 4), (4.0, 9.0, 4.0), RatioModel(1, shortest=True), geometric=False)
    monkeypatch.setattr("censafe.estimation.sdhc.ratios.whole_numbers._STORED_PAIRS", 0)
    monkeypatch.setattr("censafe.estimation.sdhc.ratios.whole_numbers._BLOCK", 64)
    recomputed = fitted((3, 7, 4), (4.0, 9.0, 4.0), RatioModel(1, shortest=True), geometric=False)
    # sums in another order differ in their last digits
    for one, other in zip(recomputed, stored, strict=True):
        assert astuple(one) == pytest.approx(astuple(other), rel=1e-9)


def test_too_many_pairs_are_refused() -> None:
    weights = CountWeights(1, np.ones(9_000))
    with pytest.raises(UnansweredError, match="too wide for the exact law"):
        RatioLattice(weights, weights, RatioModel(1), weights)


PH1 = RatioRules("PH1", "PH1_num", "PH1_denom", 1, "shared")
PH8 = RatioRules("PH8", "PH8_num", "PH8_denom", 1, "apart")


def cells(
    table: str, counts: list[int], numbers: tuple[int, ...], variance: float, *, wide: bool = False
) -> GroupedCells:
    shape = (1, len(counts))
    key = ("STATE", "44", "A")
    return GroupedCells(
        table, (key,), numbers, np.array([counts], np.int64), np.full(shape, variance), np.full(shape, wide)
    )  # fmt: skip


def test_tables_have_the_law_over_whole_numbers_where_it_is_asked_for() -> None:
    settings = parse_estimate_settings({"model": "discrete", "interval": "shortest"})
    found = estimate_ratios(
        cells("PH1_num", [3, 7], (2, 3), 4.0), cells("PH1_denom", [4], (1,), 4.0), PH1, settings
    )
    counts = [NoisyCount(z, (4.0,), (False,)) for z in (3, 7, 4)]
    total, first, second = lattice_joint(*counts, RatioModel(1, shortest=True))
    assert found.ratio.tolist() == [[first.ratio, second.ratio, total.ratio]]
    assert found.high.tolist() == [[first.high, second.high, total.high]]
    tops, bottoms = (
        cells("PH8_num", [3, 7], (2, 3), 4.0, wide=True),
        cells("PH8_denom", [2, 4], (2, 3), 4.0, wide=True),
    )
    apart = estimate_ratios(tops, bottoms, PH8, parse_estimate_settings({"model": "discrete"}))
    sums = [
        reduce(NoisyCount.__add__, (NoisyCount(z, (4.0,), (True,)) for z in pair))
        for pair in ((3, 7), (2, 4))
    ]
    assert apart.ratio[0, 2] == lattice_single(sums[0], sums[1], RatioModel(1)).ratio


def test_exact_counts_beside_noisy_ones_have_a_law_over_whole_numbers() -> None:
    settings = parse_estimate_settings({"model": "discrete"})
    found = estimate_ratios(
        cells("PH1_num", [3, 4], (2, 3), 0.0), cells("PH1_denom", [4], (1,), 2.0), PH1, settings
    )
    d = np.arange(1, 8)
    weight = np.exp(-((d - 4) ** 2) / 4.0)
    assert found.ratio[0, 2] == pytest.approx(float(7 / d @ weight / weight.sum()))
    with pytest.raises(DataError, match="PH1, STATE 44, iteration A"):
        estimate_ratios(
            cells("PH1_num", [0, 0], (2, 3), 0.0), cells("PH1_denom", [4], (1,), 2.0), PH1, settings
        )
