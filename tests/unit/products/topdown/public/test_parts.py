"""Linear estimates part by part against those of the whole tree at once: the same bits."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.whole_tree.information import linear_tree
from censafe.estimation.topdown.whole_tree.sweep import LinearTree, TreeLevel, pooled
from censafe.geography.spines.tree import Subtree, subtrees
from censafe.model.observer import SilentObserver
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.folder import STATE, StoredParts, stored_files
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.measuring import measure_stored
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads
from censafe.products.topdown.public.estimate import PartedTree
from censafe.products.topdown.rehearsal import TestMeasurementStore
from support.linear_trees import lower_estimate
from support.topdown_areas import write_pl94

Trees = tuple[LinearTree, PartedTree, tuple[Subtree, ...]]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    """Two states with American Indian halves and passed-over geounits, at once and half-state by half-state."""
    place = tmp_path_factory.mktemp("parted")
    config = load_config("pl94-us", {"information": "lower", "spine": "optimized", "measure": "persons"})
    with BlockIntake(write_pl94(place / "data"), config, ReadOptions()) as intake:
        loaded = intake.load()
    facts, store, loads = loaded.facts, TestMeasurementStore(plan_release(config), 8), workloads(config)
    own = []
    for load, counts in zip(loads, loaded.exact["persons"], strict=True):
        measured = measure_stored(
            load,
            counts,
            facts.budgets[load.part.name],
            store,
            stored_files(load, facts),  # type: ignore[arg-type]
        )
        own.append(LevelObjective.measured([query.label for query in load.queries], measured))

    def read(load: LevelWorkload, part: Subtree | None) -> LevelObjective:
        depth = facts.spine.names.index(load.level.name)
        whole = own[depth]
        if part is None:
            return whole
        nodes = part.nodes(depth)
        values = tuple(values[nodes] for values in whole.source.values)  # type: ignore[attr-defined]
        return LevelObjective(whole.labels, whole.weights, whole.kinds[nodes].copy(), StoredAnswers(values))

    histogram = config.histograms[0]
    parts = subtrees(facts.spine, facts.spine.names.index(STATE), ())
    store = StoredParts(place / "store", "0" * 64, stamped=True)
    parted = PartedTree(histogram, facts, parts, loads, read, store, SilentObserver())
    return linear_tree(histogram, facts, own), parted, parts


def same(whole: LinearTree, depth: int, nodes: slice, part: LinearTree, at: int) -> None:
    one, other = whole.lower[depth], part.lower[at]
    assert whole.levels[depth].name == part.levels[at].name
    mine, theirs = one.pattern[nodes], other.pattern
    for name in ("kind", "support", "below", "covariance", "informed"):
        if name != "kind":  # kinds are numbered anew in every part
            assert np.array_equal(getattr(one, name)[mine], getattr(other, name)[theirs]), name
    assert [one.keys[pattern] for pattern in mine] == [other.keys[pattern] for pattern in theirs]
    assert (one.right is None) == (other.right is None)
    if one.right is not None and other.right is not None:
        assert np.array_equal(one.right[nodes], other.right)


def own_tree(parted: PartedTree, part: Subtree) -> LinearTree:
    """A part with its widest geounits, as a tree of its own: their estimates use what is in the part alone."""
    nodes, below = part.nodes(part.depth), tuple(parted._below(part))
    widest, own = parted.top.levels[-1], parted.top.lower[-1]
    whole = widest.objective
    assert whole is not None
    values = StoredAnswers(tuple(values[nodes] for values in whole.source.values))  # type: ignore[attr-defined]
    objective = LevelObjective(whole.labels, whole.weights, whole.kinds[nodes], values, whole.below)
    totals = None if widest.totals is None else widest.totals[nodes]
    alone = np.full(nodes.stop - nodes.start, -1, np.int32)
    first = TreeLevel(widest.name, objective, alone, widest.support[nodes], totals)
    levels, lower = [level for level, _ in below], [one for _, one in below]
    return LinearTree(parted.blocks, [first, *levels], [own.of(nodes), *lower])


def test_parts_and_what_is_above_have_the_bits_of_the_whole(trees: Trees) -> None:
    whole, parted, parts = trees
    assert len(parts) > 2
    widest = len(parted.top.levels) - 1
    for depth in range(widest + 1):
        same(whole, depth, slice(0, whole.levels[depth].nodes), parted.top, depth)
    for part in parts:
        tree = own_tree(parted, part)
        for at in range(len(tree.levels)):
            depth = widest + at
            same(whole, depth, part.nodes(part.depth + at), tree, at)
        nodes = np.arange(*part.spans[0])
        below = lower_estimate(whole, widest, nodes)
        assert np.array_equal(below, lower_estimate(tree, 0, nodes - part.spans[0][0]))


def test_objectives_have_the_bits_of_the_whole(trees: Trees) -> None:
    whole, parted, parts = trees
    wanted = [one for one in pooled(whole.blocks, whole.levels, whole.lower) if one is not None]
    above = parted.objectives_above()
    assert [one.coarse is None for one in above] == [False] + [True] * (len(above) - 1)
    for one, other in zip(wanted, above, strict=False):
        assert one.below is not None and other.below is not None
        assert np.array_equal(one.below.right, other.below.right)
        assert np.array_equal(one.below.total_right, other.below.total_right)
        assert np.array_equal(one.below.tables[one.kinds], other.below.tables[other.kinds])
    for part in parts:
        for depth, found in enumerate(parted.objectives_below(part), part.depth + 1):
            one, nodes = wanted[depth], part.nodes(depth)
            assert found.coarse is None
            assert np.array_equal(one.weights[one.kinds[nodes]], found.weights[found.kinds])
            if one.below is None or found.below is None:
                assert one.below is found.below
                continue
            assert np.array_equal(one.below.right[nodes], found.below.right)
            assert np.array_equal(one.below.tables[one.kinds[nodes]], found.below.tables[found.kinds])
            assert np.array_equal(one.below.total_right[nodes], found.below.total_right)


def test_answers_of_a_level_are_read_when_its_objective_is_asked_for(
    trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the blocks are the most, and what the levels above need comes beside them otherwise."""
    _, parted, parts = trees
    _ = parted.top  # carries all answers up
    read: list[str] = []
    inner = parted._read

    def noted(load: LevelWorkload, part: Subtree | None) -> LevelObjective:
        read.append(load.level.name)
        return inner(load, part)

    monkeypatch.setattr(parted, "_read", noted)
    names = [load.level.name for load in parted._loads[parts[0].depth + 1 :]]
    for number, _ in enumerate(parted.objectives_below(parts[0]), 1):
        assert read == names[:number]
    assert read == names


def test_damaged_parts_are_named(trees: Trees, tmp_path: Path) -> None:
    store = StoredParts(tmp_path, "0" * 64, stamped=True)
    assert store.children("x") is None
    assert store.blocks("x") is None
    with pytest.raises(CheckError, match=r"x\.lower\.npz is missing"):
        next(store.lower("x"))
    (tmp_path / "x.children.npz").write_bytes(b"no archive")
    with pytest.raises(CheckError, match=r"x\.children\.npz is damaged"):
        store.children("x")
