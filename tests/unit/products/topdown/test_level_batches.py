"""Batches of ordinary parents against the general way, on random levels with bounds, totals, kinds of budgets and passes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels import batches
from censafe.estimation.topdown.levels import descent as estimating
from censafe.estimation.topdown.levels.checks import adds_up, check_level
from censafe.estimation.topdown.levels.descent import estimate_level
from censafe.estimation.topdown.levels.general_parents import Family, estimate_family
from censafe.estimation.topdown.levels.limits import CutLimits, GroupTotals, LevelLimits, level_limits
from censafe.estimation.topdown.levels.passes import CellChange, ParentEstimate
from censafe.estimation.topdown.levels.task import CellRules, LevelTask, family_rules
from censafe.estimation.topdown.rounding.network import ALL_POSITIVE
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import Attribute, ProtectedUnit, Schema, SparseLevel
from censafe.model.topdown.histograms import Facilities, HistogramSchema, own_constraints
from support.histograms import dense
from support.random_levels import (
    CELLS,
    KIND_OF,
    KINDS,
    ONE,
    TOTALS_FIRST,
    estimated,
    impossible,
    random_level,
    rules,
    same,
)


@pytest.mark.parametrize(
    ("bounded", "known", "passes"), list(product([False, True], [False, True], [ONE, TOTALS_FIRST]))
)
@pytest.mark.parametrize("seed", range(3))
def test_batches_give_what_the_general_way_gives(monkeypatch, seed, bounded, known, passes):
    spine, parents, task = random_level(seed, bounded=bounded, known=known)
    chosen = rules(passes)
    found, report = estimated(spine, parents, task, chosen)
    assert report.general <= 2
    monkeypatch.setattr(estimating, "family_rules", lambda *_: None)
    slow, other = estimated(spine, parents, task, chosen)
    assert other.general == sum(report.statuses.values()) == sum(other.statuses.values())
    assert same(slow, found)
    check_level(task.level, found, task.limits, CELLS, parents)


def test_one_and_two_workers_give_the_same_bits(monkeypatch):
    spine, parents, task = random_level(1, bounded=True, known=False, parents=40)
    chosen = rules(TOTALS_FIRST)
    monkeypatch.setattr("censafe.estimation.topdown.levels.batches._BATCH_WORK", 2e4)
    shares: list[float] = []
    one, report = estimated(spine, parents, task, chosen)
    two, repeated = estimate_level(task, chosen, parents, spine.levels[1], workers=2, progress=shares.append)
    assert same(one, two)
    assert report.document() == repeated.document()
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_limits_on_sets_of_kinds_are_kept_by_batches():
    spine, parents, task = random_level(2, bounded=True, known=True)
    kinds = np.zeros((task.level.nodes, KINDS), int)
    held = dense(estimated(spine, parents, task, rules(ONE))[0], CELLS)
    for kind in range(KINDS):
        kinds[:, kind] = held[:, kind == KIND_OF].sum(axis=1)
    sets = np.array([[1, 1, 0]], np.uint8)
    both = kinds[:, :2].sum(axis=1, keepdims=True).astype(float)
    limits = replace(task.limits, cuts=CutLimits(sets, both, both))
    found, _ = estimated(spine, parents, replace(task, limits=limits), rules(ONE))
    assert dense(found, CELLS)[:, KIND_OF < 2].sum(axis=1).tolist() == both[:, 0].tolist()


@pytest.mark.parametrize("choice", [{"detailed_cost": "flat"}, {"passes": "one"}])
def test_choices_change_the_result_and_keep_the_limits(choice):
    spine, parents, task = random_level(7, bounded=True, known=False, parents=60)
    passes = ONE if choice.pop("passes", "") else TOTALS_FIRST
    base, _ = estimated(spine, parents, task, rules(TOTALS_FIRST))
    other, _ = estimated(spine, parents, task, rules(passes, **choice))
    assert not same(base, other)
    check_level(task.level, other, task.limits, CELLS, parents)


def test_leaves_reach_the_kernels():
    _, _, task = random_level(7, bounded=True, known=False)
    chosen = {
        leaves: family_rules(task, rules(ONE, leaves=leaves)) for leaves in ("fractional", "all_positive")
    }
    assert [one.rounding.options for one in chosen.values() if one is not None] == [0, ALL_POSITIVE]


def test_more_leaves_make_rounding_cheaper():
    spine, parents, task = random_level(9, bounded=False, known=False, parents=60)
    few, report = estimated(spine, parents, task, rules(ONE))
    many, cheaper = estimated(spine, parents, task, rules(ONE, leaves="all_positive"))
    assert not same(few, many)
    assert report.document()["rounding_cost"] > cheaper.document()["rounding_cost"] + 0.5
    check_level(task.level, many, task.limits, CELLS, parents)


def test_an_impossible_parent_stops_the_run_and_is_named():
    spine, parents, task, closed = impossible()
    name = spine.levels[1].geounits[closed]
    with pytest.raises(CheckError, match=f"level Block, children of {name}"):
        estimated(spine, parents, task, rules(ONE, infeasible="stop"))


def test_children_of_a_repaired_parent_add_up_to_its_changed_counts_and_the_change_is_named(monkeypatch):
    spine, parents, task = random_level(3, bounded=True, known=False)
    first = spine.levels[1].first_child
    chosen = next(p for p in range(spine.levels[1].nodes) if first[p + 1] - first[p] > 1)
    own = slice(int(parents.node_ptr[chosen]), int(parents.node_ptr[chosen + 1]))
    one, other = np.flatnonzero(KIND_OF[parents.cell[own]] == 0)[:2].tolist()

    def moved(task: LevelTask, rules: CellRules, family: Family) -> ParentEstimate:
        """What a repair that moves everybody out of one cell leaves behind."""
        if family.first != first[chosen]:
            return estimate_family(task, rules, family)
        p = family.p.copy()
        p[other] += p[one]
        p[one] = 0
        made = estimate_family(task, rules, replace(family, p=p))
        changes = [CellChange(k, int(family.p[k]), int(p[k])) for k in (one, other)]
        return replace(made, changes=tuple(changes))

    monkeypatch.setattr(estimating, "family_rules", lambda *_: None)
    monkeypatch.setattr(batches, "estimate_family", moved)
    found, report = estimated(spine, parents, task, rules(ONE))
    before = parents.count[own]
    cells = parents.cell[own]
    assert report.repairs == [
        {
            "geounit": str(spine.levels[1].geounits[chosen]),
            "cells": [
                [int(cells[one]), int(before[one]), 0],
                [int(cells[other]), int(before[other]), int(before[one] + before[other])],
            ],
        }
    ]
    assert not adds_up(task.level, found, CELLS, parents)
    held = dense(found, CELLS)[first[chosen] : first[chosen + 1]].sum(axis=0)
    assert held[cells[one]] == 0
    assert held.sum() == before.sum()


# Totals of groups of geounits: limits against every way to fill them, roots without a parent, and what contradicts.


GROUP_KINDS = 2
SCHEMA = HistogramSchema(
    record=ProtectedUnit.PERSON,
    schema=Schema("small", (Attribute("kind", GROUP_KINDS), Attribute("age", 2))),
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
        [fill for fill in product(range(9), repeat=GROUP_KINDS)
         if (parts.lower[part] <= fill).all() and (fill <= parts.upper[part]).all()]
        for part in range(4)
    ]  # fmt: skip
    possible = {
        tuple(np.sum(chosen, axis=0).tolist())
        for chosen in product(*fills)
        if np.sum(chosen[0]) + np.sum(chosen[2]) == first and np.sum(chosen[1]) + np.sum(chosen[3]) == second
    }
    allowed = set()
    for held in product(range(first + second + 1), repeat=GROUP_KINDS):
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
