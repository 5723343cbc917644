"""Whole numbers near posterior means that add up from cells to sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.sdhc.rules import CountRules

__all__ = ["adding_up", "largest_remainder"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def largest_remainder(means: Floats, totals: Whole) -> Whole:
    """Round down, then add 1 where the remainder is largest until the total is met.

    Args:
        means: 0 or more, shape (groups, cells).
        totals: of each group, no farther than 1 from the sum of its means; shape (groups,).

    Returns:
        Whole numbers of the shape of ``means``; of equal remainders the first cell's counts first.

    Example:
        >>> largest_remainder(np.array([[1.4, 2.4, 3.4]]), np.array([7])).tolist()
        [[2, 2, 3]]
    """
    floors = np.floor(means)
    missing = totals - floors.sum(axis=1).astype(np.int64)
    order = np.argsort(floors - means, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(means.shape[1])[None, :], axis=1)
    return np.asarray(floors + (rank < missing[:, None]), np.int64)


def adding_up(means: Mapping[int, Floats], rules: CountRules) -> dict[int, Whole]:
    """Whole numbers for sums and cells: the widest sums rounded, what they contain by largest remainder within them.

    Args:
        means: posterior means of sums and basis cells by number, shape (groups,) each.
        rules: which sums there are.

    Returns:
        by number of sum or cell; every sum is that of its cells, every number less than 1 from its mean.

    Raises:
        ValueError: two sums share some but not all of their cells.
    """
    found: dict[int, Whole] = {}
    inner = {cell: set(of) for cell, of in rules.margins.items()}
    for number, cells in inner.items():
        for other in inner.values():
            if cells & other and not (cells <= other or other <= cells):
                raise ValueError(f"{rules.table}: sum {number} shares some cells with another sum")
    for number in sorted(inner, key=lambda cell: -len(inner[cell])):
        if number not in found:
            found[number] = np.rint(means[number]).astype(np.int64)
        parts = _parts(number, inner)
        shares = largest_remainder(np.stack([means[part] for part in parts], axis=1), found[number])
        found |= dict(zip(parts, shares.T, strict=True))
    for cell in rules.basis:
        found.setdefault(cell, np.rint(means[cell]).astype(np.int64))
    return found


def _parts(number: int, inner: Mapping[int, set[int]]) -> Sequence[int]:
    """The widest sums within a sum, and its cells outside of those."""
    within = [other for other, cells in inner.items() if other != number and cells < inner[number]]
    widest = [one for one in within if not any(inner[one] < inner[other] for other in within)]
    rest = inner[number].difference(*(inner[one] for one in widest))
    return [*widest, *sorted(rest)]
