"""Answers of one level that are drawn when they are asked for, counted and timed; workers of an engine draw those of their part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.model import CellQuery, ExactHistograms, PartPlan
from censafe.model.plan import NoiseSource
from censafe.model.proven import proven
from censafe.model.topdown.answer_sums import AnswerSums
from censafe.model.topdown.families import Wanted
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.model.topdown.workers import DrawingEffort
from censafe.privacy.keys.part_keys import ReleasePartKey, TestPartKey, TravelingKey
from censafe.privacy.measure.lazy import LazyAnswers

_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExactPart:
    """CONFIDENTIAL. Exact histograms of consecutive geounits with what is asked of them; without a key it tells no noise.

    It lies in the scratch folder, as records do, while workers estimate the level.

    Args:
        node_ptr: where the entries of every geounit start, and the number of all.
    """

    first: int
    node_ptr: _Ints = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    count: NDArray[np.int32] = field(repr=False)
    kinds: NDArray[np.int32] = field(repr=False)
    plan: PartPlan
    queries: Sequence[CellQuery] = field(repr=False)
    budgets: LevelBudgets


class DrawnAnswers:
    """CONFIDENTIAL. :class:`~censafe.privacy.measure.lazy.LazyAnswers` with their number and the processor seconds that they took."""

    __slots__ = ("_asked", "_drawn", "_first", "_histograms", "_key", "_source", "_spent", "_theirs")

    def __init__(
        self,
        histograms: ExactHistograms,
        part: PartPlan,
        queries: Sequence[CellQuery],
        key: ReleasePartKey | TestPartKey,
        budgets: LevelBudgets,
        first: int = 0,
    ) -> None:
        self._source = LazyAnswers(histograms, part, queries, key, budgets)
        self._histograms = histograms
        self._asked = (part, queries, budgets)
        self._key = key
        self._first = first
        self._spent: list[float] = []  # appending needs no lock
        self._drawn: list[int] = []
        self._theirs: list[DrawingEffort] = []

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact histograms are confidential and cannot be pickled")

    @property
    def noise(self) -> NoiseSource:
        """Where the noise comes from."""
        return self._source.source

    @property
    def effort(self) -> DrawingEffort:
        """What drawing took so far, all threads and workers together; which answers were drawn follows from the estimates of the levels above."""
        answers, _, seconds = (sum(values) for values in zip((0, 0, 0.0), *self._theirs, strict=True))
        own = sum(self._drawn), self._key.blocks, sum(self._spent)
        return DrawingEffort(int(answers) + own[0], own[1], seconds + own[2])

    def add(self, effort: DrawingEffort) -> None:
        """Count what workers drew; their cipher blocks count for the key."""
        self._key.reserve(effort.blocks)
        self._theirs.append(effort)

    def answers(self, query: int, first: int, last: int, chosen: _Ints) -> _Ints:
        """As :meth:`LazyAnswers.answers`."""
        started = time.thread_time()
        found = self._source.answers(query, self._first + first, self._first + last, chosen)
        self._count(started, found.size)
        return found

    def gather(self, wanted: Wanted) -> _Ints:
        """As :meth:`LazyAnswers.gather`."""
        started = time.thread_time()
        if self._first:
            wanted = replace(wanted, child=wanted.child + self._first)
        found = self._source.gather(wanted)
        self._count(started, found.size)
        return found

    def sums(self, asked: AnswerSums, geounits: _Ints) -> _Ints:
        """As :meth:`LazyAnswers.sums`."""
        started = time.thread_time()
        found = self._source.sums(asked, geounits + self._first)
        self._count(started, asked.answers * len(geounits))
        return found

    @proven("lazy.proof.md", digest="d6f9eb955ecd0d11")
    def part(self, first: int, last: int) -> ExactPart:
        """What workers need of consecutive geounits beside the key.

        Args:
            first: of the geounits.
            last: one past the last of them.
        """
        exact, (plan, queries, budgets) = self._histograms, self._asked
        pointer = exact.node_ptr[first : last + 1]
        entries = slice(int(pointer[0]), int(pointer[-1]))
        return ExactPart(
            first,
            pointer - pointer[0],
            exact.cell[entries],
            exact.count[entries],
            budgets.kinds[first:last],
            plan,
            queries,
            replace(budgets, kinds=np.zeros(0, np.int32)),
        )

    def opener(self) -> Callable[[ExactPart], DrawnAnswers]:
        """What makes the same answers of a part; it holds the key of the part of the plan, and travels inside tasks alone."""
        return partial(_opened, TravelingKey(self._key))

    def close(self) -> None:
        """Overwrite the key with zeros."""
        self._key.close()

    def _count(self, started: float, answers: int) -> None:
        self._spent.append(time.thread_time() - started)
        self._drawn.append(answers)


@proven("lazy.proof.md", digest="ad6ffdcb93c649ad")
def _opened(key: TravelingKey, part: ExactPart) -> DrawnAnswers:
    """The answers of a part where a task runs.

    Geounits before the part are there without records, so that every geounit of it has the address that it has in its level.
    """
    last = part.first + len(part.kinds)
    pointer = np.zeros(last + 1, np.int64)
    pointer[part.first :] = part.node_ptr
    kinds = np.zeros(last, np.int32)
    kinds[part.first :] = part.kinds
    exact = ExactHistograms(np.zeros(last, "U1"), pointer, part.cell, part.count)
    budgets = replace(part.budgets, kinds=kinds)
    return DrawnAnswers(exact, part.plan, part.queries, key.open(), budgets, part.first)
