"""Blocks of a run of the DHC whose persons and households fit: each histogram changed after its estimate, and what could not be met.

Persons are changed first, so that a block has as many householders as the redistricting data have occupied units, and what its
households need of them. Then households are estimated under the householders of every block, and changed so that their sizes, couples
and flags fit its persons. All of it follows from published estimates alone, and costs no budget.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.operator.parent import level_sums
from censafe.estimation.topdown.relations import (
    ANY,
    EQUAL,
    FREE,
    MOST,
    OPEN,
    BalancedRecords,
    Fitted,
    RelatedCells,
    Rules,
    meet_relations,
    missed_by_relation,
)
from censafe.geography.spines.sums import sum_histograms
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.cells.lines import ConditionReader
from censafe.model.proven import proven
from censafe.model.topdown.histograms import FacilityCounts, HistogramSchema, MeasuredHistogram
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.intake.equations import KnownBlocks, block_equations


def following(blocks: SparseLevel, label: NDArray[np.int32], target: Integers) -> SparseLevel:
    """Histograms with the target sums of groups of cells; blocks and groups that have them stay as they are.

    Where a sum changes, the cells of the group share it as they did in the block before, with one record that is shared as in all blocks
    together beside them. These shares are raked so that all blocks together have the shares that they had, and what does not divide is carried
    from block to block.

    Args:
        label: group of every cell, -1 for none, whose records stay; shape (cells,).
        target: sums of the groups, shape (blocks, groups).

    Example:
        >>> two = SparseLevel(np.array(["a", "b"]), np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), np.array([4, 9, 2], np.int32))
        >>> result = following(two, np.array([0, 0, -1], np.int32), np.array([[2], [2]]))
        >>> result.node_ptr.tolist(), result.cell.tolist(), result.count.tolist()
        ([0, 2, 3], [0, 2, 1], [2, 9, 2])
    """
    change = level_sums(blocks, label, target.shape[1]) != target
    block = np.repeat(np.arange(blocks.nodes), np.diff(blocks.node_ptr))
    group = label[blocks.cell]
    stays = (group < 0) | ~change[block, group]
    pieces = [(block[stays], blocks.cell[stays].astype(np.int64), blocks.count[stays].astype(np.int64))]
    for number in range(target.shape[1]):
        chosen = np.flatnonzero(change[:, number])
        cells = np.flatnonzero(label == number)
        here = group == number
        usual = np.bincount(np.searchsorted(cells, blocks.cell[here]), blocks.count[here], len(cells))
        own = np.zeros((blocks.nodes, len(cells)))
        own[block[here], np.searchsorted(cells, blocks.cell[here])] = blocks.count[here]
        shares = own[chosen] + (usual + 1.0) / (usual + 1.0).sum()
        all_of_it = usual / max(usual.sum(), 1.0) * target[:, number].sum()
        changed = all_of_it - (own.sum(axis=0) - own[chosen].sum(axis=0))
        new = _shared_out(target[chosen, number], _raked(shares, target[chosen, number], changed))
        place, cell = np.nonzero(new)
        pieces.append((chosen[place], cells[cell], new[place, cell]))
    at, cell, count = (np.concatenate(part) for part in zip(*pieces, strict=True))
    order = np.lexsort((cell, at))
    pointer = np.searchsorted(at[order], np.arange(blocks.nodes + 1)).astype(np.int64)
    return SparseLevel(blocks.geounits, pointer, cell[order].astype(np.int32), count[order].astype(np.int32))


_RAKINGS = 50


def _raked(shares: NDArray[np.float64], total: Integers, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of rows under which the totals of the rows come near to sums of columns; 0 and less are left out."""
    for _ in range(_RAKINGS):
        current = (total / shares.sum(axis=1)) @ shares
        shares = shares * np.where((current > 0) & (columns > 0), columns / np.maximum(current, 1e-9), 1.0)
    return shares


def _shared_out(total: Integers, shares: NDArray[np.float64]) -> Integers:
    """Whole numbers that add up to the totals of rows, in proportion to shares; remainders are carried down the rows, column by column."""
    shared = np.zeros(shares.shape, np.int64)
    left, weight = total.astype(np.int64), shares.sum(axis=1)
    for column in range(shares.shape[1] - 1):
        exact = np.cumsum(left * (shares[:, column] / weight))
        steps = np.diff(np.floor(exact + 0.5), prepend=0.0).astype(np.int64)
        shared[:, column] = np.clip(steps, 0, left)
        left = left - shared[:, column]
        weight = weight - shares[:, column]
    shared[:, -1] = left
    return shared


KNOWN: Final = ("occupied", "home")
"""Counts of every block that redistricting data give: occupied housing units, and persons in households."""
_Cells = Mapping[str, frozenset[int]]
"""Levels by attribute; attributes that are not there are free."""
_CODES: Final = {"equal": EQUAL, "at most": MOST, "any": ANY, "open": OPEN}


@dataclass(frozen=True)
class BlockRelation:
    """One relation of every block.

    Args:
        relation: of the sum to the right side: ``equal``, ``at most``, ``any`` or ``open``.
    """

    name: str
    own: tuple[tuple[int, _Cells], ...]
    relation: str
    right: tuple[tuple[int, str | _Cells], ...]
    weight: int = 1
    prepares: bool = False


@dataclass(frozen=True)
class RelatedHistogram:
    """The relations of one histogram.

    Args:
        variant: attributes whose levels may be exchanged; the others stay with a record.
        parts: conditions of the variants; records stay in theirs, and those in none are left alone.
        recodes: queries of the variant's attributes whose sums a change should leave alone.
        returns: those of them whose sums over all blocks are brought back afterwards: the relations do not determine them better.
        open: condition of records without an upper end of their size; None where there are none.
        balanced: condition of variants, classes of the fixed attributes by which their sums are brought back, and attributes that must be the same of two records that exchange
            their variants for that, as queries; None where nothing is.
    """

    schema: HistogramSchema
    records: _Cells
    variant: tuple[str, ...]
    parts: tuple[_Cells, ...]
    recodes: tuple[str, ...]
    returns: tuple[str, ...]
    relations: tuple[BlockRelation, ...] = field(repr=False)
    open: _Cells | None = None
    balanced: tuple[_Cells, str, str] | None = None


@lru_cache(maxsize=1)
def relation_sides() -> Mapping[str, RelatedHistogram]:
    """The relations of persons and of households, in the order in which these are changed.

    Example:
        >>> {name: len(side.relations) for name, side in relation_sides().items()}
        {'persons': 4, 'households': 12}
    """
    text = resources.files(__package__).joinpath("relations.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    of_persons = shipped_schemas()[entries["persons"]["schema"]]
    persons = ConditionReader("relations", of_persons.schema, of_persons.tables, of_persons.labels)
    return {name: _side(entry, persons) for name, entry in entries.items()}


def _side(entry: Mapping[str, Any], persons: ConditionReader) -> RelatedHistogram:
    schema = shipped_schemas()[entry["schema"]]
    own = ConditionReader("relations", schema.schema, schema.tables, schema.labels)
    return RelatedHistogram(
        schema,
        own.read(entry["whole"], {}),
        tuple(entry["variant"]),
        tuple(own.read(text, {}) for text in entry["parts"]),
        tuple(entry["recodes"]),
        tuple(entry["returns"]),
        tuple(
            BlockRelation(
                relation["name"],
                tuple((number, own.read(text, {})) for number, text in relation["own"]),
                relation["relation"],
                tuple(
                    (number, text if text in KNOWN else persons.read(text, {}))
                    for number, text in relation["right"]
                ),
                relation.get("weight", 1),
                relation.get("prepares", False),
            )
            for relation in entry["relations"]
        ),
        own.read(entry["open"], {}) if "open" in entry else None,
        (own.read(entry["balanced"]["records"], {}), entry["balanced"]["by"], entry["balanced"]["alike"])
        if "balanced" in entry
        else None,
    )


def related_cells(side: RelatedHistogram, group: NDArray[np.int32]) -> RelatedCells:
    """The cells of a histogram with what the relations ask of them.

    Args:
        group: of every cell; records of one group may change places between blocks, shape (cells,).
    """
    schema = side.schema.schema
    sizes = dict(zip(schema.names, schema.shape, strict=True))
    fixed = [name for name in schema.names if name not in side.variant]
    levels = dict(zip(schema.names, np.unravel_index(np.arange(schema.cells), schema.shape), strict=True))
    shape = tuple(sizes[name] for name in side.variant)
    variant = np.ravel_multi_index(tuple(levels[name] for name in side.variant), shape).astype(np.int32)
    frame = np.ravel_multi_index(
        tuple(levels[name] for name in fixed), tuple(sizes[name] for name in fixed)
    ).astype(np.int32)
    cell = np.empty((int(frame.max()) + 1, int(np.prod(shape))), np.int32)
    cell[frame, variant] = np.arange(schema.cells, dtype=np.int32)
    at = {name: levels[name][cell[0]] for name in side.variant}
    part = np.full(cell.shape[1], -1, np.int32)
    for number, condition in enumerate(side.parts):
        part[inside(condition, at)] = number
    balanced = None
    if side.balanced is not None:
        chosen, by, alike = side.balanced
        labels = [
            np.repeat(side.schema.query(text).label[cell[:, 0]], len(side.parts)) for text in (by, alike)
        ]
        balanced = BalancedRecords(inside(chosen, at), *labels)
    return RelatedCells(frame, variant, cell, part, group, _rules(side, cell, part, at), balanced)


def _rules(
    side: RelatedHistogram,
    cell: NDArray[np.int32],
    part: NDArray[np.int32],
    at: Mapping[str, NDArray[np.integer]],
) -> Rules:
    sums = np.stack(
        [_weighted(one.own, at) for one in side.relations]
        + [_weighted([(1, side.open)] if side.open is not None else [], at, cell.shape[1])],
        axis=1,
    )
    rows, signature = np.unique(sums, axis=0, return_inverse=True)
    may = side.schema.allowed()[cell]
    allowed = np.stack([may & (part == number) for number in range(len(side.parts))], axis=1)
    recodes = np.stack([side.schema.query(text).label[cell[0]] for text in side.recodes])
    return Rules(
        signature.reshape(-1).astype(np.int32),
        np.ascontiguousarray(rows),
        np.array([*(_CODES[one.relation] for one in side.relations), FREE], np.int64),
        np.array([*(one.weight for one in side.relations), 1], np.int64),
        np.ascontiguousarray(allowed.reshape(-1, cell.shape[1])),
        np.ascontiguousarray(recodes, np.int32),
        np.isin(side.recodes, side.returns) / np.sqrt(recodes.max(axis=1) + 1.0),
    )


def inside(condition: _Cells, at: Mapping[str, NDArray[np.integer]]) -> NDArray[np.bool_]:
    """Which of some cells a condition holds for."""
    mask = np.ones(len(next(iter(at.values()))), np.bool_)
    for name, levels in condition.items():
        mask &= np.isin(at[name], list(levels))
    return mask


def _weighted(
    terms: Sequence[tuple[int, _Cells]], at: Mapping[str, NDArray[np.integer]], size: int = 0
) -> Integers:
    total = np.zeros(size or len(next(iter(at.values()))), np.int64)
    for number, condition in terms:
        total += number * inside(condition, at)
    return total


@proven("relations.proof.md", digest="e6a777b9a294e06c")
def relation_targets(
    relations: Sequence[BlockRelation],
    schema: HistogramSchema,
    persons: SparseLevel,
    known: Mapping[str, Integers],
) -> Integers:
    """Right sides of relations in every block, with a zero for the sum of records in no relation.

    Args:
        relations: of a histogram.
        schema: of persons.
        persons: of the blocks.
        known: counts of every block by name.

    Returns:
        int64, not below 0, shape (blocks, relations + 1).
    """
    names, shape = schema.schema.names, schema.schema.shape
    at = dict(zip(names, np.unravel_index(persons.cell, shape), strict=True))
    block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
    targets = np.zeros((persons.nodes, len(relations) + 1), np.int64)
    for column, relation in enumerate(relations):
        for number, term in relation.right:
            if isinstance(term, str):
                targets[:, column] += number * known[term]
                continue
            chosen = inside(term, at)
            sums = np.bincount(block[chosen], persons.count[chosen], persons.nodes)
            targets[:, column] += number * sums.astype(np.int64)
    return np.maximum(targets, 0)


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
        schema, scope = relation_sides()["persons"].schema, relation_sides()["persons"].records
        chosen = inside(scope, _at(schema, persons))
        block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
        home = np.bincount(block[chosen], persons.count[chosen], persons.nodes).astype(np.int64)
        occupied = _occupied(self.histograms, self.known)
        target = relation_targets(side.relations, schema, persons, {"home": home, "occupied": occupied})
        cells = related_cells(side, group)
        fitted = meet_relations(
            self.known.spine, levels[-1], cells, target, slack=_SLACK, workers=self.workers
        )
        self.moves[histogram.name] = {
            "traded": fitted.traded,
            "changed": fitted.changed,
            "returned": fitted.returned,
            "exchanged": fitted.exchanged,
        }
        missed = missed_by_relation(fitted.sums, target, cells.rules)
        self.broken += self._broken(side, fitted, target, missed, home, occupied)
        balanced = fitted.blocks
        if before:
            self._persons = fitted.blocks
            balanced = _with_householders(side, fitted.blocks, fitted.sums[:, 0], occupied)
        self.known.estimated[histogram.name] = (histogram.schema, balanced)
        return sum_histograms(self.known.spine, fitted.blocks, histogram.schema.schema.cells)

    def _broken(
        self,
        side: RelatedHistogram,
        fitted: Fitted,
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
                "own": int(fitted.sums[block, number]),
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
        for equation in block_equations(histogram, known, stack=False):
            if (equation.label[allowed] == 0).all():
                return np.bincount(equation.rows.block, equation.rows.records, known.spine.leaf.nodes).astype(
                    np.int64
                )
    raise CheckError("joint: no published result gives the households of every block")


def _with_householders(
    side: RelatedHistogram, blocks: SparseLevel, have: Integers, target: Integers
) -> SparseLevel:
    """The blocks with as many householders as the target, for households that depend on them.

    Where redistricting data contradict themselves, a block has not as many: the surplus is left out, and those who are missing are
    like its most frequent householder, or that of all blocks.
    """
    wrong = np.flatnonzero(have != target)
    if not len(wrong):
        return blocks
    chosen = inside(side.relations[0].own[0][1], _at(side.schema, blocks))
    usual = int(np.bincount(blocks.cell[chosen], blocks.count[chosen]).argmax())
    block = np.repeat(np.arange(blocks.nodes), np.diff(blocks.node_ptr))
    count = blocks.count.astype(np.int64)
    more: list[tuple[int, int, int]] = []
    for place in wrong.tolist():
        entries = np.flatnonzero(chosen & (block == place))
        missing = int(target[place] - have[place])
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
                recorded = occupied + np.bincount(
                    vacant.rows.block, vacant.rows.records, len(occupied)
                ).astype(np.int64)
                wrong = np.flatnonzero(recorded != known.facilities[:, homes])
                if len(wrong):
                    blocks = ", ".join(known.spine.leaf.plain_names(wrong[:3]).tolist())
                    raise DataError(
                        f"published results: occupied and vacant units of {len(wrong)} blocks are not their housing units, such as "
                        f"{blocks}; fix: give the results that were published of these records"
                    )
