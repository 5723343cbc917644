import errno
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import StorageError, UsageError
from censafe.products.run import scratch
from censafe.products.run.scratch import private_scratch


def _data(tmp_path: Path) -> Path:
    data = tmp_path / "records" / "data"
    data.mkdir(parents=True)
    return data


def test_scratch_is_private_lies_beside_the_data_and_goes(tmp_path: Path) -> None:
    data = _data(tmp_path)
    with private_scratch(data, out=tmp_path / "out") as scratch:
        assert scratch.parent == data.parent
        assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
        (scratch / "records.parquet").write_text("confidential")
    assert list(data.parent.iterdir()) == [data]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_scratch_goes_when_the_work_stops(tmp_path: Path, error: type[BaseException]) -> None:
    data = _data(tmp_path)
    with pytest.raises(error), private_scratch(data) as scratch:
        (scratch / "records.parquet").write_text("confidential")
        raise error
    assert list(data.parent.iterdir()) == [data]


def test_what_a_killed_process_left_goes_and_what_a_living_one_uses_stays(tmp_path: Path) -> None:
    data = _data(tmp_path)
    dead = data.parent / ".censafe-scratch-00112233445566ff"
    dead.mkdir()
    (dead / "records.parquet").write_text("confidential")
    mine = data.parent / ".censafe-scratch-notes"
    mine.mkdir()
    with private_scratch(data) as living, private_scratch(data) as second:
        assert not dead.exists()
        assert living.exists()
        assert second != living
    assert sorted(data.parent.iterdir()) == [mine, data]


def test_scratch_never_lies_in_what_will_be_published(tmp_path: Path) -> None:
    data, out = _data(tmp_path), tmp_path / "out"
    with (
        pytest.raises(UsageError, match="will be published"),
        private_scratch(data, out / "scratch", out=out),
    ):
        pass


def test_a_folder_that_strangers_may_change_is_refused(tmp_path: Path) -> None:
    data, shared = _data(tmp_path), tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(StorageError, match="all users may write"), private_scratch(data, shared):
        pass
    shared.chmod(0o1777)
    with private_scratch(data, shared) as scratch:
        assert scratch.parent == shared


def test_a_place_that_cannot_be_written_says_which_option_to_set(tmp_path: Path) -> None:
    data = _data(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="`scratch`"), private_scratch(data, tmp_path / "file" / "scratch"):
        pass


def interrupted_after(original: Callable[..., Any]) -> Callable[..., Any]:
    """Does its work and is interrupted before anyone takes the result, the first time."""
    left = [KeyboardInterrupt]

    def stopped(*words: Any, **more: Any) -> Any:
        found = original(*words, **more)
        if left:
            raise left.pop()
        return found

    return stopped


def test_a_file_system_that_removes_no_names_keeps_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, *, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(scratch, "_TRIES", 2)
    monkeypatch.setattr(shutil, "rmtree", full)
    with (
        pytest.raises(StorageError, match=r"the disk is full; .* holds records and cannot be removed"),
        private_scratch(_data(tmp_path)) as folder,
    ):
        (folder / "records").write_text("x", encoding="utf-8")
        raise StorageError("the disk is full")
    assert (folder / "records").read_text(encoding="utf-8") == ""


def test_an_engine_that_still_writes_leaves_no_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed, late = shutil.rmtree, ["spill"]

    def racing(folder: Path, *, ignore_errors: bool = False) -> None:
        removed(folder, ignore_errors=ignore_errors)
        if late:
            folder.mkdir()
            (folder / late.pop()).write_text("x", encoding="utf-8")

    monkeypatch.setattr(shutil, "rmtree", racing)
    with pytest.raises(StorageError, match=r"^the disk is full$"), private_scratch(tmp_path / "data"):
        raise StorageError("the disk is full")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["_locked_folder", "_lock", "_remove"])
def test_an_interrupt_at_any_instant_leaves_no_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(scratch, place, interrupted_after(getattr(scratch, place)))
    with pytest.raises(KeyboardInterrupt), private_scratch(tmp_path / "data") as folder:
        (folder / "records").write_text("x", encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_a_folder_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    original = Path.mkdir

    def made(path: Path, **more: Any) -> None:
        original(path, **more)
        if path.name.startswith(".censafe"):
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", made)
    with pytest.raises(KeyboardInterrupt), private_scratch(tmp_path / "data", tmp_path / "root"):
        pass
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_second_interrupt_while_records_are_removed_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    removed, left = shutil.rmtree, [error, error]

    def impatient(folder: Path, **more: Any) -> None:
        if left:
            raise left.pop()
        removed(folder, **more)

    monkeypatch.setattr(scratch.shutil, "rmtree", impatient)
    with pytest.raises(KeyboardInterrupt), private_scratch(tmp_path / "data") as folder:
        (folder / "records").write_text("x", encoding="utf-8")
        raise KeyboardInterrupt
    assert left == []
    assert list(tmp_path.iterdir()) == []
