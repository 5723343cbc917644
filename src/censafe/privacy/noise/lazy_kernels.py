"""Compiled kernels of answers that are drawn when they are asked for."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, types, uint64, void

from censafe.model.compiled import compiled
from censafe.privacy.proofs import proven

__all__ = ["add_counts", "decode_words", "fill_wanted", "list_blocks"]

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_TOP = np.uint64(63)


def _read(kind: object) -> types.Array:
    return types.Array(kind, 1, "C", readonly=True)


@proven("../measure/lazy.proof.md", digest="5680f87cadb49257")
@compiled(int64(_read(int64), _read(int32), _read(int32), _read(uint64), int64[::1], uint64[::1], int32[::1]))
def list_blocks(answer_ptr, query, answer, heads, block_ptr, blocks, word):  # type: ignore[no-untyped-def]
    """List the cipher blocks that hold the wanted answers of every parent.

    Args:
        answer_ptr: of the wanted answers.
        query: ordinal of every answer.
        answer: position of every answer in its query.
        heads: first word of an address without a block number, of every query.
        block_ptr: shape (parents + 1,), written: where the blocks of every parent start.
        blocks: shape (answers,), written: first words of the addresses; neighbours of one block share it.
        word: shape (answers,), written: place of every answer's word among the words of its parent.

    Returns:
        The number of blocks of all parents.
    """
    used = 0
    for parent in range(len(answer_ptr) - 1):
        start = used
        block_ptr[parent] = start
        for i in range(answer_ptr[parent], answer_ptr[parent + 1]):
            address = heads[query[i]] | np.uint64(answer[i] >> 1)
            if used == start or blocks[used - 1] != address:
                blocks[used] = address
                used += 1
            word[i] = 2 * (used - 1 - start) + (answer[i] & 1)
    block_ptr[len(answer_ptr) - 1] = used
    return used


@proven("../measure/lazy.proof.md", digest="aa7e8d74077db09f")
@compiled(void(int64, int64, int64, _read(int64), _read(int64), _read(int64), _read(uint64), uint64[:, ::1]))
def fill_wanted(parent, first, last, child_ptr, child, block_ptr, blocks, counters):  # type: ignore[no-untyped-def]
    """Write the counter blocks of a range of children, which starts with a child of `parent`.

    Args:
        parent: of the first child.
        first: of the children.
        last: one past the last of them.
        child_ptr: children of every parent.
        child: position of every child in its level.
        block_ptr: blocks of every parent.
        blocks: first words of their addresses.
        counters: shape (counters, 2), written.
    """
    index = 0
    for entry in range(first, last):
        while entry >= child_ptr[parent + 1]:
            parent += 1
        geounit = np.uint64(child[entry])
        for i in range(block_ptr[parent], block_ptr[parent + 1]):
            counters[index, 0] = blocks[i]
            counters[index, 1] = geounit
            index += 1


@proven("../measure/lazy.proof.md", digest="2a9bf41b1e6d8fcd")
@compiled(
    int64(
        int64, int64, int64,
        _read(int64), _read(int64), _read(int64), _read(int64), _read(int32), _read(int32), _read(int32),
        types.Array(int64, 3, "C", readonly=True), _read(uint64), _read(uint64), int64[::1],
    )
)  # fmt: skip
def decode_words(  # type: ignore[no-untyped-def]
    parent,
    first,
    last,
    child_ptr,
    child,
    block_ptr,
    answer_ptr,
    query,
    word,
    kinds,
    tables,
    entries,
    words,
    out,
):
    """Turn the words of a range of children into signed draws, without a branch that depends on them.

    Args:
        parent: of the first child.
        first: of the children.
        last: one past the last of them.
        child_ptr: children of every parent.
        child: position of every child in its level.
        block_ptr: blocks of every parent.
        answer_ptr: wanted answers of every parent.
        query: ordinal of every answer.
        word: place of every answer's word among the words of its parent.
        kinds: kind of every geounit of the level.
        tables: shape (kinds, queries, 3): first entry, column bits and width of the alias table; width 0 where there is none.
        entries: packed alias tables, one after another.
        words: of the children, two for each block.
        out: written, an answer a place; 0 where there is no table. A magnitude of all ones stands for a residual draw.

    Returns:
        1 when some value stands for a residual draw, else 0.
    """
    flag = _ZERO
    base, place = 0, 0
    for entry in range(first, last):
        while entry >= child_ptr[parent + 1]:
            parent += 1
        kind = kinds[child[entry]]
        i, end = answer_ptr[parent], answer_ptr[parent + 1]
        while i < end:
            ordinal = query[i]
            start, bits, width = tables[kind, ordinal, 0], tables[kind, ordinal, 1], tables[kind, ordinal, 2]
            b = np.uint64(bits)
            last_column = (_ONE << b) - _ONE
            shift = np.uint64(width - bits)
            mask = (_ONE << shift) - _ONE
            while i < end and query[i] == ordinal:
                if width == 0:
                    out[place] = 0
                else:
                    one = words[base + word[i]]
                    magnitude_bits = one >> _ONE
                    column = (magnitude_bits >> shift) & last_column
                    packed = entries[start + np.int64(column)]
                    alias = packed & last_column
                    take_column = _ZERO - (((magnitude_bits & mask) - (packed >> b)) >> _TOP)
                    magnitude = alias ^ ((alias ^ column) & take_column)
                    flag |= ((magnitude ^ last_column) - _ONE) >> _TOP
                    sign = _ZERO - (one & _ONE)
                    out[place] = np.int64((magnitude ^ sign) - sign)
                place += 1
                i += 1
        base += 2 * (block_ptr[parent + 1] - block_ptr[parent])
    return np.int64(flag)


@proven("../measure/lazy.proof.md", digest="3078ef13522f6796")
@compiled(void(int64, int64, _read(int32), _read(int32), _read(int64), boolean, int32[::1]))
def _mark(start, end, query, answer, offsets, wanted, slot):  # type: ignore[no-untyped-def]
    """Note the places of the wanted answers of a parent, or take them away."""
    for i in range(start, end):
        slot[offsets[query[i]] + answer[i]] = i - start if wanted else -1


@proven("../measure/lazy.proof.md", digest="d821eb6d0b1d33cc")
@compiled(
    boolean(
        int64, int64, int64,
        _read(int64), _read(int64), _read(int64), _read(int32), _read(int32), _read(int32),
        types.Array(boolean, 2, "C", readonly=True),
        _read(int64), _read(int32), _read(int32), types.Array(int32, 2, "C", readonly=True), _read(int64),
        int32[::1], int64[::1],
    )
)  # fmt: skip
def add_counts(  # type: ignore[no-untyped-def]
    parent, first, last, child_ptr, child, answer_ptr, query, answer, kinds, measured,
    node_ptr, cell, count, labels, offsets, slot, out,
):  # fmt: skip
    """CONFIDENTIAL. Add the true answers of a range of children to their noise.

    Args:
        parent: of the first child.
        first: of the children.
        last: one past the last of them.
        child_ptr: children of every parent.
        child: position of every child in its level.
        answer_ptr: wanted answers of every parent.
        query: ordinal of every answer.
        answer: position of every answer in its query.
        kinds: kind of every geounit of the level.
        measured: shape (kinds, queries), which queries are measured.
        node_ptr: of the exact histograms.
        cell: of the exact histograms.
        count: of the exact histograms.
        labels: shape (cells, queries), answer of every cell in every query, plus the offset of the query.
        offsets: number of answers of all queries before each query, shape (queries,).
        slot: all -1, as long as all queries have answers; all -1 again afterwards.
        out: noise, to which counts are added.

    Returns:
        Whether a sum did not fit 64 bits.
    """
    wrapped = False
    base = 0
    loaded = -1
    for entry in range(first, last):
        while entry >= child_ptr[parent + 1]:
            parent += 1
        start, answers = answer_ptr[parent], answer_ptr[parent + 1] - answer_ptr[parent]
        if loaded != parent:
            if loaded >= 0:
                _mark(answer_ptr[loaded], answer_ptr[loaded + 1], query, answer, offsets, False, slot)
            _mark(start, start + answers, query, answer, offsets, True, slot)
            loaded = parent
        node = child[entry]
        kind = kinds[node]
        for place in range(node_ptr[node], node_ptr[node + 1]):
            for ordinal in range(labels.shape[1]):
                i = slot[labels[cell[place], ordinal]]
                if i >= 0 and measured[kind, ordinal]:
                    # the compiler takes a signed sum not to wrap, and would leave the comparison out
                    total = np.int64(np.uint64(out[base + i]) + np.uint64(count[place]))
                    wrapped |= total < out[base + i]
                    out[base + i] = total
        base += answers
    if loaded >= 0:
        _mark(answer_ptr[loaded], answer_ptr[loaded + 1], query, answer, offsets, False, slot)
    return wrapped
