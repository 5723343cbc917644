"""Whole trees: what is exact stays exact, vanishing noise brings the input back, and repairs are logged."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.operator.descent import estimate_operator_level, operator_rules
from censafe.estimation.topdown.operator.task import OperatorTask
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks
from support.facilities import CELLS, KIND, RACE, Housed, housed, sparse_level
from support.histograms import dense
from support.operator_worlds import CHOICES, World, broken, estimate, housed_world, random_world


@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_vanishing_noise_brings_the_input_back(seed, passes):
    world = random_world(seed, passes=passes)
    for have, truth in zip(estimate(world, 1e-3).levels, world.exact, strict=True):
        assert np.array_equal(have, truth)


@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_everything_exact_stays_exact_under_noise(seed, passes):
    world = random_world(seed, passes=passes)
    found = estimate(world, 4.0, seed)
    assert broken(world, found) == []
    assert [report.approximate for report in found.reports] == [[] for _ in found.reports]
    assert max(report.gap for report in found.reports) < 1e-3
    assert max(report.violation for report in found.reports) <= 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_the_result_does_not_depend_on_workers(seed):
    world = random_world(seed, shape=(3, 4), mean=2.0)
    one, three = (estimate(world, 3.0, seed, workers=workers) for workers in (1, 3))
    for a, b in zip(one.found, three.found, strict=True):
        assert np.array_equal(a, b)
    assert [r.document() for r in one.reports] == [r.document() for r in three.reports]


class Uneven(World):
    """Half of the geounits have four times the weight of the others."""

    def objective(self, depth, *more, **options):
        one = super().objective(depth, *more, **options)
        kinds = np.random.default_rng(depth).integers(0, 2, len(one.kinds)).astype(np.int32)
        return replace(one, weights=np.vstack([one.weights, 4 * one.weights]), kinds=kinds)


@pytest.mark.parametrize("housed_seed", [None, 5], ids=["exact sums", "facilities"])
def test_the_result_does_not_depend_on_who_solves_the_parents(housed_seed, tmp_path):
    """Tasks of an engine get the budgets, the exact sums and the open records of their own parents."""
    engine = connect(tmp_path / "engine", threads=1)
    tasks = EngineTasks(engine, tmp_path / "tasks", 1)
    if housed_seed is None:
        world = random_world(2, shape=(3, 4), mean=2.0)
    else:
        world = housed_world(housed(housed_seed, (2, 2, 2), most=4, rare=0.8))
    uneven = Uneven(**vars(world))
    one, theirs = (estimate(uneven, 3.0, 2, workers=workers) for workers in (1, tasks))
    engine.disconnect()
    for a, b in zip(one.found, theirs.found, strict=True):
        assert np.array_equal(a, b)
    assert [r.document() for r in one.reports] == [r.document() for r in theirs.reports]
    even = estimate(world, 3.0, 2)
    assert not all(np.array_equal(a, b) for a, b in zip(one.found, even.found, strict=True))


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_facilities_with_vanishing_noise(seed, passes):
    world = housed_world(housed(seed, (2, 3), most=5, rare=0.7), passes=passes)
    for have, truth in zip(estimate(world, 1e-3).levels, world.exact, strict=True):
        assert np.array_equal(have, truth)


@pytest.mark.parametrize("seed", range(10))
def test_facilities_under_noise(seed):
    world = housed_world(housed(seed, (2, 2, 2), most=4, rare=0.8))
    assert broken(world, estimate(world, 3.0, seed)) == []


def counted(found):
    """Records that repairs moved."""
    changes = [cell for report in found.reports for one in report.repairs for cell in one.cells]
    return sum(abs(after - before) for _, before, after in changes) // 2


def worlds_with_repairs():
    found = []
    for seed in range(24):
        world = housed_world(housed(seed, (2, 2, 2), most=1, rare=0.9), most_rows=0)
        made = estimate(world, 3.0, seed)
        if any(report.repairs for report in made.reports):
            found.append((seed, world, made))
    return found


@pytest.fixture(scope="module")
def repaired():
    found = worlds_with_repairs()
    assert len(found) >= 2
    return found


@pytest.mark.parametrize("seed", range(12))
def test_where_areas_carry_their_blocks_nothing_needs_repair(seed):
    world = housed_world(housed(seed, (2, 2, 2), most=1, rare=0.9))
    made = estimate(world, 3.0, seed)
    assert broken(world, made) == []
    assert not any(report.repairs for report in made.reports)


def test_repairs_leave_everything_exact(repaired):
    for _, world, made in repaired:
        assert broken(world, made) == []
        assert any("parents were changed" in text for text in made.observer.remarks)


def test_repairs_name_every_changed_cell(repaired):
    for _, world, made in repaired:
        for depth, report in enumerate(made.reports):
            above = world.spine.levels[depth - 1] if depth else None
            changed = {}
            for one in report.repairs:
                unit = int(np.flatnonzero(above.geounits == one.geounit)[0])
                changed[unit] = one.cells
                for cell, before, after in one.cells:
                    assert (made.found[depth - 1][unit, cell], before == after) == (before, False)
            for unit in range(above.nodes if above else 0):
                row = made.found[depth - 1][unit].copy()
                for cell, _, after in changed.get(unit, ()):
                    row[cell] = after
                children = np.arange(above.first_child[unit], above.first_child[unit + 1])
                assert np.array_equal(made.found[depth][children].sum(axis=0), row)


def test_repairs_change_the_kind_alone_where_that_is_enough(repaired):
    for _, _, made in repaired:
        for report in made.reports:
            for one in report.repairs:
                more = np.zeros(CELLS, np.int64)
                for cell, before, after in one.cells:
                    more[cell] = after - before
                assert more.sum() == 0
                for race in (0, 1):
                    assert more[race == RACE].sum() == 0
        assert 0 < counted(made) < 10


def test_a_run_that_must_not_be_repaired_stops(repaired):
    seed, world, _ = repaired[0]
    with pytest.raises(CheckError, match="no split among kinds of facility meets its own counts"):
        estimate(world, 3.0, seed, repair=False)


def pair(race_of_first, race_of_second):
    """An area of two blocks, each with one facility of kinds 1 and 2 and two records of one race."""
    given = housed(3, (1, 2))
    truth = np.zeros((2, CELLS), np.int64)
    for block, race in enumerate((race_of_first, race_of_second)):
        for kind in (1, 2):
            truth[block, np.flatnonzero((kind == KIND) & (race == RACE))[block]] += 1
    return Housed(given.spine, truth, np.array([[0, 1, 1, 0], [0, 1, 1, 0]]))


def test_the_fewest_records_change():
    world = housed_world(pair(0, 1))
    assert world.spine.leaf.nodes == 2
    wrong = np.zeros(
        (1, CELLS), np.int64
    )  # both records of race 0 in kind 1, both of race 1 in kind 2: no block can follow
    wrong[0, np.flatnonzero((KIND == 1) & (RACE == 0))[0]] = 2
    wrong[0, np.flatnonzero((KIND == 2) & (RACE == 1))[1]] = 2
    levels, depth = world.spine.levels, 2
    task = OperatorTask(
        levels[depth],
        world.objective(depth, 1.0, np.random.default_rng(0)),
        world.held.levels[depth],
        operator_rules(world.histogram, levels[depth].name, world.held, CHOICES),
        world.held.open_at(depth),
    )
    above = sparse_level(levels[1].geounits, wrong)
    found, report = estimate_operator_level(task, above, levels[1])
    assert len(report.repairs) == 1
    # one record of each race changes its kind, and its age stays
    cells = {cell: (before, after) for cell, before, after in report.repairs[0].cells}
    zero, one = np.flatnonzero((KIND < 3) & (RACE == 0)), np.flatnonzero((KIND < 3) & (RACE == 1))
    assert cells == {int(zero[2]): (2, 1), int(zero[4]): (0, 1), int(one[3]): (0, 1), int(one[5]): (2, 1)}
    assert (np.stack([dense(found, CELLS)[:, k == KIND].sum(axis=1) for k in (1, 2)]) == 1).all()
    with pytest.raises(CheckError, match="no split among kinds"):
        estimate_operator_level(replace(task, repair=False), above, levels[1])


@pytest.mark.parametrize("seed", range(3))
def test_defects_that_are_planted_are_seen(seed):
    world = housed_world(housed(seed, (2, 2), most=4))
    found = estimate(world, 1.0)
    cells = np.flatnonzero((KIND == 0) & (RACE == 0))
    found.levels[-1][0, cells[0]] += 1
    assert len(broken(world, found)) > 1


def growth(world, spread, draws):
    """By level and query: error of the estimate over that of its own measurement, both over all answers and draws."""
    errors = {}
    for seed in range(draws):
        found, rng = estimate(world, spread, seed, unequal=0.0), np.random.default_rng(seed)
        for depth, level in enumerate(world.spine.levels):
            objective = world.objective(depth, spread, rng, unequal=0.0)
            for query, label in enumerate(objective.labels):
                member = label[:, None] == np.arange(label.max() + 1)
                truth = world.exact[depth] @ member
                pair = errors.setdefault((level.name, query), np.zeros(2))
                pair += [
                    ((found.found[depth] @ member - truth) ** 2).sum(),
                    ((objective.source.values[query] - truth) ** 2).sum(),
                ]
    return {key: float(np.sqrt(own / measured)) for key, (own, measured) in errors.items()}


@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("mean", [0.5, 20.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_query_of_a_chain_is_worse_than_its_own_measurement(seed, mean, passes):
    # queries that each refine the ones before, of one variance: a held sum brings no more error than it had itself
    world = random_world(seed, passes=passes, shape=(2, 2), mean=mean, crossing=False)
    found = growth(world, 5.0, 10)
    assert max(found.values()) <= 1.1
    assert min(found.values()) < 0.95


@pytest.mark.parametrize("seed", range(4))
def test_noise_that_is_far_larger_than_the_counts_is_no_obstacle(seed):
    world = random_world(seed, passes=2, mean=5.0)
    found = estimate(world, 1e5, seed)
    assert (broken(world, found), [one.approximate for one in found.reports]) == (
        [],
        [[]] * len(found.reports),
    )
