"""What is opened in a ``with`` block and closes itself at its end: files, keys, records, and folders that are put together."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PARTIAL: Final = ".partial"
"""How the names of files and folders end that are not complete."""

DISK_FULL: Final = "the disk is full; free space"
TOO_LARGE: Final = "a file would be larger than the system allows; raise the limit (ulimit -f)"


def write_refusal(error: BaseException) -> str:
    """What keeps a file from growing, and what to do: the disk, a quota, or a limit of file sizes; empty for any other error.

    Libraries say it with a number or in their text.

    Example:
        >>> write_refusal(OSError(27, "File too large"))
        'a file would be larger than the system allows; raise the limit (ulimit -f)'
    """
    number, text = getattr(error, "errno", None), str(error)
    if number == errno.EFBIG or "File too large" in text:
        return TOO_LARGE
    if number == errno.EDQUOT or "quota exceeded" in text:
        return "the disk quota is used up; free space"
    return DISK_FULL if number == errno.ENOSPC or "No space left" in text else ""


class Closing(ABC):
    """Base of what holds a file, a key or records: a ``with`` block ends with its ``close``.

    Example:
        >>> class File(Closing):
        ...     def close(self):
        ...         print("closed")
        >>> with File():
        ...     pass
        closed
    """

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Release the lock."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` for what is put together under that name; the caller renames it, or it is removed when the block ends.

    It is locked while the block lasts, so that what killed processes left can be told from what others work on.
    """
    _clear(path)
    partial = _partial(path)
    try:
        partial.mkdir()  # inside, since an interrupt may come when it is there
        with _locked(partial):
            yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """An empty file beside ``path``, as :func:`partial_folder` is a folder."""
    _clear(path)
    partial = _partial(path)
    try:
        partial.open("xb").close()
        with _locked(partial):
            yield partial
    finally:
        if partial.is_symlink() or partial.exists():
            partial.unlink()


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")


def _clear(path: Path) -> None:
    """Remove what killed processes left of the same name."""
    for leftover in path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * 8}{PARTIAL}"):
        with suppress(OSError), _locked(leftover):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The only lock of a file or folder, which ends with the process; BlockingIOError where another process has it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
