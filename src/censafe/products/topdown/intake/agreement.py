"""Whether what is known exactly fits together, before anything is measured.

Only figures that are public by themselves are compared: results that were published before, counts of facilities, which are
published for every block, and totals of the records that the configuration publishes exactly and that neighbors share. No other
count of the records is compared with anything: a run that stops where such a count differs would say so without noise.
A result of other records that agrees in all of these figures can therefore not be told from one of the same records.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import standard_depth, whole_geounits
from censafe.estimation.topdown.operator.facilities import ExactSums, FacilityRule, named_blocks
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.topdown.constraints import AnswersInStack
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.intake.equations import BlockEquation, KnownBlocks, block_equations
from censafe.products.topdown.intake.facts import declared_totals

_NAMED = 3
_FIX = "fix: give the results that were published of these records"


def require_agreement(
    spine: Spine, label: NDArray[np.int32], blocks: SparseLevel, equations: list[BlockEquation]
) -> None:
    """Refuse equations of which one says other sums than the classes that were chosen.

    Args:
        label: class of every cell, shape (cells,).
    """
    class_block = np.repeat(np.arange(blocks.nodes), np.diff(blocks.node_ptr))
    for one in equations:
        first = np.unique(label, return_index=True)[1]
        group = one.label[first][blocks.cell].astype(np.int64)
        width = int(one.label.max()) + 1
        inside = group >= 0
        own = np.zeros(spine.leaf.nodes * width, np.int64)
        np.add.at(own, class_block[inside] * width + group[inside], blocks.count[inside])
        np.subtract.at(own, one.rows.block * width + one.rows.group, one.rows.records)
        wrong = np.unique(np.flatnonzero(own) // width)
        if len(wrong):
            raise DataError(
                f"published results: constraint {one.name} contradicts the others in {len(wrong)} blocks, such as "
                f"{named_blocks(spine, wrong)}; {_FIX}"
            )


def require_totals(histogram: MeasuredHistogram, known: KnownBlocks, blocks: SparseLevel) -> None:
    """Refuse published results whose totals are not those of the records.

    Both sides are public: the configuration declares the totals of the records at these levels exact, and the others are sums
    of published histograms.
    """
    declared, run = known.declared.get(histogram.name), known.run
    depths = [
        depth
        for depth, name in enumerate(run.spine.names)
        if declared is not None and name in {*declared.single, *declared.groups}
    ]
    if declared is None or not depths:
        return
    lowest = depths[-1]  # the totals of the levels above are their sums
    name = run.spine.names[lowest]
    levels = sum_histograms(run.spine, blocks, int(blocks.cell.max(initial=0)) + 1)
    theirs = declared_totals(run, levels, {*declared.single, *declared.groups})
    if name in declared.groups:
        wrong = np.flatnonzero(declared.groups[name].totals != theirs.groups[name].totals)
    else:
        wrong = np.flatnonzero(declared.single[name] != theirs.single[name])
        wrong = np.sort(whole_geounits(run, lowest)[wrong])
    if len(wrong):
        codes = run.standard.levels[standard_depth(run, lowest)].names(wrong[:_NAMED])
        raise DataError(
            f"published results: other totals of {histogram.name} in {len(wrong)} geounits of level {name}, such as "
            f"{', '.join(codes.tolist())}, than the records have; allowed: the totals of level {name}, which are published exactly; {_FIX}"
        )


def require_loose_bound(
    histogram: MeasuredHistogram,
    bound: str,
    most: NDArray[np.int64],
    rule: FacilityRule,
    blocks: SparseLevel,
    known: KnownBlocks,
) -> None:
    """Refuse an upper bound by facility that published sums can exceed: the estimate knows lower bounds alone.

    Args:
        most: records of one facility by kind, shape (kinds,).
    """
    allowed, (kinds,) = histogram.schema.allowed(), most.shape
    can = np.zeros((int(rule.published.max()) + 1, kinds), np.bool_)
    can[rule.published[allowed], rule.kind[allowed]] = True
    block = np.repeat(np.arange(blocks.nodes), np.diff(blocks.node_ptr))
    for kind in range(kinds):
        chosen, facilities = can[blocks.cell, kind], known.facilities[:, kind].astype(np.int64)
        records = np.bincount(block[chosen], blocks.count[chosen], blocks.nodes)
        wrong = np.flatnonzero((facilities > 0) & (records > facilities * most[kind]))
        if len(wrong):
            raise DataError(
                f"constraint {bound} of {histogram.name} could be exceeded in {len(wrong)} blocks by kind {kind}, such as "
                f"{named_blocks(known.spine, wrong)}; allowed: upper bounds that no published sum exceeds, as in "
                "production; fix: a larger number, or no upper bound"
            )


def require_stack_agreement(
    histogram: MeasuredHistogram,
    stack: Mapping[str, MeasuredHistogram],
    held: Mapping[str, ExactSums],
    known: KnownBlocks,
) -> None:
    """Refuse published results that say other sums of a histogram than those that its stack will have, which is estimated before.

    A constraint to another histogram of the stack adds up to the records of a set of its cells. Where exact sums of that histogram
    give their number in every block, it is compared with what published results say of the same cells of this histogram.
    """
    allowed = histogram.schema.allowed()
    published = block_equations(histogram, known, stack=False)
    for one in histogram.constraints:
        if (
            not isinstance(one.right, AnswersInStack)
            or one.relation != "="
            or one.right.histogram not in held
        ):
            continue
        before = held[one.right.histogram]
        cells = stack[one.right.histogram].schema.grouped(one.right.groups).label >= 0
        expected = _records(before, cells, stack[one.right.histogram].schema.allowed())
        own = histogram.schema.grouped(one.groups).label >= 0
        for other in published:
            if expected is None or not np.array_equal((other.label >= 0)[allowed], own[allowed]):
                continue
            found = np.bincount(other.rows.block, other.rows.records, known.spine.leaf.nodes)
            wrong = np.flatnonzero(found.astype(np.int64) != expected)
            if len(wrong):
                raise DataError(
                    f"published results: constraints {other.name} and {one.name} of {histogram.name} contradict those of "
                    f"{one.right.histogram} in {len(wrong)} blocks, such as {named_blocks(known.spine, wrong)}; {_FIX}"
                )


def _records(
    held: ExactSums, cells: NDArray[np.bool_], allowed: NDArray[np.bool_]
) -> NDArray[np.int64] | None:
    """Records of a set of cells in every block; None where the exact sums do not give them."""
    if held.open:
        return None
    classes = int(held.label.max()) + 1
    inside = np.bincount(held.label[allowed & cells], minlength=classes) > 0
    if (inside & (np.bincount(held.label[allowed & ~cells], minlength=classes) > 0)).any():
        return None
    leaf = held.levels[-1]
    block = np.repeat(np.arange(leaf.nodes), np.diff(leaf.node_ptr))
    chosen = inside[leaf.cell]
    return np.bincount(block[chosen], leaf.count[chosen], leaf.nodes).astype(np.int64)
