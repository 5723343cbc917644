"""Files that appear complete or not at all, and large files that are hashed as they are written."""

import errno
import fcntl
import hashlib
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, StorageError
from censafe.publication.atomic import (
    PIECE,
    WORK,
    DirectFile,
    atomic_bytes,
    atomic_folder,
    atomic_text,
    atomic_write,
    complete_move,
    hashed_bytes,
    is_moving,
    move_into_place,
    remove_partials,
    sha256_file,
    sha256_path,
)


def test_text_appears_with_its_digest(tmp_path: Path) -> None:
    digest = atomic_text(tmp_path / "new" / "a.txt", "Ñandú\n")
    content = (tmp_path / "new" / "a.txt").read_bytes()
    assert "Ñandú\n".encode() == content
    assert hashlib.sha256(content).hexdigest() == digest == sha256_file(tmp_path / "new" / "a.txt")
    assert [tmp_path / "new" / "a.txt"] == list((tmp_path / "new").iterdir())


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyError), atomic_bytes(path) as stream:
        stream.write(b"half of the new")
        raise KeyError
    assert path.read_text() == "old"
    assert [path] == list(tmp_path.iterdir())


def test_a_full_disk_names_the_folder_and_removes_what_was_written(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match="disk is full") as caught,
        atomic_write(tmp_path / "a") as temporary,
    ):
        temporary.write_bytes(b"x" * 100)
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_real_full_device_is_recognized(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(StorageError, match="disk is full"), atomic_write(tmp_path / "a") as temporary:
        temporary.unlink()
        temporary.symlink_to("/dev/full")
        with temporary.open("w") as stream:
            stream.write("x")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "tables"
    with pytest.raises(KeyError), atomic_folder(target) as folder:
        (folder / "T1").mkdir()
        (folder / "T1" / "T1.csv").write_text("half")
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(target) as folder:
        (folder / "a").write_text("1")
    assert (target / "a").read_text() == "1"
    assert [target] == list(tmp_path.iterdir())


def test_a_folder_that_is_there_stays(tmp_path: Path) -> None:
    target = tmp_path / "tables"
    with atomic_folder(target) as folder:
        (folder / "old").write_text("1")
    with pytest.raises(StorageError, match="exists already"), atomic_folder(target):
        pass
    assert (target / "old").read_text() == "1"
    assert [target] == list(tmp_path.iterdir())


def test_a_file_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(StorageError, match="cannot write in folder"):
        atomic_text(tmp_path / "a" / "b", "")


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".part.0a1b2c3d.partial").write_text("x")
    (tmp_path / ".tables.0a1b2c3d.partial").mkdir()
    (tmp_path / ".tables.0a1b2c3d.partial" / "x").write_text("x")
    (tmp_path / "kept.parquet").write_text("x")
    assert remove_partials(tmp_path) == 2
    assert [tmp_path / "kept.parquet"] == list(tmp_path.iterdir())
    assert remove_partials(tmp_path / "absent") == 0


def test_a_folder_is_known_by_the_names_and_bytes_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "part"
    (folder / "State=01").mkdir(parents=True)
    file = folder / "State=01" / "a"
    file.write_bytes(b"1")
    before = sha256_path(folder)
    (folder / "empty").mkdir()
    assert sha256_path(folder) == before
    assert sha256_path(file) == sha256_file(file)
    file.rename(folder / "State=01" / "b")
    renamed = sha256_path(folder)
    (folder / "State=01" / "b").write_bytes(b"2")
    assert len({before, renamed, sha256_path(folder)}) == 3


def test_leftovers_are_removed_at_any_depth(tmp_path: Path) -> None:
    deep = tmp_path / "US" / ".County.parquet.0f.partial" / "DPQuery"
    deep.mkdir(parents=True)
    (deep / ".part.00.partial").write_bytes(b"x")
    (tmp_path / "US" / "State.parquet").mkdir()
    assert remove_partials(tmp_path) == 2
    assert [path.name for path in (tmp_path / "US").iterdir()] == ["State.parquet"]


NAMES = ("certificate", "tables", "deep/table", "manifest")
OLD = {"certificate": "old", "tables/a": "old", "deep/table": "old", "gone/b": "old", "manifest": "old"}
NEW = {"certificate": "new", "tables/c": "new", "deep/table": "new", "manifest": "new"}


class Stopped(BaseException):
    pass


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _read(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in files}
    return {name: text for name, text in found.items() if not name.startswith(WORK)}


def _stop_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    counter = itertools.count()

    def stopping(method: str) -> None:
        real = getattr(Path, method)

        def step(self: Path, *arguments: object, **options: object) -> object:
            if next(counter) == number:
                raise Stopped
            return real(self, *arguments, **options)

        monkeypatch.setattr(Path, method, step)

    for method in ("replace", "unlink"):
        stopping(method)


@pytest.mark.parametrize("number", range(12))
def test_a_move_that_stops_anywhere_is_taken_back_or_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _write(tmp_path, OLD)
    _write(tmp_path / WORK / "staging", NEW)
    with monkeypatch.context() as patch:
        _stop_at(patch, number)
        try:
            move_into_place(tmp_path, NAMES, outdated=("gone", "certificate"))
            stopped = False
        except Stopped:
            stopped = True
    assert stopped == (number < 11)
    between = _read(tmp_path)
    if "manifest" in between and stopped:  # a manifest never stands over files of another generation
        assert {between[name] for name in between} == {between["manifest"]}
    decided = is_moving(tmp_path)
    assert complete_move(tmp_path) == decided
    assert _read(tmp_path) == (NEW if decided or not stopped else OLD)
    assert not is_moving(tmp_path)


@pytest.mark.parametrize("journal", ["", "{}", json.dumps({"names": ["../x"], "outdated": []})])
def test_a_journal_of_somebody_else_is_refused(tmp_path: Path, journal: str) -> None:
    _write(tmp_path, {f"{WORK}/journal.json": journal, "x": "mine"})
    with pytest.raises(CheckError, match=r"journal\.json"):
        complete_move(tmp_path)
    assert (tmp_path / "x").read_text() == "mine"


SIZES = (0, 1, 4096, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 12345)


def content_of(size: int) -> bytes:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()


def written(path: Path, content: bytes, step: int) -> bool:
    """Write some bytes at a time; whether pieces went around the cache."""
    path.touch()
    with DirectFile(path) as stream:
        for first in range(0, len(content), step):
            piece = content[first : first + step]
            assert stream.write(piece) == len(piece)
        direct = stream.direct
    assert path.read_bytes() == content
    return direct


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", [700_001, PIECE, 5 * PIECE])
def test_the_file_has_what_was_written(tmp_path: Path, size: int, step: int) -> None:
    written(tmp_path / "file", content_of(size), step)


def test_pieces_go_around_the_cache_where_the_file_system_allows_it(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path / "probe", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
    except (OSError, AttributeError):
        pytest.skip("this file system has no way around the page cache")
    assert written(tmp_path / "large", content_of(2 * PIECE), PIECE)
    assert not written(tmp_path / "small", content_of(PIECE - 1), PIECE)


def test_a_file_system_that_refuses_such_writes_gets_usual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, inner = [], os.write

    def write(descriptor: int, piece: memoryview) -> int:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused.append(len(piece))
            raise OSError(errno.EINVAL, "Invalid argument")
        return inner(descriptor, piece)

    monkeypatch.setattr(os, "write", write)
    direct = written(tmp_path / "file", content_of(2 * PIECE + 5), PIECE)
    assert not direct
    assert len(refused) <= 1  # it is not asked again


@pytest.mark.parametrize("most", [4096, 10_000])
def test_parts_of_a_piece_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    inner = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, piece: inner(descriptor, piece[: most << 5]))
    written(tmp_path / "file", content_of(2 * PIECE + 5), PIECE)


@pytest.mark.parametrize("size", [5, PIECE, 3 * PIECE])
def test_a_full_disk_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    def write(descriptor: int, piece: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(StorageError, match="the disk is full"), hashed_bytes(tmp_path / "file") as stream:
            stream.write(content_of(size))
    assert list(tmp_path.iterdir()) == []


def test_the_hash_is_of_the_file(tmp_path: Path) -> None:
    content = content_of(2 * PIECE + 1)
    with hashed_bytes(tmp_path / "file") as stream:
        stream.write(content)
    assert stream.sha256 == hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest()
