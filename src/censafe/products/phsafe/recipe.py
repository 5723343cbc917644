"""PHSafe from the Bureau's input folder to protected tables: the doors in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from censafe.errors import StorageError
from censafe.model import Measurements, ReleasePlan
from censafe.population.validation import ValidationReport
from censafe.products.account import Account, open_account
from censafe.products.door import Door
from censafe.products.observer import Observer
from censafe.products.options import ReadOptions, RunOptions
from censafe.products.phsafe.config import PhsafeConfig, load_config
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.products.phsafe.intake import Intake
from censafe.products.phsafe.plan import measured_levels, plan_release
from censafe.products.phsafe.release import FILES, publish, republish
from censafe.products.run_folder import RunFolder
from censafe.publication.atomic import sha256_file
from censafe.publication.manifest import ConfigRecord, Manifest, PartRecord, read_manifest, software_versions
from censafe.publication.sums import require_confidence
from censafe.tabulation.counting import CountAccumulator

__all__ = ["RunResult", "estimate", "run", "validate"]

_PACKAGES = ("censafe", "cryptography", "duckdb", "ibis-framework", "numba", "numpy", "pyarrow")


@dataclass(frozen=True)
class RunResult:
    """What a run did, for the operator.

    Args:
        out: the run folder.
        plan: what was measured.
        private: False for a test key.
        resumed: whether parts were there from an earlier start.
        files: what to open, relative to ``out``.
        stages: seconds by stage.
    """

    out: Path
    plan: ReleasePlan
    private: bool
    resumed: bool
    files: tuple[str, ...]
    stages: Mapping[str, float]

    def summary(self) -> str:
        """A few lines for people."""
        kind = "Protected release" if self.private else "NOT PRIVATE (test key): rehearsal"
        queries = sum(len(part.queries) for part in self.plan.parts)
        lines = [
            f"{kind} in {self.out}",
            f"  {len(self.plan.parts)} tables, {queries} table levels measured; "
            f"total {self.plan.definition.symbol} {float(self.plan.total):.6g} "
            f"({self.plan.neighbours.value.replace('_', '/')} one {self.plan.unit.value})",
            *(f"  {self.out / name}" for name in self.files),
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The same for machines."""
        return json.dumps(
            {
                "out": str(self.out),
                "private": self.private,
                "resumed": self.resumed,
                "plan_digest": self.plan.digest(),
                "definition": self.plan.definition.value,
                "total": str(self.plan.total),
                "files": list(self.files),
                "stages": dict(self.stages),
            },
            sort_keys=True,
        )


def validate(config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions) -> ValidationReport:
    """Check a configuration as for a run, then every rule on the records.

    Args:
        config: a path or a shipped name.
        data: folder with the records, or the .ini file of the fixed-width reader.
        settings: overrides of configuration keys.
        reading: how the records are read and checked.

    Returns:
        All findings; ``fatal`` says whether a run would stop.

    Raises:
        ConfigError: the configuration breaks a rule.
        DataError: the files cannot be read at all.
    """
    chosen = _load(config, settings, reading.observer)
    plan_release(chosen)
    with (
        TemporaryDirectory(prefix="censafe-validate-") as scratch,
        Intake(data, chosen.reader, chosen.states, Path(scratch), reading) as intake,
    ):
        return intake.validate()


def run(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    options: RunOptions,
) -> RunResult:
    """Read, check, count, measure and publish; go on where a stopped run left off.

    Args:
        config: a path or a shipped name.
        data: folder with the records, or the .ini file of the fixed-width reader.
        out: a new or empty folder, or the folder of the same run.
        settings: overrides of configuration keys.
        reading: how the records are read and checked.
        options: how the release is paid for and where its noise comes from.

    Raises:
        InputError: the configuration or the records break a rule; nothing was spent.
        UsageError: the folder holds something else.
        BudgetError: the ledger refuses; no noise was drawn for the refused part.
        StorageError: the disk is full or a folder is not writable; start the same command again.
    """
    require_confidence(options.confidence)
    chosen = _load(config, settings, reading.observer)
    plan = plan_release(chosen)
    created = datetime.now(UTC)
    with RunFolder(out) as folder, ExitStack() as stack:
        intake = stack.enter_context(Intake(data, chosen.reader, chosen.states, folder.scratch, reading))
        with reading.observer.stage("hash inputs"):
            hashes = _hash_files(intake.files, data)
        account = stack.enter_context(
            open_account(
                plan,
                hashes,
                folder,
                options,
                dataset=options.dataset or data.resolve().name,
                config_digest=chosen.digest,
            )
        )
        if account.state == "finished":
            reading.observer.remark(f"{out} holds this run, finished. Nothing was measured or spent.")
        else:
            account.settle()
            door = Door(plan, folder.measurements, account)
            measured = _measure(chosen, plan, intake, door, reading)
            account.close()
            with reading.observer.stage("publish"):
                manifest = _manifest(chosen, plan, folder, account, reading, options, created)
                publish(
                    out,
                    folder.staging,
                    measured,
                    manifest,
                    ledger_total=account.paid,
                    confidence=options.confidence,
                )
    resumed = account.state != "new"
    return RunResult(out, plan, options.test_key is None, resumed, FILES, reading.observer.stages)


def _manifest(
    config: PhsafeConfig,
    plan: ReleasePlan,
    folder: RunFolder,
    account: Account,
    reading: ReadOptions,
    options: RunOptions,
    created: datetime,
) -> Manifest:
    files = [(part.name, folder.measurements / f"{part.name}.parquet") for part in plan.parts]
    return Manifest(
        plan=plan,
        config=ConfigRecord(config.origin, config.overrides, config.settings),
        dataset=account.dataset,
        input_commitment=account.input_commitment,
        ledger=account.ledger,
        test_key=options.test_key is not None,
        run=folder.run,
        identity=account.identity,
        checks=reading.checks,
        created=created.isoformat(timespec="seconds"),
        parts=tuple(
            PartRecord(name, path.relative_to(folder.out).as_posix(), sha256_file(path))
            for name, path in files
        ),
        stages={name: round(seconds, 3) for name, seconds in reading.observer.stages.items()},
        versions=software_versions(_PACKAGES),
    )


def estimate(out: Path, *, confidence: Fraction, observer: Observer) -> RunResult:
    """Rewrite everything right of the door from the stored measurements of a finished run.

    Args:
        out: the run folder.
        confidence: level of the margins of error.
        observer: who is told of stages.

    Raises:
        StorageError: no finished run.
        CheckError: a measurement file is missing, changed or of another plan.
    """
    require_confidence(confidence)
    with observer.stage("publish"):
        manifest = read_manifest(out / "manifest.json")
        republish(out, manifest, confidence)
    return RunResult(
        out, manifest.plan, not manifest.test_key, resumed=True, files=FILES, stages=observer.stages
    )


def _load(config: str, settings: Mapping[str, str], observer: Observer) -> PhsafeConfig:
    chosen = load_config(config, settings)
    for warning in chosen.warnings:
        observer.remark(f"Warning: {warning}")
    return chosen


def _measure(
    config: PhsafeConfig, plan: ReleasePlan, intake: Intake, door: Door, reading: ReadOptions
) -> list[Measurements]:
    """Every part through the door; the records are read only when a part is still to be measured."""
    if all(door.path(part).exists() for part in plan.parts):
        return [answer for part in plan.parts for answer in door.read(part)]
    levels = measured_levels(config)
    counts = CountAccumulator(phsafe_definitions(), tables=list(levels), tau=config.tau)
    report = intake.count(counts)
    _remark(report, counts, reading.observer)
    exact = counts.finish(levels)
    with reading.observer.stage("measure"):
        return [answer for part in plan.parts for answer in door.measure(part, exact)]


def _remark(report: ValidationReport, counts: CountAccumulator, observer: Observer) -> None:
    """Tell the operator, and nobody else, what the checks found."""
    for finding in report.findings:
        observer.remark(f"Warning: {finding.text()}")
    for table, records in counts.unmatched.items():
        if records:
            observer.remark(
                f"Warning: {table}: {records} records of its universe match no cell and are left out "
                "(their codes contradict each other)."
            )


def _hash_files(files: tuple[Path, ...], data: Path) -> dict[str, str]:
    """SHA-256 of every input file by its path below the data folder."""
    root = data if data.is_dir() else data.parent
    names = [path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name for path in files]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(_hash_file, files), strict=True))


def _hash_file(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be read ({error.strerror}).") from error
