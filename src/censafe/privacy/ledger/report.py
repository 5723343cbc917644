"""Reading a ledger without writing: verification, and rows for people."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from censafe.errors import LedgerError
from censafe.model import Definition, ProtectedUnit, ReleasePlan
from censafe.privacy.ledger.commitments import fsync_folder, key_path_of, require_no_key
from censafe.privacy.ledger.entries import NO_HEAD, Contents, InvalidEntryError, broken, read_contents
from censafe.privacy.ledger.state import Cap, Charge, ChargeState, LedgerState
from censafe.privacy.loss.accountant import compose, derive_totals
from censafe.privacy.loss.promises import PROMISES, Promise


@dataclass(frozen=True)
class LedgerRow:
    """One reservation as ``ledger show`` prints it.

    Args:
        relation: the change that the part hides, for example "add/remove one person"; of a plan for records of several kinds, each
            part names its own, and their charges add up under the plan's unit of protection.
        total: of the dataset right after the reservation, over charges of the same definition, relation and unit.
        state: ``reserved``, ``committed``, ``carried`` (committed, and first paid for by another ledger), ``void`` or ``lost``.
    """

    line: int
    time: str
    label: str
    product: str
    part: str
    symbol: str
    relation: str
    cost: Fraction
    total: Fraction
    state: str
    file: str
    sha256: str


@dataclass(frozen=True)
class DatasetTotal:
    """What files that were read together, directly or through others, have been charged.

    Args:
        stated: sums of the charges by the promise that the plans state; not to be added to each other.
        combined: what holds for everything together, by promise; None where nothing finite follows.
    """

    accounts: tuple[str, ...]
    labels: tuple[str, ...]
    products: tuple[str, ...]
    stated: Mapping[Promise, Fraction]
    combined: Mapping[Promise, Fraction | None]
    caps: tuple[Cap, ...]

    def statement(self) -> str:
        """One combined statement, for a person's record wherever there is one.

        Rho where some charges are zCDP, epsilon where none is.
        """
        finite = {promise: total for promise, total in self.combined.items() if total is not None}
        pure = [promise for promise in finite if promise.definition == Definition.PURE.value]
        chosen = pure or list(finite)
        persons = [promise for promise in chosen if promise.unit == ProtectedUnit.PERSON.value]
        if not chosen:
            return "together: no finite loss under any one relation and unit"
        return "together: " + " and ".join(stated.amount(finite[stated]) for stated in persons or chosen)


@dataclass(frozen=True)
class LedgerReport:
    """A verified ledger."""

    path: Path
    entries: int
    head: str
    torn_bytes: int
    rows: tuple[LedgerRow, ...]
    totals: tuple[DatasetTotal, ...]


def verify(path: Path, *, head: str | None = None) -> LedgerReport:
    """Check the chain, the order of events and the totals of a ledger file, without changing it."""
    contents = read_contents(path)
    if not contents.entries:
        require_no_key(key_path_of(path))
    state = audited_state(contents, path)
    if head is not None and head not in {NO_HEAD, *(entry.digest for entry in contents.entries)}:
        raise LedgerError(
            f"{path}: no line has the hash {head}; lines were removed or rewritten after it was printed"
        )
    return LedgerReport(
        path=path,
        entries=len(contents.entries),
        head=contents.head,
        torn_bytes=len(contents.torn),
        rows=tuple(_row(charge) for charge in state.charges.values()),
        totals=tuple(_total(state, runs, accounts) for runs, accounts in state.links.datasets()),
    )


def new_ledger(path: Path) -> None:
    """Make a ledger without lines; its key follows with the first run.

    Raises:
        LedgerError: the file is there already, the key of a ledger is, or the file cannot be written.
    """
    require_no_key(key_path_of(path))
    try:
        path.open("xb").close()
        fsync_folder(path.parent)
    except FileExistsError:
        raise LedgerError(
            f"{path} already exists and will not be replaced; runs can use it as it is"
        ) from None
    except OSError as error:
        raise LedgerError(f"{path}: the ledger cannot be made: {error.strerror}") from error


def runs_charged_with(path: Path, plan: ReleasePlan, run: str, head: str) -> int:
    """Verify that a ledger paid for a finished run, and count the other runs that it charged to the same records."""
    verify(path, head=head)
    state = audited_state(read_contents(path), path)
    known = state.runs.get(run)
    paid = compose(charge.loss.cost for charge in state.charges_of(run, ChargeState.COMMITTED))
    if known is None or known.plan != plan.digest() or paid != plan.total:
        raise LedgerError(
            f"{path} did not pay for run {run} of {plan.product}; name the ledger that its certificate was printed with"
        )
    return len({charged.run for charged in state.runs_of(known.accounts)} - {run})


def audited_state(contents: Contents, path: Path) -> LedgerState:
    """State of a ledger whose totals two accountants agree on."""
    state = LedgerState()
    for entry in contents.entries:
        try:
            state.record(state.check(entry))
        except InvalidEntryError as error:
            raise broken(path, entry.seq, error) from error
    derived = derive_totals(entry.body for entry in contents.entries)
    for _, accounts in state.links.datasets():
        for account, promise in itertools.product(accounts, PROMISES):
            expected, actual = derived.pop((account, promise), None), state.total(accounts, promise)
            if expected != actual:
                raise LedgerError(
                    f"{path}: two ways to add the ledger up differ under {promise.text}: {expected} and {actual}; "
                    "report this as a defect"
                )
    if derived:
        raise LedgerError(f"{path}: two ways to link the files of the ledger differ; report this as a defect")
    return state


_CARRIED = ("carried", ChargeState.COMMITTED)


def _row(charge: Charge) -> LedgerRow:
    return LedgerRow(
        line=charge.seq,
        time=charge.time,
        label=charge.label,
        product=charge.product,
        part=charge.part,
        symbol=charge.loss.promise.symbol,
        relation=charge.loss.promise.relation_of(charge.record or charge.loss.promise.unit),
        cost=charge.loss.cost,
        total=charge.total_after,
        state="carried" if (charge.source, charge.state) == _CARRIED else charge.state.value,
        file=charge.file,
        sha256=charge.sha256,
    )


def _total(state: LedgerState, runs: frozenset[str], accounts: frozenset[str]) -> DatasetTotal:
    opened = [run for run in state.runs.values() if run.run in runs]
    return DatasetTotal(
        accounts=tuple(sorted(accounts)),
        labels=tuple(dict.fromkeys(run.label for run in opened)),
        products=tuple(dict.fromkeys(run.product for run in opened)),
        stated=state.stated(accounts),
        combined={promise: state.total(accounts, promise) for promise in PROMISES},
        caps=state.caps_of(accounts),
    )
