"""Open records of a parent's children split among kinds of facility: whole numbers, near an estimate, that the blocks can follow.

A split of a block's records x[r, k], row r being a published sum of the block and k a kind of its facilities, adds up to the row
over k, to the parent's group over the blocks of its children, and over the rows of a block to at least what its facilities of kind
k need. Every level starts from the split that the level above was settled with; it meets all of these, so that there always is one,
whatever a solver does. A split is improved in two ways:

* Some records of the split that meet the needs stay where they are. What is left is a flow from the rows of an area that have one
  published sum and one set of kinds to its groups and on to those of the parent; its cheapest one is integral, and is handed
  to the blocks in any way. Nothing needed: the same flow without records that stay bounds the distance from below.
* Where that bound is not attained to 1 percent and the program is small, an integer program is solved; its point is checked exactly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, vstack

from censafe.errors import CheckError
from censafe.estimation.topdown.operator.facilities import OpenRecords, kinds_of_sets, spread
from censafe.estimation.topdown.operator.newton import climb
from censafe.estimation.topdown.operator.parent import (
    OpenSums,
    OperatorFamily,
    observed_answers,
    pass_columns,
    positions,
    zero_multipliers,
)
from censafe.estimation.topdown.operator.passes import OperatorRules
from censafe.estimation.topdown.operator.problem import pass_problem
from censafe.estimation.topdown.rounding.network import min_cost_flow
from censafe.model.arrays import Floats, Integers
from censafe.model.programs import Outcome, Program, solve_program

_MOST_UNKNOWNS = 5_000  # of an integer program
_MOST_BRANCHES = 50
_GAP = 0.01  # relative, of an integer program
_ROUNDS = 4
_SMALL = 1e-6  # records
_UNIT_BITS = 20


class _Split(NamedTuple):
    """Every way that a row of open records may go, and the sums that a split must meet and should be near; no two unknowns are alike."""

    row: Integers  # (n,) of every unknown
    need: Integers  # (n,) place in ``least``
    total: Integers  # (n,) place in ``target``
    group: Integers  # (n,) group of the parent
    cell: Integers  # (rows,) area, published sum and set of kinds of every row
    slot: Integers  # (n,) cell and kind
    records: Integers  # (rows,)
    least: Integers  # of a block and kind
    target: Floats  # of an area and group
    parent: Integers | None  # by group

    def distance(self, x: Integers) -> float:
        return float(np.abs(np.bincount(self.total, x, len(self.target)) - self.target).sum())

    def meets(self, x: Integers) -> bool:
        """Whether a split is one; in whole numbers."""
        totals = (_total(self.row, x, len(self.records)), _total(self.need, x, len(self.least)))
        good = (x >= 0).all() and (totals[0] == self.records).all() and (totals[1] >= self.least).all()
        if self.parent is not None:
            good = good and (_total(self.group, x, len(self.parent)) == self.parent).all()
        return bool(good)


def _total(place: Integers, x: Integers, size: int) -> Integers:
    total = np.zeros(size, np.int64)
    np.add.at(total, place, x)
    return total


def split_open(
    rows: OpenRecords, span: tuple[int, int], groups: dict[tuple[int, int], int], target: Floats,
    parent: Integers | None,
) -> tuple[Integers, Integers] | None:  # fmt: skip
    """Split the open records of consecutive geounits among kinds, close to an estimate, so that their blocks can follow.

    Args:
        span: first and one past the last geounit.
        target: estimated open records of every geounit and group, shape (C, G).
        parent: open records of the parent by group, shape (G,); None at a root.

    Returns:
        Records by geounit and group, int64, shape (C, G), and the split of the rows, as in :class:`OpenRecords`; None where there is none,
        which two ways to solve the program say.
    """
    at = rows.rows(*span)
    kinds = kinds_of_sets(rows.kinds[at], rows.width)
    row, column = np.nonzero(kinds >= 0)
    split, size = _unknowns(rows, span, groups, target, parent, (row, kinds[row, column]))
    x = None if rows.split is None else rows.split[at][row, column]
    if x is not None and not split.meets(x):
        raise CheckError(
            "the split of a parent's open records does not fit its counts; please report this as a bug"
        )
    x = _program_split(split, None) if x is None else _near_split(split, x)
    if x is None:
        return None
    blocks = np.zeros(kinds.shape, np.int64)
    blocks[row, column] = x
    totals = np.zeros(target.size, np.int64)
    np.add.at(totals, size, x)
    return totals.reshape(target.shape), blocks


def _unknowns(
    rows: OpenRecords, span: tuple[int, int], groups: dict[tuple[int, int], int], target: Floats,
    parent: Integers | None, choices: tuple[Integers, Integers],
) -> tuple[_Split, Integers]:  # fmt: skip
    """The split of consecutive geounits, and the area and group of every unknown as one number."""
    at, (row, kind) = rows.rows(*span), choices
    area, published = rows.area[at] - span[0], rows.published[at]
    pairs, of_pair = np.unique(np.stack([published[row], kind], axis=1), axis=0, return_inverse=True)
    known = np.array([groups[int(p), int(k)] for p, k in pairs], np.int64)
    group = known[of_pair.reshape(-1)]
    need = rows.least[int(rows.least_pointer[span[0]]) : int(rows.least_pointer[span[1]])]
    radix = np.int64(max(int(kind.max(initial=0)), int(need[:, 2].max(initial=0))) + 1)
    keys = need[:, 1] * radix + need[:, 2]  # rise, for blocks and kinds do
    of_need = np.searchsorted(keys, rows.place[at][row] * radix + kind)
    cell = np.unique(np.stack([area, published, rows.kinds[at]], axis=1), axis=0, return_inverse=True)[1]
    cell = cell.reshape(-1).astype(np.int64)
    slot = np.unique(cell[row] * radix + kind, return_inverse=True)[1].reshape(-1).astype(np.int64)
    of_sum = area[row] * target.shape[1] + group
    used, place = np.unique(of_sum, return_inverse=True)
    split = _Split(
        row, of_need, place.reshape(-1), group, cell, slot, rows.count[at], need[:, 3], target.ravel()[used], parent,
    )  # fmt: skip
    return split, of_sum


def _near_split(split: _Split, x: Integers) -> Integers:
    """A split at most as far from the estimate as another one, and the nearest one where that is small or shown."""
    bound = split.distance(_flow(split, np.zeros_like(x)))
    best = split.distance(x)
    for _ in range(_ROUNDS):
        if best <= bound + _SMALL:
            return x
        # records of a split that meet the needs exactly, from the rows that have the most
        order = np.lexsort((-x, split.need))
        before = np.cumsum(x[order]) - x[order]
        need = split.need[order]
        first = np.searchsorted(need, np.arange(len(split.least)))
        start = np.append(before, 0)[first]
        stay = np.zeros_like(x)
        stay[order] = np.clip(split.least[need] - (before - start[need]), 0, x[order])
        nearer = _flow(split, stay)
        distance = split.distance(nearer)
        if distance >= best - _SMALL:
            break
        x, best = nearer, distance
    if best > bound * (1 + _GAP) + _SMALL and len(x) <= _MOST_UNKNOWNS:
        other = _program_split(split, _MOST_BRANCHES)
        if other is not None and split.distance(other) < best - _SMALL:
            return other
    return x


def _flow(split: _Split, stay: Integers) -> Integers:
    """The nearest split in which some records stay and nothing else is needed: by the cheapest flow."""
    free = split.records - _total(split.row, stay, len(split.records))
    slots, first = np.unique(split.slot, return_index=True)
    of_slot = split.cell[split.row[first]]
    cells, sums = int(split.cell.max()) + 1, len(split.target)
    single = split.parent is None
    sinks = 1 if split.parent is None else len(split.parent)
    nodes = cells + sums + sinks
    group = np.zeros(sums, np.int64)
    group[split.total] = 0 if single else split.group
    supply = np.zeros(nodes, np.int64)
    supply[:cells] = _total(split.cell, free, cells)
    if split.parent is None:
        supply[-1] = -free.sum()
    else:
        supply[cells + sums :] = _total(split.group, stay, sinks) - split.parent
    floor = np.floor(split.target)
    part, have = split.target - floor, _total(split.total, stay, sums)
    unit = 1 << max(0, min(_UNIT_BITS, 60 - 2 * (nodes + 1).bit_length()))
    ends = np.arange(cells, cells + sums), cells + sums + group
    arcs = (
        (of_slot, cells + split.total[first], np.full(len(slots), free.sum()), np.zeros(len(slots), np.int64)),
        (*ends, np.maximum(floor.astype(np.int64) - have, 0), np.full(sums, -unit)),
        (*ends, ((part > 0) & (floor >= have)).astype(np.int64), np.rint((1 - 2 * part) * unit).astype(np.int64)),
        (*ends, np.full(sums, free.sum()), np.full(sums, unit)),
    )  # fmt: skip
    tail, head, capacity, cost = (np.concatenate(part).astype(np.int64) for part in zip(*arcs, strict=True))
    flow = np.zeros(len(tail), np.int64)
    min_cost_flow(nodes, tail, head, capacity, cost * (nodes + 1), supply, flow)
    return stay + spread((split.cell, free), (of_slot, flow[: len(slots)]), split.row, split.slot)


def _program_split(split: _Split, branches: int | None) -> Integers | None:
    """The nearest split by an integer program, checked; without a limit of branches a split is needed, and None says that there is none.

    The distance of a sum from the estimate bends only at whole numbers: records up to its floor, the one that crosses it and those
    beyond are three unknowns, so that the relaxed program has mostly whole solutions.
    """
    size, sums = len(split.row), len(split.target)
    width = size + 3 * sums
    every, of_sum = np.arange(size), np.arange(sums)
    blocks = [
        (split.row, split.records, split.records),
        (split.need, split.least, np.full(len(split.least), np.inf)),
    ]
    if split.parent is not None:
        blocks.append((split.group, split.parent, split.parent))
    matrices = [
        coo_array((np.ones(size), (place, every)), shape=(len(low), width)) for place, low, _ in blocks
    ]
    entries = (
        (split.total, every, np.ones(size)),
        *((of_sum, size + part * sums + of_sum, -np.ones(sums)) for part in range(3)),
    )
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrices.append(coo_array((value, (row, column)), shape=(sums, width)))
    low, high = (
        np.concatenate([*(block[side] for block in blocks), np.zeros(sums)]).astype(float) for side in (1, 2)
    )
    floor = np.floor(split.target)
    cost = np.concatenate([np.zeros(size), -np.ones(sums), 1 - 2 * (split.target - floor), np.ones(sums)])
    upper = np.concatenate([np.full(size, np.inf), floor, np.ones(sums), np.full(sums, np.inf)])
    program = Program(cost, vstack(matrices, format="csr"), low, high, 0.0, upper, np.arange(width) < size)
    solution = solve_program(program, nodes=branches, gap=_GAP)
    x = None if solution.x is None else np.rint(solution.x[:size]).astype(np.int64)
    if x is not None and split.meets(x):
        return x
    if branches is None and solution.outcome is not Outcome.INFEASIBLE:
        raise CheckError(
            "the solver did not split the open records of a parent among kinds of facility; this says nothing about the data; please report this as a bug"
        )
    return None


_ROUGH = 0.1  # records, of estimates that only say how whole open records are split


def settle_open(rules: OperatorRules, family: OperatorFamily) -> tuple[OperatorFamily, Integers | None]:
    """Decide the open records of the children: near the estimate under the published sums, so that their blocks can follow.

    Returns:
        The family without open records, its answers still those of the cells that it had; the split of the rows of its children, None
        where nothing is open.
    """
    opened = family.open
    if opened is None:
        return family, None
    groups = {(int(p), int(k)): g for g, (p, k) in enumerate(zip(opened.published, opened.kind, strict=True))}
    target = np.maximum(_estimate(rules, family, opened, groups) - family.right, 0.0)
    left = None
    if family.count is not None:
        group = positions(family.groups, rules.passes[0].group[family.cell], family.name)
        left = np.bincount(group, family.count, len(family.groups)).astype(np.int64) - family.right.sum(
            axis=0
        )
    settled = split_open(opened.rows, opened.span, groups, target, left)
    if settled is None:
        raise CheckError(
            f"{family.name}: no split among kinds of facility meets its own counts and the facilities of its children"
        )
    return replace(family, right=family.right + settled[0], open=None), settled[1]


def _estimate(
    rules: OperatorRules, family: OperatorFamily, opened: OpenSums, groups: dict[tuple[int, int], int]
) -> Floats:
    """Records of every child and group by least squares under the published sums alone, shape (C, G)."""
    stage, first = rules.passes[0], opened.span[0]
    rows = opened.rows.rows(*opened.span)
    child, published, kinds = (
        opened.rows.area[rows] - first,
        opened.rows.published[rows],
        opened.rows.kinds[rows],
    )
    can = family.right > 0
    for c, total, bits in zip(child.tolist(), published.tolist(), kinds.tolist(), strict=True):
        for kind in range(bits.bit_length()):
            if bits >> kind & 1 and (total, kind) in groups:
                can[c, groups[total, kind]] = True
    sums, of_group = np.unique(opened.published, return_inverse=True)
    right = np.zeros((len(family.right), len(sums)), np.int64)
    np.add.at(right.T, of_group, family.right.T)
    np.add.at(right, (child, np.searchsorted(sums, published)), opened.rows.count[rows])
    _, cell, column = pass_columns(stage, family)
    group = positions(family.groups, stage.group[cell], family.name)
    problem = pass_problem(
        of_group[group].astype(np.int32),
        right,
        column,
        observed_answers(rules, stage, family, cell),
        can[:, group],
    )
    dual = zero_multipliers(problem)
    climb(problem.entries, problem.sums, dual, _ROUGH)
    estimate = np.zeros(family.right.shape)
    entries = problem.entries
    np.add.at(estimate, (entries.child, group[problem.free[entries.column]]), dual.x)
    return estimate
