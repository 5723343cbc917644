"""Integer checks of estimated histograms, made on every run for every geounit and independent of the solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.spine import SpineLevel
from censafe.model import SparseLevel
from censafe.products.topdown.invariants import LevelLimits

__all__ = ["check_level"]

_NAMED = 5
Integers = NDArray[np.int64]


def check_level(
    level: SpineLevel,
    found: SparseLevel,
    limits: LevelLimits,
    kinds: NDArray[np.int32] | None,
    cells: int,
    parents: SparseLevel | None,
) -> None:
    """Check counts, sums to parents, exact totals and bounds of every geounit, as integers.

    Args:
        level: the geounits.
        found: their estimated histograms.
        limits: what they must obey.
        kinds: kind of unit of each cell; None where units bound nothing.
        cells: of the schema.
        parents: final histograms of the level above; None for the root.

    Raises:
        CheckError: names the level, what is broken, and some geounits.
    """
    node = np.repeat(np.arange(found.nodes), np.diff(found.node_ptr))
    _require(level, "counts below 1", np.unique(node[found.count < 1]))
    if parents is not None:
        _check_parents(level, found, node, cells, parents)
    totals = np.zeros(found.nodes, dtype=np.int64)
    np.add.at(totals, node, found.count)
    if limits.totals is not None:
        _require(level, "totals that are not the exact ones", np.flatnonzero(totals != limits.totals))
    if limits.groups is not None:
        of, inside = limits.groups.of, limits.groups.of >= 0
        sums = np.zeros(len(limits.groups.totals), dtype=np.int64)
        np.add.at(sums, of[inside], totals[inside])
        wrong = inside & (sums != limits.groups.totals)[of]
        _require(level, "totals that do not add up to the exact one of their group", np.flatnonzero(wrong))
    if kinds is not None:
        held = np.zeros(limits.lower.shape, dtype=np.int64)
        np.add.at(held, (node, kinds[found.cell]), found.count)
        broken = ((held < limits.lower) | (held > limits.upper)).any(axis=1)
        _require(level, "records that do not fit the published units", np.flatnonzero(broken))


def _check_parents(
    level: SpineLevel, found: SparseLevel, node: Integers, cells: int, parents: SparseLevel
) -> None:
    keys = level.parent[node].astype(np.int64) * cells + found.cell
    order = np.argsort(keys, kind="stable")
    ordered, counts = keys[order], found.count[order].astype(np.int64)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    above = np.repeat(np.arange(parents.nodes), np.diff(parents.node_ptr)) * cells + parents.cell
    if not (np.array_equal(ordered[starts], above) and np.array_equal(sums, parents.count)):
        raise CheckError(
            f"level {level.name}: children do not add up to their parents; please report this as a bug"
        )


def _require(level: SpineLevel, what: str, wrong: Integers) -> None:
    if len(wrong):
        names = ", ".join(level.geounits[wrong[:_NAMED]].tolist())
        raise CheckError(f"level {level.name}: {len(wrong)} geounits have {what}, among them {names}")
