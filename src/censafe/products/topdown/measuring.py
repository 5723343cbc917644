"""Measuring every histogram of every level, its answers stored, or drawn where the estimate uses them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.model import CellQuery, ExactHistograms, PartPlan, Schema
from censafe.model.observer import Observer, unheard, work_added
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.privacy.keys.part_keys import ReleasePartKey, TestPartKey
from censafe.privacy.measure.drawn import DrawnAnswers
from censafe.privacy.measure.histograms import level_variances, measure_histograms
from censafe.products.run.measurement_store import MeasurementFiles, MeasurementStore
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.folder import place_of
from censafe.products.topdown.plan import LevelWorkload
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.manifest import Manifest
from censafe.publication.measurements.final_levels import (
    FinishedLevel,
    read_finished_level,
    write_finished_level,
)
from censafe.publication.measurements.reader import read_noisy_measurements
from censafe.publication.stamps import Stamp


def measure_stored(
    load: LevelWorkload,
    exact: ExactHistograms,
    budgets: LevelBudgets,
    store: MeasurementStore,
    files: MeasurementFiles[LevelMeasurements],
    observer: Observer | None = None,
) -> LevelMeasurements:
    """Measure one part and store all its answers; a part that is done is read instead."""
    shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
    done = unheard if observer is None else work_added(observer, exact.nodes * load.answers, "answers")
    draw = partial(measure_histograms, exact, load.part, load.queries, shapes, budgets=budgets, done=done)
    measured = store.measure_or_load(load.part, draw, files)
    _require_part(store, load.part, measured, exact.geounits, budgets)
    return measured


def finish_level(
    load: LevelWorkload,
    exact: ExactHistograms,
    budgets: LevelBudgets,
    store: MeasurementStore,
    descent: EstimationFromRoot,
    observer: Observer,
    tables: TableEstimates | None = None,
) -> FinishedLevel:
    """Measure one part and estimate it at once, from the answers that its parents' cells need.

    What is stored and committed are the final histograms. A level that has them already is read instead.
    """
    name = load.part.name

    def draw(key: ReleasePartKey | TestPartKey) -> FinishedLevel:
        source = DrawnAnswers(exact, load.part, load.queries, key, budgets)
        labels = [query.label for query in load.queries]
        objective = LevelObjective.drawing(labels, level_variances(budgets), budgets.kinds, source)
        with observer.stage(f"measure and estimate {name}"):
            level, report = descent.estimate(name, objective)
        drawn = source.effort.answers  # for the published counts; the manifest states those of tables apart
        states = None if tables is None else tables.read(load, source)
        observer.stages[f"of which measure {name}, threads together"] = source.effort.seconds
        return FinishedLevel.of(
            name, level, report.document() | {"answers_drawn": drawn}, source.noise, states, descent.split
        )

    def write(path: Path, finished: FinishedLevel, *, plan_digest: str, stamp: Stamp | None) -> str:
        with observer.stage(f"write {name}"):
            return write_finished_level(path, finished, plan_digest=plan_digest, stamp=stamp)

    estimated = len(descent.levels)
    finished = store.measure_or_load(
        load.part, draw, MeasurementFiles(write, read_finished_level, lambda found: {found.source})
    )
    if finished.part != name:
        raise CheckError(f"{store.path(load.part)} holds {finished.part}; restore the file of {name}")
    if len(descent.levels) == estimated:
        descent.adopt(finished.level(exact.geounits), finished.split)
        if tables is not None:
            tables.take(load, finished.states)
    return finished


def _require_part(
    store: MeasurementStore,
    part: PartPlan,
    measured: LevelMeasurements,
    geounits: NDArray[np.str_],
    budgets: LevelBudgets,
) -> None:
    """Refuse a stored file of another part, or of other geounits or budgets."""
    same = (measured.part, measured.queries) == (part.name, part.queries)
    here = np.array_equal(measured.geounits, geounits) and measured.budgets.same_as(budgets)
    if not same or not here:
        raise CheckError(
            f"{store.path(part)} does not hold the measurements of {part.name} in this run's geounits; restore the file that "
            "was written under this name, or name a new folder"
        )


def full_shape(schema: Schema, query: CellQuery) -> tuple[int, ...]:
    """How many groups of each attribute a query tells apart, 1 where it sums over the attribute.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> persons = shipped_schemas()["pl94-persons"]
        >>> full_shape(persons.schema, persons.query("hispanic * hhinstlevels"))
        (3, 1, 2, 1)
    """
    sizes = dict(zip(query.attributes, (size for size in query.shape if size > 1), strict=True))
    return tuple(sizes.get(name, 1) for name in schema.names)


def level_reader(
    out: Path, config: TopdownConfig, manifest: Manifest, public: PublicFacts
) -> Callable[[LevelWorkload], LevelMeasurements]:
    """What reads the measurements of a level of a finished run, and refuses those of others."""
    place = place_of(config)

    def read(load: LevelWorkload) -> LevelMeasurements:
        path = out / "measurements" / place(load.part.name)
        measured = read_noisy_measurements(path, plan_digest=manifest.plan.digest())
        _require_same(path, load, measured, public)
        return measured

    return read


def _require_same(path: Path, load: LevelWorkload, measured: LevelMeasurements, public: PublicFacts) -> None:
    """Refuse measurements of other geounits or budgets than the run's blocks have."""
    level = public.spine.levels[public.spine.names.index(load.level.name)]
    same = (measured.part, measured.queries) == (load.part.name, load.part.queries)
    budgets = measured.budgets.same_as(public.budgets[load.part.name])
    if not (same and budgets and measured.geounits.tolist() == level.geounits.tolist()):
        raise CheckError(
            f"{path} does not hold the measurements of {load.part.name} at the geounits of the run; restore the run folder "
            "from a copy"
        )
