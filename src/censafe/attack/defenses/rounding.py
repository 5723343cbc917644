"""CONFIDENTIAL. Coarse and noisy counts: rounding to a base, random rounding, ranges, tables of large areas alone, and the cell-key method.

The noise of the cell-key method is bounded and depends on which records a count holds, so that equal sets of records have equal noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.defenses.named import TableAreas, TableIntervals
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.errors import ConfigError

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
_KEYS: Final = 1 << 32
_STEPS: Final = 200
_CLOSE: Final = 1e-12
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


@dataclass(frozen=True, eq=False)
class CellKeyLaw:
    """Noise of the cell-key method by count: of greatest entropy with mean 0, a variance and a bound; no count becomes negative, and 0 stays 0.

    Args:
        chances: of the values -bound to bound for the counts 0 to bound and over, shape (bound + 1, 2 bound + 1).
    """

    bound: int
    variance: float
    chances: _Floats = field(repr=False)

    @staticmethod
    def of(bound: int = 5, variance: float = 2.0) -> CellKeyLaw:
        """The law with a bound and a variance.

        Example:
            >>> law = CellKeyLaw.of(3, 1.0)
            >>> [round(float(one), 3) for one in law.chances[1]]
            [0.0, 0.0, 0.381, 0.34, 0.193, 0.07, 0.016]

        Source: Bach (2021), "Differential Privacy and Noisy Confidentiality Concepts for European Population Statistics" (arXiv 2012.09775);
        Giessing (2016) for the law of greatest entropy.
        """
        if bound < 1 or not 0 < variance < bound:
            raise ConfigError(
                "the cell-key method needs a bound of at least 1 and a variance above 0 and below the bound; fix: give such as bound=5:variance=2"
            )
        values = np.arange(-bound, bound + 1)
        chances = np.zeros((bound + 1, len(values)))
        chances[0, bound] = 1.0
        for count in range(1, bound + 1):
            allowed = values >= -count
            chances[count, allowed] = _greatest_entropy(values[allowed].astype(np.float64), variance)
        return CellKeyLaw(bound, variance, chances)


def _greatest_entropy(values: _Floats, variance: float) -> _Floats:
    """Chances of some values with mean 0 and a variance, proportional to exp(a x + c x^2); Newton's method with halved steps."""
    terms = np.stack([values, values**2])
    target = np.array([0.0, variance])
    slopes = np.array([0.0, -1 / (2 * variance)])

    def dual(at: _Floats) -> float:
        powers = at @ terms
        top = powers.max()
        return float(top + np.log(np.exp(powers - top).sum()) - at @ target)

    chances = np.ones(len(values)) / len(values)
    for _ in range(_STEPS):
        powers = slopes @ terms
        chances = np.exp(powers - powers.max())
        chances /= chances.sum()
        gradient = terms @ chances - target
        if np.abs(gradient).max() < _CLOSE:
            break
        centered = terms - (terms @ chances)[:, None]
        step = np.linalg.solve((centered * chances) @ centered.T, gradient)
        length, before = 1.0, dual(slopes)
        while length > _CLOSE and dual(slopes - length * step) > before:
            length /= 2
        slopes = slopes - length * step
    return chances


def record_keys(records: int, seed: int) -> _Ints:
    """A random key of 32 bits for every record, which it keeps in all tables."""
    return np.random.default_rng(seed).integers(0, _KEYS, records, dtype=np.int64)


def sums_of_keys(keys: _Ints, area: _Ints, types: _Ints, matrix: csr_array, areas: int) -> _Ints:
    """Keys of all counts: the sums of the keys of the records in them, modulo 2^32.

    Args:
        keys: of every record, shape (n,).
        area: of every record, shape (n,).
        types: of every record, rows of the matrix, shape (n,).
        matrix: not 0 where a record of a type counts in a line, sparse, shape (types, lines).
    """
    keys_by_type = csr_array((keys, (area, types)), shape=(areas, matrix.shape[0]), dtype=np.int64)
    keys_by_type.sum_duplicates()
    keys_by_type.data %= _KEYS
    flags = csr_array(matrix != 0).astype(np.int64)
    return np.asarray((keys_by_type @ flags).toarray() % _KEYS)


def perturb_by_cell_key(counts: _Ints, keys: _Ints, law: CellKeyLaw) -> TableIntervals:
    """Counts with the noise that their keys name.

    Args:
        counts: shape (areas, lines).
        keys: of the counts, 0 to 2^32 - 1, shape (areas, lines).
    """
    row = np.minimum(counts, law.bound)
    limits = np.rint(np.cumsum(law.chances, axis=1) * _KEYS).astype(np.int64)
    noise = np.full(counts.shape, -law.bound, np.int64)
    for column in range(2 * law.bound):
        noise += keys >= limits[row, column]
    value = counts + noise
    low = np.where(value > 0, np.maximum(value - law.bound, 1), 0)
    return TableIntervals(low, value + law.bound, value)
