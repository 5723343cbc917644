"""CONFIDENTIAL. Bias of totals by how homogeneous an area is, in two definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.cells import match
from censafe.evaluation.histograms.frames import Mode, frame_of, stacked
from censafe.evaluation.histograms.pairing import Pair
from censafe.evaluation.histograms.strata import Strata
from censafe.evaluation.histograms.strata_bias import bias_rows, total_residuals
from censafe.evaluation.histograms.tally import tally_of

__all__ = ["bias_by_homogeneity", "homogeneity_index", "residuals_by_homogeneity"]


def homogeneity_index(
    pair: Pair, areas: Areas, attributes: Sequence[str], *, mode: Mode = "corrected"
) -> NDArray[np.int64]:
    """How many of the cells of some attributes are empty in the truth, shape (areas,).

    Args:
        pair: of which the true side is read.
        areas: areas.
        attributes: names of attributes or recodes, such as ``("age18plus", "race", "hispanic")``; their product are the cells.
        mode: ``corrected`` counts empty cells; ``as_published`` takes cells less the product of the numbers of levels that
            occur, as the study's code does. An area without anybody has the number of all cells in both.

    Raises:
        UsageError: the schema has no such attribute.

    Source: Petti & Flaxman (2020) and their published code.
    """
    whole = pair.query(" * ".join(attributes))
    if mode == "corrected":
        return whole.answers - _occurring(pair, areas, whole.name)
    product = np.ones(areas.number, np.int64)
    for name in attributes:
        product *= _occurring(pair, areas, name)
    return whole.answers - product


def _occurring(pair: Pair, areas: Areas, query: str) -> NDArray[np.int64]:
    """How many answers are not zero in the truth of every area."""
    cells = match(pair, areas, query)
    return np.bincount(cells.area_of_entry[cells.confidential > 0], minlength=areas.number).astype(np.int64)


def bias_by_homogeneity(
    pair: Pair,
    areas: Areas,
    attributes: Sequence[str],
    *,
    mode: Mode = "corrected",
    strata: Strata | None = None,
    residuals: Mapping[str, NDArray[np.float64]] | None = None,
) -> pa.Table:
    """Mean residual by index, pooled over runs.

    Args:
        pair: truth and runs.
        areas: areas.
        attributes: see :func:`homogeneity_index`.
        mode: see :func:`homogeneity_index`.
        strata: classes of areas that are told apart as well.
        residuals: by characteristic, shape (runs, areas); without, those of the total.

    Returns:
        Columns mode, level, area_class, size_class, characteristic, index, cells (of the attributes), n_areas, n_runs, bias, se (areas as clusters), lo, hi
        (90 %).
    """
    cells = math.prod(pair.query(name).answers for name in attributes)
    index = homogeneity_index(pair, areas, attributes, mode=mode)
    rows = [
        {
            "mode": mode,
            **{"index" if key == "class" else key: value for key, value in row.items()},
            "cells": cells,
        }
        for row in bias_rows(pair, areas, index, strata, residuals)
    ]
    return pa.Table.from_pylist(rows)


def residuals_by_homogeneity(
    pair: Pair, areas: Areas, attributes: Sequence[str], *, mode: Mode = "corrected"
) -> pa.Table:
    """Residuals of the total by index, for violins: columns mode, level, index, run_id, residual, n.

    Args:
        pair: truth and runs.
        areas: areas.
        attributes: see :func:`homogeneity_index`.
        mode: see :func:`homogeneity_index`.
    """
    index = homogeneity_index(pair, areas, attributes, mode=mode)
    residuals = total_residuals(pair, areas)
    frames = []
    for one in np.unique(index).tolist():
        for run, values in zip(pair.runs, residuals[:, index == one], strict=True):
            tally = tally_of(values)
            size = len(tally.values)
            frames.append(
                frame_of(
                    {
                        "mode": [mode] * size,
                        "level": [areas.level] * size,
                        "index": np.full(size, one, np.int64),
                        "run_id": [run.run_id] * size,
                        "residual": tally.values,
                        "n": tally.counts,
                    }
                )
            )
    return stacked(frames)
