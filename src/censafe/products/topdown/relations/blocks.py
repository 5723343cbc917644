"""Blocks of a run of the DHC whose persons and households fit: each histogram changed after its estimate, and what could not be met.

Persons are changed first, so that a block has as many householders as the redistricting data have occupied units, and what its
households need of them. Then households are estimated under the householders of every block, and changed so that their sizes, couples
and flags fit its persons. All of it follows from published estimates alone, and costs no budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.relations.fitting import Fitted, meet_relations, missed_by_relation
from censafe.geography.spines.sums import sum_histograms
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.topdown.constraints import FacilityCounts
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.intake.equations import KnownBlocks, block_equations
from censafe.products.topdown.relations.definitions import (
    RelatedHistogram,
    inside,
    related_cells,
    relation_sides,
    relation_targets,
)

_SLACK = 2  # persons that a household of seven or more may have above seven, before more is a last resort


@dataclass(eq=False)
class RelatedBlocks:
    """The relations of one run.

    Args:
        known: about the blocks; the histograms that others are held to are put there.
    """

    histograms: tuple[MeasuredHistogram, ...]
    known: KnownBlocks
    workers: int = 1
    broken: list[dict[str, Any]] = field(default_factory=list)
    moves: dict[str, dict[str, int]] = field(default_factory=dict)
    _persons: SparseLevel | None = None

    def fitted(
        self, histogram: MeasuredHistogram, levels: tuple[SparseLevel, ...], group: NDArray[np.int32]
    ) -> tuple[SparseLevel, ...]:
        """The histograms of all levels after the changes; those without relations as they are.

        Args:
            group: exact sum of every cell; records of one may change places between blocks, shape (cells,).
        """
        side = next(
            (one for one in relation_sides().values() if one.schema.digest == histogram.schema.digest), None
        )
        if side is None:
            return levels
        before = self._persons is None
        persons = levels[-1] if self._persons is None else self._persons
        schema, whole = relation_sides()["persons"].schema, relation_sides()["persons"].whole
        chosen = inside(whole, _at(schema, persons))
        block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
        home = np.bincount(block[chosen], persons.count[chosen], persons.nodes).astype(np.int64)
        occupied = _occupied(self.histograms, self.known)
        target = relation_targets(side.relations, schema, persons, {"home": home, "occupied": occupied})
        cells = related_cells(side, group)
        found = meet_relations(
            self.known.spine, levels[-1], cells, target, slack=_SLACK, workers=self.workers
        )
        self.moves[histogram.name] = {
            "traded": found.traded,
            "changed": found.changed,
            "returned": found.returned,
            "exchanged": found.exchanged,
        }
        missed = missed_by_relation(found.sums, target, cells.rules)
        self.broken += self._broken(side, found, target, missed, home, occupied)
        held = found.blocks
        if before:
            self._persons = found.blocks
            held = _with_householders(side, found.blocks, found.sums[:, 0], occupied)
        self.known.estimated[histogram.name] = (histogram.schema, held)
        return sum_histograms(self.known.spine, found.blocks, histogram.schema.schema.cells)

    def _broken(
        self,
        side: RelatedHistogram,
        found: Fitted,
        target: Integers,
        missed: Integers,
        home: Integers,
        occupied: Integers,
    ) -> Iterator[dict[str, Any]]:
        """Relations of blocks that are missed, as the manifest states them; those that only prepare others are left out."""
        names = [one.name for one in side.relations]
        impossible = (home < occupied) | ((home > 0) & (occupied == 0))
        for block, number in np.argwhere(missed[:, : len(names)] > 0).tolist():
            if side.relations[number].prepares:
                continue
            reason = (
                f"redistricting data: {occupied[block]} occupied units and {home[block]} persons in households"
                if impossible[block]
                else "an integer program found no records that meet it and that the other relations and the edit rules allow"
            )
            yield {
                "geocode": str(self.known.spine.leaf.plain_names(np.array([block]))[0]),
                "relation": names[number],
                "own": int(found.sums[block, number]),
                "right": int(target[block, number]),
                "excess": int(missed[block, number]),
                "reason": reason,
            }

    @property
    def remark(self) -> str:
        """What a certificate says of the choice."""
        blocks = len({one["geocode"] for one in self.broken})
        where = (
            "every block"
            if not blocks
            else f"every block but {blocks}, which the manifest names with the reason"
        )
        return (
            f"Persons and households were made to fit each other: householders, sizes, couples, children and older people agree in {where}. "
            "This used published estimates alone and cost nothing."
        )

    def document(self) -> dict[str, Any]:
        """What the manifest says."""
        blocks = {one["geocode"] for one in self.broken}
        return {
            "moves": self.moves,
            "blocks": self.known.spine.leaf.nodes,
            "blocks_with_exceptions": len(blocks),
            "exceptions_by_relation": dict(Counter(one["relation"] for one in self.broken)),
            "exceptions": self.broken,
        }


def _at(schema: Any, level: SparseLevel) -> Mapping[str, NDArray[np.integer]]:
    names, shape = schema.schema.names, schema.schema.shape
    return dict(zip(names, np.unravel_index(level.cell, shape), strict=True))


def _occupied(histograms: tuple[MeasuredHistogram, ...], known: KnownBlocks) -> Integers:
    """Households of every block, which a published result gives."""
    for histogram in histograms:
        if histogram.schema.digest != relation_sides()["households"].schema.digest:
            continue
        allowed = histogram.schema.allowed()
        for one in block_equations(histogram, known, stack=False):
            if (one.label[allowed] == 0).all():
                return np.bincount(one.rows.block, one.rows.records, known.spine.leaf.nodes).astype(np.int64)
    raise CheckError("joint: no published result gives the households of every block")


def _with_householders(
    side: RelatedHistogram, blocks: SparseLevel, have: Integers, wanted: Integers
) -> SparseLevel:
    """The blocks with as many householders as wanted, for households that are held to them.

    Where redistricting data contradict themselves, a block has not as many: the surplus is left out, and those who are missing are
    like its most frequent householder, or that of all blocks.
    """
    wrong = np.flatnonzero(have != wanted)
    if not len(wrong):
        return blocks
    chosen = inside(side.relations[0].own[0][1], _at(side.schema, blocks))
    usual = int(np.bincount(blocks.cell[chosen], blocks.count[chosen]).argmax())
    block = np.repeat(np.arange(blocks.nodes), np.diff(blocks.node_ptr))
    count = blocks.count.astype(np.int64)
    more: list[tuple[int, int, int]] = []
    for place in wrong.tolist():
        entries = np.flatnonzero(chosen & (block == place))
        missing = int(wanted[place] - have[place])
        if missing > 0:
            largest = int(blocks.cell[entries[count[entries].argmax()]]) if len(entries) else usual
            more.append((place, largest, missing))
        for entry in entries if missing < 0 else ():
            less = min(int(count[entry]), -missing)
            count[entry] -= less
            missing += less
    extra = np.array(more, np.int64).reshape(-1, 3)
    cells = side.schema.schema.cells
    key = np.concatenate([block * cells + blocks.cell, extra[:, 0] * cells + extra[:, 1]])
    key, where = np.unique(key, return_inverse=True)
    total = np.bincount(where, np.concatenate([count, extra[:, 2]]), len(key)).astype(np.int32)
    key, total = key[total > 0], total[total > 0]
    pointer = np.searchsorted(key // cells, np.arange(blocks.nodes + 1))
    return SparseLevel(blocks.geounits, pointer.astype(np.int64), (key % cells).astype(np.int32), total)


def require_housing_units(histograms: tuple[MeasuredHistogram, ...], known: KnownBlocks) -> None:
    """Refuse published occupied and vacant units that are not the housing units of a block, before anything is measured."""
    occupied, measured = _occupied(histograms, known), {one.name: one for one in histograms}
    for right in (one.informed.right for one in histograms if one.informed is not None):
        units = measured[right.histogram]
        allowed = units.schema.allowed()
        published = block_equations(units, known, stack=False)
        own = units.schema.grouped(right.groups).label >= 0
        for kind in units.constraints:
            if not isinstance(kind.right, FacilityCounts) or kind.relation != "=":
                continue
            group = units.schema.grouped(kind.groups).label
            homes = int(group[np.flatnonzero(own)[0]])
            rest = (group == homes) & ~own & allowed
            for vacant in published:
                if not np.array_equal((vacant.label >= 0) & allowed, rest):
                    continue
                found = occupied + np.bincount(vacant.rows.block, vacant.rows.records, len(occupied)).astype(
                    np.int64
                )
                wrong = np.flatnonzero(found != known.facilities[:, homes])
                if len(wrong):
                    blocks = ", ".join(known.spine.leaf.plain_names(wrong[:3]).tolist())
                    raise DataError(
                        f"published results: occupied and vacant units of {len(wrong)} blocks are not their housing units, such as "
                        f"{blocks}; fix: give the results that were published of these records"
                    )
