"""What a certificate states about the tables of population groups, as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import ReleasePlan
from censafe.model.group_cells import GroupTable, ProductTables
from censafe.model.group_estimates import GroupEstimates, GroupNoise
from censafe.publication.group_accuracy import accuracy_of_cells

__all__ = ["check_group_costs", "group_tables", "noise_kinds"]


def noise_kinds(estimates: Sequence[GroupEstimates]) -> set[str]:
    """Kinds of the laws that the published counts hold."""
    return {noise.law.kind for found in estimates for noise in found.noises}


def check_group_costs(estimates: Sequence[GroupEstimates], plan: ReleasePlan, tables: ProductTables) -> None:
    """Compare the loss of every level with the plan's.

    Raises:
        CheckError: a level that the plan does not have, or one that costs something else there.
    """
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
    """One entry for each set of tables that are measured together, with its levels.

    Args:
        estimates: everything published.
        tables: files and cells of the product.
        total: privacy loss of the release.
        confidence: of the margins of error.
        words: for levels, by name; without words the type of region and the level of iterations are shown.
    """
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
