"""Approximate Monte Carlo: further runs on the published file tell how far the published file is from the truth.

The published file is like the truth, so that a run on it stands to it as the published file stands to the truth. Everything here is post-processing of published figures and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.estimation.topdown.simulated import SIZES, ErrorClass, size_class
from censafe.evaluation.histograms.cells import MatchedCells
from censafe.evaluation.histograms.frames import frame_of
from censafe.geography.area_names import AreaNames
from censafe.geography.identifiers import codes_of_level

__all__ = ["cell_intervals", "error_classes"]


def error_classes(runs: Sequence[MatchedCells], confidence: float = 0.9) -> pa.Table:
    """Errors of further runs by size of the count that they gave, all runs and areas of a level together.

    Classes are those of the further run's count, since what is asked is how far the truth is from a published count of some
    size: a published 0 may stand for a true 3, although a 3 is rarely published as 0.

    Args:
        runs: counts of further runs beside the published ones that they started from.
        confidence: of the interval.

    Returns:
        Columns level, characteristic, size_class (lower end), n_cells, bias, rmse, mean_ae, lo, hi. The interval is for
        true less published: the truth lies between the published count plus lo and the published count plus hi.

    Source: approximate Monte Carlo, arXiv 2503.19714.
    """
    rows: list[dict[str, Any]] = []
    sizes = [size_class(cells.published) for cells in runs]
    for one in range(len(SIZES)):
        errors = [cells.residual[size == one] for cells, size in zip(runs, sizes, strict=True)]
        empty = sum(cells.zero_zero for cells in runs) if one == 0 else 0
        pooled = np.concatenate(errors)
        if len(pooled) + empty:
            rows.append(
                {
                    "level": runs[0].level,
                    "characteristic": runs[0].query,
                    "size_class": str(SIZES[one]),
                    **_moments(pooled, empty, confidence),
                }
            )
    return pa.Table.from_pylist(rows)


def _moments(errors: NDArray[np.int64], empty: int, confidence: float) -> dict[str, float]:
    """Bias, root mean square, mean size and interval of errors, ``empty`` more of which are 0."""
    pooled = ErrorClass.of(errors, empty)
    low, high = pooled.ends(confidence)
    return {
        "n_cells": pooled.number,
        "bias": pooled.moment(1),
        "rmse": pooled.moment(2) ** 0.5,
        "mean_ae": pooled.mean_size(),
        "lo": 0.0 - high,
        "hi": 0.0 - low,
    }


def cell_intervals(
    runs: Sequence[MatchedCells], classes: pa.Table, published: NDArray[np.int64], labels: Sequence[str]
) -> pa.Table:
    """Every published count of one characteristic and level with the error that is expected of it.

    Args:
        runs: as for :func:`error_classes`.
        classes: of the same runs.
        published: shape (areas, answers).
        labels: of the answers.

    A count of a size that no further run gave takes the errors of the nearest size.

    Returns:
        Columns geocode, GEOID, GISJOIN and NAME (where the areas are those of census geography), label, published, rmse,
        own_rmse (of the further runs of this very count), lo, hi; the ends are counts, not below 0.
    """
    by_size = _by_size(classes)
    squares = np.zeros(published.shape)
    for cells in runs:
        squares[cells.area_of_entry, cells.answer] += cells.residual.astype(float) ** 2
    own = np.sqrt(squares / len(runs))
    found = [by_size[one] for one in size_class(published.reshape(-1)).tolist()]
    flat = published.reshape(-1)
    return frame_of(
        {
            "geocode": np.repeat(runs[0].areas, published.shape[1]).tolist(),
            **_beside(runs[0], published.shape[1]),
            "label": list(labels) * len(published),
            "published": flat,
            "rmse": np.array([row["rmse"] for row in found]),
            "own_rmse": own.reshape(-1),
            "lo": np.maximum(flat + np.array([row["lo"] for row in found]), 0.0),
            "hi": np.maximum(flat + np.array([row["hi"] for row in found]), 0.0),
        }
    )


def _beside(cells: MatchedCells, answers: int) -> dict[str, list[str]]:
    """Codes and names of the areas, a row an answer; none where the areas are not those of census geography."""
    if not codes_of_level(cells.level, cells.areas):
        return {}
    columns = AreaNames().beside(cells.areas.astype(f"U{len(cells.areas[0])}"))
    return {name: np.repeat(texts, answers).tolist() for name, texts in columns.items()}


def _by_size(classes: pa.Table) -> list[dict[str, Any]]:
    """The errors of every size class, or of the nearest one that further runs gave."""
    known = {SIZES.index(int(row["size_class"])): row for row in classes.to_pylist()}
    return [known[min(known, key=lambda own: (abs(own - one), own))] for one in range(len(SIZES))]
