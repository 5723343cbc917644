"""CONFIDENTIAL. Bias of totals by how homogeneous an area is, in two definitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.frames import Mode
from censafe.evaluation.histograms.pairing import Pair

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
            occur, as the study's code does.
    """
    raise NotImplementedError


def bias_by_homogeneity(
    pair: Pair, areas: Areas, attributes: Sequence[str], *, mode: Mode = "corrected"
) -> pa.Table:
    """Mean residual of the total by index, pooled over runs.

    Returns:
        Columns mode, level, area_class, index, n_areas, n_runs, bias, se (areas as clusters), lo, hi (90 %).
    """
    raise NotImplementedError


def residuals_by_homogeneity(
    pair: Pair, areas: Areas, attributes: Sequence[str], *, mode: Mode = "corrected"
) -> pa.Table:
    """Residuals of the total by index, for violins: columns mode, level, index, run_id, residual, n."""
    raise NotImplementedError
