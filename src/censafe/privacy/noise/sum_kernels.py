"""Compiled kernels of sums of answers: noise is drawn and added up at once, so that no draw is ever stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, int32, int64, uint64, void
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.named_arrays import read_only_type, tuple_type
from censafe.model.proven import proven
from censafe.privacy.noise.kernels import map_words
from censafe.privacy.noise.lazy_kernels import EXACT_TYPE


class SummedWords(NamedTuple):
    """Pieces of consecutive answers, and the sum to which each answer is added; read-only arrays."""

    query: NDArray[np.int32]  # ordinal of the query of every piece
    first: NDArray[np.int32]  # first answer of every piece
    length: NDArray[np.int32]  # answers of every piece
    start: NDArray[np.int64]  # where they start in slot
    slot: NDArray[np.int32]  # sum of every answer
    heads: NDArray[np.uint64]  # first word of an address without a block number, of every query


class LawTables(NamedTuple):
    """The alias tables of the laws of one geounit; read-only arrays."""

    where: NDArray[np.int64]  # (queries, 3) first entry, column bits and width of the table; width 0 for none
    entries: NDArray[np.uint64]  # packed tables, one after another


TABLES_TYPE = tuple_type(LawTables, read_only_type(int64, 2), read_only_type(uint64))
SUMMED_TYPE = tuple_type(
    SummedWords, read_only_type(int32), read_only_type(int32), read_only_type(int32), read_only_type(int64),
    read_only_type(int32), read_only_type(uint64),
)  # fmt: skip


@proven("../measure/lazy.proof.md", digest="f52b5f255621d71e")
@compiled(int64(SUMMED_TYPE, int64, int64, uint64, uint64[:, ::1]))
def fill_summed(pieces, begin, end, geounit, counters):  # type: ignore[no-untyped-def]
    """Write the counter blocks of a range of pieces of one geounit.

    Args:
        pieces: of answers.
        begin: of the pieces.
        end: one past the last of them.
        geounit: position in the level.
        counters: shape (at least as many as blocks, 2), written.

    Returns:
        The number of blocks.
    """
    query, first, length, heads = pieces.query, pieces.first, pieces.length, pieces.heads
    index = 0
    for piece in range(begin, end):
        head = heads[query[piece]]
        low = np.int64(first[piece]) >> 1
        high = (np.int64(first[piece]) + length[piece] + 1) >> 1
        for block in range(low, high):
            counters[index, 0] = head | np.uint64(block)
            counters[index, 1] = geounit
            index += 1
    return index


@proven("../measure/lazy.proof.md", digest="5a4330a1032d5254")
@compiled(void(int64[::1], read_only_type(int32), int64[::1]))
def _add(draws, slot, sums):  # type: ignore[no-untyped-def]
    """Add every draw to its sum; those of neighbors that go to one sum are added up first."""
    current, total = slot[0], np.int64(0)
    for index in range(len(draws)):
        if slot[index] != current:
            sums[current] += total
            current, total = slot[index], np.int64(0)
        total += draws[index]
    sums[current] += total


@proven("../measure/lazy.proof.md", digest="a08a568bbd23e079")
@compiled(int64(SUMMED_TYPE, TABLES_TYPE, int64, int64, read_only_type(uint64), int64[::1], int64[::1]))
def add_draws(pieces, tables, begin, end, words, draws, sums):  # type: ignore[no-untyped-def]
    """Turn the words of a range of pieces into signed draws, and add each to its sum.

    Args:
        pieces: of answers.
        tables: of the laws of the geounit.
        begin: of the pieces.
        end: one past the last of them.
        words: of the pieces, two for each block.
        draws: as long as the words, written.
        sums: shape (sums,), added to.

    Returns:
        1 when some draw was a residual one, so that the sums are not complete; else 0.
    """
    query, first, length, start, slot = pieces.query, pieces.first, pieces.length, pieces.start, pieces.slot
    flag = np.int64(0)
    base, done, piece = np.int64(0), np.int64(0), begin
    while piece < end:
        ordinal, stop = query[piece], piece
        while stop < end and query[stop] == ordinal:
            base += 2 * (((np.int64(first[stop]) + length[stop] + 1) >> 1) - (np.int64(first[stop]) >> 1))
            stop += 1
        table, bits, width = tables.where[ordinal, 0], tables.where[ordinal, 1], tables.where[ordinal, 2]
        if width == 0:
            piece, done = stop, base
            continue
        flag |= map_words(words[done:base], tables.entries[table:], bits, width, draws[done:base])
        for place in range(piece, stop):
            draw, size = done + (np.int64(first[place]) & 1), np.int64(length[place])
            done += 2 * (((np.int64(first[place]) + size + 1) >> 1) - (np.int64(first[place]) >> 1))
            _add(draws[draw : draw + size], slot[start[place] : start[place] + size], sums)
        piece = stop
    return flag


@proven("../measure/lazy.proof.md", digest="935c756f6d5e0a71")
@compiled(boolean(SUMMED_TYPE, int64, read_only_type(int64), read_only_type(int64), int32[::1]))
def place_sums(pieces, sums, sizes, offsets, slot):  # type: ignore[no-untyped-def]
    """Write the sum of every listed answer.

    Args:
        pieces: of answers.
        sums: how many there are.
        sizes: answers of every query.
        offsets: number of answers of all queries before each query.
        slot: all -1, as long as all queries have answers; written.

    Returns:
        Whether every piece is of answers and sums that there are, and no answer is added twice.
    """
    for piece in range(len(pieces.query)):
        query, first, start = pieces.query[piece], np.int64(pieces.first[piece]), pieces.start[piece]
        length = np.int64(pieces.length[piece])
        if query < 0 or query >= len(sizes) or first < 0 or length < 1 or first + length > sizes[query]:
            return False
        if start < 0 or start + length > len(pieces.slot):
            return False
        answer = offsets[query] + first
        for i in range(length):
            place = pieces.slot[start + i]
            if place < 0 or place >= sums or slot[answer + i] >= 0:
                return False
            slot[answer + i] = place
    return True


@proven("../measure/lazy.proof.md", digest="c8c48bb0ad0a5d83")
@compiled(boolean(EXACT_TYPE, int64, read_only_type(int32), int64[::1]))
def add_summed_counts(exact, node, slot, sums):  # type: ignore[no-untyped-def]
    """CONFIDENTIAL. Add the true answers of a geounit to the sums of their noise.

    Args:
        exact: histograms and the answers to which their cells count.
        node: position of the geounit.
        slot: sum of every answer of all queries, -1 for none.
        sums: of noise, to which counts are added.

    Returns:
        Whether a sum did not fit 64 bits.
    """
    measured, labels = exact.measured, exact.labels
    node_ptr, cell, count = exact.cells.node_ptr, exact.cells.cell, exact.cells.records
    kind = exact.kinds[node]
    wrapped = False
    for place in range(node_ptr[node], node_ptr[node + 1]):
        for ordinal in range(labels.shape[1]):
            i = slot[labels[cell[place], ordinal]]
            if i >= 0 and measured[kind, ordinal]:
                # the compiler takes a signed sum not to wrap, and would leave the comparison out
                total = np.int64(np.uint64(sums[i]) + np.uint64(count[place]))
                wrapped |= total < sums[i]
                sums[i] = total
    return wrapped
