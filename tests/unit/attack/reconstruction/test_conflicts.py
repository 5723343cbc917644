"""Which tables contradict each other."""

import numpy as np
import pytest

from censafe.attack.people import People
from censafe.attack.reconstruction.solve import SolveChoices, reconstruct
from censafe.attack.study import ConflictFinder
from censafe.attack.tables import Workload, line_tables, tabulate_lines
from support.block_tables import block_workload

PEOPLE = People.of(
    np.array(["500070001001001"] * 4),
    sex=np.array([0, 1, 0, 1]),
    age=np.array([30, 31, 5, 70]),
    race=np.array([0, 1, 0, 3]),
    hispanic=np.array([0, 0, 1, 0]),
)


def changed(workload: Workload, table: str, line: int, by: int) -> np.ndarray:
    values = tabulate_lines(workload, PEOPLE)[0]
    place = [(one.table, one.number) for one in workload.lines].index((table, line))
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
    total = [one.table == "P1" for one in workload.lines].index(True)
    values[total] = (
        2  # one Hispanic and one White alone, not Hispanic, in different classes of age, and the two of them are all
    )
    values[[one.table == "P12I" for one in workload.lines]] *= 2
    found = reconstruct(workload, values[None], values[None], SolveChoices())
    assert found.status.tolist() == ["infeasible"]
    assert (
        ConflictFinder(workload).first(values, values) == "three or more tables"
    )  # no two contradict each other
