"""Owners and renters together: the implied total against draws, a finer grid, and the reference's three separate fits."""

from __future__ import annotations

import numpy as np
import pytest

from censafe.errors import ConfigError, DataError
from censafe.estimation.sdhc.counts import GroupedCells
from censafe.estimation.sdhc.ratios.intervals import RatioModel
from censafe.estimation.sdhc.ratios.tables import estimate_ratios
from censafe.estimation.sdhc.ratios.tenure import _curve, _Part, estimate_tenure
from censafe.estimation.sdhc.ratios.unbounded import unbounded_single
from censafe.estimation.sdhc.settings import RatioRules, parse_estimate_settings

V = 1709.0
DRAWS = 200_000
CASES = [
    (((300, V), (100, V)), ((700, V), (350, V))),
    (((30, 2 * V), (-20, V)), ((-10, V), (40, V))),
    (((5000, 2 * 92408), (2000, 90909)), ((300, 92408), (800, 90909))),
    (((300, V), (100, 40.0)), ((700, V), (350, 40.0))),
]
RULES = RatioRules("PH8", "PH8_num", "PH8_denom", 1, "apart")


def drawn(part: tuple[tuple[float, float], ...], rng: np.random.Generator) -> np.ndarray:
    """Draws of numerator and denominator by rejection, one in each row."""
    (zn, vn), (zd, vd) = part
    accepted = np.empty((0, 2))
    while len(accepted) < DRAWS:
        pairs = rng.normal((zn, zd), (vn**0.5, vd**0.5), (DRAWS, 2))
        inside = (pairs[:, 1] >= 1) & (pairs[:, 0] >= pairs[:, 1]) & (pairs[:, 0] <= 10 * pairs[:, 1])
        accepted = np.concatenate([accepted, pairs[inside]])
    return accepted[:DRAWS]


@pytest.mark.parametrize(("owners", "renters"), CASES)
def test_totals_agree_with_draws_within_four_standard_errors(owners, renters) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(8)
    found = estimate_tenure(owners, renters, RatioModel(1))
    both = drawn(owners, rng) + drawn(renters, rng)
    ratio = both[:, 0] / both[:, 1]
    assert found.ratio == pytest.approx(ratio.mean(), abs=4 * ratio.std() / DRAWS**0.5)
    assert (found.num, found.den) == pytest.approx(
        both.mean(axis=0), abs=4 * both.std(axis=0).max() / DRAWS**0.5
    )
    held = [np.mean(ratio <= end) for end in (found.low, found.high)]
    assert held == pytest.approx([0.05, 0.95], abs=4 * (0.0475 / DRAWS) ** 0.5)


@pytest.mark.parametrize(("owners", "renters"), CASES)
def test_quantiles_hold_their_probability_on_a_finer_grid(owners, renters) -> None:  # type: ignore[no-untyped-def]
    model = RatioModel(1)
    found = estimate_tenure(owners, renters, model)
    below = _curve((_Part(owners, model), _Part(renters, model)), model, 300)
    assert [below(found.low), below(found.high)] == pytest.approx([0.05, 0.95], abs=1e-7)
    assert (below(1.0), below(10.0)) == (0.0, 1.0)


def test_far_from_the_bounds_the_total_is_that_of_the_sums() -> None:
    owners, renters = ((90_000, V), (30_000, V)), ((80_000, V), (35_000, V))
    assert estimate_tenure(owners, renters, RatioModel(1)) == unbounded_single(
        (170_000, 2 * V), (65_000, 2 * V), RatioModel(1)
    )


def cells(table: str, counts: list[int], variance: float = V) -> GroupedCells:
    shape = (1, 2)
    return GroupedCells(
        table, (("STATE", "44", "A"),), (2, 3), np.array([counts]), np.full(shape, variance), np.full(shape, False)
    )  # fmt: skip


def test_a_separate_total_may_exceed_both_parts_and_the_joint_one_does_not() -> None:
    num, den = cells("PH8_num", [325, 218]), cells("PH8_denom", [37, -18])
    joint = estimate_ratios(num, den, RULES, parse_estimate_settings({"ph8": "joint"}))
    separate = estimate_ratios(num, den, RULES, parse_estimate_settings({}))
    assert joint.ratio[0, :2].tolist() == separate.ratio[0, :2].tolist()
    assert joint.ratio[0, 2] < max(joint.ratio[0, :2])
    assert separate.ratio[0, 2] > max(separate.ratio[0, :2])
    assert joint.num_mean[0, 2] == pytest.approx(joint.num_mean[0, :2].sum())


@pytest.mark.parametrize("interval", ["equal-tailed", "shortest"])
@pytest.mark.parametrize("counts", [([300, 700], [100, 350]), ([-300, -200], [100, 150])])
def test_the_sampler_agrees(counts: tuple[list[int], list[int]], interval: str) -> None:
    num, den = cells("PH8_num", counts[0]), cells("PH8_denom", counts[1])
    chosen = {"ph8": "joint", "interval": interval}
    exact = estimate_ratios(num, den, RULES, parse_estimate_settings(chosen))
    sampled = estimate_ratios(
        num, den, RULES, parse_estimate_settings({**chosen, "method": "sample", "iteration_num": "20000"})
    )
    spread = (exact.high - exact.low) / 3.3
    assert (np.abs(sampled.ratio - exact.ratio) < 8 * spread / 141).all()
    assert (np.abs(sampled.low - exact.low) < 0.2 * spread).all()


def test_exact_counts_give_the_ratio_of_their_sums_and_mixed_ones_are_refused() -> None:
    joint = parse_estimate_settings({"ph8": "joint"})
    found = estimate_ratios(cells("PH8_num", [30, 50], 0.0), cells("PH8_denom", [10, 40], 0.0), RULES, joint)
    assert found.ratio[0].tolist() == [3.0, 1.25, 1.6]
    with pytest.raises(DataError, match="some counts are exact"):
        estimate_ratios(cells("PH8_num", [30, 50], 0.0), cells("PH8_denom", [10, 40]), RULES, joint)


def test_there_is_no_joint_law_over_whole_numbers() -> None:
    with pytest.raises(ConfigError, match="leave out model = discrete"):
        parse_estimate_settings({"ph8": "joint", "model": "discrete"})
    with pytest.raises(ConfigError, match="conventions = reference has ph8 = separate"):
        parse_estimate_settings({"ph8": "joint", "conventions": "reference"})
