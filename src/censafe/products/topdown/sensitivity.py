"""How much noise a query of one level needs, for one record replaced by another."""

from __future__ import annotations

from fractions import Fraction

from censafe.model import Definition, NoiseLaw
from censafe.model.proven import proven

__all__ = ["noise_law"]


@proven("sensitivity.proof.md", digest="6178e4a289a5c303")
def noise_law(definition: Definition, cost: Fraction) -> NoiseLaw:
    """Law of the noise of every answer of a query that costs ``cost`` at its level.

    Args:
        definition: zCDP (the cost is rho) or pure DP (the cost is epsilon).
        cost: above 0.

    Source: 2020 production code (sigma2 = 1 / rho); 1940 end-to-end code (two-sided geometric, exp(-epsilon / 2)).

    Example:
        >>> noise_law(Definition.ZCDP, Fraction(1, 4)).parameter, noise_law(Definition.PURE, Fraction(1, 4)).parameter
        (Fraction(4, 1), Fraction(8, 1))
    """
    if definition is Definition.ZCDP:
        return NoiseLaw.gaussian(1 / cost)
    return NoiseLaw.laplace(2 / cost)
