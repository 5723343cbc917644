"""How far a release moves an attacker's odds about one record: the Bayesian reading of a loss.

For two candidate records the odds after the release are those before, times exp(L), where L is the privacy loss of what was
published. So they move by a factor of at most e^epsilon with probability at least 1 - delta over the release, epsilon being where the two tails
of L hold delta together. ``odds.proof.md`` proves both ways to find it: from the exact law of L, and from rho alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from censafe.model import Definition
from censafe.model.proven import proven
from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.conversions import odds_bound
from censafe.privacy.loss.loss_law import EpsilonBracket, gathered, loss_of, lower_total

_POINTS: Final = 1 << 17
_HALVINGS: Final = 80


@proven("odds.proof.md", digest="a545f83e8701b1f7")
def odds_epsilon(queries: Sequence[MovedQuery], delta: Fraction, *, points: int = _POINTS) -> EpsilonBracket:
    """The smallest such epsilon for the very noise that is drawn, for one who knows all other records.

    Args:
        queries: the cells that move between the two candidates; their noise is independent and discrete Gaussian.
        delta: chance over the release, in (0, 1).
        points: of the lattice; more of them narrow the bracket.

    Raises:
        ValueError: no query.

    Example:
        >>> found = odds_epsilon([MovedQuery(Fraction(4), 2)], Fraction(1, 100), points=1 << 14)
        >>> round(found.lower, 2), round(found.upper, 2)
        (2.0, 2.0)
    """
    if not queries:
        raise ValueError("odds need at least one query that moves")
    laws = gathered(queries)
    rho = loss_of(laws)
    most = odds_bound(rho, Definition.ZCDP, delta)
    total = lower_total(laws, float(rho), most, points)
    slack = len(laws) * total.width  # each law was moved down by less than one step
    target = float(delta)
    above = _smallest(lambda epsilon: total.both_tails(epsilon) <= target, most)
    below = _largest(
        lambda epsilon: total.both_tails(epsilon, surely=True) > target * math.exp(slack), above, total.width
    )
    return EpsilonBracket(below, min(above + slack, most))


def _smallest(holds: Callable[[float], bool], most: float) -> float:
    """A point at which a condition holds that holds from some point on, or ``most``; the smallest found."""
    if holds(0.0):
        return 0.0
    below, above = 0.0, most
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def _largest(fails: Callable[[float], bool], most: float, width: float) -> float:
    """A point up to ``most`` at which a condition fails for certain, sought from above; 0 where none is found."""
    while width < most and not fails(most - width):
        width *= 2
    if width >= most:
        return 0.0
    below, above = most - width, most
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if fails(middle) else (below, middle)
    return below
