"""Large files that go around the page cache."""

import errno
import fcntl
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import StorageError
from censafe.publication.large_files import PIECE, DirectFile, hashed_bytes

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
