"""What the entries of a ledger add up to, and which entry may follow.

Events say what was done. A reservation is charged when it is written and stays charged (``reserved``, ``committed`` or
``lost``) unless a ``void`` entry says that nothing was measured under it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from censafe.model import Definition, Neighbours, ProtectedUnit
from censafe.privacy.ledger_entries import Entry, InvalidEntryError, broken
from censafe.privacy.neighbours import implied_rho
from censafe.privacy.proofs import proven

__all__ = ["Charge", "ChargeState", "LedgerState", "Outcome", "RunState", "replay"]

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
class RunState:
    """One run as its last ``open`` entry describes it."""

    run: str
    dataset: str
    label: str
    product: str
    plan: str
    folder: str
    definition: Definition
    neighbours: Neighbours
    unit: ProtectedUnit
    cap: Fraction
    cap_by_operator: bool
    closed: bool = False


@dataclass(frozen=True)
class Charge:
    """One reservation and what became of it."""

    seq: int
    time: str
    run: str
    dataset: str
    label: str
    product: str
    part: str
    definition: Definition
    neighbours: Neighbours
    unit: ProtectedUnit
    cost: Fraction
    total_after: Fraction
    state: ChargeState = ChargeState.RESERVED
    file: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Outcome:
    """What an entry changes: the total of its dataset, and one run or charge."""

    change: Fraction
    update: RunState | Charge


_Change = tuple[Fraction, RunState | Charge]


class LedgerState:
    """Running totals of a ledger, entry by entry.

    ``total`` adds rho to rho and epsilon to epsilon, never one to the other. ``charged`` is what a cap is compared with:
    under zCDP every pure-DP charge counts as rho = epsilon^2 / 2; under pure DP epsilons count alone.
    """

    def __init__(self) -> None:
        self.runs: dict[str, RunState] = {}
        self.charges: dict[int, Charge] = {}
        self.standing_caps: dict[tuple[str, Definition], Fraction] = {}
        self._totals: defaultdict[tuple[str, Definition], Fraction] = defaultdict(Fraction)
        self._implied: defaultdict[str, Fraction] = defaultdict(Fraction)

    def total(self, dataset: str, definition: Definition) -> Fraction:
        """Sum of the charges of a dataset made under one definition."""
        return self._totals[dataset, definition]

    def charged(self, dataset: str, definition: Definition) -> Fraction:
        """What a cap under ``definition`` is compared with."""
        return self._implied[dataset] if definition is Definition.ZCDP else self._totals[dataset, definition]

    def charges_of(self, run: str, *states: ChargeState) -> tuple[Charge, ...]:
        """Charges of a run in the given states, oldest first."""
        return tuple(
            charge for charge in self.charges.values() if charge.run == run and charge.state in states
        )

    @proven("ledger.proof.md", digest="63dea15c2bbcaea8")
    def check(self, entry: Entry) -> Outcome:
        """Check that ``entry`` may follow, without counting it.

        Raises:
            InvalidEntryError: the entry breaks a rule.
        """
        definition = _term(Definition, entry, "definition")
        change, update = _HANDLERS[entry.event](self, entry, definition)
        total = self._totals[entry.text("dataset"), definition] + change
        if entry.fraction("total_after") != total:
            raise InvalidEntryError("total_after is not the sum of the charges")
        return Outcome(change, update)

    @proven("ledger.proof.md", digest="4c8315316f1d72af")
    def record(self, outcome: Outcome) -> None:
        """Count what :meth:`check` returned; nothing else may have been recorded in between."""
        update, change = outcome.update, outcome.change
        self._totals[update.dataset, update.definition] += change
        implied = implied_rho(update.definition, abs(change))
        self._implied[update.dataset] += implied if change > 0 else -implied
        if isinstance(update, Charge):
            self.charges[update.seq] = update
            return
        self.runs[update.run] = update
        if update.cap_by_operator:
            self.standing_caps[update.dataset, update.definition] = update.cap

    def _open(self, entry: Entry, definition: Definition) -> _Change:
        run = RunState(
            run=entry.text("run"),
            dataset=entry.text("dataset"),
            label=entry.text("label"),
            product=entry.text("product"),
            plan=entry.text("plan"),
            folder=entry.text("folder"),
            definition=definition,
            neighbours=_term(Neighbours, entry, "neighbours"),
            unit=_term(ProtectedUnit, entry, "unit"),
            cap=entry.fraction("cap"),
            cap_by_operator=entry.text("cap_source") == "operator",
        )
        before = self.runs.get(run.run)
        if before and (before.closed or (before.plan, before.dataset) != (run.plan, run.dataset)):
            raise InvalidEntryError("opens a run that is closed or has another plan or dataset")
        return Fraction(0), run

    def _reserve(self, entry: Entry, definition: Definition) -> _Change:
        run = self._run_of(entry, definition)
        cost, cap = entry.fraction("cost"), entry.fraction("cap")
        if cost <= 0:
            raise InvalidEntryError("a cost that is not positive")
        if run.plan != entry.text("plan"):
            raise InvalidEntryError("a reservation under another plan than its run")
        part = entry.text("part")
        active = self.charges_of(run.run, ChargeState.RESERVED, ChargeState.COMMITTED)
        if any(charge.part == part for charge in active):
            raise InvalidEntryError(f"part {part} is reserved twice")
        if self.charged(run.dataset, definition) + cost > cap or cap > run.cap:
            raise InvalidEntryError("the reservation exceeds the cap")
        return cost, Charge(
            seq=entry.seq,
            time=entry.text("time"),
            run=run.run,
            dataset=run.dataset,
            label=entry.text("label"),
            product=run.product,
            part=part,
            definition=definition,
            neighbours=run.neighbours,
            unit=run.unit,
            cost=cost,
            total_after=entry.fraction("total_after"),
        )

    def _settle(self, entry: Entry, definition: Definition) -> _Change:
        run = self._run_of(entry, definition)
        charge = self.charges.get(entry.number("reservation"))
        if charge is None or charge.state is not ChargeState.RESERVED or charge.run != run.run:
            raise InvalidEntryError(f"{entry.event} without an open reservation of its run")
        if (charge.part, charge.cost) != (entry.text("part"), entry.fraction("cost")):
            raise InvalidEntryError(f"{entry.event} of another part or cost than its reservation")
        if entry.event == "commit":
            file, sha256 = entry.text("file"), entry.text("sha256")
            return Fraction(0), replace(charge, state=ChargeState.COMMITTED, file=file, sha256=sha256)
        state = ChargeState(entry.event)
        return (Fraction(0) if state.counts else -charge.cost), replace(charge, state=state)

    def _close(self, entry: Entry, definition: Definition) -> _Change:
        run = self._run_of(entry, definition)
        if self.charges_of(run.run, ChargeState.RESERVED):
            raise InvalidEntryError("closes a run with open reservations")
        return Fraction(0), replace(run, closed=True)

    def _run_of(self, entry: Entry, definition: Definition) -> RunState:
        run = self.runs.get(entry.text("run"))
        if run is None or run.closed:
            raise InvalidEntryError(f"{entry.event} outside an open run")
        if (run.dataset, run.definition) != (entry.text("dataset"), definition):
            raise InvalidEntryError(f"{entry.event} for another dataset or definition than its run")
        return run


_Handler = Callable[[LedgerState, Entry, Definition], _Change]
_HANDLERS: Mapping[str, _Handler] = {
    "open": LedgerState._open,
    "reserve": LedgerState._reserve,
    "commit": LedgerState._settle,
    "void": LedgerState._settle,
    "lost": LedgerState._settle,
    "close": LedgerState._close,
}


def replay(entries: Iterable[Entry], path: Path) -> LedgerState:
    """State after all entries.

    Raises:
        LedgerError: with the line number of the first entry that breaks a rule.
    """
    state = LedgerState()
    for entry in entries:
        try:
            state.record(state.check(entry))
        except InvalidEntryError as error:
            raise broken(path, entry.seq, error) from error
    return state


def _term(kind: type[_Term], entry: Entry, key: str) -> _Term:
    try:
        return kind(entry.text(key))
    except ValueError as error:
        raise InvalidEntryError(
            f"{key} is not one of {', '.join(str(term.value) for term in kind)}"
        ) from error
