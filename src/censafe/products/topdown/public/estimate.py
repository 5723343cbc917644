"""TopDown from public noisy measurement files: nothing confidential is opened, nothing is measured or spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from censafe.errors import DataError, UsageError
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import EstimateOptions
from censafe.products.run.runner import RunResult
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.files import named_areas
from censafe.products.topdown.folder import STATE, TOTALS, StoredParts
from censafe.products.topdown.intake.equations import is_held
from censafe.products.topdown.intake.results import (
    KnownResult,
    MicrodataResult,
    PublishedResult,
    open_results,
)
from censafe.products.topdown.intervals.intervals import IntervalSource, intervals_of
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.public.files import FilesRun, open_files
from censafe.products.topdown.public.held import estimate_held_run
from censafe.products.topdown.public.parts import estimate_files_run
from censafe.products.topdown.public.places import StateResult
from censafe.products.topdown.public.stated import require_right_sides
from censafe.products.topdown.release import TopdownRelease, publish
from censafe.publication.atomic import sha256_path
from censafe.publication.manifest import FROM_FILES, ConfigRecord, Manifest, software_versions
from censafe.publication.measurements.geography import ExactTotal, read_exact_totals
from censafe.publication.stamps import DEMONSTRATION
from censafe.publication.sums import require_confidence


def estimate_files(
    config: str, measurements: Path, out: Path, totals: Path | None, options: EstimateOptions
) -> RunResult:
    """Estimate and publish from a folder of public noisy measurement files.

    The output has no certificate, because the run protects nothing: the promise is that of those who measured. Where the same
    command was stopped, it resumes after the last state that was done.
    """
    require_confidence(options.confidence)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    chosen = load_config(config, options.settings)
    held = any(is_held(one) for one in chosen.histograms)
    _require_supported(chosen, options, held=held)
    opened = open_results(chosen, options.results)
    results = tuple(one if options.state is None else StateResult(one, options.state) for one in opened)
    observer = options.observer
    for warning in chosen.warnings:
        observer.remark(f"Warning: {warning}")
    names = named_areas(chosen, options.names).by_code
    with RunFolder(out) as folder:
        with observer.stage("hash inputs"):
            manifest = files_manifest(chosen, measurements, totals, results, options.state, created)
        state = folder.identify(manifest.identity)
        if state == "finished":
            observer.remark(f"{out} holds these estimates; they are made again.")
        found = _opened(chosen, measurements, totals, options)
        stored = StoredParts(folder.parts, manifest.plan.digest(), found.stamped)
        if held:
            _require_results(chosen, found, opened, options)
            estimates = estimate_held_run(chosen, found, results, stored, options)
        else:
            estimates = estimate_files_run(chosen, found, stored, options)
        source = IntervalSource(chosen, estimates, found.read, options.workers, names)
        intervals = intervals_of(folder.staging, source, options, stamp=found.stamp)
        whole = replace(
            manifest, run=folder.run, test_key=found.stamped, published_data=found.stamp == DEMONSTRATION
        )
        release = TopdownRelease(chosen, estimates, whole, None, options.confidence, False, intervals, names)
        with observer.stage("publish"):
            publish(out, folder.staging, release, observer=options.observer, workers=options.workers)
    return RunResult(
        out, manifest.plan, found.stamp, state != "new", release.files, observer.stages, measured=False
    )


def require_state(config: TopdownConfig, state: str | None) -> None:
    """Refuse one state of an estimate that starts above the states."""
    if state is not None and not config.run_levels[0].prefix:
        raise UsageError(
            f"`state`: the estimate starts at {config.root}, which is more than the state {state}; fix: --set root={STATE}"
        )


def _require_supported(config: TopdownConfig, options: EstimateOptions, *, held: bool) -> None:
    """Refuse one state of a run that starts above it, and what histograms that are held to other results cannot have."""
    require_state(config, options.state)
    if not held:
        return
    names = ", ".join(one.name for one in config.histograms if is_held(one))
    if options.intervals is not None:
        raise UsageError(
            f"`intervals`: {names} are held to published results, and have no unbiased estimates with intervals; allowed: intervals of "
            "histograms without constraints, such as those of pl94-us"
        )
    if config.choices.information != "level":
        raise UsageError(
            f"information = {config.choices.information}: {names} are held to published results, and estimated from files level by level, as the answers of "
            "all levels together are too many; fix: --set information=level"
        )


def _require_results(
    config: TopdownConfig,
    found: FilesRun,
    results: tuple[PublishedResult | MicrodataResult, ...],
    options: EstimateOptions,
) -> None:
    """Refuse published results that are missing, or that were made with a test key where the files were not."""
    require_right_sides(config, found.given, options.results)
    require_same_stamp(found, results)
    for one in results:
        if isinstance(one, MicrodataResult) and not one.test_key:
            options.observer.remark(f"Warning: {one.warning}")


def require_same_stamp(found: FilesRun, results: Sequence[PublishedResult | MicrodataResult]) -> None:
    """Refuse published results that were made with a test key, or of published data, where the files were not."""
    for one in results:
        strange = one.test_key or (one.published_data and found.stamp is None)
        if strange and not found.stamped:
            kind = (
                "was drawn with a test key and is not private"
                if one.test_key
                else "is a demonstration with published data"
            )
            raise UsageError(
                f"{one.folder} {kind}, and the measurement files are no such thing; allowed: the {one.name} that was released, or none where the "
                "files state its counts; fix: give that"
            )


def _opened(
    config: TopdownConfig, measurements: Path, totals: Path | None, options: EstimateOptions
) -> FilesRun:
    """Read the headers of the files, and say what is unusual in them."""
    observer = options.observer
    with observer.stage("read"):
        found = open_files(config, measurements, totals_table(measurements, totals), options.state)
    for remark in found.remarks:
        observer.remark(f"Warning: {remark}")
    return found


def totals_table(measurements: Path, totals: Path | None) -> tuple[ExactTotal, ...]:
    """Exact totals that the files cannot hold; none where there is no table."""
    beside = measurements / Path(TOTALS).name
    path = totals or (beside if beside.is_file() else None)
    return () if path is None else read_exact_totals(path)


def files_manifest(
    config: TopdownConfig,
    measurements: Path,
    totals: Path | None,
    results: Sequence[KnownResult],
    state: str | None,
    created: str,
) -> Manifest:
    """What a manifest says of estimates from public files before they are made."""
    if not measurements.is_dir():
        raise DataError(f"{measurements}: there is no such folder of noisy measurements")
    plan = plan_release(config)
    hashes = [sha256_path(path) for path in (measurements, totals) if path is not None]
    identity = {
        "plan": plan.digest(),
        "input": "+".join((*hashes, *(result.digest for result in results))),
        "key": FROM_FILES,
        "configuration": config.digest,
        **({} if state is None else {"state": state}),
    }
    return Manifest(
        plan=plan,
        config=ConfigRecord(config.origin, config.overrides, config.record),
        dataset=measurements.resolve().name,
        input_commitment=identity["input"],
        ledger=None,
        test_key=False,
        created=created,
        identity=identity,
        versions=software_versions(),
    )
