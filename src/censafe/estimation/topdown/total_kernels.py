"""Compiled first pass: totals of a parent's children from their measured totals alone."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, void

from censafe.model.compiled import compiled

__all__ = ["MOST_KINDS", "share_total", "water_level"]

MOST_KINDS = 8  # 256 sets
_TOLERANCE = 1e-9


@compiled(float64(float64[::1], float64[::1], float64[::1], float64[::1], float64, float64[::1]))
def _clipped(weight, b, low, high, multiplier, out):  # type: ignore[no-untyped-def]
    """Totals at a multiplier of their sum; returns the sum."""
    total = 0.0
    for c in range(out.shape[0]):
        out[c] = min(max((b[c] + multiplier) / weight[c], low[c]), high[c])
        total += out[c]
    return total


@compiled(void(float64[::1]))
def _sort(values):  # type: ignore[no-untyped-def]
    """Sort in place; a plain sort takes the compiler longer than all of this file."""
    gap = values.shape[0] // 2
    while gap > 0:
        for i in range(gap, values.shape[0]):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 2


@compiled(boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64, float64[::1]))
def water_level(weight, b, low, high, whole, out):  # type: ignore[no-untyped-def]
    """The least squares totals between bounds that add up to ``whole``: the multiplier lies between two breaks."""
    children = out.shape[0]
    breaks = np.empty(2 * children)
    for c in range(children):
        breaks[c] = weight[c] * low[c] - b[c]
        breaks[children + c] = weight[c] * high[c] - b[c]
    _sort(breaks)
    if low.sum() > whole or high.sum() < whole:
        return False
    first, last = 0, 2 * children - 1  # sums at the first break are the least, at the last the most
    while last - first > 1:
        middle = (first + last) // 2
        if _clipped(weight, b, low, high, breaks[middle], out) <= whole:
            first = middle
        else:
            last = middle
    _clipped(weight, b, low, high, 0.5 * (breaks[first] + breaks[last]), out)
    rest, slope = whole, 0.0
    for c in range(children):
        if low[c] < out[c] < high[c]:
            rest -= b[c] / weight[c]
            slope += 1.0 / weight[c]
        else:
            rest -= out[c]
    multiplier = rest / slope if slope > 0.0 else breaks[first]
    _clipped(weight, b, low, high, multiplier, out)
    return True


@compiled(boolean(float64[::1], float64[:, ::1], float64[:, ::1], float64[::1]))
def _can_share(have, least, most, totals):  # type: ignore[no-untyped-def]
    """Whether children with these totals can share out the parent's kinds: no set of kinds is too small (Hoffman)."""
    children, kinds = least.shape
    for chosen in range(1, 1 << kinds):
        held, need = 0.0, 0.0
        for g in range(kinds):
            if chosen >> g & 1:
                held += have[g]
        for c in range(children):
            inside, outside = 0.0, 0.0
            for g in range(kinds):
                if chosen >> g & 1:
                    inside += least[c, g]
                else:
                    outside += most[c, g]
            need += max(inside, totals[c] - outside)
        if need > held + _TOLERANCE * max(1.0, held):
            return False
    return True


@compiled(boolean(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1]))
def share_total(weight, b, have, least, most, out):  # type: ignore[no-untyped-def]
    """Totals of the children nearest to their measured ones, if bounds on them and on kinds of cells allow these.

    The nearest totals that only obey each child's own bounds are found exactly. Where the kinds can be shared out with
    them they are the answer; otherwise the caller needs a slower way.

    Args:
        weight: of the measured total of every child, above 0, shape (C,).
        b: weight times the measured total, shape (C,).
        have: the parent's counts by kind, shape (T,), at most 8 kinds.
        least: fewest records of every child and kind, shape (C, T).
        most: most records; 0 where a child cannot have the kind.
        out: receives the totals, shape (C,).

    Returns:
        Whether the totals were found.

    Source: Hoffman's circulation theorem on children x kinds.
    """
    children, kinds = least.shape
    low, high, whole = np.zeros(children), np.zeros(children), have.sum()
    for c in range(children):
        for g in range(kinds):
            low[c] += least[c, g]
            high[c] += min(most[c, g], have[g])
    return water_level(weight, b, low, high, whole, out) and _can_share(have, least, most, out)
