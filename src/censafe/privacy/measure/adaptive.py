"""The mechanism of SafeTab-P: a noisy total chooses the table of a population group, then its cells are measured.

Every group of the public key domain is measured, populated or not; small totals may be left out afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.model import GroupBlock, GroupMeasurements, GroupSource, NoiseLaw, QueryPlan, TableVariant
from censafe.model.proven import proven
from censafe.privacy.keys import ReleasePartKey, TestPartKey, part_source_of, require_planned
from censafe.privacy.loss.budget import exact
from censafe.privacy.loss.margins import one_sided_threshold
from censafe.privacy.measure.rows import (
    AddressedNoise,
    CellNoise,
    Chosen,
    GroupRows,
    NoNoise,
    checked_block,
    checked_sum,
    noisy_cells,
    sorted_rows,
    tables_text,
    walk,
)

DETAILED_ONLY, STAGE1, STAGE2 = 0, 1, 2
QUERIES = ("detailed_only", "stage1", "stage2")
GROUPS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class AdaptiveTables:
    """Which table a group gets; public.

    Args:
        variants: the table of stat level 0 (one cell, the total), 1, 2 and 3.
        zero_suppression: chance, in [0, 1), with which an empty group is left out where only its total is
            measured; 0 for levels whose groups are all published.
    """

    thresholds: tuple[int, int, int]
    variants: tuple[TableVariant, ...]
    zero_suppression: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if len(self.thresholds) != 3 or list(self.thresholds) != sorted(self.thresholds):
            raise ValueError("there are three thresholds, none below the one before")
        if len(self.variants) != 4 or len(self.variants[0].cells) != 1:
            raise ValueError("there are four table variants, and the first is the total")
        if not 0 <= exact(self.zero_suppression, "zero_suppression") < 1:
            raise ValueError(f"zero_suppression must be at least 0 and below 1, not {self.zero_suppression}")

    @property
    def stride(self) -> int:
        """Number of answers that the addresses of stage 2 keep for every iteration."""
        return len(self.variants[0].slots)

    def bound(self, law: NoiseLaw | None) -> int | None:
        """Totals up to this number are left out; None when none is."""
        if self.zero_suppression == 0:
            return None
        return 0 if law is None else suppression_threshold(law, self.zero_suppression)


def suppression_threshold(law: NoiseLaw, chance: Fraction) -> int:
    """Smallest integer t with P(noise <= t) >= chance.

    Source: SafeTab-P, suppression of small totals. Below one half by symmetry, P(X <= -m) = 1 - P(X <= m - 1), which
    is at least the chance exactly for m up to the smallest one with P(X <= m) >= 1 - chance: no tail of these laws
    is rational, so equality does not occur.

    Example:
        >>> suppression_threshold(NoiseLaw.gaussian(Fraction(625)), Fraction("0.9999"))
        93
        >>> suppression_threshold(NoiseLaw.gaussian(Fraction(625)), Fraction("0.0001"))
        -93
    """
    if chance >= Fraction(1, 2):
        return one_sided_threshold(law, chance)
    return -one_sided_threshold(law, 1 - exact(chance, "chance"))


@proven("adaptive.proof.md", digest="d2286955149e2fa6")
def measure_adaptive(
    source: GroupSource,
    queries: tuple[QueryPlan, ...],
    tables: AdaptiveTables,
    key: ReleasePartKey | TestPartKey,
    *,
    groups_at_once: int = GROUPS_AT_ONCE,
    threads: int = 1,
) -> GroupMeasurements:
    """Measure one population group level once.

    Noise addresses: geounit = ordinal of the region; query 0 the totals of detailed-only groups, 1 the totals that
    choose the table, 2 the cells; answer = ordinal of the iteration, for query 2 times 46 plus the cell.

    Args:
        source: confidential counts of the level.
        queries: the part's queries: detailed-only totals, stage 1, stage 2, as planned and reserved.
        tables: thresholds, table variants and suppression.
        key: part key; its type decides the source of the measurements.
        groups_at_once: groups of one block of work, which bounds the memory.
        threads: number of threads.

    Returns:
        The groups that were not suppressed.

    Raises:
        TypeError: the key or a block is of another type.
        ReleaseError: the queries are not the plan's, or other answers were measured with the same noise before.
        OverflowError: a sum does not fit 64 bits.

    Source: SafeTab-P paper, algorithm of the Detailed DHC-A; ``adaptive.proof.md``.
    """
    if len(queries) != len(QUERIES):
        raise ValueError(f"a part of SafeTab-P has the queries {', '.join(QUERIES)}, not {len(queries)}")
    origin = part_source_of(key)
    require_planned(key, dict(enumerate(queries)))
    laws = tuple(query.law for query in queries)
    noise = AddressedNoise(laws, key)
    bounds = (tables.bound(laws[DETAILED_ONLY]), tables.bound(laws[STAGE2]))
    rows = _walk(source, tables, noise, bounds, groups_at_once, threads)
    return GroupMeasurements(
        level=source.level,
        table="t1t2",
        region=rows.region,
        iteration=rows.iteration,
        stat_level=rows.stat_level,
        stage1=rows.stage1,
        indptr=rows.indptr,
        values=rows.values,
        laws=dict(zip(QUERIES, laws, strict=True)),
        costs={name: query.cost for name, query in zip(QUERIES, queries, strict=True)},
        source=origin,
    )


def count_adaptive(
    source: GroupSource,
    tables: AdaptiveTables,
    *,
    groups_at_once: int = GROUPS_AT_ONCE,
    threads: int = 1,
) -> GroupRows:
    """CONFIDENTIAL. What :func:`measure_adaptive` would give without noise; never a measurement.

    Suppression leaves out the totals of at most 0.
    """
    bound = tables.bound(None)
    return _walk(source, tables, NoNoise(), (bound, bound), groups_at_once, threads)


def _walk(
    source: GroupSource,
    tables: AdaptiveTables,
    noise: CellNoise,
    bounds: tuple[int | None, int | None],
    groups_at_once: int,
    threads: int,
) -> GroupRows:
    text = tables_text(tables.variants, tables.thresholds, source.level.detailed_only.tolist())

    def work(first: int, stop: int) -> GroupRows:
        block = checked_block(source, first, stop)
        noise.claim(block, [text] * (stop - first))
        return _adapt(block, source.level.detailed_only, tables, noise, bounds)

    return walk(source.level, work, groups_at_once=groups_at_once, threads=threads)


@proven("adaptive.proof.md", digest="2b0a6d607d1d1996")
def _adapt(
    block: GroupBlock,
    detailed_only: NDArray[np.bool_],
    tables: AdaptiveTables,
    noise: CellNoise,
    bounds: tuple[int | None, int | None],
) -> GroupRows:
    """Both stages for all groups of a block."""
    regions = np.arange(block.first, block.first + len(block.rows), dtype=np.uint64)
    iterations = len(detailed_only)
    totals = block.totals
    stage1 = checked_sum(totals, noise.grid(STAGE1, regions, iterations))
    passed = np.zeros(stage1.shape, dtype=np.int8)
    for threshold in tables.thresholds:
        passed += stage1 >= threshold
    passed[:, detailed_only] = -1
    pieces = []
    if detailed_only.any():
        drawn = noise.grid(DETAILED_ONLY, regions, iterations)
        chosen = _groups(block, passed, -1)
        local = chosen.region - block.first, chosen.iteration
        total = checked_sum(totals[local], drawn[local])
        passing = _published(total, bounds[0])
        pieces.append((chosen.take(passing), 0, total[passing], total[passing, None]))
    for stat_level, variant in enumerate(tables.variants):
        chosen = _groups(block, passed, stat_level)
        values = noisy_cells(block, chosen, variant, noise, STAGE2, tables.stride)
        if stat_level == 0:
            passing = _published(values[:, 0], bounds[1])
            chosen, values = chosen.take(passing), values[passing]
        pieces.append((chosen, stat_level, stage1[chosen.region - block.first, chosen.iteration], values))
    return sorted_rows(pieces, iterations)


def _groups(block: GroupBlock, passed: NDArray[np.int8], value: int) -> Chosen:
    region, iteration = np.nonzero(passed == value)
    return Chosen(region + block.first, iteration)


def _published(totals: NDArray[np.int64], bound: int | None) -> NDArray[np.bool_]:
    return np.ones(len(totals), dtype=np.bool_) if bound is None else totals > bound
