"""How often intervals of unbiased estimates hold the truth.

Every share is a mean over draws of the noise of 48 districts and the areas above and across them; counts of one draw may depend
on each other, so the standard error is that of the mean over draws. A test alarms when the mean is further from nominal than half a point and
four standard errors. If the intervals are right to within half a point that happens in fewer than 1 of 10,000 runs of the suite. Standard deviations
that are 7% too small take 2.6 points off the 90% intervals and are found; the planted defect takes 15% off.
"""

from statistics import NormalDist

import numpy as np
import pytest

from censafe.estimation.topdown.intervals.areas import AreaSet, area_estimates, area_sets
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.information import linear_tree
from censafe.estimation.topdown.whole_tree.sums import Functionals
from censafe.model import SparseLevel
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.folder import stored_files
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.intervals import chosen_queries, counts_of
from censafe.products.topdown.measuring import measure_stored
from censafe.products.topdown.plan import plan_release, workloads
from censafe.products.topdown.rehearsal import TestMeasurementStore
from support.topdown_inputs import write_1940

DRAWS = 120
NAMES = ("National", "State", "County", "Enumdist", "across")


@pytest.fixture(scope="module")
def ratios(tmp_path_factory):
    """Errors in standard deviations, by kind of area an array of shape (draws, counts)."""
    config = load_config("e2e-1940")
    with BlockIntake(write_1940(tmp_path_factory.mktemp("data") / "data"), config, ReadOptions()) as intake:
        loaded = intake.load()
    facts, (histogram,) = loaded.facts, config.histograms
    area_of = np.arange(48) % 7 - 1
    across = AreaSet("across", np.array([str(area) for area in range(6)]), np.full(6, ""), area_of)
    sets = (*area_sets(facts.run, None, ReadOptions().observer), across)
    weights = np.vstack([query.weights for query in chosen_queries(config, ())["persons"]])
    exact = loaded.exact["persons"][-1]
    truth = SparseLevel(exact.geounits, exact.node_ptr, exact.cell, exact.count)
    found: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
    for draw in range(DRAWS):
        store, objectives = TestMeasurementStore(plan_release(config), 100 + draw), []
        for load, counts in zip(workloads(config), loaded.exact["persons"], strict=True):
            budgets = facts.budgets[load.part.name]
            measured = measure_stored(load, counts, budgets, store, stored_files(load, facts))
            objectives.append(LevelObjective.measured([query.label for query in load.queries], measured))
        tree = linear_tree(histogram, facts, objectives)
        functionals = Functionals.of(tree.blocks, weights)
        blocks = counts_of(truth, functionals.weights)
        for one in area_estimates(tree, functionals, facts.run, sets):
            uncertain = one.variances > 0
            error = (one.values - one.areas.sums(blocks))[uncertain]
            found[one.areas.kind].append(error / np.sqrt(one.variances[uncertain]))
    return {name: np.array(rows) for name, rows in found.items()}


def alarms(ratios: np.ndarray, confidence: float) -> bool:
    """Whether the share of intervals that hold the truth is too far from nominal."""
    held = (np.abs(ratios) <= NormalDist().inv_cdf(0.5 + confidence / 2)).mean(axis=1)
    error = held.std(ddof=1) / np.sqrt(len(held))
    return bool(abs(held.mean() - confidence) > 0.005 + 4 * error)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("kind", NAMES)
def test_intervals_hold_the_truth_as_often_as_they_say(ratios, kind, confidence):
    assert not alarms(ratios[kind], confidence)


def test_estimates_are_unbiased(ratios):
    """The mean error of a kind of areas, in standard deviations, within four standard errors of 0: 1 of 3,000 false alarms."""
    for values in ratios.values():
        means = values.mean(axis=1)
        assert abs(means.mean()) <= 4 * means.std(ddof=1) / np.sqrt(len(means))


def test_spreads_that_are_too_small_are_found(ratios):
    assert alarms(ratios["Enumdist"] / 0.85, 0.9)
    assert alarms(ratios["Enumdist"] / 0.93, 0.9)
