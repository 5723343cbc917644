"""The ledger's file: one writer, whole lines only, on stable storage before anyone relies on them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path

from censafe.errors import LedgerError
from censafe.model.proven import proven
from censafe.privacy.ledger.commitments import fsync_folder


class LedgerFile:
    """An append-only file of lines, held under an exclusive lock until :meth:`close`.

    After a failed write the object refuses every further write: what reached the disk is then for the next opening to
    find out.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self._size = status.st_size
        self._identity = _identity(status)
        self._owner = os.getpid()
        self._usable = True

    @classmethod
    def open(cls, path: Path) -> LedgerFile:
        """Open or create the file and lock it."""
        try:
            descriptor = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o644
            )
        except OSError as error:
            raise LedgerError(
                f"{path}: the ledger cannot be opened for writing: {error.strerror}; nothing is measured without a "
                "ledger; set CENSAFE_LEDGER or `ledger` to a file in a folder that can be written, the same one for "
                "every run on these records"
            ) from error
        try:
            _lock(descriptor, path)
            return cls(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def read(self) -> bytes:
        """All bytes of the file."""
        pieces = []
        position = 0
        while piece := os.pread(self._descriptor, 1 << 20, position):
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)

    def is_empty(self) -> bool:
        """Whether nothing has been written to the open file, by this run or before."""
        return os.fstat(self._descriptor).st_size == 0

    @proven("ledger.proof.md", digest="0b749b27d22be72c")
    def append(self, line: bytes) -> None:
        """Add one line and flush file and folder to stable storage before returning.

        Raises:
            LedgerError: not written; the file is as before, or ends in a torn line that the next opening sets aside.
        """
        self._require_usable()
        try:
            _write_all(self._descriptor, line + b"\n")
            os.fsync(self._descriptor)
            fsync_folder(self.path.parent)
        except OSError as error:
            self._usable = False
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
                os.fsync(self._descriptor)
            raise LedgerError(
                f"{self.path}: the ledger cannot be written: {error.strerror}; "
                "nothing was measured for this entry; make room and start the same command again"
            ) from error
        self._size += len(line) + 1
        self._require_in_place()

    def set_aside(self, torn: bytes) -> Path:
        """Move a torn last line into a file of its own next to the ledger, and cut it off."""
        keep = self._size - len(torn)
        place = self.path.with_name(f"{self.path.name}.torn-at-{keep}")
        try:
            place.write_bytes(torn)
            with place.open("rb") as written:
                os.fsync(written.fileno())
            fsync_folder(place.parent)
            os.ftruncate(self._descriptor, keep)
            os.fsync(self._descriptor)
        except OSError as error:
            self._usable = False
            raise LedgerError(
                f"{self.path}: the torn last line cannot be set aside: {error.strerror}"
            ) from error
        self._size = keep
        return place

    def close(self) -> None:
        """Give up the lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._usable = False

    def _require_usable(self) -> None:
        if not self._usable:
            raise LedgerError(
                f"{self.path}: the ledger is closed, or an earlier write to it failed; start again"
            )
        if os.getpid() != self._owner:
            raise LedgerError(f"{self.path}: only the process that opened the ledger may write to it")
        if os.fstat(self._descriptor).st_size != self._size:
            raise LedgerError(f"{self.path}: the ledger was changed by something else while this run held it")
        self._require_in_place()

    def _require_in_place(self) -> None:
        """The name still leads to the file that is locked, and to no copy or other file."""
        try:
            identity = _identity(self.path.stat())
        except OSError:
            identity = None
        if identity != self._identity or _identity(os.fstat(self._descriptor)) != self._identity:
            self._usable = False
            raise LedgerError(
                f"{self.path}: the ledger was removed, replaced or linked elsewhere while this run held it; put back "
                "the file that was there, and start the same command again"
            )


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    """Device, inode and number of links."""
    return status.st_dev, status.st_ino, status.st_nlink


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _lock(descriptor: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise LedgerError(f"{path} is not a regular file; name a file for the ledger")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(descriptor), path.stat())
        fsync_folder(path.parent)
    except BlockingIOError as error:
        raise LedgerError(f"{path}: another run holds the ledger; wait until it ends") from error
    except OSError as error:
        raise LedgerError(f"{path}: the ledger cannot be locked: {error.strerror}") from error
    if not same:
        raise LedgerError(f"{path}: the ledger was replaced while it was being opened; start again")
