"""Tables of counts: sums, rounding, options, and errors that name the cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from censafe.errors import CheckError, ConfigError, DataError
from censafe.estimation.sdhc.counts import (
    GroupedCells,
    adding_up,
    estimate_counts,
    grouped,
    largest_remainder,
    sum_distribution,
)
from censafe.estimation.sdhc.posteriors import count_posterior, geometric_scale
from censafe.estimation.sdhc.settings import CountRules, parse_estimate_settings
from censafe.estimation.sdhc.tables import count_findings
from censafe.model.sdhc import CountEstimates, EstimateSettings, NoisyCells

RULES = CountRules("PH3", {3: (4, 5), 1: (2, 4, 5)})


def noisy(counts: list[int], variance: float = 147.8, *, geometric: bool = False) -> NoisyCells:
    size = len(counts)
    return NoisyCells(
        "PH3", np.full(size, "STATE"), np.full(size, "44"), np.full(size, "A"), np.array([2, 4, 5][:size]),
        np.array(counts, np.int64), np.full(size, variance), np.full(size, geometric),
    )  # fmt: skip


def solved(cells: NoisyCells, **settings: str) -> CountEstimates:
    return estimate_counts(grouped(cells, RULES.basis), RULES, parse_estimate_settings(settings))


def test_sums_come_first_and_add_up_noisy_counts_and_variances() -> None:
    found = solved(noisy([-64, 30, 5]))
    assert found.cells == (3, 1, 2, 4, 5)
    assert found.sums == 2
    assert found.noisy.tolist() == [[35, -29, -64, 30, 5]]
    assert found.variance[0].tolist() == pytest.approx([295.6, 443.4, 147.8, 147.8, 147.8])
    assert found.factor == pytest.approx(1.6448536, abs=1e-7)


def test_published_example_of_a_sum() -> None:
    found = solved(noisy([-64, 30, 5]))
    column = found.cells.index(1)
    assert (found.low[0, column], found.high[0, column]) == (20, 70)
    assert found.pred[0, column] == found.pred[0, 2:].sum()


def test_exact_margins_round_the_sum_of_means() -> None:
    rounded, exact = solved(noisy([-64, 30, 5])), solved(noisy([-64, 30, 5]), marginals="exact")
    means = rounded.mean[0, 2:]
    assert exact.pred[0, 1] == np.rint(means.sum())
    assert rounded.pred[0, 1] == np.rint(means).sum()


def test_sum_of_two_cells_against_integration() -> None:
    z, sigma = (-20.0, 9.0), (12.0, 5.0)

    def below(x: float) -> float:
        def part(y: float) -> float:
            first = norm.pdf(y, z[0], sigma[0]) / norm.sf(0, z[0], sigma[0])
            second = norm.cdf(x - y, z[1], sigma[1]) - norm.cdf(0, z[1], sigma[1])
            return float(first * second / norm.sf(0, z[1], sigma[1]))

        return float(quad(part, 0, x, epsabs=1e-10)[0])

    law = sum_distribution(z, np.square(sigma))
    for p in (0.05, 0.5, 0.95):
        assert below(float(law.quantiles(p))) == pytest.approx(p, abs=2e-5)


def test_shortest_interval_of_a_sum_holds_its_level_and_is_shorter() -> None:
    law = sum_distribution([-30, -10, 2], [147.8] * 3)
    low, high = law.shortest(0.9)
    ends = law.quantiles([0.05, 0.95])
    assert np.interp([low, high], law.at, law.below) @ [-1, 1] == pytest.approx(0.9, abs=1e-9)
    assert high - low < ends[1] - ends[0]


def test_discrete_model_has_the_quantiles_of_the_exact_law() -> None:
    found = solved(noisy([-64, 30, 5]), model="discrete")
    posterior = count_posterior(5, 147.8, "gaussian")
    assert (found.low[0, -1], found.high[0, -1]) == tuple(posterior.quantiles((0.05, 0.95)))
    assert found.mean[0, -1] == pytest.approx(posterior.mean)
    assert np.abs(found.mean - solved(noisy([-64, 30, 5])).mean).max() < 3 * 0.5


def test_geometric_noise_is_always_discrete_but_for_the_reference() -> None:
    cells = noisy([-64, 30, 5], 800.0, geometric=True)
    exact = count_posterior(30, float(geometric_scale(800.0)), "geometric")
    assert solved(cells).mean[0, 3] == pytest.approx(exact.mean)
    reference = solved(cells, conventions="reference")
    assert reference.mean[0, 3] == pytest.approx(solved(noisy([-64, 30, 5], 800.0)).mean[0, 3])


def test_draws_agree_within_four_standard_errors() -> None:
    cells, draws = noisy([-64, 30, 5]), 40_000
    exact, drawn = solved(cells), solved(cells, method="sample", iteration_num=str(draws))
    errors = np.sqrt(exact.variance / draws)
    assert (np.abs(drawn.mean - exact.mean) < 4 * errors).all()
    assert np.abs(drawn.low - exact.low).max() <= 1
    assert np.abs(drawn.high - exact.high).max() <= 1


@pytest.mark.parametrize(
    "options",
    [{}, {"interval": "shortest"}, {"model": "discrete"}, {"method": "sample", "iteration_num": "10"}],
)
def test_without_noise_everything_is_the_count(options: dict[str, str]) -> None:
    found = solved(noisy([-2, 30, 5], 0.0), **options)
    expected = [[35, 35, 0, 30, 5]]
    assert found.pred.tolist() == found.low.tolist() == found.high.tolist() == expected


def test_threads_change_nothing() -> None:
    cells = grouped(noisy([-64, 30, 5]), RULES.basis)
    one, two = (estimate_counts(cells, RULES, EstimateSettings(), workers=n) for n in (1, 2))
    assert (one.low == two.low).all()
    assert (one.mean == two.mean).all()


def test_a_missing_cell_is_named() -> None:
    with pytest.raises(DataError, match="PH3, STATE 44, iteration A, cell 5: the row is missing"):
        grouped(noisy([1, 2]), RULES.basis)


def test_a_double_row_is_named() -> None:
    cells = noisy([1, 2, 3])
    double = replace(cells, cell=np.array([2, 4, 4]))
    with pytest.raises(DataError, match="iteration A, cell 4: the row occurs 2 times"):
        grouped(double, (2, 4))


def test_a_cell_that_is_no_basis_cell_and_a_negative_variance_are_named() -> None:
    with pytest.raises(DataError, match="cell 5: not a basis cell"):
        grouped(noisy([1, 2, 3]), (2, 4))
    with pytest.raises(DataError, match="cell 2: VARIANCE is -1"):
        grouped(noisy([1, 2, 3], -1.0), RULES.basis)


def test_findings_tell_what_noise_cannot_explain() -> None:
    low = solved(noisy([-64, 30, 5]))
    assert count_findings(low, EstimateSettings()) == ()
    far = solved(noisy([-100, 30, 5]))
    found = count_findings(far, EstimateSettings())
    assert [(one.cell, one.key[1]) for one in found] == [(2, "44")]
    assert "lower than noise" in found[0].text


def test_findings_in_the_conventions_of_the_reference() -> None:
    settings = parse_estimate_settings({"conventions": "reference"})
    found = count_findings(solved(noisy([-1000, 30, 5])), settings)
    assert {one.cell for one in found} == {1, 2}
    assert all("reference's check stops" in one.text for one in found)


def test_impossible_estimates_are_not_published() -> None:
    found = solved(noisy([-64, 30, 5]))
    with pytest.raises(CheckError, match="cell 3"):
        count_findings(replace(found, pred=found.pred - 100), EstimateSettings())


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"alpha": "0.7"}, "alpha is 0.7"),
        ({"alpha": "many"}, "alpha is 'many'"),
        ({"trun": "1"}, "trun is 1"),
        ({"interval": "long"}, "allowed are equal-tailed, shortest"),
        ({"seed": "1.5"}, "whole number"),
        ({"iteration_num": "0"}, "iteration_num is 0"),
        ({"color": "red"}, "color is not a setting"),
        ({"exclude_levels": 3}, "exclude_levels"),
        ({"conventions": "reference", "model": "discrete"}, "conventions = reference has model = continuous"),
    ],
)
def test_settings_that_are_not_possible(values: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_estimate_settings(values)


def test_all_problems_of_settings_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"alpha.*color"):
        parse_estimate_settings({"alpha": "x", "color": "red"})


def test_margins_of_error_follow_alpha_but_for_the_reference() -> None:
    assert solved(noisy([1, 2, 3]), alpha="0.025").factor == pytest.approx(1.95996, abs=1e-5)
    assert solved(noisy([1, 2, 3]), alpha="0.025", conventions="reference").factor == pytest.approx(
        1.64485, abs=1e-5
    )


# Rounded cells that add up to their rounded sums.


PH3 = CountRules("PH3", {3: (4, 5, 6, 7), 8: (9, 10), 1: (2, 4, 5, 6, 7, 9, 10)})


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1e5), min_size=7, max_size=7))
def test_every_sum_adds_up_and_nothing_moves_by_a_whole_person(values: list[float]) -> None:
    means = {cell: np.array([value]) for cell, value in zip(PH3.basis, values, strict=True)}
    means |= {number: sum(means[cell] for cell in of) for number, of in PH3.margins.items()}
    found = adding_up(means, PH3)
    for number, of in PH3.margins.items():
        assert found[number] == sum(found[cell] for cell in of)
    assert found[1] == np.rint(means[1])
    assert all(abs(found[number] - means[number]) < 1 + 1e-9 for number in found)


def test_remainders_decide_and_exact_counts_stay() -> None:
    assert largest_remainder(np.array([[0.2, 3.0, 1.9, 0.9]]), np.array([6])).tolist() == [[0, 3, 2, 1]]


def test_sums_that_overlap_are_refused() -> None:
    rules = CountRules("X", {1: (2, 3), 4: (3, 5)})
    with pytest.raises(ValueError, match="sum 1 shares some cells"):
        adding_up({number: np.ones(1) for number in (1, 2, 3, 4, 5)}, rules)


def test_estimates_add_up_where_it_is_asked_for() -> None:
    rng = np.random.default_rng(2)
    shape = (40, 7)
    keys = tuple(("STATE", str(row), "A") for row in range(40))
    cells = GroupedCells(
        "PH3", keys, PH3.basis, rng.integers(-20, 40, shape), np.full(shape, 147.8), np.full(shape, False)
    )
    found = estimate_counts(cells, PH3, parse_estimate_settings({"marginals": "largest-remainder"}))
    column = {cell: found.pred[:, place] for place, cell in enumerate(found.cells)}
    for number, of in PH3.margins.items():
        assert (column[number] == sum(column[cell] for cell in of)).all()
    assert (np.abs(found.pred - found.mean) < 1).all()
    plain = estimate_counts(cells, PH3, parse_estimate_settings({}))
    assert (np.abs(found.pred - found.mean)[:, 2] <= 0.5).all()
    assert not (np.abs(plain.pred - plain.mean)[:, 2] <= 0.5).all()
    assert (found.low == plain.low).all()
