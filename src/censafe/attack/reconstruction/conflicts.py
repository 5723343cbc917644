"""Tables that no records have: which tables contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.reconstruction.problem import BlockProblem, IncidenceOrder
from censafe.attack.reconstruction.programs import INFEASIBLE, PartSolver
from censafe.attack.tables import Workload

_MANY: Final = "three or more tables"
_Ints = NDArray[np.int64]


@dataclass
class ConflictFinder:
    """Finds the first table, or pair of tables, whose values no records of a block have.

    Types of persons that all lines of a pair count alike are one, so that a pair is a small problem; it is made once for all blocks.
    """

    workload: Workload
    seconds: float = 60.0
    _orders: dict[tuple[str, ...], tuple[_Ints, IncidenceOrder]] = field(default_factory=dict, repr=False)

    def first(self, low: _Ints, high: _Ints) -> str:
        """The first of a block in words, in the order of the tables: one table, two, or that it takes more.

        Args:
            low: of every line, shape (lines,).
            high: of every line, shape (lines,).

        Source: attack.md 12.
        """
        solver = PartSolver(self.seconds)
        for names in self._choices():
            lines, order = self._order(names)
            problem = BlockProblem.of(order, low[lines], high[lines])
            if not problem.feasible or any(
                solver.any_solution(part)[0] == INFEASIBLE for part in problem.parts()
            ):
                return " and ".join(names)
        return _MANY

    def _choices(self) -> Iterator[tuple[str, ...]]:
        tables = list(dict.fromkeys(self.workload.names))
        for number in (1, 2):
            yield from combinations(tables, number)

    def _order(self, names: tuple[str, ...]) -> tuple[_Ints, IncidenceOrder]:
        if names not in self._orders:
            lines = np.flatnonzero(np.isin(self.workload.names, names))
            matrix = csr_array(self.workload.matrix[:, lines])
            marks = np.round(matrix @ np.random.default_rng(len(lines)).random(len(lines)), 9)
            different = np.unique(marks, return_index=True)[1]
            self._orders[names] = lines, IncidenceOrder.of(csr_array(matrix[np.sort(different)]))
        return self._orders[names]
