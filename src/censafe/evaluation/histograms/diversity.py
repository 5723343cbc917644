"""CONFIDENTIAL. Bias of totals by diversity quintile, and the groups that diversity is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.pairing import Pair
from censafe.model.schema import CellQuery
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["bias_by_diversity", "diversity_index", "diversity_quintiles", "race_groups"]


def race_groups(schema: HistogramSchema, query: str | None = None) -> CellQuery:
    """Exclusive groups: Hispanic, then each race alone and two or more races, not Hispanic.

    Args:
        schema: with an attribute ``hispanic`` (level 1) and one of races (``cenrace`` of 63 or ``race`` of 6 levels).
        query: for other schemas, a query of which every answer is a group.

    Raises:
        UsageError: the schema has no such attributes and no query is given.
    """
    raise NotImplementedError


def diversity_index(pair: Pair, areas: Areas, groups: CellQuery) -> NDArray[np.float64]:
    """One less the sum of squared shares of the groups in the true population, shape (areas,); NaN where nobody lives."""
    raise NotImplementedError


def diversity_quintiles(index: NDArray[np.float64]) -> NDArray[np.int32]:
    """Quintile of every area, 0 the least diverse, in equal numbers; ties in the order of the areas; -1 for NaN."""
    raise NotImplementedError


def bias_by_diversity(pair: Pair, areas: Areas, groups: CellQuery) -> pa.Table:
    """Mean residual of the total by quintile, pooled over runs: level, area_class, quintile, n_areas, n_runs, bias, se, lo, hi."""
    raise NotImplementedError
