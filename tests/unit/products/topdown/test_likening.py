"""Likeness by state: parents it is fitted on, geounits it is used for, and what is stated."""

from __future__ import annotations

import numpy as np
import pytest

from censafe.estimation.topdown.likeness_fit import LikenessFit
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.geography.spine import LevelRule, Spine, build_spine
from censafe.model import SparseLevel
from censafe.products.topdown import likening
from censafe.products.topdown.estimating import CellRules, LevelTask
from censafe.products.topdown.invariants import LevelLimits

CELLS = 3
GROUPS = 310


@pytest.fixture
def spine() -> Spine:
    codes = [f"{s}{g:03d}{b}" for s in (1, 2) for g in range(GROUPS) for b in range(1 + (g > 0))]
    rules = (LevelRule("US", 0), LevelRule("State", 1), LevelRule("Group", 4), LevelRule("Block", 5))
    return build_spine(np.array(codes), rules)


def level(geounits: np.ndarray, entries: int) -> SparseLevel:
    """The same counts everywhere, but for nobody in the second geounit."""
    sizes = np.full(len(geounits), entries)
    sizes[1:2] = 0
    pointer = np.append(0, np.cumsum(sizes)).astype(np.int64)
    cell = np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)
    return SparseLevel(geounits, pointer, cell, np.full(len(cell), 4, np.int32))


def given(spine: Spine) -> tuple[LevelTask, CellRules, tuple[SparseLevel, ...]]:
    leaf = spine.leaf
    values = [np.ones((leaf.nodes, CELLS), np.int32)]
    objective = LevelObjective.of((np.arange(CELLS, dtype=np.int32),), (2.0,), values)
    none = np.zeros((leaf.nodes, 0), np.int64)
    task = LevelTask(leaf, objective, LevelLimits(None, none, none))
    found = tuple(level(one.geounits, CELLS) for one in spine.levels)
    return task, CellRules(CELLS, np.ones(CELLS, bool), None, ()), found


def test_every_state_has_a_fit_of_its_own(monkeypatch, spine):
    seen = []

    def fit(objective, rules, families, counts, labels):
        seen.append(families.child)
        return LikenessFit((0.1,), 0.3 * (len(seen) == 1), families.parents, ((1.0, 2.0, 3.0),))

    monkeypatch.setattr(likening, "fit_likeness", fit)
    task, rules, found = given(spine)
    again, documents = likening.likened(task, rules, found, spine)
    state = np.array([code[0] for code in spine.leaf.geounits])
    assert [set(state[child]) for child in seen] == [{"1"}, {"2"}]
    # of the 310 groups of a state one has a single block, and one of the first state nobody
    assert [document["parents"] for document in documents] == [300, 300]
    assert [document["state"] for document in documents] == ["1", "2"]
    assert documents[0]["expected_changes"] == {"0.1": [1.0, 2.0, 3.0]}
    alike = again.objective.alike
    assert alike.strength[again.objective.kinds].tolist() == np.where(state == "1", 0.3, 0.0).tolist()
    assert len(np.unique(seen[0])) == 600


def test_without_a_strength_the_level_stays_as_it_is(monkeypatch, spine):
    monkeypatch.setattr(likening, "fit_likeness", lambda *_: LikenessFit((0.1,), 0.0, 1, ()))
    task, rules, found = given(spine)
    again, documents = likening.likened(task, rules, found, spine)
    assert again is None
    assert [document["strength"] for document in documents] == [0.0, 0.0]


def test_below_no_state_there_is_one_fit_and_none_where_cells_are_kinds(monkeypatch, spine):
    monkeypatch.setattr(likening, "fit_likeness", lambda *_: LikenessFit((0.1,), 1.0, 1, ()))
    task, rules, found = given(spine)
    monkeypatch.setattr(likening, "STATE", "Province")
    again, documents = likening.likened(task, rules, found, spine)
    assert [document["state"] for document in documents] == [""]
    assert (again.objective.alike.strength == 1.0).all()
    one = CellRules(1, np.ones(1, bool), None, ())
    assert likening.likened(task, one, found, spine) == (None, [])
