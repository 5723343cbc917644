"""Reconstruction of blocks: hand-made blocks, enumeration of all consistent data sets, round trips."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.attack.people import People
from censafe.attack.reconstruction.problem import NO_LIMIT, BlockProblem, IncidenceOrder
from censafe.attack.reconstruction.solve import PartSolver, Reconstruction, SolveChoices, reconstruct
from censafe.attack.study import ConflictFinder
from censafe.attack.tables import TypeSpace, Workload, line_tables, tabulate_lines
from support.block_tables import block_workload

WHITE, BLACK, ASIAN, WHITE_BLACK, WHITE_ASIAN = 0, 1, 3, 6, 8
EVERYTHING = SolveChoices(variability=True, claims=True)
Person = tuple[int, int, int, int]  # sex, age, race, hispanic


def block(persons: Sequence[Person], code: str = "500070001001001") -> People:
    columns = np.array(persons, np.int64).reshape(-1, 4).T
    return People.of(
        np.full(len(persons), code), **dict(zip(("sex", "age", "race", "hispanic"), columns, strict=True))
    )


def solved(
    people: People, workload: Workload | None = None, choices: SolveChoices = EVERYTHING
) -> Reconstruction:
    workload = workload or block_workload()
    values = tabulate_lines(workload, people)
    return reconstruct(workload, values, values, choices)


@pytest.mark.parametrize(
    ("persons", "share"),
    [
        ([(0, 1, WHITE, 0), (0, 3, BLACK, 0)], 100),
        ([(0, 30, WHITE_BLACK, 0), (0, 40, WHITE_ASIAN, 0)], 100),
        ([(0, 30, WHITE_BLACK, 0), (0, 40, WHITE_ASIAN, 1)], 0),
        ([(0, 30, WHITE, 0), (1, 30, BLACK, 0)], 0),
        ([(0, 30, BLACK, 1), (0, 30, ASIAN, 0), (0, 40, BLACK, 0), (0, 40, ASIAN, 1)], 100),
        ([(0, 30, WHITE, 0), (0, 30, BLACK, 1), (0, 40, WHITE, 1), (0, 40, BLACK, 0)], 0),
        ([(0, 50, WHITE, 0)] * 9 + [(0, 50, ASIAN, 0)], 0),
    ],
)  # fmt: skip
def test_hand_made_blocks(persons: list[Person], share: float) -> None:
    found = solved(block(persons))
    assert found.status.tolist() == ["exact"]
    assert found.variability.tolist() == [share]
    assert found.least.sum() == (len(persons) if share == 0 else 0)


def test_tract_tables_decide_what_block_tables_leave_open() -> None:
    people = block([(0, 1, WHITE, 0), (0, 3, BLACK, 0)])
    space = TypeSpace((*range(101), 105, 110))
    tables = [table for table in line_tables().values() if table.lowest == "block"]
    both = Workload.of([*tables, line_tables()["PCT12A"]], space)
    values = tabulate_lines(both, people)
    low = np.where(np.array(both.names) == "PCT12A", 0, values)
    found = reconstruct(both, low, values, EVERYTHING)
    assert found.variability.tolist() == [0]


def every_data_set(workload: Workload, people: People, types: Sequence[int]) -> list[tuple[int, ...]]:
    """All multisets of the types with the tables of the people."""
    rows = workload.matrix[list(types)].toarray()
    found: list[tuple[int, ...]] = []

    def extend(chosen: tuple[int, ...], first: int, rest: np.ndarray) -> None:
        if len(chosen) == len(people):
            if not rest.any():
                found.append(chosen)
            return
        left = rest - rows[first:]
        for place in np.flatnonzero((left >= 0).all(axis=1)).tolist():
            extend((*chosen, types[first + place]), first + place, left[place])

    extend((), 0, tabulate_lines(workload, people)[0].astype(float))
    return found


@settings(max_examples=5)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([1, 3, 30]), st.sampled_from([WHITE, BLACK, WHITE_BLACK]), st.integers(0, 1)),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_enumeration_gives_the_same_variability_and_claims(persons: list[Person]) -> None:
    people = block(persons)
    tables = Workload.of([line_tables()[name] for name in ("P1", "P6", "P12", "P12A", "P12H")])
    space = tables.space
    possible = [
        int(np.ravel_multi_index((sex, age, race, origin), space.shape))
        for sex, age, race, origin in itertools.product(
            (0, 1), range(38), (WHITE, BLACK, WHITE_BLACK), (0, 1)
        )
    ]
    wanted = tabulate_lines(tables, people)[0]
    open_types = [one for one in possible if (wanted[tables.matrix[[one]].toarray()[0] > 0] > 0).all()]
    every = every_data_set(tables, people, open_types)
    found = solved(people, tables)
    start = np.bincount(np.repeat(found.types, found.counts), minlength=space.size)
    others = [np.bincount(one, minlength=space.size) for one in every]
    assert any(np.array_equal(start, other) for other in others)
    farthest = min(int(np.minimum(start, other).sum()) for other in others)
    assert found.variability[0] == pytest.approx(100 * (1 - farthest / len(people)))
    least, most = np.min(others, axis=0), np.max(others, axis=0)
    assert found.least.tolist() == least[found.types].tolist()
    assert found.most.tolist() == most[found.types].tolist()


def random_people(seed: int, blocks: int) -> People:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 40, blocks)
    code = np.repeat([f"50007000100{1000 + one}" for one in range(blocks)], sizes)
    number = len(code)
    race = np.where(draw.random(number) < 0.8, draw.integers(0, 4, number), draw.integers(0, 63, number))
    return People.of(
        code,
        sex=draw.integers(0, 2, number),
        age=draw.integers(0, 100, number),
        race=race,
        hispanic=draw.random(number) < 0.3,
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_reconstruction_has_the_same_tables(seed: int) -> None:
    people = random_people(seed, 12)
    for workload in (block_workload(), block_workload(["P8", "P10"])):
        found = solved(people, workload, SolveChoices(variability=True))
        matrix = workload.matrix.toarray()
        values = tabulate_lines(workload, people)
        for place in range(len(people.blocks)):
            own = found.block == place
            assert np.array_equal(found.counts[own] @ matrix[found.types[own]], values[place])


def test_variability_0_means_that_the_reconstruction_is_the_truth_and_fewer_tables_never_lower_it() -> None:
    people = random_people(7, 15)
    found, fewer = solved(people), solved(people, block_workload(["P12G", "P12H", "P12I"]))
    space = TypeSpace()
    for place in np.flatnonzero(found.variability == 0).tolist():
        own = found.block == place
        truth = np.sort(space.types(people.take(people.block == place)))
        assert np.sort(np.repeat(found.types[own], found.counts[own])).tolist() == truth.tolist()
    assert (found.variability == 0).sum() > 3
    certain = fewer.variability == 0
    assert (found.variability[certain] == 0).all()
    assert certain.sum() < (found.variability == 0).sum()


def variability_from(people: People, workload: Workload, start: np.ndarray) -> float:
    """Variability of the first block from a given solution."""
    values = tabulate_lines(workload, people)[0]
    problem = BlockProblem.of(IncidenceOrder.of(workload.matrix), values, values)
    solver, common = PartSolver(), problem.certain()
    for part in problem.parts():
        status, shared = solver.least_common(part, start[problem.types[part.types]])
        assert status == "exact"
        common += shared
    return 100 * (1 - common / len(people))


@pytest.mark.parametrize("seed", range(4))
def test_dropping_tables_never_lowers_the_variability_from_the_same_records(seed: int) -> None:
    people = random_people(seed, 1)
    start = np.bincount(TypeSpace().types(people), minlength=TypeSpace().size)
    names = ["P8", "P10", "P12G", "P12H", "P12I", "P9", "P11"]
    found = [
        variability_from(people, block_workload(names[:dropped]), start) for dropped in range(len(names) + 1)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_results_do_not_depend_on_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("censafe.attack.reconstruction.solve._CHUNK", 25)  # three pieces
    people = random_people(3, 60)
    one, two = solved(people, choices=SolveChoices()), solved(people, choices=SolveChoices(workers=2))
    assert np.array_equal(one.types, two.types)
    assert np.array_equal(one.counts, two.counts)


def test_tables_of_nobody_and_tables_that_contradict() -> None:
    workload = block_workload()
    values = tabulate_lines(workload, block([(0, 30, WHITE, 0), (1, 40, BLACK, 0)]))
    wrong = values.copy()
    wrong[0, list(zip(workload.names, workload.numbers, strict=True)).index(("P12A", 1))] += 1
    tables = np.concatenate([0 * values, wrong])
    found = reconstruct(workload, tables, tables, EVERYTHING)
    assert found.status.tolist() == ["exact", "infeasible"]
    assert found.population.tolist() == [0, 0]
    assert found.variability[0] == 0
    assert np.isnan(found.variability[1])


def test_rounded_and_missing_lines_leave_more_open() -> None:
    people = random_people(5, 10)
    workload = block_workload()
    values = tabulate_lines(workload, people)
    exact = solved(people)
    wide = reconstruct(
        workload,
        np.maximum(values - 2, 0),
        np.where(values > 0, values + 2, 0),
        SolveChoices(variability=True),
    )
    missing = values.copy()
    hidden = np.array([name.startswith("P12") and name != "P12" for name in workload.names])
    missing[:, hidden] = NO_LIMIT
    low = np.where(hidden, 0, values)
    gone = reconstruct(workload, low, missing, SolveChoices(variability=True))
    assert set(wide.status) == set(gone.status) == {"exact"}
    assert np.nansum(wide.variability) > np.nansum(exact.variability)
    assert (gone.variability >= exact.variability / 2 - 1e-9).all()
    assert gone.variability.sum() > exact.variability.sum()


def test_a_program_out_of_time_is_unknown_and_not_certain() -> None:
    people = random_people(11, 30)
    found = solved(people, choices=SolveChoices(variability=True, seconds=1e-9))
    hard = found.status == "unknown"
    assert hard.any()
    assert np.isnan(found.variability[hard]).all()


# Which tables contradict each other.


PEOPLE = People.of(
    np.array(["500070001001001"] * 4),
    sex=np.array([0, 1, 0, 1]),
    age=np.array([30, 31, 5, 70]),
    race=np.array([0, 1, 0, 3]),
    hispanic=np.array([0, 0, 1, 0]),
)


def changed(workload: Workload, table: str, line: int, by: int) -> np.ndarray:
    values = tabulate_lines(workload, PEOPLE)[0]
    place = [*zip(workload.names, workload.numbers, strict=True)].index((table, line))
    values[place] += by
    return values


@pytest.mark.parametrize(
    ("table", "line", "words"),
    [("P1", 1, "P1 and P6"), ("P12A", 1, "P12A"), ("P12", 2, "P12"), ("P14", 1, "P14"), ("P6", 2, "P6"), ("P8", 3, "P8")],
)  # fmt: skip
def test_the_first_conflict_of_a_changed_line(table: str, line: int, words: str) -> None:
    workload = block_workload()
    values = changed(workload, table, line, 1)
    assert ConflictFinder(workload).first(values, values) == words


def test_three_tables_that_contradict_only_together() -> None:
    workload = Workload.of([line_tables()[name] for name in ("P1", "P12H", "P12I")])
    values = tabulate_lines(workload, PEOPLE)[0]
    total = workload.names.index("P1")
    values[total] = (
        2  # one Hispanic and one White alone, not Hispanic, in different classes of age, and the two of them are all
    )
    values[np.array(workload.names) == "P12I"] *= 2
    found = reconstruct(workload, values[None], values[None], SolveChoices())
    assert found.status.tolist() == ["infeasible"]
    assert (
        ConflictFinder(workload).first(values, values) == "three or more tables"
    )  # no two contradict each other
