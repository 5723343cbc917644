"""Files of lines as chunks of whole lines, read ahead of the kernels that parse them, and the pieces these share."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.model.compiled import compiled

_Bytes = NDArray[np.uint8]
_kernel = compiled()


@_kernel
def next_line(text: _Bytes, place: int, width: int) -> tuple[int, int]:
    """Characters of the line at `place`, without its line end, and where the next line starts.

    A line of the right length is recognized by the byte behind it; others are searched.
    """
    size = len(text)
    end = place + width
    if end < size and text[end] == 10:
        return width, end + 1
    if end + 1 < size and text[end] == 13 and text[end + 1] == 10:
        return width, end + 2
    stop = place
    while stop < size and text[stop] != 10:
        stop += 1
    length = stop - place
    if length and stop < size and text[stop - 1] == 13:
        length -= 1
    return length, stop + 1


CHUNK_BYTES = 1 << 22
_FRONT = 1 << 12  # room for what is left of the chunk before, longer than any record
_AT_ONCE = 1 << 20
_LONGEST = 1 << 26
_LINE_FEED = 10
_GZIP = b"\x1f\x8b"


def line_chunks(path: Path) -> Iterator[_Bytes]:
    """The lines of a file, some megabytes of whole lines at a time; gzip is recognized by its first bytes."""
    carry = np.zeros(0, np.uint8)
    size = CHUNK_BYTES
    buffers = [np.empty(_FRONT + size, np.uint8) for _ in range(2)]
    try:
        with _opened(path) as stream, ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(_read, stream, buffers[0][_FRONT:])
            turn = 0
            while read := coming.result():
                block = _behind(carry, buffers[turn], read)
                turn = 1 - turn
                coming = ahead.submit(_read, stream, buffers[turn][_FRONT:])
                stop = _complete_bytes(block)
                carry = block[stop:].copy()
                _require_lines(path, len(carry))
                if stop:
                    yield block[:stop]
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(
            f"{path.name}: the compressed file is cut short or damaged; allowed: a whole gzip file; fix: copy the file again"
        ) from None
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None
    if len(carry):
        yield carry


def _behind(carry: _Bytes, buffer: _Bytes, read: int) -> _Bytes:
    """What was left over, and behind it what was read; without copying what was read when the rest is short."""
    if len(carry) > _FRONT:
        return np.concatenate([carry, buffer[_FRONT : _FRONT + read]])
    buffer[_FRONT - len(carry) : _FRONT] = carry
    return buffer[_FRONT - len(carry) : _FRONT + read]


def _require_lines(path: Path, left: int) -> None:
    if left > _LONGEST:
        raise DataError(
            f"{path.name}: more than {_LONGEST:,} characters without a line feed; allowed: one record a line; fix: write the "
            "file again in its layout"
        )


def _complete_bytes(block: _Bytes) -> int:
    """Bytes up to and with the last line feed."""
    step = 4096
    for stop in range(len(block), 0, -step):
        feeds = np.flatnonzero(block[max(0, stop - step) : stop] == _LINE_FEED)
        if len(feeds):
            return max(0, stop - step) + int(feeds[-1]) + 1
    return 0


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as stream:
        packed = stream.read(2) == _GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _read(stream: BinaryIO, target: _Bytes) -> int:
    """Fill `target`; how many bytes there were."""
    view, done = target.data, 0
    while done < len(target) and (
        read := cast(io.BufferedIOBase, stream).readinto(view[done : done + _AT_ONCE])
    ):
        done += read
    return done
