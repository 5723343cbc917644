"""CONFIDENTIAL. What the measures of a pair are about: areas, their classes, and what is counted in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

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
from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.counts.bias import race_groups
from censafe.evaluation.counts.cell_sets import CellSets, shipped_cell_sets
from censafe.evaluation.counts.cells import MatchedCells, match_labels, true_answers
from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.counts.reliability import Tolerance
from censafe.evaluation.pairs.definitions import Characteristic
from censafe.evaluation.pairs.inputs import OpenedPair
from censafe.evaluation.summary.tables import SummaryBook
from censafe.evaluation.topdown.evaluation import answer_labels
from censafe.evaluation.topdown.population import characteristics
from censafe.model import CellQuery
from censafe.products.topdown.labels import answer_words

SUITES: Final = ("accuracy", "epl", "bias", "reliability", "impossible", "variability", "summary")


@dataclass(frozen=True)
class PairChoices:
    """What is measured of a pair, and how.

    Args:
        queries: queries in addition to those of the schema.
        bins: width of population bins, in place of the classes of size; 0 for classes.
        sides: levels and lists whose counts are written side by side; all of at most 10,000 areas where empty.
    """

    suites: Collection[str] = SUITES
    mode: LossMode = "corrected"
    queries: tuple[str, ...] = ()
    characteristics: tuple[Characteristic, ...] = ()
    sets: CellSets = field(default_factory=shipped_cell_sets)
    groups: str | None = None
    bins: int = 0
    tolerance: Tolerance = field(default_factory=Tolerance)
    sides: tuple[str, ...] = ()
    residuals: bool = False
    book: SummaryBook | None = None
    standing: Confidentiality = Confidentiality.COMPARED


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
    choices: PairChoices

    @property
    def pair(self) -> Pair:
        """The main pair."""
        return self.opened.persons

    @property
    def lowest(self) -> str:
        """Name of the lowest level."""
        return self.pair.spine.names[-1]

    @cached_property
    def strata(self) -> tuple[Strata, ...]:
        """Classes of the areas of every list, by true population."""
        strata = []
        for areas in self.lists:
            counts, bins = true_answers(self.pair, areas), self.choices.bins
            strata.append(
                population_bins(counts, bins)
                if bins
                else size_classes(counts, size_edges(areas, self.lowest))
            )
        return tuple(strata)

    def classes(self, areas: ComparedAreas) -> Strata | None:
        """Classes of one list; None where it has one area only, or one class holds all areas."""
        strata = self.strata[self.lists.index(areas)]
        return strata if areas.number > 1 and len(np.unique(strata.of_area)) > 1 else None


def scope_of(opened: OpenedPair, choices: PairChoices) -> Scope:
    """What is measured on a pair."""
    if choices.bins < 0:
        raise UsageError("the width of population bins must be 1 person or more")
    pair = opened.persons
    lists = (*(level_areas(pair.spine, name) for name in pair.spine.names), *opened.lists)
    subjects = [_query(pair, one.query, one.words) for one in characteristics(pair.schema)]
    known = {one.name for one in subjects}
    subjects += [_query(pair, text, text, apart=True) for text in choices.queries if text not in known]
    unmeasured = []
    for characteristic in choices.characteristics:
        subject = _characteristic(opened.pairs, characteristic, choices.sets)
        if subject is not None:
            subjects.append(subject)
            continue
        near = next((pair for pair in opened.pairs if pair.schema.record is characteristic.record), pair)
        unmeasured.append((characteristic, characteristic.why_unmeasured(near.schema, choices.sets)))
    names = [one.name for one in subjects]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UsageError(f"two characteristics have one name: {', '.join(twice)}; give each its own")
    groups = None
    try:
        groups = race_groups(pair.schema, choices.groups)
    except UsageError:
        if choices.groups is not None or tuple(choices.suites) == ("reliability",):
            raise
    return Scope(opened, lists, tuple(subjects), tuple(unmeasured), groups, choices)


def _query(pair: Pair, text: str, words: str, *, apart: bool = False) -> PairSubject:
    query = pair.query(text)
    labels, meanings = tuple(answer_labels(query)), tuple(answer_words(pair.schema, query))
    apart = apart or query.answers == 1
    return PairSubject(query.name, words, pair, query.label, labels, meanings, query.answers, apart)


def _characteristic(
    pairs: Sequence[Pair], characteristic: Characteristic, sets: CellSets
) -> PairSubject | None:
    """A characteristic of the first pair that can count it."""
    for pair in pairs:
        cells = (
            sets.cells(pair.schema, characteristic.sets)
            if pair.schema.record is characteristic.record
            else None
        )
        if cells is not None:
            label = np.where(cells, 0, -1).astype(np.int32)
            return PairSubject(
                characteristic.name,
                characteristic.label,
                pair,
                label,
                (characteristic.name,),
                (characteristic.label,),
                1,
                apart=True,
            )
    return None
