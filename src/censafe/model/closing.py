"""What is opened in a ``with`` block and closes itself at its end: files, keys, records, and folders that are put together."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["PARTIAL", "Closing", "partial_folder"]

PARTIAL: Final = ".partial"
"""How the names of files and folders end that are not complete."""


class Closing(ABC):
    """Base of what holds a file, a key or records: a ``with`` block ends with its ``close``.

    Example:
        >>> class Door(Closing):
        ...     def close(self):
        ...         print("closed")
        >>> with Door():
        ...     pass
        closed
    """

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give up what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def partial_folder(path: Path, *, clear: bool = True) -> Iterator[Path]:
    """A folder beside ``path`` for what is put together under that name; the caller renames it, or it is removed when the block ends.

    It is locked while the block lasts, so that what killed processes left can be told from what others work on.

    Args:
        path: final name; its parent is there.
        clear: whether folders for the same name are removed that killed processes left.

    Raises:
        OSError: it cannot be made.
    """
    for leftover in path.parent.glob(f".{path.name}.*{PARTIAL}") if clear else ():
        with suppress(OSError), _locked(leftover):
            shutil.rmtree(leftover)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    partial.mkdir()
    try:
        with _locked(partial):
            yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The only lock of a folder, which ends with the process; BlockingIOError where another process has it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
