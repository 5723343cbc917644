"""Synthetic fixed-width files: the readers find in them the people of the other layouts."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from censafe.cli.synth import command
from censafe.errors import UsageError
from censafe.geography.spines.tree import E2E_1940, PL94_US
from censafe.population.blocks.ipums import read_ipums
from censafe.population.blocks.layout import e2e_layout, pl94_layout
from censafe.population.blocks.source import read_blocks
from censafe.population.synthetic import areas, fixed_width
from censafe.population.synthetic.fixed_width import synthesize_fixed
from support.histograms import E2E, PL94, dense
from support.same_population import write_histograms

PERSONS, STATES, SEED = 12_000, ("35", "44"), 5


def synthetic(folder: Path, layout: str, persons: int = PERSONS) -> Path:
    synthesize_fixed(folder, persons=persons, states=STATES, seed=SEED, layout=layout)  # type: ignore[arg-type]
    return folder


def test_edited_files_and_histograms_of_one_population_are_the_same_blocks(tmp_path: Path) -> None:
    layout = pl94_layout(PL94, PL94_US)
    histograms = write_histograms(tmp_path / "columns", persons=PERSONS, states=STATES, seed=SEED)
    expected = read_blocks(histograms, layout)
    actual = read_blocks(synthetic(tmp_path / "cef", "cef"), layout)
    assert expected.spine.leaf.geounits.tolist() == actual.spine.leaf.geounits.tolist()
    for one, other in ((expected.persons, actual.persons), (expected.units, actual.units)):
        assert one is not None
        assert other is not None
        for name in ("node_ptr", "cell", "count"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(expected.facilities, actual.facilities)
    assert actual.areas is not None
    assert len(set(actual.areas.place.tolist())) > 1


def test_an_extract_of_1940_holds_the_same_people(tmp_path: Path) -> None:
    data = read_blocks(synthetic(tmp_path / "ipums", "ipums-1940"), e2e_layout(E2E, E2E_1940))
    modern = read_blocks(synthetic(tmp_path / "cef", "cef"), pl94_layout(PL94, PL94_US))
    assert [level.nodes for level in data.spine.levels[:2]] == [1, 2]
    assert data.spine.leaf.nodes == modern.spine.levels[4].nodes  # a district is a block group
    assert int(dense(data.persons, 192).sum()) == PERSONS
    assert data.findings == ()
    adults = dense(data.persons, 192).reshape(-1, 8, 2, 12)[:, :, 1].sum()
    assert adults == dense(modern.persons, 2016).reshape(-1, 8, 2, 126)[:, :, 1].sum()
    assert data.facilities[:, [0, 8]].sum() == modern.facilities[:, 0].sum()
    assert data.facilities[:, 1:8].sum() == modern.facilities[:, 1:].sum()


def test_some_people_of_1940_did_not_report_their_origin(tmp_path: Path) -> None:
    paths = (synthetic(tmp_path / "ipums", "ipums-1940") / "ipums1940.dat",)
    layout = e2e_layout(E2E, E2E_1940)
    hispanic = [
        dense(read_ipums(paths, layout, hispanic9=option).persons, 192).reshape(-1, 16, 2, 6)[:, :, 1].sum()
        for option in (False, True)
    ]
    assert 0 < hispanic[1] - hispanic[0] < PERSONS / 100


@pytest.mark.parametrize("layout", ["cef", "ipums-1940"])
def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    one = synthetic(tmp_path / "one", layout)
    monkeypatch.setattr(fixed_width, "FIXED_CHUNK_PERSONS", 5_000)
    many = synthetic(tmp_path / "many", layout)
    assert _hashes(one) == _hashes(many)
    assert len(_hashes(one)) == (5 if layout == "cef" else 2)  # with the mark


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_numbers_that_do_not_fit_their_fields_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed_width, "_MOST_SERIALS", 100)
    with pytest.raises(UsageError, match="more than 100 households"):
        synthetic(tmp_path / "a", "ipums-1940")
    monkeypatch.undo()
    monkeypatch.setattr(areas, "_MOST_DISTRICTS", 1)
    with pytest.raises(UsageError, match="more than 1 enumeration districts"):
        synthetic(tmp_path / "b", "ipums-1940")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_them(tmp_path: Path) -> None:
    options = ["--persons", "500", "--states", "50", "--layout", "cef", "--quiet"]
    done = CliRunner().invoke(command, [str(tmp_path / "x"), *options])
    assert done.exit_code == 0, done.output
    assert "500 persons in" in done.output
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "CEF20_CNT.txt", "CEF20_PER.txt", "CEF20_UNIT.txt", "GRF-C.txt", "synthetic.json",
    ]  # fmt: skip
    refused = CliRunner().invoke(command, [str(tmp_path / "y"), *options, "--areas-of", "5"])
    assert isinstance(refused.exception, UsageError)
