import shutil
from pathlib import Path

import pytest

from support.commands import CommandLine, bureau_config, write_config
from support.phsafe_inputs import write_folder
from support.runs import Runs
from support.safetab_folders import SafetabFolders, write_folders
from support.topdown_inputs import write_1940


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "data")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config.json", bureau_config())


@pytest.fixture
def folders(tmp_path: Path) -> SafetabFolders:
    """Parameters and records of both products of SafeTab."""
    return write_folders(tmp_path)


@pytest.fixture(scope="session")
def released(censafe: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the small population, for tests that do not change it: ``data``, ``config.json``, ``out``, the ledger and its key, ``printed.txt``."""
    folder = tmp_path_factory.mktemp("released")
    data, config = write_folder(folder / "data"), write_config(folder / "config.json", bureau_config())
    done = censafe("run", "phsafe", config, data, folder / "out")
    assert done.code == 0, done.err
    (folder / "printed.txt").write_text(done.out + done.err, encoding="utf-8")
    return folder


@pytest.fixture
def release_copy(released: Path, tmp_path: Path) -> Path:
    """A copy of it, which may be changed."""
    return Path(shutil.copytree(released, tmp_path / "released"))


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
