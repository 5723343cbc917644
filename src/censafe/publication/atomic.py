"""Files and folders that appear complete under their final name, or not at all, new generations of published files, and files of many gigabytes that are hashed as they are written and leave no copy in the page cache.

The files of a new generation are complete in ``WORK/staging`` before the first of them moves. A journal beside them is the
decision: without it the staged files are discarded and the old generation stands; with it every move can be done, or repeated,
until the new one stands. While files move, the folder has no manifest, so that a mixture is not taken for a release.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any, BinaryIO, Final

from censafe.errors import CheckError, StorageError
from censafe.model.closing import PARTIAL, TOO_LARGE, partial_file, partial_folder, write_refusal
from censafe.model.parsing import read_stored
from censafe.model.safe_text import stays_inside

_REASONS = {
    errno.ENOSPC: "the disk is full; free space or choose another output folder",
    errno.EDQUOT: "the disk quota is used up; free space or choose another output folder",
    errno.EFBIG: f"{TOO_LARGE}, or choose another output folder",
    errno.EACCES: "the folder is not writable; change its permissions or choose another output folder",
    errno.EPERM: "the folder is not writable; change its permissions or choose another output folder",
    errno.EROFS: "the file system is read-only; choose another output folder",
    errno.ENOENT: "the folder vanished; create it or choose another output folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another output folder",
}


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` for libraries that open files by name.

    The file is there and empty; what a killed process left of the same name is removed. When the block ends it is flushed to
    stable storage, renamed to ``path`` and the rename is flushed as well. When the block raises, the temporary file is removed
    and whatever stood at ``path`` before is untouched.
    """
    if path.exists() and not path.is_file():  # such as /dev/null, which a rename would remove
        raise StorageError(
            f"{path}: cannot be written: it is a device, a pipe or a folder, not a file; name a new file"
        )
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial_file(path) as temporary:
            yield temporary
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)


@contextmanager
def atomic_bytes(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary stream whose content appears at ``path`` when the block ends."""
    with atomic_write(path) as temporary, temporary.open("wb") as stream:
        yield stream


@contextmanager
def named_file(path: Path) -> Iterator[BinaryIO]:
    """As :func:`atomic_bytes` for a file that an operator names, whose folder must be there."""
    if not path.parent.is_dir():
        raise StorageError(
            f"{path}: cannot be written: there is no folder {path.parent}; make it, or name another file"
        )
    with atomic_bytes(path) as stream:
        yield stream


def atomic_text(path: Path, text: str) -> str:
    """Write ``text`` as UTF-8 to ``path`` and return the SHA-256 of the bytes, hexadecimal."""
    content = text.encode("utf-8")
    with atomic_bytes(path) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block ends."""
    with storage_errors(path.parent):
        if path.exists():
            raise StorageError(f"folder {path} exists already; choose a new one or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial_folder(path) as temporary:
            yield temporary
            sync_tree(temporary)
            temporary.rename(path)
        sync(path.parent)


def remove_partials(folder: Path) -> int:
    """Delete, unread, the temporary files and folders that a killed process left anywhere below ``folder``."""
    leftovers = sorted(folder.rglob(f".*{PARTIAL}")) if folder.is_dir() else []
    with storage_errors(folder):
        for leftover in leftovers:
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink(missing_ok=True)  # it may have gone with a folder that held it
    return len(leftovers)


def sha256_file(path: Path) -> str:
    """SHA-256 of a public file's bytes, hexadecimal."""
    with storage_errors(path.parent), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_path(path: Path) -> str:
    """SHA-256 of a public file, or of the names and SHA-256 of all files in a folder, hexadecimal."""
    if not path.is_dir():
        return sha256_file(path)
    digest = hashlib.sha256()
    for member in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{member.relative_to(path).as_posix()}\n{sha256_file(member)}\n".encode())
    return digest.hexdigest()


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn what the operating system refuses inside the block into a StorageError that names the folder and the reason."""
    try:
        yield
    except OSError as error:
        refusal = write_refusal(error)
        other = (
            f"{refusal}, or choose another output folder"
            if refusal
            else error.strerror or type(error).__name__
        )
        reason = _REASONS.get(error.errno or 0, other)
        raise StorageError(f"cannot write in folder {folder}: {reason}") from error


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to stable storage."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Flush a folder and everything below it to stable storage."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


WORK: Final = ".censafe"
"""Folder of a run folder that holds what is not published, while somebody works in it."""
IDENTITY: Final = "identity.json"
"""File in it that says which run the folder is bound to, until that run is complete."""
STAGING: Final = "staging"
JOURNAL: Final = "journal.json"
_PREVIOUS: Final = "previous"


def is_moving(folder: Path) -> bool:
    """Whether files of a run folder were left in the middle of a move."""
    return (folder / WORK / JOURNAL).exists()


def move_into_place(folder: Path, names: Sequence[str], outdated: Sequence[str] = ()) -> None:
    """Give all staged files and folders of a run folder their final names; what stood there before goes."""
    work = folder / WORK
    with storage_errors(folder):
        sync_tree(work / STAGING)
        shutil.rmtree(work / _PREVIOUS, ignore_errors=True)
    text = json.dumps({"names": list(names), "outdated": [name for name in outdated if name not in names]})
    atomic_text(work / JOURNAL, text)
    complete_move(folder)


def complete_move(folder: Path) -> bool:
    """Finish a move that was decided and interrupted; without a journal nothing is done."""
    if not is_moving(folder):
        return False
    work = folder / WORK
    names, outdated = _read_journal(work / JOURNAL)
    staging, previous = work / STAGING, work / _PREVIOUS
    with storage_errors(folder):
        waiting = [name for name in names if (staging / name).exists()]
        for name in (*waiting[-1:], *outdated):
            _put_aside(folder / name, previous / name)
        for name in waiting:
            _put_aside(folder / name, previous / name)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (staging / name).replace(folder / name)
        sync(folder)
        if previous.exists():
            shutil.rmtree(previous)
        (work / JOURNAL).unlink()
        sync(work)
    return True


def _put_aside(path: Path, aside: Path) -> None:
    if path.exists() or path.is_symlink():
        aside.parent.mkdir(parents=True, exist_ok=True)
        path.replace(aside)


def _read_journal(path: Path) -> tuple[list[str], list[str]]:
    """What was decided: which names move in, the last one says that the rest is complete, and which go."""
    try:
        content = read_stored(path)
        names, outdated = list(content["names"]), list(content["outdated"])
        safe = all(stays_inside(name) for name in (*names, *outdated))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckError(f"{path} cannot be read as the journal of a move; it was changed by hand") from error
    if not safe:
        raise CheckError(f"{path} names files outside of its run folder; it was changed by hand")
    return names, outdated


try:
    from fcntl import F_GETFL, F_SETFL, fcntl
except ImportError:  # where there is no such call there is no flag for it either
    fcntl = None  # type: ignore[assignment]


PIECE: Final = 1 << 22
"""Bytes that are collected before they are written; a multiple of every block size."""
_DIRECT: Final = getattr(os, "O_DIRECT", 0)


class DirectFile(io.RawIOBase):
    """An empty file that is written from its start to its end.

    Whole pieces go around the page cache where the file system allows it, one in a thread while the next is collected. A published file
    is flushed before it gets its name, so that a copy in memory would only push out what a run still reads; and making it costs more than
    the write where the memory of a virtual machine comes from its host page by page. What is left at the end, and so all of a small file, is
    written as usual.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._pieces: list[mmap] = []  # they start at a page, as such writes must
        self._turn, self._used = 0, 0
        self._writing: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._direct = False
        self._descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))

    @property
    def direct(self) -> bool:
        """Whether the last piece went around the page cache."""
        return self._direct

    def writable(self) -> bool:
        """It takes bytes."""
        return True

    def write(self, piece: Any) -> int:
        """Take some bytes, all of them."""
        rest = memoryview(piece).cast("B")
        size = len(rest)
        while len(rest):
            if len(self._pieces) <= self._turn:
                self._pieces.append(mmap(-1, PIECE))
            taken = min(len(rest), PIECE - self._used)
            self._pieces[self._turn][self._used : self._used + taken] = rest[:taken]
            self._used += taken
            rest = rest[taken:]
            if self._used == PIECE:
                self._hand_over()
        return size

    def close(self) -> None:
        """Write what is left."""
        if self.closed:
            return
        with ExitStack() as ending:
            ending.callback(super().close)
            ending.callback(os.close, self._descriptor)
            if self._writing is not None:
                ending.callback(self._writing.shutdown)
            self._await()
            if self._used:
                self._set_direct(direct=False)
                self._write_piece(self._pieces[self._turn], self._used)

    def _hand_over(self) -> None:
        """Write the piece in a thread, after the one before."""
        self._await()
        if self._writing is None:
            self._writing = ThreadPoolExecutor(1, thread_name_prefix="direct")
            self._set_direct(direct=True)
        self._pending = self._writing.submit(self._write_piece, self._pieces[self._turn], PIECE)
        self._turn, self._used = 1 - self._turn, 0

    def _await(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _write_piece(self, piece: mmap, size: int) -> None:
        with memoryview(piece) as view:
            written = 0
            while written < size:
                if written % PAGESIZE:  # the system took a part that ends inside of a page
                    self._set_direct(direct=False)
                try:
                    written += os.write(self._descriptor, view[written:size])
                except OSError as error:
                    if not self._direct or error.errno != errno.EINVAL:
                        raise
                    self._set_direct(direct=False)  # the file system has larger blocks, or none

    def _set_direct(self, *, direct: bool) -> None:
        if direct == self._direct or not _DIRECT:
            return
        flags = fcntl(self._descriptor, F_GETFL)
        try:
            fcntl(self._descriptor, F_SETFL, flags | _DIRECT if direct else flags & ~_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:  # file systems in memory may have no such way
                raise
            return
        self._direct = direct


class HashedStream(io.RawIOBase):
    """A binary stream that takes the SHA-256 of what is written to it, which saves reading the file once more."""

    def __init__(self, stream: BinaryIO | DirectFile) -> None:
        super().__init__()
        self._stream, self._digest, self._written = stream, hashlib.sha256(), 0

    def write(self, piece: Any) -> int:
        """Write some bytes."""
        self._digest.update(piece)
        written = self._stream.write(piece)
        self._written += written
        return written

    def writable(self) -> bool:
        """It takes bytes."""
        return True

    def tell(self) -> int:
        """Bytes so far."""
        return self._written

    @property
    def sha256(self) -> str:
        """Of the bytes so far, hexadecimal."""
        return self._digest.hexdigest()


@contextmanager
def hashed_bytes(path: Path) -> Iterator[HashedStream]:
    """As :func:`atomic_bytes` for a large file that nobody reads again soon, with the SHA-256 of what is written."""
    with atomic_write(path) as temporary, DirectFile(temporary) as stream, HashedStream(stream) as hashed:
        yield hashed
