"""Compiled look-ups: blocks by their identifiers, units by their numbers, and numbers that repeat."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.files.fixed_width import fixed_layout, next_line

_START, _LENGTH = (
    fixed_layout("cef_unit").fields["OIDTB"].start,
    fixed_layout("cef_unit").fields["OIDTB"].width,
)
_WIDTH = fixed_layout("cef_unit").width
_Bytes = NDArray[np.uint8]
_Numbers = NDArray[np.int32]
_kernel = compiled()


@_kernel
def count_repeated(seen: NDArray[np.uint64], numbers: _Numbers) -> int:
    """Set the bits of some numbers; how many were set before. Negative ones are passed over."""
    repeated = 0
    for row in range(len(numbers)):
        if numbers[row] >= 0:
            word, bit = numbers[row] >> 6, np.uint64(1) << np.uint64(numbers[row] & 63)
            repeated += (seen[word] & bit) != 0
            seen[word] |= bit
    return repeated


@_kernel
def slot_of(key: int, mask: int) -> int:
    """Where a whole number is looked for first in a table of `mask` + 1 slots."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed >> np.uint64(32)) & mask)


class BlockTable(NamedTuple):
    """Blocks by the text of OIDTB: open addressing over the blocks in any order."""

    slots: _Numbers
    texts: _Bytes  # (blocks, characters of OIDTB), left-justified, zeros behind
    block: _Numbers  # position of the block in the spine


@_kernel
def _key(text: _Bytes, first: int, stop: int) -> int:
    """A whole number that depends on all characters."""
    key = np.uint64(0xCBF29CE484222325)
    for i in range(first, stop):
        key = (key ^ np.uint64(text[i])) * np.uint64(0x100000001B3)
    return int(np.int64(key >> np.uint64(1)))


@_kernel
def _same(stored: _Bytes, text: _Bytes, first: int, stop: int) -> bool:
    length = stop - first
    if length < len(stored) and stored[length] != 0:
        return False
    i = 0
    while i < length and stored[i] == text[first + i]:
        i += 1
    return i == length


@_kernel
def _fill_blocks(slots: _Numbers, texts: _Bytes) -> int:
    """Enter the texts; how many are there already."""
    mask = len(slots) - 1
    repeated = 0
    for row in range(len(texts)):
        stop = 0
        while stop < texts.shape[1] and texts[row, stop] != 0:
            stop += 1
        slot = slot_of(_key(texts[row], 0, stop), mask)
        while slots[slot] >= 0 and not _same(texts[slots[slot]], texts[row], 0, stop):
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            repeated += 1
        else:
            slots[slot] = row
    return repeated


def block_table(texts: _Bytes, block: _Numbers) -> tuple[BlockTable, int]:
    """A table of blocks by OIDTB, and how many texts are given twice.

    Args:
        texts: shape (blocks, characters of OIDTB), left-justified, zeros behind.
        block: position in the spine of each, shape (blocks,).
    """
    slots = empty_slots(len(texts))
    repeated = _fill_blocks(slots, texts)
    return BlockTable(slots, texts, block), repeated


def empty_slots(items: int) -> _Numbers:
    """An empty table of 2^k slots, at least twice as many as items."""
    return np.full(1 << max(4, (2 * items - 1).bit_length()), -1, np.int32)


@_kernel
def find_block(table: BlockTable, text: _Bytes, first: int, stop: int) -> int:
    """Position of the block whose OIDTB stands there between blanks, or -1."""
    while first < stop and text[first] == 32:
        first += 1
    while stop > first and text[stop - 1] == 32:
        stop -= 1
    mask = len(table.slots) - 1
    slot = slot_of(_key(text, first, stop), mask)
    while table.slots[slot] >= 0:
        row = table.slots[slot]
        if _same(table.texts[row], text, first, stop):
            return table.block[row]
        slot = (slot + 1) & mask
    return -1


@_kernel
def _line_blocks(text: _Bytes, table: BlockTable, out: _Numbers) -> None:
    at, before, row, block = 0, 0, 0, -1
    while at < len(text):
        length, after = next_line(text, at, _WIDTH)
        if length == _WIDTH:
            i = _LENGTH - 1  # the last characters differ most
            while i >= 0 and text[before + _START + i] == text[at + _START + i]:
                i -= 1
            if block < 0 or i >= 0:  # a unit often is in the block of the one before
                block = find_block(table, text, at + _START, at + _START + _LENGTH)
            out[row] = block
            before = at
            row += 1
        at = after


def line_blocks(text: _Bytes, table: BlockTable, rows: int) -> _Numbers:
    """Positions of the blocks of units, one value a record of the right length, -1 where there is none."""
    out = np.empty(rows, np.int32)
    _line_blocks(text, table, out)
    return out


@_kernel
def enter_units(slots: _Numbers, mafid: _Numbers) -> int:
    """Enter units by MAFID into an empty table of 2^k slots; how many have the number of an earlier one."""
    mask = len(slots) - 1
    repeated = 0
    for row in range(len(mafid)):
        if mafid[row] < 0:
            continue
        slot = slot_of(mafid[row], mask)
        while slots[slot] >= 0 and mafid[slots[slot]] != mafid[row]:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = row
        else:
            repeated += 1
    return repeated


@_kernel
def find_units(slots: _Numbers, mafid: _Numbers, numbers: _Numbers, position: _Numbers) -> None:
    """Position of the units with some numbers, -1 where there is none.

    Args:
        slots: of :func:`enter_units`.
    """
    mask, unit = len(slots) - 1, -1
    for row in range(len(numbers)):
        number = numbers[row]
        if unit < 0 or mafid[unit] != number:
            slot = slot_of(number, mask)
            while slots[slot] >= 0 and mafid[slots[slot]] != number:
                slot = (slot + 1) & mask
            unit = slots[slot]
        position[row] = unit
