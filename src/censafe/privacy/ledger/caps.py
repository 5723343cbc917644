"""Caps: what a dataset may spend in all, who set the limit, and the refusal to go beyond it."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

from censafe.errors import OverspendError
from censafe.privacy.ledger.state import Cap, LedgerState, RunState
from censafe.privacy.loss.accountant import compose
from censafe.privacy.loss.budget import exact
from censafe.privacy.loss.promises import Loss, Promise, common_promises, loss_under

__all__ = ["choose_cap", "named_cap", "require_within"]


def named_cap(state: LedgerState, accounts: frozenset[str], loss: Loss, amount: Fraction) -> Cap:
    """A cap that the operator names for a run.

    Args:
        state: of the ledger.
        accounts: of the run.
        loss: of the run's whole plan.
        amount: the limit, in the definition of the plan.

    Returns:
        The cap under the plan's own relation and unit; where losses on the dataset are not finite under these, under
        another relation or unit for which all of them are.

    Raises:
        OverspendError: not positive, or no such relation and unit exist.
        TypeError: a float.
    """
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
    """The cap of a run for which none is named: exactly what the dataset will have been charged after it.

    Args:
        path: the ledger.
        state: of the ledger.
        accounts: of the run.
        loss: of the run's whole plan.
        due: what the run has yet to spend, part by part.

    Raises:
        OverspendError: the losses cannot be converted to a common definition, relation and unit.
    """
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
