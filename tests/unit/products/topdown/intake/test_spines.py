"""Spines that configurations choose, and the budgets of their geounits."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import ConfigError
from censafe.geography.spines.choice import build_run_spine
from censafe.geography.spines.tree import E2E_1940, PL94_US, build_spine
from censafe.model.observer import SilentObserver
from censafe.products.configuration.source import find_shipped
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.intake import load_for_data
from censafe.products.topdown.intake.results import MicrodataResult
from censafe.products.topdown.intake.spines import (
    level_budgets,
    load_for_plan,
    load_of_unknown_run,
    spine_choice,
    spine_document,
    spine_refusal,
    spine_remarks,
)
from censafe.products.topdown.plan import plan_release, rows_loss, workloads
from censafe.products.topdown.planner import report
from censafe.products.topdown.readings import record_questions
from censafe.products.topdown.recipe import _cited
from support.topdown_areas import block_codes, random_areas


def own_file(tmp_path: Path, first: str) -> Path:
    shipped = find_shipped("topdown", "pl94-us")
    assert shipped is not None
    path = tmp_path / "own.toml"
    text = shipped.path.read_text(encoding="utf-8").replace('spine = "production"\n', "")
    path.write_text(f"{first}\n{text}", encoding="utf-8")
    return path


def test_bypass_may_be_a_boolean_and_follows_the_spine(tmp_path: Path) -> None:
    assert load_config(own_file(tmp_path, "bypass = true")).choices.bypass is True
    assert load_config(own_file(tmp_path, 'spine = "optimized"\nbypass = false')).choices.bypass is False
    assert load_config("pl94-us", {"spine": "optimized"}).choices.bypass is True
    assert load_config("pl94-us", {"spine": "aian"}).choices.bypass is False


@pytest.mark.parametrize(
    "line", ["bypass = 1", "fanout_cutoff = -1", "bypass_cutoff = true", 'fanout_cutoff = "x"']
)
def test_odd_values_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=line.partition(" ")[0]):
        load_config(own_file(tmp_path, line))


def test_cutoffs_reach_the_spine_and_the_plan() -> None:
    config = load_config("pl94-us", {"spine": "optimized", "fanout_cutoff": "3", "bypass_cutoff": "40"})
    choice = spine_choice(config)
    assert (choice.fanout_cutoff, choice.bypass.most_children) == (3, 40)
    digests = {
        plan_release(load_config("pl94-us", settings)).digest()
        for settings in ({}, {"spine": "aian"}, {"bypass": "true"}, {"spine": "optimized"},
                         {"spine": "optimized", "fanout_cutoff": "3"})
    }  # fmt: skip
    assert len(digests) == 5


def test_other_schemas_and_levels_walk_the_standard_spine_only(tmp_path: Path) -> None:
    for name in ("e2e-1940", "blocks-16"):
        with pytest.raises(ConfigError, match="spine: optimized needs the schemas"):
            plan_release(load_config(name, {"spine": "optimized"}))
    plan_release(load_config("e2e-1940", {"bypass": "true"}))


def test_a_geounit_with_both_shares_pays_for_both() -> None:
    config = load_config("pl94-us", {"spine": "optimized"})
    rng = np.random.default_rng(2)
    codes = block_codes((4, 44), rng)
    run = build_run_spine(build_spine(codes, PL94_US), spine_choice(config), random_areas(codes, rng))
    budgets = level_budgets(config, run)
    moved = 0
    for load in workloads(config):
        budget, plan = budgets[load.part.name], load.part
        shares = load.histogram.query_shares[load.level.name].values()
        for laws, costs in zip(budget.laws, budget.costs, strict=True):
            if not any(costs):
                assert laws == (None,) * len(costs)
                continue
            scale = costs[0] / plan.queries[0].cost
            moved += scale != 1
            assert scale >= 1
            assert costs == tuple(scale * query.cost for query in plan.queries)
            assert [law.parameter * cost for law, cost in zip(laws, costs, strict=True)] == [1] * len(costs)
        assert sum(shares, Fraction(0)) == 1
    assert moved > 5


def test_the_spine_is_stated_with_exact_shares() -> None:
    config = load_config("e2e-1940", {"bypass": "true", "bypass_cutoff": "0"})
    codes = np.array([4400010001, 4400010002, 5000010001])
    run = build_run_spine(build_spine(codes, E2E_1940), spine_choice(config))
    document = spine_document(config, run)
    assert document["path_total"] == {"persons": "1"}
    assert [level["geounits"] for level in document["levels"]] == [1, 2, 2, 3]
    states = document["levels"][1]["shares"]["persons"]
    assert states == [{"share": "3/4", "geounits": 1}, {"share": "1/2", "geounits": 1}]
    assert "places" not in document
    assert spine_remarks(load_config("e2e-1940"), run) == ()
    assert "spent together" in spine_remarks(config, run)[1]
    notes = report(config, confidence=Fraction(9, 10), delta=Fraction(1, 10**10)).notes
    assert any("every path from the root to a block spends the total" in note for note in notes)


# The redistricting configurations leave the spine to the data: optimized where blocks have attributes, and the reason elsewhere.


AREAS = ("aiannhce", "placefp", "cousubfp")


class Listening(SilentObserver):
    """Keeps what an operator would read."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def remark(self, text: str) -> None:
        self.heard.append(text)


def folder(path: Path, *columns: str, kind: str = "parquet", grfc: bool = False) -> Path:
    """A data folder with the names of columns and no rows: no more is read before the spine is chosen."""
    for name in ("histogram", "units"):
        table = pa.table({column: pa.array([], pa.string()) for column in ("geocode", *columns)})
        if kind == "parquet":
            pq.write_table(table, path / f"{name}.parquet")
        else:
            (path / f"{name}.csv").write_text(",".join(table.schema.names) + "\n", encoding="utf-8")
    if grfc:
        (path / "GRF-C.txt").touch()
    return path


def chosen(data: Path, config: str = "pl94-us", **settings: str) -> tuple[str, bool, str, str]:
    """Spine, whether budgets of only children move, what is recorded, and what an operator reads."""
    listening = Listening()
    found = load_for_data(config, settings, data, ReadOptions(observer=listening))
    return (
        found.choices.spine,
        found.choices.bypass,
        found.overrides.get("spine", ""),
        " ".join(listening.heard),
    )


@pytest.mark.parametrize(
    ("columns", "kind", "grfc", "source"),
    [
        (AREAS, "parquet", False, "the columns aiannhce, placefp, cousubfp of the units"),
        (AREAS, "csv", True, "the columns aiannhce, placefp, cousubfp of the units"),
        ((), "parquet", True, "GRF-C.txt"),
    ],
)
@pytest.mark.parametrize("config", ["pl94-us", "pl94-pr"])
def test_block_attributes_choose_the_spine_of_the_production(
    tmp_path: Path, columns: tuple[str, ...], kind: str, grfc: bool, source: str, config: str
) -> None:
    spine, bypass, recorded, said = chosen(folder(tmp_path, *columns, kind=kind, grfc=grfc), config)
    assert (spine, bypass, recorded) == ("optimized", True, "optimized")
    assert f"Spine: optimized, that of the 2020 production; block attributes from {source}." == said


@pytest.mark.parametrize(("columns", "grfc"), [((), False), (AREAS[:2], True)])
def test_without_them_the_run_says_why_it_is_on_the_standard_one(
    tmp_path: Path, columns: tuple[str, ...], grfc: bool
) -> None:
    spine, bypass, recorded, said = chosen(folder(tmp_path, *columns, grfc=grfc))
    assert (spine, bypass, recorded) == ("standard", False, "standard")
    assert said.startswith("Spine: standard.")
    assert "GRF-C*.txt beside the data, or the columns aiannhce, placefp, cousubfp of the units" in said


def test_exact_totals_that_the_spine_would_part_keep_the_standard_one(tmp_path: Path) -> None:
    settings = {"histograms.persons.exact_totals": "County"}
    spine, _, _, said = chosen(folder(tmp_path, *AREAS), **settings)
    assert spine == "standard"
    assert "totals cannot be exact" in said
    assert load_for_plan("pl94-us", settings).choices.spine == "standard"


@pytest.mark.parametrize("name", ["standard", "aian", "optimized"])
def test_a_setting_decides_before_the_data(tmp_path: Path, name: str) -> None:
    spine, _, recorded, said = chosen(folder(tmp_path, *AREAS), spine=name)
    assert (name, name, "") == (spine, recorded, said)


def test_other_configurations_are_not_asked(tmp_path: Path) -> None:
    assert chosen(folder(tmp_path, *AREAS), "pl94-tracts") == ("standard", False, "", "")
    assert spine_refusal(load_for_plan("blocks-16", {})).startswith("spine: optimized needs the schemas")


def test_a_result_whose_run_is_not_known_costs_what_the_dearer_spine_costs() -> None:
    totals = [
        plan_release(load_config("pl94-us", {"spine": spine})).total for spine in ("standard", "optimized")
    ]
    assert totals[0] < totals[1] == plan_release(load_of_unknown_run("pl94-us")).total
    microdata = MicrodataResult("redistricting", {}, Path("mdf"), None, "pl94-us", {})
    assert _cited(microdata).plan.total == totals[1]
    dhc = load_config("dhc-us", {"root": "State"})
    own, both = (
        next(one for one in record_questions(dhc) if one.name == name)
        for name in ("one row of each histogram", "one row of each histogram, with pl94-us")
    )
    assert both.loss - own.loss == rows_loss(plan_release(load_of_unknown_run("pl94-us")))
