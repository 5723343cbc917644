"""Accuracy of the written cells of population groups, and what a certificate states about their tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import ReleasePlan
from censafe.model.groups.cells import GroupLayout, GroupTable, ProductTables
from censafe.model.groups.estimates import GroupEstimates, GroupNoise
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
        index: int32[noises, cells], position in ``entries``; -1 where a group with that noise has no such cell.
    """

    entries: tuple[CellAccuracy, ...]
    index: NDArray[np.int32]


def accuracy_table(noises: Sequence[GroupNoise], layout: GroupLayout, confidence: Fraction) -> AccuracyTable:
    """Accuracy of every cell of a file under every noise."""
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


def noise_kinds(estimates: Sequence[GroupEstimates]) -> set[str]:
    """Kinds of the laws that the published counts hold."""
    return {noise.law.kind for found in estimates for noise in found.noises}


def check_group_costs(estimates: Sequence[GroupEstimates], plan: ReleasePlan, tables: ProductTables) -> None:
    """Compare the loss of every level with the plan's."""
    planned = {
        (tables.measured_by(part.queries[0].table), part.queries[0].level): part.cost for part in plan.parts
    }
    for found in estimates:
        if planned.get((found.table, found.level.name)) != found.cost:
            raise CheckError(
                f"level {found.level.name} of {found.table}: the budget differs from the plan; do not publish the tables"
            )


def group_tables(
    estimates: Sequence[GroupEstimates],
    tables: ProductTables,
    total: Fraction,
    confidence: Fraction,
    words: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """One entry for each set of tables that are measured together, with its levels."""
    for table in tables.tables:
        levels = [found for found in estimates if found.table == table.key]
        if not levels:
            continue
        cost = sum((found.cost for found in levels), Fraction(0))
        yield {
            "table": table.names,
            "title": table.title,
            "universe": table.universe,
            "derived": False,
            "budget": f"{cost.numerator}/{cost.denominator}",
            "budget_decimal": float(cost),
            "share": float(cost / total) if total else 0.0,
            "rows": sum(_written(found, table) for found in levels),
            "levels": [],
            "groups": [_level(found, table, confidence, words) for found in levels],
        }


def _level(
    found: GroupEstimates, table: GroupTable, confidence: Fraction, words: Mapping[str, str]
) -> dict[str, Any]:
    kind = found.level.region_type
    plain = f"{kind}, {'regional' if found.level.iteration_level == 1 else 'detailed'} groups"
    return {
        "level": found.level.name,
        "words": words.get(found.level.name, plain),
        "region_type": kind,
        "iteration_level": found.level.iteration_level,
        "regions": len(found.level.regions),
        "candidates": len(found.level.iterations),
        "groups": found.rows,
        "rows": _written(found, table),
        "budget": f"{found.cost.numerator}/{found.cost.denominator}",
        "budget_decimal": float(found.cost),
        "equal_areas": int(np.count_nonzero(found.shared)),
        "near_threshold": int(np.count_nonzero(found.near)),
        "conditional": int(np.count_nonzero(found.conditional)),
        "details": list(_details(found, table, confidence)),
    }


def _details(found: GroupEstimates, table: GroupTable, confidence: Fraction) -> Iterator[dict[str, Any]]:
    """One entry a stat level, and one for groups that get a total only wherever they are."""
    only = found.level.detailed_only[found.iteration]
    for stat_level, shell in table.shells.items():
        for detailed_only in (False, True):
            inside = (found.stat_level == stat_level) & (only == detailed_only)
            noise = _usual_noise(found, inside)
            if noise is None:
                continue
            yield {
                "stat_level": stat_level,
                "detailed_only": detailed_only,
                "table": shell.table,
                "title": shell.title,
                "groups": int(np.count_nonzero(inside)),
                "rows": _written(found, table, inside),
                "measured_cells": shell.basis,
                "cell": _accuracy(noise, 1, confidence),
                "total": _accuracy(noise, noise.cells, confidence),
            }


def _usual_noise(found: GroupEstimates, inside: NDArray[np.bool_]) -> GroupNoise | None:
    """The noise that most groups have; those made equal to other areas have their own."""
    own = inside & ~found.shared
    counts = np.bincount(found.noise[own if own.any() else inside], minlength=1)
    return found.noises[int(np.argmax(counts))] if counts.any() else None


def _accuracy(noise: GroupNoise, count: int, confidence: Fraction) -> dict[str, Any]:
    found = accuracy_of_cells(noise, count, confidence)
    return {
        "law": found.law,
        "parameter": found.parameter,
        "noise_draws": found.draws,
        "variance": found.variance,
        "margin_of_error": found.margin,
        "margin_of_error_exact": found.margin_exact,
    }


def _written(found: GroupEstimates, table: GroupTable, inside: NDArray[np.bool_] | None = None) -> int:
    stat_level = found.stat_level if inside is None else found.stat_level[inside]
    return int(np.array(table.widths, np.int64)[stat_level].sum())
