"""PHSafe from the Bureau's input folder to protected tables, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from censafe.errors import UsageError
from censafe.model import Measurements
from censafe.model.observer import Observer
from censafe.population.findings import Finding
from censafe.privacy.measure.mechanisms import measure
from censafe.products.phsafe.config import PhsafeConfig, load_phsafe_config
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels, plan_release
from censafe.products.phsafe.release import ESTIMATES, publish
from censafe.products.run.account import MeasurementFiles, MeasurementStore, one_file
from censafe.products.run.folder import FILES, MeasuredRun, finished_run, measured_before
from censafe.products.run.options import EstimateOptions, ReadOptions, RunOptions
from censafe.products.run.runner import RunAdvice, RunResult, run_job
from censafe.products.run.scratch import private_scratch
from censafe.publication.manifest import ConfigRecord
from censafe.publication.measurements.tables import read_measurements, write_measurements
from censafe.publication.sums import require_confidence
from censafe.tabulation.tables.counting import CountAccumulator


def validate(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
) -> tuple[Finding, ...]:
    """Check a configuration as for a run, then every rule on the records.

    Scratch goes to a private folder beside the data unless ``reading`` names another place.

    Args:
        config: a path or a shipped name.
        data: folder with the records, or the .ini file of the fixed-width reader.
        settings: overrides of configuration keys.
        reading: how the records are read and checked.

    Returns:
        All findings.

    Raises:
        ConfigError: the configuration breaks a rule.
        DataError: the files cannot be read at all.
    """
    chosen = _load(config, settings, reading.observer)
    plan_release(chosen)
    with (
        private_scratch(data, reading.scratch) as scratch,
        HouseholdIntake(data, chosen.reader, chosen.states, scratch, reading) as intake,
    ):
        return intake.read().findings


def run(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    options: RunOptions,
) -> RunResult:
    """Read, check, count, measure and publish; continue a stopped run."""
    require_confidence(options.confidence)
    return run_job(_Job(_load(config, settings, reading.observer)), data, out, reading, options)


def estimate(out: Path, options: EstimateOptions) -> RunResult:
    """Repeat the post-processing of a finished run, and estimate non-negative counts and bounded ratios.

    Args:
        out: the run folder.
        options: level of the margins of error, from which ``alpha`` follows unless it is set, and the settings of the
            estimates.

    Raises:
        ConfigError: a setting that is not possible.
        UsageError: an option that PHSafe has no use for, or a run of another product.
        StorageError: no finished run.
        CheckError: a measurement file is missing, changed or of another plan, or an estimate failed its check.
    """
    require_confidence(options.confidence)
    if options.data or options.config:
        raise UsageError(
            "PHSafe estimates from the measurements of the run alone, so `data` and `parameters` change nothing. Leave them out."
        )
    # loaded for estimates only: a release needs none of it
    from censafe.estimation.sdhc.settings import parse_estimate_settings
    from censafe.model.sdhc import EstimateSettings
    from censafe.products.phsafe.estimates import STATEMENT, write_run_estimates

    tail = EstimateSettings(alpha=float((1 - options.confidence) / 2))
    estimates = partial(write_run_estimates, parse_estimate_settings(options.settings, tail), options.workers)
    observer = options.observer
    with finished_run(out) as (folder, manifest):
        if manifest.plan.product != "phsafe":
            raise UsageError(f"{out} is a run of {manifest.plan.product}; estimate takes runs of phsafe")
        with observer.stage("estimate and publish"):
            done = publish(measured_before(folder, manifest, read_measurements, options), estimates)
    for remark in done["remarks"]:
        observer.remark(f"Warning: {remark}.")
    if done["findings"]:
        observer.remark(f"{done['findings']} findings about single estimates: {out / ESTIMATES / STATEMENT}")
    return RunResult(
        out,
        manifest.plan,
        manifest.stamp,
        resumed=True,
        files=(*FILES[:-1], ESTIMATES, FILES[-1]),
        repeated=True,
        stages=observer.stages,
    )


_OUTLOOK = RunAdvice(
    tables=("PH1_num", "PH1_denom", "PH2", "PH3"),
    levels=("state_*", "usa_*"),
    words="one count of table {table} at level {level}",
    caveat="The tables are noisy counts and may be negative.",
    commands=(
        ("censafe estimate {out}", "nonnegative estimates, averages and intervals from the noisy tables"),
    ),
)


_FILES: MeasurementFiles[list[Measurements]] = MeasurementFiles(
    write_measurements, read_measurements, lambda measured: {answer.source for answer in measured}
)


class _Job:
    """PHSafe's part of a run."""

    files: tuple[str, ...] = FILES
    outlook = _OUTLOOK
    place = staticmethod(one_file)

    def __init__(self, config: PhsafeConfig) -> None:
        self._config = config
        self.plan = plan_release(config)
        self.config = ConfigRecord(config.origin, config.overrides, config.record)
        self.config_digest = config.digest

    def open(self, data: Path, scratch: Path, reading: ReadOptions) -> HouseholdIntake:
        return HouseholdIntake(data, self._config.reader, self._config.states, scratch, reading)

    def verify(self, path: Path) -> None:
        read_measurements(path, plan_digest=self.plan.digest())

    def measure(
        self, source: HouseholdIntake, store: MeasurementStore, reading: ReadOptions
    ) -> list[list[Measurements]]:
        if store.done():
            return [store.read(part, _FILES) for part in self.plan.parts]
        levels = measured_table_levels(self._config)
        counts = CountAccumulator(phsafe_definitions(), tables=list(levels), tau=self._config.tau)
        report = source.count(counts)
        for finding in report.findings:  # for the operator alone
            reading.observer.remark(f"Warning: {finding.text()}")
        for table, records in counts.unmatched.items():
            if records:
                reading.observer.remark(
                    f"Warning: {table}: {records} records of its universe match no cell and are left out "
                    "(their codes contradict each other)."
                )
        exact = counts.finish(levels)
        measured = []
        with reading.observer.stage("measure"):
            for part in self.plan.parts:
                if store.is_measured(part):
                    answers = store.read(part, _FILES)
                else:
                    with store.reserve(part) as key:
                        answers = [
                            measure(exact[query.table, query.level], query, ordinal, key)
                            for ordinal, query in enumerate(part.queries)
                        ]
                    store.write(part, answers, _FILES)
                measured.append(answers)
        return measured

    def publish(self, release: MeasuredRun[list[list[Measurements]]]) -> None:
        publish(release)


def _load(config: str, settings: Mapping[str, str], observer: Observer) -> PhsafeConfig:
    chosen = load_phsafe_config(config, settings)
    for warning in chosen.warnings:
        observer.remark(f"Warning: {warning}")
    return chosen
