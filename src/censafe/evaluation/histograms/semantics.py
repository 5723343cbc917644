"""What a budget means to an attacker: power of the best test at a given level of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

__all__ = ["TouchedQuery", "discrete_gaussian_power", "gaussian_power", "power_curve", "zcdp_power"]


@dataclass(frozen=True)
class TouchedQuery:
    """A query that one record touches: variance parameter of its discrete Gaussian noise, and cells that move by one."""

    sigma2: Fraction
    cells: int = 2


def gaussian_power(rho: Fraction, level: float) -> float:
    """Power of the likelihood-ratio test of continuous Gaussian answers with total loss rho."""
    raise NotImplementedError


def zcdp_power(rho: Fraction, level: float) -> float:
    """Bound on the power of every test against every mechanism of that loss, rounded up to 4 digits."""
    raise NotImplementedError


def discrete_gaussian_power(
    queries: Sequence[TouchedQuery], levels: Sequence[float], *, randomised: bool = True
) -> list[float]:
    """Power of the likelihood-ratio test over the discrete Gaussian answers of all queries that a record touches.

    Args:
        queries: touched queries.
        levels: chances of a false alarm, in (0, 1).
        randomised: whether the test tosses a coin at its threshold, so that the level is met exactly.
    """
    raise NotImplementedError


def power_curve(rho: Fraction, queries: Sequence[TouchedQuery], levels: Sequence[float]) -> pa.Table:
    """Columns level, gaussian, discrete_gaussian, zcdp_bound; figure and table of the slides."""
    raise NotImplementedError
