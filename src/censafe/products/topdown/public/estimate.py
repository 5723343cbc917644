"""TopDown from public noisy measurement files: nothing confidential is opened, nothing is measured or spent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from censafe.errors import DataError
from censafe.model.observer import Observer
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import EstimateOptions
from censafe.products.run.runner import RunResult
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.configuration.runnable import require_free
from censafe.products.topdown.estimate import FROM_FILES
from censafe.products.topdown.files import named_areas
from censafe.products.topdown.folder import TOTALS, StoredParts
from censafe.products.topdown.intervals.intervals import IntervalSource, intervals_of
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.public.files import FilesRun, open_files
from censafe.products.topdown.public.parts import estimate_files_run
from censafe.products.topdown.release import TopdownRelease, publish
from censafe.publication.atomic import sha256_path
from censafe.publication.manifest import ConfigRecord, Manifest, software_versions
from censafe.publication.measurements.geography import ExactTotal, read_exact_totals
from censafe.publication.stamps import DEMONSTRATION
from censafe.publication.sums import require_confidence

__all__ = ["estimate_files"]

_PACKAGES = ("censafe", "numba", "numpy", "pyarrow")


def estimate_files(
    config: str, measurements: Path, out: Path, totals: Path | None, options: EstimateOptions
) -> RunResult:
    """Estimate and publish from a folder of public noisy measurement files.

    The output has no certificate, because the run protects nothing: the promise is that of those who measured. Where the same
    command was stopped, it resumes after the last state that was done.

    Args:
        config: a path or a shipped name; its levels, schemas, queries and passes are used, its spine and budget are not.
        measurements: folder with one folder a product.
        out: a new or empty folder.
        totals: table of exact totals that the files cannot hold, such as those of states parted in two; None for the one
            that lies beside the measurements, if any.
        options: what changes in the configuration, and what receives stages.

    Raises:
        UsageError: the output folder holds something else.
        ConfigError: the configuration breaks a rule.
        DataError: files are missing or break a rule; nothing was written.
        CheckError: no histograms meet the exact figures, or a check of the integers failed.
    """
    require_confidence(options.confidence)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    chosen = load_config(config, options.settings)
    require_free(chosen, "an estimate from public files")
    observer = options.observer
    for warning in chosen.warnings:
        observer.remark(f"Warning: {warning}")
    names = named_areas(chosen, options.names).by_code
    with RunFolder(out) as folder:
        with observer.stage("hash inputs"):
            manifest = _manifest(chosen, measurements, totals, created)
        state = folder.identify(manifest.identity)
        if state == "finished":
            observer.remark(f"{out} holds these estimates; they are made again.")
        found = _opened(chosen, measurements, totals, observer)
        stored = StoredParts(folder.parts, manifest.plan.digest(), found.stamped)
        estimates = estimate_files_run(chosen, found, stored, options)
        source = IntervalSource(chosen, estimates, found.read, options.workers, names)
        intervals = intervals_of(folder.staging, source, options, stamp=found.stamp)
        whole = replace(
            manifest, run=folder.run, test_key=found.stamped, published_data=found.stamp == DEMONSTRATION
        )
        release = TopdownRelease(chosen, estimates, whole, None, options.confidence, False, intervals, names)
        with observer.stage("publish"):
            publish(out, folder.staging, release, workers=options.workers)
    return RunResult(
        out, manifest.plan, not found.stamped, state != "new", release.files, observer.stages, measured=False
    )


def _opened(config: TopdownConfig, measurements: Path, totals: Path | None, observer: Observer) -> FilesRun:
    """Read the headers of the files, and say what is unusual in them."""
    with observer.stage("read"):
        found = open_files(config, measurements, _table(measurements, totals))
    for remark in found.remarks:
        observer.remark(f"Warning: {remark}")
    return found


def _table(measurements: Path, totals: Path | None) -> tuple[ExactTotal, ...]:
    beside = measurements / Path(TOTALS).name
    path = totals or (beside if beside.is_file() else None)
    return () if path is None else read_exact_totals(path)


def _manifest(config: TopdownConfig, measurements: Path, totals: Path | None, created: str) -> Manifest:
    if not measurements.is_dir():
        raise DataError(f"{measurements}: there is no such folder of noisy measurements")
    plan = plan_release(config)
    hashes = [sha256_path(path) for path in (measurements, totals) if path is not None]
    identity = {
        "plan": plan.digest(),
        "input": "+".join(hashes),
        "key": FROM_FILES,
        "configuration": config.digest,
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
        versions=software_versions(_PACKAGES),
    )
