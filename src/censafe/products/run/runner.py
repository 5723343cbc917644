"""One release of any product: open the records, pay, measure every part once, publish; or continue after a stop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Protocol, TypeVar

from censafe.model import ReleasePlan
from censafe.model.bounds import upper
from censafe.population.synthetic.mark import is_synthetic
from censafe.privacy.loss.margins import exact_margin
from censafe.products.run.account import (
    LedgerStatement,
    MeasurementStore,
    ReleaseRequest,
    ledger_place,
    open_account,
)
from censafe.products.run.folder import Inputs, MeasuredRun, RunFolder
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
        statement: what the ledger says of the records; None without a ledger.
        accuracy: a typical margin of error, as a sentence; empty without one.
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
        files = [f"  {self.out / name}" for name in self.files]
        if not self.measured:
            kind = "Estimates from public measurements" + (
                "" if self.stamp is None else f" ({_KINDS[self.stamp]})"
            )
            return "\n".join([f"{kind} in {self.out}; nothing was measured or spent", *files])
        lines = [
            f"{kind} in {self.out}",
            f"  {len(self.plan.parts)} parts with {queries} queries measured; total {self.plan.definition.symbol} {upper(self.plan.total, digits=6):.6g} "
            f"({self.plan.neighbors.value.replace('_', '/')} one {' and one '.join(self.plan.records)})",
            *(self.statement.lines() if self.statement else ()),
            *files,
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


@dataclass(frozen=True)
class RunAdvice:
    """What a product says at the end of a run: how sure a main number is, and which command comes next.

    Args:
        tables: measured tables or queries, the main one first; the first that the plan has is shown.
        caveat: what else is to be known of the error of published counts, with ``{out}`` for the run folder.
        commands: what to do next with a release, each a command with ``{out}`` and its purpose.
    """

    tables: Sequence[str]
    levels: Sequence[str]
    words: str
    caveat: str
    commands: Sequence[tuple[str, str]]

    def accuracy(self, plan: ReleasePlan, confidence: Fraction, out: Path) -> str:
        """A typical margin of error, that of the noise of one main number."""
        queries = [query for part in plan.parts for query in part.queries]
        for table in self.tables:
            own = [query for query in queries if query.table == table]
            main = [query for level in self.levels for query in own if query.level == level] or own
            if main:
                words = self.words.format(table=table, level=main[0].level)
                margin = exact_margin(main[0].law, confidence)
                return f"{words}: noise within \N{PLUS-MINUS SIGN}{margin:,} ({float(100 * confidence):g}% confidence). {self.caveat.format(out=out)}"
        return ""

    def steps(self, out: Path, *, rehearsal: bool) -> tuple[str, ...]:
        """Commands that come next, each with its purpose."""
        steps = [f"open {out / 'certificate.html'}: what is protected, and the error of every table"]
        steps += [f"{command.format(out=out)}: {purpose}" for command, purpose in self.commands]
        if rehearsal:
            steps.append("the same command without --test-key, in a new folder: the release itself")
        return tuple(steps)


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


class Job(Protocol[_Source, _Measured]):
    """What differs between products.

    Args:
        config: the configuration as the manifest states it, with the SHA-256 of what decides the release in ``config_digest``.
        files: what a finished run folder holds, beside the measurements.
        outlook: what an operator reads at the end: a main number, and what comes next.
    """

    plan: ReleasePlan
    config: ConfigRecord
    config_digest: str
    files: tuple[str, ...]
    outlook: RunAdvice

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
            inputs = Inputs(source.files, source.public_files, data, observer)
            public = hashlib.sha256(json.dumps(sorted(inputs.public.values())).encode()).hexdigest()
            digest = job.config_digest
            if options.published_data:  # a demonstration and another run do not continue each other
                digest = hashlib.sha256(f"{digest} published".encode()).hexdigest()
            request = ReleaseRequest(
                plan=job.plan,
                hashes=inputs.confidential,
                public={"public_input": public} if inputs.public else {},
                ledger=ledger_place(options.ledger, data),
                synthetic=is_synthetic(data, inputs.confidential.values()),
                label=options.dataset or data.resolve().name,
                config_digest=digest,
                verify=job.verify,
                place=job.place,
            )
            account = stack.enter_context(open_account(request, folder, options))
            if account.statement is not None:
                observer.remark(account.statement.lines()[0])
            measured = None
            if account.state != "finished":
                account.settle()
                store = MeasurementStore(
                    job.plan,
                    folder.measurements,
                    account,
                    job.place,
                    inputs.require_unchanged,
                    published_data=options.published_data,
                )
                measured = job.measure(source, store, reading)
                account.close()  # afterwards the key is gone
        # from here on no record is open, and no scratch is left
        if measured is None:
            with observer.stage("verify the folder"):
                observer.remark(_finished(job, out))
        else:
            with observer.stage("publish"):
                files = [(part.name, folder.measurements / job.place(part.name)) for part in job.plan.parts]
                manifest = Manifest(
                    plan=job.plan,
                    config=job.config,
                    dataset=account.dataset,
                    input_commitment=account.input_commitment,
                    file_commitments=account.file_commitments,
                    ledger=account.ledger,
                    test_key=options.test_key is not None,
                    published_data=options.published_data,
                    run=folder.run,
                    identity=account.identity,
                    checks=reading.checks,
                    created=created,
                    parts=tuple(
                        PartRecord(name, path.relative_to(folder.out).as_posix(), sha256_path(path))
                        for name, path in files
                    ),
                    stages={name: round(seconds, 3) for name, seconds in observer.stages.items()},
                    versions=software_versions(),
                )
                job.publish(
                    MeasuredRun(
                        measured, manifest, account.paid, options.confidence, out, folder.staging, observer
                    )
                )
        resumed, statement = account.state != "new", account.statement
    stamp = stamp_of(test_key=options.test_key is not None, published_data=options.published_data)
    return RunResult(
        out,
        job.plan,
        stamp,
        resumed,
        job.files,
        observer.stages,
        statement=statement,
        accuracy=job.outlook.accuracy(job.plan, options.confidence, out),
        steps=job.outlook.steps(out, rehearsal=stamp == STAMP),
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
