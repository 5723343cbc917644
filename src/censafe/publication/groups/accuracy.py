"""Accuracy of the written cells of population groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from censafe.model.groups.cells import GroupLayout
from censafe.model.groups.estimates import GroupNoise
from censafe.model.parsing import exact_text
from censafe.privacy.loss.margins import paper_margin
from censafe.privacy.noise.variance import variance_of_cells
from censafe.publication.groups.rows import cells_of
from censafe.publication.sums import accuracy_of_sum

WEIGHTED = "Weighted mean, "


@dataclass(frozen=True)
class CellAccuracy:
    """Accuracy of one written cell.

    Args:
        margin_exact: smallest integer whose interval covers at least the level; None where the count is a
            weighted mean, which has no such integer.
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

    Example:
        >>> from censafe.model import NoiseLaw
        >>> result = accuracy_of_cells(GroupNoise(NoiseLaw.gaussian(Fraction(625)), 8), 8, Fraction(19, 20))
        >>> result.variance, round(result.margin, 1), result.margin_exact, result.draws
        (5000.0, 138.6, 139, 8)
    """
    variance = variance_of_cells(noise, count)
    if noise.plain:
        plain = accuracy_of_sum(noise.law, count, confidence)
        parameter = exact_text(noise.law.parameter)
        return CellAccuracy(
            variance, plain.margin, plain.margin_exact, noise.law.bureau_name, parameter, count
        )
    squares = sum(
        term.weight**2 * term.draws * paper_margin(term.law, confidence) ** 2 for term in noise.terms(count)
    )
    return CellAccuracy(variance, math.sqrt(squares), None, f"{WEIGHTED}{noise.law.bureau_name}", "", None)


def accuracy_table(
    noises: Sequence[GroupNoise], layout: GroupLayout, confidence: Fraction
) -> tuple[list[CellAccuracy], NDArray[np.int32]]:
    """Accuracies, and which of them every cell of a file has under every noise, shape (noises, cells); -1 where there is no such cell."""
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
    return entries, index
