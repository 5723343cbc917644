"""Measuring every histogram of every level, its answers stored, or drawn where the estimate uses them, and estimating it at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.whole_tree.information import informed
from censafe.model import CellQuery, ExactHistograms, Schema
from censafe.model.observer import Observer, SilentObserver, work_added
from censafe.model.topdown.answers import EngineWorkers
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.privacy.measure.histograms import level_variances, measure_histograms
from censafe.privacy.measure.lazy import DrawnAnswers
from censafe.products.run.account import MeasurementFiles, MeasurementStore
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.descents import Descents, Estimates, estimate_levels
from censafe.products.topdown.folder import are_of_part, stored_files
from censafe.products.topdown.intake.results import KnownResult
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.table_estimates.choice import TableChoice
from censafe.products.topdown.table_estimates.earlier_answers import earlier_answers, measured_results
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.measurements.final_levels import (
    FinishedLevel,
    read_finished_level,
    write_finished_level,
)

FINISHED_FILES: Final[MeasurementFiles[FinishedLevel]] = MeasurementFiles(
    write_finished_level, read_finished_level, lambda finished: {finished.source}
)


def measured_estimates(
    config: TopdownConfig,
    exact: dict[str, list[ExactHistograms]],
    public: PublicFacts,
    store: MeasurementStore,
    observer: Observer,
    *,
    workers: int = 1,
    engine: EngineWorkers | None = None,
    results: Sequence[KnownResult] = (),
    choice: TableChoice | None = None,
) -> Estimates:
    """Every histogram from the root down: a level is measured, then its estimate, then the next level.

    Which bounds the integers obey beside those that are published exactly is known before a histogram is measured. The exact histograms,
    by name and level, are let go one after another; tables are estimated with their standard deviations beside the counts.
    """
    lazy = config.choices.noisy_measurements == "lazy"
    with observer.stage("held sums"):
        descents = Descents(config, public, observer, engine or workers, results)
    tables = None
    if choice is not None:
        earlier = earlier_answers(config, public, measured_results(results), choice, observer)
        tables = TableEstimates(
            config, choice, public, observer, stored=not lazy, earlier=earlier, workers=workers
        )
    joint = config.choices.bypass  # as in the plan: what a geounit spends at one level depends on the others
    for histogram in descents.order:
        descent, loads = descents.of(histogram), workloads(config, histogram.name)
        if joint:
            store.reserve_all([load.part for load in loads])
        levels = exact.pop(histogram.name)
        if lazy:
            budgets = public.budgets
            documents = tuple(
                finish_level(
                    load, levels.pop(0), budgets[load.part.name], store, descent, observer, tables
                ).report
                for load in loads
            )
        else:
            own = (_objective(load, levels.pop(0), public, store, observer, tables) for load in loads)
            objectives = informed(histogram, public, config.choices, own, observer)
            documents = estimate_levels(descent, loads, objectives, observer)
        descents.finish(histogram, descent, documents)
        if tables is not None:
            tables.finish(histogram.name)
    return descents.estimates(store.source, remarks=[result.remark for result in results], tables=tables)


def _objective(
    load: LevelWorkload,
    exact: ExactHistograms,
    public: PublicFacts,
    store: MeasurementStore,
    observer: Observer,
    tables: TableEstimates | None,
) -> LevelObjective:
    """Measure one level and store all its answers; linear estimates of tables take them as they pass."""
    with observer.stage(f"measure {load.part.name}"):
        budgets, files = public.budgets[load.part.name], stored_files(load, public)
        measured = measure_stored(load, exact, budgets, store, files, observer)
    if tables is not None:
        tables.read(load, StoredAnswers(measured.values))
    return LevelObjective.measured([query.label for query in load.queries], measured)


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
    done = work_added(observer or SilentObserver(), exact.nodes * load.answers, "answers")
    if store.is_measured(load.part):
        measured = store.read(load.part, files)
    else:
        with store.reserve(load.part) as key:
            measured = measure_histograms(
                exact, load.part, load.queries, shapes, key, budgets=budgets, done=done
            )
        store.write(load.part, measured, files)
    if not are_of_part(measured, load.part, exact.geounits, budgets):
        raise CheckError(
            f"{store.path(load.part)} does not hold the measurements of {load.part.name} in this run's geounits; restore the file that "
            "was written under this name, or name a new folder"
        )
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
    part, name = load.part, load.part.name
    if store.is_measured(part):
        finished = store.read(part, FINISHED_FILES)
        if finished.part != name:
            raise CheckError(f"{store.path(part)} holds {finished.part}; restore the file of {name}")
        descent.adopt(finished.level(exact.geounits), finished.split)
        if tables is not None:
            tables.take(load, finished.states)
        return finished
    with store.reserve(part) as key:
        source = DrawnAnswers(exact, part, load.queries, key, budgets)
        labels = [query.label for query in load.queries]
        objective = LevelObjective.drawing(labels, level_variances(budgets), budgets.kinds, source)
        with observer.stage(f"measure and estimate {name}"):
            level, report = descent.estimate(name, objective)
        drawn = source.effort.answers  # for the published counts; the manifest states those of tables apart
        states = None if tables is None else tables.read(load, source)
        observer.stages[f"of which measure {name}, threads together"] = source.effort.seconds
        facts = report.document() | {"answers_drawn": drawn}
        finished = FinishedLevel.of(name, level, facts, source.noise, states, descent.split)
    with observer.stage(f"write {name}"):
        store.write(part, finished, FINISHED_FILES)
    return finished


def full_shape(schema: Schema, query: CellQuery) -> tuple[int, ...]:
    """How many groups of each attribute a query distinguishes, 1 where it sums over the attribute.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> persons = shipped_schemas()["pl94-persons"]
        >>> full_shape(persons.schema, persons.query("hispanic * hhinstlevels"))
        (3, 1, 2, 1)
    """
    sizes = dict(zip(query.attributes, (size for size in query.shape if size > 1), strict=True))
    return tuple(sizes.get(name, 1) for name in schema.names)
