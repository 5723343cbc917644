"""Totals of groups of geounits: limits against every way to fill them, roots without a parent, and what contradicts."""

from itertools import product

import numpy as np
import pytest

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.checks import check_level
from censafe.estimation.topdown.levels.descent import estimate_level
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits, level_limits
from censafe.estimation.topdown.levels.task import CellRules, LevelTask
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import Attribute, ProtectedUnit, Schema, SparseLevel
from censafe.model.topdown.histograms import Facilities, HistogramSchema, own_constraints
from support.histograms import dense

KINDS = 2
SCHEMA = HistogramSchema(
    record=ProtectedUnit.PERSON,
    schema=Schema("small", (Attribute("kind", KINDS), Attribute("age", 2))),
    facilities=Facilities("kind", (0, 1), (3, 2)),
)
TREE = build_spine(np.array(["1", "2", "3", "4"]), (LevelRule("US", 0), LevelRule("State", 1)))
UNITS = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
PARTS = np.array([0, 1, 0, 1], np.int32)


def limits_of(first: int, second: int) -> tuple[LevelLimits, ...]:
    groups = {"State": GroupTotals(PARTS, np.array([first, second]))}
    return level_limits(
        TREE, SCHEMA, own_constraints(SCHEMA, "State"), UNITS, {"US": np.array([first + second])}, groups
    )


@pytest.mark.parametrize(("first", "second"), [(1, 1), (4, 2), (7, 1), (8, 2), (5, 1)])
def test_the_parent_may_hold_exactly_what_its_groups_can_share(first, second):
    whole, parts = limits_of(first, second)
    assert parts.totals is None
    fills = [
        [fill for fill in product(range(9), repeat=KINDS)
         if (parts.lower[part] <= fill).all() and (fill <= parts.upper[part]).all()]
        for part in range(4)
    ]  # fmt: skip
    possible = {
        tuple(np.sum(chosen, axis=0).tolist())
        for chosen in product(*fills)
        if np.sum(chosen[0]) + np.sum(chosen[2]) == first and np.sum(chosen[1]) + np.sum(chosen[3]) == second
    }
    allowed = set()
    for held in product(range(first + second + 1), repeat=KINDS):
        good = sum(held) == first + second
        good &= bool((whole.lower[0] <= held).all() and (held <= whole.upper[0]).all())
        if whole.cuts is not None:
            sums = whole.cuts.sets @ np.array(held)
            good &= bool((whole.cuts.lower[0] <= sums).all() and (sums <= whole.cuts.upper[0]).all())
        if good:
            allowed.add(held)
    assert possible == allowed


@pytest.mark.parametrize(
    ("first", "second", "named"), [(0, 1, "1, 3"), (9, 1, "1, 3"), (3, 0, "2, 4"), (3, 3, "2, 4")]
)
def test_a_total_that_the_parts_cannot_hold_names_them(first, second, named):
    with pytest.raises(DataError, match=f"level State: in {named} the exact total does not fit"):
        limits_of(first, second)


LABELS = (np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
KIND = np.array([0, 0, 1, 1], np.int32)
RULES = CellRules(4, np.ones(4, bool), (KIND,))


def root_task(noisy: np.ndarray, total: int, *, grouped: bool = True) -> LevelTask:
    """Two roots, measured in all cells and in total, of which the sum is known."""
    units = np.array([[4, 1], [4, 0]])
    base = build_spine(np.array(["1", "2"]), (LevelRule("All", 0), LevelRule("State", 1))).levels[1]
    lower, upper = units * np.array([0, 1]), units * np.array([50, 50])
    groups = GroupTotals(np.zeros(2, np.int32), np.array([total])) if grouped else None
    values = (noisy.sum(axis=1, keepdims=True), noisy)
    objective = LevelObjective.of(LABELS, [[4.0, 1.0], [1.0, 2.0]], values, np.array([0, 1], np.int32))
    return LevelTask(base, objective, LevelLimits(None, lower, upper, groups=groups, kinds=KIND))


def test_parts_of_a_root_meet_the_total_of_their_sum():
    noisy = np.array([[9, 20, -3, 1], [4, 30, 8, 7]])
    found, report = estimate_level(root_task(noisy, 61), RULES, None, None)
    assert found.total == 61
    assert found.nodes == 2
    held = dense(found, 4)
    assert (held[1, 2:] == 0).all()
    assert held[0, 2:].sum() >= 1
    assert sum(report.statuses.values()) == 1


def test_the_joint_solution_is_the_least_of_all_integers_nearby():
    noisy = np.array([[2, 1, 1, 0], [3, 0, 0, 0]])
    total = 5
    task = root_task(noisy, total)
    found, _ = estimate_level(task, RULES, None, None)
    held = dense(found, 4)

    def price(x: np.ndarray) -> float:
        weights = np.array([[0.25, 1.0], [1.0, 0.5]])
        sums = (x.sum(axis=1) - noisy.sum(axis=1)) ** 2
        return float((weights[:, 0] * sums + weights[:, 1] * ((x - noisy) ** 2).sum(axis=1)).sum())

    fills = [np.array(fill).reshape(2, 4) for fill in product(range(5), repeat=8) if sum(fill) == total]
    good = [fill for fill in fills if not fill[1, 2:].any() and fill[0, 2:].sum() >= 1]
    # rounding starts from the least fractional point; it can lose no more than one count in a cell
    assert price(held) <= min(map(price, good)) + 1.0


def test_roots_without_a_common_total_are_estimated_one_by_one():
    noisy = np.array([[9, 20, 3, 1], [4, 30, 0, 0]])
    found, report = estimate_level(root_task(noisy, 0, grouped=False), RULES, None, None)
    assert found.nodes == 2
    assert found.total == noisy.sum()
    assert sum(report.statuses.values()) == 2


def test_integers_that_miss_the_total_of_a_group_are_told():
    task = root_task(np.zeros((2, 4), np.int64), 7)
    counts = np.array([5, 1], np.int32)
    level = SparseLevel(task.level.geounits, np.array([0, 1, 2]), np.array([2, 0], np.int32), counts)
    with pytest.raises(CheckError, match="2 geounits have totals that are not the exact ones of their group"):
        check_level(task.level, level, task.limits, 4, None)
