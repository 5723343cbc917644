"""Answers of public noisy measurement files that do not fit into memory: those that an estimate uses, or their sums, in passes over the files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numba import int32, int64, types, void
from numpy.typing import NDArray

from censafe.model.arrays import Integers
from censafe.model.compiled import compiled
from censafe.model.topdown.answers import AnswerSums
from censafe.results.measurements.files import LevelFiles
from censafe.results.measurements.level import AnswerRules, kernel_values
from censafe.results.measurements.rows import ANSWERS, Rows, opened, read_answer_rows

_THREADS: Final = 2
_MOST_SUMS: Final = 1 << 28  # that are in memory at once, 2 GiB


@dataclass(frozen=True, eq=False)
class AnswerIndex:
    """Which geounits of a level are measured, how exactly, and where their rows are.

    Args:
        codes: letters of the geounits, sorted, uint8, shape (n, width).
        variances: float64, shape (n, queries), infinite where nothing was measured.
        spans: of every file, first and last geounit of every row group, shape (row groups, 2); -1 where it has no rows.
    """

    files: LevelFiles
    codes: NDArray[np.uint8] = field(repr=False)
    queries: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    variances: NDArray[np.float64] = field(repr=False)
    spans: Mapping[Path, Integers] = field(repr=False)

    def visit(
        self,
        geounits: NDArray[np.bool_],
        queries: Collection[int],
        take: Callable[[Rows, NDArray[np.int64], NDArray[np.int64], int], None],
    ) -> None:
        """Take the rows of some queries at some geounits, from several files at once; row groups without any of these are passed over.

        Args:
            geounits: whether they are among these, shape (n,).
            take: gets rows, which of them, the geounit of each of these, and their query.
        """
        rules = AnswerRules(self.files, self.codes, self.queries, self.shapes)
        before = np.append(0, np.cumsum(geounits))

        def read(path: Path, groups: list[int]) -> None:
            for rows in read_answer_rows(path, groups):
                for query, own, nodes in rules.groups(rows, path):
                    inside = own[geounits[nodes[own]]]
                    if query in queries and len(inside):
                        rules.require_width(rows, inside, query)
                        take(rows, inside, nodes[inside], query)

        with ThreadPoolExecutor(_THREADS) as pool:
            waiting = []
            for path, spans in self.spans.items():
                some = before[spans[:, 1] + 1] > before[np.maximum(spans[:, 0], 0)]
                groups = np.flatnonzero(some).tolist()
                if groups:
                    waiting.append(pool.submit(read, path, groups))
            for reading in waiting:
                reading.result()


@dataclass(frozen=True, eq=False)
class ChosenAnswers:
    """Which answers of consecutive geounits are read; those of one group, such as the children of a parent, are the same ones.

    Args:
        group: of every geounit, rising from 0, shape (m,).
        pointer: of every query, shape (groups + 1,); group i uses answer[pointer[i]] .. answer[pointer[i + 1] - 1].
    """

    first: int
    group: Integers = field(repr=False)
    pointer: tuple[Integers, ...] = field(repr=False)
    answer: tuple[Integers, ...] = field(repr=False)

    @property
    def last(self) -> int:
        """One past the last geounit."""
        return self.first + len(self.group)

    def starts(self, query: int) -> Integers:
        """Where the answers of every geounit start among those that are read of a query, and their end, shape (m + 1,)."""
        starts = np.zeros(len(self.group) + 1, np.int64)
        np.cumsum(np.diff(self.pointer[query])[self.group], out=starts[1:])
        return starts


def index_answers(
    files: LevelFiles,
    places: Collection[str],
    codes: NDArray[np.uint8],
    queries: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
) -> AnswerIndex:
    """Read everything of the measurements in some folders of a level but their answers.

    Args:
        codes: letters of these geounits, sorted, shape (n, width).
    """
    rules = AnswerRules(files, codes, queries, shapes)
    spans = {}
    for path in files.measured_in(places):
        groups = range(opened(path).metadata.num_row_groups)
        spans[path] = np.array([_span(rules, path, group) for group in groups], np.int64).reshape(-1, 2)
    rules.require_complete()
    return AnswerIndex(files, rules.codes, rules.queries, rules.shapes, rules.variances, spans)


def _span(rules: AnswerRules, path: Path, group: int) -> tuple[int, int]:
    """First and last geounit of a row group."""
    nodes = []
    for rows in read_answer_rows(path, [group], answers=False):
        for query, own, node in rules.groups(rows, path):
            rules.claim(rows, own, node, query, 0)
            nodes += [int(node[own].min()), int(node[own].max())] if len(own) else []
    return (min(nodes), max(nodes)) if nodes else (-1, -1)


@compiled([void(answers, *(int64[::1],) * 7) for answers in ANSWERS])
def _pick(values, begin, node, group, pointer, answer, target, out):  # type: ignore[no-untyped-def]
    """Copy the chosen answers of rows: out[target[m] + j] = values[begin + answer[pointer[g] + j]], m a row's geounit, g its group.

    Args:
        begin: where the answers of every row start, shape (k,).
        node: geounit of every row among the chosen ones, shape (k,).
    """
    for row in range(begin.shape[0]):
        first, last = pointer[group[node[row]]], pointer[group[node[row]] + 1]
        for at in range(first, last):
            out[target[node[row]] + at - first] = values[begin[row] + answer[at]]


def read_chosen(index: AnswerIndex, chosen: ChosenAnswers) -> tuple[Integers, ...]:
    """Read some answers of consecutive geounits; row groups without any of these are passed over."""
    target = [chosen.starts(query) for query in range(len(index.queries))]
    answers = tuple(np.zeros(int(starts[-1]), np.int64) for starts in target)

    def take(rows: Rows, own: NDArray[np.int64], nodes: NDArray[np.int64], query: int) -> None:
        _pick(
            kernel_values(rows), rows.starts[own], nodes - chosen.first, chosen.group,
            chosen.pointer[query], chosen.answer[query], target[query], answers[query],
        )  # fmt: skip

    geounits = np.zeros(len(index.codes), np.bool_)
    geounits[chosen.first : chosen.last] = True
    index.visit(geounits, [query for query, some in enumerate(chosen.answer) if len(some)], take)
    return answers


_Slots = types.Array(int32, 1, "C", readonly=True)


@compiled(
    [void(answers, int64[:, ::1], int64[::1], int64[:, ::1], _Slots, int64[:, ::1]) for answers in ANSWERS]
)
def _add(values, rows, pointer, pieces, slot, out):  # type: ignore[no-untyped-def]
    """Add the answers of rows: out[m, slot[start + j]] += values[begin + first + j] for every piece of the pattern of the row.

    Args:
        rows: where the answers of every row begin, its place m in `out` and its pattern, shape (k, 3).
        pieces: first answer, number of answers and start in `slot` of every piece, shape (pieces, 3).
        out: receives the sums, shape (geounits, sums).
    """
    for row in range(rows.shape[0]):
        begin, pattern = rows[row, 0], rows[row, 2]
        target = out[rows[row, 1]]
        for piece in range(pointer[pattern], pointer[pattern + 1]):
            here, start = begin + pieces[piece, 0], pieces[piece, 2]
            for answer in range(pieces[piece, 1]):
                target[slot[start + answer]] += values[here + answer]


@dataclass(frozen=True, eq=False)
class SummedAnswers:
    """Sums of the answers of a level in public files, added up row by row as they are read: no answer stays in memory, whatever the order of the rows.

    Every round is one pass over the row groups that hold its geounits.

    Args:
        most: sums that are in memory at once; one geounit is always taken whole.
    """

    index: AnswerIndex
    most: int = _MOST_SUMS

    def rounds(
        self, patterns: Sequence[AnswerSums], pattern: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Sums of the geounits of one round after another, as :class:`SummingInRounds` has them."""
        if any(one.slot is not patterns[0].slot for one in patterns):
            raise ValueError("the sums of all patterns of a level share their slots")
        summed = np.flatnonzero(pattern >= 0)
        summed = summed[np.argsort(pattern[summed], kind="stable")]
        once = max(1, self.most // max(1, patterns[0].sums)) if len(summed) else 1
        for first in range(0, len(summed), once):
            geounits = summed[first : first + once]
            yield geounits, self._pass(patterns, pattern, geounits)

    def _pass(
        self, patterns: Sequence[AnswerSums], pattern: NDArray[np.int64], geounits: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Sums of some geounits from one pass."""
        place = np.full(len(pattern), -1, np.int64)
        place[geounits] = np.arange(len(geounits))
        sums = np.zeros((len(geounits), patterns[0].sums), np.int64)
        numbers, own_pattern = np.unique(pattern[geounits], return_inverse=True)
        own_pattern = own_pattern.reshape(-1).astype(np.int64)
        queries = range(len(self.index.queries))
        pieces = [_pieces(query, [patterns[number] for number in numbers.tolist()]) for query in queries]
        lock = Lock()

        def take(rows: Rows, own: NDArray[np.int64], nodes: NDArray[np.int64], query: int) -> None:
            places, values = place[nodes], kernel_values(rows)
            some = np.stack([rows.starts[own], places, own_pattern[places]], axis=1)
            with lock:  # rows of one geounit may lie in several files
                _add(values, some, *pieces[query], patterns[0].slot, sums)

        self.index.visit(place >= 0, queries, take)
        return sums


def _pieces(query: int, patterns: Sequence[AnswerSums]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the pieces of every pattern start, and the pieces, of one query."""
    some = [one.only(one.query == query) for one in patterns]
    pointer = np.cumsum([0, *(len(one.first) for one in some)], dtype=np.int64)
    pieces = [np.stack([one.first, one.length, one.start], axis=1) for one in some]
    return pointer, np.concatenate(pieces).astype(np.int64)
