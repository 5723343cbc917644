"""Accuracy of the written cells of population groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from censafe.model.group_cells import GroupLayout
from censafe.model.group_estimates import GroupNoise
from censafe.privacy.group_noise import variance_of_cells
from censafe.privacy.margins import paper_margin
from censafe.publication.group_rows import cells_of
from censafe.publication.sums import accuracy_of_sum

__all__ = ["WEIGHTED", "AccuracyTable", "CellAccuracy", "accuracy_of_cells", "accuracy_table"]

WEIGHTED = "Weighted mean, "


@dataclass(frozen=True)
class CellAccuracy:
    """Accuracy of one written cell.

    Args:
        variance: of its noise, before rounding.
        margin: margin of error in the papers' form.
        margin_exact: smallest integer whose interval covers at least the level; None where the count is a
            weighted mean, which has no such integer.
        law: in the words of the Bureau's files.
        parameter: of the law as ``num/den``; empty for a weighted mean.
        draws: independent noise draws that were added up; None for a weighted mean.
    """

    variance: float
    margin: float
    margin_exact: int | None
    law: str
    parameter: str
    draws: int | None


@lru_cache(maxsize=65536)
def accuracy_of_cells(noise: GroupNoise, count: int, confidence: Fraction) -> CellAccuracy:
    """Accuracy of the sum of some cells of a group.

    The margin of a weighted mean is the root of the sum of squares of the weighted margins of its draws.

    Args:
        noise: of the group.
        count: how many of its cells are added up.
        confidence: nominal coverage of the margins, 9/10 or 19/20.

    Example:
        >>> from censafe.model import NoiseLaw
        >>> found = accuracy_of_cells(GroupNoise(NoiseLaw.gaussian(Fraction(625)), 8), 8, Fraction(19, 20))
        >>> found.variance, round(found.margin, 1), found.margin_exact, found.draws
        (5000.0, 138.6, 139, 8)
    """
    variance = variance_of_cells(noise, count)
    if noise.plain:
        found = accuracy_of_sum(noise.law, count, confidence)
        parameter = f"{noise.law.parameter.numerator}/{noise.law.parameter.denominator}"
        return CellAccuracy(
            variance, found.margin, found.margin_exact, noise.law.bureau_name, parameter, count
        )
    squares = sum(
        term.weight**2 * term.draws * paper_margin(term.law, confidence) ** 2 for term in noise.terms(count)
    )
    return CellAccuracy(variance, math.sqrt(squares), None, f"{WEIGHTED}{noise.law.bureau_name}", "", None)


@dataclass(frozen=True, eq=False)
class AccuracyTable:
    """Accuracy by noise and cell, as arrays to look rows up in.

    Args:
        entries: the different accuracies.
        index: int32[noises, cells], position in ``entries``; -1 where a group with that noise has no such cell.
    """

    entries: tuple[CellAccuracy, ...]
    index: NDArray[np.int32]


def accuracy_table(noises: Sequence[GroupNoise], layout: GroupLayout, confidence: Fraction) -> AccuracyTable:
    """Accuracy of every cell of a file under every noise.

    Args:
        noises: of the groups.
        layout: of the file.
        confidence: 9/10 or 19/20.
    """
    cells = [(layout.shells[level].basis, len(cell.members)) for level, cell in cells_of(layout)]
    places: dict[tuple[int, int], int] = {}
    entries: list[CellAccuracy] = []
    index = np.full((len(noises), len(cells)), -1, np.int32)
    for i, noise in enumerate(noises):
        for j, (basis, count) in enumerate(cells):
            if basis == noise.cells:
                if (i, count) not in places:
                    places[i, count] = len(entries)
                    entries.append(accuracy_of_cells(noise, count, confidence))
                index[i, j] = places[i, count]
    return AccuracyTable(tuple(entries), index)
