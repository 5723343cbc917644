"""Whole TopDown runs on parted and optimized spines: what is exact, where it is published, what it costs, what is refused."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.geography.spines.prim import GUESSED, NO_DISTRICTS, PRIM_LEVELS
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import E2E_1940, PL94_PR, PL94_US
from censafe.population.blocks.layout import BlockData
from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from censafe.products.topdown import measuring, recipe
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.plan import plan_release
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.commands import CommandLine
from support.histograms import dense, write_table
from support.ledgers import stated
from support.prim_config import write_prim_config
from support.topdown_areas import write_pl94
from support.topdown_inputs import CELLS_1940, histograms_of_run, write_1940

PERSONS = 2016


@pytest.fixture
def states(tmp_path: Path) -> Path:
    return write_pl94(tmp_path / "states")


def read(folder: Path, rules: object = PL94_US) -> BlockData:
    return read_blocks(folder, pl94_layout(shipped_schemas()["pl94-persons"].schema, rules))  # type: ignore[arg-type]


def codes_of(blocks: BlockData) -> dict[str, np.ndarray]:
    return {level.name: level.geounits for level in blocks.spine.levels}


def run(censafe: CommandLine, data: Path, out: Path, **settings: object) -> Path:
    words = [
        word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value}")
    ]
    censafe("run", "topdown", "pl94-us", data, out, *words, "--test-key", 1, "--quiet", ends=0)
    return out


@pytest.mark.parametrize("spine", ["aian", "optimized"])
def test_standard_levels_are_published_and_what_is_declared_is_exact(
    censafe: CommandLine, states: Path, tmp_path: Path, spine: str
) -> None:
    out = run(censafe, states, tmp_path / "out", spine=spine)
    truth = read(states)
    found = histograms_of_run(out, "persons", codes_of(truth))
    for level, histograms in zip(
        truth.spine.levels, sum_histograms(truth.spine, found["Block"], PERSONS), strict=True
    ):
        assert np.array_equal(dense(found[level.name], PERSONS), dense(histograms, PERSONS))
    exact = dense(sum_histograms(truth.spine, truth.persons, PERSONS)[1], PERSONS).sum(axis=1)
    assert dense(found["State"], PERSONS).sum(axis=1).tolist() == exact.tolist()
    kinds = dense(found["Block"], PERSONS).reshape(truth.spine.leaf.nodes, 8, -1).sum(axis=2)
    assert (kinds[:, 1:] >= truth.facilities[:, 1:]).all()
    assert (kinds[truth.facilities == 0] == 0).all()
    units = histograms_of_run(out, "units", codes_of(truth))["Block"]
    assert dense(units, 2).sum(axis=1).tolist() == truth.facilities[:, 0].tolist()
    document = json.loads((out / "manifest.json").read_text())["post_processing"]["spine"]
    assert document["name"] == spine
    assert [level["geounits"] for level in document["levels"]][:2] == [1, 4]
    sums = [sum(kind["geounits"] for kind in level["shares"]["persons"]) for level in document["levels"]]
    assert sums == [level["geounits"] for level in document["levels"]]
    remarks = json.loads((out / "certificate.json").read_text())["estimated"]["remarks"]
    assert any(f"used the spine {spine}" in text for text in remarks)
    assert any("add up to the total exactly" in text for text in remarks) == (spine == "optimized")


@pytest.mark.parametrize("data_states", [(4, 44), (4,)], ids=["nation", "state"])
def test_without_noise_the_input_comes_back_from_the_optimized_spine(
    censafe: CommandLine, tmp_path: Path, data_states: tuple[int, ...]
) -> None:
    data = write_pl94(tmp_path / "data", data_states)
    root, rules = ("US", PL94_US) if len(data_states) > 1 else ("State", PL94_PR)
    huge = {"rho__persons": 10**9, "rho__units": 10**9, "noisy_measurements": "lazy"}
    out = run(censafe, data, tmp_path / "out", spine="optimized", root=root, **huge)
    truth = read(data, rules)
    found = histograms_of_run(out, "persons", codes_of(truth))["Block"]
    assert np.array_equal(dense(truth.persons, PERSONS), dense(found, PERSONS))
    units = histograms_of_run(out, "units", codes_of(truth))["Block"]
    assert np.array_equal(dense(truth.units, 2), dense(units, 2))


def test_stored_and_lazy_runs_publish_the_same_microdata_with_budgets_by_geounit(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    folders = [
        run(censafe, states, tmp_path / how, spine="optimized", measure="persons", noisy_measurements=how)
        for how in ("stored", "lazy")
    ]
    one, two = ((out / "microdata" / "persons.txt").read_bytes() for out in folders)
    assert one == two


def test_split_states_of_pure_dp_keep_their_totals(censafe: CommandLine, tmp_path: Path) -> None:
    data, out = write_1940(tmp_path / "districts"), tmp_path / "out"
    more = ("--set", "bypass=true", "--set", "bypass_cutoff=60", "--test-key", 1, "--quiet")
    censafe("run", "topdown", "e2e-1940", data, out, *more, ends=0)
    truth = read_blocks(data, e2e_layout(shipped_schemas()["e2e-1940"].schema, E2E_1940))
    found = histograms_of_run(out, "persons", codes_of(truth))
    exact = dense(sum_histograms(truth.spine, truth.persons, CELLS_1940)[1], CELLS_1940).sum(axis=1)
    assert dense(found["State"], CELLS_1940).sum(axis=1).tolist() == exact.tolist()
    document = json.loads((out / "manifest.json").read_text())["post_processing"]["spine"]["levels"]
    assert [level["standard_geounits"] for level in document] == [1, 2, 6, 48]
    assert document[1]["geounits"] > 2
    assert dense(found["Enumdist"], CELLS_1940).sum() == exact.sum()


def test_all_parts_are_reserved_first_and_stay_charged_after_a_stop(
    censafe: CommandLine, states: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"spine": "optimized", "measure": "persons"}
    plan = plan_release(load_config("pl94-us", config))
    assert plan.joint
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    measured = measuring.measure_stored

    def stop(load: object, *more: object) -> object:
        if load.part.name == "persons_Tract":  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return measured(load, *more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(measuring, "measure_stored", stop)
        with pytest.raises(KeyboardInterrupt):
            recipe.run("pl94-us", states, out, config, recipe.ReadOptions(), recipe.RunOptions(ledger=ledger))
    events = [entry.event for entry in read_contents(ledger).entries]
    assert events == ["open", *["reserve"] * 6, *["commit"] * 3]
    assert sum((row.cost for row in verify(ledger).rows), Fraction(0)) == plan.total
    words = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
    censafe("run", "topdown", "pl94-us", states, out, *words, "--ledger", ledger, "--quiet", ends=0)
    events = [entry.event for entry in read_contents(ledger).entries]
    assert events == ["open", *["reserve"] * 6, *["commit"] * 3, "open", *["commit"] * 3, "close"]
    assert stated(ledger) == [plan.total]


def test_spines_that_the_input_or_the_configuration_cannot_have_are_refused(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    def refused(*words: str, data: Path = states, product: str = "pl94-us") -> str:
        settings = [word for one in words for word in ("--set", one)]
        done = censafe("validate", "topdown", product, data, *settings, ends=1)
        return " ".join(done.err.split())

    bare = write_pl94(tmp_path / "bare", areas=False)
    assert "does not say in which American Indian area" in refused("spine=aian", data=bare)
    assert "aian needs the schemas" in refused("spine=aian", product="e2e-1940")
    assert "between parents" in refused("spine=aian", "histograms.persons.exact_totals=County")
    table = pq.read_table(states / "units.parquet").to_pydict()
    table["aiannhce"][3] = "4995"
    write_table(states / "units.parquet", table)
    assert "1 blocks have codes of no type of area, such as 4995" in refused("spine=optimized")


# Whole TopDown runs on the spine of the DHC: what is published, what is said, and what comes back.


def prim_run(censafe: CommandLine, config: Path, data: Path, out: Path, *more: str) -> Path:
    words = [word for setting in more for word in ("--set", setting)]
    censafe("run", "topdown", config, data, out, *words, "--test-key", 1, "--quiet", ends=0)
    return out


def test_standard_levels_are_published_and_the_spine_is_stated(censafe: CommandLine, tmp_path: Path) -> None:
    data, config = write_pl94(tmp_path / "states"), write_prim_config(tmp_path / "prim.toml")
    out = prim_run(censafe, config, data, tmp_path / "out")
    truth = read(data)
    found = histograms_of_run(out, "persons", codes_of(truth))
    sums = sum_histograms(truth.spine, found["Block"], PERSONS)
    for level, histograms in zip(truth.spine.levels, sums, strict=True):
        assert np.array_equal(dense(found[level.name], PERSONS), dense(histograms, PERSONS))
    exact = dense(sum_histograms(truth.spine, truth.persons, PERSONS)[1], PERSONS).sum(axis=1)
    assert dense(found["State"], PERSONS).sum(axis=1).tolist() == exact.tolist()
    document = json.loads((out / "manifest.json").read_text())["post_processing"]["spine"]
    assert [level["level"] for level in document["levels"]] == list(PRIM_LEVELS)
    assert document["notes"] == [GUESSED, NO_DISTRICTS]
    for level in document["levels"]:
        assert level["geounits"] == sum(kind["geounits"] for kind in level["shares"]["persons"])
    remarks = json.loads((out / "certificate.json").read_text())["estimated"]["remarks"]
    assert any("used the spine prim" in text for text in remarks)
    assert {GUESSED, NO_DISTRICTS} <= set(remarks)
    before = (out / "microdata" / "persons.txt").read_bytes()
    censafe("estimate", out, "--quiet", ends=0)
    assert before == (out / "microdata" / "persons.txt").read_bytes()


@pytest.mark.parametrize("root", ["US", "State"])
def test_without_noise_the_input_comes_back(censafe: CommandLine, tmp_path: Path, root: str) -> None:
    data = write_pl94(tmp_path / "data", (4, 44) if root == "US" else (72,))
    blocks = read(data, PL94_US if root == "US" else PL94_PR)
    numbers = np.random.default_rng(1).integers(1, 4, blocks.spine.leaf.nodes).tolist()
    lines = [f"{code},{n:05d}" for code, n in zip(blocks.spine.leaf.geounits.tolist(), numbers, strict=True)]
    (data / "primgeo_crosswalk.csv").write_text("\n".join(["block,prim", *lines]) + "\n")
    config = write_prim_config(tmp_path / "prim.toml")
    huge = ("rho.persons=1000000000", "rho.units=1000000000", "noisy_measurements=lazy", f"root={root}")
    out = prim_run(censafe, config, data, tmp_path / "out", *huge)
    for part, truth, cells in (("persons", blocks.persons, PERSONS), ("units", blocks.units, 2)):
        found = histograms_of_run(out, part, codes_of(blocks))["Block"]
        assert np.array_equal(dense(truth, cells), dense(found, cells))
    document = json.loads((out / "manifest.json").read_text())["post_processing"]["spine"]
    assert document["notes"][0] == "Prims are those of the crosswalk primgeo_crosswalk.csv."
    shares = {Fraction(kind["share"]) for kind in document["levels"][-1]["shares"]["persons"]}
    assert min(shares) == 0
