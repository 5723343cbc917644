"""TopDown from block histograms to microdata, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from censafe.errors import OverspendError, UsageError
from censafe.geography.own_codes import OTHER_AREAS
from censafe.model.ahead import compile_ahead
from censafe.planning.numbers import loss_text
from censafe.population.findings import Finding
from censafe.products.run.account import MeasurementStore, one_file
from censafe.products.run.folder import MeasuredRun, RunFolder
from censafe.products.run.options import CitedRun, EstimateOptions, ReadOptions, RunOptions
from censafe.products.run.runner import RunAdvice, RunResult, run_job
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.descents import Estimates
from censafe.products.topdown.estimate import estimate_named_tables, re_estimate
from censafe.products.topdown.files import named_areas, named_codes
from censafe.products.topdown.folder import place_of
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.intake.intake import Intake, is_run_folder, load_for_data, open_intake
from censafe.products.topdown.intake.results import (
    MicrodataResult,
    OpenedResult,
    PublishedResult,
    cited_configurations,
    open_results,
    require_same_use,
)
from censafe.products.topdown.intake.spines import load_of_unknown_run
from censafe.products.topdown.measuring import measured_estimates
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.release import TopdownRelease, output_files, publish
from censafe.products.topdown.table_estimates.choice import TableChoice, table_choice
from censafe.products.topdown.table_estimates.earlier_answers import has_answers
from censafe.publication.manifest import ConfigRecord
from censafe.publication.measurements.final_levels import read_finished_level
from censafe.publication.measurements.levels import read_noisy_measurements
from censafe.publication.sums import require_confidence
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
    if config.read is not None and config.read.geography.other_tree:
        commands.append(
            (
                f"censafe estimate {{out}} --intervals --areas {{out}}/{OTHER_AREAS}",
                f"estimates with intervals for {' and '.join(config.read.geography.other_tree)}, areas off the spine",
            )
        )
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
        results: tuple[OpenedResult, ...] = (),
        tables: TableChoice | None = None,
    ) -> None:
        self._config = config
        self._results = results
        self._tables = tables
        self._names = names or {}
        self._area_files: Mapping[str, str] = {}
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
        self._names = (
            named_codes(loaded.names, self._names) if loaded.area_files else {**loaded.names, **self._names}
        )
        self._area_files = loaded.area_files
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
        cited = cited_configurations(self._results)
        own = TopdownRelease(
            self._config, release, names=self._names, area_files=self._area_files, cited=cited
        )
        publish(own, self._workers)


ESTIMATION_KERNELS = "censafe.estimation.topdown.levels.families:estimate_families"
"""What takes the compiler longest, of histograms that no constraint holds."""

_CONSTRAINED_KERNELS = (
    "censafe.estimation.topdown.operator.newton:climb",
    "censafe.estimation.topdown.operator.rounding:round_pass",
    "censafe.estimation.topdown.operator.rounding:exchange_units",
)


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
    chosen = load_for_data(config, settings, data, reading)
    plan_release(chosen)
    with open_intake(data, chosen, reading) as intake:
        return intake.load().findings


def run(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    options: RunOptions,
) -> RunResult:
    """Read, check, measure, estimate and publish; continue a stopped run."""
    require_confidence(options.confidence)
    chosen = load_for_data(config, settings, data, reading)
    _compile_soon(chosen, reading)
    if chosen.reader == "pl94" or is_run_folder(data):
        _require_demonstration(data, options)
        options = replace(options, published_data=True)
    names = named_areas(chosen, options.names).by_code
    tables = table_choice(chosen, options.tables, options.areas)
    opened = _opened(chosen, reading.results, options)
    if unknown := sorted(set(options.ledger_of) - {result.name for result in opened}):
        raise UsageError(
            f"`ledger_of` {', '.join(unknown)}: no result of that name is given; allowed: {', '.join(result.name for result in opened) or 'none'}"
        )
    rerun = _results_first(chosen, data, out, reading, options)
    order = list(chosen.published)
    results = tuple(
        sorted((*opened, *_opened(chosen, rerun, options)), key=lambda result: order.index(result.name))
    )
    for result in results:
        if isinstance(result, MicrodataResult) and not result.test_key:
            reading.observer.remark(f"Warning: {result.warning}")
    cited = {result.name: _cited(result) for result in results if not result.test_key}
    options = replace(options, cited=cited)
    if cited and options.spend_more is False:
        # a result that is named has a known loss on the same records
        options = replace(options, spend_more=frozenset(result.run for result in cited.values()))
    return run_job(TopdownJob(chosen, options.workers, names, results, tables), data, out, reading, options)


def _cited(result: PublishedResult | MicrodataResult) -> CitedRun:
    """What a cited result cost: by its manifest, or, of microdata, at most what the configuration that is said to have published them costs."""
    if isinstance(result, PublishedResult):
        return CitedRun.of(result.manifest)
    plan = plan_release(load_of_unknown_run(result.source))
    files = {part.name: (result.folder.name, result.digest) for part in plan.parts}
    stated = f"topdown {result.source}, since microdata state no cost"
    return CitedRun(plan, result.digest[:16], files, None, stated)


def _compile_soon(config: TopdownConfig, reading: ReadOptions) -> None:
    """Compile the estimation in a second process while the records are read; nothing but after an installation."""
    needed = [
        _CONSTRAINED_KERNELS if has_exact_sums(one) else (ESTIMATION_KERNELS,) for one in config.histograms
    ]
    if compile_ahead(*dict.fromkeys(name for names in needed for name in names)):
        reading.observer.remark(
            "First run of this version here: the estimation is compiled meanwhile, which takes about a minute once."
        )


def _opened(
    config: TopdownConfig, folders: Mapping[str, Path], options: RunOptions
) -> tuple[PublishedResult | MicrodataResult, ...]:
    """Results that a run of this kind may hold to."""
    results = open_results(config, folders)
    require_same_use(results, test_key=options.test_key is not None, published_data=options.published_data)
    return results


def _results_first(
    config: TopdownConfig, data: Path, out: Path, reading: ReadOptions, options: RunOptions
) -> Mapping[str, Path]:
    """Run folders of the results that a configuration holds to and that were not given: they are released first, beside ``out``.

    Every such release is a plan of its own on the same ledger. What would stop the run that follows is found before them, as far
    as it is known: its plan, its folder, and a cap that does not allow all of them.
    """
    missing = {name: source for name, source in config.published.items() if name not in reading.results}
    settings = {"reader": config.reader, "root": config.root}
    if (
        config.choices.joint
    ):  # only a result whose blocks do not contradict themselves lets all relations hold
        settings["joint"] = "true"
    if missing:
        losses = [
            plan_release(member).total
            for member in (config, *(load_config(origin, settings) for origin in missing.values()))
        ]
        total = sum(losses, Fraction(0))
        if options.test_key is None and options.cap is not None and options.cap < total:
            raise OverspendError(
                f"the cap {options.cap} does not allow this release with {', '.join(missing)}, which is released first: together they cost {loss_text(total)}. Nothing "
                "was spent. Raise the cap, or give a result that was released before"
            )
        with RunFolder(out):  # refuses what is not a folder for a run, and leaves none behind
            pass
    folders = {}
    for name, source in missing.items():
        folders[name] = out.with_name(f"{out.name}-{name}")
        reading.observer.remark(f"{name}: releasing {source} in {folders[name]} first")
        theirs = data.with_name(f"{data.name}-{name}") if is_run_folder(data) else data
        own = replace(options, tables=None, areas=None, ledger_of={})
        run(source, theirs, folders[name], settings, replace(reading, results={}), own)
    return folders


def _require_demonstration(data: Path, options: RunOptions) -> None:
    """Refuse a release from published counts, or from records that were made up from published tables, unless it is called what it is.

    The reader of tables makes up the quarters of persons and the number of facilities block by block, so one person's change can change
    many made-up records, and the promise about one record says nothing about a person.
    """
    if options.test_key is None and not options.published_data:
        if is_run_folder(data):
            raise UsageError(
                f"{data} is the folder of a finished run, whose counts were published: a release from them protects no one. Give "
                "`published_data` "
                "for a demonstration, which is stamped as one and pays from the ledger, or `test_key` for a test."
            )
        raise UsageError(
            "reader=pl94 imputes records from published tables: a release from them protects no one. Give "
            "`published_data` for a demonstration, which is stamped as one and pays from the ledger, or `test_key` for a "
            "test; confidential records are read by reader=histogram or reader=cef."
        )


def estimate(out: Path, options: EstimateOptions) -> RunResult:
    """Estimate and publish a finished run once more, from its folder alone.

    Args:
        out: the run folder.
        options: level of the margins of error, and choices of the estimation that change; or tables, which are estimated beside what
            stays as it is.

    Raises:
        UsageError: a run that stored no measurements, a run of another product, or a key that may not change.
        CheckError: measurements, blocks or configuration are not those of the run.
        StorageError: there is no finished run.
    """
    return re_estimate(out, options) if options.tables is None else estimate_named_tables(out, options)
