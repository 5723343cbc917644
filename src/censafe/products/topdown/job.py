"""What TopDown does in a run: every histogram measured, from the root down, and what is published of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from censafe.products.run.account import one_file
from censafe.products.run.measurement_store import MeasurementStore
from censafe.products.run.options import ReadOptions
from censafe.products.run.publishing import MeasuredRun
from censafe.products.run.runner import RunAdvice
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.descents import Estimates
from censafe.products.topdown.folder import place_of
from censafe.products.topdown.intake.intake import Intake, open_intake
from censafe.products.topdown.intake.results import KnownResult, cited_configurations
from censafe.products.topdown.measuring import measured_estimates
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.release import TopdownRelease, output_files, publish
from censafe.products.topdown.table_estimates.beside import has_answers
from censafe.products.topdown.table_estimates.choice import TableChoice
from censafe.publication.manifest import ConfigRecord
from censafe.publication.measurements.final_levels import read_finished_level
from censafe.publication.measurements.reader import read_noisy_measurements
from censafe.tabulation.engine.tasks import EngineTasks


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
            intake.engine = reading.connect(scratch)
            intake.workers = EngineTasks(intake.engine, scratch / "tasks", self._workers)
        return intake

    def place(self, part: str) -> str:
        """Where a part is stored."""
        return one_file(part) if self._lazy else self._places(part)

    def verify(self, path: Path) -> None:
        """Raise unless the file holds complete measurements of the plan."""
        (read_finished_level if self._lazy else read_noisy_measurements)(path, plan_digest=self.plan.digest())

    def measure(self, source: Intake, store: MeasurementStore, reading: ReadOptions) -> Estimates:
        """Every histogram from the root down: a level is measured, then its estimate, then the next level."""
        loaded = source.load()
        public, exact = loaded.facts, {name: list(levels) for name, levels in loaded.exact.items()}
        self._names = {**loaded.names, **self._names}
        del loaded  # what a level needed is let go when it is done
        return measured_estimates(
            self._config,
            exact,
            public,
            store,
            reading.observer,
            workers=self._workers,
            engine=source.workers,
            results=self._results,
            choice=self._tables,
        )

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
                cited=cited_configurations(self._results),
            ),
            workers=self._workers,
            observer=release.observer,
        )
