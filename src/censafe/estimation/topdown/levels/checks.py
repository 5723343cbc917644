"""Integer checks of estimated histograms, made on every run for every geounit and independent of the solver."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numba import int32, int64, uint8, void
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.compiled import compiled
from censafe.model.named_arrays import SparseArrays, sparse_type

_NAMED = 5
_COUNT, _TOTAL, _BOUND = 1, 2, 4
_Array = TypeVar("_Array", NDArray[np.int32], NDArray[np.int64])


def check_level(
    level: SpineLevel,
    histograms: SparseLevel,
    limits: LevelLimits,
    cells: int,
    parents: SparseLevel | None,
) -> None:
    """Check counts, sums to parents, exact totals and bounds of every geounit, as integers."""
    flags, totals = np.zeros(histograms.nodes, np.uint8), np.zeros(histograms.nodes, np.int64)
    exact = np.zeros(0, np.int64) if limits.totals is None else limits.totals
    unit_kind = np.zeros(0, np.int32) if limits.kinds is None else writable(limits.kinds)
    bounds = writable(limits.lower), writable(limits.upper)
    _flag(SparseArrays.of(histograms), writable(exact), unit_kind, *bounds, flags, totals)
    _require(level, "counts below 1", flags & _COUNT)
    if parents is not None and not adds_up(level, histograms, cells, parents):
        raise CheckError(
            f"level {level.name}: children do not add up to their parents; please report this as a bug"
        )
    _require(level, "totals that are not the exact ones", flags & _TOTAL)
    _require(level, "records that do not fit the published units", flags & _BOUND)
    if limits.groups is not None:
        inside = limits.groups.of >= 0
        sums = np.zeros(len(limits.groups.totals), np.int64)
        np.add.at(sums, limits.groups.of[inside], totals[inside])
        wrong = sums != limits.groups.totals
        _require(level, "totals that are not the exact ones of their group", inside & wrong[limits.groups.of])


def adds_up(level: SpineLevel, histograms: SparseLevel, cells: int, parents: SparseLevel) -> bool:
    """Whether histograms are those of the level above when they are added up cell by cell."""
    first_child = np.searchsorted(level.parent, np.arange(parents.nodes + 1)).astype(np.int64)
    return int(_compare(first_child, SparseArrays.of(histograms), SparseArrays.of(parents), cells)) == 0


def writable(values: _Array) -> _Array:
    """The array itself in C order, or a copy where it is a view of a file; kernels know writable arrays only."""
    return np.require(values, requirements=["C", "W"])


def _require(level: SpineLevel, what: str, wrong: NDArray[np.integer] | NDArray[np.bool_]) -> None:
    places = np.flatnonzero(wrong)
    if len(places):
        names = ", ".join(level.geounits[places[:_NAMED]].tolist())
        raise CheckError(f"level {level.name}: {len(places)} geounits have {what}, among them {names}")


_SPARSE = sparse_type()


@compiled(void(_SPARSE, int64[::1], int32[::1], int64[:, ::1], int64[:, ::1], uint8[::1], int64[::1]))
def _flag(estimate, exact, unit_kind, lower, upper, flags, totals):  # type: ignore[no-untyped-def]
    """Write for every geounit what it breaks, and its records."""
    kinds = lower.shape[1]
    by_kind = np.zeros(kinds, dtype=np.int64)
    for node in range(flags.shape[0]):
        by_kind[:] = 0
        for entry in range(estimate.node_ptr[node], estimate.node_ptr[node + 1]):
            count = estimate.records[entry]
            totals[node] += count
            if count < 1:
                flags[node] |= _COUNT
            if kinds > 0:
                by_kind[unit_kind[estimate.cell[entry]]] += count
        if exact.shape[0] > 0 and totals[node] != exact[node]:
            flags[node] |= _TOTAL
        for kind in range(kinds):
            if by_kind[kind] < lower[node, kind] or by_kind[kind] > upper[node, kind]:
                flags[node] |= _BOUND


@compiled(int64(int64[::1], _SPARSE, _SPARSE, int64))
def _compare(first_child, estimate, above, cells):  # type: ignore[no-untyped-def]
    """How many parents differ from the sum of their children in some cell."""
    sums, wrong = np.zeros(cells, dtype=np.int64), 0
    for parent in range(first_child.shape[0] - 1):
        first, last = estimate.node_ptr[first_child[parent]], estimate.node_ptr[first_child[parent + 1]]
        for entry in range(first, last):
            sums[estimate.cell[entry]] += estimate.records[entry]
        bad = False
        for entry in range(above.node_ptr[parent], above.node_ptr[parent + 1]):
            bad = bad or sums[above.cell[entry]] != above.records[entry]
            sums[above.cell[entry]] = 0
        for entry in range(first, last):
            bad = bad or sums[estimate.cell[entry]] != 0
            sums[estimate.cell[entry]] = 0
        wrong += bad
    return wrong
