"""The ledger: every budget is written down, on stable storage, before the noise that it pays for exists.

One file records all runs on all records of a place. Every record file is recognized by a keyed commitment to it, whatever
it is called and whatever it is read with; files that were read together are charged together from then on. Opening
verifies the whole file; everything that the ledger refuses, it refuses before writing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import LedgerError, OverspendError
from censafe.model import PartPlan, ReleasePlan
from censafe.model.closing import Closing
from censafe.model.proven import proven
from censafe.privacy.keys.commitments import (
    commit_to_file,
    commit_to_key,
    commit_to_name,
    drop_provisional_key,
    key_path_of,
    load_key,
    new_key,
    require_no_key,
    settle_key,
)
from censafe.privacy.ledger.entries import (
    FORMAT,
    decode,
    encode,
    fraction_text,
    fractions_text,
    parse,
)
from censafe.privacy.ledger.file import LedgerFile
from censafe.privacy.ledger.records import (
    Reservation,
    RunNotes,
    RunRecord,
    Settlement,
    cap_fields,
    cost_by_part,
    factor_fields,
    partition_fields,
    promise_fields,
    query_fields,
    reservation_of,
    second_release_text,
)
from censafe.privacy.ledger.report import audited_state
from censafe.privacy.ledger.state import Cap, Charge, ChargeState, LedgerState, PartOutcome, RunState
from censafe.privacy.loss.accountant import compose, part_cost
from censafe.privacy.loss.budget import exact
from censafe.privacy.loss.promises import Loss, Promise, common_promises, loss_under, part_loss
from censafe.version import __version__


def named_cap(state: LedgerState, accounts: frozenset[str], loss: Loss, amount: Fraction) -> Cap:
    """A cap that the operator names for a run."""
    limit = exact(amount, "cap")
    if limit <= 0:
        raise OverspendError(f"the cap must be positive, not {limit}")
    for promise in _common(state, accounts, loss):
        if promise.definition == loss.promise.definition:
            return Cap(limit, promise, accounts)
    raise OverspendError(
        f"a cap on {loss.promise.symbol} cannot be kept: these records were charged losses that bound no "
        f"{loss.promise.symbol} of {loss.promise.relation} ({_listed(state, accounts)}); leave `cap` out, or plan this "
        "release under the definition of privacy of the earlier ones"
    )


def choose_cap(
    path: Path, state: LedgerState, accounts: frozenset[str], loss: Loss, due: Collection[Loss]
) -> Cap:
    """The cap of a run for which none is named: exactly what the dataset will have been charged after it."""
    promise = next(iter(_common(state, accounts, loss)), None)
    total = None if promise is None else state.total(accounts, promise)
    if promise is None or total is None:
        raise OverspendError(
            f"{path}: these records were charged losses that cannot be added to this one, because no relation and unit is "
            f"stated for both ({_listed(state, accounts)}, and now {loss.promise.relation}); nothing was written or measured"
        )
    return Cap(compose([total, *_converted(due, promise)]), promise, accounts)


def require_within(path: Path, state: LedgerState, run: RunState, due: Collection[Loss]) -> None:
    """Refuse losses beyond a cap of the run or its dataset with OverspendError."""
    cap = state.exceeded(run, due)
    if cap is None:
        return
    before = state.total(run.accounts, cap.promise)
    amounts = [loss_under(loss, cap.promise) for loss in due]
    named = "" if cap is run.cap else ", which was named for these records before"
    ways = "lower the budgets, or raise `cap` on purpose"
    if named:
        ways = "lower the budgets, or lift the cap on purpose with `cap` and `raise_cap`"
    if before is None or None in amounts:
        what = f"losses are added that bound no {cap.promise.symbol} of {cap.promise.relation}"
    else:
        needed = cap.promise.amount(compose([before, *(one for one in amounts if one is not None)]))
        what = f"with this run the dataset would have spent {needed}"
    raise OverspendError(
        f"{path}: the cap of {cap.promise.amount(cap.amount)}{named}: {what}; "
        f"nothing was written or measured; {ways}"
    )


def _common(state: LedgerState, accounts: Collection[str], loss: Loss) -> tuple[Promise, ...]:
    return tuple(common_promises(loss, [run.loss for run in state.runs_of(accounts)]))


def _converted(due: Collection[Loss], promise: Promise) -> list[Fraction]:
    return [amount for loss in due if (amount := loss_under(loss, promise)) is not None]


def _listed(state: LedgerState, accounts: Collection[str]) -> str:
    return ", ".join(promise.amount(total) for promise, total in state.stated(accounts).items())


LIVE = (ChargeState.RESERVED, ChargeState.COMMITTED)
"""States in which a part of a run is not measured again."""
_RUN = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True)
class OpeningRequest:
    """What an operator asks for.

    Args:
        run: identifier of a run to resume, or of a new one; None for a random one.
        spend_more: the operator knows that accounts were charged before; or the runs of which the operator knows.
    """

    plan: ReleasePlan
    accounts: frozenset[str]
    label: str
    run: str | None
    cap: Fraction | None
    raise_cap: bool
    spend_more: bool | frozenset[str]
    notes: RunNotes

    @property
    def loss(self) -> Loss:
        """Of the whole plan."""
        return part_loss(self.plan, self.plan.total)


def admitted(path: Path, state: LedgerState, request: OpeningRequest) -> RunState:
    """The run as it will be written down; one that is complete comes back as it is."""
    costs = cost_by_part(request.plan)
    name = _run_name(request.run)
    known = _known_run(path, state, name, request)
    if known and known.closed:
        return known
    if request.spend_more is not True:
        of_these = request.spend_more or frozenset()
        _refuse_second_release(
            path, state, request, of_these | (known.others if known else frozenset()), name
        )
    live = {charge.part for charge in state.charges_of(name, *LIVE)}
    due = [part_loss(request.plan, cost) for part, cost in costs.items() if part not in live]
    cap, source = _cap(path, state, request, known, due)
    opened = RunState(
        run=name,
        accounts=request.accounts,
        label=request.label,
        product=request.plan.product,
        plan=request.plan.digest(),
        folder=request.notes.folder,
        loss=request.loss,
        cap=cap,
        cap_source=source,
        others=state.links.reach(request.accounts)[0] - {name},
    )
    require_within(path, state, opened, due)
    return opened


def _cap(
    path: Path, state: LedgerState, request: OpeningRequest, known: RunState | None, due: list[Loss]
) -> tuple[Cap, str]:
    """The cap of a run, and where it comes from."""
    if request.cap is not None:
        source = "raised" if request.raise_cap else "operator"
        return named_cap(state, request.accounts, request.loss, request.cap), source
    if request.raise_cap:
        raise ValueError("raise_cap needs a cap that takes the place of the earlier ones")
    if known and request.spend_more is not True:
        return known.cap, "kept"
    return choose_cap(path, state, request.accounts, request.loss, due), "default"


def _run_name(run: str | None) -> str:
    name = secrets.token_hex(8) if run is None else run
    if not _RUN.fullmatch(name):
        raise ValueError("a run is named by 8 to 64 hexadecimal digits")
    return name


def _known_run(path: Path, state: LedgerState, name: str, request: OpeningRequest) -> RunState | None:
    known = state.runs.get(name)
    if known and (known.plan, known.accounts) != (request.plan.digest(), request.accounts):
        same_plan = known.plan == request.plan.digest()
        raise LedgerError(
            f"{path}: run {name} was opened with another {'input or `dataset`' if same_plan else 'plan'}; "
            "restore what it was opened with, or start a run in a new folder"
        )
    return known


def _refuse_second_release(
    path: Path, state: LedgerState, request: OpeningRequest, known: frozenset[str], name: str
) -> None:
    """Accounts that other runs were charged to need the operator's word, once for every such run."""
    runs = [run for run in state.runs_of(request.accounts) if run.run != name]
    if {run.run for run in runs} <= known:
        return
    unfinished = [
        run.folder for run in runs if run.folder and state.charges_of(run.run, ChargeState.RESERVED)
    ]
    labels = [run.label for run in runs]
    spent = state.stated(request.accounts)
    raise OverspendError(f"{path}: {second_release_text(request.plan, spent, labels, unfinished)}")


_SHA256 = re.compile(r"[0-9a-f]{64}")
_NO_NOTES = RunNotes()


class Ledger(Closing):
    """An exclusively locked, verified ledger; use it as a context manager.

    Build one with :meth:`open`.
    """

    def __init__(self, file: LedgerFile, label: str, *, strict: bool) -> None:
        self._file = file
        self._label = label
        self._strict = strict
        contents = parse(file.read(), file.path)
        self._state: LedgerState = audited_state(contents, file.path)
        self._seq = len(contents.entries)
        self._head = contents.head
        self._key = _key_of(
            file.path, [entry.text("key") for entry in contents.entries if entry.event == "open"]
        )
        self._run: RunState | None = None
        self.torn: Path | None = file.set_aside(contents.torn) if contents.torn else None

    @classmethod
    def open(cls, path: Path, *, label: str, strict: bool = False) -> Ledger:
        """Lock, verify and, where it does not exist, create a ledger and its key."""
        path = Path(path)
        key = key_path_of(path)
        if not path.exists():
            require_no_key(key)  # before a file is made in the place of the one that is missing
        file = LedgerFile.open(path)
        try:
            return cls(file, label, strict=strict)
        except BaseException:  # an interrupt as well
            if file.is_empty():
                drop_provisional_key(key)
            file.close()
            raise

    def close(self) -> None:
        """Give up the lock and forget the key; a ledger without lines keeps none.

        What counts is the file: an interrupt may come when its first line is written and not yet counted.
        """
        if self._key:
            with suppress(LedgerError):  # then the next opening gives the key its name
                (drop_provisional_key if self._file.is_empty() else settle_key)(key_path_of(self.path))
        self._file.close()
        self._key = b""

    @property
    def path(self) -> Path:
        """The ledger file."""
        return self._file.path

    @property
    def head(self) -> str:
        """SHA-256 of the last line, hexadecimal; zeros for an empty ledger."""
        return self._head

    @property
    def is_new(self) -> bool:
        """Whether the ledger has no line yet, so that it says nothing about earlier spending."""
        return not self._seq

    def accounts_of(self, run: str) -> frozenset[str]:
        """Accounts of a run that was charged here; none where this ledger has no such run."""
        return self._state.runs[run].accounts if run in self._state.runs else frozenset()

    def accounts(self, hashes: Iterable[str], name: str | None = None) -> frozenset[str]:
        """Who pays for a run: a keyed commitment to every record file, and one to a name."""
        files = frozenset(commit_to_file(self._key, sha256) for sha256 in hashes)
        if not files:
            raise ValueError("a run is charged to at least one record file")
        return files if name is None else files | {commit_to_name(self._key, name)}

    def spent(self, accounts: Collection[str]) -> dict[Promise, Fraction]:
        """What accounts, and all that are linked with them, were charged, by the promise that each plan states."""
        return self._state.stated(accounts)

    def total(self, accounts: Collection[str], promise: Promise) -> Fraction | None:
        """The same in all, read under one promise; None where that is not finite."""
        return self._state.total(accounts, promise)

    def committed(self, run: str) -> dict[str, tuple[str, str]]:
        """Measured parts of a run: name of the measurement file and its SHA-256, by part."""
        charges = self._state.charges_of(run, ChargeState.COMMITTED)
        return {charge.part: (charge.file, charge.sha256) for charge in charges}

    def held(self, run: str) -> dict[str, Reservation]:
        """Open reservations of a run, by part."""
        return {
            charge.part: reservation_of(charge)
            for charge in self._state.charges_of(run, ChargeState.RESERVED)
        }

    def paid(self, run: str) -> Fraction:
        """Sum of the committed costs of a run, to be compared with its plan."""
        return compose(charge.loss.cost for charge in self._state.charges_of(run, ChargeState.COMMITTED))

    def has_paid(self, plan: ReleasePlan, run: str) -> bool:
        """Whether this ledger paid the whole cost of a plan as a run."""
        known = self._state.runs.get(run)
        return known is not None and known.plan == plan.digest() and self.paid(run) == plan.total

    def open_run(
        self,
        plan: ReleasePlan,
        *,
        accounts: frozenset[str],
        cap: Fraction | None = None,
        raise_cap: bool = False,
        spend_more: bool | frozenset[str] = False,
        run: str | None = None,
        notes: RunNotes = _NO_NOTES,
    ) -> RunRecord:
        """Start a run, or resume one, and check that all of it fits every cap."""
        request = OpeningRequest(plan, accounts, self._label, run, cap, raise_cap, spend_more, notes)
        opened = admitted(self.path, self._state, request)
        if opened.closed:
            self._run = opened
        else:
            self._start(opened, plan, notes)
        charged = self._state.total(accounts, opened.cap.promise)
        return RunRecord(opened.run, opened.cap, charged, closed=opened.closed)

    @proven("ledger.proof.md", digest="745b40c44cfcc49f")
    def reserve(self, plan: ReleasePlan, part: PartPlan, *, source: str = "system") -> Reservation:
        """Write down the cost of a part; on return it is on stable storage and noise may be drawn.

        Args:
            plan: the plan of the open run.
            part: one of its parts.
            source: ``system`` for noise that is drawn after this entry, ``carried`` for what another ledger paid for.

        Raises:
            OverspendError: a cap does not allow it; nothing is written.
            LedgerError: another plan, a part that is reserved or measured already, or the file cannot be written.
        """
        run = self._require_run()
        if plan.digest() != run.plan or part not in plan.parts:
            raise LedgerError(
                f"{self.path}: part {part.name} is not of the plan that the run was opened with"
            )
        if any(charge.part == part.name for charge in self._state.charges_of(run.run, *LIVE)):
            raise LedgerError(
                f"{self.path}: part {part.name} was reserved before; committed parts are never measured again"
            )
        loss = part_loss(plan, part_cost(part))
        require_within(self.path, self._state, run, [loss])
        body = {
            **promise_fields(plan, self._label, loss),
            "part": part.name,
            "cost": fraction_text(loss.cost),
            "queries": query_fields(part),
            **partition_fields(part),
            **factor_fields(part),
            "source": source,
        }
        after = self._state.stated(run.accounts)
        after[loss.promise] = after.get(loss.promise, Fraction(0)) + loss.cost
        return reservation_of(self._state.charges[self._append("reserve", run, body, after)])

    def carry(
        self,
        plan: ReleasePlan,
        run: str,
        files: Mapping[str, tuple[str, str]],
        *,
        accounts: frozenset[str],
        notes: RunNotes = _NO_NOTES,
    ) -> None:
        """Charge accounts with a finished run that another ledger paid for; nothing is measured."""
        if self.open_run(plan, accounts=accounts, spend_more=True, run=run, notes=notes).closed:
            return
        reserved, paid = self.held(run), self.committed(run)
        for part in plan.parts:
            if part.name not in paid:
                reservation = reserved.get(part.name) or self.reserve(plan, part, source="carried")
                self.commit(reservation, *files[part.name])
        self.close_run(plan)

    def commit(self, reservation: Reservation, file: str, sha256: str) -> None:
        """Record the measurement file of a reservation, after the file is on stable storage."""
        charge = self._state.charges.get(reservation.seq)
        if (
            charge is None
            or charge.state is not ChargeState.RESERVED
            or reservation_of(charge) != reservation
        ):
            raise LedgerError(f"{self.path}: part {reservation.part} has no open reservation to commit")
        if not file or not _SHA256.fullmatch(sha256):
            raise ValueError("commit needs the name of the measurement file and its SHA-256 in hexadecimal")
        self._settle(charge, "commit", {"file": file, "sha256": sha256})

    def settle_open(
        self,
        run: str,
        *,
        finished: Mapping[str, tuple[str, str]] | None = None,
        redo: Collection[str] = (),
    ) -> Settlement:
        """Settle the reservations that a killed run left open."""
        done: dict[str, list[str]] = {"commit": [], "void": [], "lost": []}
        reopened: dict[str, Reservation] = {}
        for charge in self._state.charges_of(run, ChargeState.RESERVED):
            if finished and charge.part in finished:
                file, sha256 = finished[charge.part]
                self.commit(reservation_of(charge), file, sha256)
                done["commit"].append(charge.part)
            elif charge.part in redo:
                reopened[charge.part] = reservation_of(charge)
            else:
                event = "lost" if self._strict else "void"
                self._settle(charge, event, {})
                done[event].append(charge.part)
        return Settlement(tuple(done["commit"]), reopened, tuple(done["void"]), tuple(done["lost"]))

    def close_run(self, plan: ReleasePlan) -> None:
        """Record that every part of the plan is committed."""
        run = self._require_run()
        if run.closed:
            return
        missing = [part.name for part in plan.parts if part.name not in self.committed(run.run)]
        if plan.digest() != run.plan or missing or self.held(run.run):
            raise LedgerError(
                f"{self.path}: the run cannot be closed; not committed: {', '.join(missing) or 'another plan'}"
            )
        if self.paid(run.run) != plan.total:
            raise LedgerError(f"{self.path}: the ledger's sum for the run is not the total of its plan")
        self._append("close", run, {}, self._state.stated(run.accounts))
        self._run = self._state.runs[run.run]

    def _start(self, opened: RunState, plan: ReleasePlan, notes: RunNotes) -> None:
        body = {
            **promise_fields(plan, self._label, opened.loss),
            **cap_fields(opened),
            "accounts": sorted(opened.accounts),
            "key": commit_to_key(self._key),
            "config": notes.config_digest,
            "operator": notes.operator,
            "folder": notes.folder,
            "program": f"censafe {__version__}",
        }
        self._append("open", opened, body, self._state.stated(opened.accounts))
        settle_key(key_path_of(self.path))
        self._run = self._state.runs[opened.run]

    def _append(
        self, event: str, run: RunState, body: Mapping[str, Any], after: Mapping[Promise, Fraction]
    ) -> int:
        """Check an entry, write it, and count it once the line is on stable storage."""
        seq = self._seq + 1
        common = {
            "seq": seq,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "event": event,
            "prev": self._head,
            "format": FORMAT,
            "run": run.run,
            "total_after": fractions_text({promise.text: total for promise, total in after.items()}),
        }
        line = encode({**body, **common})
        entry = decode(line, seq, self._head)
        outcome = self._state.check(entry)
        self._file.append(line)
        self._state.record(outcome)
        self._seq, self._head = seq, entry.digest
        return seq

    def _settle(self, charge: Charge, event: str, details: Mapping[str, str]) -> None:
        run = self._state.runs[charge.run]
        after = self._state.totals_after(run, PartOutcome(-1 if event == "void" else 0, charge))
        paid = {"part": charge.part, "reservation": charge.seq, "cost": fraction_text(charge.loss.cost)}
        self._append(event, run, {**paid, **details}, after)

    def _require_run(self) -> RunState:
        if self._run is None:
            raise LedgerError(f"{self.path}: open a run before reserving anything")
        return self._run


def _key_of(path: Path, stated: list[str]) -> bytes:
    """The key of a ledger, which its lines name; a new one, not under its own name yet, where there is no line."""
    place = key_path_of(path)
    if not stated:
        return new_key(place)
    settle_key(place)
    key = load_key(place)
    if set(stated) != {commit_to_key(key)}:
        raise LedgerError(
            f"{place} is not the key that {path.name} was written with, so that its files cannot be recognized; "
            "restore both from the same backup"
        )
    return key
