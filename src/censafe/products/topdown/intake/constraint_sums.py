"""The constraints of a histogram as exact sums at every level, and whether what is known exactly fits together before anything is measured.

Sums come from results published before, facilities, and the rest of the stack of a histogram. Only figures that are public by themselves are
compared: results that were published before, counts of facilities, which are published for every block, and totals of the records that the
configuration publishes exactly and that neighbors share. No other count of the records is compared with anything: a run that stops where such a
count differs would say so without noise. A result of other records that agrees in all of these figures can therefore not be told from one of
the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, DataError
from censafe.estimation.topdown.levels.facts import standard_depth, standard_geounits
from censafe.estimation.topdown.operator.facilities import ExactSums, FacilityRule, named_blocks
from censafe.estimation.topdown.operator.passes import combined
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import AnswersInStack, FacilityCounts, MeasuredHistogram, constraints_on
from censafe.products.topdown.intake.equations import BlockEquation, BlockRows, KnownBlocks, block_equations
from censafe.products.topdown.intake.facts import declared_totals

_NAMED = 3
_FIX = "fix: give the results that were published of these records"


def constraint_sums(histogram: MeasuredHistogram, known: KnownBlocks) -> ExactSums:
    """The exact sums that the listed constraints of a histogram mean, at every level.

    Its equations together part the cells into classes, each of which one equation must give. Bounds by facility go with them.
    """
    equations = block_equations(histogram, known, stack=True)
    label, rows = _classes(histogram, equations)
    short = np.unique(rows.block[rows.records < 0])
    if len(short):
        raise DataError(
            f"published results: {len(short)} blocks have fewer records in all than in a part, such as "
            f"{named_blocks(known.spine, short)}; fix: give the results that were published of these records"
        )
    order = np.lexsort((rows.group, rows.block))
    order = order[rows.records[order] > 0]
    pointer = np.searchsorted(rows.block[order], np.arange(known.spine.leaf.nodes + 1))
    blocks = SparseLevel(
        known.spine.leaf.geounits,
        pointer.astype(np.int64),
        rows.group[order].astype(np.int32),
        rows.records[order].astype(np.int32),
    )
    require_agreement(known.spine, label, blocks, equations)
    require_totals(histogram, known, blocks)
    bounds = [one for one in constraints_on(histogram) if one.relation != "="]
    if not bounds:
        return ExactSums.of(known.spine, label, blocks)
    # kinds of facility and the fewest records of one; where there is no facility, there are no records
    lower = next(one for one in bounds if one.relation == ">=")
    kind = histogram.schema.grouped(lower.groups).label
    rule = FacilityRule(label, kind, cast(FacilityCounts, lower.right).each)
    for one in bounds:
        if one.relation == "<=" and isinstance(one.right, FacilityCounts):
            require_loose_bound(
                histogram, one.name, np.asarray(one.right.each, np.int64), rule, blocks, known
            )
    return ExactSums.by_facility(known.spine, rule, blocks, known.facilities)


def _classes(
    histogram: MeasuredHistogram, equations: list[BlockEquation]
) -> tuple[NDArray[np.int32], BlockRows]:
    """Classes of cells that the equations tell apart, and the records of each by block.

    A group that is one class gives it; a group of which all classes but one are known gives the last one by difference.
    """
    allowed = histogram.schema.allowed()
    label = combined([one.label + 1 for one in equations])
    first = np.unique(label, return_index=True)[1]
    known = np.bincount(label[allowed], minlength=len(first)) == 0
    groups = [one.label[first] for one in equations]
    rows = []
    for one, of_class in zip(equations, groups, strict=True):
        alone = np.bincount(of_class[~known & (of_class >= 0)], minlength=int(one.label.max()) + 1) == 1
        single = ~known & (of_class >= 0) & alone[of_class]
        undivided = np.bincount(of_class[of_class >= 0], minlength=len(alone))[of_class] == 1
        chosen = np.flatnonzero(single & undivided)
        class_of = np.full(len(alone), -1, np.int64)
        class_of[of_class[chosen]] = chosen
        own = class_of[one.rows.group]
        rows.append(BlockRows(one.rows.block[own >= 0], own[own >= 0], one.rows.records[own >= 0]))
        known[chosen] = True
    while not known.all():
        rest = _by_difference(equations, groups, known, rows)
        if rest is None:
            cells = int((~known)[label].sum())
            raise ConfigError(
                f"histograms.{histogram.name}.constraints: {cells} cells have no exact sum of their own; the equations of a "
                "histogram must part its cells, each part being a group of one of them or what is left of one"
            )
        known[rest.group] = True
        rows.append(rest)
    return label, _joined(rows)


def _by_difference(
    equations: list[BlockEquation],
    groups: list[NDArray[np.int32]],
    known: NDArray[np.bool_],
    rows: list[BlockRows],
) -> BlockRows | None:
    """Records of one class more; None where no group has exactly one class that is not known."""
    for one, of_class in zip(equations, groups, strict=True):
        for group in np.unique(of_class[~known & (of_class >= 0)]).tolist():
            members = np.flatnonzero(of_class == group)
            unknown = members[~known[members]]
            if len(unknown) > 1:
                continue
            so_far, mine = _joined(rows), one.rows.group == group
            taken = np.isin(so_far.group, members)
            blocks = np.concatenate([one.rows.block[mine], so_far.block[taken]])
            records = np.concatenate([one.rows.records[mine], -so_far.records[taken]])
            block, place = np.unique(blocks, return_inverse=True)
            left = np.bincount(place, records, len(block)).astype(np.int64)
            return BlockRows(block, np.full(len(block), unknown[0]), left)
    return None


def _joined(rows: list[BlockRows]) -> BlockRows:
    return BlockRows(*(np.concatenate(parts) for parts in zip(*rows, strict=True)))


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
        wrong = np.sort(standard_geounits(run, lowest)[wrong])
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
    sums: Mapping[str, ExactSums],
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
            or one.right.histogram not in sums
        ):
            continue
        before = sums[one.right.histogram]
        cells = stack[one.right.histogram].schema.grouped(one.right.groups).label >= 0
        expected = _records(before, cells, stack[one.right.histogram].schema.allowed())
        own = histogram.schema.grouped(one.groups).label >= 0
        for other in published:
            if expected is None or not np.array_equal((other.label >= 0)[allowed], own[allowed]):
                continue
            records = np.bincount(other.rows.block, other.rows.records, known.spine.leaf.nodes)
            wrong = np.flatnonzero(records.astype(np.int64) != expected)
            if len(wrong):
                raise DataError(
                    f"published results: constraints {other.name} and {one.name} of {histogram.name} contradict those of "
                    f"{one.right.histogram} in {len(wrong)} blocks, such as {named_blocks(known.spine, wrong)}; {_FIX}"
                )


def _records(
    sums: ExactSums, cells: NDArray[np.bool_], allowed: NDArray[np.bool_]
) -> NDArray[np.int64] | None:
    """Records of a set of cells in every block; None where the exact sums do not give them."""
    if sums.open:
        return None
    classes = int(sums.label.max()) + 1
    inside = np.bincount(sums.label[allowed & cells], minlength=classes) > 0
    if (inside & (np.bincount(sums.label[allowed & ~cells], minlength=classes) > 0)).any():
        return None
    leaf = sums.levels[-1]
    block = np.repeat(np.arange(leaf.nodes), np.diff(leaf.node_ptr))
    chosen = inside[leaf.cell]
    return np.bincount(block[chosen], leaf.count[chosen], leaf.nodes).astype(np.int64)
