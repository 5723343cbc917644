"""Synthetic block histograms: exact sizes, files that the reader accepts, and shares near the published ones."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from censafe.cli.synth import command
from censafe.errors import UsageError
from censafe.geography.spines.tree import E2E_1940, PL94_PR, PL94_US
from censafe.population.synthetic import areas
from censafe.population.synthetic import blocks as histograms
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.population.synthetic.shipped import marginals
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.histograms import E2E, PL94, dense

PERSONS = 643_077


@pytest.fixture(scope="module")
def vermont(tmp_path_factory):
    out = tmp_path_factory.mktemp("synthetic") / "vermont"
    report = synthesize_histograms(out, persons=PERSONS, states=("50",), seed=7)
    return report, read_blocks(out, pl94_layout(PL94, PL94_PR))


def _digest(folder: Path) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.parquet"))]


def test_report_and_files_agree(vermont):
    report, data = vermont
    assert [path.name for path in report.files] == ["histogram.parquet", "units.parquet"]
    assert report.persons == int(data.persons.count.sum()) == PERSONS
    assert report.blocks == data.spine.leaf.nodes
    assert report.housing_units == int(data.facilities[:, 0].sum())
    assert report.group_quarters == int(data.facilities[:, 1:].sum()) > 0
    assert [level.nodes for level in data.spine.levels[:2]] == [1, 14]


def test_shares_are_near_the_published_ones(vermont):
    published = marginals()["published"]
    _, data = vermont
    held = np.zeros(PL94.cells)
    np.add.at(held, data.persons.cell, data.persons.count)
    shares = held.reshape(PL94.shape) / held.sum()
    assert shares[:, 0].sum() == pytest.approx(published["age"]["under_18"], abs=0.015)
    assert 1 - shares[0].sum() == pytest.approx(published["group_quarters"]["person_share"], abs=0.01)
    assert shares[:, :, 0, 0].sum() == pytest.approx(0.89, abs=0.02)  # Vermont, White and not Hispanic
    assert data.units is not None
    vacant, occupied = dense(data.units, 2).sum(axis=0)
    assert vacant / (vacant + occupied) == pytest.approx(published["vacancy"]["vacant_share"], abs=0.02)
    households = held.reshape(PL94.shape)[0].sum() / occupied
    assert households == pytest.approx(published["household_size"]["average"], abs=0.1)


def test_blocks_are_of_the_size_and_emptiness_of_the_nation(vermont):
    _, data = vermont
    empty = (np.diff(data.persons.node_ptr) == 0).mean()
    assert empty == pytest.approx(0.286, abs=0.02)
    assert PERSONS / data.spine.leaf.nodes == pytest.approx(41, abs=3)
    assert data.spine.levels[-2].nodes == pytest.approx(PERSONS / 1330, rel=0.05)


def test_the_same_seed_gives_the_same_files_and_another_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        synthesize_histograms(tmp_path / name, persons=5_000, states=("44", "72"), seed=seed)
    assert _digest(tmp_path / "a") == _digest(tmp_path / "b") != _digest(tmp_path / "c")


@pytest.mark.parametrize("layout", ["pl94", "e2e"])
def test_parts_and_chunks_change_nothing_but_the_files(tmp_path, monkeypatch, layout):
    synthesize_histograms(tmp_path / "one", persons=40_000, states=("44",), seed=1, layout=layout)
    monkeypatch.setattr(histograms, "BLOCK_PART_PERSONS", 9_000)
    monkeypatch.setattr(histograms, "CHUNK_PERSONS", 4_500)
    report = synthesize_histograms(tmp_path / "many", persons=40_000, states=("44",), seed=1, layout=layout)
    assert len(report.files) > 4
    for table in ("histogram", "units"):
        one = pq.read_table(tmp_path / "one" / f"{table}.parquet").to_pydict()
        many = [pq.read_table(path).to_pydict() for path in sorted((tmp_path / "many" / table).iterdir())]
        assert one == {name: [value for part in many for value in part[name]] for name in one}


def test_a_fraction_of_the_nation_has_all_its_states(tmp_path):
    report = synthesize_histograms(tmp_path / "us", persons=33_000, states=None, seed=0)
    data = read_blocks(tmp_path / "us", pl94_layout(PL94, PL94_US))
    assert report.states == data.spine.levels[1].nodes == 51


def test_districts_of_1940_are_accepted_by_the_reader(tmp_path, monkeypatch):
    report = synthesize_histograms(tmp_path / "e2e", persons=200_000, states=("44",), seed=0, layout="e2e")
    data = read_blocks(tmp_path / "e2e", e2e_layout(E2E, E2E_1940))
    assert int(data.persons.count.sum()) == 200_000
    assert report.housing_units == int(data.facilities[:, [0, 8]].sum())
    assert data.spine.levels[2].nodes == 5
    assert 200_000 / data.spine.leaf.nodes == pytest.approx(1_000, rel=0.2)
    monkeypatch.setattr(areas, "_MOST_DISTRICTS", 9)
    with pytest.raises(UsageError, match="more than 9 enumeration districts"):
        synthesize_histograms(tmp_path / "x", persons=200_000, states=("44",), seed=0, layout="e2e")
    assert not (tmp_path / "x").exists()


def test_command_writes_histograms_and_refuses_text(tmp_path):
    done = CliRunner().invoke(
        command, [str(tmp_path / "h"), "--persons", "2000", "--states", "50", "--layout", "pl94", "--quiet"]
    )
    assert done.exit_code == 0, done.output
    assert "2,000 persons in" in done.output
    assert sorted(path.name for path in (tmp_path / "h").iterdir()) == [
        "histogram.parquet",
        "synthetic.json",
        "units.parquet",
    ]
    refused = CliRunner().invoke(
        command,
        [str(tmp_path / "t"), "--persons", "20", "--layout", "e2e-1940", "--format", "csv", "--quiet"],
    )
    assert isinstance(refused.exception, UsageError)
