import json
from pathlib import Path

import pytest

from censafe.errors import UsageError
from censafe.products.run.folder import RunFolder

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
