"""Published noisy counts of one table of the S-DHC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Key", "NoisyCells", "concatenated", "key_text"]

Floats = NDArray[np.float64]
Texts = NDArray[np.str_]
Key = tuple[str, str, str]
"""Type of region, region, iteration."""


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Noisy counts of one table, one entry a published row.

    Args:
        table: name of the table, for messages.
        region_type: ``USA``, ``STATE``, ...
        region: identifier within the type.
        iteration: ``*`` where the table has none.
        cell: number of the data cell.
        count: int64, may be negative.
        variance: float64, the published VARIANCE.
        geometric: whether the noise is two-sided geometric and not discrete Gaussian.
    """

    table: str
    region_type: Texts
    region: Texts
    iteration: Texts
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    variance: Floats
    geometric: NDArray[np.bool_]

    def selected(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> NoisyCells:
        """Some of the rows, by mask or by number."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


_COLUMNS = ("region_type", "region", "iteration", "cell", "count", "variance", "geometric")


def concatenated(tables: Sequence[NoisyCells]) -> NoisyCells:
    """Rows of several levels of one table, one after another."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS
    }
    return replace(tables[0], **joined)


def key_text(table: str, key: Key, cell: int | None = None) -> str:
    """A population group, and a cell, for messages.

    Example:
        >>> key_text("PH3", ("STATE", "44", "A"), 4)
        'PH3, STATE 44, iteration A, cell 4'
    """
    kind, region, iteration = key
    return f"{table}, {kind} {region}, iteration {iteration}" + ("" if cell is None else f", cell {cell}")
