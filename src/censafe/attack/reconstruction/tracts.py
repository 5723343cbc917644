"""Tracts: the blocks of each reconstructed together, so that tables of blocks and tables of their tract all hold.

Blocks are solved one by one first, with the tract's lines as upper bounds; from this come variability and claims. Then all blocks of the tract are one integer
program with the tract's lines as equalities over classes of age. What bounds leave open of it is small; where it is too large or out of time, blocks are changed one after another
so that the tract's lines come nearer. Years of age are given last: within a class they are tied by the tract's lines alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, hstack, vstack

from censafe.attack.reconstruction.problem import NO_LIMIT, BlockProblem, IncidenceOrder
from censafe.attack.reconstruction.solve import (
    EXACT,
    INFEASIBLE,
    UNKNOWN,
    PartSolver,
    Reconstruction,
    SolveChoices,
    SolvedBlock,
    nearest_solution,
    solve_block,
)
from censafe.attack.tables import SINGLE_YEARS, TypeSpace, Workload
from censafe.errors import UsageError
from censafe.model.cells.lines import CensusTable
from censafe.model.processes import process_pool

TRACT_DIGITS: Final = 11
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TractLines:
    """Lines of tables of blocks, and lines of tables of tracts that distinguish single years of age.

    A class of age of the blocks is a set of years. A tract's lines for the years of one class add up to a line for the class, where the
    table has all of them; such sums say of the blocks together what can be said without years.

    Args:
        both: of both, one after the other, over single years; sparse, shape (single-year types, lines of blocks and tracts).
        report: type with a class of age of every type with a single year, shape (single-year types,).
        classes: sums of tract lines over the classes of age; sparse, shape (types of blocks, sums).
        sums: which tract lines each adds up; sparse, shape (sums, lines of tracts).
        wider: of every tract line the lines of blocks that count all its persons, one tract line after another.
        wider_start: where those of a tract line start, shape (lines of tracts + 1,).
    """

    blocks: Workload
    tracts: Workload
    both: csr_array = field(repr=False)
    report: _Ints = field(repr=False)
    classes: csr_array = field(repr=False)
    sums: csr_array = field(repr=False)
    wider: _Ints = field(repr=False)
    wider_start: _Ints = field(repr=False)

    @staticmethod
    def of(blocks: Workload, tables: Sequence[CensusTable]) -> TractLines:
        """Of tables of blocks, and some of tracts."""
        if not tables:
            raise UsageError('mode "bt" attacks tables of tracts too, and there is none; fix: mode "b"')
        tracts = Workload.of(tables, TypeSpace(SINGLE_YEARS))
        sex, age, race, hispanic = np.unravel_index(np.arange(tracts.space.size), tracts.space.shape)
        place = np.searchsorted(blocks.space.edges, np.asarray(tracts.space.edges), side="right") - 1
        report = np.ravel_multi_index((sex, place[age], race, hispanic), blocks.space.shape)
        inner = csr_array(blocks.matrix[report])
        classes, sums = _sums(tracts, blocks.space, report)
        start, wider = _wider(inner, tracts.matrix)
        return TractLines(
            blocks, tracts, csr_array(hstack([inner, tracts.matrix])), report, classes, sums, wider, start
        )

    def caps(self, block_values: _Ints, tract_values: _Ints) -> _Ints:
        """The highest values of tract lines in each of the tract's blocks; none where lines of the block say as much.

        Args:
            block_values: of the lines of blocks, shape (blocks, lines of blocks).
            tract_values: of the lines of tracts, shape (lines of tracts,).

        Returns:
            Shape (blocks, lines of tracts); -1 where a line has no cap of its own.

        Source: attack.md 6.
        """
        has = np.flatnonzero(np.diff(self.wider_start))
        said = np.full((len(block_values), len(tract_values)), np.iinfo(np.int64).max)
        if len(has):
            said[:, has] = np.minimum.reduceat(block_values[:, self.wider], self.wider_start[has], axis=1)
        return np.where(tract_values >= said, -1, tract_values)


def _wider(blocks: csr_array, tracts: csr_array) -> tuple[_Ints, _Ints]:
    """Lines of blocks that count every person of a tract line as often or more often."""
    size = np.bincount(tracts.indices, minlength=tracts.shape[1])
    enough = csr_array(tracts > 0).astype(np.int64)
    common = csr_array(enough.T @ csr_array(blocks > 0).astype(np.int64))
    tract = np.repeat(np.arange(common.shape[0]), np.diff(common.indptr))
    heavy = tracts.max(axis=0).toarray().ravel() > 1
    chosen = (common.data == size[tract]) & ~heavy[tract]
    start = np.append(0, np.cumsum(np.bincount(tract[chosen], minlength=common.shape[0])))
    return start.astype(np.int64), common.indices[chosen].astype(np.int64)


def _sums(tracts: Workload, coarse: TypeSpace, report: _Ints) -> tuple[csr_array, csr_array]:
    """Lines of tracts that together count whole classes of age, and what their sums count."""
    edges = np.asarray(tracts.space.edges)
    place = np.searchsorted(coarse.edges, edges, side="right") - 1
    width = np.bincount(place)
    classes: list[list[int]] = []
    waiting: dict[tuple[object, ...], list[int]] = {}
    for number, (sex, age, race, hispanic) in enumerate(tracts.weights):
        inside = age > 0
        met = np.unique(place[inside])
        if np.array_equal(np.bincount(place[inside], minlength=len(width))[met], width[met]):
            classes.append([number])
        elif len(met) == 1:
            flags = (one.tobytes() for one in (sex, race, hispanic))
            own = waiting.setdefault((tracts.names[number], int(met[0]), *flags), [])
            if not any((tracts.weights[one][1] * age).any() for one in own):
                own.append(number)
                if sum(int(tracts.weights[one][1].sum()) for one in own) == width[met[0]]:
                    classes.append(own)
    rows = np.repeat(np.arange(len(classes)), [len(one) for one in classes])
    lines = np.array([number for one in classes for number in one], np.int64)
    sums = csr_array((np.ones(len(rows)), (rows, lines)), shape=(len(classes), len(tracts.lines)))
    group = csr_array(
        (np.ones(len(report)), (report, np.arange(len(report)))), shape=(coarse.size, len(report))
    )
    counted = csr_array(group @ tracts.matrix @ sums.T)
    counted.data = counted.data / np.repeat(np.bincount(report), np.diff(counted.indptr))
    return counted, sums


PARTLY: Final = "partly"
_TOGETHER: Final = 60_000  # open types of a tract that are solved as one
_PASSES: Final = 4


@dataclass(frozen=True, eq=False)
class SolvedTracts:
    """Reconstructed persons of all blocks, and how far the tables of their tracts are met.

    Args:
        records: the reconstruction; its variability and claims treat tract lines as upper bounds of each block.
        ages: lower end of the class of age, single years to 99, of every reconstructed person; persons in the order of the types, shape (persons,).
        status: of every tract: ``exact`` where all lines of the tract are met; ``partly`` where some are not; ``infeasible`` or ``unknown`` where a block is;
            text, shape (tracts,).
        met: lines of every tract that are met, shape (tracts,).
        seconds: of every tract, shape (tracts,).
    """

    records: Reconstruction
    ages: _Ints = field(repr=False)
    status: NDArray[np.str_] = field(repr=False)
    met: _Ints = field(repr=False)
    seconds: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Orders:
    """The matrices in the order of their types, made once a process."""

    lines: TractLines
    blocks: IncidenceOrder
    both: IncidenceOrder
    years: IncidenceOrder

    @staticmethod
    def of(lines: TractLines) -> _Orders:
        size = lines.blocks.space.size
        own = np.ones(len(lines.report))
        groups = csr_array((own, (np.arange(len(own)), lines.report)), shape=(len(own), size))
        return _Orders(
            lines,
            IncidenceOrder.of(lines.blocks.matrix),
            IncidenceOrder.of(lines.both, lines.report),
            IncidenceOrder.of(csr_array(hstack([groups, lines.tracts.matrix]))),
        )


_Tract = tuple[list[SolvedBlock], _Ints, str, int, float]
"""Blocks, ages of the persons, status, lines that are met, and seconds of a tract."""


def reconstruct_tracts(
    lines: TractLines, blocks: _Ints, tracts: _Ints, tract: _Ints, choices: SolveChoices, seed: int
) -> SolvedTracts:
    """Reconstruct the persons of every block from its tables and those of its tract.

    Args:
        blocks: published value of every line of every block, int64, shape (blocks, lines of blocks).
        tracts: of every line of every tract, shape (tracts, lines of tracts).
        tract: of every block, rising, shape (blocks,).

    Source: attack.md 5.3 and 6.
    """
    ends = np.searchsorted(tract, np.arange(len(tracts) + 1)).tolist()
    pieces = [(number, blocks[slice(*pair)], tracts[number]) for number, pair in enumerate(pairwise(ends))]
    solve = partial(_pieces, lines, choices, seed)
    if choices.workers == 1 or len(pieces) == 1:
        solved_tracts = solve(pieces)
    else:
        shares = [pieces[first :: 4 * choices.workers] for first in range(4 * choices.workers)]
        with process_pool(choices.workers) as pool:
            answers = list(pool.map(solve, shares))
        solved_tracts = [answers[one % len(shares)][one // len(shares)] for one in range(len(pieces))]
    solved, ages, status, met, seconds = zip(*solved_tracts, strict=True) if solved_tracts else ([],) * 5
    return SolvedTracts(
        Reconstruction.of([block for one in solved for block in one]),
        np.concatenate([np.zeros(0, np.int64), *ages]),
        np.array(status, np.str_),
        np.array(met, np.int64),
        np.array(seconds, np.float64),
    )


def _pieces(
    lines: TractLines, choices: SolveChoices, seed: int, pieces: Sequence[tuple[int, _Ints, _Ints]]
) -> list[_Tract]:
    orders, solver = _Orders.of(lines), PartSolver(choices.seconds)
    return [
        _tract(orders, choices, solver, blocks, tract, np.random.default_rng([seed, number]))
        for number, blocks, tract in pieces
    ]


def _tract(
    orders: _Orders,
    choices: SolveChoices,
    solver: PartSolver,
    own: _Ints,
    tract: _Ints,
    draw: np.random.Generator,
) -> _Tract:
    started = time.perf_counter()
    caps = orders.lines.caps(own, tract)
    low = np.hstack([own, np.zeros_like(caps)])
    high = np.hstack([own, np.where(caps < 0, NO_LIMIT, caps)])
    blocks = [solve_block(orders.both, choices, solver, *values) for values in zip(low, high, strict=True)]
    status = next((one.status for one in blocks if one.status not in (EXACT, "nearest")), EXACT)
    if status == EXACT and all(one.status == EXACT for one in blocks):
        status, blocks = _together(orders, solver, blocks, own, tract)
    ages, met = _years(orders, solver, blocks, tract, draw)
    if met < len(tract) and status == EXACT:
        status = PARTLY
    return blocks, ages, status, met, time.perf_counter() - started


def _together(
    orders: _Orders, solver: PartSolver, blocks: list[SolvedBlock], own: _Ints, tract: _Ints
) -> tuple[str, list[SolvedBlock]]:
    """All blocks as one program; where it is not solved, blocks one after another."""
    problems = [BlockProblem.of(orders.blocks, value, value) for value in own]
    target = np.rint(orders.lines.sums @ tract).astype(np.int64)
    joined = _joined(problems, orders.lines, target)
    counts, status = joined.least.copy(), EXACT if joined.feasible else INFEASIBLE
    if int((joined.least < joined.most).sum()) > _TOGETHER:
        status = UNKNOWN
    for part in joined.parts() if status == EXACT else ():
        status, solution = solver.any_solution(part)
        if status != EXACT:
            break
        counts[part.types] = solution
    ends = np.append(0, np.cumsum([len(one.types) for one in problems]))
    pieces = [slice(*pair) for pair in pairwise(ends.tolist())]
    if status == EXACT:
        parts = [
            (problem.types, counts[piece], joined.least[piece], joined.most[piece])
            for problem, piece in zip(problems, pieces, strict=True)
        ]
        return EXACT, [_renewed(block, *part) for block, part in zip(blocks, parts, strict=True)]
    changed = _nearer(orders, problems, blocks, target, solver.seconds)
    return PARTLY, [
        _renewed(block, problem.types, count, problem.least, problem.most)
        for block, problem, count in zip(blocks, problems, changed, strict=True)
    ]


def _joined(problems: Sequence[BlockProblem], lines: TractLines, target: _Ints) -> BlockProblem:
    """The problems of all blocks as one, tied by the tract's lines of classes of age."""
    types = np.concatenate([one.types for one in problems])
    ties = csr_array(lines.classes[types].T)
    matrix = csr_array(vstack([block_diag([one.matrix for one in problems]), ties]))
    matrix.sort_indices()
    low, high, least, most = (
        np.concatenate([getattr(one, name) for one in problems]) for name in ("low", "high", "least", "most")
    )
    ends = np.concatenate([low, target]), np.concatenate([high, target])
    feasible = all(one.feasible for one in problems)
    joined = BlockProblem(types, matrix, *ends, least, most, np.arange(len(types)), feasible)
    return joined.tightened() if feasible else joined


def _renewed(block: SolvedBlock, types: _Ints, counts: _Ints, least: _Ints, most: _Ints) -> SolvedBlock:
    """The block with other records; what was proven of every type stays, and what holds for the tract is added."""
    chosen = np.flatnonzero(counts)
    proven, bound = np.zeros(len(types), np.int64), most.copy()
    place = np.searchsorted(types, block.types)
    proven[place] = block.least
    bound[place] = np.minimum(bound[place], block.most)
    return replace(
        block,
        types=types[chosen],
        counts=counts[chosen],
        least=np.maximum(proven, least)[chosen],
        most=bound[chosen],
    )


def _nearer(
    orders: _Orders,
    problems: Sequence[BlockProblem],
    blocks: Sequence[SolvedBlock],
    target: _Ints,
    seconds: float,
) -> list[_Ints]:
    """Blocks changed one after another, each by its own tables, so that sums over the tract come nearer to its lines."""
    counts = []
    for problem, block in zip(problems, blocks, strict=True):
        own = np.zeros(len(problem.types), np.int64)
        own[np.searchsorted(problem.types, block.types)] = block.counts
        counts.append(own)
    ties = [csr_array(orders.lines.classes[one.types].T) for one in problems]
    rest = target - sum(tie @ own for tie, own in zip(ties, counts, strict=True))
    for _ in range(_PASSES):
        before = np.abs(rest).sum()
        for place, problem in enumerate(problems):
            if not before or not (problem.least < problem.most).any():
                continue
            values = rest + ties[place] @ counts[place]
            solution = nearest_solution(problem, ties[place], values, seconds)
            if solution is not None and np.abs(values - ties[place] @ solution).sum() < np.abs(rest).sum():
                counts[place], rest = solution, values - ties[place] @ solution
        if np.abs(rest).sum() >= before:
            break
    return counts


def _years(
    orders: _Orders,
    solver: PartSolver,
    blocks: Sequence[SolvedBlock],
    tract: _Ints,
    draw: np.random.Generator,
) -> tuple[_Ints, int]:
    """Lower end of a class of single years of every person, and how many lines of the tract are met."""
    types = np.concatenate([np.repeat(one.types, one.counts) for one in blocks])
    known = np.bincount(types, minlength=orders.lines.blocks.space.size)
    values = np.concatenate([known, tract])
    problem = BlockProblem.of(orders.years, values, values)
    counts, exact = problem.least.copy(), problem.feasible
    for part in problem.parts() if exact else ():
        status, solution = solver.any_solution(part)
        exact &= status == EXACT
        counts[part.types] = solution
    if not exact:
        problem, counts = _nearest_years(orders, known, tract, solver.seconds)
    fine = np.repeat(problem.types, counts)
    report = orders.lines.report[fine]
    ages = np.empty(len(types), np.int64)
    ages[np.lexsort((draw.random(len(types)), types))] = orders.lines.tracts.space.parts(
        fine[np.argsort(report, kind="stable")]
    )[1]
    reached = np.rint(counts @ orders.lines.tracts.matrix[problem.types])
    return ages, int((reached == tract).sum())


def _nearest_years(orders: _Orders, known: _Ints, tract: _Ints, seconds: float) -> tuple[BlockProblem, _Ints]:
    """Years of age for persons whose classes are known, so that the tract's lines are missed by as little as in the solution."""
    open_lines = np.full(len(tract), NO_LIMIT)
    problem = BlockProblem.of(
        orders.years, np.concatenate([known, 0 * tract]), np.concatenate([known, open_lines])
    )
    ties = csr_array(orders.lines.tracts.matrix[problem.types].T)
    counts = nearest_solution(problem, ties, tract, seconds)
    if counts is None:
        _, place = np.unique(orders.lines.report[problem.types], return_inverse=True)
        first = np.unique(place, return_index=True)[1]
        counts = np.zeros(len(problem.types), np.int64)
        counts[first] = known[orders.lines.report[problem.types[first]]]
    return problem, counts
