"""Compiled pieces shared by the kernels that parse fixed-width records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled

__all__ = ["blank", "mark", "next_line", "number", "slot_of"]

_Bytes = NDArray[np.uint8]
_kernel = compiled()


@_kernel
def next_line(text: _Bytes, place: int, width: int) -> tuple[int, int]:
    """Characters of the line at `place`, without its line end, and where the next line starts.

    A line of the right length is told by the byte behind it; others are searched.
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


@_kernel
def number(text: _Bytes, place: int, digits: int) -> int:
    """A field of decimal digits, with leading blanks or zeros; -1 for anything else or only blanks."""
    value = 0
    seen = False
    for i in range(place, place + digits):
        character = int(text[i])
        if character == 32 and not seen:
            continue
        if character < 48 or character > 57:
            return -1
        seen = True
        value = value * 10 + character - 48
    return value if seen else -1


@_kernel
def blank(text: _Bytes, place: int, characters: int) -> bool:
    """Whether a field holds blanks only."""
    stop = place + characters
    while place < stop and text[place] == 32:
        place += 1
    return place == stop


@_kernel
def mark(seen: NDArray[np.uint64], item: int) -> bool:
    """Set the bit of an item; whether it was set before."""
    word, bit = item >> 6, np.uint64(1) << np.uint64(item & 63)
    if seen[word] & bit:
        return True
    seen[word] |= bit
    return False


@_kernel
def slot_of(key: int, mask: int) -> int:
    """Where a whole number is looked for first in a table of `mask` + 1 slots."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed >> np.uint64(32)) & mask)
