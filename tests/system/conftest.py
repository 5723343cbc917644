from __future__ import annotations

from pathlib import Path

import pytest

from censafe import configuration, release, synthesize
from support.commands import CommandLine, bureau_config, write_config
from support.once import made_once
from support.phsafe_inputs import write_folder


@pytest.fixture
def censafe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "data")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config.json", bureau_config())


@pytest.fixture(scope="session")
def dhc_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a small state, for tests that do not change them."""
    return made_once(
        tmp_path_factory,
        "dhc-records",
        lambda folder: synthesize(folder / "data", persons=2500, states=("44",), layout="dhc"),
    ).joinpath("data")


@pytest.fixture(scope="session")
def dhc(tmp_path_factory: pytest.TempPathFactory, dhc_records: Path) -> Path:
    """A run of the DHC, for tests that do not change it; the redistricting data that it makes first lie beside it."""
    chosen = configuration("topdown", "dhc-us", {"root": "State"})
    return made_once(
        tmp_path_factory, "dhc-run", lambda folder: release(chosen, dhc_records, folder / "dhc", test_key=3)
    ).joinpath("dhc")
