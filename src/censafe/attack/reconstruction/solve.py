"""Blocks one after another: a reconstruction, its variability, and what holds in every consistent data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.reconstruction.problem import BlockProblem, IncidenceOrder, Part
from censafe.attack.reconstruction.programs import EXACT, INFEASIBLE, PartSolver, nearest_records
from censafe.attack.tables import CountedLines
from censafe.model.processes import process_pool

_CHUNK: Final = 200
_Ints = NDArray[np.int64]


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
) -> Reconstruction:
    """Reconstruct the persons of every block from its tables.

    Args:
        workload: the lines of the tables.
        low: lowest value that a line may have had, int64, shape (blocks, lines).
        high: the highest; equal to `low` in exact tables, ``NO_LIMIT`` where nothing is published, shape (blocks, lines).
        done: receives the number of finished blocks.

    Source: attack.md 5 and 6.
    """
    pieces = [slice(first, first + _CHUNK) for first in range(0, len(low), _CHUNK)]
    types = np.flatnonzero(workload.possible)
    solve = partial(_chunk, IncidenceOrder.of(csr_array(workload.matrix[types])), choices)
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
