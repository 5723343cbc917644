"""Sums of the answers of public noisy measurement files, added up row by row as they are read: no answer is held, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numba import int16, int32, int64, types, void
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.model.topdown.answer_sums import AnswerSums
from censafe.publication.measurements.chosen import AnswerIndex, require_width
from censafe.publication.measurements.level import AnswerRules, kernel_values
from censafe.publication.measurements.rows import Rows, read_answer_rows

_THREADS: Final = 2
_HELD: Final = 1 << 28  # sums that are held at once, 2 GiB


def _signature(number: types.Type) -> types.Type:
    values = types.Array(number, 1, "C", readonly=True)
    slot = types.Array(int32, 1, "C", readonly=True)
    return void(values, int64[:, ::1], int64[::1], int64[:, ::1], slot, int64[:, ::1])


@compiled([_signature(int16), _signature(int32), _signature(int64)])
def _add(values, rows, pointer, pieces, slot, found):  # type: ignore[no-untyped-def]
    """Add the answers of rows: found[m, slot[start + j]] += values[begin + first + j] for every piece of the pattern of the row.

    Args:
        rows: where the answers of every row begin, its place m in `found` and its pattern, shape (k, 3).
        pieces: first answer, number of answers and start in `slot` of every piece, shape (pieces, 3).
        found: receives the sums, shape (geounits, sums).
    """
    for row in range(rows.shape[0]):
        begin, pattern = rows[row, 0], rows[row, 2]
        target = found[rows[row, 1]]
        for piece in range(pointer[pattern], pointer[pattern + 1]):
            here, start = begin + pieces[piece, 0], pieces[piece, 2]
            for answer in range(pieces[piece, 1]):
                target[slot[start + answer]] += values[here + answer]


@dataclass(frozen=True, eq=False)
class SummedAnswers:
    """Sums of the answers of a level in public files; every round is one pass over the row groups that hold its geounits.

    Args:
        most: sums that are held at once; one geounit is always taken whole.
    """

    index: AnswerIndex
    most: int = _HELD

    def rounds(
        self, asked: Sequence[AnswerSums], pattern: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Sums of the geounits of one round after another, as :class:`SummingInRounds` has them."""
        if any(one.slot is not asked[0].slot for one in asked):
            raise ValueError("the sums of all patterns of a level share their slots")
        wanted = np.flatnonzero(pattern >= 0)
        wanted = wanted[np.argsort(pattern[wanted], kind="stable")]
        once = max(1, self.most // max(1, asked[0].sums)) if len(wanted) else 1
        for first in range(0, len(wanted), once):
            geounits = wanted[first : first + once]
            yield geounits, self._pass(asked, pattern, geounits)

    def _pass(
        self, asked: Sequence[AnswerSums], pattern: NDArray[np.int64], geounits: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Sums of some geounits from one pass."""
        work = _Pass(self.index.rules(), asked, pattern, geounits)
        inside = np.append(0, np.cumsum(work.place >= 0))
        with ThreadPoolExecutor(_THREADS) as pool:
            waiting = []
            for path, spans in self.index.spans.items():
                some = inside[spans[:, 1] + 1] > inside[np.maximum(spans[:, 0], 0)]
                groups = np.flatnonzero(some).tolist()
                if groups:
                    waiting.append(pool.submit(work.file, path, groups))
            for one in waiting:
                one.result()
        return work.found


class _Pass:
    """Adds up the rows of some geounits; files may be read side by side."""

    def __init__(
        self,
        rules: AnswerRules,
        asked: Sequence[AnswerSums],
        pattern: NDArray[np.int64],
        geounits: NDArray[np.int64],
    ) -> None:
        self._rules = rules
        self._lock = Lock()
        self.place = np.full(len(pattern), -1, np.int64)
        self.place[geounits] = np.arange(len(geounits))
        self.found = np.zeros((len(geounits), asked[0].sums), np.int64)
        numbers, own = np.unique(pattern[geounits], return_inverse=True)
        self._pattern = own.reshape(-1).astype(np.int64)
        self._slot = asked[0].slot
        queries = range(len(rules.queries))
        self._pieces = [_pieces(query, [asked[number] for number in numbers.tolist()]) for query in queries]

    def file(self, path: Path, groups: list[int]) -> None:
        """Add the rows of some row groups of a file."""
        for rows in read_answer_rows(path, groups):
            for query, own, nodes in self._rules.groups(rows, path):
                self._rows(rows, own[self.place[nodes[own]] >= 0], nodes, query)

    def _rows(self, rows: Rows, own: NDArray[np.int64], nodes: NDArray[np.int64], query: int) -> None:
        if not len(own):
            return
        require_width(self._rules, rows, own, query)
        place, values = self.place[nodes[own]], kernel_values(rows)
        some = np.stack([rows.starts[own], place, self._pattern[place]], axis=1)
        with self._lock:  # rows of one geounit may lie in several files
            _add(values, some, *self._pieces[query], self._slot, self.found)


def _pieces(query: int, asked: Sequence[AnswerSums]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the pieces of every pattern start, and the pieces, of one query."""
    some = [one.only(one.query == query) for one in asked]
    pointer = np.zeros(len(some) + 1, np.int64)
    np.cumsum([len(one.first) for one in some], out=pointer[1:])
    pieces = [np.stack([one.first, one.length, one.start], axis=1) for one in some]
    return pointer, np.concatenate(pieces).astype(np.int64)
