"""What a file of block histograms must look like, its checks, and its sparse form. Findings hold no value of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.geography.crosswalk import CrosswalkLevel
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.grfc import BlockAreas
from censafe.geography.identifiers import are_census_levels
from censafe.geography.spines.tree import LevelRule, Spine
from censafe.model.schema import Schema
from censafe.model.sparse import ExactHistograms
from censafe.population.findings import Finding, stated

MOST_COUNT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class OtherHistogram:
    """A histogram that is neither that of the persons nor occupancy.

    Args:
        empty: bool, shape (cells,), cells that must be empty.
    """

    name: str
    schema: Schema
    empty: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, eq=False)
class HistogramLayout:
    """The histograms of a product and the bounds that its facilities set.

    Args:
        unit_columns: columns of the unit file: one for each kind of unit, and others that are passed through.
        occupied: whether the unit file has a column ``occupied``, for the histogram of occupancy.
        least: persons that every unit of a kind must hold; empty where units do not bound persons.
        most: persons that every unit of a kind can hold; as many as `least`.
        empty: bool, shape (cells,), cells that must be empty; of no length without persons.
        census_blocks: whether the geocodes are those of census blocks: 16 digits of which the block group is the first
            digit of the block; 15 digits, without the block group, are then read as well.
        kind: attribute of the schema whose levels are the kinds of unit, or recode whose groups are.
        kinds: kind of unit of every cell, int32, shape (cells,); None for the levels of the attribute.
        crosswalk: levels whose areas a crosswalk gives, the widest first; their codes are part of `rules`, not of the files.
    """

    schema: Schema | None
    rules: tuple[LevelRule, ...]
    unit_columns: tuple[str, ...]
    occupied: bool
    least: tuple[int, ...]
    most: tuple[int, ...]
    empty: NDArray[np.bool_]
    census_blocks: bool
    kind: str = "hhgq"
    kinds: NDArray[np.int32] | None = field(default=None, repr=False)
    crosswalk: tuple[CrosswalkLevel, ...] = ()
    others: tuple[OtherHistogram, ...] = ()

    @property
    def form(self) -> GeocodeForm:
        """What the geocode of a block looks like in the files."""
        leaf_form = self.rules[-1].form
        return replace(leaf_form, length=leaf_form.length - sum(level.length for level in self.crosswalk))

    @property
    def census_codes(self) -> bool:
        """Whether the levels are those of U.S. census geography, whose codes are compared with the list of counties."""
        return self.census_blocks and are_census_levels(rule.digits for rule in self.rules)

    @property
    def kind_of_cell(self) -> NDArray[np.int32]:
        """Kind of unit of every cell, shape (cells,); empty where units do not bound persons."""
        if self.schema is None or not self.least:
            return np.zeros(0, np.int32)
        return self.schema.levels_of(self.kind) if self.kinds is None else self.kinds


@dataclass(frozen=True, eq=False)
class BlockData:
    """CONFIDENTIAL. The histograms of all blocks, and what is published about them as it is.

    Args:
        persons: exact histograms, blocks in the order of the spine; None where the layout has no schema of persons.
        facilities: int32, shape (blocks, unit columns): housing units and facilities, published as they are.
        units: exact histograms of occupancy (cell 0 vacant, 1 occupied), or None where the layout has none.
        imputed: in words, what in these data was not read but made up by a rule.
        areas: American Indian areas, places and county subdivisions of the blocks; None where the input has none. Public.
    """

    spine: Spine
    persons: ExactHistograms | None = field(repr=False)
    facilities: NDArray[np.int32] = field(repr=False)
    units: ExactHistograms | None = field(repr=False)
    imputed: tuple[str, ...]
    files: tuple[Path, ...]
    areas: BlockAreas | None = None
    findings: tuple[Finding, ...] = ()
    others: Mapping[str, ExactHistograms] = field(default_factory=dict, repr=False)
    names: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("block data are confidential and cannot be pickled")


def no_persons(file: str, persons: int) -> list[Finding]:
    """A finding that stops where there is no person at all; nothing could be measured of such a file."""
    return [] if persons else stated("blocks.no-persons", file)


def histograms_of(
    spine: Spine, keys: NDArray[np.int64], counts: NDArray[np.int64], cells: int
) -> tuple[ExactHistograms, int, int]:
    """Sparse histograms from entries in any order.

    Args:
        keys: shape (entries,), position of the block times the number of cells, plus the cell.
        counts: shape (entries,), not negative; entries of zero are left out, those of one key are added up.
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
        housing: housing units of every block, shape (blocks,).
    """
    return table_histograms(spine, np.stack([housing - occupied, occupied], axis=1))


def table_histograms(spine: Spine, counts: NDArray[np.integer]) -> ExactHistograms:
    """Sparse histograms from counts of all cells that fit, shape (blocks, cells), not negative."""
    block, cell = np.nonzero(counts)
    pointer = np.searchsorted(block, np.arange(len(counts) + 1)).astype(np.int64)
    values = counts[block, cell].astype(np.int32, copy=False)
    return ExactHistograms(spine.leaf.geounits, pointer, cell.astype(np.int32), values)


def zero_findings(
    counts: ExactHistograms, empty: NDArray[np.bool_], file: str, records: str = "persons"
) -> list[Finding]:
    """A finding where cells that must be empty hold records.

    Args:
        empty: shape (cells,).
    """
    return stated("blocks.must-be-empty", file, int(np.count_nonzero(empty[counts.cell])), records=records)


_BLOCKS = 1 << 20  # that are compared at once


def facility_findings(
    persons: ExactHistograms,
    facilities: NDArray[np.int32],
    layout: HistogramLayout,
    names: tuple[str, str],
) -> list[Finding]:
    """Blocks whose persons do not fit their facilities, and cells that must be empty.

    Args:
        facilities: shape (blocks, unit columns).
    """
    file, unit_file = names
    zeros = zero_findings(persons, layout.empty, file)
    levels = len(layout.least)
    if not levels:
        return zeros
    none = over = under = 0
    for first in range(0, persons.nodes, _BLOCKS):
        pointer = persons.node_ptr[first : first + _BLOCKS + 1]
        blocks, entries = len(pointer) - 1, slice(int(pointer[0]), int(pointer[-1]))
        block = np.repeat(np.arange(blocks), np.diff(pointer))
        kinds = block * levels + layout.kind_of_cell[persons.cell[entries]]
        residents = np.bincount(kinds, persons.count[entries], blocks * levels).reshape(-1, levels)
        units = facilities[first : first + blocks, :levels].astype(np.int64)
        absent = (residents > 0) & (units == 0)
        none += int(absent.any(axis=1).sum())
        over += int(((residents > units * np.array(layout.most)) & ~absent).any(axis=1).sum())
        under += int((residents < units * np.array(layout.least)).any(axis=1).sum())
    columns = f"{layout.unit_columns[0]} to {layout.unit_columns[levels - 1]}"
    most = ", ".join(f"{value:,}" for value in sorted(set(layout.most)))
    return [
        *stated("blocks.no-facility", file, none, column=layout.kind, units=unit_file),
        *stated("blocks.too-many-persons", file, over, column=layout.kind, most=most),
        *stated("blocks.empty-facility", unit_file, under, column=columns),
        *zeros,
    ]
