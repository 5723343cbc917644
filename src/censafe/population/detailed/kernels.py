"""Compiled kernels of the reader: texts to numbers, rows to blocks and combinations, combinations to ordinals.

Every row has a set of fault bits: one for each column of the layout, then those named here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled

AFTER_NULL = 17  # a code after the first Null
FIRST_UNKNOWN = 18  # and the next 8: the codes list lacks the code
TOO_MANY = 27  # more race codes than max_race_codes
BLOCK_ABSENT = 28  # GRF-C lacks the block
OUTSIDE = np.int32(-2)  # block of a row of a state outside the filter

_kernel = compiled()
RACES = 8
_CODE_BITS = np.uint64(14)
_HALF = np.uint64(7)
_LOW_HALF = np.uint64(127)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_S29, _S32 = np.uint64(29), np.uint64(32)


@_kernel
def decode_texts(
    values: NDArray[np.int32],
    positions: NDArray[np.int32],
    bit: int,
    fill: int,
    out: NDArray[np.int32],
    faults: NDArray[np.uint32],
) -> None:
    """Look up numbers of dictionary-encoded texts; a negative one becomes ``fill`` and sets a fault bit."""
    mark = np.uint32(1) << np.uint32(bit)
    for row in range(len(positions)):
        value = values[positions[row]]
        if value < 0:
            faults[row] |= mark
            value = np.int32(fill)
        out[row] = value


@_kernel
def _position(values: NDArray[np.int64], low: int, high: int, value: int) -> int:
    """Position of a value among sorted ones from ``low`` up to, not including, ``high``; -1 when absent."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == value else -1


@_kernel
def find_blocks(
    block: NDArray[np.int32],
    keep: NDArray[np.bool_],
    block_bits: int,
    keys: NDArray[np.int64],
    tracts: NDArray[np.int64],
    starts: NDArray[np.int64],
    faults: NDArray[np.uint32],
    ordinal: NDArray[np.int32],
) -> None:
    """Find the block of every row, setting a fault bit where GRF-C lacks it.

    Args:
        keys: sorted block numbers.
        tracts: sorted tract numbers.
    """
    absent = np.uint32(1) << np.uint32(BLOCK_ABSENT)
    last_tract, last = np.int64(-1), np.int64(-1)  # records of a tract mostly follow each other
    for row in range(len(ordinal)):
        if not keep[block[0, row]]:
            ordinal[row] = OUTSIDE
            continue
        if faults[row] & np.uint32(block_bits):
            ordinal[row] = -1
            continue
        tract = (np.int64(block[0, row]) * 1000 + block[1, row]) * 1000000 + block[2, row]
        if tract != last_tract:
            last_tract = tract
            last = _position(tracts, 0, len(tracts), tract)
        position = np.int64(-1)
        if last >= 0:
            position = _position(keys, starts[last], starts[last + 1], tract * 10000 + block[3, row])
        ordinal[row] = position
        if position < 0:
            faults[row] |= absent


@_kernel
def _check_codes(codes: NDArray[np.int32], known: NDArray[np.bool_], most: int, row: int) -> np.uint32:
    """Fault bits of the codes of a row inside the filter."""
    bit = np.uint32(1)
    faults = np.uint32(0)
    nulls = 0
    for k in range(RACES + 1):
        code = codes[k, row]
        nulls += k < RACES and code == 0
        if nulls and code > 0 and k < RACES:
            faults |= bit << np.uint32(AFTER_NULL)
        if code > 0 and not known[code]:
            faults |= bit << np.uint32(FIRST_UNKNOWN + k)
    if RACES - nulls > most:
        faults |= bit << np.uint32(TOO_MANY)
    return faults


@_kernel
def pack_codes(
    codes: NDArray[np.int32],
    known: NDArray[np.bool_],
    most: int,
    ordinal: NDArray[np.int32],
    faults: NDArray[np.uint32],
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
) -> None:
    """Pack the codes of every row into 126 bits, setting fault bits of rows inside the filter.

    Args:
        codes: eight race codes and the origin code, 0 for Null, -1 for a faulty one, ``(9, rows)``.
    """
    for row in range(len(ordinal)):
        packed_high, packed_low = np.uint64(0), np.uint64(0)
        for k in range(RACES):
            code = np.uint64(max(codes[k, row], 0) if k < most else 0)
            if k < 4:
                packed_high = (packed_high << _CODE_BITS) | code
            else:
                packed_low = (packed_low << _CODE_BITS) | code
        span = np.uint64(max(codes[RACES, row], 0))
        high[row] = (packed_high << _HALF) | (span >> _HALF)
        low[row] = (packed_low << _HALF) | (span & _LOW_HALF)
        if ordinal[row] != OUTSIDE:
            faults[row] |= _check_codes(codes, known, most, row)


@_kernel
def _slot(high: np.uint64, low: np.uint64, mask: int) -> np.int64:
    mixed = (np.uint64(high) ^ (np.uint64(low) * _MIX_1)) * _MIX_2
    mixed ^= mixed >> _S29
    mixed *= _MIX_1
    return np.int64((mixed >> _S32) & np.uint64(mask))


@_kernel
def intern(
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    slots: NDArray[np.int32],
    seen_high: NDArray[np.uint64],
    seen_low: NDArray[np.uint64],
    start: int,
    count: int,
    out: NDArray[np.int32],
) -> tuple[int, int]:
    """Number combinations in the order of their first appearance, until the table is full.

    Args:
        slots: hash table of ordinals, -1 for empty; its length is a power of two.
    """
    mask = len(slots) - 1
    room = len(seen_high)
    before = np.int32(-1)
    for row in range(start, len(high)):
        h, w = high[row], low[row]
        if before >= 0 and seen_high[before] == h and seen_low[before] == w:
            out[row] = before
            continue
        slot = _slot(h, w, mask)
        while True:
            entry = slots[slot]
            if entry < 0:
                if count == room:
                    return row, count
                seen_high[count], seen_low[count] = h, w
                slots[slot] = entry = np.int32(count)
                count += 1
                break
            if seen_high[entry] == h and seen_low[entry] == w:
                break
            slot = (slot + 1) & mask
        out[row] = before = entry
    return len(high), count


@_kernel
def rehash(
    slots: NDArray[np.int32], seen_high: NDArray[np.uint64], seen_low: NDArray[np.uint64], count: int
) -> None:
    """Fill an empty hash table with the combinations numbered so far."""
    mask = len(slots) - 1
    for ordinal in range(count):
        slot = _slot(seen_high[ordinal], seen_low[ordinal], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = ordinal
