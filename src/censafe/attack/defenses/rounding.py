"""CONFIDENTIAL. Coarse counts: rounding to a base, random rounding, ranges, and tables of large areas alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.named import TableAreas, TableIntervals
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.errors import ConfigError

_Ints = NDArray[np.int64]
RANGE_EDGES: Final = (0, 1, 5, 10, 20, 50, 100, 250, 500, 1000)
"""Lower ends of the ranges 0, 1 to 4, 5 to 9, ..., 1,000 and over."""


def _require_base(base: int) -> None:
    if base < 2:
        raise ConfigError(
            f"the base of rounding must be at least 2, not {base}; fix: give one such as 3, 5 or 10"
        )


def round_counts(counts: _Ints, base: int, zero_apart: bool = False) -> TableIntervals:
    """Counts rounded to the nearest multiple of a base, up where two are equally near.

    Args:
        counts: shape (areas, lines).

    Example:
        >>> rounded = round_counts(np.array([[0, 1, 2, 3, 7]]), 5)
        >>> rounded.value.tolist(), rounded.low.tolist(), rounded.high.tolist()
        ([[0, 0, 0, 5, 5]], [[0, 0, 0, 3, 3]], [[2, 2, 2, 7, 7]])
        >>> round_counts(np.array([[0, 1, 7, 8]]), 5, zero_apart=True).low.tolist()
        [[0, 1, 1, 8]]
    """
    _require_base(base)
    below = base // 2  # nearest multiple m: m - below <= count <= m + above
    above = base - 1 - below
    value = (counts + below) // base * base
    if zero_apart:
        value = np.where(counts > 0, np.maximum(value, base), 0)
    low, high = np.maximum(value - below, 0), value + above
    if zero_apart:
        low = np.where(value == base, 1, low)
        high = np.where(value == 0, 0, high)
    return TableIntervals(low, high, value)


def round_randomly(counts: _Ints, base: int, seed: int) -> TableIntervals:
    """Counts rounded up or down to a multiple of a base so that the expectation is the count; multiples stay.

    Args:
        counts: shape (areas, lines).

    Source: Fellegi (1975), as used by Statistics Canada (base 5) and Stats NZ (base 3).
    """
    _require_base(base)
    down = counts // base * base
    up = np.random.default_rng(seed).integers(0, base, counts.shape) < counts - down
    value = down + base * up
    return TableIntervals(np.maximum(value - base + 1, 0), value + base - 1, value)


def count_ranges(counts: _Ints, edges: Sequence[int] = RANGE_EDGES) -> TableIntervals:
    """Counts published as ranges; the value is the middle of the range, and the lower end of the last one.

    Args:
        counts: shape (areas, lines).

    Example:
        >>> ranges = count_ranges(np.array([[0, 3, 1200]]))
        >>> ranges.low.tolist(), ranges.value.tolist()
        ([[0, 1, 1000]], [[0, 2, 1000]])
    """
    if not edges or edges[0] != 0 or any(one >= two for one, two in pairwise(edges)):
        raise ConfigError("the lower ends of ranges must rise from 0; fix: give them such as 0,1,5,10")
    place = np.searchsorted(edges, counts, side="right") - 1
    low = np.asarray(edges, np.int64)[place]
    high = np.array([*(one - 1 for one in edges[1:]), NO_LIMIT], np.int64)[place]
    return TableIntervals(low, high, np.where(high == NO_LIMIT, low, (low + high) // 2))


def withhold_small_areas(areas: TableAreas, least: int) -> TableIntervals:
    """Tables of areas with fewer persons than a threshold are not published; the others are exact."""
    population = np.bincount(areas.area, minlength=len(areas.counts))
    return TableIntervals.exact(areas.counts).without(((population > 0) & (population < least))[:, None])


def withhold_small_tables(areas: TableAreas, least: int) -> TableIntervals:
    """A table of an area is not published where its total, the first line, is above 0 and under a threshold; the others are exact.

    As for tables repeated by race, which the Summary Files 2 and 4 showed where a race had enough persons in an area.
    """
    names = np.array(areas.workload.names)
    _, first, table = np.unique(names, return_index=True, return_inverse=True)
    totals = areas.counts[:, first][:, table.ravel()]
    return TableIntervals.exact(areas.counts).without((totals > 0) & (totals < least))
