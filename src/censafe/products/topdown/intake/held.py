"""The constraints of a histogram as exact sums at every level: results published before, facilities, and the rest of its stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, DataError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.operator.facilities import FacilityRule
from censafe.estimation.topdown.operator.held import HeldSums
from censafe.estimation.topdown.operator.passes import combined
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
)
from censafe.products.topdown.intake.results import KnownResult

__all__ = ["KnownBlocks", "follows_stack", "held_sums", "is_held", "known_blocks"]


@dataclass(frozen=True, eq=False)
class KnownBlocks:
    """What is known exactly about the blocks of a run, in the order of its spine.

    Args:
        spine: the tree.
        facilities: counts of units by kind, shape (blocks, kinds).
        published: schema and histograms of results that were published before, by result and histogram.
        estimated: schema and final histograms of what this run estimated before, by histogram.
    """

    spine: Spine
    facilities: NDArray[np.integer] = field(repr=False)
    published: Mapping[tuple[str, str], tuple[HistogramSchema, SparseLevel]] = field(default_factory=dict)
    estimated: dict[str, tuple[HistogramSchema, SparseLevel]] = field(default_factory=dict)


def is_held(histogram: MeasuredHistogram) -> bool:
    """Whether exact sums of published results or of its stack constrain a histogram, so that it is estimated in operator form."""
    return any(isinstance(one.right, PublishedAnswers | AnswersInStack) for one in histogram.constraints)


def follows_stack(histogram: MeasuredHistogram) -> bool:
    """Whether another histogram of its stack must be estimated before."""
    return any(isinstance(one.right, AnswersInStack) for one in histogram.constraints)


def known_blocks(public: PublicFacts, results: Sequence[KnownResult]) -> KnownBlocks:
    """What is known about the blocks of a run before it measures anything.

    Args:
        public: what is published exactly.
        results: of other runs, over the same blocks.

    Raises:
        CheckError: a result is of other blocks.
    """
    run, facilities = public.run, public.facilities
    published = {}
    for result in results:
        for name, schema in result.schemas.items():
            level = result.blocks(name, run.standard.leaf.geounits)
            if run.order is not None:
                level = reordered(level, run.order, run.spine.leaf.geounits)
            published[result.name, name] = (schema, level)
    return KnownBlocks(run.spine, facilities if run.order is None else facilities[run.order], published)


class _Rows(NamedTuple):
    """Records by block and group."""

    block: Integers
    group: Integers
    records: Integers


@dataclass(frozen=True, eq=False)
class _Equation:
    """A constraint with its right side by block."""

    name: str
    label: NDArray[np.int32]
    rows: _Rows


def held_sums(histogram: MeasuredHistogram, known: KnownBlocks) -> HeldSums:
    """The exact sums that the constraints of a histogram mean, at every level.

    Its equations together part the cells into classes, each of which one equation must give. Bounds by facility go with them.

    Args:
        histogram: with its constraints.
        known: about the blocks.

    Raises:
        ConfigError: the equations do not give every class of cells.
        DataError: published results contradict each other or the facilities, in named blocks.
    """
    schema = histogram.schema
    equations = [
        _equation(schema, one, known)
        for one in histogram.constraints
        if one.relation == "=" and not isinstance(one.right, OwnAnswers)
    ]
    label, rows = _classes(histogram, equations)
    blocks = _blocks(known.spine, rows)
    _require_agreement(known.spine, label, blocks, equations)
    bounds = [one for one in histogram.constraints if one.relation != "="]
    if not bounds:
        return HeldSums.of(known.spine, label, blocks)
    return HeldSums.by_facility(
        known.spine, _facility_rule(histogram, label, bounds), blocks, known.facilities
    )


def _equation(schema: HistogramSchema, one: LinearConstraint, known: KnownBlocks) -> _Equation:
    label, right = schema.grouped(one.groups).label, one.right
    if isinstance(right, FacilityCounts):
        each = np.asarray(right.each, np.int64)
        block, group = np.nonzero(known.facilities[:, : len(each)])
        records = known.facilities[block, group].astype(np.int64) * each[group]
        return _Equation(one.name, label, _Rows(block, group, records))
    if isinstance(right, PublishedAnswers):
        theirs, level = known.published[right.result, right.histogram]
    elif isinstance(right, AnswersInStack):
        theirs, level = known.estimated[right.histogram]
    else:
        raise TypeError(f"{one.name} has no right side by block")
    return _Equation(one.name, label, _answers(theirs, right.groups, level))


def _answers(schema: HistogramSchema, groups: CellGroups, level: SparseLevel) -> _Rows:
    """Sums of the groups of cells in every block: rows of block, group and records."""
    group = schema.grouped(groups).label[level.cell].astype(np.int64)
    block = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    inside = group >= 0
    width = int(group.max(initial=0)) + 1
    key, place = np.unique(block[inside] * width + group[inside], return_inverse=True)
    records = np.bincount(place, level.count[inside], len(key)).astype(np.int64)
    return _Rows(key // width, key % width, records)


def _classes(histogram: MeasuredHistogram, equations: list[_Equation]) -> tuple[NDArray[np.int32], _Rows]:
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
        rows.append(_Rows(one.rows.block[own >= 0], own[own >= 0], one.rows.records[own >= 0]))
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
    equations: list[_Equation], groups: list[NDArray[np.int32]], known: NDArray[np.bool_], rows: list[_Rows]
) -> _Rows | None:
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
            return _Rows(block, np.full(len(block), unknown[0]), left)
    return None


def _joined(rows: list[_Rows]) -> _Rows:
    return _Rows(*(np.concatenate(parts) for parts in zip(*rows, strict=True)))


def _blocks(spine: Spine, rows: _Rows) -> SparseLevel:
    short = np.unique(rows.block[rows.records < 0])
    if len(short):
        raise DataError(
            f"published results: {len(short)} blocks have fewer records in all than in a part, such as "
            f"{', '.join(spine.leaf.names(short[:3]).tolist())}; fix: give the results that were published of these records"
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


def _require_agreement(
    spine: Spine, label: NDArray[np.int32], blocks: SparseLevel, equations: list[_Equation]
) -> None:
    """Refuse equations of which one says other sums than the classes that were chosen."""
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
            named = ", ".join(spine.leaf.names(wrong[:3]).tolist())
            raise DataError(
                f"published results: constraint {one.name} contradicts the others in {len(wrong)} blocks, such as {named}; "
                "fix: give the results that were published of these records"
            )


def _facility_rule(
    histogram: MeasuredHistogram, label: NDArray[np.int32], bounds: list[LinearConstraint]
) -> FacilityRule:
    """Kinds of facility and the fewest records of one; where there is no facility, there are no records."""
    kinds = {one.groups.query for one in bounds if isinstance(one.right, FacilityCounts)}
    least = [
        one.right.each for one in bounds if one.relation == ">=" and isinstance(one.right, FacilityCounts)
    ]
    if len(kinds) != 1 or len(least) != 1:
        raise ConfigError(
            f"histograms.{histogram.name}.constraints: bounds are given by one kind of facility, with the fewest records of one"
        )
    kind = histogram.schema.grouped(CellGroups(kinds.pop())).label
    return FacilityRule(label, kind, least[0])
