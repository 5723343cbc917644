"""Compiled estimation of the common parents of a level: from right sides to integer histograms, one after another.

Whatever is not ordinary (no point, no certificate, a point that cannot be rounded) is left alone and reported, and
goes the general way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int8, int32, int64, types, void
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.ordinary import fit_family
from censafe.estimation.topdown.least_squares.sides import (
    LIMITS,
    KindLimits,
    drop_implied,
    kind_sides,
    tighten_sides,
)
from censafe.estimation.topdown.least_squares.start import MOST_KINDS, share_total
from censafe.estimation.topdown.least_squares.structures import (
    EQUATIONS,
    SIDES,
    ParentEquations,
    Sides,
)
from censafe.estimation.topdown.rounding.network import (
    MarginTree,
    ParentSums,
    count_broken,
    number_nodes,
    round_snapped,
)
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

DONE, LEFT = 1, 0  # how a parent ended: estimated, or left to the general way

_Codes = NDArray[np.int32]


class FamilyArrays(NamedTuple):
    """Parents with their children and cells, one parent after another."""

    child_ptr: Integers  # (parents + 1,) where the children of every parent start
    child: Integers  # geounits of the level
    cell_ptr: Integers  # (parents + 1,) where the cells of every parent start
    cell: _Codes
    records: Integers  # of every cell, above 0


class FamilyAnswers(NamedTuple):
    """What is measured at the level of the children."""

    labels: _Codes  # (queries, cells of the schema) answer of each cell
    weights: Floats  # (kinds, queries) of an answer
    kinds: _Codes  # kind of every geounit
    right: Floats  # B of all parents one after another, each in C order
    right_total: Floats  # right sides of the totals of all children, where these are fitted first
    tables: Floats  # (kinds, sets, M, M) what is known from below about H; empty where that is not used
    combination: _Codes  # (cells of the schema,) the combination, of M, that each cell belongs to
    traits: _Codes  # (attributes, cells of the schema) levels of the exchangeable attributes


class RoundingRules(NamedTuple):
    """How the children of a level are rounded."""

    levels: _Codes  # groups of the cells that are kept close, coarse to fine, shape (L, cells)
    total_weight: int  # price of a unit away from a total; a leaf's is 1
    options: int  # bits of the rounding


class FamilyRules(NamedTuple):
    """What limits the children of a level and how they are rounded, in the types of the kernels."""

    unit_kind: _Codes  # kind of unit of each cell of the schema, shape (cells,)
    limits: KindLimits  # of the geounits
    total_query: int  # ordinal of the query of totals, fitted first and kept; -1 for one fit of all queries
    rounding: RoundingRules


class FamilyResults(NamedTuple):
    """What the estimation of parents leaves."""

    state: NDArray[np.int8]  # (parents,) how each ended
    iterations: Integers  # (parents,)
    measures: Floats  # (parents, 3) violation, gap, cost of rounding
    sizes: Integers  # number of entries of every child
    starts: Integers  # (parents + 1,) where the entries of every parent start
    cell: _Codes  # of every entry
    records: _Codes  # of every entry


_FAMILIES = tuple_type(FamilyArrays, int64[::1], int64[::1], int64[::1], int32[::1], int64[::1])
_ANSWERS = tuple_type(
    FamilyAnswers,
    int32[:, ::1],
    float64[:, ::1],
    int32[::1],
    float64[::1],
    float64[::1],
    float64[:, :, :, ::1],
    int32[::1],
    int32[:, ::1],
)
_ROUNDING = tuple_type(RoundingRules, int32[:, ::1], int64, int64)
_RULES = tuple_type(FamilyRules, int32[::1], LIMITS, int64, _ROUNDING)
_RESULTS = tuple_type(
    FamilyResults, int8[::1], int64[::1], float64[:, ::1], int64[::1], int64[::1], int32[::1], int32[::1]
)


class _Family(NamedTuple):
    """One parent."""

    child: Integers  # (C,) geounits
    cell: _Codes  # (K,) cells of the schema
    p: Integers  # (K,) counts
    kind_of: _Codes  # (K,) kind of unit of each cell; all 0 where nothing bounds them


_FAMILY = tuple_type(_Family, int64[::1], int32[::1], int64[::1], int32[::1])


@compiled(_FAMILY(_FAMILIES, int32[::1], int64))
def _family(families, unit_kind, parent):  # type: ignore[no-untyped-def]
    """One of the parents; ``unit_kind`` is empty where nothing bounds the kinds."""
    cells = slice(families.cell_ptr[parent], families.cell_ptr[parent + 1])
    child = families.child[families.child_ptr[parent] : families.child_ptr[parent + 1]]
    cell = families.cell[cells]
    kind_of = np.zeros(cell.shape[0], dtype=np.int32)
    for k in range(cell.shape[0] if unit_kind.shape[0] > 0 else 0):
        kind_of[k] = unit_kind[cell[k]]
    return _Family(child, cell, families.records[cells], kind_of)


@compiled(int64(int64[::1], int32[::1], int32[::1], int32[::1]))
def _classes(child, kinds, present, h_of):  # type: ignore[no-untyped-def]
    """The distinct kinds of the children, rising, and which one each child has."""
    count = 0
    for c in range(child.shape[0]):
        kind, at = kinds[child[c]], 0
        while at < count and present[at] < kind:
            at += 1
        if at == count or present[at] != kind:
            for i in range(count, at, -1):
                present[i] = present[i - 1]
            present[at] = kind
            count += 1
    for c in range(child.shape[0]):
        for i in range(count):
            if present[i] == kinds[child[c]]:
                h_of[c] = i
    return count


@compiled(void(int32[:, ::1], float64[:, ::1], int32[::1], int32[::1], int64, float64[:, :, ::1]))
def _curvatures(labels, weights, cell, present, without, h):  # type: ignore[no-untyped-def]
    """H of every kind on the parent's cells, the queries in their order, one of them left out."""
    cells = cell.shape[0]
    answer = np.empty(cells, dtype=np.int32)
    h[:] = 0.0
    for q in range(labels.shape[0]):
        for k in range(cells):
            answer[k] = labels[q, cell[k]]
        for g in range(h.shape[0]):
            weight = weights[present[g], q]
            for i in range(cells if weight != 0.0 and q != without else 0):
                own, row = answer[i], h[g, i]
                for j in range(cells):
                    row[j] += weight if answer[j] == own else 0.0


@compiled(boolean(float64[::1], float64[::1], _FAMILY, LIMITS, float64[::1]), apart=True)
def family_totals(weight, b, family, limits, out):  # type: ignore[no-untyped-def]
    """Totals of a parent's children from their measured totals alone, where the kinds of its cells allow these.

    Args:
        weight: of the measured total of every child, shape (C,).
        b: weight times the measured total, shape (C,).
        out: receives the totals, shape (C,).
    """
    child, lower, bounded = family.child, limits.lower, limits.lower.shape[1] > 0
    children, kinds, used = child.shape[0], max(lower.shape[1], 1), 0
    place, have = np.full(kinds, -1), np.zeros(MOST_KINDS)
    for k in range(family.p.shape[0]):
        kind = family.kind_of[k]
        if place[kind] < 0:
            if used == MOST_KINDS:
                return False
            place[kind] = used
            used += 1
        have[place[kind]] += family.p[k]
    least, most = np.zeros((children, used)), np.zeros((children, used))
    for c in range(children):
        if weight[c] <= 0.0:
            return False
        for kind in range(kinds):
            if place[kind] >= 0:
                least[c, place[kind]] = lower[child[c], kind] if bounded else 0
                most[c, place[kind]] = limits.upper[child[c], kind] if bounded else have[place[kind]]
    return share_total(weight, b, have[:used], least, most, out)


@compiled(void(float64[:, :, :, ::1], int32[::1], int32[:, ::1], int32[::1], int32[::1], float64[:, :, ::1]))
def _add_below(tables, combination, traits, cell, present, h):  # type: ignore[no-untyped-def]
    """Add to the H of every kind what is known from below: an entry depends on what two cells agree in."""
    cells = cell.shape[0]
    for i in range(cells):
        first = combination[cell[i]]
        for j in range(cells):
            second, agree = combination[cell[j]], 0
            for axis in range(traits.shape[0]):
                if traits[axis, cell[i]] == traits[axis, cell[j]]:
                    agree |= 1 << axis
            for g in range(h.shape[0]):
                h[g, i, j] += tables[present[g], agree, first, second]


@compiled(EQUATIONS(_ANSWERS, _FAMILY, int64, float64[:, ::1]))
def _equations(answers, family, without, b):  # type: ignore[no-untyped-def]
    """H, b and p of a parent's children: H is the sum of w A'A over the queries but one, and of what is known from below."""
    children, cells = b.shape
    present, h_of = np.empty(children, dtype=np.int32), np.zeros(children, dtype=np.int32)
    classes = _classes(family.child, answers.kinds, present, h_of)
    h = np.empty((classes, cells, cells))
    _curvatures(answers.labels, answers.weights, family.cell, present[:classes], without, h)
    if answers.tables.shape[0] > 0:
        _add_below(answers.tables, answers.combination, answers.traits, family.cell, present[:classes], h)
    return ParentEquations(h, h_of, b, family.p.astype(np.float64), True)


@compiled(SIDES(SIDES, float64[::1]))
def _with_totals(sides, totals):  # type: ignore[no-untyped-def]
    """The sides with the totals as equations in the first row; rows of all cells add nothing to it."""
    rows, lo, hi = sides.rows, sides.lo, sides.hi
    children, cells, used = lo.shape[0], rows.shape[1], 1
    place = np.zeros(rows.shape[0], dtype=np.int64)
    for r in range(rows.shape[0]):
        members = 0
        for k in range(cells):
            members += rows[r, k] != 0
        place[r] = used if members < cells else 0
        used += members < cells
    more = np.ones((used, cells), dtype=np.uint8)
    low, high = np.empty((children, used)), np.empty((children, used))
    for c in range(children):
        low[c, 0] = high[c, 0] = totals[c]
        for r in range(rows.shape[0]):
            if place[r] > 0:
                low[c, place[r]], high[c, place[r]] = lo[c, r], hi[c, r]
    for r in range(rows.shape[0]):
        for k in range(cells if place[r] > 0 else 0):
            more[place[r], k] = rows[r, k]
    return Sides(sides.allowed.copy(), more, low, high, sides.group, sides.group_totals)


@compiled(types.Tuple((SIDES, boolean))(SIDES, int64[::1], float64[::1]), apart=True)
def _fitting_sides(sides, p, totals):  # type: ignore[no-untyped-def]
    """The sides for the fit, with totals where there are any, and tightened; false where there is no point."""
    if totals.shape[0] > 0:
        fitting = _with_totals(sides, totals)
    else:
        lo, hi = sides.lo.copy(), sides.hi.copy()
        fitting = Sides(sides.allowed.copy(), sides.rows, lo, hi, sides.group, sides.group_totals)
    if not tighten_sides(p.astype(np.float64), True, fitting):
        return fitting, False
    drop_implied(fitting)
    return fitting, True


@compiled(int64(int64[:, ::1], int32[::1], int64, int64[::1], _RESULTS))
def _write(counts, cell, at, sizes, results):  # type: ignore[no-untyped-def]
    """Append the entries above 0 of every child; returns where the next ones go."""
    for c in range(counts.shape[0]):
        first = at
        for k in range(counts.shape[1]):
            if counts[c, k] > 0:
                results.cell[at], results.records[at] = cell[k], np.int32(counts[c, k])
                at += 1
        sizes[c] = at - first
    return at


@compiled(float64(float64[:, ::1], int64[::1], int32[::1], _ROUNDING, SIDES, int64[:, ::1]), apart=True)
def round_family(x, p, cell, rules, sides, counts):  # type: ignore[no-untyped-def]
    """Round the children of a parent and check every integer; returns the cost, -1 where it did not work."""
    levels, cells = rules.levels, x.shape[1]
    own = np.empty((levels.shape[0], cells), dtype=np.int32)
    for level in range(levels.shape[0]):
        for k in range(cells):
            own[level, k] = levels[level, cell[k]]
    label = np.zeros((levels.shape[0] + 1, cells), dtype=np.int64)
    parent = np.empty(levels.shape[0] * cells + 1, dtype=np.int64)
    nodes, used = number_nodes(own, label, parent)
    if nodes < 0:
        return -1.0
    weight = np.ones(nodes, dtype=np.int64)
    weight[0] = rules.total_weight
    tree, sums = MarginTree(label[:used], parent[:nodes]), ParentSums(p, True, 0)
    cost = round_snapped(x, sums, sides, tree, weight, rules.options, counts)
    if cost < 0.0:
        return cost
    missed, negative, masked, outside, _ = count_broken(counts, p, True, sides)
    return cost if missed + negative + masked + outside == 0 else -1.0


@compiled(void(_FAMILIES, _ANSWERS, _RULES, _RESULTS))
def estimate_families(families, answers, rules, results):  # type: ignore[no-untyped-def]
    """Estimate parents one after another."""
    base, at, limits, total_query = 0, 0, rules.limits, rules.total_query
    unit_kind = rules.unit_kind if limits.lower.shape[1] > 0 else rules.unit_kind[:0]
    totals_first = total_query >= 0 and limits.totals.shape[0] == 0
    for parent in range(families.child_ptr.shape[0] - 1):
        results.state[parent], results.starts[parent] = LEFT, at
        span = slice(families.child_ptr[parent], families.child_ptr[parent + 1])
        family = _family(families, unit_kind, parent)
        child, cell, p = family.child, family.cell, family.p
        children, cells = child.shape[0], cell.shape[0]
        b = answers.right[base : base + children * cells].reshape(children, cells)
        base += children * cells
        sides = kind_sides(family.kind_of, child, p, True, limits)
        totals = np.empty(children if totals_first else 0)
        if totals_first:
            weight = np.empty(children)
            for c in range(children):
                weight[c] = answers.weights[answers.kinds[child[c]], total_query]
            if not family_totals(weight, answers.right_total[span], family, limits, totals):
                continue
        fitting, good = _fitting_sides(sides, p, totals)
        if not good:
            continue
        x, counts = np.empty((children, cells)), np.empty((children, cells), dtype=np.int64)
        solves, violation, gap, good = fit_family(_equations(answers, family, total_query, b), fitting, x)
        results.iterations[parent], results.measures[parent, 0], results.measures[parent, 1] = (
            solves,
            violation,
            gap,
        )
        if not good:
            continue
        cost = round_family(x, p, cell, rules.rounding, sides, counts)
        if cost >= 0.0:
            results.measures[parent, 2] = cost
            at = _write(counts, cell, at, results.sizes[span], results)
            results.state[parent] = DONE
