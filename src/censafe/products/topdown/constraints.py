"""Bounds that published counts of housing units and group quarters put on the persons in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.products.topdown.schemas import Facilities

__all__ = ["contradictions", "facility_bounds"]


def facility_bounds(
    rule: Facilities, units: NDArray[np.int64], totals: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Fewest and most persons of every kind of unit, by geounit.

    Bounds without totals add up over the geounits of an area. Every argument must be a published count: a total
    that is not published exactly must not be given here, since the bounds would reveal it.

    Args:
        rule: persons of one unit at least and at most.
        units: int64, shape (geounits, kinds): numbers of units.
        totals: int64, shape (geounits,): persons of all kinds, where they are published exactly.

    Returns:
        Lower and upper bounds, int64, shape (geounits, kinds).

    Raises:
        ValueError: a shape does not fit, or a count is negative.

    Source: 2020 redistricting production, ``hhgq_total_lb`` and ``hhgq_total_ub``.

    Example:
        >>> rule = Facilities("hhgq", (0, 1), (99999, 99999))
        >>> low, high = facility_bounds(rule, np.array([[3, 1], [7, 0]]), np.array([12, 20]))
        >>> low.tolist(), high.tolist()
        ([[0, 1], [20, 0]], [[11, 12], [20, 0]])
    """
    _check(rule, units, totals)
    lower = units * np.asarray(rule.minimum, dtype=np.int64)
    upper = units * np.asarray(rule.largest, dtype=np.int64)
    if totals is None:
        return lower, upper
    only = (units > 0) & ((units > 0).sum(axis=1, keepdims=True) == 1)
    known = totals[:, None]
    room = known - (lower.sum(axis=1, keepdims=True) - lower)
    upper = np.minimum(room, upper) if rule.largest_beside_total else room
    return np.where(only, known, lower), np.where(units > 0, upper, 0)


def contradictions(
    lower: NDArray[np.int64], upper: NDArray[np.int64], totals: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Geounits whose published counts no histogram can satisfy, shape (geounits,).

    Args:
        lower: int64, shape (geounits, kinds).
        upper: int64, shape (geounits, kinds).
        totals: int64, shape (geounits,); None where they are not published exactly.
    """
    wrong = np.any(lower > upper, axis=1)
    if totals is not None:
        wrong = wrong | (lower.sum(axis=1) > totals) | (upper.sum(axis=1) < totals)
    return np.asarray(wrong, dtype=np.bool_)


def _check(rule: Facilities, units: NDArray[np.int64], totals: NDArray[np.int64] | None) -> None:
    if units.ndim != 2 or units.shape[1] != len(rule.minimum):
        raise ValueError(
            f"units must have {len(rule.minimum)} columns, one for every level of {rule.attribute}"
        )
    if totals is not None and totals.shape != (len(units),):
        raise ValueError("totals must have one value a geounit")
    if bool((units < 0).any()) or (totals is not None and bool((totals < 0).any())):
        raise ValueError("numbers of units and persons cannot be negative")
