"""CONFIDENTIAL. Bias of totals by how homogeneous an area is, in two definitions, and by diversity quintile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import ComparedAreas, Strata, everything
from censafe.evaluation.counts.cells import match
from censafe.evaluation.counts.error_metrics import DEVIATIONS, tally_of
from censafe.evaluation.counts.frames import LossMode, labeled, stacked
from censafe.evaluation.counts.pairing import Pair
from censafe.model.schema import CellQuery
from censafe.model.topdown.histograms import HistogramSchema

_RACES: Final = ("cenrace", "race")
_ALONE: Final = 6


def race_groups(schema: HistogramSchema, query: str | None = None) -> CellQuery:
    """Exclusive groups: Hispanic, then each race alone and two or more races, not Hispanic.

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
    """One less the sum of squared shares of the groups in the true population, shape (areas,); NaN without persons.

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
    quintile = np.full(len(index), -1, np.int64)
    quintile[order] = np.arange(len(order)) * 5 // max(1, len(order))
    return quintile


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
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    quintile = diversity_quintiles(diversity_index(pair, areas, groups))
    return pa.Table.from_pylist(list(_bias_rows(pair, areas, "quintile", quintile, strata, residuals)))


def total_residuals(pair: Pair, areas: ComparedAreas) -> NDArray[np.float64]:
    """Residuals of the total, shape (runs, areas)."""
    residuals = np.zeros((len(pair.runs), areas.number))
    for run in range(len(pair.runs)):
        cells = match(pair, areas, "total", run)
        residuals[run, cells.area_of_entry] = cells.residual
    return residuals


def _bias_rows(
    pair: Pair,
    areas: ComparedAreas,
    column: str,
    classes: NDArray[np.int64],
    strata: Strata | None,
    residuals: Mapping[str, NDArray[np.float64]] | None,
) -> Iterator[dict[str, Any]]:
    """Number of areas, mean residual, standard error and 90 % interval of every class, of all areas and of each stratum.

    Args:
        classes: class of every area, such as its index, -1 for none, shape (areas,).
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    counted = residuals if residuals is not None else {"total": total_residuals(pair, areas)}
    for grouping in (everything(areas.number), *([] if strata is None else [strata])):
        for at, size_class in enumerate(grouping.names):
            inside = np.where(grouping.of_area == at, classes, -1)
            for name, errors in counted.items():
                means = errors.mean(axis=0)
                for place in np.unique(inside[inside >= 0]).tolist():
                    own = means[inside == place]
                    error = float(own.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else float("nan")
                    bias = float(own.mean())
                    yield {
                        "level": areas.level,
                        "area_class": areas.area_class,
                        "size_class": size_class,
                        "characteristic": name,
                        column: place,
                        "n_areas": len(own),
                        "n_runs": len(errors),
                        "bias": bias,
                        "se": error,
                        "lo": bias - DEVIATIONS * error,
                        "hi": bias + DEVIATIONS * error,
                    }


def homogeneity_index(
    pair: Pair, areas: ComparedAreas, attributes: Sequence[str], *, mode: LossMode = "corrected"
) -> NDArray[np.int64]:
    """How many of the cells of some attributes are empty in the truth, shape (areas,).

    Source: Petti & Flaxman (2020) and their published code.
    """
    joint = pair.query(" * ".join(attributes))
    if mode == "corrected":
        return joint.answers - _occurring(pair, areas, joint.name)
    product = np.ones(areas.number, np.int64)
    for name in attributes:
        product *= _occurring(pair, areas, name)
    return joint.answers - product


def _occurring(pair: Pair, areas: ComparedAreas, query: str) -> NDArray[np.int64]:
    """How many answers are not zero in the truth of every area."""
    cells = match(pair, areas, query)
    return np.bincount(cells.area_of_entry[cells.confidential > 0], minlength=areas.number).astype(np.int64)


def bias_by_homogeneity(
    pair: Pair,
    areas: ComparedAreas,
    attributes: Sequence[str],
    *,
    mode: LossMode = "corrected",
    strata: Strata | None = None,
    residuals: Mapping[str, NDArray[np.float64]] | None = None,
) -> pa.Table:
    """Mean residual by index, pooled over runs.

    Args:
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    cells = math.prod(pair.query(name).answers for name in attributes)
    index = homogeneity_index(pair, areas, attributes, mode=mode)
    rows = _bias_rows(pair, areas, "index", index, strata, residuals)
    return pa.Table.from_pylist([{"mode": mode, **row, "cells": cells} for row in rows])


def residuals_by_homogeneity(
    pair: Pair, areas: ComparedAreas, attributes: Sequence[str], *, mode: LossMode = "corrected"
) -> pa.Table:
    """Residuals of the total by index, for violins: columns mode, level, index, run_id, residual, n."""
    index = homogeneity_index(pair, areas, attributes, mode=mode)
    residuals = total_residuals(pair, areas)
    frames = []
    for empty_cells in np.unique(index).tolist():
        for run, values in zip(pair.runs, residuals[:, index == empty_cells], strict=True):
            tally = tally_of(values)
            about = {"mode": mode, "level": areas.level, "index": empty_cells, "run_id": run.run_id}
            frames.append(labeled(pa.table({"residual": tally.values, "n": tally.counts}), about))
    return stacked(frames)
