"""CONFIDENTIAL. What the measures of a pair are about: areas, their classes, and what is counted in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import (
    ComparedAreas,
    Strata,
    level_areas,
    population_bins,
    size_classes,
    size_edges,
)
from censafe.evaluation.counts.bias import race_groups
from censafe.evaluation.counts.cell_sets import CellSets, shipped_cell_sets
from censafe.evaluation.counts.cells import MatchedCells, match_labels, true_answers
from censafe.evaluation.counts.characteristics import Characteristic, measured_and_unmeasured
from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.counts.reliability import Tolerance
from censafe.evaluation.pairs.inputs import OpenedPair
from censafe.evaluation.topdown.evaluation import answer_labels
from censafe.evaluation.topdown.population import characteristics
from censafe.model import CellQuery
from censafe.products.topdown.labels import answer_words


@dataclass(frozen=True)
class PairQuestions:
    """What is measured beyond the default.

    Args:
        bins: width of population bins, in place of the classes of size; 0 for classes.
    """

    queries: tuple[str, ...] = ()
    characteristics: tuple[Characteristic, ...] = ()
    sets: CellSets = field(default_factory=shipped_cell_sets)
    groups: str | None = None
    bins: int = 0
    tolerance: Tolerance = field(default_factory=Tolerance)


@dataclass(frozen=True, eq=False)
class PairSubject:
    """Something that is counted at every area.

    Args:
        label: answer of every cell, below 0 for none, shape (cells,).
    """

    name: str
    words: str
    pair: Pair
    label: NDArray[np.int32] = field(repr=False)
    labels: tuple[str, ...]
    meanings: tuple[str, ...]
    answers: int
    apart: bool = False

    def cells(self, areas: ComparedAreas, run: int = 0) -> MatchedCells:
        """True counts and those of one run."""
        return match_labels(self.pair, areas, self.name, self.label, self.answers, run)

    def runs(self, areas: ComparedAreas) -> tuple[MatchedCells, ...]:
        """The same for every run."""
        return tuple(self.cells(areas, run) for run in range(len(self.pair.runs)))


@dataclass(frozen=True, eq=False)
class Scope:
    """CONFIDENTIAL. Areas, classes and subjects of an evaluation."""

    opened: OpenedPair
    lists: tuple[ComparedAreas, ...]
    subjects: tuple[PairSubject, ...]
    unmeasured: tuple[tuple[Characteristic, str], ...]
    groups: CellQuery | None
    mode: LossMode
    bins: int = 0
    sets: CellSets = field(default_factory=shipped_cell_sets)
    tolerance: Tolerance = field(default_factory=Tolerance)

    @property
    def pair(self) -> Pair:
        """The main pair."""
        return self.opened.persons

    @property
    def lowest(self) -> str:
        """Name of the lowest level."""
        return self.pair.spine.names[-1]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs over the blocks."""
        return tuple(
            one for one in (self.opened.persons, self.opened.units, self.opened.households) if one is not None
        )

    @cached_property
    def strata(self) -> tuple[Strata, ...]:
        """Classes of the areas of every list, by true population."""
        return tuple(self._classes(areas) for areas in self.lists)

    def _classes(self, areas: ComparedAreas) -> Strata:
        counts = true_answers(self.pair, areas)
        return (
            population_bins(counts, self.bins)
            if self.bins
            else size_classes(counts, size_edges(areas, self.lowest))
        )

    def classes(self, areas: ComparedAreas) -> Strata | None:
        """Classes of one list; None where it has one area only, or one class holds all areas."""
        strata = self.strata[self.lists.index(areas)]
        return strata if areas.number > 1 and len(np.unique(strata.of_area)) > 1 else None


def scope_of(opened: OpenedPair, asked: PairQuestions, mode: LossMode, *, need_groups: bool = False) -> Scope:
    """What is measured on a pair."""
    if asked.bins < 0:
        raise UsageError("the width of population bins must be 1 person or more")
    pair = opened.persons
    lists = (*(level_areas(pair.spine, name) for name in pair.spine.names), *opened.lists)
    pairs = [one for one in (opened.persons, opened.units, opened.households) if one is not None]
    subjects = [_query(pair, one.query, one.words) for one in characteristics(pair.schema)]
    given = {one.name for one in subjects}
    subjects += [_query(pair, text, text, apart=True) for text in asked.queries if text not in given]
    measured, unmeasured = _characteristics(pairs, asked.characteristics, asked.sets)
    subjects += measured
    names = [one.name for one in subjects]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UsageError(f"two characteristics have one name: {', '.join(twice)}; give each its own")
    groups = _groups(pair, asked, need_groups)
    return Scope(
        opened, lists, tuple(subjects), unmeasured, groups, mode, asked.bins, asked.sets, asked.tolerance
    )


def _query(pair: Pair, text: str, words: str, *, apart: bool = False) -> PairSubject:
    query = pair.query(text)
    labels = tuple(answer_labels(query))
    meanings = tuple(answer_words(pair.schema, query))
    single = query.answers == 1
    return PairSubject(query.name, words, pair, query.label, labels, meanings, query.answers, apart or single)


def _characteristics(
    pairs: Sequence[Pair], asked: Sequence[Characteristic], sets: CellSets
) -> tuple[list[PairSubject], tuple[tuple[Characteristic, str], ...]]:
    """Those that some pair can count, and the others with the reason of the first pair that comes near."""
    found, unmeasured = [], []
    for one in asked:
        subject = next(_measured(pairs, one, sets), None)
        if subject is not None:
            found.append(subject)
            continue
        near = [pair for pair in pairs if pair.schema.record is one.record] or list(pairs[:1])
        unmeasured += measured_and_unmeasured(near[0].schema, [one], sets=sets)[1]
    return found, tuple(unmeasured)


def _measured(pairs: Sequence[Pair], one: Characteristic, sets: CellSets) -> Iterator[PairSubject]:
    for pair in pairs:
        if pair.schema.record is one.record:
            cells = sets.cells(pair.schema, one.sets)
            if cells is not None:
                label = np.where(cells, 0, -1).astype(np.int32)
                yield PairSubject(one.name, one.label, pair, label, (one.name,), (one.label,), 1, apart=True)


def _groups(pair: Pair, asked: PairQuestions, need: bool) -> CellQuery | None:
    try:
        return race_groups(pair.schema, asked.groups)
    except UsageError:
        if asked.groups is not None or need:
            raise
        return None
