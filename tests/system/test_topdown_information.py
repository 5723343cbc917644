"""TopDown with the answers below every geounit, through the same steps as without them."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.descent import estimate_level, rules_of
from censafe.estimation.topdown.levels.task import LevelTask
from censafe.estimation.topdown.whole_tree.information import informed
from censafe.geography.spines.choice import standard_levels
from censafe.model import SparseLevel
from censafe.model.observer import SilentObserver
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.folder import stored_files
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.measuring import measure_stored
from censafe.products.topdown.plan import plan_release, workloads
from censafe.products.topdown.rehearsal import TestMeasurementStore, rehearse
from support.commands import CommandLine
from support.runs import Runs
from support.topdown_areas import write_pl94


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    """Two states with American Indian halves and passed-over geounits."""
    return write_pl94(tmp_path_factory.mktemp("parted") / "data")


def opened(data: Path, config: str = "pl94-us", **settings: str):
    chosen = load_config(config, {"information": "lower", **settings})
    with BlockIntake(data, chosen, ReadOptions()) as intake:
        return chosen, intake.load()


def objectives(config, loaded, histogram: str, seed: int) -> list[LevelObjective]:
    store, facts = TestMeasurementStore(plan_release(config), seed), loaded.facts
    found = []
    loads = [load for load in workloads(config) if load.histogram.name == histogram]
    for load, counts in zip(loads, loaded.exact[histogram], strict=True):
        budgets = facts.budgets[load.part.name]
        measured = measure_stored(load, counts, budgets, store, stored_files(load, facts))
        found.append(LevelObjective.measured([query.label for query in load.queries], measured))
    return found


def dense(level, cells: int) -> np.ndarray:
    found = np.zeros((level.nodes, cells), np.int64)
    found[np.repeat(np.arange(level.nodes), np.diff(level.node_ptr)), level.cell] = level.count
    return found


@pytest.mark.parametrize("spine", ["standard", "aian", "optimized"])
def test_every_spine_gives_the_state_totals_and_levels_that_add_up(parted, spine):
    config, loaded = opened(parted, spine=spine)
    found = rehearse(config, loaded, 3)
    for name, cells in (("persons", 2016), ("units", 2)):
        levels = [dense(level, cells) for level in found.levels[name]]
        truth = [
            dense(level, cells) for level in standard_levels(loaded.facts.run, loaded.exact[name], cells)
        ]
        assert [level.sum() for level in levels] == [truth[-1].sum()] * 6
        assert levels[1].sum(axis=1).tolist() == truth[1].sum(axis=1).tolist()
        for report in found.reports[name]:
            assert report["approximate"] == []


def test_given_the_same_parents_blocks_are_those_of_their_own_answers(parted):
    config, loaded = opened(parted, spine="optimized", measure="persons")
    histogram, facts = config.histograms[0], loaded.facts
    own = objectives(config, loaded, "persons", 4)
    below = list(informed(histogram, facts, config.choices, own, SilentObserver()))
    assert [one.below is None for one in below] == [False] * 5 + [True]
    assert below[-1] is own[-1]
    levels = facts.spine.levels
    rules = rules_of(histogram, "Block", config.choices)
    above = loaded.exact["persons"][-2]
    given = SparseLevel(above.geounits, above.node_ptr, above.cell, above.count)
    found = [
        estimate_level(LevelTask(levels[-1], one, facts.limits["persons"][-1]), rules, given, levels[-2])[0]
        for one in (own[-1], below[-1])
    ]
    assert np.array_equal(found[0].cell, found[1].cell)
    assert np.array_equal(found[0].count, found[1].count)


def test_a_finished_run_gives_the_same_as_a_run(censafe: CommandLine, runs: Runs, districts, run_1940):
    """Files of a run too: see test_topdown_by_parts."""
    choice = ("--set", "information=lower")
    before, expected = (
        {path.name: path.read_bytes() for path in (out / "histograms").iterdir()}
        for out in (run_1940, runs("topdown", "e2e-1940", districts, "--test-key", 1, *choice))
    )
    censafe("estimate", run_1940, *choice)
    assert expected != before
    assert expected == {path.name: path.read_bytes() for path in (run_1940 / "histograms").iterdir()}


def test_answers_that_are_not_kept_cannot_be_used_from_below():
    with pytest.raises(ConfigError, match="information: lower needs the answers of all levels"):
        load_config("pl94-us", {"information": "lower", "noisy_measurements": "lazy"})


def test_choices_of_information_are_two(censafe: CommandLine, run_1940):
    censafe("estimate", run_1940, "--set", "information=all", ends=1, says=("information", "level", "lower"))
