"""Files of many gigabytes: hashed as they are written, and without a copy in the page cache."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any, BinaryIO, Final

from censafe.publication.atomic import atomic_write

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
