"""The folder of a run, and the hashes of its input files."""

import hashlib
import json
from pathlib import Path

import pytest

from censafe.errors import DataError, StorageError, UsageError
from censafe.model.observer import SilentObserver
from censafe.products.run import folder
from censafe.products.run.folder import Inputs, RunFolder, hash_files

IDENTITY = {"plan": "aa", "input": "bb", "source": "system"}


def _measured(folder: RunFolder) -> None:
    folder.measurements.mkdir(exist_ok=True)
    (folder.measurements / "PH2.parquet").write_bytes(b"noisy")


def test_a_failed_new_run_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError), RunFolder(out) as folder:
        folder.identify(IDENTITY)
        (folder.staging / "tables").mkdir()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_keeps_the_users_own_empty_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(RuntimeError), RunFolder(out):
        raise RuntimeError
    assert list(out.iterdir()) == []


def test_a_stopped_run_keeps_measurements_and_nothing_staged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError), RunFolder(out) as folder:
        assert folder.identify(IDENTITY) == "new"
        _measured(folder)
        raise RuntimeError
    assert (out / "measurements" / "PH2.parquet").exists()
    assert not folder.staging.exists()
    with RunFolder(out) as reopened:
        assert reopened.identify(IDENTITY) == "resumed"
        assert reopened.run == folder.run


def test_another_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunFolder(out) as folder:
        folder.identify(IDENTITY)
        _measured(folder)
    with pytest.raises(UsageError, match=r"holds another run \(different input\)"), RunFolder(out) as folder:
        folder.identify(IDENTITY | {"input": "cc"})
    assert (out / "measurements" / "PH2.parquet").read_bytes() == b"noisy"


@pytest.mark.parametrize("name", ["../../elsewhere/x", "/outside/x", "", "a" * 15, 7, "A" * 16])
def test_the_name_of_a_run_is_never_a_path(tmp_path: Path, name: object) -> None:
    out = tmp_path / "out"
    with RunFolder(out) as folder:
        folder.identify(IDENTITY)
        _measured(folder)
    record = out / ".censafe" / "identity.json"
    record.write_text(json.dumps({"identity": IDENTITY, "run": name}))
    with pytest.raises(UsageError, match="cannot be read as the record of a run"), RunFolder(out) as folder:
        folder.identify(IDENTITY)


def test_foreign_folders_and_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"), RunFolder(tmp_path):
        pass
    with pytest.raises(UsageError, match="is a file"), RunFolder(tmp_path / "notes.txt"):
        pass
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunFolder(out) as folder:
        folder.identify(IDENTITY)
        with pytest.raises(UsageError, match="another run is working"), RunFolder(out):
            pass
        assert folder.staging.exists()


def test_a_finished_run_is_recognized_and_left_tidy(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunFolder(out) as folder:
        folder.identify(IDENTITY)
        (out / "manifest.json").write_text(
            '{"identity": {"plan": "aa", "input": "bb", "source": "system"}, "run": "0123456789abcdef"}'
        )
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json"]
    with RunFolder(out) as folder:
        assert folder.identify(IDENTITY) == "finished"
        assert folder.run == "0123456789abcdef"


def test_a_killed_run_is_not_forgotten_by_a_start_that_fails_before_it_knows_its_records(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    killed = RunFolder(out)
    killed.__enter__()
    assert killed.identify(IDENTITY) == "new"
    killed.keep()  # something is reserved, and no file is written
    killed._release()  # what the operating system does when a process is killed
    with pytest.raises(RuntimeError), RunFolder(out):
        raise RuntimeError  # such as an input that cannot be read
    with RunFolder(out) as folder:
        assert folder.identify(IDENTITY) == "resumed"
        assert folder.run == killed.run


class _Heard(SilentObserver):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[float, int, str]] = []

    def advance(self, share: float, total: int = 0, noun: str = "") -> None:
        self.heard.append((share, total, noun))


def test_files_of_one_name_in_two_places_have_hashes_of_their_own(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for place, text in ((data, b"records"), (elsewhere, b"areas")):
        place.mkdir()
        (place / "geo.csv").write_bytes(text)
    taken = Inputs((data / "geo.csv",), (elsewhere / "geo.csv",), data, SilentObserver())
    assert taken.confidential == {"geo.csv": hashlib.sha256(b"records").hexdigest()}
    assert taken.public == {"geo.csv": hashlib.sha256(b"areas").hexdigest()}
    taken.require_unchanged()
    (data / "geo.csv").write_bytes(b"recorde")
    with pytest.raises(DataError, match=r"geo\.csv changed while the run was reading"):
        taken.require_unchanged()


def test_hashing_says_how_many_megabytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_BLOCK", 1_000_000)
    content = bytes(range(250)) * 10_000
    (tmp_path / "persons.csv").write_bytes(content)
    heard = _Heard()
    found = hash_files((tmp_path / "persons.csv",), tmp_path, heard)
    assert found == {"persons.csv": hashlib.sha256(content).hexdigest()}
    assert heard.heard == [(0.0, 2, "MB"), (0.5, 2, "MB"), (1.0, 2, "MB")]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"persons\.csv: the file cannot be read"):
        hash_files((tmp_path / "persons.csv",), tmp_path, SilentObserver())
