"""CONFIDENTIAL. Residuals of pooled runs as a tally, and the same by random groups of areas for the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas import Strata, everything
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.counts.error_metrics import Tally, tally_of
from censafe.geography.identifiers import AREA_COLUMNS, AreaNames

ZeroCells = Literal["all", "either", "confidential", "published"]
"""Which answers count: ``all`` of the domain; ``either`` side not zero (Petti & Flaxman); the ``confidential`` or the
``published`` side not zero."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """CONFIDENTIAL. A tally of residuals.

    Args:
        values: different residuals, rising; int64, or float64 of weighted samples, shape (v,).
        counts: how often each occurs, int64, shape (v,).
        by_group: the same by group of areas, shape (groups, v); areas are dealt to groups at random.
    """

    values: NDArray[Any] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    by_group: NDArray[np.int64] | None = field(default=None, repr=False)
    areas: int = 0

    @property
    def number(self) -> int:
        """How many residuals there are."""
        return int(self.counts.sum())

    @property
    def tally(self) -> Tally:
        """Values and counts."""
        return Tally(self.values, self.counts)


def residuals_of(values: NDArray[Any]) -> Residuals:
    """A tally of plain numbers.

    Example:
        >>> residuals_of(np.array([0, -2, 0])).counts.tolist()
        [1, 2]
    """
    tally = tally_of(values)
    return Residuals(tally.values, tally.counts)


def counted(cells: MatchedCells, zeros: ZeroCells) -> NDArray[np.bool_] | None:
    """Which entries count, shape (m,); None for all of them."""
    if zeros == "confidential":
        return cells.confidential > 0
    return cells.published != 0 if zeros == "published" else None


def pooled_residuals(
    runs: Sequence[MatchedCells],
    *,
    zeros: ZeroCells = "all",
    strata: Strata | None = None,
    stratum: int = 0,
    groups: int = 0,
    seed: int = 1,
) -> Residuals:
    """Residuals of one query at one level, all runs together.

    Args:
        runs: matched counts of the same areas, one entry a run.
    """
    areas = len(runs[0].areas)
    inside = (strata or everything(areas)).of_area == stratum
    number = int(inside.sum())
    group = _groups(areas, inside, min(groups, number), seed)
    entries = [_entries(cells, zeros, inside) for cells in runs]
    values = np.concatenate([value for value, _ in entries])
    entry_area = np.concatenate([area for _, area in entries])
    empty = sum(number * cells.answers for cells in runs) - len(values) if zeros == "all" else 0
    tally = tally_of(values).with_zeros(empty)
    if not groups:
        return Residuals(tally.values, tally.counts, areas=number)
    width = len(tally.values)
    place = np.searchsorted(tally.values, values)
    filled_groups = int(group.max(initial=0)) + 1
    by_group = np.bincount(group[entry_area] * width + place, minlength=filled_groups * width)
    by_group = by_group.reshape(filled_groups, width)
    if empty:
        cells_of_group = np.bincount(group[inside], minlength=filled_groups) * sum(
            cells.answers for cells in runs
        )
        by_group[:, np.searchsorted(tally.values, 0)] += cells_of_group - np.bincount(
            group[entry_area], minlength=filled_groups
        )
    return Residuals(tally.values, tally.counts, by_group, number)


def _entries(
    cells: MatchedCells, zeros: ZeroCells, inside: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Residual and area of the entries that count."""
    residual, area = cells.residual, cells.area_of_entry
    included = counted(cells, zeros)
    if not inside.all():
        included = inside[area] if included is None else included & inside[area]
    return (residual, area) if included is None else (residual[included], area[included])


def _groups(areas: int, inside: NDArray[np.bool_], groups: int, seed: int) -> NDArray[np.int64]:
    """Group of every area: areas in random order, dealt in turn."""
    group = np.zeros(areas, np.int64)
    if groups:
        order = np.random.default_rng(seed).permutation(np.flatnonzero(inside))
        group[order] = np.arange(len(order)) % groups
    return group


def residual_frame(cells: MatchedCells, areas: AreaNames | None = None) -> pa.Table:
    """CONFIDENTIAL. Every count that is not zero on both sides."""
    area = cells.area_of_entry
    size = len(area)
    about = {"run_id": cells.run_id, "level": cells.level, "area_class": cells.area_class}
    known = (areas or AreaNames()).of_level(cells.level, cells.areas)
    names = {"geocode": cells.areas, **dict.fromkeys(AREA_COLUMNS, np.full(len(cells.areas), "")), **known}
    return pa.table(
        {
            **{name: _repeated(value, size) for name, value in about.items()},
            **{
                name: pa.array(texts.tolist(), pa.string()).take(pa.array(area))
                for name, texts in names.items()
            },
            "characteristic": _repeated(cells.query, size),
            "answer": cells.answer,
            "confidential": cells.confidential,
            "published": cells.published,
            "residual": cells.residual,
        }
    )


def _repeated(text: str, times: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(times, np.int32)))
