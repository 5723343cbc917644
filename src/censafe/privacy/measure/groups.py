"""The mechanism of SafeTab-H: basis cells of the population groups that a public list names."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.model import GroupBlock, GroupMeasurements, GroupSource, QueryPlan, TableVariant
from censafe.model.proven import proven
from censafe.privacy.keys import ReleasePartKey, TestPartKey, part_source_of, require_planned
from censafe.privacy.measure.rows import (
    AddressedNoise,
    CellNoise,
    Chosen,
    GroupRows,
    NoNoise,
    checked_block,
    noisy_cells,
    sorted_rows,
    tables_text,
    walk,
)

CELLS = 0
STRIDE = 5
GROUPS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class ListedGroups:
    """Which groups of a level are measured, and with which table; public, from published totals.

    Args:
        region: int32, shape (n,), ordinals of regions.
        iteration: int32, shape (n,), ordinals of iterations; sorted by region and iteration, no group twice.
        stat_level: int8, shape (n,), the position in ``variants`` of the table of every group.
    """

    region: NDArray[np.int32]
    iteration: NDArray[np.int32]
    stat_level: NDArray[np.int8]
    variants: tuple[TableVariant, ...]

    def __post_init__(self) -> None:
        if not len(self.region) == len(self.iteration) == len(self.stat_level):
            raise ValueError("every listed group has a region, an iteration and a stat level")
        if np.any((self.stat_level < 0) | (self.stat_level >= len(self.variants))):
            raise ValueError(f"there are tables for the stat levels 0 to {len(self.variants) - 1}")
        same = self.region[1:] == self.region[:-1]
        later = (self.region[1:] > self.region[:-1]) | (same & (self.iteration[1:] > self.iteration[:-1]))
        if not later.all():
            raise ValueError("listed groups must be sorted by region and iteration, each group once")


@proven("groups.proof.md", digest="7248da6abc0ce823")
def measure_groups(
    source: GroupSource,
    listed: ListedGroups,
    query: QueryPlan,
    table: Literal["t3", "t4"],
    key: ReleasePartKey | TestPartKey,
    *,
    groups_at_once: int = GROUPS_AT_ONCE,
    threads: int = 1,
) -> GroupMeasurements:
    """Measure the listed groups of one level once.

    Noise addresses: geounit = ordinal of the region, query 0, answer = ordinal of the iteration times 5 plus the
    measured cell.

    Args:
        source: confidential counts of the level.
        listed: public list of groups and their tables.
        query: law and cost, as planned and reserved.
        table: ``t3`` or ``t4``.
        key: part key; its type decides the source of the measurements.
        groups_at_once: groups of one block of work, which bounds the memory.
        threads: number of threads.

    Returns:
        Every listed group, and no other.

    Raises:
        TypeError: the key or a block is of another type.
        ValueError: a listed group is not of the level, or a table has more than 5 cells.
        ReleaseError: the query is not the plan's, or other answers were measured with the same noise before.
        OverflowError: a sum does not fit 64 bits.

    Source: SafeTab-H paper, algorithm of the Detailed DHC-B; ``groups.proof.md``.
    """
    if any(len(variant.cells) > STRIDE for variant in listed.variants):
        raise ValueError(f"a table has at most {STRIDE} measured cells, for which the noise has addresses")
    origin = part_source_of(key)
    require_planned(key, {CELLS: query})
    rows = _walk(source, listed, AddressedNoise((query.law,), key), groups_at_once, threads)
    return GroupMeasurements(
        level=source.level,
        table=table,
        region=rows.region,
        iteration=rows.iteration,
        stat_level=rows.stat_level,
        stage1=None,
        indptr=rows.indptr,
        values=rows.values,
        laws={"cells": query.law},
        costs={"cells": query.cost},
        source=origin,
    )


def count_listed_groups(
    source: GroupSource, listed: ListedGroups, *, groups_at_once: int = GROUPS_AT_ONCE, threads: int = 1
) -> GroupRows:
    """CONFIDENTIAL. What :func:`measure_groups` would give without noise; never a measurement."""
    return _walk(source, listed, NoNoise(), groups_at_once, threads)


def _walk(
    source: GroupSource, listed: ListedGroups, noise: CellNoise, groups_at_once: int, threads: int
) -> GroupRows:
    level = source.level
    for name, ordinals, number in (
        ("region", listed.region, len(level.regions)),
        ("iteration", listed.iteration, len(level.iterations)),
    ):
        if ordinals.min(initial=0) < 0 or ordinals.max(initial=-1) >= number:
            raise ValueError(f"{level.name}: a listed group has a {name} that is not of the level")

    def work(first: int, stop: int) -> GroupRows:
        start, end = np.searchsorted(listed.region, [first, stop]).tolist()
        if start == end:
            return sorted_rows([], len(level.iterations))
        block, some = checked_block(source, first, stop), slice(start, end)
        noise.claim(block, _tables(listed, some, range(first, stop)))
        return _measured(block, listed, some, noise)

    return walk(level, work, groups_at_once=groups_at_once, threads=threads)


def _tables(listed: ListedGroups, some: slice, regions: range) -> list[str]:
    """For every region, which of its groups are measured and with which tables."""
    region = listed.region[some]
    iteration, stat_level = listed.iteration[some], listed.stat_level[some]
    ends = np.searchsorted(region, [*regions, regions.stop]).tolist()
    text = tables_text(listed.variants)
    return [
        f"{text} {iteration[start:stop].tolist()} {stat_level[start:stop].tolist()}"
        for start, stop in itertools.pairwise(ends)
    ]


@proven("groups.proof.md", digest="3ea95b3ee904f452")
def _measured(block: GroupBlock, listed: ListedGroups, some: slice, noise: CellNoise) -> GroupRows:
    """Noisy cells of the listed groups of a block."""
    groups = Chosen(listed.region[some].astype(np.int64), listed.iteration[some].astype(np.int64))
    stat_level = listed.stat_level[some]
    pieces = []
    for level, variant in enumerate(listed.variants):
        chosen = groups.take(stat_level == level)
        values = noisy_cells(block, chosen, variant, noise, CELLS, STRIDE)
        pieces.append((chosen, level, np.zeros(len(values), dtype=np.int64), values))
    return sorted_rows(pieces, block.rows.shape[1])
