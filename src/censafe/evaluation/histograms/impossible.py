"""CONFIDENTIAL. Blocks and areas that cannot exist: persons and housing units that contradict each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.pairing import Pair

__all__ = ["impossible_areas"]


def impossible_areas(
    persons: Pair,
    units: Pair | None,
    areas: Areas,
    *,
    facilities: NDArray[np.integer] | None = None,
    household_level: int = 0,
    occupied_cell: int = 1,
) -> pa.Table:
    """Count the kinds of impossible areas, in the truth and in every run.

    Kinds: occupied units above household population; household population without occupied units; occupied units without
    household population; everyone under 18 (no group quarters); more than 10 persons per household; every unit occupied,
    or none, in the published data only; total differs from the truth.

    Args:
        persons: pair of persons, with an attribute ``hhgq`` where there are group quarters, and one of voting age.
        units: pair of housing units over the same spine (cell 0 vacant, 1 occupied); None leaves out the kinds that need it.
        areas: usually blocks.
        facilities: published numbers of group quarters, shape (blocks, 8) as the readers give; None takes areas without
            persons in group quarters.
        household_level: level of ``hhgq`` for households.
        occupied_cell: cell of occupied units.

    Returns:
        Columns level, area_class, kind, run_id (``truth`` or the run), universe, n, percent.
    """
    raise NotImplementedError
