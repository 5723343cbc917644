"""One release of any product: open the records, pay, measure every part once, publish; or continue after a stop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from censafe.model import ReleasePlan
from censafe.model.bounds import upper
from censafe.model.observer import Observer
from censafe.population.synthetic.mark import is_synthetic
from censafe.products.run.account import Account, LedgerStatement, ReleaseRequest, ledger_place, open_account
from censafe.products.run.advice import RunAdvice, accuracy_text, next_steps
from censafe.products.run.folder import RunFolder
from censafe.products.run.inputs import Inputs
from censafe.products.run.measurement_store import MeasurementStore
from censafe.products.run.options import ReadOptions, RunOptions
from censafe.products.run.scratch import private_scratch, scratch_place
from censafe.publication.atomic import sha256_path
from censafe.publication.manifest import (
    ConfigRecord,
    Manifest,
    PartRecord,
    read_manifest,
    require_nothing_else,
    software_versions,
    verify_outputs,
)
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, stamp_of
from censafe.publication.sums import require_confidence

_KINDS: Mapping[Stamp, str] = {
    STAMP: "NOT PRIVATE (test key): rehearsal",
    DEMONSTRATION: f"{DEMONSTRATION}, which protects no one",
}


@dataclass(frozen=True)
class RunResult:
    """What a run did, for the operator.

    Args:
        stamp: of a test key or of published data; None for any other release.
        measured: False where the measurements are those of others and the run spent nothing.
        statement: what the ledger says of the records; None where it was not asked.
        accuracy: a typical margin of error, as a sentence; empty where none was asked for.
    """

    out: Path
    plan: ReleasePlan
    stamp: Stamp | None
    resumed: bool
    files: tuple[str, ...]
    stages: Mapping[str, float]
    measured: bool = True
    statement: LedgerStatement | None = None
    accuracy: str = ""
    steps: tuple[str, ...] = ()
    repeated: bool = False

    @property
    def private(self) -> bool:
        """Whether confidential records are protected."""
        return self.stamp is None

    def summary(self) -> str:
        """A few lines for people."""
        kind = "Protected release" if self.stamp is None else _KINDS[self.stamp]
        if self.repeated:
            kind = f"Post-processing repeated, no budget spent. {kind}"
        queries = sum(len(part.queries) for part in self.plan.parts)
        shown = [f"  {self.out / name}" for name in self.files]
        if not self.measured:
            kind = "Estimates from public measurements" + (
                "" if self.stamp is None else f" ({_KINDS[self.stamp]})"
            )
            return "\n".join([f"{kind} in {self.out}; nothing was measured or spent", *shown])
        lines = [
            f"{kind} in {self.out}",
            f"  {len(self.plan.parts)} parts with {queries} queries measured; total {self.plan.definition.symbol} {upper(self.plan.total, digits=6):.6g} "
            f"({self.plan.neighbors.value.replace('_', '/')} one {' and one '.join(self.plan.records)})",
            *(self.statement.lines() if self.statement else ()),
            *shown,
            *([f"How sure: {self.accuracy}"] if self.accuracy else ()),
            *(["Next:", *(f"  {step}" for step in self.steps)] if self.steps else ()),
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
                "ledger": self.statement.document() if self.statement else None,
                "files": list(self.files),
                "stages": dict(self.stages),
                "accuracy": self.accuracy,
                "next": list(self.steps),
            },
            sort_keys=True,
        )


class Source(Protocol):
    """Opened records, not read yet."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The record files, each of which the ledger charges."""

    @property
    def public_files(self) -> tuple[Path, ...]:
        """Further input files that decide what is measured and hold no confidential record."""


_Source = TypeVar("_Source", bound=Source)
_Measured = TypeVar("_Measured")


@dataclass(frozen=True)
class MeasuredRun(Generic[_Measured]):
    """A measured run, ready to be published.

    Args:
        ledger_total: what the ledger says this run spent; None for a test key.
        staging: where files are written and checked before they get their final names.
    """

    measured: _Measured
    manifest: Manifest
    ledger_total: Fraction | None
    confidence: Fraction
    out: Path
    staging: Path
    data: Path
    observer: Observer


class Job(Protocol[_Source, _Measured]):
    """What differs between products."""

    @property
    def plan(self) -> ReleasePlan:
        """What is measured."""

    @property
    def config(self) -> ConfigRecord:
        """The configuration as the manifest states it."""

    @property
    def config_digest(self) -> str:
        """SHA-256 of the configuration."""

    @property
    def files(self) -> tuple[str, ...]:
        """What a finished run folder holds, beside the measurements."""

    @property
    def outlook(self) -> RunAdvice:
        """What an operator reads at the end: a main number, and what comes next."""

    def open(self, data: Path, scratch: Path, reading: ReadOptions) -> AbstractContextManager[_Source]:
        """Open the records; headers are checked, rows not read."""

    def place(self, part: str) -> str:
        """File or folder below the measurements of the run that keeps a part, by the part's name."""

    def verify(self, path: Path) -> None:
        """Raise unless the file or folder holds complete measurements of the plan."""

    def measure(self, source: _Source, store: MeasurementStore, reading: ReadOptions) -> _Measured:
        """Read, check and count, and measure every part; parts that are done are read instead."""

    def publish(self, release: MeasuredRun[_Measured]) -> None:
        """Write, check and name everything that is published; the manifest last."""


def run_job(
    job: Job[_Source, _Measured], data: Path, out: Path, reading: ReadOptions, options: RunOptions
) -> RunResult:
    """Take a job from its records to its published files."""
    require_confidence(options.confidence)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    observer = reading.observer
    with RunFolder(out) as folder, ExitStack() as stack:
        earlier = folder.note_scratch(scratch_place(data, reading.scratch))
        with (
            private_scratch(data, reading.scratch, out=out, earlier=earlier) as scratch,
            job.open(data, scratch, reading) as source,
        ):
            inputs = Inputs.of((source.files, source.public_files), data, observer)
            account = stack.enter_context(_account(job, inputs, folder, options))
            if account.statement is not None:
                observer.remark(account.statement.lines()[0])
            measured = None
            if account.state != "finished":
                account.settle()
                measured = job.measure(source, _door(job, inputs, folder, account, options), reading)
                account.close()  # afterwards the key is gone
        # from here on no record is open, and no scratch is left
        if measured is None:
            with observer.stage("verify the folder"):
                observer.remark(_finished(job, out))
        else:
            with observer.stage("publish"):
                manifest = _manifest(job, folder, account, reading, created)
                manifest = replace(manifest, published_data=options.published_data)
                paid, confidence = account.paid, options.confidence
                made = MeasuredRun(measured, manifest, paid, confidence, out, folder.staging, data, observer)
                job.publish(made)
        resumed, statement = account.state != "new", account.statement
    stamp = stamp_of(test_key=options.test_key is not None, published_data=options.published_data)
    result = RunResult(out, job.plan, stamp, resumed, job.files, observer.stages, statement=statement)
    accuracy = accuracy_text(job.plan, job.outlook, options.confidence, out)
    return replace(result, accuracy=accuracy, steps=next_steps(job.outlook, out, rehearsal=stamp == STAMP))


def _door(
    job: Job[_Source, _Measured], inputs: Inputs, folder: RunFolder, account: Account, options: RunOptions
) -> MeasurementStore:
    return MeasurementStore(
        job.plan,
        folder.measurements,
        account,
        job.place,
        inputs.require_unchanged,
        published_data=options.published_data,
    )


def _finished(job: Job[_Source, _Measured], out: Path) -> str:
    """What to say of a folder that holds the run already."""
    manifest = read_manifest(out / "manifest.json")
    verify_outputs(out, manifest)
    require_nothing_else(out, manifest)
    recorded = manifest.config.settings
    differing = sorted(key for key, value in job.config.settings.items() if recorded.get(key) != value)
    text = f"{out} holds this run, finished. Nothing was measured or spent."
    if not differing:
        return text
    return (
        f"{text} Its tables were made with different settings ({', '.join(differing)}): 'censafe estimate' remakes them from the "
        "measurements."
    )


def _account(
    job: Job[_Source, _Measured], inputs: Inputs, folder: RunFolder, options: RunOptions
) -> AbstractContextManager[Account]:
    public = hashlib.sha256(json.dumps(sorted(inputs.public.values())).encode()).hexdigest()
    request = ReleaseRequest(
        plan=job.plan,
        hashes=inputs.confidential,
        public={"public_input": public} if inputs.public else {},
        ledger=ledger_place(options.ledger, inputs.data),
        synthetic=is_synthetic(inputs.data, inputs.confidential.values()),
        label=options.dataset or inputs.data.resolve().name,
        config_digest=_digest(job.config_digest, published_data=options.published_data),
        verify=job.verify,
        place=job.place,
    )
    return open_account(request, folder, options)


def _digest(configuration: str, *, published_data: bool) -> str:
    """SHA-256 of the configuration, another one where the run is a demonstration: neither continues the other."""
    return (
        hashlib.sha256(f"{configuration} published".encode()).hexdigest() if published_data else configuration
    )


def _manifest(
    job: Job[_Source, _Measured], folder: RunFolder, account: Account, reading: ReadOptions, created: str
) -> Manifest:
    files = [(part.name, folder.measurements / job.place(part.name)) for part in job.plan.parts]
    return Manifest(
        plan=job.plan,
        config=job.config,
        dataset=account.dataset,
        input_commitment=account.input_commitment,
        file_commitments=account.file_commitments,
        ledger=account.ledger,
        test_key=account.identity["key"] != "release",
        run=folder.run,
        identity=account.identity,
        checks=reading.checks,
        created=created,
        parts=tuple(
            PartRecord(name, path.relative_to(folder.out).as_posix(), sha256_path(path))
            for name, path in files
        ),
        stages={name: round(seconds, 3) for name, seconds in reading.observer.stages.items()},
        versions=software_versions(),
    )
