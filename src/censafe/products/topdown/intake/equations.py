"""Constraints of a histogram as equations with a right side in every block, from what is known about the blocks exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import DeclaredTotals, PublicFacts
from censafe.estimation.topdown.levels.limits import compact_form
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.sums import reordered
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.histograms import (
    AnswersInStack,
    CellGroups,
    FacilityCounts,
    HistogramSchema,
    LinearConstraint,
    MeasuredHistogram,
    OwnAnswers,
    PublishedAnswers,
    constraints_on,
)
from censafe.products.topdown.intake.results import KnownResult


class BlockRows(NamedTuple):
    """Records by block and group."""

    block: Integers
    group: Integers
    records: Integers


@dataclass(frozen=True, eq=False)
class KnownBlocks:
    """What is known exactly about the blocks of a run, in the order of its spine.

    Args:
        facilities: counts of units by kind, shape (blocks, kinds).
        published: schema and histograms of results that were published before, by result and histogram.
        estimated: schema and final histograms of what this run estimated before, by histogram.
        right_sides: right sides that the files of a run state themselves, by histogram and constraint.
    """

    run: RunSpine
    facilities: NDArray[np.integer] = field(repr=False)
    published: Mapping[tuple[str, str], tuple[HistogramSchema, SparseLevel]] = field(default_factory=dict)
    declared: Mapping[str, DeclaredTotals] = field(default_factory=dict)
    estimated: dict[str, tuple[HistogramSchema, SparseLevel]] = field(default_factory=dict)
    right_sides: Mapping[tuple[str, str], BlockRows] = field(default_factory=dict)

    @property
    def spine(self) -> Spine:
        """The tree that the run walks."""
        return self.run.spine


@dataclass(frozen=True, eq=False)
class BlockEquation:
    """A constraint with its right side by block.

    Args:
        label: group of every cell, -1 for none, shape (cells,).
    """

    name: str
    label: NDArray[np.int32] = field(repr=False)
    rows: BlockRows


def has_exact_sums(histogram: MeasuredHistogram) -> bool:
    """Whether exact sums of published results, of facilities or of its stack constrain a histogram, so that it is estimated in operator form."""
    return compact_form(histogram.schema, constraints_on(histogram)) is None


def follows_stack(histogram: MeasuredHistogram) -> bool:
    """Whether another histogram of its stack must be estimated before, for it holds or informs this one."""
    return histogram.informed is not None or any(
        isinstance(one.right, AnswersInStack) for one in histogram.constraints
    )


def known_blocks(
    public: PublicFacts,
    results: Sequence[KnownResult],
    right_sides: Mapping[tuple[str, str], BlockRows] | None = None,
) -> KnownBlocks:
    """What is known about the blocks of a run before it measures anything."""
    run, facilities = public.run, public.facilities
    published = {}
    for result in results:
        for name, schema in result.schemas.items():
            level = result.blocks(name, run.standard.leaf.geounits)
            if run.order is not None:
                level = reordered(level, run.order, run.spine.leaf.geounits)
            published[result.name, name] = (schema, level)
    return KnownBlocks(
        run, run.in_order(facilities), published, public.declared, right_sides=right_sides or {}
    )


def block_equations(histogram: MeasuredHistogram, known: KnownBlocks, *, stack: bool) -> list[BlockEquation]:
    """The equations of a histogram whose right sides are known."""
    outside = OwnAnswers if stack else OwnAnswers | AnswersInStack
    return [
        _equation(histogram, one, known)
        for one in histogram.constraints
        if one.relation == "=" and not isinstance(one.right, outside)
    ]


def _equation(histogram: MeasuredHistogram, one: LinearConstraint, known: KnownBlocks) -> BlockEquation:
    label, right = histogram.schema.grouped(one.groups).label, one.right
    stated = known.right_sides.get((histogram.name, one.name))
    if isinstance(right, FacilityCounts):
        each = np.asarray(right.each, np.int64)
        block, group = np.nonzero(known.facilities[:, : len(each)])
        records = known.facilities[block, group].astype(np.int64) * each[group]
        return BlockEquation(one.name, label, BlockRows(block, group, records))
    if isinstance(right, PublishedAnswers):
        if stated is not None and (right.result, right.histogram) not in known.published:
            return BlockEquation(one.name, label, stated)
        theirs, level = known.published[right.result, right.histogram]
    elif isinstance(right, AnswersInStack):
        theirs, level = known.estimated[right.histogram]
    else:
        raise TypeError(f"{one.name} has no right side by block")
    rows = _answers(theirs, right.groups, level)
    if stated is not None:
        _require_same(one.name, rows, stated, known)
    return BlockEquation(one.name, label, rows)


def _require_same(name: str, rows: BlockRows, stated: BlockRows, known: KnownBlocks) -> None:
    """Refuse a published result that says other sums than the files of the run."""
    width = 1 + max(int(one.group.max(initial=0)) for one in (rows, stated))
    keys = [one.block * width + one.group for one in (rows, stated)]
    pairs = [np.stack([key, one.records], axis=1) for key, one in zip(keys, (rows, stated), strict=True)]
    both, times = np.unique(np.concatenate(pairs), axis=0, return_counts=True)
    wrong = np.unique(both[times == 1, 0] // width)
    if len(wrong):
        blocks = known.spine.leaf.plain_names(wrong[:3]).tolist()
        raise DataError(
            f"constraint {name}: the published result and the measurement files say other counts in {len(wrong)} blocks, such as "
            f"{', '.join(blocks)}; allowed: the result that was published before the files; fix: give that one, or none"
        )


def _answers(schema: HistogramSchema, groups: CellGroups, level: SparseLevel) -> BlockRows:
    """Sums of the groups of cells in every block."""
    group = schema.grouped(groups).label[level.cell].astype(np.int64)
    block = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    inside = group >= 0
    width = int(group.max(initial=0)) + 1
    key, place = np.unique(block[inside] * width + group[inside], return_inverse=True)
    records = np.bincount(place, level.count[inside], len(key)).astype(np.int64)
    return BlockRows(key // width, key % width, records)
