"""CONFIDENTIAL. Mean residual of totals by class of areas, with areas as clusters over runs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.cells import match
from censafe.evaluation.histograms.pairing import Pair

__all__ = ["class_bias", "total_residuals"]

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
