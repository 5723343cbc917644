"""Blocks one after another: a reconstruction, its variability, and what holds in every consistent solution, by integer programs of the parts of a block."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array, diags_array

from censafe.attack.reconstruction.problem import NO_LIMIT, BlockProblem, IncidenceOrder, Part
from censafe.attack.tables import CountedLines
from censafe.model.processes import process_pool
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


_CHUNK: Final = 200


@dataclass(frozen=True)
class SolveChoices:
    """Choices for the solution of every block.

    Args:
        claims: fewest and most persons of every type of the reconstruction, over all consistent data sets.
        nearest: where no records have the tables, those whose tables differ least are taken; otherwise the block has none.
    """

    variability: bool = False
    claims: bool = False
    nearest: bool = False
    seconds: float = 60.0
    workers: int = 1


@dataclass(frozen=True, eq=False)
class SolvedBlock:
    """A block.

    Args:
        status: ``exact``; ``infeasible`` where no data set has these tables, or ``nearest`` where the one that differs least was requested;
            ``unknown`` where a program ran out of time.
        types: of the reconstructed persons, shape (n,).
        counts: persons of each, shape (n,).
        common: fewest persons that another consistent data set shares with the reconstruction; -1 where not requested or not known.
        least: fewest persons of each type in any consistent data set; as far as bounds imply where claims were not requested, shape (n,).
        most: the most, shape (n,).
    """

    status: str
    types: _Ints
    counts: _Ints
    common: int
    least: _Ints
    most: _Ints
    seconds: float


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Reconstructed persons of all blocks.

    Args:
        status: of every block, shape (blocks,).
        population: reconstructed persons of every block, shape (blocks,).
        variability: share of the block's records that another consistent data set can change, in percent; NaN where not known, shape (blocks,).
        seconds: of every block, shape (blocks,).
        block: of every type that was reconstructed in a block, shape (n,).
        types: shape (n,).
        counts: persons, shape (n,).
        least: persons that every consistent data set has, shape (n,).
        most: persons that none has more of, shape (n,).
    """

    status: NDArray[np.str_] = field(repr=False)
    population: _Ints = field(repr=False)
    variability: NDArray[np.float64] = field(repr=False)
    seconds: NDArray[np.float64] = field(repr=False)
    block: _Ints = field(repr=False)
    types: _Ints = field(repr=False)
    counts: _Ints = field(repr=False)
    least: _Ints = field(repr=False)
    most: _Ints = field(repr=False)

    @staticmethod
    def of(blocks: Sequence[SolvedBlock]) -> Reconstruction:
        """All blocks together."""
        population = np.array([one.counts.sum() for one in blocks], np.int64)
        common = np.array([one.common for one in blocks], np.int64)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(population > 0, 100 * (1 - common / population), 0.0)
        sizes = [len(one.types) for one in blocks]
        return Reconstruction(
            np.array([one.status for one in blocks], np.str_),
            population,
            np.where(common >= 0, share, np.nan),
            np.array([one.seconds for one in blocks]),
            np.repeat(np.arange(len(blocks)), sizes),
            *(
                np.concatenate([getattr(one, name) for one in blocks] or [np.zeros(0, np.int64)])
                for name in ("types", "counts", "least", "most")
            ),
        )


def reconstruct(
    workload: CountedLines,
    low: _Ints,
    high: _Ints,
    choices: SolveChoices,
    done: Callable[[int], None] = lambda _: None,
    rows: _Ints | None = None,
) -> Reconstruction:
    """Reconstruct the persons of every block from its tables.

    Args:
        workload: the lines of the tables.
        low: lowest value that a line may have had, int64, shape (blocks, lines).
        high: the highest; equal to `low` in exact tables, ``NO_LIMIT`` where nothing is published, shape (blocks, lines).
        done: receives the number of finished blocks.
        rows: type as which each counts, shape (types,); themselves without.

    Source: attack.md 5 and 6.
    """
    pieces = [slice(first, first + _CHUNK) for first in range(0, len(low), _CHUNK)]
    types = np.flatnonzero(workload.possible)
    matrix = workload.matrix[types if rows is None else rows[types]]
    solve = partial(_chunk, IncidenceOrder.of(csr_array(matrix)), choices)
    blocks: list[SolvedBlock] = []
    with ExitStack() as stack:
        apply: Callable[..., Iterable[list[SolvedBlock]]] = map
        if choices.workers > 1 and len(pieces) > 1:
            apply = stack.enter_context(process_pool(choices.workers)).map
        for piece in apply(solve, [low[rows] for rows in pieces], [high[rows] for rows in pieces]):
            blocks += piece
            done(len(blocks))
    reconstruction = Reconstruction.of(blocks)
    return replace(reconstruction, types=types[reconstruction.types])


def _chunk(order: IncidenceOrder, choices: SolveChoices, low: _Ints, high: _Ints) -> list[SolvedBlock]:
    solver = PartSolver(choices.seconds)
    return [solve_block(order, choices, solver, *values) for values in zip(low, high, strict=True)]


def solve_block(
    order: IncidenceOrder, choices: SolveChoices, solver: PartSolver, low: _Ints, high: _Ints
) -> SolvedBlock:
    """Reconstruct the persons of one block.

    Args:
        low: of every line, shape (lines,).
        high: of every line, shape (lines,).
    """
    started = time.perf_counter()
    problem = BlockProblem.of(order, low, high)
    parts = list(problem.parts()) if problem.feasible else []
    status, common, counts = _records(problem, parts, solver, choices)
    if status != EXACT:
        types, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if choices.nearest:
            status, types, counts = nearest_records(order, low, high, choices.seconds)
        return SolvedBlock(status, types, counts, -1, 0 * counts, counts, time.perf_counter() - started)
    names, place = np.unique(problem.report, return_inverse=True)
    total, least, most = (
        np.bincount(place, persons, minlength=len(names)).astype(np.int64)
        for persons in (counts, problem.least, problem.most)
    )
    if choices.claims:
        for part in parts:
            own = place[part.types[np.unique(part.groups, return_index=True)[1]]]
            least[own], most[own] = _claims(solver, part, total[own], least[own], most[own])
    chosen = np.flatnonzero(total)
    names, total, least, most = (one[chosen] for one in (names, total, least, most))
    return SolvedBlock(status, names, total, common, least, most, time.perf_counter() - started)


def _records(
    problem: BlockProblem, parts: Sequence[Part], solver: PartSolver, choices: SolveChoices
) -> tuple[str, int, _Ints]:
    """Status, persons in common with the farthest solution, and persons of every type of the problem."""
    counts = problem.least.copy()
    common = problem.certain() if choices.variability else -1
    if not problem.feasible:
        return INFEASIBLE, -1, counts
    for part in parts:
        status, solution = solver.any_solution(part)
        if status != EXACT:
            return status, -1, counts
        counts[part.types] = solution
        if common >= 0:
            status, shared = solver.least_common(part, solution)
            common = common + shared if status == EXACT else -1
    return EXACT, common, counts


def _claims(solver: PartSolver, part: Part, total: _Ints, least: _Ints, most: _Ints) -> tuple[_Ints, _Ints]:
    """Fewest and most persons of the reported types that the reconstruction has; the bounds of a type where a program ran out of time."""
    least, most = least.copy(), most.copy()
    for group in np.flatnonzero((total > 0) & (least < most)).tolist():
        for bounds, sign in ((least, 1), (most, -1)):
            if bounds[group] != total[group]:
                status, count = solver.extreme(part, group, sign)
                bounds[group] = count if status == EXACT else bounds[group]
    return least, most
