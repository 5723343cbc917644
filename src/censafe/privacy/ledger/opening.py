"""Whether a run may begin, or continue: what the operator must have said, and caps, what a dataset may spend in all."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from censafe.errors import LedgerError, OverspendError
from censafe.model import ReleasePlan
from censafe.privacy.ledger.records import RunNotes, cost_by_part, second_release_text
from censafe.privacy.ledger.state import Cap, ChargeState, LedgerState, RunState
from censafe.privacy.loss.accountant import compose
from censafe.privacy.loss.budget import exact
from censafe.privacy.loss.promises import Loss, Promise, common_promises, loss_under, part_loss


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
