"""Reading a ledger without writing: verification, and rows for people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from censafe.errors import LedgerError
from censafe.model import Definition
from censafe.privacy.accountant import derive_totals
from censafe.privacy.ledger_entries import NO_HEAD, Contents, fraction_text, read_contents
from censafe.privacy.ledger_state import Charge, LedgerState, replay

__all__ = ["DatasetTotal", "LedgerReport", "LedgerRow", "audited_state", "verify"]


@dataclass(frozen=True)
class LedgerRow:
    """One reservation as ``ledger show`` prints it.

    Args:
        line: line of the reservation in the file.
        time: UTC, ISO 8601.
        label: name of the dataset as the operator gave it.
        dataset: keyed commitment to the input files.
        symbol: ``rho`` or ``epsilon``.
        cost: of this part.
        total: of the dataset under the same definition, right after the reservation.
        state: ``reserved``, ``committed``, ``void`` or ``lost``.
        file: the measurement file, when committed.
        sha256: of the measurement file, when committed.
    """

    line: int
    time: str
    label: str
    dataset: str
    product: str
    part: str
    symbol: str
    cost: Fraction
    total: Fraction
    state: str
    file: str
    sha256: str


@dataclass(frozen=True)
class DatasetTotal:
    """What one dataset has spent.

    Args:
        dataset: keyed commitment.
        labels: every label that it was given.
        rho: sum of the zCDP charges.
        epsilon: sum of the pure-DP charges.
        implied_rho: zCDP loss of everything together, pure charges as epsilon^2 / 2.
        promises: the distinct "neighbours unit" pairs of its charges; costs of different promises are summed as they
            stand, so the total holds under one of them only after conversion.
    """

    dataset: str
    labels: tuple[str, ...]
    rho: Fraction
    epsilon: Fraction
    implied_rho: Fraction
    promises: tuple[str, ...]


@dataclass(frozen=True)
class LedgerReport:
    """A verified ledger.

    Args:
        head: SHA-256 of the last line, to compare with manifests and certificates.
        torn_bytes: length of a torn last line, 0 when there is none.
    """

    path: Path
    entries: int
    head: str
    torn_bytes: int
    rows: tuple[LedgerRow, ...]
    totals: tuple[DatasetTotal, ...]


def verify(path: Path, *, head: str | None = None) -> LedgerReport:
    """Check the chain, the order of events and the totals of a ledger file, without changing it.

    Args:
        path: the ledger.
        head: a head printed in an earlier manifest or certificate; it must be one of the lines.

    Raises:
        LedgerError: with the line number of the first invalid line; or the head is in no line, so that lines that a
            published certificate relied on were removed or rewritten.
    """
    contents = read_contents(path)
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
        totals=tuple(_total(state, dataset) for dataset in _datasets(state)),
    )


def audited_state(contents: Contents, path: Path) -> LedgerState:
    """State of a ledger whose totals two accountants agree on.

    Raises:
        LedgerError: an invalid line, or the accountants differ.
    """
    state = replay(contents.entries, path)
    derived = derive_totals(entry.body for entry in contents.entries)
    for dataset in _datasets(state):
        for definition in Definition:
            expected = derived.get((dataset, definition), Fraction(0))
            actual = state.total(dataset, definition)
            if expected != actual:
                raise LedgerError(
                    f"{path}: two ways to add the ledger up differ: {fraction_text(expected)} and "
                    f"{fraction_text(actual)}; report this as a defect"
                )
    return state


def _datasets(state: LedgerState) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run.dataset for run in state.runs.values()))


def _row(charge: Charge) -> LedgerRow:
    return LedgerRow(
        line=charge.seq,
        time=charge.time,
        label=charge.label,
        dataset=charge.dataset,
        product=charge.product,
        part=charge.part,
        symbol=charge.definition.symbol,
        cost=charge.cost,
        total=charge.total_after,
        state=charge.state.value,
        file=charge.file,
        sha256=charge.sha256,
    )


def _total(state: LedgerState, dataset: str) -> DatasetTotal:
    live = [charge for charge in state.charges.values() if charge.dataset == dataset and charge.state.counts]
    labels = [run.label for run in state.runs.values() if run.dataset == dataset]
    return DatasetTotal(
        dataset=dataset,
        labels=tuple(dict.fromkeys(labels)),
        rho=state.total(dataset, Definition.ZCDP),
        epsilon=state.total(dataset, Definition.PURE),
        implied_rho=state.charged(dataset, Definition.ZCDP),
        promises=tuple(dict.fromkeys(f"{charge.neighbours.value} {charge.unit.value}" for charge in live)),
    )
