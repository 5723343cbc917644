"""Who pays for a run, with which key it draws, and every part measured exactly once: the ledger pays for a release; a test key pays nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Generic, TypeVar

from censafe.errors import CheckError, LedgerError, StorageError, UsageError
from censafe.model import PartPlan, ReleasePlan
from censafe.model.plan import NoiseSource
from censafe.model.proven import proven
from censafe.privacy.keys import (
    ReleaseKey,
    ReleasePartKey,
    TestKey,
    TestPartKey,
    keyed_commitment,
    plan_part_key,
    source_of,
)
from censafe.privacy.ledger.book import Ledger, RunNotes
from censafe.privacy.ledger.commitments import key_path_of, require_no_key
from censafe.privacy.ledger.report import runs_charged_with
from censafe.privacy.ledger.state import Reservation
from censafe.privacy.loss.promises import Promise, promise_of
from censafe.products.run.folder import FolderState, RunFolder
from censafe.products.run.options import CitedRun, RunOptions
from censafe.publication.atomic import remove_partials, sha256_path
from censafe.publication.manifest import LedgerRecord
from censafe.publication.stamps import stamp_of

LEDGER_NAME = "censafe-ledger.jsonl"
LEDGER_VARIABLE = "CENSAFE_LEDGER"


@dataclass(frozen=True)
class LedgerStatement:
    """What a ledger says of the records of a run.

    Args:
        before: what the records, and all that are linked with them, were charged before this run, by promise.
    """

    path: Path
    new: bool
    before: Mapping[Promise, Fraction]
    after: Mapping[Promise, Fraction]

    def lines(self) -> tuple[str, ...]:
        """For the operator."""
        if self.new:
            carried = f"with {_spent(self.before)} carried over, and " if self.before else "which holds "
            before = f"a new ledger, {carried}nothing about earlier spending on these records"
        elif self.before:
            before = f"spent before: {_spent(self.before)}"
        else:
            before = "it holds no earlier spending on these record files"
        return f"Ledger {self.path}: {before}", f"  total spent in this ledger: {_spent(self.after)}"

    def document(self) -> dict[str, object]:
        """For machines: fractions as text by definition, relation and unit."""
        return {
            "file": str(self.path),
            "new": self.new,
            "spent_before": {promise.text: str(total) for promise, total in self.before.items()},
            "spent_in_all": {promise.text: str(total) for promise, total in self.after.items()},
        }


def ledger_place(chosen: Path | None, data: Path) -> Path:
    """The ledger of a run: the one that was named, else the one of the environment, else the one beside the data.

    Example:
        >>> ledger_place(Path("here.jsonl"), Path("/data/state"))
        PosixPath('here.jsonl')
    """
    if chosen is not None:
        return chosen
    named = os.environ.get(LEDGER_VARIABLE)
    folder = data.resolve()
    return Path(named) if named else (folder if folder.is_dir() else folder.parent).parent / LEDGER_NAME


def one_file(part: str) -> str:
    """Where a part is stored by most products: in one file of its name.

    Example:
        >>> one_file("PH2")
        'PH2.parquet'
    """
    return f"{part}.parquet"


@dataclass(frozen=True)
class ReleaseRequest:
    """What a run is to measure, and on which records.

    Args:
        hashes: SHA-256 of every record file, by name; each of these files is charged.
        verify: raises unless a file or folder holds complete measurements of the plan.
        place: file or folder of a part below the measurements of the run, by the part's name.
    """

    plan: ReleasePlan
    hashes: Mapping[str, str]
    public: Mapping[str, str]
    ledger: Path
    label: str
    config_digest: str
    verify: Callable[[Path], None]
    place: Callable[[str], str] = one_file
    synthetic: bool = False


@contextmanager
def open_account(request: ReleaseRequest, folder: RunFolder, options: RunOptions) -> Iterator[Account]:
    """Open the account of a run and bind the run folder to plan, input and kind of key."""
    if options.test_key is not None:
        with TestKey(options.test_key) as key:
            files = {keyed_commitment(key, sha256.encode()).hex() for sha256 in request.hashes.values()}
            account = Account(request, folder, files, f"test {options.test_key}")
            account.key = key
            yield account
        return
    if options.raise_cap and options.cap is None:
        raise UsageError("`raise_cap` needs `cap`: the cap that replaces the earlier ones.")
    if not (options.ledger or options.new_ledger or request.synthetic or request.ledger.exists()):
        require_no_key(key_path_of(request.ledger))
        raise LedgerError(
            f"{request.ledger}: there is no ledger, and a run that began one here would not know what was spent on copies of these records "
            "elsewhere. Name the ledger of these records with `ledger`; only if nothing was ever released from them, begin one with "
            "`new_ledger`"
        )
    with Ledger.open(request.ledger, label=request.label, strict=options.strict_ledger) as ledger:
        release = _LedgerAccount(request, folder, options, ledger)
        try:
            release.open()
            yield release
        finally:
            release.leave()


class Account:
    """Reserved before the noise of a part exists, committed when its file is safe. This one has a test key, and pays and records nothing."""

    key: ReleaseKey | TestKey

    def __init__(
        self, request: ReleaseRequest, folder: RunFolder, commitments: Iterable[str], kind: str
    ) -> None:
        """Bind the run folder to plan, input and kind of key; ``commitments`` are keyed ones to each record file."""
        self._folder = folder
        self.dataset = request.label
        self.file_commitments = tuple(sorted(commitments))
        # one commitment to all files; names and order do not count
        self.input_commitment = hashlib.sha256("\n".join(self.file_commitments).encode()).hexdigest()
        self.identity: Mapping[str, str] = {
            "plan": request.plan.digest(),
            "input": self.input_commitment,
            "key": kind,
            **request.public,
        }
        """What a second run into the same folder must have in common with the first."""
        self.state: FolderState = folder.identify(self.identity)

    @property
    def ledger(self) -> LedgerRecord | None:
        """Ledger file and head; None for a test key."""
        return None

    @property
    def paid(self) -> Fraction | None:
        """What the ledger says this run spent; None for a test key."""
        return None

    @property
    def statement(self) -> LedgerStatement | None:
        """What the ledger says of the records; None for a test key."""
        return None

    def settle(self) -> None:
        """Bring folder and ledger into agreement after a killed run."""
        remove_partials(self._folder.measurements)

    def reserve(self, part: PartPlan) -> Reservation | None:
        """Reserve the cost of a part, or None for a test key; BudgetError when it is refused."""
        return None

    def commit(self, part: PartPlan, file: str, sha256: str) -> None:
        """Record that the measurements of a reserved part are safe."""

    def close(self) -> None:
        """Every part is committed: destroy the key."""
        self.key.close()


class _LedgerAccount(Account):
    """Pays from an open ledger."""

    def __init__(
        self, request: ReleaseRequest, folder: RunFolder, options: RunOptions, ledger: Ledger
    ) -> None:
        self._request = request
        self._plan = request.plan
        self._options = options
        self._ledger = ledger
        self._reservations: dict[str, Reservation] = {}
        hashes = request.hashes.values()
        cited = (ledger.accounts_of(result.run) for result in options.cited.values())
        # a cited result is of the same records
        self._accounts = ledger.accounts(hashes, options.dataset).union(*cited)
        self._new = ledger.is_new
        self._before = ledger.spent(self._accounts)
        super().__init__(request, folder, ledger.accounts(hashes), "release")
        self._stored = options.key_dir and options.key_dir / f"censafe-{folder.run}.key"
        self._same_key = self._stored is not None and self._stored.exists()
        self.key = self._make_key()

    def open(self) -> None:
        """Open the run in the ledger unless it is finished."""
        if self.state == "finished":
            return
        for name, cited in self._options.cited.items():
            self._pay_for_cited(name, cited)
        self._before = self._ledger.spent(self._accounts)
        self._ledger.open_run(
            self._plan,
            accounts=self._accounts,
            cap=self._options.cap,
            raise_cap=self._options.raise_cap,
            spend_more=self._options.spend_more,
            run=self._folder.run,
            notes=RunNotes(config_digest=self._request.config_digest, folder=str(self._folder.out.resolve())),
        )

    @property
    def ledger(self) -> LedgerRecord | None:
        return LedgerRecord(self._ledger.path.name, self._ledger.head)

    @property
    def paid(self) -> Fraction | None:
        return self._ledger.paid(self._folder.run)

    @property
    def statement(self) -> LedgerStatement | None:
        return LedgerStatement(self._ledger.path, self._new, self._before, self._ledger.spent(self._accounts))

    def _pay_for_cited(self, name: str, cited: CitedRun) -> None:
        """Make sure that this ledger holds the cost of a cited result, by carrying it over where the options say so."""
        plan, ledger = cited.plan, self._ledger
        if ledger.has_paid(plan, cited.run):
            return
        total = promise_of(plan).amount(plan.total)
        if name not in self._options.ledger_of:
            raise LedgerError(
                f"{ledger.path} did not pay for the cited result {name} ({plan.product}, {total}, by {cited.stated}), so that it would not hold what "
                "was spent on these records in all. Name the ledger that paid for it with `ledger`; or carry its cost into this ledger with "
                f"`ledger_of` {name}"
            )
        paid_by = self._options.ledger_of[name]
        if paid_by is not None:
            if cited.head is None:
                raise LedgerError(
                    f"{name}: {cited.stated} does not say which ledger paid for it; give `ledger_of` {name} without a ledger"
                )
            others = runs_charged_with(paid_by, plan, cited.run, cited.head)
            if others and self._options.spend_more is not True:
                raise LedgerError(
                    f"{paid_by} charged {others} more runs to the records of {name}, which this ledger would not hold. Use that ledger for this "
                    "run, or give `spend_more`"
                )
        notes = RunNotes(
            operator=f"carried: {name}, paid for by {paid_by or f'another ledger, by {cited.stated}'}"
        )
        ledger.carry(plan, cited.run, cited.files, accounts=self._accounts, notes=notes)

    def settle(self) -> None:
        super().settle()
        committed, reserved = (
            self._ledger.committed(self._folder.run),
            self._ledger.reservations(self._folder.run),
        )
        for part, (file, sha256) in committed.items():
            path = self._folder.measurements / file
            if not path.exists() or sha256_path(path) != sha256:
                raise CheckError(
                    f"{path}: the committed measurements of {part} are missing or were changed. They are never "
                    "measured again; restore the file from a copy, or start a new run in a new folder."
                )
        complete: dict[str, tuple[str, str]] = {}  # written whole and not yet committed
        for part in reserved:
            path = self._path(part)
            if path.exists():
                self._request.verify(path)
                complete[part] = self._request.place(part), sha256_path(path)
        self._require_known(set(committed) | set(complete))
        redo = _retained_reservations(
            [part for part in reserved if part not in complete],
            same_key=self._same_key,
            joint=self._plan.joint and bool(committed or complete),
            strict=self._options.strict_ledger,
        )
        self._reservations = self._ledger.settle_open(self._folder.run, finished=complete, redo=redo)

    def reserve(self, part: PartPlan) -> Reservation:
        if part.name not in self._reservations:
            self._folder.keep()  # before the entry: one that fails may stand in the file all the same
            self._reservations[part.name] = self._ledger.reserve(self._plan, part)
        return self._reservations[part.name]

    def commit(self, part: PartPlan, file: str, sha256: str) -> None:
        self._ledger.commit(self._reservations.pop(part.name), file, sha256)

    def close(self) -> None:
        self._ledger.close_run(self._plan)
        self.leave()

    def leave(self) -> None:
        """Destroy the key, and its file when nothing is reserved any more that it could redraw."""
        self.key.close()
        if self._stored is not None and not self._ledger.reservations(self._folder.run):
            self._stored.unlink(missing_ok=True)

    def _make_key(self) -> ReleaseKey:
        if self._stored is None or self.state == "finished":
            return ReleaseKey.from_system()
        if self._same_key:
            _require_own(self._stored.parent)
            return ReleaseKey.load(self._stored)
        key = ReleaseKey.from_system()
        try:
            self._stored.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_own(self._stored.parent)
        except OSError as error:
            raise StorageError(
                f"{self._stored.parent}: the key folder cannot be made ({error.strerror})."
            ) from error
        key.store(self._stored)
        return key

    def _require_known(self, parts: set[str]) -> None:
        names = (part.name for part in self._plan.parts if part.name not in parts)
        unknown = sorted(name for name in names if self._path(name).exists())
        if unknown:
            raise CheckError(
                f"{self._folder.measurements}: {self._ledger.path} has no entry for the measurements of "
                f"{', '.join(unknown)}. Name the ledger of this run with `ledger`."
            )

    def _path(self, part: str) -> Path:
        return self._folder.measurements / self._request.place(part)


def _require_own(folder: Path) -> None:
    """Refuse a folder for keys in which others may put or replace files."""
    status = folder.stat()
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or status.st_uid not in (os.getuid(), 0):
        raise StorageError(
            f"{folder}: others may write in this key folder, and a replaced key would remove the protection. Allow its owner only "
            "(chmod 700), or name another folder with `key_dir`."
        )


@proven("joint_parts.proof.md", digest="60dbd082db84f5e7")
def _retained_reservations(open_parts: list[str], *, same_key: bool, joint: bool, strict: bool) -> list[str]:
    """Parts of a killed run whose reservations are retained, to pay for what will be redrawn.

    Args:
        open_parts: reserved, and not measured whole.
        same_key: whether they will be redrawn with the same key.
        joint: whether parts of the plan may spend what others state, and one of them is measured.
        strict: whether reservations of killed runs stay charged as lost.
    """
    return open_parts if same_key or (joint and not strict) else []


def _spent(totals: Mapping[Promise, Fraction]) -> str:
    return "; ".join(promise.amount(total) for promise, total in totals.items()) or "nothing"


Measured = TypeVar("Measured")


@dataclass(frozen=True)
class MeasurementFiles(Generic[Measured]):
    """How one kind of measurements is stored.

    Args:
        write: ``write(path, measured, plan_digest=..., stamp=...)`` writes a part, read-only, whole or not at all, and returns
            :func:`~censafe.publication.atomic.sha256_path` of its file or folder.
        read: ``read(path, plan_digest=...)`` reads a part back and checks that it is whole, unchanged and of the plan.
    """

    write: Callable[..., str]
    read: Callable[..., Measured]
    sources: Callable[[Measured], set[NoiseSource]]


class MeasurementStore:
    """Measures the parts of one plan into one folder.

    Args:
        folder: where measurement files go; a file that is there already is read, never remeasured.
        account: who pays, and the run key; the key's type decides whether the results are private.
        place: file or folder of a part below ``folder``, by the part's name.
        published_data: whether what is measured was published before; measurement files then say so.
        before_first: called once before the first part is reserved, when everything that is measured has been read; what it
            raises stops the run before anything is paid for.
    """

    def __init__(
        self,
        plan: ReleasePlan,
        folder: Path,
        account: Account,
        place: Callable[[str], str] = one_file,
        before_first: Callable[[], None] | None = None,
        *,
        published_data: bool = False,
    ) -> None:
        self._plan = plan
        self._place = place
        self._before_first = before_first
        self._digest = plan.digest()
        self._folder = folder
        self._account = account
        self._key = account.key
        self._commitment = keyed_commitment(self._key, account.input_commitment.encode())
        self._stamp = stamp_of(test_key=source_of(self._key) == "seeded", published_data=published_data)

    @property
    def source(self) -> NoiseSource:
        """Where the noise of this run comes from, decided by the type of its key."""
        return source_of(self._key)

    def path(self, part: PartPlan) -> Path:
        """The measurement file or folder of a part."""
        return self._folder / self._place(part.name)

    def is_measured(self, part: PartPlan) -> bool:
        """Whether a part has its file; it is then read, and never measured again."""
        return self.path(part).exists()

    def done(self) -> bool:
        """Whether every part of the plan has its file, so that the records need not be reread."""
        return all(map(self.is_measured, self._plan.parts))

    def reserve_all(self, parts: Sequence[PartPlan]) -> None:
        """Reserve all these parts before the first of them is measured; parts that are done have been paid for."""
        for part in parts:
            if not self.is_measured(part):
                self._reserve(part)

    @contextmanager
    def reserve(self, part: PartPlan) -> Iterator[ReleasePartKey | TestPartKey]:
        """Reserve the cost of a part; the key of its noise, which is closed when the block ends. What was drawn is then written."""
        if self.is_measured(part):
            raise CheckError(
                f"{self.path(part)} holds the measurements of {part.name}, which are never drawn again"
            )
        key = plan_part_key(self._key, self._plan, self._commitment, part.name, self._reserve(part))
        try:
            yield key
        finally:
            key.close()

    def write(self, part: PartPlan, measured: Measured, files: MeasurementFiles[Measured]) -> None:
        """Store the measurements of a reserved part, and commit it."""
        path = self.path(part)
        sha256 = files.write(path, measured, plan_digest=self._digest, stamp=self._stamp)
        self._account.commit(part, self._place(part.name), sha256)
        if self.done():  # nothing is left to draw: what undoes the noise need not live through the estimation
            self._key.close()

    def read(self, part: PartPlan, files: MeasurementFiles[Measured]) -> Measured:
        """Read the measurements of a part that was measured before."""
        measured = files.read(self.path(part), plan_digest=self._digest)
        if files.sources(measured) - {source_of(self._key)}:
            raise CheckError(
                f"{self.path(part)} was drawn with another kind of key than this run uses. Name a new folder."
            )
        return measured

    def _reserve(self, part: PartPlan) -> Reservation | None:
        if self._before_first is not None:
            self._before_first()
            self._before_first = None
        return self._account.reserve(part)
