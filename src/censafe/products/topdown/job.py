"""What TopDown does in a run: every histogram measured, from the root down, and what is published of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.whole_tree.information import informed
from censafe.model import ExactHistograms
from censafe.model.observer import Observer
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.products.run.account import one_file
from censafe.products.run.advice import RunAdvice
from censafe.products.run.measurement_store import MeasurementStore
from censafe.products.run.options import ReadOptions
from censafe.products.run.runner import MeasuredRun
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.descents import Descents
from censafe.products.topdown.folder import place_of, stored_files
from censafe.products.topdown.intake.intake import Intake, open_intake
from censafe.products.topdown.intake.results import KnownResult
from censafe.products.topdown.measuring import finish_level, measure_stored
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads
from censafe.products.topdown.release import (
    Estimates,
    TopdownRelease,
    gathered,
    output_files,
    publish,
    query_facts,
)
from censafe.products.topdown.table_estimates.beside import answers_beside, has_answers, result_of_run
from censafe.products.topdown.table_estimates.choice import TableChoice
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.certificate.levels import LevelFacts
from censafe.publication.manifest import ConfigRecord
from censafe.publication.measurements.final_levels import read_finished_level
from censafe.publication.measurements.reader import read_noisy_measurements
from censafe.tabulation.engine import connect
from censafe.tabulation.engine.tasks import EngineTasks


@dataclass(frozen=True, eq=False)
class _Measuring:
    """What the levels of one histogram are measured and estimated with."""

    store: MeasurementStore
    descent: EstimationFromRoot
    public: PublicFacts
    observer: Observer
    tables: TableEstimates | None


def _outlook(config: TopdownConfig) -> RunAdvice:
    """The total of the first histogram, or its query with the fewest answers, at counties where these are measured."""
    first = config.histograms[0]
    names = dict.fromkeys(query for shares in first.query_shares.values() for query in shares)
    queries = sorted(names, key=lambda name: first.schema.query(name).answers)
    commands = [
        (
            "censafe estimate {out} --intervals",
            "unbiased estimates with intervals for any areas; spends no budget",
        )
    ]
    if config.choices.noisy_measurements == "lazy":
        commands = [("censafe card {out} --geoid CODE", "a one-page profile of an area with intervals")]
    if {one.schema.name for one in config.histograms} & {"pl94-persons", "dhc-persons"}:
        commands.append(("censafe tables {out} --list", "the tables that can be made for any areas"))
    return RunAdvice(
        tables=[f"{first.name}.{name}" for name in queries],
        levels=("County", "Tract", config.run_levels[-1].name),
        words="noisy measurement {table} of one {level}",
        caveat="Published counts combine all noisy measurements, so their own error differs from this.",
        commands=commands,
    )


class TopdownJob:
    """TopDown's part of a run.

    Args:
        tables: that are estimated with their standard deviations, for which areas; None for none.
    """

    def __init__(
        self,
        config: TopdownConfig,
        workers: int = 1,
        names: Mapping[str, str] | None = None,
        results: tuple[KnownResult, ...] = (),
        tables: TableChoice | None = None,
    ) -> None:
        self._config = config
        self._results = results
        self._tables = tables
        self._names = names or {}
        self._workers = workers
        self._lazy = config.choices.noisy_measurements == "lazy"
        self.plan = plan_release(config)
        self.config = ConfigRecord(config.origin, config.overrides, config.record)
        words: tuple[str, ...] = ()
        if tables is not None:
            words = (tables.digest, *(f"beside {one.name}" for one in results if has_answers(one)))
        self.config_digest = " ".join((config.digest, *(result.digest for result in results), *words))
        self.files: tuple[str, ...] = output_files(config, tables=tables is not None)
        self.outlook = _outlook(config)
        self._places = place_of(config)

    def open(self, data: Path, scratch: Path, reading: ReadOptions) -> Intake:
        """Open the records, and the engine where its workers take part."""
        intake = open_intake(data, self._config, reading)
        if reading.engine.name != "duckdb":
            intake.engine = connect(
                scratch / "engine",
                threads=reading.threads,
                memory=reading.memory,
                choice=reading.engine,
                observer=reading.observer,
            )
            intake.workers = EngineTasks(intake.engine, scratch / "tasks", self._workers)
        return intake

    def place(self, part: str) -> str:
        """Where a part is stored."""
        return one_file(part) if self._lazy else self._places(part)

    def verify(self, path: Path) -> None:
        """Raise unless the file holds complete measurements of the plan."""
        (read_finished_level if self._lazy else read_noisy_measurements)(path, plan_digest=self.plan.digest())

    def measure(self, source: Intake, store: MeasurementStore, reading: ReadOptions) -> Estimates:
        """Every histogram from the root down: a level is measured, then its estimate, then the next level.

        Which bounds the integers obey beside those that are published exactly is known before a histogram is measured.
        """
        loaded = source.load()
        public = loaded.facts
        self._names = {**loaded.names, **self._names}
        exact = {name: list(levels) for name, levels in loaded.exact.items()}
        del loaded
        with reading.observer.stage("held sums"):
            workers = source.workers or self._workers
            descents = Descents(self._config, public, reading.observer, workers, self._results)
        tables = None
        if self._tables is not None:
            tables = self._estimates(self._tables, public, reading.observer)
        reports: dict[str, tuple[Mapping[str, Any], ...]] = {}
        facts: dict[str, list[LevelFacts]] = {}
        for histogram in descents.order:
            descent = descents.of(histogram)
            loads = [load for load in workloads(self._config) if load.histogram.name == histogram.name]
            facts[histogram.name] = [
                fact
                for load, counts in zip(loads, exact[histogram.name], strict=True)
                for fact in query_facts(load, counts.nodes, store.source)
            ]
            if self.plan.joint:
                store.reserve([load.part for load in loads])
            through = self._lazily if self._lazy else self._stored
            asked = _Measuring(store, descent, public, reading.observer, tables)
            found = through(loads, exact.pop(histogram.name), asked)
            descents.finish(histogram, descent)
            if tables is not None:
                tables.finish(histogram.name)
            reports[histogram.name] = tuple(found)
        found_all = gathered(self._config, public, descents.levels, reports, facts)
        remarks = tuple(result.remark for result in self._results)
        return replace(
            found_all, remarks=(*remarks, *descents.remarks), relations=descents.relations, tables=tables
        )

    def _estimates(self, choice: TableChoice, public: PublicFacts, observer: Observer) -> TableEstimates:
        """What takes the answers of levels for linear estimates, beside those of the results that have any."""
        known = [one for one in map(result_of_run, self._results) if one is not None]
        beside = answers_beside(self._config, public, known, choice, observer)
        return TableEstimates(
            self._config,
            choice,
            public,
            observer,
            stored=not self._lazy,
            beside=beside,
            workers=self._workers,
        )

    def _lazily(
        self, loads: list[LevelWorkload], exact: list[ExactHistograms], asked: _Measuring
    ) -> list[Mapping[str, Any]]:
        """Measure and estimate level by level; returns the reports."""
        budgets = asked.public.budgets
        return [
            finish_level(
                load,
                exact.pop(0),
                budgets[load.part.name],
                asked.store,
                asked.descent,
                asked.observer,
                asked.tables,
            ).report
            for load in loads
        ]

    def _stored(
        self, loads: list[LevelWorkload], exact: list[ExactHistograms], asked: _Measuring
    ) -> list[Mapping[str, Any]]:
        """Measure every level and estimate it, as soon as the information that its estimate uses is there."""

        def measured(load: LevelWorkload) -> LevelObjective:
            # what a level needed is let go when it is done
            found = self._measured(load, exact.pop(0), asked)
            if asked.tables is not None:
                asked.tables.read(load, StoredAnswers(found.values))
            return LevelObjective.measured([query.label for query in load.queries], found)

        found: list[Mapping[str, Any]] = []
        own = map(measured, loads)
        histogram, observer = loads[0].histogram, asked.observer
        for load, objective in zip(
            loads, informed(histogram, asked.public, self._config.choices, own, observer), strict=True
        ):
            with observer.stage(f"estimate {load.part.name}"):
                found.append(asked.descent.estimate(load.part.name, objective)[1].document())
        return found

    def _measured(self, load: LevelWorkload, counts: ExactHistograms, asked: _Measuring) -> LevelMeasurements:
        with asked.observer.stage(f"measure {load.part.name}"):
            budgets = asked.public.budgets[load.part.name]
            files = stored_files(load, asked.public)
            return measure_stored(load, counts, budgets, asked.store, files, asked.observer)

    def publish(self, release: MeasuredRun[Estimates]) -> None:
        """Write everything that is published."""
        publish(
            release.out,
            release.staging,
            TopdownRelease(
                self._config,
                release.measured,
                release.manifest,
                release.ledger_total,
                release.confidence,
                names=self._names,
            ),
            workers=self._workers,
            observer=release.observer,
        )
