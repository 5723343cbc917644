"""Two-sample tests: can anyone tell two neighbors apart better than the stated loss allows?

A statistic is computed from many draws under either neighbor, and a threshold between the two is a test whose false alarms and power are
counted. No test may have more power at its false alarms than the loss allows; both are known up to draws, so the count breaches the claim
where the lower end of the power is above what the upper end of the false alarms allows, each at a confidence of 1 - ERROR. An audit is
thus wrong about noise that is right with a chance of at most 2 ERROR. What it finds is shown each time: with half the standard deviation
in all queries, the breach must be there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.stats import beta

from censafe.model import Definition, NoiseLaw
from censafe.privacy.loss.attack import largest_power

ERROR = 1e-6
DRAWS = 800
TARGET = Fraction(1)
"""Loss (rho) of the pairs that are told apart, for which the test has power."""
EPSILON = Fraction(3, 2)
"""The same under pure differential privacy, of the cell that moves most: over many cells no test comes near what epsilon allows."""

Draw = Callable[[bool, int], float]
"""The statistic of one draw: whether under the second neighbor, and the seed of the test key."""


@dataclass(frozen=True)
class Counted:
    """What a test on draws came to."""

    alarms: float  # share of the draws under the first neighbor above the threshold
    power: float  # share of those under the second
    allowed: float  # most power that the loss allows at the upper end of the false alarms
    least: float  # lower end of the power

    @property
    def breached(self) -> bool:
        """Whether the draws contradict the loss."""
        return self.least > self.allowed


def tell_apart(
    draw: Draw, threshold: float, loss: Fraction, first: int, definition: Definition = Definition.ZCDP
) -> Counted:
    """Draw under both neighbors, each draw with a key of its own, and compare with the loss claimed between them; above the threshold the second neighbor is said to be there."""
    above = [
        sum(draw(second, first + number + DRAWS * second) > threshold for number in range(DRAWS))
        for second in (False, True)
    ]
    false_most = 1.0 if above[0] == DRAWS else float(beta.ppf(1 - ERROR, above[0] + 1, DRAWS - above[0]))
    true_least = 0.0 if above[1] == 0 else float(beta.ppf(ERROR, above[1], DRAWS - above[1] + 1))
    level = Fraction(min(false_most, 1 - 1e-9)).limit_denominator(10**6)
    return Counted(above[0] / DRAWS, above[1] / DRAWS, largest_power(loss, definition, level), true_least)


def halved(law: NoiseLaw) -> NoiseLaw:
    """The planted defect: half the standard deviation."""
    return NoiseLaw(law.kind, law.parameter / (4 if law.kind == "gaussian" else 2))


def gaussian_statistic(change: np.ndarray, noisy: np.ndarray, exact: np.ndarray, sigma2: float) -> float:
    """Share of a query in the logarithm of the likelihood ratio, whose mean is minus or plus its loss."""
    moved = change != 0
    return float((change[moved] * (noisy[moved] - exact[moved] - change[moved] / 2)).sum() / sigma2)


def laplace_statistic(change: np.ndarray, noisy: np.ndarray, exact: np.ndarray, scale: float) -> float:
    """Logarithm of the likelihood ratio of a query with two-sided geometric noise."""
    return float((np.abs(noisy - exact) - np.abs(noisy - exact - change)).sum() / scale)
