"""TopDown from block histograms to microdata: the doors in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.geography.run_spine import standard_levels
from censafe.model import ExactHistograms, SparseLevel
from censafe.population.findings import Finding
from censafe.products.account import one_file
from censafe.products.door import Door
from censafe.products.observer import Observer
from censafe.products.options import EstimateOptions, ReadOptions, RunOptions
from censafe.products.runner import Release, RunResult, run_job
from censafe.products.topdown.again import estimate_again
from censafe.products.topdown.config import TopdownConfig, load_config
from censafe.products.topdown.descending import Descent
from censafe.products.topdown.informing import informed
from censafe.products.topdown.intake import Intake, PublicFacts
from censafe.products.topdown.joint import bounded_facts, estimation_order
from censafe.products.topdown.measuring import finish_level, measure_stored
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads
from censafe.products.topdown.release import Estimates, gathered, output_files, publish, query_facts
from censafe.products.topdown.stored import place_of, stored_files
from censafe.publication.finished_levels import read_finished_level
from censafe.publication.level_statement import LevelFacts
from censafe.publication.manifest import ConfigRecord
from censafe.publication.nmf_reader import read_noisy_measurements
from censafe.publication.sums import require_confidence

__all__ = ["TopdownJob", "estimate", "run", "validate"]


def validate(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
) -> tuple[Finding, ...]:
    """Check a configuration as for a run, then every rule on the block histograms.

    Returns:
        What deserves a warning; whatever is wrong stops.

    Raises:
        ConfigError: the configuration breaks a rule.
        DataError: everything that is wrong with the files, or published counts that contradict each other.
    """
    chosen = _load(config, settings, reading)
    plan_release(chosen)
    with Intake(data, chosen, reading) as intake:
        return intake.load().findings


def run(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    options: RunOptions,
) -> RunResult:
    """Read, check, measure, estimate and publish; go on where a stopped run left off.

    Args:
        config: a path or a shipped name.
        data: folder with the block histograms or the P.L. 94-171 files.
        out: a new or empty folder, or the folder of the same run.
        settings: overrides of configuration keys.
        reading: how the records are read and checked.
        options: how the release is paid for and where its noise comes from.

    Raises:
        InputError, UsageError, BudgetError, StorageError: as :func:`censafe.products.runner.run_job`.
        CheckError: no histograms meet the published figures, or a check of the integers failed.
    """
    require_confidence(options.confidence)
    return run_job(TopdownJob(_load(config, settings, reading), options.workers), data, out, reading, options)


def estimate(out: Path, options: EstimateOptions) -> RunResult:
    """Estimate and publish a finished run once more, from its folder alone.

    Args:
        out: the run folder.
        options: level of the margins of error, and choices of the estimation that change.

    Raises:
        UsageError: a run that kept no measurements, a run of another product, or a key that may not change.
        CheckError: measurements, blocks or configuration are not those of the run.
        StorageError: there is no finished run.
    """
    return estimate_again(out, options)


class TopdownJob:
    """TopDown's part of a run.

    Args:
        config: what is measured, and how.
        workers: threads of the estimation; results do not depend on them.
    """

    def __init__(self, config: TopdownConfig, workers: int = 1) -> None:
        self._config = config
        self._workers = workers
        self._lazy = config.choices.noisy_measurements == "lazy"
        self.plan = plan_release(config)
        self.config = ConfigRecord(config.origin, config.overrides, config.settings)
        self.config_digest = config.digest
        self.files: tuple[str, ...] = output_files(config)
        self._places = place_of(config)

    def open(self, data: Path, scratch: Path, reading: ReadOptions) -> Intake:
        """Open the records."""
        return Intake(data, self._config, reading)

    def place(self, part: str) -> str:
        """Where a part is kept."""
        return one_file(part) if self._lazy else self._places(part)

    def verify(self, path: Path) -> None:
        """Raise unless the file holds complete measurements of the plan."""
        (read_finished_level if self._lazy else read_noisy_measurements)(path, plan_digest=self.plan.digest())

    def measure(self, source: Intake, door: Door, reading: ReadOptions) -> Estimates:
        """Every histogram from the root down: a level through the door, then its estimate, then the next level.

        Which bounds the integers obey beside those that are published exactly is known before a histogram is measured.
        """
        loaded = source.load()
        public = loaded.facts
        exact = {name: list(levels) for name, levels in loaded.exact.items()}
        del loaded
        levels: dict[str, tuple[SparseLevel, ...]] = {}
        reports: dict[str, tuple[Mapping[str, Any], ...]] = {}
        facts: dict[str, list[LevelFacts]] = {}
        for histogram in estimation_order(self._config):
            bounds = bounded_facts(self._config, histogram, public, levels)
            descent = Descent(histogram, bounds, reading.observer, self._config.choices, self._workers)
            loads = [load for load in workloads(self._config) if load.histogram.name == histogram.name]
            facts[histogram.name] = [
                fact
                for load, counts in zip(loads, exact[histogram.name], strict=True)
                for fact in query_facts(load, counts.nodes, door.source)
            ]
            if self.plan.joint:
                door.reserve([load.part for load in loads])
            through = self._lazily if self._lazy else self._stored
            found = through(loads, exact.pop(histogram.name), door, descent, public, reading.observer)
            cells = histogram.schema.schema.cells
            levels[histogram.name] = standard_levels(public.run, descent.levels, cells)
            reports[histogram.name] = tuple(found)
        return gathered(self._config, public, levels, reports, facts)

    def _lazily(
        self,
        loads: list[LevelWorkload],
        exact: list[ExactHistograms],
        door: Door,
        descent: Descent,
        public: PublicFacts,
        observer: Observer,
    ) -> list[Mapping[str, Any]]:
        """Measure and estimate level by level; returns the reports."""
        return [
            finish_level(load, exact.pop(0), public.budgets[load.part.name], door, descent, observer).report
            for load in loads
        ]

    def _stored(
        self,
        loads: list[LevelWorkload],
        exact: list[ExactHistograms],
        door: Door,
        descent: Descent,
        public: PublicFacts,
        observer: Observer,
    ) -> list[Mapping[str, Any]]:
        """Measure every level and estimate it, as soon as the information that its estimate uses is there."""

        def measured(load: LevelWorkload) -> LevelObjective:
            # what a level needed is let go when it is done
            return self._measured(load, exact.pop(0), public, door, observer)

        found: list[Mapping[str, Any]] = []
        own = map(measured, loads)
        histogram = loads[0].histogram
        for load, objective in zip(
            loads, informed(histogram, public, self._config, own, observer), strict=True
        ):
            with observer.stage(f"estimate {load.part.name}"):
                found.append(descent.estimate(load.part.name, objective)[1].document())
        return found

    def _measured(
        self,
        load: LevelWorkload,
        counts: ExactHistograms,
        public: PublicFacts,
        door: Door,
        observer: Observer,
    ) -> LevelObjective:
        """Measure one level, and weight its answers."""
        with observer.stage(f"measure {load.part.name}"):
            budgets = public.budgets[load.part.name]
            measured = measure_stored(load, counts, budgets, door, stored_files(load, public))
        return LevelObjective.measured([query.label for query in load.queries], measured)

    def publish(self, release: Release[Estimates]) -> None:
        """Write everything that is published."""
        publish(
            release.out,
            release.staging,
            self._config,
            release.measured,
            release.manifest,
            ledger_total=release.ledger_total,
            confidence=release.confidence,
            workers=self._workers,
        )


def _load(config: str, settings: Mapping[str, str], reading: ReadOptions) -> TopdownConfig:
    chosen = load_config(config, settings)
    for warning in chosen.warnings:
        reading.observer.remark(f"Warning: {warning}")
    return chosen
