"""Checks of block histograms, and their sparse form. Findings count rows and blocks; they hold no value of a record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spine import Spine
from censafe.model.sparse import ExactHistograms
from censafe.population.findings import Finding, Severity
from censafe.population.histograms.layout import MOST_COUNT, HistogramLayout

__all__ = ["facility_findings", "finding", "histograms_of", "nobody", "occupancy_of"]


def finding(
    file: str, column: str, rule: str, rows: int, problem: str, allowed: str, fix: str = "correct the file"
) -> list[Finding]:
    """A finding that stops, or none where no row breaks the rule."""
    severity: Severity = "stop"
    return [Finding(file, column, rule, severity, rows, problem, allowed, fix)] if rows else []


def nobody(file: str, persons: int) -> list[Finding]:
    """A finding that stops where there is no person at all; nothing could be measured of such a file.

    Args:
        file: that holds the persons.
        persons: how many there are.
    """
    if persons:
        return []
    return [
        Finding(file, "", "nobody", "stop", 0, "there is no person at all", "one person at least",
                "check that the file was written completely, and copy it again")
    ]  # fmt: skip


def histograms_of(
    spine: Spine, keys: NDArray[np.int64], counts: NDArray[np.int64], cells: int
) -> tuple[ExactHistograms, int, int]:
    """Sparse histograms from entries in any order.

    Args:
        spine: the tree; its blocks give the order.
        keys: shape (entries,), position of the block times the number of cells, plus the cell.
        counts: shape (entries,), not negative; entries of zero are left out, those of one key are added up.
        cells: cells of the schema.

    Returns:
        The histograms; how many entries repeat the key of another one; and how many sums are above 2,147,483,647
        (they are cut there, so stop when there are any).
    """
    if len(keys) and bool((np.diff(keys) <= 0).any()):
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    repeated = len(keys) - len(starts)
    if repeated:
        keys, counts = keys[starts], np.add.reduceat(counts, starts)
    filled = counts > 0
    if not filled.all():
        keys, counts = keys[filled], counts[filled]
    block, cell = np.divmod(keys, cells)
    pointer = np.searchsorted(block, np.arange(spine.leaf.nodes + 1)).astype(np.int64)
    large = int(np.count_nonzero(counts > MOST_COUNT))
    values = np.minimum(counts, MOST_COUNT).astype(np.int32)
    return ExactHistograms(spine.leaf.geounits, pointer, cell.astype(np.int32), values), repeated, large


def occupancy_of(spine: Spine, housing: NDArray[np.int64], occupied: NDArray[np.int64]) -> ExactHistograms:
    """Histograms of occupancy: cell 0 vacant, 1 occupied.

    Args:
        spine: the tree.
        housing: housing units of every block, shape (blocks,).
        occupied: those that are occupied.
    """
    counts = np.stack([housing - occupied, occupied], axis=1).reshape(-1)
    return histograms_of(spine, np.arange(len(counts)), counts, 2)[0]


def facility_findings(
    persons: ExactHistograms,
    facilities: NDArray[np.int32],
    layout: HistogramLayout,
    names: tuple[str, str],
) -> list[Finding]:
    """Blocks whose persons do not fit their facilities, and cells that must be empty.

    Args:
        persons: exact histograms of the blocks.
        facilities: shape (blocks, unit columns).
        layout: of the product.
        names: of the person file and of the unit file.
    """
    file, unit_file = names
    zeros = finding(file, "", "must-be-empty", int(np.count_nonzero(layout.empty[persons.cell])),
                    "cells that must be empty have persons", "persons outside the structural zeros of the schema",
                    "correct the levels of the attributes")  # fmt: skip
    levels = len(layout.least)
    if not levels:
        return zeros
    block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
    held = np.bincount(
        block * levels + layout.kind_of_cell[persons.cell], persons.count, persons.nodes * levels
    ).reshape(-1, levels)
    units = facilities[:, :levels].astype(np.int64)
    none = (held > 0) & (units == 0)
    over = (held > units * np.array(layout.most)) & ~none
    under = held < units * np.array(layout.least)
    columns = f"{layout.unit_columns[0]} to {layout.unit_columns[levels - 1]}"
    most = ", ".join(f"{value:,}" for value in sorted(set(layout.most)))
    return [
        *finding(file, layout.kind, "no-facility", int(none.any(axis=1).sum()),
                 f"blocks with persons in a kind of quarters of which {unit_file} has no unit there (rows are blocks)",
                 "one unit at least of every kind of quarters that has persons",
                 "correct the counts of units, or where the persons are"),
        *finding(file, layout.kind, "too-many-persons", int(over.any(axis=1).sum()),
                 "blocks with more persons in a kind of quarters than its units can hold (rows are blocks)",
                 f"at most {most} persons a unit", "correct the counts of units or of persons"),
        *finding(unit_file, columns, "empty-facility", int(under.any(axis=1).sum()),
                 "blocks with more facilities of a kind than persons in them (rows are blocks)",
                 "one person at least in every facility", "take out facilities that are vacant"),
        *zeros,
    ]  # fmt: skip
