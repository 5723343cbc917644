"""CONFIDENTIAL. Bias of totals by diversity quintile, and the groups that diversity is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import ComparedAreas, Strata
from censafe.evaluation.counts.cells import match
from censafe.evaluation.counts.homogeneity import bias_rows
from censafe.evaluation.counts.pairing import Pair
from censafe.model.histograms import HistogramSchema
from censafe.model.schema import CellQuery

__all__ = ["bias_by_diversity", "diversity_index", "diversity_quintiles", "race_groups"]

_RACES: Final = ("cenrace", "race")
_ALONE: Final = 6


def race_groups(schema: HistogramSchema, query: str | None = None) -> CellQuery:
    """Exclusive groups: Hispanic, then each race alone and two or more races, not Hispanic.

    Args:
        schema: with an attribute ``hispanic`` (level 1 is Hispanic) and one of races (``cenrace`` of 63 or ``race`` of 6 levels,
            of which the first six are one race alone).
        query: for other schemas, a query of which every answer is a group.

    Raises:
        UsageError: the schema has no such attributes and no query is given, or no such query.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> race_groups(shipped_schemas()["pl94-persons"]).answers, race_groups(shipped_schemas()["e2e-1940"]).answers
        (8, 7)
    """
    if query is not None:
        try:
            return schema.query(query)
        except ValueError as error:
            raise UsageError(str(error)) from None
    names = schema.schema.names
    race = next((name for name in _RACES if name in names), None)
    if race is None or "hispanic" not in names:
        raise UsageError(
            f"schema {schema.name} has no attributes hispanic and race; name a query whose answers are the groups"
        )
    levels = schema.schema.levels_of(race)
    label = np.where(schema.schema.levels_of("hispanic") == 1, 0, 1 + np.minimum(levels, _ALONE))
    answers = 1 + min(int(levels.max()) + 1, _ALONE + 1)
    return CellQuery.of_labels("hispanic, or race", answers, label.astype(np.int32), ("hispanic", race))


def diversity_index(pair: Pair, areas: ComparedAreas, groups: CellQuery) -> NDArray[np.float64]:
    """One less the sum of squared shares of the groups in the true population, shape (areas,); NaN where nobody lives.

    The slide does not give its formula; this is the diversity index of the Census Bureau.
    """
    cells = match(pair, areas, groups)
    area = cells.area_of_entry
    true = cells.confidential.astype(np.float64)
    total = np.bincount(area, weights=true, minlength=areas.number)
    squares = np.bincount(area, weights=true * true, minlength=areas.number)
    with np.errstate(invalid="ignore"):
        return 1 - squares / total**2


def diversity_quintiles(index: NDArray[np.float64]) -> NDArray[np.int64]:
    """Quintile of every area, 0 the least diverse, in equal numbers; ties in the order of the areas; -1 for NaN.

    Example:
        >>> diversity_quintiles(np.array([0.5, 0.1, np.nan, 0.2, 0.4, 0.3])).tolist()
        [4, 0, -1, 1, 3, 2]
    """
    known = np.flatnonzero(~np.isnan(index))
    order = known[np.argsort(index[known], kind="stable")]
    found = np.full(len(index), -1, np.int64)
    found[order] = np.arange(len(order)) * 5 // max(1, len(order))
    return found


def bias_by_diversity(
    pair: Pair,
    areas: ComparedAreas,
    groups: CellQuery,
    *,
    strata: Strata | None = None,
    residuals: Mapping[str, NDArray[np.float64]] | None = None,
) -> pa.Table:
    """Mean residual by quintile of true diversity, pooled over runs. Meant for block groups and larger areas.

    Args:
        pair: truth and runs.
        areas: areas.
        groups: of :func:`race_groups`.
        strata: classes of areas that are told apart as well; quintiles are those of all areas.
        residuals: by characteristic, shape (runs, areas); without, those of the total.

    Returns:
        Columns level, area_class, size_class, characteristic, quintile, n_areas, n_runs, bias, se, lo, hi.
    """
    quintile = diversity_quintiles(diversity_index(pair, areas, groups))
    rows = [
        {"quintile" if key == "class" else key: value for key, value in row.items()}
        for row in bias_rows(pair, areas, quintile, strata, residuals)
    ]
    return pa.Table.from_pylist(rows)
