"""TopDown from block histograms to microdata: the doors in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from censafe.errors import UsageError
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.model import SparseLevel
from censafe.model.level_measurements import LevelMeasurements
from censafe.population.findings import Finding
from censafe.products.account import one_file
from censafe.products.door import Door
from censafe.products.observer import Observer
from censafe.products.options import EstimateOptions, ReadOptions, RunOptions
from censafe.products.runner import Release, RunResult, run_job
from censafe.products.topdown.config import TopdownConfig, load_config
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.estimating import CellRules, LevelReport, LevelTask, estimate_level
from censafe.products.topdown.intake import Intake, PublicFacts
from censafe.products.topdown.measuring import measure_levels
from censafe.products.topdown.plan import part_name, plan_release, workloads
from censafe.products.topdown.release import Estimates, output_files, publish
from censafe.publication.level_measurement_files import read_level_measurements
from censafe.publication.level_statement import LevelFacts
from censafe.publication.manifest import ConfigRecord
from censafe.publication.sums import require_confidence

__all__ = ["TopdownJob", "estimate", "estimate_histogram", "rules_of", "run", "validate"]


def validate(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
) -> tuple[Finding, ...]:
    """Check a configuration as for a run, then every rule on the block histograms.

    Returns:
        Nothing; whatever is wrong stops.

    Raises:
        ConfigError: the configuration breaks a rule.
        DataError: everything that is wrong with the files, or published counts that contradict each other.
    """
    chosen = _load(config, settings, reading)
    plan_release(chosen)
    with Intake(data, chosen, reading) as intake:
        intake.load()
    return ()


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
    return run_job(TopdownJob(_load(config, settings, reading)), data, out, reading, options)


def estimate(out: Path, options: EstimateOptions) -> RunResult:
    """Refuse: a TopDown run keeps no copy of the figures that limit its estimates, so it cannot be estimated again.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"{out} is a run of topdown, which cannot be estimated again from its folder alone: its published counts of housing "
        "units and group quarters are in the input. Start a new run in a new folder."
    )


class TopdownJob:
    """TopDown's part of a run."""

    def __init__(self, config: TopdownConfig) -> None:
        self._config = config
        self.plan = plan_release(config)
        self.config = ConfigRecord(config.origin, config.overrides, config.settings)
        self.config_digest = config.digest
        self.files: tuple[str, ...] = output_files(config)

    def open(self, data: Path, scratch: Path, reading: ReadOptions) -> Intake:
        """Open the records."""
        return Intake(data, self._config, reading)

    def place(self, part: str) -> str:
        """Where a part is kept."""
        return one_file(part)

    def verify(self, path: Path) -> None:
        """Raise unless the file holds complete measurements of the plan."""
        read_level_measurements(path, plan_digest=self.plan.digest())

    def measure(self, source: Intake, door: Door, reading: ReadOptions) -> Estimates:
        """Take every part through the door, then estimate from what came out and what is published exactly."""
        loaded = source.load()
        public = loaded.facts
        measured = measure_levels(self._config, loaded, door, reading)
        del loaded  # from here on nothing confidential is in reach
        levels, reports = {}, {}
        for histogram in self._config.histograms:
            parts = [measured[part_name(histogram, level)] for level in self._config.run_levels]
            levels[histogram.name], reports[histogram.name] = estimate_histogram(
                histogram, public, parts, reading.observer
            )
        return Estimates(public, levels, reports, _facts(self._config, measured))

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
        )


def estimate_histogram(
    histogram: MeasuredHistogram,
    public: PublicFacts,
    parts: list[LevelMeasurements],
    observer: Observer,
) -> tuple[tuple[SparseLevel, ...], tuple[LevelReport, ...]]:
    """Estimate one histogram at every level, from the root down.

    Args:
        histogram: its schema, queries and passes.
        public: what is published exactly.
        parts: measurements of every level, root first.
        observer: who is told of stages.

    Raises:
        CheckError: no histograms meet the published figures, or a check of the integers failed.
    """
    found: list[SparseLevel] = []
    reports: list[LevelReport] = []
    spine = public.spine
    for depth, (level, part) in enumerate(zip(spine.levels, parts, strict=True)):
        queries = [
            histogram.schema.query(plan.table.removeprefix(f"{histogram.name}.")) for plan in part.queries
        ]
        objective = LevelObjective.measured([query.label for query in queries], part)
        task = LevelTask(level, objective, public.limits[histogram.name][depth])
        above = (found[-1], spine.levels[depth - 1]) if depth else (None, None)
        with observer.stage(f"estimate {part.part}"):
            estimate, report = estimate_level(task, rules_of(histogram, level.name), *above)
        if report.approximate:
            observer.remark(
                f"Warning: {part.part}: {len(report.approximate)} of {sum(report.statuses.values())} problems have no "
                "certificate of optimality; the manifest names them."
            )
        found.append(estimate)
        reports.append(report)
    return tuple(found), tuple(reports)


def rules_of(histogram: MeasuredHistogram, level: str) -> CellRules:
    """Cells of a histogram, and the chain of queries that rounding at a level keeps close to the estimates.

    The kinds of units come first in the chain, because their bounds must hold after rounding.

    Example:
        >>> config = load_config("e2e-1940")
        >>> [int(label.max()) + 1 for label in rules_of(config.histogram("persons"), "County").tree]
        [8]
    """
    schema = histogram.schema
    rule = schema.facilities
    texts = [text for outer in histogram.passes[level].rounding for inner in outer for text in inner]
    if rule is not None:
        texts.insert(0, rule.attribute)
    chain = {query.label.tobytes(): query for query in map(schema.query, texts)}
    tree = tuple(query.label for query in chain.values() if 1 < query.answers < schema.schema.cells)
    kinds = None if rule is None else schema.schema.levels_of(rule.attribute)
    return CellRules(schema.schema.cells, schema.allowed(), kinds, tree)


def _facts(config: TopdownConfig, measured: Mapping[str, LevelMeasurements]) -> tuple[LevelFacts, ...]:
    return tuple(
        LevelFacts(plan.table, plan.level, plan.law, plan.cost, part.nodes, values.shape[1], part.source)
        for load in workloads(config)
        for part in [measured[load.part.name]]
        for plan, values in zip(part.queries, part.values, strict=True)
    )


def _load(config: str, settings: Mapping[str, str], reading: ReadOptions) -> TopdownConfig:
    chosen = load_config(config, settings)
    for warning in chosen.warnings:
        reading.observer.remark(f"Warning: {warning}")
    return chosen
