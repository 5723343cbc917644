"""The kernels of ``kernels.py`` in plain numpy: the independent reference that tests compare bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.model.proven import proven

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


def fill_counters(
    geounits: NDArray[np.uint64], first: int, per_row: int, head: int, counters: NDArray[np.uint64]
) -> None:
    """Write counter blocks ``first``, ``first`` + 1, ... of a (geounit, block) grid with ``per_row`` columns.

    Args:
        geounits: uint64, the ordinals of the rows.
        counters: uint64, shape (blocks, 2), written.
    """
    rows, columns = np.divmod(np.arange(first, first + len(counters)), per_row)
    counters[:, 0] = columns.astype(np.uint64) | np.uint64(head)
    counters[:, 1] = geounits[rows]


def drop_odd_halves(words: NDArray[np.uint64], first: int, blocks: int, per_row: int) -> int:
    """Move words together so that the unused second half of the last block of every row is gone.

    Args:
        words: uint64, two words a block, changed in place.
    """
    last = np.arange(first, first + blocks) % per_row == per_row - 1
    keep = np.ones(2 * blocks, dtype=np.bool_)
    keep[1::2] = ~last
    remaining = words[: 2 * blocks][keep]
    words[: len(remaining)] = remaining
    return len(remaining)


@proven("alias.proof.md", digest="d0b25a3a11f5935c")
def map_words(
    words: NDArray[np.uint64], entries: NDArray[np.uint64], bits: int, width: int, out: NDArray[np.int64]
) -> int:
    """Turn words into signed draws through a packed alias table.

    Args:
        words: uint64; bit 0 is the sign, the next ``width`` bits choose column and fraction.
        entries: packed table of 2^bits columns.
        bits: number of column bits.
        width: number of magnitude bits.
        out: int64, one value a word; a value of magnitude 2^bits - 1 stands for a residual draw.

    Returns:
        1 when some value stands for a residual draw, else 0.
    """
    b, last = np.uint64(bits), np.uint64((1 << bits) - 1)
    magnitude_bits = words >> _ONE
    column = (magnitude_bits >> np.uint64(width - bits)) & last
    fraction = magnitude_bits & np.uint64((1 << (width - bits)) - 1)
    entry = entries[column]
    alias = entry & last
    take_column = _ZERO - ((fraction - (entry >> b)) >> np.uint64(63))
    magnitude = alias ^ ((alias ^ column) & take_column)
    sign = _ZERO - (words & _ONE)
    out[:] = ((magnitude ^ sign) - sign).view(np.int64)
    return int(np.any(magnitude == last))
