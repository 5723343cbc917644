"""Compiled kernels of the noise path; ``numpy_kernels.py`` has the same functions in plain numpy.

Importing this module loads the compiler's cached machine code. Only ``sampler`` and ``wide`` do so, at the
first draw, so that planning and accounting start without it.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64, void

from censafe.model.compiled import compiled
from censafe.model.proven import proven

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_TOP = np.uint64(63)
_INPUT = types.Array(uint64, 1, "C", readonly=True)


@proven("sampler.proof.md", digest="ded57247c1cc86b0")
@compiled(void(_INPUT, int64, int64, uint64, uint64[:, ::1]))
def fill_counters(geounits, first, per_row, head, counters):  # type: ignore[no-untyped-def]
    """Write counter blocks of a (geounit, block) grid; see ``numpy_kernels.fill_counters``."""
    row = first // per_row
    column = first - row * per_row
    index = 0
    while index < counters.shape[0]:
        stop = min(counters.shape[0], index + per_row - column)
        geounit = geounits[row]
        start = head | np.uint64(column)
        for offset in range(stop - index):
            counters[index + offset, 0] = start + np.uint64(offset)
            counters[index + offset, 1] = geounit
        index = stop
        column = 0
        row += 1


@proven("sampler.proof.md", digest="a0661e81ff091503")
@compiled(int64(uint64[::1], int64, int64, int64))
def drop_odd_halves(words, first, blocks, per_row):  # type: ignore[no-untyped-def]
    """Move words together without the unused halves; see ``numpy_kernels.drop_odd_halves``."""
    column = first % per_row
    remaining = 0
    for block in range(blocks):
        words[remaining] = words[2 * block]
        remaining += 1
        column += 1
        if column == per_row:
            column = 0
        else:
            words[remaining] = words[2 * block + 1]
            remaining += 1
    return remaining


@proven("alias.proof.md", digest="046565b78106b943")
@compiled(int64(_INPUT, _INPUT, int64, int64, int64[::1]))
def map_words(words, entries, bits, width, out):  # type: ignore[no-untyped-def]
    """Turn words into signed draws, without a branch that depends on them; see ``numpy_kernels.map_words``."""
    b = np.uint64(bits)
    last = (_ONE << b) - _ONE
    shift = np.uint64(width - bits)
    mask = (_ONE << shift) - _ONE
    flag = _ZERO
    for index in range(words.shape[0]):
        word = words[index]
        magnitude_bits = word >> _ONE
        column = (magnitude_bits >> shift) & last  # never outside the table, whatever the width
        entry = entries[column]
        alias = entry & last
        take_column = _ZERO - (((magnitude_bits & mask) - (entry >> b)) >> _TOP)
        magnitude = alias ^ ((alias ^ column) & take_column)
        flag |= ((magnitude ^ last) - _ONE) >> _TOP
        sign = _ZERO - (word & _ONE)
        out[index] = np.int64((magnitude ^ sign) - sign)
    return np.int64(flag)
