"""What the entries of a ledger add up to, and which entry may follow.

Events say what was done. A reservation is charged when it is written and stays charged (``reserved``, ``committed`` or
``lost``) unless a ``void`` entry says that nothing was measured under it. A charge counts for every account of its run
and for every account that is linked with one of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import TypeVar

from censafe.model import Definition, Neighbors, ProtectedUnit
from censafe.model.proven import proven
from censafe.privacy.ledger.entries import Entry, InvalidEntryError
from censafe.privacy.loss.promises import PROMISES, Loss, Promise, loss_under


class Links:
    """Accounts of the runs that hold at least one charge that counts.

    An account is a keyed commitment to a record file, or to a name that the operator gave to a dataset.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, frozenset[str]] = {}
        self._runs: defaultdict[str, set[str]] = defaultdict(set)
        self._links: dict[frozenset[str], tuple[frozenset[str], frozenset[str]]] = {}

    def join(self, run: str, accounts: Collection[str]) -> None:
        """A run was charged: its accounts are linked."""
        if run not in self._accounts:
            self._accounts[run] = frozenset(accounts)
            for account in accounts:
                self._runs[account].add(run)
            self._links.clear()

    def leave(self, run: str) -> None:
        """Nothing of a run counts any more: what it alone linked comes apart."""
        for account in self._accounts.pop(run, frozenset()):
            self._runs[account].discard(run)
        self._links.clear()

    @proven("ledger.proof.md", digest="de9dc53041e8a3bf")
    def reach(self, accounts: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Charged runs, and accounts, that are linked with some of the given accounts, these included.

        The smallest sets with: the given accounts are in; a run with an account that is in, is in; so are all its accounts.
        """
        start = frozenset(accounts)
        if start not in self._links:
            reached, runs, waiting = set(start), set[str](), list(start)
            while waiting:
                for run in self._runs.get(waiting.pop(), set()) - runs:
                    runs.add(run)
                    waiting.extend(self._accounts[run] - reached)
                    reached |= self._accounts[run]
            self._links[start] = frozenset(runs), frozenset(reached)
        return self._links[start]

    def datasets(self) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        """Runs and accounts of every dataset that was charged, in the order of their first charges."""
        return tuple(dict.fromkeys(self.reach(accounts) for accounts in self._accounts.values()))


_Term = TypeVar("_Term", bound=Enum)


class ChargeState(Enum):
    """What became of a reservation."""

    RESERVED = "reserved"
    COMMITTED = "committed"
    VOID = "void"
    LOST = "lost"

    @property
    def counts(self) -> bool:
        """Whether the reservation is part of the totals."""
        return self is not ChargeState.VOID


@dataclass(frozen=True)
class Cap:
    """The most that some accounts, and all that are linked with them, may be charged in all."""

    amount: Fraction
    promise: Promise
    accounts: frozenset[str]


@dataclass(frozen=True)
class RunState:
    """One run as its last ``open`` entry describes it.

    Args:
        accounts: commitments to its record files, and to the name of an account if one was given.
        cap_source: ``operator`` or ``raised`` (named now), ``kept`` (of an earlier start), ``default`` (what was needed).
    """

    run: str
    accounts: frozenset[str]
    label: str
    product: str
    plan: str
    folder: str
    loss: Loss
    cap: Cap
    cap_source: str
    others: frozenset[str] = frozenset()
    closed: bool = False


@dataclass(frozen=True)
class Reservation:
    """Budget that is written down and not yet committed.

    Args:
        total_after: of the dataset, over charges of the same definition, relation and unit.
    """

    seq: int
    run: str
    part: str
    cost: Fraction
    total_after: Fraction


@dataclass(frozen=True)
class Charge:
    """One reservation and what became of it; ``record`` says whose record it is for, empty for that of the promise, ``source`` who paid first."""

    seq: int
    time: str
    run: str
    label: str
    product: str
    part: str
    loss: Loss
    total_after: Fraction
    state: ChargeState = ChargeState.RESERVED
    file: str = ""
    sha256: str = ""
    record: str = ""
    source: str = "system"

    @property
    def reservation(self) -> Reservation:
        """The reservation that the charge came from."""
        return Reservation(self.seq, self.run, self.part, self.loss.cost, self.total_after)


@dataclass(frozen=True)
class PartOutcome:
    """What an entry changes: how often a charge is added (1, 0 or -1), and one run or charge."""

    sign: int
    update: RunState | Charge


class LedgerState:
    """Running totals of a ledger, entry by entry.

    A dataset is a set of accounts; :class:`~censafe.privacy.ledger.state.Links` says which runs it answers for.
    """

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self.charges: dict[int, Charge] = {}
        self.links = Links()
        self._caps: list[Cap] = []
        self._sums: dict[str, dict[Promise, Fraction]] = {}
        self._live: dict[str, int] = {}

    def runs_of(self, accounts: Collection[str]) -> tuple[RunState, ...]:
        """Charged runs that a dataset answers for."""
        return tuple(self.runs[run] for run in sorted(self.links.reach(accounts)[0]))

    def total(self, accounts: Collection[str], promise: Promise) -> Fraction | None:
        """What a dataset has been charged in all, read under one promise; None where that is not finite."""
        sums = [self._sums[run].get(promise) for run in self.links.reach(accounts)[0]]
        return (
            sum((amount for amount in sums if amount is not None), Fraction(0)) if None not in sums else None
        )

    def stated(self, accounts: Collection[str]) -> dict[Promise, Fraction]:
        """Charges of a dataset by the promise that their own plans state; they are not to be added to each other."""
        totals: dict[Promise, Fraction] = {}
        for run in self.runs_of(accounts):
            promise = run.loss.promise
            totals[promise] = totals.get(promise, Fraction(0)) + self._sums[run.run][promise]
        return {promise: totals[promise] for promise in sorted(totals)}

    def caps_of(self, accounts: Collection[str]) -> tuple[Cap, ...]:
        """Caps that operators named for a dataset."""
        reached = self.links.reach(accounts)[1]
        return tuple(cap for cap in self._caps if cap.accounts & reached)

    def charges_of(self, run: str, *states: ChargeState) -> tuple[Charge, ...]:
        """Charges of a run in the given states, oldest first."""
        return tuple(
            charge for charge in self.charges.values() if charge.run == run and charge.state in states
        )

    def live_parts(self, run: str) -> set[str]:
        """Parts of a run that are reserved or committed, and so not measured again."""
        return {charge.part for charge in self.charges_of(run, ChargeState.RESERVED, ChargeState.COMMITTED)}

    @proven("ledger.proof.md", digest="b3888b981f40bf3a")
    def exceeded(self, run: RunState, due: Collection[Loss]) -> Cap | None:
        """The first cap that further losses of a run would exceed: its own, or one named for its dataset.

        A cap under whose promise the losses are not finite is exceeded. A raised cap has replaced those named before.
        """
        named = () if run.cap_source == "raised" else self.caps_of(run.accounts)
        for cap in (run.cap, *named):
            amounts = [
                self.total(run.accounts, cap.promise),
                *(loss_under(loss, cap.promise) for loss in due),
            ]
            if None in amounts or sum(filter(None, amounts), Fraction(0)) > cap.amount:
                return cap
        return None

    @proven("ledger.proof.md", digest="8882e162416893d6")
    def check(self, entry: Entry) -> PartOutcome:
        """Check that ``entry`` may follow, without counting it.

        Raises:
            InvalidEntryError: the entry breaks a rule.
        """
        outcome = _HANDLERS[entry.event](self, entry)
        run = outcome.update if isinstance(outcome.update, RunState) else self.runs[outcome.update.run]
        totals = self.totals_after(run, outcome)
        if entry.fractions("total_after") != {promise.text: total for promise, total in totals.items()}:
            raise InvalidEntryError("total_after is not the sum of the charges")
        return outcome

    def totals_after(self, run: RunState, outcome: PartOutcome) -> dict[Promise, Fraction]:
        """What the dataset of a run will have been charged, as stated, when an outcome is recorded."""
        totals = self.stated(run.accounts)
        if outcome.sign and isinstance(outcome.update, Charge):
            promise = run.loss.promise
            totals[promise] = totals.get(promise, Fraction(0)) + outcome.sign * outcome.update.loss.cost
        return {promise: totals[promise] for promise in sorted(totals) if totals[promise]}

    @proven("ledger.proof.md", digest="c0dc31044634d0d6")
    def record(self, outcome: PartOutcome) -> None:
        """Count what :meth:`check` returned; nothing else may have been recorded in between."""
        update = outcome.update
        if isinstance(update, RunState):
            self._record_run(update)
            return
        self.charges[update.seq] = update
        if not outcome.sign:
            return
        sums = self._sums.setdefault(update.run, {})
        for promise in PROMISES:
            amount = loss_under(update.loss, promise)
            if amount is not None:
                sums[promise] = sums.get(promise, Fraction(0)) + outcome.sign * amount
        self._live[update.run] = self._live.get(update.run, 0) + outcome.sign
        if self._live[update.run]:
            self.links.join(update.run, self.runs[update.run].accounts)
        else:
            self.links.leave(update.run)

    def _record_run(self, run: RunState) -> None:
        if run.cap_source == "raised" and not run.closed:
            bound = self.caps_of(run.accounts)
            self._caps = [cap for cap in self._caps if cap not in bound]
        if run.cap_source in ("operator", "raised") and run.cap not in self._caps and not run.closed:
            self._caps.append(run.cap)
        self.runs[run.run] = run

    def _open(self, entry: Entry) -> PartOutcome:
        accounts = frozenset(entry.texts("accounts"))
        promise = entry.text("cap_promise")
        known = next((candidate for candidate in PROMISES if candidate.text == promise), None)
        if known is None:
            raise InvalidEntryError("cap_promise is not a promise")
        run = RunState(
            run=entry.text("run"),
            accounts=accounts,
            label=entry.text("label"),
            product=entry.text("product"),
            plan=entry.text("plan"),
            folder=entry.text("folder"),
            loss=_loss(entry),
            cap=Cap(entry.fraction("cap"), known, accounts),
            cap_source=entry.text("cap_source"),
            others=self.links.reach(accounts)[0] - {entry.text("run")},
        )
        before = self.runs.get(run.run)
        if before and (before.closed or (before.plan, before.accounts) != (run.plan, run.accounts)):
            raise InvalidEntryError("opens a run that is closed or has another plan or other accounts")
        if run.cap_source not in ("operator", "raised", "kept", "default"):
            raise InvalidEntryError("cap_source is not one of operator, raised, kept, default")
        return PartOutcome(0, run)

    def _reserve(self, entry: Entry) -> PartOutcome:
        run = self._run_of(entry)
        loss, cost = _loss(entry), entry.fraction("cost")
        if cost <= 0 or loss.cost != cost:
            raise InvalidEntryError("a cost that is not positive, or not the loss of the same entry")
        if run.plan != entry.text("plan"):
            raise InvalidEntryError("a reservation under another plan than its run")
        share = cost / run.loss.cost
        of_run = {relation: total * share for relation, total in run.loss.by_relation.items()}
        if loss.promise != run.loss.promise or loss.by_relation != of_run:
            raise InvalidEntryError("losses that are not those of the plan in the share of the cost")
        part = entry.text("part")
        if part in self.live_parts(run.run):
            raise InvalidEntryError(f"part {part} is reserved twice")
        if self.exceeded(run, [loss]):
            raise InvalidEntryError("the reservation exceeds a cap")
        charge = Charge(
            seq=entry.seq,
            time=entry.text("time"),
            run=run.run,
            label=entry.text("label"),
            product=run.product,
            part=part,
            loss=loss,
            total_after=self.stated(run.accounts).get(loss.promise, Fraction(0)) + cost,
            record=entry.text("record") if "record" in entry.body else "",
            source=entry.text("source"),
        )
        return PartOutcome(1, charge)

    def _settle(self, entry: Entry) -> PartOutcome:
        run = self._run_of(entry)
        charge = self.charges.get(entry.number("reservation"))
        if charge is None or charge.state is not ChargeState.RESERVED or charge.run != run.run:
            raise InvalidEntryError(f"{entry.event} without an open reservation of its run")
        if (charge.part, charge.loss.cost) != (entry.text("part"), entry.fraction("cost")):
            raise InvalidEntryError(f"{entry.event} of another part or cost than its reservation")
        if entry.event == "commit":
            file, sha256 = entry.text("file"), entry.text("sha256")
            return PartOutcome(0, replace(charge, state=ChargeState.COMMITTED, file=file, sha256=sha256))
        state = ChargeState(entry.event)
        return PartOutcome(0 if state.counts else -1, replace(charge, state=state))

    def _close(self, entry: Entry) -> PartOutcome:
        run = self._run_of(entry)
        if self.charges_of(run.run, ChargeState.RESERVED):
            raise InvalidEntryError("closes a run with open reservations")
        return PartOutcome(0, replace(run, closed=True))

    def _run_of(self, entry: Entry) -> RunState:
        run = self.runs.get(entry.text("run"))
        if run is None or run.closed:
            raise InvalidEntryError(f"{entry.event} outside an open run")
        return run


_Handler = Callable[[LedgerState, Entry], PartOutcome]
_HANDLERS: Mapping[str, _Handler] = {
    "open": LedgerState._open,
    "reserve": LedgerState._reserve,
    "commit": LedgerState._settle,
    "void": LedgerState._settle,
    "lost": LedgerState._settle,
    "close": LedgerState._close,
}


def _loss(entry: Entry) -> Loss:
    """The losses of an entry, under a promise of known terms."""
    terms = (
        _term(Definition, entry, "definition"),
        _term(Neighbors, entry, "neighbors"),
        _term(ProtectedUnit, entry, "unit"),
    )
    losses = entry.fractions("losses")
    relations = {relation.value for relation in Neighbors}
    if not losses.keys() <= relations or terms[1].value not in losses or min(losses.values()) <= 0:
        raise InvalidEntryError("losses are not positive losses by relation, with the plan's own")
    return Loss(Promise(*(term.value for term in terms)), losses)


def _term(kind: type[_Term], entry: Entry, key: str) -> _Term:
    try:
        return kind(entry.text(key))
    except ValueError as error:
        raise InvalidEntryError(
            f"{key} is not one of {', '.join(str(term.value) for term in kind)}"
        ) from error
