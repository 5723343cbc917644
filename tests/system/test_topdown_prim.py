"""Whole TopDown runs on the spine of the DHC: what is published, what is said, and what comes back."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.geography.spines.prim import GUESSED, NO_DISTRICTS, PRIM_LEVELS
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import PL94_PR, PL94_US
from censafe.population.blocks.layout import BlockData, pl94_layout
from censafe.population.blocks.source import read_blocks
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.commands import CommandLine
from support.histograms import dense
from support.prim_config import write_prim_config
from support.topdown_areas import write_pl94
from support.topdown_inputs import histograms_of_run

PERSONS = 2016


def read(folder: Path, rules: object = PL94_US) -> BlockData:
    return read_blocks(folder, pl94_layout(shipped_schemas()["pl94-persons"].schema, rules))  # type: ignore[arg-type]


def codes_of(blocks: BlockData) -> dict[str, np.ndarray]:
    return {level.name: level.geounits for level in blocks.spine.levels}


def run(censafe: CommandLine, config: Path, data: Path, out: Path, *more: str) -> Path:
    words = [word for setting in more for word in ("--set", setting)]
    censafe("run", "topdown", config, data, out, *words, "--test-key", 1, "--quiet", ends=0)
    return out


def test_standard_levels_are_published_and_the_spine_is_stated(censafe: CommandLine, tmp_path: Path) -> None:
    data, config = write_pl94(tmp_path / "states"), write_prim_config(tmp_path / "prim.toml")
    out = run(censafe, config, data, tmp_path / "out")
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
    out = run(censafe, config, data, tmp_path / "out", *huge)
    for part, truth, cells in (("persons", blocks.persons, PERSONS), ("units", blocks.units, 2)):
        found = histograms_of_run(out, part, codes_of(blocks))["Block"]
        assert np.array_equal(dense(truth, cells), dense(found, cells))
    document = json.loads((out / "manifest.json").read_text())["post_processing"]["spine"]
    assert document["notes"][0] == "Prims are those of the crosswalk primgeo_crosswalk.csv."
    shares = {Fraction(kind["share"]) for kind in document["levels"][-1]["shares"]["persons"]}
    assert min(shares) == 0
