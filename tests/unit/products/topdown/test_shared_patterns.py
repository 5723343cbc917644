"""Covariances of geounits alike are computed once; nothing changes when every geounit has one of its own."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.products.run.options import EstimateOptions, ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.estimate import estimate_all
from censafe.products.topdown.folder import stored_files
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.measuring import measure_stored
from censafe.products.topdown.plan import plan_release, workloads
from censafe.products.topdown.rehearsal import TestMeasurementStore
from support.topdown_inputs import write_1940


def apart(measured: LevelMeasurements) -> LevelMeasurements:
    """The same, every geounit of a kind of its own."""
    kinds, budgets = measured.kinds, measured.budgets
    return replace(
        measured,
        budgets=LevelBudgets(
            np.arange(len(kinds), dtype=np.int32),
            tuple(budgets.laws[kind] for kind in kinds),
            tuple(budgets.costs[kind] for kind in kinds),
        ),
        variances=tuple(measured.variances[kind] for kind in kinds),
    )


@pytest.mark.parametrize("information", ["level", "lower"])
def test_final_histograms_do_not_depend_on_what_is_shared(tmp_path: Path, information: str) -> None:
    config = load_config("e2e-1940", {"information": information})
    with BlockIntake(write_1940(tmp_path / "data"), config, ReadOptions()) as intake:
        loaded = intake.load()
    facts, store = loaded.facts, TestMeasurementStore(plan_release(config), 6)
    measured = {}
    for load, counts in zip(workloads(config), loaded.exact["persons"], strict=True):
        budgets = facts.budgets[load.part.name]
        measured[load.part.name] = measure_stored(load, counts, budgets, store, stored_files(load, facts))  # type: ignore[arg-type]
    options = EstimateOptions(confidence=Fraction(9, 10))
    shared = estimate_all(config, facts, lambda load: measured[load.part.name], options, "seeded")
    own = estimate_all(config, facts, lambda load: apart(measured[load.part.name]), options, "seeded")
    for one, other in zip(shared.levels["persons"], own.levels["persons"], strict=True):
        assert np.array_equal(one.node_ptr, other.node_ptr)
        assert np.array_equal(one.cell, other.cell)
        assert np.array_equal(one.count, other.count)
