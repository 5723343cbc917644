"""CONFIDENTIAL. Mean residual of totals by class of areas, with areas as clusters over runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.cells import match
from censafe.evaluation.histograms.pairing import Pair
from censafe.evaluation.histograms.strata import Strata, everything

__all__ = ["bias_rows", "class_bias", "total_residuals"]

_DEVIATIONS: Final = 1.6448536269514722  # of a 90 % interval


def total_residuals(pair: Pair, areas: Areas) -> NDArray[np.float64]:
    """Residuals of the total, shape (runs, areas)."""
    found = np.zeros((len(pair.runs), areas.number))
    for run in range(len(pair.runs)):
        cells = match(pair, areas, "total", run)
        found[run, cells.area_of_entry] = cells.residual
    return found


def class_bias(residuals: NDArray[np.float64], classes: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Number of areas, mean residual, standard error and 90 % interval of every class, rising; class -1 is left out.

    Args:
        residuals: shape (runs, areas).
        classes: shape (areas,).
    """
    rows = []
    means = residuals.mean(axis=0)
    for one in np.unique(classes[classes >= 0]).tolist():
        own = means[classes == one]
        error = float(own.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else float("nan")
        bias = float(own.mean())
        rows.append(
            {
                "class": one,
                "n_areas": len(own),
                "n_runs": len(residuals),
                "bias": bias,
                "se": error,
                "lo": bias - _DEVIATIONS * error,
                "hi": bias + _DEVIATIONS * error,
            }
        )
    return rows


def bias_rows(
    pair: Pair,
    areas: Areas,
    classes: NDArray[np.int64],
    strata: Strata | None = None,
    residuals: Mapping[str, NDArray[np.float64]] | None = None,
) -> Iterator[dict[str, Any]]:
    """Rows of :func:`class_bias`, of all areas and of those of each stratum, for everything that was counted.

    Args:
        pair: truth and runs.
        areas: areas.
        classes: class of every area, such as its index; shape (areas,).
        strata: classes of size, beside all areas.
        residuals: by characteristic, shape (runs, areas); without, those of the total.
    """
    about = {"level": areas.level, "area_class": areas.area_class}
    counted = residuals if residuals is not None else {"total": total_residuals(pair, areas)}
    for one in (everything(areas.number), *([] if strata is None else [strata])):
        for at, size_class in enumerate(one.names):
            inside = np.where(one.of_area == at, classes, -1)
            for name, own in counted.items():
                for row in class_bias(own, inside):
                    yield {**about, "size_class": size_class, "characteristic": name, **row}
