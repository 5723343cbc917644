"""Suppression with complements: no withheld count can be computed from the published ones, by moves of one person and by bounds of linear programs."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from censafe.attack.defenses.named import TableAreas
from censafe.attack.defenses.suppression import (
    NO_TYPE,
    CellMove,
    TypeRows,
    suppress_under_threshold,
    withheld_lines,
)
from censafe.attack.people import People
from censafe.attack.tables import Workload, line_tables, tabulate_lines
from support.block_tables import block_workload

SMALL = Workload.of([line_tables()[name] for name in ("P1", "P8", "P9", "P12", "P12A", "P12B", "P12H")])


def one_block(seed: int, persons: int) -> People:
    draw = np.random.default_rng(seed)
    return People.of(
        np.full(persons, "500070001001001"),
        sex=draw.integers(0, 2, persons),
        age=draw.choice([3, 20, 31, 33, 52, 70], persons),
        race=draw.choice([0, 1, 3, 6], persons, p=[0.6, 0.2, 0.1, 0.1]),
        hispanic=draw.random(persons) < 0.2,
    )


def withheld(
    workload: Workload, counts: NDArray[np.int64], people: People, threshold: int
) -> tuple[NDArray[np.bool_], tuple[CellMove, ...]]:
    present = np.unique(workload.space.types(people))
    return withheld_lines(TypeRows.of(workload), counts, present, threshold)


def bounds(
    workload: Workload, counts: NDArray[np.int64], hidden: NDArray[np.bool_], line: int
) -> tuple[float, float]:
    """Least and greatest value of a line over all real numbers of persons of every type that have the published lines."""
    matrix = workload.matrix.toarray().T
    possible = ~((matrix > 0) & (~hidden & (counts == 0))[:, None]).any(axis=0)
    rows = np.flatnonzero(~hidden & (counts > 0))
    found = []
    for sign in (1, -1):
        own = linprog(
            sign * matrix[line, possible],
            A_eq=matrix[np.ix_(rows, possible)] if len(rows) else None,
            b_eq=counts[rows] if len(rows) else None,
            bounds=(0, 100),
        )
        assert own.status == 0
        found.append(sign * own.fun)
    return found[0], found[1]


@pytest.mark.parametrize(("seed", "persons", "threshold"), [(1, 6, 2), (2, 14, 3), (3, 30, 4), (4, 2, 3)])
def test_bounds_of_withheld_counts_have_room_and_counts_under_the_threshold_are_withheld(
    seed: int, persons: int, threshold: int
) -> None:
    people = one_block(seed, persons)
    counts = tabulate_lines(SMALL, people)[0]
    hidden, _ = withheld(SMALL, counts, people, threshold)
    assert hidden[(counts > 0) & (counts < threshold)].all()
    for line in np.flatnonzero(hidden).tolist():
        low, high = bounds(SMALL, counts, hidden, line)
        assert low <= counts[line] <= high
        assert high - low > 1 - 1e-7


def test_primary_suppression_alone_would_be_undone() -> None:
    """What the bounds above would catch: without complements a margin gives a withheld count away."""
    people = one_block(2, 14)
    counts = tabulate_lines(SMALL, people)[0]
    small = (counts > 0) & (counts < 3)
    widths = [
        np.subtract(*bounds(SMALL, counts, small, line)[::-1]) for line in np.flatnonzero(small).tolist()
    ]
    assert min(widths) < 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_moves_leave_published_lines_and_change_every_withheld_one(seed: int) -> None:
    workload = block_workload()
    people = one_block(seed + 10, 40)
    counts = tabulate_lines(workload, people)[0]
    types = workload.space.types(people)
    hidden, moves = withheld(workload, counts, people, 3)
    matrix = workload.matrix.toarray()
    changed = np.zeros(len(counts), np.bool_)
    for move in moves:
        assert move.before in types
        after = np.zeros(len(counts)) if move.after == NO_TYPE else matrix[move.after]
        step = after - matrix[move.before]
        assert not step[~hidden].any()
        assert (counts + step >= 0).all()
        changed |= step != 0
    assert np.array_equal(changed, hidden)


def test_areas_are_withheld_one_by_one_and_others_are_exact() -> None:
    workload, people = SMALL, one_block(5, 25)
    counts = tabulate_lines(workload, people)
    found = suppress_under_threshold(TableAreas(workload.types(people), people.block, workload, counts), 3)
    hidden, _ = withheld(workload, counts[0], people, 3)
    assert np.array_equal(~found.published[0], hidden)
    assert np.array_equal(found.value[found.published], counts[found.published])
    assert ((found.low <= counts) & (counts <= found.high)).all()
