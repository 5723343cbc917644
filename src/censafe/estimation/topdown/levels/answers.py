"""Exact answers of queries as limits by kind: every cell has a kind, and how many records of each kind an area holds is settled before its cells.

Cells are of one kind where none of the queries that are known exactly at a level, and no bound by facility, tells them apart. Where one query has all
others as sums of its answers, its answers are the counts by kind. Otherwise answers are sums of kinds that overlap: children may then have no counts at all
that add up to their parent, or none in whole numbers. Counts by kind come first here, in whole numbers that meet all answers and bounds, as close as possible
to the least squares estimate; where the parent has to change for that, it changes as little as possible and keeps every answer that is known of it. The
records themselves meet all of this, so that there are always such counts. With counts by kind every level is one of ordinary parents.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.levels.general_parents import Family, family_passes
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.estimation.topdown.levels.passes import InfeasibleError, fitted
from censafe.estimation.topdown.levels.task import CellRules, LevelTask
from censafe.geography.spines.tree import SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Floats, Integers
from censafe.model.programs import Outcome, Program, solve_program

_NODES = 2_000  # of the search for whole numbers, which makes it end at the same point on every machine
_PARENT_PRICE = (
    1_000.0  # price of a record by which a parent changes; a child's that differs from its estimate is 1
)


@dataclass(frozen=True, eq=False)
class KindSums:
    """Sums of counts by kind with their sides.

    Args:
        kinds: kind of every cell, shape (cells,); cells that are always empty have the first.
        members: 0/1 membership of the kinds, shape (S, kinds).
        lower: shape (geounits, S).
        upper: shape (geounits, S).
    """

    kinds: NDArray[np.int32] = field(repr=False)
    members: NDArray[np.uint8] = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)

    def met(self, counts: Integers) -> NDArray[np.bool_]:
        """Which geounits meet them, from counts by kind, shape (geounits,)."""
        own = counts @ self.members.T.astype(np.int64)
        return np.asarray(((own >= self.lower) & (own <= self.upper)).all(axis=1), np.bool_)


def settled(
    task: LevelTask,
    rules: CellRules,
    parents: SparseLevel | None,
    above: SpineLevel | None,
    limits_above: LevelLimits | None,
) -> tuple[LevelLimits, SparseLevel | None, list[dict[str, Any]]]:
    """Counts by kind of every geounit of a level where answers are exact, parents that may have changed for them, and these changes.

    Args:
        limits_above: of the parents; None for a root.
    """
    limits = task.limits
    finest = _finest(limits, rules.allowed)
    if finest is not None:
        label, values = finest
        return replace(limits, lower=values, upper=values, kinds=label, answers={}), parents, []
    known = limits if limits_above is None or not limits_above.answers else limits_above
    kinds = _kinds(limits, known, rules.allowed)
    sums, above_sums = _sums(limits, kinds, rules.allowed), None
    if limits_above is not None:
        above_sums = _answer_sums(limits_above, kinds, rules.allowed)
    counts = np.zeros((task.level.nodes, sums.members.shape[1]), np.int64)
    changed: dict[int, tuple[Integers, Integers]] = {}
    changes: list[dict[str, Any]] = []
    for parent, family in _families(task, rules, parents, above):
        own = slice(family.first, family.last)
        need = None if above_sums is None else (above_sums.members, above_sums.lower[parent])
        target = _target(task, rules, family, sums)
        counts[own] = _integer_counts(target, sums, own, family, need)
        if family.p is None:
            continue
        cells, records = _with_kinds(family, kinds, counts[own].sum(axis=0), rules.allowed)
        before = np.zeros(len(cells), np.int64)
        before[np.isin(cells, family.support)] = family.p
        if not np.array_equal(before, records):
            if rules.infeasible == "stop":
                raise CheckError(
                    f"level {task.level.name}, children of {family.parent or 'the root'}: no histograms add up to it and meet the exact answers"
                )
            changed[parent] = cells, records
            rows = zip(cells.tolist(), before.tolist(), records.tolist(), strict=True)
            moved = [list(row) for row in rows if row[1] != row[2]]
            changes.append({"geounit": family.parent, "cells": moved})
    if (counts < 0).any() or not sums.met(counts).all():
        raise CheckError(
            f"level {task.level.name}: counts by kind miss exact answers; please report this as a bug"
        )
    limits = replace(limits, lower=counts, upper=counts.copy(), kinds=kinds, cuts=None, answers={})
    return limits, _replaced(parents, changed), changes


def with_kinds(rules: CellRules, kinds: NDArray[np.int32]) -> CellRules:
    """Rounding that keeps counts by kind: they come first, and all other groups of cells are parted by them."""

    def parted(label: NDArray[np.int32]) -> NDArray[np.int32]:
        pairs = np.stack([kinds, label])
        return np.unique(pairs, axis=1, return_inverse=True)[1].ravel().astype(np.int32)

    def rounding(
        number: int, chain: tuple[tuple[NDArray[np.int32], ...], ...]
    ) -> tuple[tuple[NDArray[np.int32], ...], ...]:
        total = len(chain) > 1 and len(chain[0]) == 1 and not chain[0][0].any()
        inner = [tuple(map(parted, own)) for own in chain[int(total) :]]
        if number == 0:
            inner[0] = (kinds, *inner[0])
        return (*chain[: int(total)], *inner)

    passes = tuple(
        replace(one, rounding=rounding(number, one.rounding)) for number, one in enumerate(rules.passes)
    )
    return replace(rules, tree=(kinds, *map(parted, rules.tree)), passes=passes)


def kind_sums(limits: LevelLimits, allowed: NDArray[np.bool_]) -> KindSums:
    """What exact answers and bounds by facility say of every geounit of a level.

    Args:
        allowed: which cells may hold records, shape (cells,).
    """
    return _sums(limits, _kinds(limits, limits, allowed), allowed)


def _finest(limits: LevelLimits, allowed: NDArray[np.bool_]) -> tuple[NDArray[np.int32], Integers] | None:
    """The query that has all others as sums of its answers, by label and values; None where there is none, or bounds by facility."""
    if limits.kinds is not None:
        return None
    labels = np.stack([one.label[allowed] for one in limits.answers.values()])
    together = np.unique(labels, axis=1).shape[1]
    for one, label in zip(limits.answers.values(), labels, strict=True):
        if len(np.unique(label)) == together:
            return one.label, one.values
    return None


def _kinds(limits: LevelLimits, known: LevelLimits, allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Kind of every cell; cells that are always empty have the first."""
    labels = [one.label for one in (*limits.answers.values(), *known.answers.values())]
    labels += [] if limits.kinds is None else [limits.kinds]
    kinds = np.zeros(len(allowed), np.int32)
    kinds[allowed] = np.unique(np.stack(labels)[:, allowed], axis=1, return_inverse=True)[1].ravel()
    return kinds


def _answer_sums(limits: LevelLimits, kinds: NDArray[np.int32], allowed: NDArray[np.bool_]) -> KindSums:
    """Exact answers as sums of kinds."""
    number = int(kinds[allowed].max()) + 1
    members, values = [np.zeros((0, number), np.uint8)], [np.zeros((len(limits.lower), 0))]
    for one in limits.answers.values():
        member = np.zeros((one.values.shape[1], number), np.uint8)
        member[one.label[allowed], kinds[allowed]] = 1
        members.append(member)
        values.append(one.values.astype(np.float64))
    sides = np.hstack(values)
    return KindSums(kinds, np.vstack(members), sides, sides)


def _sums(limits: LevelLimits, kinds: NDArray[np.int32], allowed: NDArray[np.bool_]) -> KindSums:
    """Exact answers and bounds by facility as sums of kinds."""
    answers = _answer_sums(limits, kinds, allowed)
    if limits.kinds is None:
        return answers
    member = np.zeros((limits.lower.shape[1], answers.members.shape[1]), np.uint8)
    member[limits.kinds[allowed], kinds[allowed]] = 1
    members, lower, upper = (
        [answers.members, member],
        [answers.lower, limits.lower],
        [answers.upper, limits.upper],
    )
    if limits.cuts is not None:
        members.append((limits.cuts.sets.astype(np.int64) @ member > 0).astype(np.uint8))
        lower.append(limits.cuts.lower)
        upper.append(limits.cuts.upper)
    return KindSums(
        kinds, np.vstack(members), np.hstack(lower).astype(np.float64), np.hstack(upper).astype(np.float64)
    )


def _families(
    task: LevelTask, rules: CellRules, parents: SparseLevel | None, above: SpineLevel | None
) -> list[tuple[int, Family]]:
    """Every parent with records, or every root with the cells that may hold some."""
    if parents is None or above is None:
        families = []
        for root in range(task.level.nodes):
            possible = rules.allowed.copy()
            for one in task.limits.answers.values():
                possible &= one.values[root][np.maximum(one.label, 0)] > 0
            families.append((root, Family("", root, root + 1, np.flatnonzero(possible), None)))
        return families
    names = above.names(np.arange(above.nodes))
    return [
        (parent, Family(
            str(names[parent]), int(above.first_child[parent]), int(above.first_child[parent + 1]),
            parents.cell[first:last].astype(np.int64), parents.count[first:last].astype(np.int64),
        ))
        for parent, (first, last) in enumerate(pairwise(parents.node_ptr.tolist()))
        if last > first
    ]  # fmt: skip


def _target(task: LevelTask, rules: CellRules, family: Family, sums: KindSums) -> Floats:
    """Counts by kind of the least squares estimate of the children, shape (C, kinds)."""
    children, cells = family.last - family.first, len(family.support)
    own, number = sums.kinds[family.support], sums.members.shape[1]
    counts = np.zeros((children, number))
    if not cells:
        return counts
    rows, sides = sums.members[:, own], slice(family.first, family.last)
    problem = ParentProblem(
        np.broadcast_to(np.zeros((1, 1, 1)), (1, cells, cells)), np.zeros((children, cells)), family.p,
        np.ones((children, cells), np.bool_), rows, sums.lower[sides], sums.upper[sides],
    )  # fmt: skip
    (outer,) = family_passes(task.objective, replace(rules, passes=()), family)
    try:
        x, _, cell = fitted(problem, outer, rules.solver, [])
    except InfeasibleError:
        free = np.zeros((children, 0))
        problem = replace(problem, rows=np.zeros((0, cells), np.uint8), lo=free, hi=free)
        # kinds stay apart, as a query of them is
        fits = tuple(replace(one, labels=(*one.labels, own)) for one in outer.fits)
        x, _, cell = fitted(problem, replace(outer, fits=fits), rules.solver, [])
    np.add.at(counts.T, own[np.unique(cell, return_index=True)[1]], x.T)
    return counts


def _integer_counts(
    target: Floats,
    sums: KindSums,
    own: slice,
    family: Family,
    need: tuple[NDArray[np.uint8], Floats] | None,
) -> Integers:
    """Counts by kind next to a target that meet all sums, with the least change of the parent, whose own answers stay, shape (C, kinds)."""
    from scipy import sparse

    children, number = target.shape
    floor = np.floor(target + 1e-6)
    part, size = target - floor, children * number
    entries = sparse.eye(size, format="csr")
    each = sparse.kron(sparse.eye(children), sums.members.astype(np.float64), format="csr")
    have = (floor @ sums.members.T).ravel()
    rows: list[list[Any]] = [[entries, -entries, entries], [each, None, None]]
    low = [part.ravel(), sums.lower[own].ravel() - have]
    high = [part.ravel(), sums.upper[own].ravel() - have]
    cost = [np.zeros(size), np.ones(2 * size)]
    if family.p is not None:
        over = sparse.kron(np.ones((1, children)), sparse.eye(number), format="csr")
        rest = np.bincount(sums.kinds[family.support], family.p, number) - floor.sum(axis=0)
        moved = sparse.eye(number, format="csr")
        rows = [[*row, None, None] for row in rows] + [[over, None, None, -moved, moved]]
        low, high = [*low, rest], [*high, rest]
        cost.append(np.full(2 * number, _PARENT_PRICE))
        if need is not None and len(need[1]):
            members = need[0].astype(np.float64)
            value = need[1] - members @ floor.sum(axis=0)
            rows.append([sparse.csr_matrix(members) @ over, None, None, None, None])
            low, high = [*low, value], [*high, value]
    price = np.concatenate(cost)
    lower = np.zeros(len(price))
    lower[:size] = -floor.ravel()
    program = Program(
        price, sparse.bmat(rows, format="csr"), np.concatenate(low), np.concatenate(high), lower, np.inf,
        np.arange(len(price)) < size,
    )  # fmt: skip
    solution = solve_program(program, nodes=_NODES)
    if solution.x is None:  # any point will do
        solution = solve_program(program._replace(cost=np.zeros(len(price))))
    if solution.x is None:
        said = (
            "contradict each other"
            if solution.outcome is Outcome.INFEASIBLE
            else "could not be met by the solver"
        )
        raise CheckError(
            f"children of {family.parent or 'the root'}: the exact answers {said}; please report this as a bug"
        )
    return np.asarray(floor + np.rint(solution.x[:size]).reshape(children, number), np.int64)


def _with_kinds(
    family: Family, kinds: NDArray[np.int32], records: Integers, allowed: NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """Cells of a parent and their counts once it has some records of each kind; a kind changes in proportion, or begins with its first cell."""
    if family.p is None:
        raise ValueError("a root has no counts")
    have = np.bincount(kinds[family.support], family.p, len(records)).astype(np.int64)
    new = [
        int(np.flatnonzero(allowed & (kinds == kind))[0])
        for kind in np.flatnonzero((have == 0) & (records > 0))
    ]
    cells = np.union1d(family.support, np.array(new, np.int64))
    counts = np.zeros(len(cells), np.int64)
    counts[np.isin(cells, family.support)] = family.p
    for kind in np.flatnonzero(have != records).tolist():
        own = np.flatnonzero(kinds[cells] == kind)
        if have[kind] == 0:
            counts[own[0]] = records[kind]
            continue
        exact = counts[own] * int(records[kind])
        share, rest = exact // have[kind], exact % have[kind]
        order = np.argsort(-rest, kind="stable")
        share[order[: int(records[kind] - share.sum())]] += 1
        counts[own] = share
    return cells, counts


def _replaced(
    parents: SparseLevel | None, changed: dict[int, tuple[Integers, Integers]]
) -> SparseLevel | None:
    """The parents, some of them with other cells and counts."""
    if parents is None or not changed:
        return parents
    cells: list[NDArray[np.integer]] = []
    counts: list[NDArray[np.integer]] = []
    for parent, (first, last) in enumerate(pairwise(parents.node_ptr.tolist())):
        own = changed.get(parent)
        cell, count = own if own is not None else (parents.cell[first:last], parents.count[first:last])
        cells.append(cell[count > 0])
        counts.append(count[count > 0])
    return replace(
        parents,
        node_ptr=np.append(0, np.cumsum([len(one) for one in cells])).astype(np.int64),
        cell=np.concatenate(cells).astype(np.int32),
        count=np.concatenate(counts).astype(np.int32),
    )
