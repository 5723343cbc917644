"""Which answers an estimation uses or adds up, made from public figures alone; where they come from, and what the workers of an engine do with parts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from censafe.model.arrays import Flags


@dataclass(frozen=True, eq=False)
class Families:
    """Children and cells of some parents of one level.

    Args:
        child_ptr: int64, shape (parents + 1,); parent i has the children child_ptr[i] .. child_ptr[i + 1] - 1.
        child: int64, shape (children,), position of every child in its level.
        cell_ptr: int64, shape (parents + 1,); parent i has the cells cell_ptr[i] .. cell_ptr[i + 1] - 1.
        cell: int32, shape (cells,), flat cells that the parent has.
    """

    child_ptr: NDArray[np.int64] = field(repr=False)
    child: NDArray[np.int64] = field(repr=False)
    cell_ptr: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)

    @property
    def parents(self) -> int:
        """Number of parents."""
        return len(self.child_ptr) - 1


@dataclass(frozen=True, eq=False)
class AnswerReads:
    """Answers to be given of every child of some parents; those of a parent's children are the same ones.

    Args:
        answer_ptr: int64, shape (parents + 1,); of parent i the answers answer_ptr[i] .. answer_ptr[i + 1] - 1.
        query: int32, ordinal of the query of every answer, rising within a parent.
        answer: int32, position of every answer in its query, rising within a parent and query.
    """

    child_ptr: NDArray[np.int64] = field(repr=False)
    child: NDArray[np.int64] = field(repr=False)
    answer_ptr: NDArray[np.int64] = field(repr=False)
    query: NDArray[np.int32] = field(repr=False)
    answer: NDArray[np.int32] = field(repr=False)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the answers of every parent start in the result, shape (parents + 1,); children one after another."""
        starts = np.zeros(len(self.child_ptr), np.int64)
        np.cumsum(np.diff(self.child_ptr) * np.diff(self.answer_ptr), out=starts[1:])
        return starts


class AnswerSource(Protocol):
    """Where noisy answers come from: measurements that were stored, or draws when they are needed.

    A source may be used by several threads at once, and gives the same number whenever one answer is needed again.
    """

    def answers(self, query: int, first: int, last: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Some noisy answers of one query at consecutive geounits.

        Args:
            chosen: positions of the answers, rising, shape (m,).

        Returns:
            int64, shape (last - first, m), in C order; 0 where nothing is measured.
        """

    def gather(self, reads: AnswerReads) -> NDArray[np.int64]:
        """Noisy answers, parent by parent, child by child, in the order of `reads`."""


class EngineWorkers(Protocol):
    """Workers of an engine; what they do may be done elsewhere, in any order and more than once."""

    @property
    def threads(self) -> int:
        """Threads of this process, for what is done here."""

    def results(
        self, work: Callable[[Any], bytes], parcels: Iterable[Any], common: Sequence[object] = ()
    ) -> Iterator[bytes]:
        """The results of the same work on every parcel, each once, in the order of the parcels."""


def threads_of(workers: int | EngineWorkers) -> int:
    """Threads of this process.

    Example:
        >>> threads_of(2)
        2
    """
    return workers if isinstance(workers, int) else workers.threads


class DrawingEffort(NamedTuple):
    """What drawing answers took."""

    answers: int
    blocks: int
    """Of the cipher."""
    seconds: float
    """Of processors."""


class OpenedAnswers(AnswerSource, Protocol):
    """Noisy answers of consecutive geounits, numbered from 0, where an engine has its workers."""

    @property
    def effort(self) -> DrawingEffort:
        """What drawing took so far."""

    def close(self) -> None:
        """Forget the key, where there is one."""


@runtime_checkable
class PartedAnswers(Protocol):
    """Noisy answers of a level of which parts can be taken to workers."""

    def part(self, first: int, last: int) -> Any:
        """What workers need of consecutive geounits beside the key; it can be pickled."""

    def opener(self) -> Callable[[Any], OpenedAnswers]:
        """What makes answers of a part; it can be pickled, and holds the key where one is needed."""

    def add(self, effort: DrawingEffort) -> None:
        """Count what workers drew."""


_LONGEST = 1 << 12  # answers of a piece, so that a few pieces always fit the cache


@dataclass(frozen=True, eq=False)
class AnswerSums:
    """Answers of a geounit, and the sum to which each is added; no answer more than once.

    Args:
        query: int32, shape (pieces,), ordinal of the query of every piece of consecutive answers, rising.
        first: int32, shape (pieces,), the first answer of every piece, rising within a query.
        length: int32, shape (pieces,), how many answers it has.
        start: int64, shape (pieces,), where they start in `slot`.
        slot: int32, the sum of every answer, one piece after another; there may be pieces that are not used.
    """

    query: NDArray[np.int32] = field(repr=False)
    first: NDArray[np.int32] = field(repr=False)
    length: NDArray[np.int32] = field(repr=False)
    start: NDArray[np.int64] = field(repr=False)
    slot: NDArray[np.int32] = field(repr=False)
    sums: int

    @property
    def answers(self) -> int:
        """How many answers of a geounit are read."""
        return int(self.length.sum())

    @staticmethod
    def of(slots: tuple[NDArray[np.integer], ...], marks: tuple[NDArray[np.integer], ...]) -> AnswerSums:
        """Pieces of one mark each, from the sums of all answers.

        Args:
            slots: of every query the sum of each of its answers, -1 for none.

        Example:
            >>> result = AnswerSums.of((np.array([0, 1, -1, 1]),), (np.array([0, 0, 0, 0]),))
            >>> result.first.tolist(), result.length.tolist(), result.slot.tolist(), result.sums
            ([0, 3], [2, 1], [0, 1, 1], 2)
        """
        parts = [_pieces(slot, mark) for slot, mark in zip(slots, marks, strict=True)]
        query = np.repeat(np.arange(len(parts)), [len(first) for first, _ in parts])
        first = np.concatenate([first for first, _ in parts])
        length = np.concatenate([length for _, length in parts])
        slot = np.concatenate([one[one >= 0] for one in slots])
        return AnswerSums(
            query.astype(np.int32), first.astype(np.int32), length.astype(np.int32),
            np.cumsum(length) - length, slot.astype(np.int32), int(slot.max(initial=-1)) + 1,
        )  # fmt: skip

    def only(self, pieces: Flags) -> AnswerSums:
        """Some of the pieces; sums without any are 0."""
        return replace(
            self, query=self.query[pieces], first=self.first[pieces], length=self.length[pieces], start=self.start[pieces]
        )  # fmt: skip

    def numbered(self, ordinals: NDArray[np.integer]) -> AnswerSums:
        """The same with other ordinals of the queries, and without those whose ordinal is -1."""
        query = ordinals[self.query]
        order = np.argsort(query, kind="stable")
        order = order[query[order] >= 0]
        return replace(
            self, query=query[order].astype(np.int32), first=self.first[order], length=self.length[order], start=self.start[order]
        )  # fmt: skip

    def listed(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Query, position and sum of every answer, each of shape (answers,)."""
        place = _counted(self.start, self.length)
        answer = _counted(self.first, self.length).astype(np.int32)
        return np.repeat(self.query, self.length), answer, self.slot[place]


class Summing(Protocol):
    """Where sums of noisy answers come from: measurements that were stored, or draws on demand."""

    def sums(self, answer_sums: AnswerSums, geounits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of noisy answers of some geounits.

        Args:
            geounits: positions in the level, shape (n,).

        Returns:
            int64, shape (n, sums); what is not measured counts as 0.
        """
        ...


@runtime_checkable
class SummingInRounds(Protocol):
    """Where sums of noisy answers come from that are read in passes over files, since their rows are in any order."""

    def rounds(
        self, patterns: Sequence[AnswerSums], pattern: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Sums of noisy answers of all geounits with a pattern, as many at a time as memory holds.

        Args:
            pattern: of every geounit of the level, -1 for none.

        Yields:
            Positions in the level, pattern by pattern, and their sums, int64, shape (n, sums).
        """
        ...


def _pieces(
    slot: NDArray[np.integer], mark: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First answers and lengths of the pieces of a query."""
    inside = slot >= 0
    starts = np.flatnonzero(inside & np.append(True, ~inside[:-1] | (mark[1:] != mark[:-1]))[: len(slot)])
    ends = np.flatnonzero(inside & np.append(~inside[1:] | (mark[1:] != mark[:-1]), True)[-len(slot) :]) + 1
    parts = -(-(ends - starts) // _LONGEST)
    first = _counted(np.zeros_like(parts), parts) * _LONGEST + np.repeat(starts, parts)
    return first, np.minimum(np.repeat(ends, parts) - first, _LONGEST)


def _counted(start: NDArray[np.integer], length: NDArray[np.integer]) -> NDArray[np.int64]:
    """Consecutive numbers from every start, one range after another."""
    ends = np.cumsum(length, dtype=np.int64)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(start - (ends - length), length)
