"""The constraints of a histogram as exact sums at every level: results published before, facilities, and the rest of its stack."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, DataError
from censafe.estimation.topdown.operator.facilities import ExactSums, FacilityRule, named_blocks
from censafe.estimation.topdown.operator.passes import combined
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.topdown.constraints import FacilityCounts, LinearConstraint
from censafe.model.topdown.histograms import MeasuredHistogram, constraints_on
from censafe.products.topdown.intake.agreement import require_agreement, require_loose_bound, require_totals
from censafe.products.topdown.intake.equations import BlockEquation, BlockRows, KnownBlocks, block_equations


def held_sums(histogram: MeasuredHistogram, known: KnownBlocks) -> ExactSums:
    """The exact sums that the listed constraints of a histogram mean, at every level.

    Its equations together part the cells into classes, each of which one equation must give. Bounds by facility go with them.
    """
    equations = block_equations(histogram, known, stack=True)
    label, rows = _classes(histogram, equations)
    blocks = _blocks(known.spine, rows)
    require_agreement(known.spine, label, blocks, equations)
    require_totals(histogram, known, blocks)
    bounds = [one for one in constraints_on(histogram) if one.relation != "="]
    if not bounds:
        return ExactSums.of(known.spine, label, blocks)
    rule = _facility_rule(histogram, label, bounds)
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
        whole = np.bincount(of_class[of_class >= 0], minlength=len(alone))[of_class] == 1
        chosen = np.flatnonzero(single & whole)
        class_of = np.full(len(alone), -1, np.int64)
        class_of[of_class[chosen]] = chosen
        own = class_of[one.rows.group]
        rows.append(BlockRows(one.rows.block[own >= 0], own[own >= 0], one.rows.records[own >= 0]))
        known[chosen] = True
    while not known.all():
        found = _by_difference(equations, groups, known, rows)
        if found is None:
            cells = int((~known)[label].sum())
            raise ConfigError(
                f"histograms.{histogram.name}.constraints: {cells} cells have no exact sum of their own; the equations of a "
                "histogram must part its cells, each part being a group of one of them or what is left of one"
            )
        known[found.group] = True
        rows.append(found)
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


def _blocks(spine: Spine, rows: BlockRows) -> SparseLevel:
    short = np.unique(rows.block[rows.records < 0])
    if len(short):
        raise DataError(
            f"published results: {len(short)} blocks have fewer records in all than in a part, such as "
            f"{named_blocks(spine, short)}; fix: give the results that were published of these records"
        )
    order = np.lexsort((rows.group, rows.block))
    order = order[rows.records[order] > 0]
    pointer = np.searchsorted(rows.block[order], np.arange(spine.leaf.nodes + 1))
    return SparseLevel(
        spine.leaf.geounits,
        pointer.astype(np.int64),
        rows.group[order].astype(np.int32),
        rows.records[order].astype(np.int32),
    )


def _facility_rule(
    histogram: MeasuredHistogram, label: NDArray[np.int32], bounds: list[LinearConstraint]
) -> FacilityRule:
    """Kinds of facility and the fewest records of one; where there is no facility, there are no records."""
    lower = next(one for one in bounds if one.relation == ">=")
    kind = histogram.schema.grouped(lower.groups).label
    return FacilityRule(label, kind, cast(FacilityCounts, lower.right).each)
