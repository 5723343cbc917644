"""Caps: what a dataset may spend in all, who set the limit, and the refusal to go beyond it."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

from censafe.errors import OverspendError
from censafe.model import Definition
from censafe.privacy.accountant import compose
from censafe.privacy.budget import exact
from censafe.privacy.ledger_state import LedgerState, RunState
from censafe.privacy.neighbours import implied_rho

__all__ = ["choose_cap", "require_within", "require_within_rho_cap"]


def choose_cap(
    state: LedgerState,
    definition: Definition,
    dataset: str,
    cap: Fraction | None,
    kept: RunState | None,
    needed: Fraction,
) -> tuple[Fraction, str]:
    """The cap of a run and where it comes from.

    Args:
        state: of the ledger.
        definition: under which the cap counts.
        dataset: keyed commitment.
        cap: named by the operator for this run, or None.
        kept: the run that is taken up again, when it keeps its cap.
        needed: what the dataset will have been charged after the run.

    Returns:
        The cap, and ``operator`` (named now), ``kept`` (named or computed when the run was first opened), ``standing``
        (named by the operator for an earlier run on the dataset) or ``default`` (exactly what is needed).

    Raises:
        OverspendError: a cap that is not positive.
        TypeError: a cap that is a float.
    """
    if cap is not None:
        limit = exact(cap, "cap")
        if limit <= 0:
            raise OverspendError(f"the cap must be positive, not {limit}")
        return limit, "operator"
    if kept:
        return kept.cap, "kept"
    standing = state.standing_caps.get((dataset, definition))
    return (standing, "standing") if standing is not None else (needed, "default")


def require_within(path: Path, needed: Fraction, cap: Fraction, definition: Definition) -> None:
    """Refuse a charge beyond the cap with OverspendError."""
    if needed > cap:
        raise OverspendError(
            f"{path}: with this run the dataset would have spent {definition.symbol} = {needed} "
            f"(about {float(needed):.6g}), more than its cap of {cap} (about {float(cap):.6g}); "
            "nothing was written or measured; lower the budgets, or raise --cap on purpose"
        )


def require_within_rho_cap(
    path: Path, state: LedgerState, dataset: str, definition: Definition, due: Collection[Fraction]
) -> None:
    """A cap on rho that the operator named before also binds pure-DP runs, through the rho that they imply."""
    standing = state.standing_caps.get((dataset, Definition.ZCDP))
    if definition is Definition.PURE and standing is not None:
        implied = compose(implied_rho(definition, cost) for cost in due)
        require_within(path, state.charged(dataset, Definition.ZCDP) + implied, standing, Definition.ZCDP)
