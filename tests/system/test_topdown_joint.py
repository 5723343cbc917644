"""Persons and units kept possible together, through all ways that lead to estimates."""

import hashlib
import json
import signal
import textwrap
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.publication.microdata.histograms import read_histograms
from support.apart import run_apart
from support.commands import CommandLine
from support.histograms import dense
from support.runs import Runs
from support.shared import shared_data
from support.topdown_joint import write_joint_config, write_joint_data
from support.topdown_outputs import histogram_sums
from support.topdown_shared import (
    sixteen_counts,
    tract_counts,
    write_illinois,
    write_sixteen,
    write_vermont,
)

JOINT = ("--set", "joint=true")
KEY = ("--test-key", 3)
BROKEN = ("occupied_above_persons", "persons_without_occupied", "occupied_without_persons")
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
# Where the process dies, as a patch that is in place before the command starts.
STAGES = {
    "while persons are estimated": f"""
        estimate = descending.Descent.estimate
        def second(self, part, objective):
            {KILL} if part == "persons_County" else None
            return estimate(self, part, objective)
        descending.Descent.estimate = second
    """,
    "after the units": f"""
        written = account.MeasurementStore.write
        def once(self, part, measured, files):
            written(self, part, measured, files)
            {KILL} if part.name == "units_Block" else None
        account.MeasurementStore.write = once
    """,
}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A configuration and records, with which noise makes some blocks impossible."""
    folder = tmp_path_factory.mktemp("few")
    return write_joint_config(folder / "few.toml", "1/20"), write_joint_data(folder / "data", 8)


def published(out: Path) -> dict[str, str]:
    """SHA-256 of the histograms that a run published."""
    files = sorted((out / "histograms").glob("*.parquet"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def post(out: Path) -> dict[str, object]:
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))["post_processing"]


def run(runs: Runs, few: tuple[Path, Path], out: Path, *more: object) -> dict[str, str]:
    return published(runs.copy(out, "topdown", *few, *KEY, *more))


def test_every_way_gives_the_same_possible_blocks(
    censafe: CommandLine, runs: Runs, few: tuple[Path, Path], tmp_path: Path
) -> None:
    joint = run(runs, few, tmp_path / "joint", *JOINT, "--workers", 1)
    apart = run(runs, few, tmp_path / "apart")
    assert sum(post(tmp_path / "apart")["blocks"][name] for name in BROKEN) > 0
    assert [post(tmp_path / "joint")["blocks"][name] for name in BROKEN] == [0, 0, 0]
    differing = {name for name in joint if joint[name] != apart[name]}
    assert differing == {"persons_County.parquet", "persons_Block.parquet"}
    assert run(runs, few, tmp_path / "lazy", *JOINT, "--set", "noisy_measurements=lazy") == joint
    measurements = tmp_path / "apart" / "measurements"
    files = (
        "estimate", "topdown", few[0], tmp_path / "files", "--measurements", measurements, *JOINT, "--quiet",
    )  # fmt: skip
    censafe(*files, ends=0)
    assert published(tmp_path / "files") == joint
    censafe("estimate", tmp_path / "apart", *JOINT, "--quiet", ends=0)
    assert published(tmp_path / "apart") == joint
    assert post(tmp_path / "apart")["joint"] is True
    censafe("estimate", tmp_path / "joint", "--set", "joint=false", "--quiet", ends=0)
    assert published(tmp_path / "joint") == apart


def test_persons_first_stay_as_they_are_apart(
    censafe: CommandLine, runs: Runs, few: tuple[Path, Path], tmp_path: Path
) -> None:
    first = (*JOINT, "--set", "joint_first=persons")
    apart, joint = run(runs, few, tmp_path / "apart"), run(runs, few, tmp_path / "joint", *first)
    differing = {name for name in joint if joint[name] != apart[name]}
    assert differing == {"units_State.parquet", "units_County.parquet", "units_Block.parquet"}
    assert [post(tmp_path / "joint")["blocks"][name] for name in BROKEN] == [0, 0, 0]
    assert run(runs, few, tmp_path / "lazy", *first, "--set", "noisy_measurements=lazy") == joint
    measurements = tmp_path / "apart" / "measurements"
    done = censafe(
        "estimate", "topdown", few[0], tmp_path / "files", "--measurements", measurements, *first, "--quiet"
    )
    assert done.code == 0, done.err
    assert published(tmp_path / "files") == joint


def test_files_beside_the_measurements_state_published_counts_alone(
    runs: Runs, few: tuple[Path, Path], tmp_path: Path
) -> None:
    for name, more in (("joint", JOINT), ("apart", ())):
        run(runs, few, tmp_path / name, *more)
    remaining = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in sorted((tmp_path / name / "measurements").rglob("*"))
            if path.is_file() and path.name != "configuration.toml"
        }
        for name in ("joint", "apart")
    ]
    assert len(remaining[0]) > 10
    assert remaining[0] == remaining[1]


def test_the_certificate_says_so_and_the_plan_costs_the_same(
    censafe: CommandLine, runs: Runs, few: tuple[Path, Path], tmp_path: Path
) -> None:
    run(runs, few, tmp_path / "out", *JOINT, "--set", "joint_max_household_size=5")
    text = (tmp_path / "out" / "certificate.json").read_text(encoding="utf-8")
    assert "Persons and units were made consistent" in text
    assert post(tmp_path / "out")["joint_max_household_size"] == 5
    plans = [censafe("plan", "topdown", few[0], "--json", *more).out for more in ((), JOINT)]
    costs = [json.loads(plan)["rows"] for plan in plans]
    assert costs[0] == costs[1]
    homes = histogram_sums(tmp_path / "out" / "histograms" / "persons_Block.parquet", 8)
    units = histogram_sums(tmp_path / "out" / "histograms" / "units_Block.parquet", 8)
    for code, cells in homes.items():
        assert cells.get(0, 0) + cells.get(1, 0) <= 5 * units.get(code, {}).get(1, 0)


@pytest.mark.parametrize("information", ["level", "lower"])
def test_levels_add_up_and_state_totals_stay_with_either_information(
    runs: Runs, few: tuple[Path, Path], tmp_path: Path, information: str
) -> None:
    run(runs, few, tmp_path / "out", *JOINT, "--set", f"information={information}")
    run(runs, few, tmp_path / "apart", "--set", f"information={information}")
    folder = tmp_path / "out" / "histograms"
    for histogram in ("persons", "units"):
        above = histogram_sums(folder / f"{histogram}_State.parquet", 2)
        for level in ("County", "Block"):
            assert histogram_sums(folder / f"{histogram}_{level}.parquet", 2) == above
        own = histogram_sums(tmp_path / "apart" / "histograms" / f"{histogram}_State.parquet", 2)
        assert sum(own["44"].values()) == sum(above["44"].values())
    assert [post(tmp_path / "out")["blocks"][name] for name in BROKEN] == [0, 0, 0]


@pytest.mark.parametrize(
    ("stage", "noise"),
    [
        ("while persons are estimated", "stored"),
        pytest.param("while persons are estimated", "lazy", marks=pytest.mark.long),
        ("after the units", "lazy"),
    ],
)
def test_a_killed_run_goes_on_with_the_same_units(
    censafe: CommandLine, runs: Runs, few: tuple[Path, Path], tmp_path: Path, stage: str, noise: str
) -> None:
    choice = (*JOINT, "--set", f"noisy_measurements={noise}", "--quiet")
    out = tmp_path / "out"
    script = (
        "import os, signal\nfrom censafe.cli import main\nfrom censafe.products.run import account\n"
        "from censafe.estimation.topdown.levels import descent as descending\n"
        + textwrap.dedent(STAGES[stage])
        + "\nmain()\n"
    )
    died = run_apart(script, "run", "topdown", *few, out, *KEY, *choice)
    assert died.code == -signal.SIGKILL, died.err
    assert any((out / "measurements").iterdir())
    censafe("run", "topdown", *few, out, *KEY, *choice, ends=0)
    assert published(out) == run(runs, few, tmp_path / "whole", *choice)


def test_a_household_size_that_cannot_be_stops_before_anything_is_measured(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> None:
    data = write_joint_data(tmp_path / "data", 4, crowded=40, empty=0)
    keys = (*JOINT, "--set", "joint_max_household_size=1")
    done = censafe("run", "topdown", few[0], data, tmp_path / "out", "--quiet", *KEY, *keys, ends=4)
    assert "joint_max_household_size: with 1 persons in every housing unit" in done.err
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_persons_alone_are_not_kept_together_with_units(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> None:
    done = censafe("run", "topdown", *few, tmp_path / "out", *KEY, *JOINT, "--set", "measure=persons", ends=1)
    assert "joint: needs persons" in done.err


# Real counts of blocks and tracts, under schemas and areas of a user, from the command line to the published histograms.


def shared_run(censafe: CommandLine, name: str, data: Path, out: Path, *more: str) -> None:
    censafe("run", "topdown", name, data, out, "--test-key", 1, "--quiet", *more, ends=0)


def published_digests(out: Path, histogram: str, level: str, geounits: np.ndarray, cells: int) -> np.ndarray:
    """Counts of a level, geounits by cells."""
    path = out / "histograms" / f"{histogram}_{level}.parquet"
    return dense(read_histograms(path, geounits), cells)


def sums_by_prefix(geounits: np.ndarray, counts: np.ndarray, digits: int) -> tuple[np.ndarray, np.ndarray]:
    codes, place = np.unique([code[:digits] for code in geounits], return_inverse=True)
    sums = np.zeros((len(codes), counts.shape[1]), np.int64)
    np.add.at(sums, place, counts)
    return codes, sums


@pytest.mark.parametrize(("table", "persons"), [("hi2020_blocks", 1_455_271), ("ri2010_blocks", 1_052_567)])
def test_blocks_with_sixteen_counts(censafe: CommandLine, tmp_path: Path, table: str, persons: int) -> None:
    data, out = write_sixteen(tmp_path / "data", table), tmp_path / "out"
    shared_run(censafe, "blocks-16", data, out)
    short, truth = sixteen_counts(table)
    order = np.argsort(short)
    geounits, truth = np.array([code[:12] + code[11:] for code in short[order]]), truth[order]
    blocks = published_digests(out, "persons", "Block", geounits, 16)
    assert blocks.sum() == truth.sum() == persons
    assert not np.array_equal(blocks, truth)
    for level, digits in (("State", 2), ("County", 5), ("Tract", 11), ("Block_Group", 12)):
        codes, sums = sums_by_prefix(geounits, blocks, digits)
        assert np.array_equal(sums, published_digests(out, "persons", level, codes, 16))
        exact = sums_by_prefix(geounits, truth, digits)[1]
        if level != "State":  # a county is off by a few persons, not by its number of blocks
            assert np.abs(sums.sum(axis=1) - exact.sum(axis=1)).mean() < 12
    assert not (out / "microdata").exists()
    levels = json.loads((out / "manifest.json").read_text())["post_processing"]["levels_persons"]
    assert [level["level"] for level in levels] == ["State", "County", "Tract", "Block_Group", "Block"]


def test_housing_units_without_persons(censafe: CommandLine, tmp_path: Path) -> None:
    data, out = write_vermont(tmp_path / "data"), tmp_path / "out"
    shared_run(censafe, "pl94-us", data, out, "--set", "measure=units", "--set", "root=State")
    table = pq.read_table(shared_data("population/vt2010_blocks.parquet")).to_pydict()
    order = np.argsort(table["geoid"])
    geounits = np.array([code[:12] + code[11:] for code in np.array(table["geoid"])[order]])
    blocks = published_digests(out, "units", "Block", geounits, 2)
    units, occupied = np.array(table["units"])[order], np.array(table["occupied"])[order]
    assert np.array_equal(blocks.sum(axis=1), units)
    assert 0 < np.abs(blocks[:, 1] - occupied).sum() < 0.2 * occupied.sum()
    assert abs(int(blocks[:, 1].sum()) - 256_442) < 200
    rows = (out / "microdata" / "units.txt").read_text().splitlines()
    assert len(rows) == 1 + 322_539


@pytest.mark.long
def test_tracts_as_the_lowest_areas(censafe: CommandLine, tmp_path: Path) -> None:
    data, out = write_illinois(tmp_path / "data"), tmp_path / "out"
    shared_run(censafe, "pl94-tracts", data, out)
    tracts, truth, quarters = tract_counts()
    order = np.argsort(tracts["geoid"])
    geounits = np.array(tracts["geoid"])[order]
    held = published_digests(out, "persons", "Tract", geounits, 2016).reshape(-1, 8, 2, 126)
    assert held.sum() == 12_812_508
    assert np.abs(held.sum(axis=(1, 2, 3)) - truth[order].sum(axis=(1, 2))).mean() < 6
    assert ((held.sum(axis=(2, 3))[:, 1:] > 0) == (quarters[order, 1:] > 0)).all()
    units = published_digests(out, "units", "Tract", geounits, 2)
    assert np.array_equal(units.sum(axis=1), np.array(tracts["units"])[order])
    assert not (out / "microdata").exists()
    items = pq.read_table(out / "tables" / "Tract.parquet", columns=["geocode", "P1_001", "P5_001"])
    assert items["geocode"].to_pylist() == geounits.tolist()
    assert items["P1_001"].to_pylist() == held.sum(axis=(1, 2, 3)).tolist()
    assert items["P5_001"].to_pylist() == held[:, 1:].sum(axis=(1, 2, 3)).tolist()
