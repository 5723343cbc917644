"""What a budget means to an attacker: power of the best test at a given level of false alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
from scipy.special import ndtr

from censafe.evaluation.histograms.frames import frame_of
from censafe.privacy.attack import (
    TouchedQuery,
    best_attack,
    discrete_gaussian_power,
    gaussian_power,
    touched_queries,
    zcdp_power,
)
from censafe.privacy.loss_law import gathered

__all__ = [
    "TouchedQuery",
    "discrete_gaussian_power",
    "gaussian_loss_tail",
    "gaussian_power",
    "power_curve",
    "touched_queries",
    "zcdp_power",
]


def gaussian_loss_tail(rho: Fraction, epsilon: float) -> float:
    """Chance that the privacy loss of continuous Gaussian noise exceeds epsilon.

    The loss is normal with mean rho and variance 2 rho.

    Args:
        rho: zCDP loss, above 0.
        epsilon: any number.

    Source: Bun & Steinke (2016), "Concentrated Differential Privacy", for the law of the loss.

    Example:
        >>> gaussian_loss_tail(Fraction(1, 2), 0.5), round(gaussian_loss_tail(Fraction(263, 100), 16.742) * 1e10, 2)
        (0.5, 3.8)
    """
    return float(ndtr((float(rho) - epsilon) / math.sqrt(2 * float(rho))))


def power_curve(rho: Fraction, queries: Sequence[TouchedQuery], levels: Sequence[float]) -> pa.Table:
    """Power by level of the three: the figure and the table of the slides.

    Args:
        rho: loss of all queries.
        queries: touched queries, see :func:`touched_queries`.
        levels: chances of a false alarm, in (0, 1).

    Returns:
        Columns false_alarm, gaussian, discrete_gaussian (not randomised), discrete_gaussian_randomised, bound.
    """
    attack = best_attack(gathered(queries))
    return frame_of(
        {
            "false_alarm": list(levels),
            "gaussian": [gaussian_power(rho, level) for level in levels],
            "discrete_gaussian": attack.powers(levels, randomised=False),
            "discrete_gaussian_randomised": attack.powers(levels),
            "bound": [zcdp_power(rho, level) for level in levels],
        }
    )
