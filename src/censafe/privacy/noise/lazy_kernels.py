"""Compiled kernels of answers that are drawn when they are read."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
from numba import boolean, int32, int64, uint64, void
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays, read_only_type, sparse_type, tuple_type
from censafe.model.proven import proven

_Ints = NDArray[np.int64]
_Narrow = NDArray[np.int32]

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_TOP = np.uint64(63)


class AnswerWords(NamedTuple):
    """Answers to read of the children of some parents, and the cipher blocks that hold their words; read-only arrays."""

    child_ptr: _Ints  # (parents + 1,) where the children of every parent start
    child: _Ints  # position of every child in its level
    answer_ptr: _Ints  # (parents + 1,) where the answers of every parent start
    query: _Narrow  # ordinal of the query of every answer
    answer: _Narrow  # position of every answer in its query
    block_ptr: _Ints  # (parents + 1,) where the blocks of every parent start
    blocks: NDArray[np.uint64]  # first words of their addresses
    word: _Narrow  # place of every answer's word among the words of its parent


class AliasEntries(NamedTuple):
    """The alias tables of all queries; read-only arrays."""

    kinds: _Narrow  # kind of every geounit of the level
    where: _Ints  # (kinds, queries, 3) first entry, column bits and width of the table; width 0 where there is none
    entries: NDArray[np.uint64]  # packed tables, one after another


class ExactAnswers(NamedTuple):
    """CONFIDENTIAL. Exact histograms of a level and the answers to which their cells count; read-only arrays."""

    kinds: _Narrow  # kind of every geounit of the level
    measured: NDArray[np.bool_]  # (kinds, queries) which queries are measured
    cells: SparseArrays  # exact histograms, by number of the cell
    labels: _Narrow  # (cells that occur, queries) answer of every cell, plus the offset of the query
    offsets: _Ints  # (queries,) number of answers of all queries before each query

    def __repr__(self) -> str:
        return f"ExactAnswers({self.cells!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact histograms are confidential and cannot be pickled")


_ANSWERS = tuple_type(
    AnswerWords,
    read_only_type(int64),
    read_only_type(int64),
    read_only_type(int64),
    read_only_type(int32),
    read_only_type(int32),
    read_only_type(int64),
    read_only_type(uint64),
    read_only_type(int32),
)
_ENTRIES = tuple_type(AliasEntries, read_only_type(int32), read_only_type(int64, 3), read_only_type(uint64))
EXACT_TYPE = tuple_type(
    ExactAnswers, read_only_type(int32), read_only_type(boolean, 2), sparse_type(), read_only_type(int32, 2),
    read_only_type(int64),
)  # fmt: skip


@proven("../measure/lazy.proof.md", digest="5680f87cadb49257")
@compiled(
    int64(
        read_only_type(int64),
        read_only_type(int32),
        read_only_type(int32),
        read_only_type(uint64),
        int64[::1],
        uint64[::1],
        int32[::1],
    )
)
def list_blocks(answer_ptr, query, answer, heads, block_ptr, blocks, word):  # type: ignore[no-untyped-def]
    """List the cipher blocks that hold the answers of every parent.

    Args:
        answer_ptr: of the answers.
        query: ordinal of every answer.
        answer: position of every answer in its query.
        heads: first word of an address without a block number, of every query.
        block_ptr: shape (parents + 1,), written: where the blocks of every parent start.
        blocks: shape (answers,), written: first words of the addresses; neighbors of one block share it.
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


@proven("../measure/lazy.proof.md", digest="31cd85629731f75a")
@compiled(void(_ANSWERS, int64, int64, int64, uint64[:, ::1]))
def fill_words(answers, parent, first, last, counters):  # type: ignore[no-untyped-def]
    """Write the counter blocks of a range of children, which starts with a child of `parent`.

    Args:
        answers: with their blocks.
        parent: of the first child.
        first: of the children.
        last: one past the last of them.
        counters: shape (counters, 2), written.
    """
    child_ptr, child, block_ptr, blocks = answers.child_ptr, answers.child, answers.block_ptr, answers.blocks
    index = 0
    for entry in range(first, last):
        while entry >= child_ptr[parent + 1]:
            parent += 1
        geounit = np.uint64(child[entry])
        for i in range(block_ptr[parent], block_ptr[parent + 1]):
            counters[index, 0] = blocks[i]
            counters[index, 1] = geounit
            index += 1


@proven("../measure/lazy.proof.md", digest="9d62520deca2f155")
@compiled(int64(_ANSWERS, _ENTRIES, int64, int64, int64, read_only_type(uint64), int64[::1]))
def decode_words(answers, alias, parent, first, last, words, out):  # type: ignore[no-untyped-def]
    """Turn the words of a range of children into signed draws, without a branch that depends on them.

    Args:
        answers: with the places of their words.
        alias: tables of the laws.
        parent: of the first child.
        first: of the children.
        last: one past the last of them.
        words: of the children, two for each block.
        out: written, an answer a place; 0 where there is no table. A magnitude of all ones stands for a residual draw.

    Returns:
        1 when some value stands for a residual draw, else 0.
    """
    child_ptr, child, kinds = answers.child_ptr, answers.child, alias.kinds
    answer_ptr, block_ptr, query, word = answers.answer_ptr, answers.block_ptr, answers.query, answers.word
    where, entries = alias.where, alias.entries
    flag = _ZERO
    base, place = 0, 0
    for entry in range(first, last):
        while entry >= child_ptr[parent + 1]:
            parent += 1
        kind = kinds[child[entry]]
        i, end = answer_ptr[parent], answer_ptr[parent + 1]
        while i < end:
            ordinal = query[i]
            start, bits, width = where[kind, ordinal, 0], where[kind, ordinal, 1], where[kind, ordinal, 2]
            b = np.uint64(bits)
            last_column = (_ONE << b) - _ONE
            shift = np.uint64(width - bits)
            mask = (_ONE << shift) - _ONE
            while i < end and query[i] == ordinal:
                if width == 0:
                    out[place] = 0
                else:
                    drawn = words[base + word[i]]
                    magnitude_bits = drawn >> _ONE
                    column = (magnitude_bits >> shift) & last_column
                    packed = entries[start + np.int64(column)]
                    other = packed & last_column
                    take_column = _ZERO - (((magnitude_bits & mask) - (packed >> b)) >> _TOP)
                    magnitude = other ^ ((other ^ column) & take_column)
                    flag |= ((magnitude ^ last_column) - _ONE) >> _TOP
                    sign = _ZERO - (drawn & _ONE)
                    out[place] = np.int64((magnitude ^ sign) - sign)
                place += 1
                i += 1
        base += 2 * (block_ptr[parent + 1] - block_ptr[parent])
    return np.int64(flag)


@proven("../measure/lazy.proof.md", digest="246ef386b1003dac")
@compiled(void(_ANSWERS, read_only_type(int64), int64, boolean, int32[::1]))
def _place_answers(answers, offsets, parent, present, slot):  # type: ignore[no-untyped-def]
    """Write the places of the answers of a parent, or -1 in their stead."""
    start = answers.answer_ptr[parent]
    for i in range(start, answers.answer_ptr[parent + 1]):
        slot[offsets[answers.query[i]] + answers.answer[i]] = i - start if present else -1


@proven("../measure/lazy.proof.md", digest="2cb023bf5d5cfa9b")
@compiled(boolean(_ANSWERS, EXACT_TYPE, int64, int64, int64, int32[::1], int64[::1]))
def add_counts(answers, exact, parent, first, last, slot, out):  # type: ignore[no-untyped-def]
    """CONFIDENTIAL. Add the true answers of a range of children to their noise.

    Args:
        answers: what to read.
        exact: histograms and the answers to which their cells count.
        parent: of the first child.
        first: of the children.
        last: one past the last of them.
        slot: all -1, as long as all queries have answers; all -1 at the end.
        out: noise, to which counts are added.

    Returns:
        Whether a sum did not fit 64 bits.
    """
    child_ptr, child, answer_ptr = answers.child_ptr, answers.child, answers.answer_ptr
    kinds, measured, labels = exact.kinds, exact.measured, exact.labels
    node_ptr, cell, count = exact.cells.node_ptr, exact.cells.cell, exact.cells.records
    wrapped = False
    base = 0
    loaded = -1
    for entry in range(first, last):
        while entry >= child_ptr[parent + 1]:
            parent += 1
        if loaded != parent:
            if loaded >= 0:
                _place_answers(answers, exact.offsets, loaded, False, slot)
            _place_answers(answers, exact.offsets, parent, True, slot)
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
        base += answer_ptr[parent + 1] - answer_ptr[parent]
    if loaded >= 0:
        _place_answers(answers, exact.offsets, loaded, False, slot)
    return wrapped
