"""Tables of ratios: bounds, cells, draws, exact counts, and errors that name the group."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError, DataError
from censafe.estimation.sdhc.counts import GroupedCells
from censafe.estimation.sdhc.ratios.intervals import RatioModel
from censafe.estimation.sdhc.ratios.quadrature import _Joint, estimate_joint, estimate_single
from censafe.estimation.sdhc.ratios.tables import _curve, _Part, estimate_ratios, estimate_tenure
from censafe.estimation.sdhc.ratios.unbounded import unbounded_joint, unbounded_single
from censafe.estimation.sdhc.settings import RatioRules, parse_estimate_settings
from censafe.estimation.sdhc.tables import estimate_tables, ratio_findings
from censafe.model.sdhc import EstimateSettings, NoisyCells

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


SHARED = RatioRules("PH1", "PH1_num", "PH1_denom", 1, "shared")
APART = RatioRules("PH8", "PH8_num", "PH8_denom", 1, "apart")
KEY = ("STATE", "44", "A")


def cells_of_tables(
    table: str, counts: list[int], numbers: tuple[int, ...], variance: float = V
) -> GroupedCells:
    shape = (1, len(counts))
    return GroupedCells(
        table, (KEY,), numbers, np.array([counts], np.int64), np.full(shape, variance), np.full(shape, False)
    )  # fmt: skip


def test_shared_denominator_gives_parts_then_total() -> None:
    found = estimate_ratios(
        cells_of_tables("PH1_num", [300, 700], (2, 3)),
        cells_of_tables("PH1_denom", [380], (1,)),
        SHARED,
        EstimateSettings(),
    )
    assert found.cells == (2, 3, 1)
    assert found.num.tolist() == [[300, 700, 1000]]
    assert found.den.tolist() == [[380, 380, 380]]
    assert found.num_variance.tolist() == [[V, V, 2 * V]]
    assert found.ratio[0].tolist() == pytest.approx([0.7992, 1.8647, 2.6639], abs=3e-3)
    assert found.noisy[0, 2] == pytest.approx(1000 / 380)
    assert found.lowest == (0, 0, 1)
    assert found.num_mean[0, 2] == pytest.approx(found.num_mean[0, 0] + found.num_mean[0, 1])


def test_parts_with_their_own_denominators_have_a_total_of_sums() -> None:
    found = estimate_ratios(
        cells_of_tables("PH8_num", [300, 700], (2, 3)),
        cells_of_tables("PH8_denom", [120, 260], (2, 3)),
        APART,
        EstimateSettings(),
    )
    assert found.den.tolist() == [[120, 260, 380]]
    total = estimate_single((1000, 2 * V), (380, 2 * V), RatioModel(1))
    assert (found.ratio[0, 2], found.low[0, 2]) == pytest.approx((total.ratio, total.low))


def test_closed_form_agrees_with_quadrature() -> None:
    first, second, den, model = (5000, 92408), (12000, 92408), (6400, 90909), RatioModel(2)
    far = unbounded_joint(first, second, den, RatioModel(1))
    assert far is not None
    assert unbounded_joint(first, second, den, model) is None
    near = estimate_joint(
        first, second, den, model
    )  # the bound of 2 is too far to be seen, but not for the closed form
    for one, other in zip(far, near, strict=True):
        assert vars(one) == pytest.approx(vars(other), rel=2e-6)


@pytest.mark.parametrize("z", [(300, 700, 380), (20, -10, 30), (-60, 40, -30)])
@pytest.mark.parametrize("lowest", [1, 2])
def test_quantiles_hold_their_probability_on_a_finer_grid_of_tables(
    z: tuple[float, ...], lowest: float
) -> None:
    parts = [(value, V) for value in z]
    model = RatioModel(lowest)
    finer = _Joint(*parts, model, 200).curves()
    for found, below in zip(estimate_joint(*parts, model), finer, strict=True):
        assert [below(found.low), below(found.high)] == pytest.approx([0.05, 0.95], abs=1e-6)


def test_tiny_posterior_mass_still_works() -> None:
    found = estimate_ratios(
        cells_of_tables("PH8_num", [-1000, -900], (2, 3)),
        cells_of_tables("PH8_denom", [500, 600], (2, 3)),
        APART,
        EstimateSettings(),
    )
    assert (
        (found.low >= 1) & (found.low < found.ratio) & (found.ratio < found.high) & (found.high <= 10)
    ).all()
    assert ratio_findings(found, EstimateSettings()) == ()


@pytest.mark.parametrize(("top", "bottom"), [([300, 700], [380]), ([-60, 40], [-30]), ([-400, -300], [200])])
def test_draws_agree_with_quadrature(top: list[int], bottom: list[int]) -> None:
    num, den = cells_of_tables("PH1_num", top, (2, 3)), cells_of_tables("PH1_denom", bottom, (1,))
    exact = estimate_ratios(num, den, SHARED, EstimateSettings())
    drawn = estimate_ratios(
        num, den, SHARED, parse_estimate_settings({"method": "sample", "iteration_num": "60000"})
    )
    spread = (exact.high - exact.low) / 3.3
    # chains take over in the last case; their draws depend on one another
    assert (np.abs(drawn.ratio - exact.ratio) < 8 * spread / 60_000**0.5).all()
    assert (np.abs(drawn.low - exact.low) < 0.05 * spread).all()


def test_exact_counts_give_clipped_ratios() -> None:
    found = estimate_ratios(
        cells_of_tables("PH1_num", [3, 4], (2, 3), 0.0),
        cells_of_tables("PH1_denom", [20], (1,), 0.0),
        SHARED,
        EstimateSettings(),
    )
    assert found.ratio[0].tolist() == found.low[0].tolist() == found.high[0].tolist() == [0.15, 0.2, 1.0]


def test_exact_numerators_over_a_noisy_denominator_near_a_bound_are_refused_by_name() -> None:
    with pytest.raises(DataError, match="PH1, STATE 44, iteration A: some counts are exact"):
        estimate_ratios(
            cells_of_tables("PH1_num", [3, 4], (2, 3), 0.0),
            cells_of_tables("PH1_denom", [20], (1,)),
            SHARED,
            EstimateSettings(),
        )
    assert unbounded_single((50_000, 0), (20_000, 100), RatioModel(1)) is not None


def test_a_zero_denominator_has_no_noisy_ratio() -> None:
    found = estimate_ratios(
        cells_of_tables("PH1_num", [30, 40], (2, 3)),
        cells_of_tables("PH1_denom", [0], (1,)),
        SHARED,
        EstimateSettings(),
    )
    assert np.isnan(found.noisy).all()
    assert {one.cell for one in ratio_findings(found, EstimateSettings())} == {1, 2, 3}


def test_ratios_outside_their_bounds_are_not_published() -> None:
    found = estimate_ratios(
        cells_of_tables("PH1_num", [30, 40], (2, 3)),
        cells_of_tables("PH1_denom", [20], (1,)),
        SHARED,
        EstimateSettings(),
    )
    with pytest.raises(CheckError, match="PH1, STATE 44, iteration A, cell 2"):
        ratio_findings(replace(found, ratio=found.ratio + 10), EstimateSettings())


def test_groups_that_are_in_one_table_only_are_named() -> None:
    num, den = cells_of_tables("PH1_num", [30, 40], (2, 3)), cells_of_tables("PH1_denom", [20], (1,))
    other = replace(den, keys=(("STATE", "45", "A"),))
    with pytest.raises(
        DataError, match="PH1_num, STATE 44, iteration A: a numerator without its denominator"
    ):
        estimate_ratios(num, other, SHARED, EstimateSettings())


def table(
    name: str, counts: list[int], numbers: list[int], kind: str = "STATE", *, geometric: bool = False
) -> NoisyCells:
    size = len(counts)
    return NoisyCells(
        name, np.full(size, kind), np.full(size, "44"), np.full(size, "A"), np.array(numbers), np.array(counts),
        np.full(size, V), np.full(size, geometric),
    )  # fmt: skip


def test_geometric_noise_in_ratios_and_types_left_out_are_remarked() -> None:
    noisy = {
        "PH1_num": table("PH1_num", [300, 700], [2, 3], geometric=True),
        "PH1_denom": table("PH1_denom", [380], [1], geometric=True),
        "PH8_num": table("PH8_num", [300, 700], [2, 3], "TRACT"),
        "PH8_denom": table("PH8_denom", [380, 380], [2, 3], "TRACT"),
    }
    found = estimate_tables(noisy, (), (SHARED, APART), EstimateSettings())
    assert [file.estimates.table for file in found.files] == ["PH1"]
    assert any("TRACT" in remark for remark in found.remarks)
    assert any("normal model is an approximation" in remark for remark in found.remarks)


def test_types_of_regions_without_denominators_stop() -> None:
    noisy = {
        "PH1_num": table("PH1_num", [300, 700], [2, 3]),
        "PH1_denom": table("PH1_denom", [380], [1], "USA"),
    }
    with pytest.raises(DataError, match="PH1_denom has no rows of type STATE"):
        estimate_tables(noisy, (), (SHARED,), EstimateSettings())
    absent = estimate_tables({"PH1_num": noisy["PH1_num"]}, (), (SHARED,), EstimateSettings())
    assert absent.files == ()
    assert "PH1_denom: no noisy counts, so PH1 is not estimated" in absent.remarks
