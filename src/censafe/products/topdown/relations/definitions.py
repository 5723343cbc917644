"""Relations between the persons and the households of a block, read from their file and brought to the cells of the histograms."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.relations.fitting import BalancedRecords, RelatedCells
from censafe.estimation.topdown.relations.kernels import ANY, EQUAL, FREE, MOST, OPEN, Rules
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.proven import proven
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.definitions import ConditionReader
from censafe.products.topdown.configuration.shipped import shipped_schemas

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
    """What relations ask of one histogram.

    Args:
        variant: attributes whose levels may be exchanged; the others stay with a record.
        parts: conditions of the variants; records stay in theirs, and those in none are left alone.
        recodes: queries of the variant's attributes whose sums a change should leave alone.
        returns: those of them whose sums over all blocks are brought back afterwards: the relations do not tell them better.
        open: condition of records without an upper end of their size; None where there are none.
        balanced: condition of variants, classes of the fixed attributes by which their sums are brought back, and attributes that must be the same of two records that exchange
            their variants for that, as queries; None where nothing is.
    """

    schema: HistogramSchema
    whole: _Cells
    variant: tuple[str, ...]
    parts: tuple[_Cells, ...]
    recodes: tuple[str, ...]
    returns: tuple[str, ...]
    relations: tuple[BlockRelation, ...] = field(repr=False)
    open: _Cells | None = None
    balanced: tuple[_Cells, str, str] | None = None


@lru_cache(maxsize=1)
def relation_sides() -> Mapping[str, RelatedHistogram]:
    """What relations ask of persons and of households, in the order in which these are changed.

    Example:
        >>> {name: len(side.relations) for name, side in relation_sides().items()}
        {'persons': 4, 'households': 12}
    """
    text = resources.files(__package__).joinpath("relations.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    persons = ConditionReader("relations", shipped_schemas()[entries["persons"]["schema"]])
    return {name: _side(entry, persons) for name, entry in entries.items()}


def _side(entry: Mapping[str, Any], persons: ConditionReader) -> RelatedHistogram:
    schema = shipped_schemas()[entry["schema"]]
    own = ConditionReader("relations", schema)
    return RelatedHistogram(
        schema,
        own.read(entry["whole"], {}),
        tuple(entry["variant"]),
        tuple(own.read(text, {}) for text in entry["parts"]),
        tuple(entry["recodes"]),
        tuple(entry["returns"]),
        tuple(
            BlockRelation(
                one["name"],
                tuple((number, own.read(text, {})) for number, text in one["own"]),
                one["relation"],
                tuple(
                    (number, text if text in KNOWN else persons.read(text, {}))
                    for number, text in one["right"]
                ),
                one.get("weight", 1),
                one.get("prepares", False),
            )
            for one in entry["relations"]
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
    found = np.ones(len(next(iter(at.values()))), np.bool_)
    for name, levels in condition.items():
        found &= np.isin(at[name], list(levels))
    return found


def _weighted(
    terms: Sequence[tuple[int, _Cells]], at: Mapping[str, NDArray[np.integer]], size: int = 0
) -> Integers:
    found = np.zeros(size or len(next(iter(at.values()))), np.int64)
    for number, condition in terms:
        found += number * inside(condition, at)
    return found


@proven("relations.proof.md", digest="5d003ceeaefd8a4a")
def relation_targets(
    relations: Sequence[BlockRelation],
    schema: HistogramSchema,
    persons: SparseLevel,
    known: Mapping[str, Integers],
) -> Integers:
    """Right sides of relations in every block, with a zero for the sum that asks for nothing.

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
    found = np.zeros((persons.nodes, len(relations) + 1), np.int64)
    for column, one in enumerate(relations):
        for number, term in one.right:
            if isinstance(term, str):
                found[:, column] += number * known[term]
                continue
            chosen = inside(term, at)
            sums = np.bincount(block[chosen], persons.count[chosen], persons.nodes)
            found[:, column] += number * sums.astype(np.int64)
    return np.maximum(found, 0)
