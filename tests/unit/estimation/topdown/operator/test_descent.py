"""Whole trees: what is exact stays exact, vanishing noise brings the input back, and repairs are logged."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.operator.descent import OperatorDescent
from censafe.model.observer import SilentObserver
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks
from support.facilities import CELLS, KIND, RACE, Housed, housed, sparse_level
from support.histograms import dense
from support.operator_worlds import CHOICES, Estimated, World, broken, estimate, housed_world, random_world


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


@pytest.mark.parametrize("seed", range(12))
def test_where_areas_carry_their_blocks_nothing_needs_repair(seed):
    world = housed_world(housed(seed, (2, 2, 2), most=1, rare=0.9))
    made = estimate(world, 3.0, seed)
    assert broken(world, made) == []
    assert not any(report.repairs for report in made.reports)


def test_a_world_that_an_error_of_the_solver_stopped():
    """HiGHS withdraws its own optimum in this world, which was taken for counts that allow no split."""
    world = housed_world(housed(1005, (2, 3, 2), most=6, rare=0.85), passes=1)
    assert broken(world, estimate(world, 3.0, 1005)) == []


def levels_again(world, first, depth, split):
    """Estimate with the levels above a depth adopted, as a run does that was stopped there."""
    descent = OperatorDescent(world.histogram, world.spine, world.exact_sums, SilentObserver(), CHOICES)
    rng, found = np.random.default_rng(7), []
    for place, level in enumerate(world.spine.levels):
        objective = world.objective(place, 3.0, rng)
        if place < depth:
            descent.adopt(sparse_level(level.geounits, first[place]), split)
        else:
            found.append(dense(descent.estimate(level.name, objective)[0], CELLS))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_resumed_run_starts_from_the_split_that_was_stored(seed):
    world = housed_world(housed(seed, (2, 2, 2), most=3, rare=0.9))
    descent = OperatorDescent(world.histogram, world.spine, world.exact_sums, SilentObserver(), CHOICES)
    rng, first, splits = np.random.default_rng(7), [], []
    for place, level in enumerate(world.spine.levels):
        first.append(dense(descent.estimate(level.name, world.objective(place, 3.0, rng))[0], CELLS))
        splits.append(descent.split)
    for depth in range(1, len(first)):
        again = levels_again(world, first, depth, splits[depth - 1])
        assert all(np.array_equal(a, b) for a, b in zip(again, first[depth:], strict=True))
        levels = [*first[:depth], *levels_again(world, first, depth, None)]
        found = Estimated(levels, [], levels, SilentObserver())
        assert broken(world, found) == []


def pair(race_of_first, race_of_second):
    """An area of two blocks, each with one facility of kinds 1 and 2 and two records of one race."""
    given = housed(3, (1, 2))
    truth = np.zeros((2, CELLS), np.int64)
    for block, race in enumerate((race_of_first, race_of_second)):
        for kind in (1, 2):
            truth[block, np.flatnonzero((kind == KIND) & (race == RACE))[block]] += 1
    return Housed(given.spine, truth, np.array([[0, 1, 1, 0], [0, 1, 1, 0]]))


def test_counts_that_no_blocks_can_follow_stop_the_level():
    """Only a level from elsewhere has them: both records of race 0 in kind 1, both of race 1 in kind 2."""
    world = housed_world(pair(0, 1))
    wrong = np.zeros((1, CELLS), np.int64)
    wrong[0, np.flatnonzero((KIND == 1) & (RACE == 0))[0]] = 2
    wrong[0, np.flatnonzero((KIND == 2) & (RACE == 1))[1]] = 2
    with pytest.raises(CheckError, match="allow no split among kinds of facility"):
        levels_again(world, [wrong, wrong], 2, None)


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
    # queries that each refine the ones before, of one variance: an exact sum brings no more error than it had itself
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
