"""How a loss under one promise reads under another: pure DP as zCDP, one change as several."""

from __future__ import annotations

from fractions import Fraction

from censafe.model import Definition
from censafe.privacy.budget import exact
from censafe.privacy.proofs import proven

__all__ = ["group_loss", "implied_rho"]


@proven("composition.proof.md", digest="ff41fbf7634fd73a")
def implied_rho(definition: Definition, cost: Fraction) -> Fraction:
    """The zCDP loss of a mechanism with the given loss: rho itself, or epsilon^2 / 2 for epsilon-DP.

    Source: Bun & Steinke (2016), Proposition 1.4. The other direction does not exist: zCDP bounds no pure epsilon.

    Example:
        >>> implied_rho(Definition.PURE, Fraction(1))
        Fraction(1, 2)
    """
    loss = exact(cost, "cost")
    return loss if definition is Definition.ZCDP else loss * loss / 2


@proven("composition.proof.md", digest="3c3ecdc9c8a5f758")
def group_loss(definition: Definition, cost: Fraction, changes: int) -> Fraction:
    """Loss between datasets that are ``changes`` neighbour steps apart: k epsilon, or k^2 rho.

    A replacement is one removal and one addition, so a loss under ``add_remove`` bounds the loss under ``replace``
    with two changes. A product that knows its sensitivities may state less.

    Source: Bun & Steinke (2016), Proposition 1.9; Dwork & Roth (2014), Theorem 2.2.

    Example:
        >>> group_loss(Definition.ZCDP, Fraction(1, 2), 2)
        Fraction(2, 1)
    """
    if isinstance(changes, bool) or not isinstance(changes, int) or changes < 0:
        raise ValueError("the number of changes must be an int, 0 or more")
    loss = exact(cost, "cost")
    return loss * changes * changes if definition is Definition.ZCDP else loss * changes
