"""Plans: exact laws and costs by level, what is left out, and rows for the eyes."""

from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import ConfigError
from censafe.model import Neighbors, NoiseLaw, ProtectedUnit, ReleasePlan
from censafe.planning.prices.rows import plan_rows
from censafe.privacy.loss.accountant import part_cost
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import (
    PopulationGroupLevel,
    Universe,
    group_levels,
    group_noise_law,
)
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.detailed.plan import (
    area_totals,
    plan_release,
    published_from,
    stabilities,
)
from censafe.products.detailed.planner import budgets_for_margins, plan_notes, query_facts
from support.safetab_universes import make_universe, write_parameters
from support.shared import shared_data


@pytest.fixture(scope="module")
def universe() -> Universe:
    return read_universe()


def levels_of(plan: ReleasePlan) -> tuple[str, ...]:
    """Keys of the levels that a plan measures, each once, in order."""
    return tuple(dict.fromkeys(query.level for part in plan.parts for query in part.queries))


def test_a_part_of_p_has_three_queries_that_cost_the_budget_once(universe: Universe) -> None:
    plan = plan_release(load_p_config("ddhca"), universe)
    part = {part.name: part for part in plan.parts}["county_2"]
    assert [query.table for query in part.queries] == ["detailed_only", "stage1", "stage2"]
    rho = Fraction("0.159")
    assert [query.cost for query in part.queries] == [rho, rho / 10, rho * 9 / 10]
    assert [query.law for query in part.queries] == [
        NoiseLaw.gaussian(9 / (2 * cost)) for cost in (rho, rho / 10, rho * 9 / 10)
    ]
    assert part.disjoint == ((0,), (1, 2))
    assert part_cost(part) == part.cost == rho


def test_a_part_of_h_has_one_query(universe: Universe) -> None:
    plan = plan_release(load_h_config("ddhcb"), universe)
    assert [part.name for part in plan.parts[:4]] == ["usa_1_t3", "usa_1_t4", "usa_2_t3", "usa_2_t4"]
    assert all(len(part.queries) == 1 and not part.disjoint for part in plan.parts)
    assert plan.parts[2].queries[0].law == NoiseLaw.gaussian(9 / (2 * Fraction("1.9208")))
    assert plan.unit is ProtectedUnit.HOUSEHOLD


def test_pure_dp_has_geometric_noise_of_scale_s_over_epsilon() -> None:
    folder = shared_data("bureau/safetab_p/toy/input_dir_puredp")
    config = load_p_config(folder)
    toy = read_universe(config.universe)
    plan = plan_release(config, toy)
    stage2 = plan.parts[0].queries[2]
    assert stage2.law == NoiseLaw.laplace(
        stabilities(config, toy)[PopulationGroupLevel("USA", 1)] / (Fraction("0.54") * 9 / 10)
    )


def test_levels_without_budget_region_or_iteration_are_left_out(tmp_path: Path, universe: Universe) -> None:
    config = load_p_config("ddhca")
    names = levels_of(plan_release(config, universe))
    assert "aiannh_1" not in names
    assert len(names) == 19
    some = levels_of(plan_release(config, universe, region_types={"STATE", "AIANNH"}))
    assert some == ("state_1", "state_2", "aiannh_2")
    level_2_only = make_universe(("alone", {1001}), ("combination", {1001}))
    assert levels_of(plan_release(config, level_2_only)) == tuple(
        level.key for level in group_levels() if level.level == 2
    )
    with pytest.raises(ConfigError, match="no level with a budget has an iteration and a region"):
        plan_release(config, universe, region_types=())


def test_infinite_budgets_have_no_plan(tmp_path: Path, universe: Universe) -> None:
    config = load_p_config("ddhca", {"budget.usa_2": "Infinity"}, allow_infinite=True)
    with pytest.raises(ConfigError, match=r"the budget of \(USA, 2\) is infinite"):
        plan_release(config, universe)


def test_the_noise_law_refuses_what_is_not_exact_or_not_positive() -> None:
    definition = load_p_config("ddhca").definition
    with pytest.raises(TypeError, match="Fraction, not float"):
        group_noise_law(definition, 9, 0.5)  # type: ignore[arg-type]
    for stable, budget in ((9, Fraction(0)), (0, Fraction(1))):
        with pytest.raises(ConfigError, match="positive budget"):
            group_noise_law(definition, stable, budget)


def test_the_plan_changes_with_what_decides_the_noise_and_not_with_what_is_done_after(
    universe: Universe,
) -> None:
    base = plan_release(load_p_config("ddhca"), universe).digest()
    after = {"negatives": "zero", "t1": "pooled", "coterminous": "donor", "mark_x": "true", "reader": "csv"}
    assert plan_release(load_p_config("ddhca", after), universe).digest() == base
    for key, text in (
        ("budget.usa_1", "0.009"),
        ("thresholds.usa_1", "1,2,3"),
        ("zero_suppression_chance", "0.9"),
        ("stage_1_fraction", "0.2"),
        ("max_race_codes", "3"),
        ("states", "44"),
    ):
        assert plan_release(load_p_config("ddhca", {key: text}), universe).digest() != base


def test_fewer_race_codes_need_less_noise(universe: Universe) -> None:
    few = load_p_config("ddhca", {"max_race_codes": "3"})
    assert set(stabilities(few, universe).values()) == {4}
    law = plan_release(few, universe).parts[0].queries[0].law
    assert law.parameter == 4 / (2 * Fraction("0.008"))


def test_counts_are_published_from_the_next_above_the_threshold(tmp_path: Path, universe: Universe) -> None:
    config = load_p_config("ddhca")
    found = {
        part.name: published_from(config, level, part.queries[2])
        for part in plan_release(config, universe).parts
        for level in group_levels()
        if level.key == part.name
    }
    assert {found[name] for name in ("usa_1", "state_2", "pr_state_2")} == {None}
    assert {found[name] for name in ("county_1", "place_1", "pr_tract_1")} == {94}
    assert {found[name] for name in ("county_2", "aiannh_2", "pr_place_2")} == {22}
    off = load_p_config("ddhca", {"zero_suppression_chance": "0"})
    part = plan_release(off, universe).parts[4]
    assert published_from(off, PopulationGroupLevel("COUNTY", 1), part.queries[2]) is None


def test_totals_by_area_and_under_replacement(universe: Universe) -> None:
    plan = plan_release(load_p_config("ddhca"), universe)
    assert area_totals(plan) == {"United States": Fraction("4.944"), "Puerto Rico": Fraction("2.643")}
    assert plan.total == Fraction("7.587")
    assert plan.other_losses == {Neighbors.REPLACE: 2 * plan.total}
    notes = plan_notes(load_p_config("ddhca"), plan)
    assert "4.944 for United States and 2.643 for Puerto Rico" in notes[0]
    alone = load_p_config("ddhca", {"run_pr": "false"})
    assert not any("Puerto Rico" in note for note in plan_notes(alone, plan_release(alone, universe)))


def test_rows_hold_margins_of_cells_and_of_their_sums(universe: Universe) -> None:
    config = load_p_config("ddhca", {"run_pr": "false"})
    plan = plan_release(config, universe)
    rows = plan_rows(plan, query_facts(config, universe, plan), confidence=Fraction(19, 20))
    moe = {(row.facts.level, row.facts.table, row.cells[0]): row.moe for row in rows}
    published = {
        "usa_2": (3, 20),
        "county_2": (11, 75),
        "county_1": (49, 332),
    }
    for level, (cell, total) in published.items():
        assert round(moe[level, "stage2", "cell"] or 0) == cell
        assert round(moe[level, "T01001", "T02003"] or 0) == total
    sizes = {(row.facts.level, row.facts.table): row.facts.iterations for row in rows}
    assert (sizes["usa_2", "detailed_only"], sizes["usa_2", "stage2"]) == (794, 2150)
    assert ("county_2", "detailed_only") not in sizes
    assert {row.facts.stability for row in rows} == {9}
    assert all(row.answers is None for row in rows)


def test_sums_of_h_are_those_of_its_tables(universe: Universe) -> None:
    config = load_h_config("ddhcb")
    plan = plan_release(config, universe)
    rows = plan_rows(plan, query_facts(config, universe, plan), confidence=Fraction(19, 20))
    draws = {
        (row.facts.table, cell): row.terms
        for row in rows
        if row.facts.level == "state_2"
        for cell in row.cells
    }
    assert draws == {
        ("t3", "cell"): 1, ("T03002", "0"): 2, ("T03003", "0"): 4, ("T03003", "1"): 2, ("T03003", "6"): 2,
        ("T03004", "0"): 5, ("T03004", "1"): 3, ("T03004", "3"): 2, ("T03004", "6"): 2, ("t4", "cell"): 1,
        ("T04002", "0"): 3,
    }  # fmt: skip


def test_margins_become_budgets(universe: Universe) -> None:
    config = load_h_config("ddhcb")
    level = Fraction(19, 20)
    assert budgets_for_margins(config, universe, {"t3.usa_2": Fraction(3)}, level) == {
        "budget.t3.usa_2": "1.9208"
    }
    both = budgets_for_margins(config, universe, {"tract_2": Fraction(11)}, level)
    assert both == {"budget.t3.tract_2": "0.14287", "budget.t4.tract_2": "0.14287"}
    assert len(budgets_for_margins(config, universe, {"t4": Fraction(11)}, level)) == 20
    with pytest.raises(ConfigError, match=r"no level 'usa_3'; give one such as t3.usa_1. Did you mean"):
        budgets_for_margins(config, universe, {"usa_3": Fraction(3)}, level)
    with pytest.raises(ConfigError, match="margin of error of 0 has no budget"):
        budgets_for_margins(config, universe, {"usa_2": Fraction(0)}, level)
    with pytest.raises(ConfigError, match="under privacy_definition zcdp only"):
        budgets_for_margins(
            load_h_config("ddhcb", {"privacy_definition": "puredp"}), universe, {"usa_2": Fraction(3)}, level
        )


def test_a_folder_with_its_own_universe_is_planned(tmp_path: Path) -> None:
    folder = write_parameters(tmp_path)
    config = load_p_config("ddhca", {"universe": str(folder)})
    assert config.universe == folder
    plan = plan_release(config, read_universe(config.universe))
    assert plan.settings["universe"] == read_universe(folder).digest
    exact = load_p_config("ddhca", {"universe": str(folder), "stability": "exact"})
    assert {
        stabilities(config, read_universe(folder))[level] for level in group_levels() if level.level == 2
    } == {9}
    found = {level.key: s for level, s in stabilities(exact, read_universe(folder)).items()}
    assert (found["usa_1"], found["usa_2"], found["county_2"]) == (2, 3, 3)
