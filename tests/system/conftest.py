from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.commands import CommandLine, bureau_config, write_config
from support.phsafe_inputs import write_folder
from support.runs import Runs
from support.topdown_inputs import write_1940


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
def districts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty-eight districts of 1940, for tests that do not change them."""
    return write_1940(tmp_path_factory.mktemp("districts") / "data")


@pytest.fixture(scope="session")
def finished_1940(runs: Runs, districts: Path) -> Path:
    """A run of 1940 with stored answers, for tests that do not change it."""
    return runs("topdown", "e2e-1940", districts, "--test-key", 1)


@pytest.fixture
def run_1940(finished_1940: Path, tmp_path: Path) -> Path:
    """A copy of it, which may be changed."""
    return Path(shutil.copytree(finished_1940, tmp_path / "run-1940"))
