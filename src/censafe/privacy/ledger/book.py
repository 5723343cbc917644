"""The ledger: every budget is written down, on stable storage, before the noise that it pays for exists.

One file records all runs on all records of a place. Every record file is recognized by a keyed commitment to it, whatever
it is called and whatever it is read with; files that were read together are charged together from then on. Opening
verifies the whole file; everything that the ledger refuses, it refuses before writing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
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
from censafe.privacy.ledger.commitments import (
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
from censafe.privacy.ledger.report import audited_state
from censafe.privacy.ledger.state import (
    Cap,
    Charge,
    ChargeState,
    LedgerState,
    PartOutcome,
    Reservation,
    RunState,
)
from censafe.privacy.loss.accountant import compose, part_cost
from censafe.privacy.loss.budget import exact
from censafe.privacy.loss.promises import (
    Loss,
    Promise,
    common_promises,
    loss_under,
    part_loss,
    promise_of,
)
from censafe.version import __version__

_RUN = re.compile(r"[0-9a-f]{8,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class RunNotes:
    """What is written down of a run for people."""

    operator: str = ""
    config_digest: str = ""
    folder: str = ""


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

    def committed(self, run: str) -> dict[str, tuple[str, str]]:
        """Measured parts of a run: name of the measurement file and its SHA-256, by part."""
        charges = self._state.charges_of(run, ChargeState.COMMITTED)
        return {charge.part: (charge.file, charge.sha256) for charge in charges}

    def reservations(self, run: str) -> dict[str, Reservation]:
        """Open reservations of a run, by part."""
        charges = self._state.charges_of(run, ChargeState.RESERVED)
        return {charge.part: charge.reservation for charge in charges}

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
    ) -> RunState:
        """Start a run, or resume one, and check that all of it fits every cap.

        Args:
            run: identifier of a run to resume, or of a new one; None for a random one.
            spend_more: the operator knows that accounts were charged before; or the runs of which the operator knows.
        """
        costs = {part.name: part_cost(part) for part in plan.parts}
        if len(costs) != len(plan.parts) or not costs:
            raise ValueError("a plan needs at least one part, and parts with distinct names")
        if compose(costs.values()) != plan.total:
            raise ValueError("the plan's total is not the sum of its parts")
        name = secrets.token_hex(8) if run is None else run
        if not _RUN.fullmatch(name):
            raise ValueError("a run is named by 8 to 64 hexadecimal digits")
        known = self._state.runs.get(name)
        if known and (known.plan, known.accounts) != (plan.digest(), accounts):
            same_plan = known.plan == plan.digest()
            raise LedgerError(
                f"{self.path}: run {name} was opened with another {'input or `dataset`' if same_plan else 'plan'}; "
                "restore what it was opened with, or start a run in a new folder"
            )

        if known and known.closed:
            self._run = known
            return known
        if spend_more is not True:
            admitted = (spend_more or frozenset()) | (known.others if known else frozenset())
            self._refuse_second_release(plan, accounts, name, admitted)
        live = self._state.live_parts(name)
        due = [part_loss(plan, cost) for part, cost in costs.items() if part not in live]
        loss = part_loss(plan, plan.total)
        if cap is not None:
            most, source = self._named_cap(accounts, loss, cap), "raised" if raise_cap else "operator"
        elif raise_cap:
            raise ValueError("raise_cap needs a cap that takes the place of the earlier ones")
        elif known and spend_more is not True:
            most, source = known.cap, "kept"
        else:
            most, source = self._default_cap(accounts, loss, due), "default"
        opened = RunState(
            run=name,
            accounts=accounts,
            label=self._label,
            product=plan.product,
            plan=plan.digest(),
            folder=notes.folder,
            loss=loss,
            cap=most,
            cap_source=source,
            others=self._state.links.reach(accounts)[0] - {name},
        )
        self._require_within(opened, due)
        body = {
            **self._promise_fields(plan, loss),
            "cap": fraction_text(most.amount),
            "cap_promise": most.promise.text,
            "cap_source": source,
            "accounts": sorted(accounts),
            "key": commit_to_key(self._key),
            "config": notes.config_digest,
            "operator": notes.operator,
            "folder": notes.folder,
            "program": f"censafe {__version__}",
        }
        self._append("open", opened, body, self._state.stated(accounts))
        settle_key(key_path_of(self.path))
        self._run = self._state.runs[name]
        return self._run

    @proven("ledger.proof.md", digest="eaeb8d077c192d52")
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
        if part.name in self._state.live_parts(run.run):
            raise LedgerError(
                f"{self.path}: part {part.name} was reserved before; committed parts are never measured again"
            )
        loss = part_loss(plan, part_cost(part))
        self._require_within(run, [loss])
        body = {
            **self._promise_fields(plan, loss),
            "part": part.name,
            "cost": fraction_text(loss.cost),
            "queries": [
                {
                    "table": query.table,
                    "level": query.level,
                    "mechanism": query.law.kind,
                    "parameter": fraction_text(query.law.parameter),
                    "cost": fraction_text(query.cost),
                }
                for query in part.queries
            ],
            "source": source,
        }
        if part.disjoint:
            body["disjoint"] = [list(group) for group in part.disjoint]
        if part.factor != 1:
            body["factor"] = fraction_text(part.factor)
        after = self._state.stated(run.accounts)
        after[loss.promise] = after.get(loss.promise, Fraction(0)) + loss.cost
        return self._state.charges[self._append("reserve", run, body, after)].reservation

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
        reserved, paid = self.reservations(run), self.committed(run)
        for part in plan.parts:
            if part.name not in paid:
                reservation = reserved.get(part.name) or self.reserve(plan, part, source="carried")
                self.commit(reservation, *files[part.name])
        self.close_run(plan)

    def commit(self, reservation: Reservation, file: str, sha256: str) -> None:
        """Record the measurement file of a reservation, after the file is on stable storage."""
        charge = self._state.charges.get(reservation.seq)
        if charge is None or charge.state is not ChargeState.RESERVED or charge.reservation != reservation:
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
    ) -> dict[str, Reservation]:
        """Settle the reservations that a killed run left open; those that are redone come back, by part.

        Args:
            finished: measurement file and its SHA-256 of parts that are complete.
            redo: parts whose same addresses may be redrawn under their reservation, since the key is still there.
        """
        reopened: dict[str, Reservation] = {}
        for charge in self._state.charges_of(run, ChargeState.RESERVED):
            if finished and charge.part in finished:
                self.commit(charge.reservation, *finished[charge.part])
            elif charge.part in redo:
                reopened[charge.part] = charge.reservation
            else:
                self._settle(charge, "lost" if self._strict else "void", {})
        return reopened

    def close_run(self, plan: ReleasePlan) -> None:
        """Record that every part of the plan is committed."""
        run = self._require_run()
        if run.closed:
            return
        missing = [part.name for part in plan.parts if part.name not in self.committed(run.run)]
        if plan.digest() != run.plan or missing or self.reservations(run.run):
            raise LedgerError(
                f"{self.path}: the run cannot be closed; not committed: {', '.join(missing) or 'another plan'}"
            )
        if self.paid(run.run) != plan.total:
            raise LedgerError(f"{self.path}: the ledger's sum for the run is not the total of its plan")
        self._append("close", run, {}, self._state.stated(run.accounts))
        self._run = self._state.runs[run.run]

    def _refuse_second_release(
        self, plan: ReleasePlan, accounts: frozenset[str], name: str, known: frozenset[str]
    ) -> None:
        """Accounts that other runs were charged to need the operator's word, once for every such run."""
        runs = [run for run in self._state.runs_of(accounts) if run.run != name]
        if {run.run for run in runs} <= known:
            return
        folders = {
            run.folder for run in runs if run.folder and self._state.charges_of(run.run, ChargeState.RESERVED)
        }
        hint = f"; or finish the unfinished run in {', '.join(sorted(folders))}" if folders else ""
        labels = ", ".join(sorted({run.label for run in runs}))
        raise OverspendError(
            f"{self.path}: files of this run, or files that were read together with them ({labels}), have already "
            f"spent {self._listed(accounts, ' and ')}; this run would add {promise_of(plan).amount(plan.total)}. "
            f"To spend more on purpose, give `spend_more`{hint}"
        )

    def _named_cap(self, accounts: frozenset[str], loss: Loss, amount: Fraction) -> Cap:
        """A cap that the operator names for a run."""
        limit = exact(amount, "cap")
        if limit <= 0:
            raise OverspendError(f"the cap must be positive, not {limit}")
        for promise in self._common(accounts, loss):
            if promise.definition == loss.promise.definition:
                return Cap(limit, promise, accounts)
        raise OverspendError(
            f"a cap on {loss.promise.symbol} cannot be kept: these records were charged losses that bound no "
            f"{loss.promise.symbol} of {loss.promise.relation} ({self._listed(accounts)}); leave `cap` out, or plan this "
            "release under the definition of privacy of the earlier ones"
        )

    def _default_cap(self, accounts: frozenset[str], loss: Loss, due: Collection[Loss]) -> Cap:
        """The cap of a run for which none is named: exactly what the dataset will have been charged after it."""
        promise = next(self._common(accounts, loss), None)
        total = None if promise is None else self._state.total(accounts, promise)
        if promise is None or total is None:
            raise OverspendError(
                f"{self.path}: these records were charged losses that cannot be added to this one, because no relation and unit is "
                f"stated for both ({self._listed(accounts)}, and now {loss.promise.relation}); nothing was written or measured"
            )
        amounts = (loss_under(charged, promise) for charged in due)
        return Cap(compose([total, *(amount for amount in amounts if amount is not None)]), promise, accounts)

    def _common(self, accounts: frozenset[str], loss: Loss) -> Iterator[Promise]:
        return common_promises(loss, [run.loss for run in self._state.runs_of(accounts)])

    def _listed(self, accounts: frozenset[str], between: str = ", ") -> str:
        return between.join(promise.amount(total) for promise, total in self.spent(accounts).items())

    def _require_within(self, run: RunState, due: Collection[Loss]) -> None:
        """Refuse losses beyond a cap of the run or its dataset with OverspendError."""
        cap = self._state.exceeded(run, due)
        if cap is None:
            return
        named, ways = "", "lower the budgets, or raise `cap` on purpose"
        if cap is not run.cap:
            named = ", which was named for these records before"
            ways = "lower the budgets, or lift the cap on purpose with `cap` and `raise_cap`"
        amounts = [
            self._state.total(run.accounts, cap.promise),
            *(loss_under(loss, cap.promise) for loss in due),
        ]
        finite = [amount for amount in amounts if amount is not None]
        if len(finite) < len(amounts):
            what = f"losses are added that bound no {cap.promise.symbol} of {cap.promise.relation}"
        else:
            what = f"with this run the dataset would have spent {cap.promise.amount(compose(finite))}"
        raise OverspendError(
            f"{self.path}: the cap of {cap.promise.amount(cap.amount)}{named}: {what}; "
            f"nothing was written or measured; {ways}"
        )

    def _promise_fields(self, plan: ReleasePlan, loss: Loss) -> dict[str, Any]:
        """What is promised, in the words of the plan."""
        return {
            "label": self._label,
            "product": plan.product,
            "plan": plan.digest(),
            "definition": plan.definition.value,
            "neighbors": plan.neighbors.value,
            "unit": plan.unit.value,
            "losses": fractions_text(loss.by_relation),
        }

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
