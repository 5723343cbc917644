"""CONFIDENTIAL. True and published counts of one query, side by side, at the areas of a level or list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba import int32, int64
from numpy.typing import NDArray

from censafe.evaluation.areas import ComparedAreas
from censafe.evaluation.counts.pairing import Pair
from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays, sparse_type, tuple_type
from censafe.model.schema import CellQuery


class MatchedEntries(NamedTuple):
    """Room for the entries of all areas."""

    ptr: NDArray[np.int64]  # (areas + 1,) where the entries of each area start
    answer: NDArray[np.int32]  # of every entry
    true: NDArray[np.int64]  # true count of every entry
    public: NDArray[np.int64]  # published count of every entry


_COUNTS = sparse_type()
_ENTRIES = tuple_type(MatchedEntries, int64[::1], int32[::1], int64[::1], int64[::1])


@compiled(int64(_COUNTS, int64, int32[::1], int64[:, ::1], int64, int32[::1], int64))
def _add_block(counts, block, label, totals, side, answer, written):  # type: ignore[no-untyped-def]
    """Add a block to ``totals[side]``, and append the answers whose totals were zero on both sides; returns their number."""
    for entry in range(counts.node_ptr[block], counts.node_ptr[block + 1]):
        place = label[counts.cell[entry]]
        if place < 0:
            continue
        if totals[0, place] == 0 and totals[1, place] == 0:
            answer[written] = place
            written += 1
        totals[side, place] += counts.records[entry]
    return written


@compiled(int64(int64[::1], int64[::1], int32[::1], int64, _COUNTS, _COUNTS, _ENTRIES))
def match_entries(order, starts, label, answers, true, public, entries):  # type: ignore[no-untyped-def]
    """Write one entry for every area and answer at which either side is not zero, answers rising within an area.

    Args:
        order: blocks by area, shape (blocks,).
        starts: shape (areas + 1,).
    """
    written, totals = 0, np.zeros((2, answers), dtype=np.int64)
    entries.ptr[0] = 0
    for area in range(len(starts) - 1):
        first = written
        for at in range(starts[area], starts[area + 1]):
            written = _add_block(true, order[at], label, totals, 0, entries.answer, written)
            written = _add_block(public, order[at], label, totals, 1, entries.answer, written)
        entries.answer[first:written].sort()
        for entry in range(first, written):
            place = entries.answer[entry]
            entries.true[entry], entries.public[entry] = totals[0, place], totals[1, place]
            totals[0, place] = totals[1, place] = 0
        entries.ptr[area + 1] = written
    return written


@dataclass(frozen=True, eq=False)
class MatchedCells:
    """CONFIDENTIAL. Counts of the answers of one query; those that are zero on both sides are left out and counted.

    Args:
        areas: codes, shape (n,).
        ptr: int64, shape (n + 1,); area i owns the entries ptr[i] .. ptr[i + 1] - 1.
        answer: int32, shape (m,), rising within an area.
        confidential: int64, shape (m,).
        published: int64, or float64 where a sample was weighted, shape (m,).
    """

    level: str
    area_class: str
    areas: NDArray[np.str_] = field(repr=False)
    query: str
    answers: int
    run_id: str
    ptr: NDArray[np.int64] = field(repr=False)
    answer: NDArray[np.int32] = field(repr=False)
    confidential: NDArray[np.int64] = field(repr=False)
    published: NDArray[Any] = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("matched counts are confidential and cannot be pickled")

    @property
    def residual(self) -> NDArray[Any]:
        """Published minus true count of every entry, shape (m,)."""
        return self.published - self.confidential

    @property
    def area_of_entry(self) -> NDArray[np.int32]:
        """Position of the area of every entry, shape (m,)."""
        return np.repeat(np.arange(len(self.areas), dtype=np.int32), np.diff(self.ptr))

    @property
    def number(self) -> int:
        """Answers of all areas, those that are zero on both sides included."""
        return len(self.areas) * self.answers

    @property
    def zero_zero(self) -> int:
        """How many answers are zero on both sides."""
        return self.number - len(self.answer)

    def dense(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """True and published counts, each of shape (n, answers); for queries of few answers."""
        grids = []
        for values in (self.confidential, self.published):
            grid = np.zeros((len(self.areas), self.answers), values.dtype)
            grid[self.area_of_entry, self.answer] = values
            grids.append(grid)
        return grids[0], grids[1]


def match(pair: Pair, areas: ComparedAreas, query: str | CellQuery, run: int = 0) -> MatchedCells:
    """Add both sides of a pair up to areas and the answers of a query."""
    named = pair.query(query) if isinstance(query, str) else query
    return match_labels(pair, areas, named.name, named.label, named.answers, run)


def match_labels(
    pair: Pair, areas: ComparedAreas, name: str, label: NDArray[np.int32], answers: int, run: int = 0
) -> MatchedCells:
    """The same for any sorting of cells into answers, in which cells may count towards none.

    Args:
        label: answer of every cell, shape (cells,); below 0 for none.
    """
    if len(areas.of_block) != pair.spine.leaf.nodes:
        raise ValueError("the areas are not made of the blocks of the pair")
    order, starts = areas.blocks
    true, public = pair.confidential, pair.runs[run].histograms
    space = min(len(true.cell) + len(public.cell), areas.number * answers)
    counts = np.empty((2, space), np.int64)
    entries = MatchedEntries(
        np.zeros(areas.number + 1, np.int64), np.empty(space, np.int32), counts[0], counts[1]
    )
    written = match_entries(
        order, starts, label, answers, SparseArrays.of(true), SparseArrays.of(public), entries
    )
    weight = pair.runs[run].weight
    published = counts[1, :written] if weight == 1 else counts[1, :written] * float(weight)
    return MatchedCells(
        areas.level, areas.area_class, areas.names, name, answers, pair.runs[run].run_id, entries.ptr,
        entries.answer[:written], counts[0, :written], published,
    )  # fmt: skip


def match_runs(pair: Pair, areas: ComparedAreas, query: str | CellQuery) -> tuple[MatchedCells, ...]:
    """The same of every published run."""
    named = pair.query(query) if isinstance(query, str) else query
    return tuple(match(pair, areas, named, run) for run in range(len(pair.runs)))


def cells_of_counts(
    confidential: NDArray[np.integer],
    published: NDArray[Any],
    *,
    areas: NDArray[np.str_] | None = None,
    level: str = "",
    query: str = "",
    run_id: str = "1",
) -> MatchedCells:
    """Counts of two tidy tables with one row an area, or of noisy answers, as cells to compare.

    Args:
        confidential: shape (n,) or (n, answers).
        areas: codes, shape (n,); positions without.

    Example:
        >>> cells_of_counts(np.array([0, 0, 10]), np.array([0, 3, 12])).residual.tolist()
        [3, 2]
    """
    true, public = (np.asarray(one).reshape(len(one), -1) for one in (confidential, published))
    if true.shape != public.shape:
        raise ValueError("true and published counts must have one shape")
    names = np.arange(len(true)).astype(np.str_) if areas is None else areas
    area, answer = np.nonzero((true != 0) | (public != 0))
    ptr = np.searchsorted(area, np.arange(len(true) + 1)).astype(np.int64)
    kind = np.int64 if public.dtype.kind in "iu" else np.float64
    return MatchedCells(
        level, "", names, query, true.shape[1], run_id, ptr, answer.astype(np.int32),
        true[area, answer].astype(np.int64), public[area, answer].astype(kind),
    )  # fmt: skip


def true_answers(pair: Pair, areas: ComparedAreas) -> NDArray[np.int64]:
    """CONFIDENTIAL. True total of every area, shape (n,); what population bins are cut from."""
    running = np.append(0, np.cumsum(pair.confidential.count, dtype=np.int64))
    blocks = np.diff(running[pair.confidential.node_ptr])
    inside = areas.of_block >= 0
    sums = np.zeros(areas.number, np.int64)
    np.add.at(sums, areas.of_block[inside], blocks[inside])
    return sums
