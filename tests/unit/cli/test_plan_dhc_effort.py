"""What ``plan`` says of the time, memory and answers of the DHC, beside a run of it."""

import json
from pathlib import Path
from typing import Any

import pytest

import censafe
from censafe.errors import ConfigError, DataError, UsageError
from censafe.planning.prices.extras import EstimatedTables
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.planner import effort

SETTINGS = {"root": "State", "measure": "persons"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records and a small run of them."""
    folder = tmp_path_factory.mktemp("dhc-effort")
    censafe.synthesize(folder / "data", persons=6_000, states=["50"], layout="dhc")
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    censafe.release(chosen, folder / "data", folder / "out", test_key=1)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    """What a small run says of its post-processing."""
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    return manifest["post_processing"]


@pytest.fixture(scope="module")
def levels(results: dict[str, Any]) -> list[dict[str, int]]:
    """Every level of persons with its geounits and the answers that were drawn."""
    return results["levels_persons"]


@pytest.mark.long
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


def test_linear_estimates_read_no_more_answers_than_planned(
    results: dict[str, Any], levels: list[dict[str, int]]
) -> None:
    """Of the geounits above the block groups, and none that is the only child of its parent."""
    read = results["table_estimates"]["answers"]
    planned = effort(load_config("dhc-us", SETTINGS), levels[-1]["geounits"])
    assert planned is not None
    assert planned.linear is not None
    assert planned.linear.tables == ("P1", "P5", "P12")
    assert planned.linear.below == 1_903_289
    whole = sum(level["geounits"] for level in levels[:-2]) * planned.linear.below
    assert 0 < sum(read.values()) <= whole
    assert planned.linear.answers["persons_State"] == 1_903_289
    assert (
        1_903_289 / 4 < read["persons_State"] < 1_364_757
    )  # those that can hold anyone, less absent kinds of group quarters
    assert results["table_estimates"]["geounits"]["persons_State"] == 1
    assert set(planned.linear.answers) == {
        f"persons_{level}" for level in ("State", "County", "Prim", "Tract_Subset_Group", "Tract_Subset")
    }
    assert round(planned.linear.seconds, 3) == 0.072  # 4.2 ns an answer, 9 geounits


def test_with_the_data_exactly_what_a_run_draws_is_planned(folder: Path, results: dict[str, Any]) -> None:
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    done = results["table_estimates"]
    effort = json.loads(censafe.plan(chosen, data=folder / "data").to_json())["effort"]
    planned = effort["linear_estimates"]
    assert planned["from_data"]
    assert planned["answers"] == done["answers"]
    assert planned["answers_drawn"] == sum(done["answers"].values())
    assert planned["geounits"] == sum(done["geounits"].values())
    assert planned["estimates"] == done["rows"]
    assert planned["left_out"] == done.get("left_out", {})
    assert effort["size"] == results["levels_persons"][-1]["geounits"]
    written = (folder / "out" / "table_estimates.parquet").stat().st_size
    assert 0.8 < planned["file_bytes"] / written < 1.2


def test_other_tables_and_areas_are_planned_without_data() -> None:
    config = load_config("dhc-us")
    usual, named = effort(config, 1_000_000), effort(config, 1_000_000, EstimatedTables(("P12",)))
    assert usual is not None
    assert usual.linear is not None
    assert named is not None
    assert named.linear is not None
    assert named.linear.tables == ("P12",)
    assert set(named.linear.answers) == {name for name in usual.linear.answers if name.startswith("persons")}
    assert named.linear.drawn == 1_903_289 * named.linear.geounits
    assert named.linear.estimates == 49 * sum(round(n * 1_000_000 / 8_132_968) for n in (51, 3_143))
    none = effort(config, 1_000_000, EstimatedTables(("none",)))
    assert none is not None
    assert none.linear is None


def test_a_list_adds_the_block_groups_and_blocks_that_it_divides(tmp_path: Path) -> None:
    listed = tmp_path / "districts.csv"
    groups = ["440010001011", "440010001012", "440010001013"]
    rows = [
        f"{group}{block:04d},{group[-1] if block < 3 or group == groups[0] else 9}"
        for group in groups
        for block in range(5)
    ]
    listed.write_text("geocode,district\n" + "\n".join(rows) + "\n", encoding="utf-8")
    config = load_config("dhc-us", SETTINGS)
    without, planned = effort(config, 10_000), effort(config, 10_000, EstimatedTables(areas=listed))
    assert without is not None
    assert without.linear is not None
    assert planned is not None
    assert planned.linear is not None
    assert planned.linear.lower_geounits == 2 + 10
    assert planned.linear.drawn - without.linear.drawn == 12 * 1_903_289
    cells = without.linear.estimates // sum(max(1, round(n * 10_000 / 8_132_968)) for n in (51, 3_143))
    assert planned.linear.estimates - without.linear.estimates == 4 * cells  # districts 1, 2, 3 and 9


def test_what_cannot_be_planned_is_refused(tmp_path: Path) -> None:
    chosen = censafe.configuration("topdown", "dhc-us", **SETTINGS)
    with pytest.raises(UsageError, match=r"from State has is not known; fix: give the data, or `size`"):
        censafe.plan(chosen, tables=["P12"])
    with pytest.raises(ConfigError, match="P99"):
        censafe.plan(chosen, tables=["P99"], size=100)
    with pytest.raises(UsageError, match="phsafe publishes its tables as they are measured"):
        censafe.plan(censafe.configuration("phsafe", "sdhc-us"), tables=["PH3"])
    with pytest.raises(DataError, match=str(tmp_path)):
        censafe.plan(chosen, data=tmp_path)


def test_linear_estimates_of_other_runs_are_not_planned() -> None:
    for name, settings in (("pl94-us", {}), ("dhc-us", {"noisy_measurements": "stored"})):
        planned = effort(load_config(name, settings), None)
        assert planned is not None
        assert planned.linear is None


def test_the_nation_has_a_time_and_a_memory() -> None:
    nation = effort(load_config("dhc-us"), None)
    assert nation is not None
    assert nation.size == 8_132_968
    assert sum(nation.answers.values()) > 2.3e13  # noisy answers of the production, as published
    assert effort(load_config("e2e-1940"), None) is None
