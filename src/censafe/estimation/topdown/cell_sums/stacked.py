"""Two histograms of which some sums are the same in every geounit, such as households and occupied housing units by tenure.

Sums that the two share lie in the families of all averages. These are put side by side into one family, with states of both; in it the
differences of the shared sums are known to be 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from censafe.estimation.topdown.cell_sums.readings import SumEntry, SumReadings
from censafe.estimation.topdown.cell_sums.structure import SumProblem
from censafe.estimation.topdown.cell_sums.tree import LevelAnswers
from censafe.model.arrays import Floats


class StackedSums(SumReadings):
    """The sums of both, the first ones before the second ones.

    Args:
        shared: the last sums of both, as many, are the same in every geounit.
    """

    def __init__(self, first: SumProblem, second: SumProblem, shared: int) -> None:
        if len(first.families) != 1 or first.families[0].gram.size != 1:
            raise ValueError("the first problem of a stack has one family with one column")
        self.place = next(number for number, one in enumerate(second.families) if not any(one.columns[0]))
        own, other = first.families[0], second.families[self.place]
        self.scale = float(other.gram[0, 0])
        width = own.size, other.size
        known = np.vstack(
            [
                np.hstack([own.known, np.zeros((len(own.known), width[1]))]),
                np.hstack([np.zeros((len(other.known), width[0])), other.known]),
                np.hstack([_rows(first, 0, shared), -_rows(second, self.place, shared)]),
            ]
        )
        joint = replace(
            other,
            state=block_diag(own.state, other.state),
            asked=block_diag(own.asked, other.asked),
            gram=np.ones((1, 1)),
            known=known,
        )
        families = [joint if number == self.place else one for number, one in enumerate(second.families)]
        entries = [tuple(replace(one, family=self.place) for one in row) for row in first.entries]
        moved = [tuple(_moved(one, self.place, len(own.asked)) for one in row) for row in second.entries]
        super().__init__(families, [*entries, *moved])

    def states(self, first: Sequence[Floats], second: Sequence[Floats]) -> tuple[Floats, ...]:
        """States of both, by family."""
        joint = np.concatenate([first[0], second[self.place]], axis=2)
        return tuple(joint if number == self.place else one for number, one in enumerate(second))


def _rows(problem: SumProblem, family: int, shared: int) -> Floats:
    """The last sums as combinations of the state of the family of all averages, which is all of them."""
    found = np.zeros((shared, problem.families[family].size))
    for row, entries in enumerate(problem.entries[len(problem.entries) - shared :]):
        if any(one.family != family for one in entries):
            raise ValueError("shared sums are those of all levels of the attributes that are averaged")
        for one in entries:
            found[row] += one.weight * problem.families[family].asked[one.function]
    return found


def _moved(entry: SumEntry, place: int, functions: int) -> SumEntry:
    return replace(entry, function=entry.function + functions) if entry.family == place else entry


@dataclass(frozen=True, eq=False)
class StackedAnswers:
    """Own answers of a level of both.

    Args:
        pattern: of every geounit, -1 where one of them is not measured, shape (n,).
    """

    sums: StackedSums
    first: LevelAnswers
    second: LevelAnswers
    pattern: NDArray[np.int64] = field(repr=False)
    pairs: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def of(sums: StackedSums, first: LevelAnswers, second: LevelAnswers) -> StackedAnswers:
        """Find the patterns."""
        rows = np.stack([first.pattern, second.pattern], axis=1)
        pairs, place = np.unique(rows, axis=0, return_inverse=True)
        none = (rows < 0).any(axis=1)
        return StackedAnswers(sums, first, second, np.where(none, -1, place.ravel()).astype(np.int64), pairs)

    def covariances(self, pattern: int) -> tuple[Floats, ...]:
        """Covariances of the states of a pattern, by family."""
        own, other = self.pairs[pattern].tolist()
        found = list(self.second.covariances(other))
        place, scale = self.sums.place, self.sums.scale
        found[place] = block_diag(self.first.covariances(own)[0], scale * found[place])
        return tuple(found)
