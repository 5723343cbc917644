"""Batches of ordinary parents against the general way, on random levels with bounds, totals, kinds of budgets and passes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.levels import batches
from censafe.estimation.topdown.levels import descent as estimating
from censafe.estimation.topdown.levels.checks import adds_up, check_level
from censafe.estimation.topdown.levels.descent import estimate_level
from censafe.estimation.topdown.levels.general_parents import Family, estimate_family
from censafe.estimation.topdown.levels.limits import CutLimits
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.repair import CellChange
from censafe.estimation.topdown.levels.task import CellRules, LevelTask, family_rules
from censafe.estimation.topdown.rounding.steps import ALL_POSITIVE
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
