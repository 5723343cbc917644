"""Answers that are published exactly: the published counts of every level have them, whatever crosses them."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError, DataError
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import exact_figures, plan_release
from censafe.products.topdown.readings import attribute_losses
from censafe.products.topdown.rehearsal import rehearse
from support.exact_answers import HOMES, PERSONS, ZEROS, country, country_config, invariants
from support.histograms import dense

CASES = {
    "one": [("citizenship", "region")],
    "recode in areas": [("foreign", "Area")],
    "coarser further down": [("sex * citizenship", "Country"), ("citizenship", "Region"), ("foreign", "Area")],
    "crossing in regions": [("citizenship", "Region"), ("sex", "Region")],
    "crossing in areas": [("citizenship", "Area"), ("sex", "Area")],
    "three that cross": [("sex * citizenship", "Area"), ("sex * age", "Area"), ("age * citizenship", "Area")],
    "crossing above": [("age", "Country"), ("sex", "Region"), ("citizenship", "Region")],
    "everything": [("detailed", "Area")],
}  # fmt: skip


def check(config: TopdownConfig, seed: int, *, diagonal: bool) -> int:
    """Estimate once; every level has the exact answers, adds up, and keeps structural zeros. Returns how many parents changed."""
    loaded = country(config, seed, diagonal=diagonal)
    estimates = rehearse(config, loaded, seed)
    (histogram,) = config.histograms
    schema, spine = histogram.schema, loaded.facts.spine
    levels = [dense(level, schema.schema.cells) for level in estimates.levels[histogram.name]]
    truth = [dense(level, schema.schema.cells) for level in loaded.exact[histogram.name]]
    for level, counts, records in zip(spine.levels, levels, truth, strict=True):
        assert counts.min() >= 0 and not counts[:, ~schema.allowed()].any()
        for one in histogram.known_at(level.name):
            label = schema.query(one.groups.query).label
            for answer in range(label.max() + 1):
                mine = label == answer
                np.testing.assert_array_equal(counts[:, mine].sum(axis=1), records[:, mine].sum(axis=1))
    for above, below, level in zip(levels, levels[1:], spine.levels[1:], strict=False):
        sums = np.zeros_like(above)
        np.add.at(sums, level.parent, below)
        np.testing.assert_array_equal(sums, above)
    if any(one.groups.query == "detailed" for one in histogram.invariants):
        np.testing.assert_array_equal(levels[-1], truth[-1])
    return sum(len(report["repairs"]) for report in estimates.reports[histogram.name])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("more", ["", ZEROS])
def test_published_counts_have_the_exact_answers(tmp_path: Path, case: str, more: str) -> None:
    config = country_config(tmp_path, invariants(*CASES[case]), more=more)
    for seed in range(3):
        check(config, seed, diagonal=False)


def test_parents_change_where_answers_cross_and_nothing_else_fits(tmp_path: Path) -> None:
    # an answer that is exact for the parent alone stays when it changes
    config = country_config(tmp_path, invariants(("sex", "Area"), ("age", "Area"), ("citizenship", "Region")))
    assert sum(check(config, seed, diagonal=True) for seed in range(4)) > 0
    config = country_config(tmp_path, invariants(("sex", "Area"), ("age", "Area")))
    assert sum(check(config, seed, diagonal=True) for seed in range(4)) > 0
    stop = country_config(tmp_path, invariants(("sex", "Area"), ("age", "Area")), extra='infeasible = "stop"')
    with pytest.raises(CheckError, match="meet the exact answers"):
        for seed in range(4):
            check(stop, seed, diagonal=True)


@pytest.mark.parametrize("queries", [[("sex", "Region")], [("sex", "Area"), ("age", "Area")]])
def test_bounds_by_facility_stand_beside_exact_answers(
    tmp_path: Path, queries: list[tuple[str, str]]
) -> None:
    config = country_config(tmp_path, invariants(*queries), schema=PERSONS + HOMES)
    for seed in range(3):
        check(config, seed, diagonal=False)


def test_records_that_break_their_bounds_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    config = country_config(tmp_path, invariants(("foreign", "Area")), schema=PERSONS + HOMES)
    with pytest.raises(DataError, match="do not fit the structural zeros or the counts of units"):
        country(config, 1, units=(99, 0))


def test_pure_privacy_and_other_passes_keep_exact_answers(tmp_path: Path) -> None:
    config = country_config(
        tmp_path, invariants(*CASES["crossing in areas"]), loss="epsilon", extra='passes = "one"'
    )
    check(config, 5, diagonal=False)


def test_what_is_not_protected_is_named_by_attribute_and_area(tmp_path: Path) -> None:
    config = country_config(tmp_path, invariants(("citizenship", "region"), ("sex * foreign", "Country")))
    words = " ".join(exact_figures(config))
    assert "numbers by citizenship in every Region and in all larger areas" in words
    assert (
        "Not protected: citizenship of a person in its Region (residents). Whoever knows all other records of one Region"
        in words
    )
    assert (
        "Not protected: sex with citizenship of a person in its Country (residents, as far as sex * foreign tells it)"
        in words
    )
    histogram = config.histogram("residents")
    assert histogram.exact_totals == histogram.record_totals == "Region"
    losses = attribute_losses(config, histogram)
    assert set(losses) == {"age"}  # both levels of sex are told in the country
    plan = plan_release(config)
    assert (
        plan.settings["invariants.residents"] == "citizenship in every Region, sex * foreign in every Country"
    )
    assert "numbers of residents by citizenship in every Region" in plan.settings["neighbors.replace"]
    free = plan_release(country_config(tmp_path, ""))
    assert "invariants.residents" not in free.settings and plan.total < free.total
    assert plan.digest() != free.digest()


@pytest.mark.parametrize(
    ("tables", "warnings"),
    [
        ([("detailed", "Area")], ["in every Area tell all cells apart; nothing is protected", "buys nothing: total at"]),
        ([("detailed", "Region")], ["in every Region tell all cells apart; nothing but where in its Region it is"]),
        ([("sex * age", "Region")], ["buys nothing: total at Country, Region; sex * age at Country, Region"]),
        ([("citizenship", "Country")], ["buys nothing: total at Country"]),
    ],
)  # fmt: skip
def test_the_plan_warns_where_nothing_is_left(
    tmp_path: Path, tables: list[tuple[str, str]], warnings: list[str]
) -> None:
    config = country_config(tmp_path, invariants(*tables))
    for words in warnings:
        assert any(words in warning for warning in config.warnings), config.warnings
    assert any("all cells" in warning for warning in config.warnings) is (tables[0][0] == "detailed")


@pytest.mark.parametrize(
    ("tables", "extra", "words"),
    [
        (invariants(("citizen", "Region")), "", "citizen"),
        (invariants(("citizenship", "Regio")), "", "Did you mean Region|nearest|Region"),
        (invariants(("total", "Region")), "", "name the level as exact_totals"),
        (invariants(("sex", "Region"), ("sex", "Area")), "", "is there twice"),
        (invariants(("sex", "Region")) + "levels = 3", "", "unknown key"),
        (invariants(("sex", "Region")).replace("Region", "Country"), 'root = "Region"', "at which the run starts"),
        (invariants(("sex", "Region")), "bypass = true", "bypass = false"),
        (invariants(("sex", "Area"), ("age", "Area"), ("citizenship", "Country")), "", "exact in every Region, too"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, tables: str, extra: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        country_config(tmp_path, tables, extra=extra)
