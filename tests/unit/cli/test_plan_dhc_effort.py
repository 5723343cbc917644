"""What ``plan`` says of the time, memory and answers of the DHC, beside a run of it."""

from __future__ import annotations

import json

import pytest

import censafe
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.effort import effort
from censafe.products.topdown.plan import workloads

SETTINGS = {"root": "State", "measure": "persons"}


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    """Of a small run, every level of persons with its geounits and the answers that were drawn."""
    folder = tmp_path_factory.mktemp("dhc-effort")
    censafe.synthesize(folder / "data", persons=6_000, states=["50"], layout="dhc")
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    censafe.release(chosen, folder / "data", folder / "out", test_key=1)
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    return manifest["post_processing"]["levels_persons"]


def test_stored_answers_are_those_of_every_geounit(levels: list[dict[str, int]]) -> None:
    config = load_config("dhc-us", SETTINGS)
    blocks = levels[-1]["geounits"]
    planned = effort(config, blocks)
    assert planned is not None
    (of_geounit,) = {load.answers for load in workloads(config)}
    assert of_geounit == 1_903_289
    assert planned.answers["persons_Block"] == blocks * of_geounit
    assert planned.stored_gib == 8 * sum(planned.answers.values()) / 2**30
    whole = sum(level["geounits"] for level in levels) * of_geounit
    assert (
        2 / 3 < sum(planned.answers.values()) / whole < 3 / 2
    )  # levels between are in proportion to those of larger states


def test_drawn_answers_are_of_the_stated_size(levels: list[dict[str, int]]) -> None:
    drawn = sum(level["answers_drawn"] for level in levels)
    both = effort(load_config("dhc-us", {"root": "State"}), levels[-1]["geounits"])
    assert both is not None
    assert both.drawn is not None
    assert 0.2 < drawn / both.drawn < 5  # persons alone, of a small state
    assert drawn < sum(both.answers.values()) / 100


def test_the_nation_has_a_time_and_a_memory() -> None:
    nation = effort(load_config("dhc-us"), None)
    assert nation is not None
    assert nation.size == 8_132_968
    assert sum(nation.answers.values()) > 2.3e13  # noisy answers of the production, as published
    assert effort(load_config("e2e-1940"), None) is None
