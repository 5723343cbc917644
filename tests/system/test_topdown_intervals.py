"""Intervals beside published counts: against dense algebra, from runs and from public files, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import ConfigError
from censafe.estimation.topdown.intervals.areas import area_estimates, area_sets
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.descent import estimate_level, rules_of
from censafe.estimation.topdown.levels.task import LevelTask
from censafe.estimation.topdown.whole_tree.information import informed, linear_tree
from censafe.estimation.topdown.whole_tree.sums import Functionals
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
from censafe.publication.manifest import read_manifest, verify_outputs
from support.commands import CommandLine
from support.histograms import dense
from support.runs import Runs
from support.topdown_areas import write_pl94

FILES = ("intervals.parquet", "intervals.csv", "intervals/codebook.csv")


def area_list(folder: Path, geocodes: list[str], areas: int) -> Path:
    """Areas that follow no level: every so manieth block, some in none."""
    path = folder / "areas.csv"
    rows = [f"{code},{place % (areas + 1) or ''}" for place, code in enumerate(geocodes)]
    path.write_text("\n".join(["geocode,district", *rows]) + "\n", encoding="utf-8")
    return path


def rows_of(out: Path) -> dict[tuple[str, str, str, int], dict[str, float]]:
    """The rows of the table by kind, geocode, query and cell."""
    rows = pq.read_table(out / "intervals.parquet").to_pylist()
    return {(row["kind"], row["geocode"], row["query"], row["cell"]): row for row in rows}


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    """Two states with American Indian halves and passed-over geounits."""
    return write_pl94(tmp_path_factory.mktemp("parted") / "data")


@pytest.mark.parametrize("spine", ["standard", "aian", "optimized"])
def test_every_kind_of_area_has_the_estimates_of_the_stacked_system(tmp_path, parted, spine):
    """Occupancy: two cells a block, their sum known exactly, geounits without answers where budget moved."""
    config = load_config("pl94-us", {"spine": spine, "measure": "units"})
    with BlockIntake(parted, config, ReadOptions()) as intake:
        loaded = intake.load()
    facts, store = loaded.facts, TestMeasurementStore(plan_release(config), 5)
    walked, blocks = facts.run.spine, facts.run.standard.leaf.nodes
    objectives, rows, answers, weights = [], [], [], []
    for depth, (load, counts) in enumerate(zip(workloads(config), loaded.exact["units"], strict=True)):
        measured = measure_stored(
            load, counts, facts.budgets[load.part.name], store, stored_files(load, facts)
        )
        own = LevelObjective.measured([query.label for query in load.queries], measured)
        objectives.append(own)
        inside = walked.ancestors(depth)[None, :] == np.arange(walked.levels[depth].nodes)[:, None]
        for query, label in enumerate(own.labels):
            for node in np.flatnonzero(own.weights[own.kinds, query] > 0):
                for answer in range(label.max() + 1):
                    rows.append(np.kron(inside[node], label == answer).astype(float))
                    answers.append(measured.values[query][node, answer])
                    weights.append(own.weights[own.kinds[node], query])
    a, y, w = np.array(rows), np.array(answers, float), np.array(weights)
    totals = facts.limits["units"][-1].totals.astype(float)
    # the occupied units of every block are free, the vacant ones are the rest
    move = np.kron(np.eye(blocks), np.array([[-1.0], [1.0]]))
    start = np.kron(totals, [1.0, 0.0])
    free = totals > 0
    bent = (a @ move)[:, free]
    covariance = np.linalg.inv(bent.T @ (bent * w[:, None]))
    found = covariance @ (bent.T @ (w * (y - a @ start)))
    cells, spread = start + move[:, free] @ found, move[:, free] @ covariance @ move[:, free].T

    listed = area_list(tmp_path, facts.run.standard.leaf.geounits.tolist(), 3)
    sets = area_sets(facts.run, listed, SilentObserver())
    tree = linear_tree(config.histogram("units"), facts, objectives)
    sums = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    kinds = []
    for one in area_estimates(tree, Functionals.of(tree.blocks, sums), facts.run, sets):
        area_of = one.areas.area_of if facts.run.order is None else one.areas.area_of[facts.run.order]
        inside = (area_of[None, :] == np.arange(one.areas.number)[:, None]).astype(float)
        wanted = np.einsum("ab,fc->afbc", inside, sums).reshape(-1, 2 * blocks)
        np.testing.assert_allclose(one.values.reshape(-1), wanted @ cells, rtol=1e-9, atol=1e-9)
        expected = np.einsum("ri,ij,rj->r", wanted, spread, wanted)
        np.testing.assert_allclose(one.variances.reshape(-1), expected, rtol=1e-9, atol=1e-9)
        assert one.variances[:, 0].max() == 0.0  # the total of every block is published exactly
        kinds.append(one.areas.kind)
    spines = [] if spine == "standard" else [f"spine {name}" for name in walked.names[:-1]]
    assert kinds == [*facts.run.standard.names, *spines, "district"]


def test_a_finished_run_gains_intervals_and_loses_them_when_it_is_estimated_without(
    tmp_path, censafe: CommandLine, parted
):
    out = tmp_path / "out"
    censafe("run", "topdown", "pl94-us", parted, out, "--set", "spine=optimized", "--test-key", "4")
    before = read_manifest(out / "manifest.json").outputs
    geocodes = sorted(set(pq.read_table(parted / "units.parquet")["geocode"].to_pylist()))
    choice = ("--intervals", "--areas", area_list(tmp_path, geocodes, 4), "--query", "total", "--query", "h1")
    found = censafe("estimate", out, *choice, "--simulations", "2", "--confidence", "0.9")
    assert (found.code, found.err.count("blocks are in no area of district")) == (0, 1)
    assert all(str(out / name) in found.out for name in FILES[:2])
    manifest = read_manifest(out / "manifest.json")
    verify_outputs(out, manifest)
    assert set(FILES) <= set(manifest.outputs) - set(before)
    assert {"intervals/04.html", "intervals/44.html"} <= set(manifest.outputs)
    document = manifest.post_processing["intervals"]
    assert (document["simulations"], document["confidence"]) == (2, ["90"])
    assert document["queries"] == {"persons": ["total"], "units": ["total", "h1"]}
    assert {name: before[name] for name in before if name.startswith("histograms")} == {
        name: manifest.outputs[name] for name in before if name.startswith("histograms")
    }
    table = pq.read_table(out / "intervals.parquet")
    persons = [row for row in table.to_pylist() if row["histogram"] == "persons"]
    states = [row for row in persons if row["kind"] == "State"]
    assert [(row["sd"], row["difference"], row["lo90"] == row["hi90"]) for row in states] == [
        (0, 0, True)
    ] * 2
    halves = [row for row in persons if row["kind"] == "spine State"]
    assert all(row["sd"] > 0 for row in halves)
    assert sum(row["published"] for row in halves) == sum(row["published"] for row in states)
    for row in table.to_pylist():
        assert row["published_lo90"] <= row["published"] + 1e-4 or row["published_hi90"] > 0
        np.testing.assert_allclose(row["difference"], row["published"] - row["estimate"], atol=2e-4)
    assert len((out / "intervals.csv").read_text().splitlines()) == table.num_rows + 1
    censafe("estimate", out)
    assert dict(read_manifest(out / "manifest.json").outputs).keys() == before.keys()
    assert not any((out / name).exists() for name in ("intervals", *FILES))


def test_stored_runs_and_public_files_give_the_same_intervals(tmp_path, censafe: CommandLine, run_1940):
    own, files = run_1940, tmp_path / "files"
    choice = ("--intervals", "--simulations", "1", "--seed", "7")
    censafe("estimate", own, *choice)
    public = ("topdown", "e2e-1940", files, "--measurements", own / "measurements")
    censafe("estimate", *public, *choice, ends=0)
    for name in FILES:
        assert (own / name).read_bytes() == (files / name).read_bytes()
    verify_outputs(files, read_manifest(files / "manifest.json"))
    found = rows_of(own)
    kinds = {key[0]: 0 for key in found}
    assert list(kinds) == ["National", "State", "County", "Enumdist"]
    for (kind, geocode, query, cell), row in found.items():
        if kind == "State":  # estimates add up, and spreads do not
            parts = [
                found["County", code, query, cell]
                for code in {key[1] for key in found if key[0] == "County" and key[1].startswith(geocode)}
            ]
            np.testing.assert_allclose(sum(one["estimate"] for one in parts), row["estimate"], atol=1e-3)
            assert sum(one["published"] for one in parts) == row["published"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--query", "total"), "--query belongs to --intervals"),
        (("--simulations", "3"), "--simulations belongs to --intervals"),
        (("--confidence", "0.9", "--confidence", "0.95"), "more than once belongs to --intervals"),
        (("--intervals", "--query", "nothing"), "--query nothing: no such query"),
        (("--intervals", "--confidence", "0.8"), "confidence 0.9 or 0.95"),
    ],
)
def test_what_is_refused_leaves_the_run_as_it_is(censafe: CommandLine, run_1940, options, words):
    before = json.loads((run_1940 / "manifest.json").read_text())
    found = censafe("estimate", run_1940, *options)
    assert found.code in (1, 2)
    assert words in found.err
    assert json.loads((run_1940 / "manifest.json").read_text()) == before
    verify_outputs(run_1940, read_manifest(run_1940 / "manifest.json"))


def test_a_run_that_kept_no_answers_and_other_products_have_no_intervals(
    tmp_path, censafe: CommandLine, runs: Runs, districts
):
    lazy = runs("topdown", "e2e-1940", districts, "--test-key", 3, "--set", "noisy_measurements=lazy")
    censafe("estimate", lazy, "--intervals", ends=2, says="stored none, so there is nothing to estimate from")
    other = censafe("estimate", "phsafe", tmp_path / "new", "--measurements", tmp_path, "--intervals")
    assert (other.code, "--intervals belongs to topdown" in other.err) == (2, True)


def test_one_level_of_confidence_and_no_further_runs(censafe: CommandLine, run_1940):
    choice = ("--intervals", "--simulations", "0", "--confidence", "0.95", "--query", "total")
    censafe("estimate", run_1940, *choice, ends=0)
    names = pq.read_schema(run_1940 / "intervals.parquet").names
    assert [name for name in names if name.endswith(("90", "95"))] == ["lo95", "hi95"]
    assert not [name for name in names if name.startswith("published_")]


# TopDown with the answers below every geounit, through the same steps as without them.


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
