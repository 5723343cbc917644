"""Integer programs of one part of a block: any solution, the solution farthest from a given one, the fewest and most persons of a type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array, diags_array

from censafe.attack.reconstruction.problem import NO_LIMIT, BlockProblem, IncidenceOrder, Part
from censafe.model.programs import Outcome, Program, solve_program

EXACT: Final = "exact"
INFEASIBLE: Final = "infeasible"
NEAREST: Final = "nearest"
UNKNOWN: Final = "unknown"
_STATUS: Final = {Outcome.OPTIMAL: EXACT, Outcome.INFEASIBLE: INFEASIBLE, Outcome.FAILED: UNKNOWN}
_Ints = NDArray[np.int64]
_REMEMBERED: Final = 200_000  # parts whose answers are stored


@dataclass
class PartSolver:
    """Solves parts; an answer is stored for parts of the same numbers."""

    seconds: float = 60.0
    _answers: dict[tuple[bytes, bytes], tuple[str, Any]] = field(default_factory=dict, repr=False)

    def any_solution(self, part: Part) -> tuple[str, _Ints]:
        """A solution and its status; the least of every type where there is none."""

        def solve() -> tuple[str, _Ints]:
            status, values = self._milp(part, np.zeros(len(part.types)))
            return status, part.least if values is None else values

        return self._once(b"any", part, solve)

    def least_common(self, part: Part, start: _Ints) -> tuple[str, int]:
        """The fewest persons that another solution has in common with a given one.

        With x the persons of a reported type in the other solution and s in the given one, sum of min(x, s): for s of 1 or more a binary b says
        which of the two is smaller, m >= x - (most) b and m >= s b.

        Args:
            start: a solution, shape (n,).

        Source: attack.md 6.
        """
        return self._once(start.tobytes(), part, lambda: self._least_common(part, start))

    def extreme(self, part: Part, group: int, sign: int) -> tuple[str, int]:
        """Fewest (sign 1) or most (sign -1) persons of one reported type in any solution; where that is not known, what bounds say."""

        def solve() -> tuple[str, int]:
            own = part.groups == group
            status, values = self._milp(part, sign * own.astype(float))
            bound = part.least if sign > 0 else part.most
            return status, int(part.fixed[group] + (bound if values is None else values)[own].sum())

        return self._once(b"%d %d" % (group, sign), part, solve)

    def _once(self, question: bytes, part: Part, solve: Callable[[], tuple[str, Any]]) -> tuple[str, Any]:
        key = question, part.key()
        if key not in self._answers:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            self._answers[key] = solve()
        return self._answers[key]

    def _least_common(self, part: Part, start: _Ints) -> tuple[str, int]:
        groups, fixed = part.groups, part.fixed
        sums = csr_array(
            (np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(len(fixed), len(groups))
        )
        persons, most = fixed + _sums(groups, start), fixed + _sums(groups, part.most)
        own = np.flatnonzero(
            (persons > 0) & (most > persons)
        )  # in all others that are there the smaller of the two is always x
        number, extra = len(start), len(own)
        cost = np.zeros(number + 2 * extra)
        cost[:number] = ((persons > 0) & (most <= persons))[groups]
        cost[number : number + extra] = 1
        if not extra:
            status, values = self._milp(part, cost)
        else:
            eye = diags_array(np.ones(extra))
            rows = block_array(
                [
                    [part.matrix, None, None],
                    [-sums[own], eye, diags_array(most[own].astype(float))],
                    [None, eye, -diags_array(persons[own].astype(float))],
                ],
                format="csr",
            )
            shift = np.concatenate([fixed[own].astype(float), np.zeros(extra)])
            low = np.concatenate([part.least, np.zeros(2 * extra, np.int64)])
            high = np.concatenate([part.most, persons[own], np.ones(extra, np.int64)])
            status, values = self._milp(part, cost, rows, (low, high), shift)
        if values is None:
            return status, 0
        return status, int(np.minimum(fixed + _sums(groups, values[:number]), persons).sum())

    def _milp(
        self,
        part: Part,
        cost: NDArray[np.float64],
        rows: csr_array | None = None,
        bounds: tuple[_Ints, _Ints] | None = None,
        shift: NDArray[np.float64] | tuple[()] = (),
    ) -> tuple[str, _Ints | None]:
        """Solve the part, or with its rows first, and further rows that are at least `shift`."""
        high = np.where(part.high >= NO_LIMIT, np.inf, part.high.astype(float))
        low = np.concatenate([part.low.astype(float), shift])
        high = np.concatenate([high, np.full(len(shift), np.inf)])
        least, most = (side.astype(float) for side in bounds or (part.least, part.most))
        matrix = part.matrix if rows is None else rows
        solution = solve_program(
            Program(cost, matrix, low, high, least, most, True), seconds=self.seconds, gap=0.0
        )
        if solution.outcome is not Outcome.OPTIMAL or solution.x is None:
            return _STATUS[solution.outcome], None
        return EXACT, np.rint(solution.x).astype(np.int64)


def _sums(groups: _Ints, values: _Ints) -> _Ints:
    return np.bincount(groups, values, minlength=int(groups.max(initial=-1)) + 1).astype(np.int64)


_CANDIDATES: Final = 1_000
_EMPTY_SHARE: Final = 0.25


def nearest_records(
    order: IncidenceOrder, low: _Ints, high: _Ints, seconds: float
) -> tuple[str, _Ints, _Ints]:
    """The records whose tables differ least, in the sum of absolute differences over all lines, from tables that no records have.

    Types are those of which at most a quarter of the lines are published as 0, at most a thousand, those with the fewest such lines first.

    Args:
        low: of every line, shape (lines,).
        high: of every line, shape (lines,).
    """
    entries = np.repeat(np.arange(len(order.start) - 1), np.diff(order.start))
    empty = np.bincount(entries, high[order.line] == 0, minlength=len(order.start) - 1)
    share = empty / np.maximum(np.diff(order.start), 1)
    ranked = np.argsort(share, kind="stable")[:_CANDIDATES]
    types = np.sort(ranked[share[ranked] <= _EMPTY_SHARE])
    named = np.flatnonzero((high < NO_LIMIT) | (low > 0))
    if not len(types) or not (low > 0).any():
        return NEAREST, types[:0], types[:0]
    matrix = csr_array(
        (order.weight, (order.line, entries)), shape=(order.lines, len(order.start) - 1)
    )[named][:, types]  # fmt: skip
    eye = diags_array(np.ones(len(named)))
    rows = block_array([[matrix, eye, -eye]], format="csr")
    ends = np.where(high[named] >= NO_LIMIT, np.inf, high[named].astype(float))
    program = Program(
        np.concatenate([np.zeros(len(types)), np.ones(2 * len(named))]), rows, low[named].astype(float), ends, 0.0, np.inf,
        np.arange(len(types) + 2 * len(named)) < len(types),
    )  # fmt: skip
    solution = solve_program(program, seconds=seconds, gap=0.01)
    if solution.x is None:
        return UNKNOWN, types[:0], types[:0]
    counts = np.rint(solution.x[: len(types)]).astype(np.int64)
    return NEAREST, types[counts > 0], counts[counts > 0]


def nearest_solution(problem: BlockProblem, ties: csr_array, values: _Ints, seconds: float) -> _Ints | None:
    """Of all solutions of a problem the one of which some further lines differ least, in the sum of absolute differences, from target values.

    Args:
        ties: the further lines, sparse, shape (further lines, types of the problem).
        values: targets of these lines, shape (further lines,).
    """
    open_ = np.flatnonzero(np.diff(ties.indptr))
    number, extra = len(problem.types), len(open_)
    eye = diags_array(np.ones(extra))
    rows = block_array([[problem.matrix, None, None], [ties[open_], eye, -eye]], format="csr")
    high = np.where(problem.high >= NO_LIMIT, np.inf, problem.high.astype(float))
    program = Program(
        np.concatenate([np.zeros(number), np.ones(2 * extra)]),
        rows,
        np.concatenate([problem.low, values[open_]]).astype(float),
        np.concatenate([high, values[open_]]),
        np.concatenate([problem.least, np.zeros(2 * extra)]),
        np.concatenate([problem.most, np.full(2 * extra, np.inf)]),
        np.arange(number + 2 * extra) < number,
    )
    solution = solve_program(program, seconds=seconds, gap=0.0)
    return None if solution.x is None else np.rint(solution.x[:number]).astype(np.int64)
