"""The mechanism of histograms for answers that are drawn when they are read, each once and for all; workers of an engine draw those of their part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.model import CellQuery, ExactHistograms, PartPlan
from censafe.model.named_arrays import SparseArrays, read_only
from censafe.model.plan import NoiseSource
from censafe.model.proven import proven
from censafe.model.topdown.answers import AnswerReads, AnswerSums, DrawingEffort
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.privacy.keys import ReleasePartKey, TestPartKey, TravelingKey, part_source_of
from censafe.privacy.measure.histograms import claim_level
from censafe.privacy.noise.sampler import settle_residuals
from censafe.privacy.noise.tables import NoiseTable
from censafe.privacy.noise.wide import draw_wide
from censafe.privacy.noise.words import AddressedWords, Lane, check_address, head

if TYPE_CHECKING:
    from censafe.privacy.noise.lazy_kernels import ExactAnswers


_CHUNK_BLOCKS = 1 << 16
_FITS = 2.0**62  # a sum of magnitudes below it fits 64 bits, also where rounding is added
_SUMMED_BLOCKS = 1 << 14  # counters and words of so many stay in the second-level cache
_Ints = NDArray[np.int64]


class LazyAnswers:
    """CONFIDENTIAL. The exact histograms of one level behind a mechanism that gives noisy answers about them.

    Every answer has the address that it has in :func:`~censafe.privacy.measure.histograms.measure_histograms`, so that under one key both
    give the same numbers, whenever and in whatever company an answer is read. Several threads may read at once.

    Args:
        budgets: laws and costs by geounit; None for those of the part everywhere.

    Source: ``lazy.proof.md``.
    """

    __slots__ = ("_counts", "_entries", "_heads", "_histograms", "_key", "_kinds", "_labels", "_measured", "_offsets",
                 "_sizes", "_tables", "_where", "source")  # fmt: skip

    source: NoiseSource
    """Where the noise comes from, decided by the type of the key."""

    @proven("lazy.proof.md", digest="86ba618f38b87015")
    def __init__(
        self,
        histograms: ExactHistograms,
        part: PartPlan,
        queries: Sequence[CellQuery],
        key: ReleasePartKey | TestPartKey,
        budgets: LevelBudgets | None = None,
    ) -> None:
        if type(histograms) is not ExactHistograms or type(part) is not PartPlan:
            raise TypeError("LazyAnswers wants ExactHistograms and a PartPlan")
        budgets = LevelBudgets.even(part, histograms.nodes) if budgets is None else budgets
        self.source = part_source_of(key)
        for ordinal, query in enumerate(queries):
            check_address(ordinal, query.answers)
        claim_level(histograms, part, queries, budgets, key)
        self._histograms = histograms
        self._key = key
        self._kinds = np.ascontiguousarray(budgets.kinds)
        self._heads = np.array([head(ordinal, Lane.DIRECT) for ordinal in range(len(queries))], np.uint64)
        self._sizes = np.array([query.answers for query in queries], np.int64)
        self._offsets = np.cumsum(self._sizes) - self._sizes
        cells, self._counts = _numbered(histograms, len(queries[0].label))
        labels = [
            query.label[cells] + offset for query, offset in zip(queries, self._offsets.tolist(), strict=True)
        ]
        self._labels = np.ascontiguousarray(np.stack(labels, axis=1), np.int32)
        self._tables = {
            (kind, ordinal): NoiseTable.for_law(law)
            for kind, laws in enumerate(budgets.laws)
            for ordinal, law in enumerate(laws)
            if law is not None
        }
        self._measured = np.zeros((len(budgets.laws), len(queries)), np.bool_)
        self._where = np.zeros((len(budgets.laws), len(queries), 3), np.int64)
        self._entries = self._packed()

    def __repr__(self) -> str:
        return f"LazyAnswers({self._histograms.nodes} geounits)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact histograms are confidential and cannot be pickled")

    def answers(self, query: int, first: int, last: int, chosen: _Ints) -> _Ints:
        """Some noisy answers of one query at consecutive geounits.

        Args:
            chosen: positions of the answers, shape (m,).

        Returns:
            int64, shape (last - first, m); 0 where nothing is measured.
        """
        reads = AnswerReads(
            np.array([0, last - first], np.int64),
            np.arange(first, last, dtype=np.int64),
            np.array([0, len(chosen)], np.int64),
            np.full(len(chosen), query, np.int32),
            np.ascontiguousarray(chosen, np.int32),
        )
        return self.gather(reads).reshape(last - first, len(chosen))

    @proven("lazy.proof.md", digest="89121d0a82c75663")
    def gather(self, reads: AnswerReads) -> _Ints:
        """Noisy answers, parent by parent, child by child, in the order of `reads`.

        Args:
            reads: answers by parent, which must follow from public figures alone.

        Returns:
            int64, shape (answers of all children,); 0 where nothing is measured.

        Raises:
            ValueError: a geounit, query or answer that the level does not have.
            OverflowError: a sum does not fit 64 bits.
            ReleaseError: the key has served 2^40 blocks.
        """
        from censafe.privacy.noise import lazy_kernels as kernels

        self._require_known(reads)
        block_ptr = np.empty(len(reads.answer_ptr), np.int64)
        blocks = np.empty(len(reads.answer), np.uint64)
        word = np.empty(len(reads.answer), np.int32)
        kernels.list_blocks(reads.answer_ptr, reads.query, reads.answer, self._heads, block_ptr, blocks, word)
        of_child = np.repeat(np.diff(block_ptr), np.diff(reads.child_ptr))
        words = AddressedWords(self._key)
        words.reserve(int(of_child.sum()))
        ends = np.append(0, np.cumsum(of_child))
        places = np.append(0, np.cumsum(np.repeat(np.diff(reads.answer_ptr), np.diff(reads.child_ptr))))
        answers = np.empty(int(places[-1]), np.int64)
        slot = np.full(int(self._sizes.sum()), -1, np.int32)
        drawn = kernels.AnswerWords(
            *read_only(reads.child_ptr, reads.child, reads.answer_ptr, reads.query, reads.answer),
            *read_only(block_ptr, blocks, word),
        )
        alias = kernels.AliasEntries(*read_only(self._kinds, self._where, self._entries))
        exact = self._exact()
        for first, last in _ranges(ends, _CHUNK_BLOCKS):
            parent = int(np.searchsorted(reads.child_ptr, first, side="right")) - 1
            count = int(ends[last] - ends[first])
            counters = np.empty((count, 2), np.uint64)
            buffer = np.empty(2 * count + 2, np.uint64)
            out = answers[places[first] : places[last]]
            kernels.fill_words(drawn, parent, first, last, counters)
            words.encrypt(counters, buffer)
            if kernels.decode_words(drawn, alias, parent, first, last, buffer, out):
                self._settle(reads, first, last, words, out)
            if kernels.add_counts(drawn, exact, parent, first, last, slot, out):
                raise OverflowError(f"an answer plus noise of part {self._key.part} does not fit 64 bits")
        return answers

    @proven("lazy.proof.md", digest="d724186f5a58fe46")
    def sums(self, answer_sums: AnswerSums, geounits: _Ints) -> _Ints:
        """Sums of noisy answers; the same as those of :meth:`gather` added up, without any answer being stored.

        Args:
            answer_sums: which answers are added up, which must follow from public figures alone.
            geounits: positions in the level, shape (n,).

        Returns:
            int64, shape (n, sums); what is not measured counts as 0.

        Raises:
            ValueError: a geounit, query, answer or sum that there is not, or an answer that is added twice.
            OverflowError: a sum does not fit 64 bits.
            ReleaseError: the key has served 2^40 blocks.
        """
        from censafe.privacy.noise import sum_kernels as kernels

        pieces = kernels.SummedWords(
            *read_only(
                answer_sums.query,
                answer_sums.first,
                answer_sums.length,
                answer_sums.start,
                answer_sums.slot,
                self._heads,
            )
        )
        slot = np.full(int(self._sizes.sum()), -1, np.int32)
        sizes, offsets = read_only(self._sizes, self._offsets)
        known = geounits.min(initial=0) >= 0 and geounits.max(initial=-1) < self._histograms.nodes
        if not (known and kernels.place_sums(pieces, answer_sums.sums, sizes, offsets, slot)):
            raise ValueError(
                f"part {self._key.part} has no such geounit, query, answer or sum, or one answer is added twice"
            )
        first = answer_sums.first.astype(np.int64)
        ends = np.append(0, np.cumsum((first + answer_sums.length + 1 >> 1) - (first >> 1)))
        words = AddressedWords(self._key)
        words.reserve(int(ends[-1]) * len(geounits))
        sums = np.zeros((len(geounits), answer_sums.sums), np.int64)
        tables = [kernels.LawTables(*read_only(where, self._entries)) for where in self._where]
        residual = np.zeros(len(geounits), np.int64)
        for begin, end in _ranges(ends, _SUMMED_BLOCKS):
            counters = np.empty((int(ends[end] - ends[begin]), 2), np.uint64)
            buffer, draws = np.empty(counters.size + 2, np.uint64), np.empty(counters.size, np.int64)
            for row, node in enumerate(geounits.tolist()):
                kernels.fill_summed(pieces, begin, end, node, counters)
                words.encrypt(counters, buffer)
                law = tables[self._kinds[node]]
                residual[row] |= kernels.add_draws(pieces, law, begin, end, buffer, draws, sums[row])
        self._complete(answer_sums, geounits, residual, slot, sums)
        return sums

    @proven("lazy.proof.md", digest="d6b7bf0ab76385e3")
    def _complete(
        self, answer_sums: AnswerSums, geounits: _Ints, residual: _Ints, slot: NDArray[np.int32], sums: _Ints
    ) -> None:
        """Add the true answers to the sums of their noise; one by one where a word alone did not decide all of that."""
        from censafe.privacy.noise import sum_kernels as kernels

        exact, (slots,) = self._exact(), read_only(slot)
        for row, node in enumerate(geounits.tolist()):
            if residual[row]:
                fits = self._add_from_answers(answer_sums, node, sums[row])
            else:
                fits = not kernels.add_summed_counts(exact, node, slots, sums[row])
            if not fits:
                raise OverflowError(f"a sum of answers of part {self._key.part} does not fit 64 bits")

    @proven("lazy.proof.md", digest="94d3d90bc9528175")
    def _add_from_answers(self, answer_sums: AnswerSums, node: int, sums: _Ints) -> bool:
        """Write the sums of one geounit from its answers; whether they fit."""
        query, answer, slot = answer_sums.listed()
        answer_ptr, child = np.array([0, len(query)], np.int64), np.array([node], np.int64)
        values = self.gather(AnswerReads(np.array([0, 1], np.int64), child, answer_ptr, query, answer))
        sums[:] = 0
        np.add.at(sums, slot, values)
        size = np.bincount(slot, np.abs(values.astype(np.float64)), answer_sums.sums)
        return bool((size < _FITS).all())

    def _exact(self) -> ExactAnswers:
        from censafe.privacy.noise.lazy_kernels import ExactAnswers

        kinds, measured, labels, offsets = read_only(self._kinds, self._measured, self._labels, self._offsets)
        return ExactAnswers(kinds, measured, self._counts, labels, offsets)

    def _require_known(self, reads: AnswerReads) -> None:
        query, answer, child = reads.query, reads.answer, reads.child
        known = query.min(initial=0) >= 0 and query.max(initial=-1) < len(self._sizes)
        known = known and answer.min(initial=0) >= 0 and bool((answer < self._sizes[query]).all())
        known = known and child.min(initial=0) >= 0 and child.max(initial=-1) < self._histograms.nodes
        if not known:
            raise ValueError(f"part {self._key.part} has no such geounit, query or answer")

    def _packed(self) -> NDArray[np.uint64]:
        """Entries of all tables, one after another; where each starts is noted. A wide law asks for a draw of its own."""
        entries = [np.zeros(0, np.uint64)]
        start = 0
        for (kind, ordinal), table in self._tables.items():
            self._measured[kind, ordinal] = True
            # one column that is always the residual outcome sends every draw of a wide law to its own sampler
            packed = np.ones(2, np.uint64) if table.shift else table.alias.entries
            bits, width = (1, 1) if table.shift else (table.alias.bits, table.alias.width)
            self._where[kind, ordinal] = start, bits, width
            entries.append(packed)
            start += len(packed)
        return np.concatenate(entries)

    @proven("lazy.proof.md", digest="44c9e791189fb380")
    def _settle(self, reads: AnswerReads, first: int, last: int, words: AddressedWords, out: _Ints) -> None:
        """Draw what a word alone did not decide, and everything of a wide law."""
        parent = np.searchsorted(reads.child_ptr, np.arange(first, last), side="right") - 1
        sizes = np.diff(reads.answer_ptr)[parent]
        starts = np.cumsum(sizes) - sizes
        entry = np.arange(len(out)) - np.repeat(starts - reads.answer_ptr[parent], sizes)
        geounits = np.repeat(reads.child[first:last], sizes).astype(np.uint64)
        query, answers = reads.query[entry], reads.answer[entry].astype(np.int64)
        kinds = self._kinds[geounits]
        for (kind, ordinal), table in self._tables.items():
            rows = np.flatnonzero((kinds == kind) & (query == ordinal))
            values = out[rows]
            if table.shift:
                values = draw_wide(table, words, ordinal, geounits[rows], answers[rows])
            else:
                settle_residuals(table, words, ordinal, geounits[rows], answers[rows], values)
            out[rows] = values


@proven("lazy.proof.md", digest="dc261a88089df1c3")
def _numbered(histograms: ExactHistograms, cells: int) -> tuple[_Ints, SparseArrays]:
    """CONFIDENTIAL. The cells that occur in a level, rising, and its histograms with the numbers of these cells.

    A level of few records has few of the cells of its schema, so that its labels are few.
    """
    occurs = np.zeros(cells, np.bool_)
    occurs[histograms.cell] = True
    number = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    arrays = SparseArrays(*read_only(histograms.node_ptr, number[histograms.cell], histograms.count))
    return np.flatnonzero(occurs), arrays


def _ranges(ends: _Ints, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of children, or of pieces, of at most so many blocks; a child or piece is never divided."""
    first = 0
    while first < len(ends) - 1:
        last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


@dataclass(frozen=True, eq=False)
class ExactPart:
    """CONFIDENTIAL. Exact histograms of consecutive geounits with the queries on them; without a key it has no noise.

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
    """CONFIDENTIAL. :class:`LazyAnswers` with their number and the processor seconds that they took."""

    __slots__ = ("_drawn", "_first", "_histograms", "_key", "_of_workers", "_queries", "_source", "_spent")

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
        self._queries = (part, queries, budgets)
        self._key = key
        self._first = first
        self._spent: list[float] = []  # appending needs no lock
        self._drawn: list[int] = []
        self._of_workers: list[DrawingEffort] = []

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact histograms are confidential and cannot be pickled")

    @property
    def noise(self) -> NoiseSource:
        """Where the noise comes from."""
        return self._source.source

    @property
    def effort(self) -> DrawingEffort:
        """What drawing took so far, all threads and workers together; which answers were drawn follows from the estimates of the levels above."""
        answers, _, seconds = (sum(values) for values in zip((0, 0, 0.0), *self._of_workers, strict=True))
        own = sum(self._drawn), self._key.usage.blocks, sum(self._spent)
        return DrawingEffort(int(answers) + own[0], own[1], seconds + own[2])

    def add(self, effort: DrawingEffort) -> None:
        """Count what workers drew; their cipher blocks count for the key."""
        self._key.usage.reserve(effort.blocks)
        self._of_workers.append(effort)

    def answers(self, query: int, first: int, last: int, chosen: _Ints) -> _Ints:
        """As :meth:`LazyAnswers.answers`."""
        started = time.thread_time()
        values = self._source.answers(query, self._first + first, self._first + last, chosen)
        self._count(started, values.size)
        return values

    def gather(self, reads: AnswerReads) -> _Ints:
        """As :meth:`LazyAnswers.gather`."""
        started = time.thread_time()
        if self._first:
            reads = replace(reads, child=reads.child + self._first)
        values = self._source.gather(reads)
        self._count(started, values.size)
        return values

    def sums(self, answer_sums: AnswerSums, geounits: _Ints) -> _Ints:
        """As :meth:`LazyAnswers.sums`."""
        started = time.thread_time()
        sums = self._source.sums(answer_sums, geounits + self._first)
        self._count(started, answer_sums.answers * len(geounits))
        return sums

    @proven("lazy.proof.md", digest="e0c0d4b1c2c45065")
    def part(self, first: int, last: int) -> ExactPart:
        """What workers need of consecutive geounits besides the key.

        Args:
            first: of the geounits.
            last: one past the last of them.
        """
        exact, (plan, queries, budgets) = self._histograms, self._queries
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
