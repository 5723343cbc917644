"""Compiled Newton ascent on the multipliers of a parent in operator form; symbols as in :mod:`.problem`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, void
from numpy.typing import NDArray

from censafe.estimation.topdown.operator.problem import DUAL, ENTRIES, SUMS
from censafe.model.arrays import Floats
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

_MOST_STEPS = 400
_MOST_TRIALS = 16  # of the length of a step
_MOST_PRODUCTS = 2_000  # with the curvature, of one step
_LONGER = 4.0  # factor of a step that leaves more
_ENOUGH = 0.6  # share of the slope that may be left, on either side, at the end of a step
_RIDGE = 3e-2  # at most, for directions in which nothing can move
_LEAST_RIDGE = 1e-12
_INEXACT = 0.3  # share of what is missed that the first step may leave
_EXACTER = 0.8  # factor of that share from step to step
_LEAST_INEXACT = 0.01


@compiled(void(SUMS, int64, int64, float64[::1], float64))
def _add_to_rows(sums, c, k, rows, value):  # type: ignore[no-untyped-def]
    """Add a value to all rows of one entry."""
    for f in range(sums.label.shape[0]):
        g = sums.label[f, k]
        if g >= 0:
            rows[sums.first[f] + c * sums.size[f] + g] += value


@compiled(void(ENTRIES, SUMS, DUAL))
def evaluate(entries, sums, dual):  # type: ignore[no-untyped-def]
    """Write the least point for the multipliers, and what it misses."""
    families, coupled = sums.label.shape[0], sums.column.shape[0] > 0
    # write what is missed where no entry has anything
    for i in range(sums.right.shape[0]):
        dual.missed_row[i] = sums.right[i]
        if sums.weight[i] > 0.0:
            dual.missed_row[i] -= dual.row[i] / sums.weight[i]
    dual.missed_column[:] = sums.column
    for v in range(entries.child.shape[0]):
        c, k = entries.child[v], entries.column[v]
        force = dual.column[k] if coupled else 0.0
        for f in range(families):
            g = sums.label[f, k]
            if g >= 0:
                force += dual.row[sums.first[f] + c * sums.size[f] + g]
        value = max(0.0, entries.target[v] + force / entries.curvature[v])
        dual.x[v] = value
        if value > 0.0:
            _add_to_rows(sums, c, k, dual.missed_row, -value)
            if coupled:
                dual.missed_column[k] -= value


class _Curvature(NamedTuple):
    """Curvature of the dual at a point: entries above 0, with the columns eliminated."""

    row: NDArray[
        np.int32
    ]  # (n, F) place of each row among the used ones, -1 where the family leaves the column out
    column: NDArray[np.int32]  # (n,)
    inverse: Floats  # (n,) 1 / d
    of_row: Floats  # (r,) 1 / w and the ridge of the used rows
    of_column: Floats  # (K,) sum of 1 / d and the ridge; of no length where there is no parent
    used: NDArray[np.int64]  # (r,) rows with an entry above 0


_CURVATURE = tuple_type(
    _Curvature, int32[:, ::1], int32[::1], float64[::1], float64[::1], float64[::1], int64[::1]
)


@compiled(_CURVATURE(ENTRIES, SUMS, DUAL, float64))
def _curvature(entries, sums, dual, ridge):  # type: ignore[no-untyped-def]
    """The curvature at a point whose x is known."""
    families, coupled = sums.label.shape[0], sums.column.shape[0] > 0
    place = np.full(sums.right.shape[0], -1, dtype=np.int32)
    above = 0
    for v in range(entries.child.shape[0]):
        above += dual.x[v] > 0.0
    row, column = np.empty((above, families), dtype=np.int32), np.empty(above, dtype=np.int32)
    inverse, of_column = np.empty(above), np.full(sums.column.shape[0], ridge)
    used = np.empty(min(sums.right.shape[0], above * families), dtype=np.int64)
    n, rows = 0, 0
    for v in range(entries.child.shape[0]):
        if dual.x[v] <= 0.0:
            continue
        c, k = entries.child[v], entries.column[v]
        column[n], inverse[n] = k, 1.0 / entries.curvature[v]
        if coupled:
            of_column[k] += inverse[n]
        for f in range(families):
            row[n, f] = -1
            g = sums.label[f, k]
            if g >= 0:
                i = sums.first[f] + c * sums.size[f] + g
                if place[i] < 0:
                    place[i] = rows
                    used[rows] = i
                    rows += 1
                row[n, f] = place[i]
        n += 1
    of_row = np.full(rows, ridge)
    for r in range(rows):
        if sums.weight[used[r]] > 0.0:
            of_row[r] += 1.0 / sums.weight[used[r]]
    return _Curvature(row, column, inverse, of_row, of_column, used[:rows].copy())


@compiled(float64(int32[:, ::1], int64, float64[::1]))
def _at(row, v, value):  # type: ignore[no-untyped-def]
    """Sum of the values of the rows of one entry."""
    total = 0.0
    for f in range(row.shape[1]):
        if row[v, f] >= 0:
            total += value[row[v, f]]
    return total


@compiled(void(_CURVATURE, float64[::1], float64[::1], float64[::1]))
def _through_columns(curvature, value, across, of_entry):  # type: ignore[no-untyped-def]
    """Write the sum of the rows of every entry, and what the columns make up for."""
    across[:] = 0.0
    coupled = across.shape[0] > 0
    for v in range(curvature.column.shape[0]):
        of_entry[v] = _at(curvature.row, v, value)
        if coupled:
            across[curvature.column[v]] += of_entry[v] * curvature.inverse[v]
    for k in range(across.shape[0]):
        across[k] /= curvature.of_column[k]


@compiled(void(_CURVATURE, float64[::1], float64[::1], float64[::1], float64[::1]))
def _push(curvature, value, across, of_entry, out):  # type: ignore[no-untyped-def]
    """Write the product of the curvature of the rows, after the columns are eliminated, with a vector.

    ``across`` and ``of_entry`` are for work, by column and by entry above 0.
    """
    row, coupled = curvature.row, across.shape[0] > 0
    for r in range(value.shape[0]):
        out[r] = value[r] * curvature.of_row[r]
    _through_columns(curvature, value, across, of_entry)
    for v in range(curvature.column.shape[0]):
        total = of_entry[v]
        if coupled:
            total -= across[curvature.column[v]]
        total *= curvature.inverse[v]
        for f in range(row.shape[1]):
            if row[v, f] >= 0:
                out[row[v, f]] += total


@compiled(void(_CURVATURE, float64[::1], float64[::1]))
def _reduce(curvature, missed_column, rest):  # type: ignore[no-untyped-def]
    """Subtract from what rows miss the part that the columns will make up for."""
    for v in range(curvature.column.shape[0] if missed_column.shape[0] else 0):
        k = curvature.column[v]
        share = curvature.inverse[v] * missed_column[k] / curvature.of_column[k]
        for f in range(curvature.row.shape[1]):
            if curvature.row[v, f] >= 0:
                rest[curvature.row[v, f]] -= share


@compiled(float64[::1](_CURVATURE))
def _diagonal(curvature):  # type: ignore[no-untyped-def]
    """Diagonal of the curvature of the rows after the columns are eliminated."""
    diagonal = curvature.of_row.copy()
    for v in range(curvature.column.shape[0]):
        inverse = curvature.inverse[v]
        own = inverse
        if curvature.of_column.shape[0] > 0:
            own = inverse * (1.0 - inverse / curvature.of_column[curvature.column[v]])
        for f in range(curvature.row.shape[1]):
            if curvature.row[v, f] >= 0:
                diagonal[curvature.row[v, f]] += own
    return diagonal


@compiled(int64(_CURVATURE, float64[::1], float64, float64[::1]))
def _conjugate(curvature, rest, target, step):  # type: ignore[no-untyped-def]
    """Solve for the step of the used rows by conjugate gradients until nothing above the target is left; returns the products."""
    diagonal, rows = _diagonal(curvature), rest.shape[0]
    across, of_entry = np.empty(curvature.of_column.shape[0]), np.empty(curvature.column.shape[0])
    out = np.empty(rows)
    step[:] = 0.0
    scaled = rest / diagonal
    along, length = scaled.copy(), (rest * scaled).sum()
    for product in range(1, _MOST_PRODUCTS + 1):
        _push(curvature, along, across, of_entry, out)
        bend = (along * out).sum()
        if bend <= 0.0:
            return product
        share, most, new = length / bend, 0.0, 0.0
        for r in range(rows):
            step[r] += share * along[r]
            rest[r] -= share * out[r]
            most = max(most, abs(rest[r]))
            scaled[r] = rest[r] / diagonal[r]
            new += rest[r] * scaled[r]
        if most <= target:
            return product
        for r in range(rows):
            along[r] = scaled[r] + new / length * along[r]
        length = new
    return _MOST_PRODUCTS


@compiled(int64(SUMS, DUAL, _CURVATURE, float64, float64, float64[::1], float64[::1]))
def _direction(sums, dual, curvature, ridge, left, row, column):  # type: ignore[no-untyped-def]
    """Write the Newton direction of all multipliers, but for a share that may be left; returns the products that it took."""
    for i in range(row.shape[0]):
        row[i] = dual.missed_row[i] / (ridge + (1.0 / sums.weight[i] if sums.weight[i] > 0.0 else 0.0))
    rest = dual.missed_row[curvature.used]
    _reduce(curvature, dual.missed_column, rest)
    most, step = 0.0, np.empty(rest.shape[0])
    for r in range(rest.shape[0]):
        most = max(most, abs(rest[r]))
    products = 0
    if most > 0.0:
        products = _conjugate(curvature, rest, most * left, step)
        row[curvature.used] = step
    else:
        row[curvature.used] = 0.0
    for k in range(column.shape[0]):
        column[k] = dual.missed_column[k]
    for v in range(curvature.column.shape[0] if column.shape[0] else 0):
        total = 0.0
        for f in range(curvature.row.shape[1]):
            if curvature.row[v, f] >= 0:
                total += row[curvature.used[curvature.row[v, f]]]
        column[curvature.column[v]] -= total * curvature.inverse[v]
    for k in range(column.shape[0]):
        column[k] /= curvature.of_column[k]
    return products


@compiled(types.UniTuple(float64, 2)(DUAL, float64[::1], float64[::1]))
def _slope(dual, row, column):  # type: ignore[no-untyped-def]
    """Slope of the dual along a direction, and the most that the point misses."""
    slope, most = 0.0, 0.0
    for i in range(row.shape[0]):
        slope += dual.missed_row[i] * row[i]
        most = max(most, abs(dual.missed_row[i]))
    for k in range(column.shape[0]):
        slope += dual.missed_column[k] * column[k]
        most = max(most, abs(dual.missed_column[k]))
    return slope, most


@compiled(void(ENTRIES, SUMS, DUAL, float64[::1], float64[::1]))
def _search(entries, sums, dual, row, column):  # type: ignore[no-untyped-def]
    """Move along a direction until little of the slope is left.

    Invariant: the slope of the dual is positive at the length ``near`` and, where ``far`` is set, not positive there.
    """
    from_row, from_column = dual.row.copy(), dual.column.copy()
    slope, _ = _slope(dual, row, column)
    near, near_slope, far, far_slope, length = 0.0, slope, -1.0, 0.0, 1.0
    for _ in range(_MOST_TRIALS):
        for i in range(row.shape[0]):
            dual.row[i] = from_row[i] + length * row[i]
        for k in range(column.shape[0]):
            dual.column[k] = from_column[k] + length * column[k]
        evaluate(entries, sums, dual)
        derivative, _ = _slope(dual, row, column)
        if abs(derivative) <= _ENOUGH * slope:
            return
        if derivative > 0.0:
            near, near_slope = length, derivative
        else:
            far, far_slope = length, derivative
        if far < 0.0:
            length *= _LONGER
            continue
        share = near_slope / (near_slope - far_slope)
        length = near + (far - near) * min(0.9, max(0.1, share))


@compiled(types.Tuple((int64, int64, float64))(ENTRIES, SUMS, DUAL, float64))
def climb(entries, sums, dual, tolerance):  # type: ignore[no-untyped-def]
    """Climb from the given multipliers until no row and no column misses more than a tolerance.

    For given multipliers the point falls apart into its entries, and the dual is concave with a gradient that is linear between
    kinks; so every step along the Newton direction can be checked and shortened.

    Args:
        tolerance: in records, or residuals of measured sums.

    Source: Li, Sun and Toh (2020), "On the efficient computation of a generalized Jacobian of the projector over the
        Birkhoff polytope", for Newton steps by conjugate gradients on active entries.
    """
    row, column = np.empty(dual.row.shape[0]), np.empty(dual.column.shape[0])
    evaluate(entries, sums, dual)
    products = 0
    row[:] = 0.0
    column[:] = 0.0
    for step in range(_MOST_STEPS):
        _, missed = _slope(dual, row, column)
        if missed <= tolerance:
            return step, products, missed
        ridge = min(_RIDGE, 0.1 * _RIDGE * missed) + _LEAST_RIDGE
        curvature = _curvature(entries, sums, dual, ridge)
        # most parents need ten steps, for which rough directions do; where sums overlap a lot, and their weights differ, rough ones go astray
        share = max(_INEXACT * _EXACTER**step, _LEAST_INEXACT)
        left = max(min(share, 0.1 * missed), 0.3 * tolerance / missed)
        products += _direction(sums, dual, curvature, ridge, left, row, column)
        _search(entries, sums, dual, row, column)
    _, missed = _slope(dual, row, column)
    return _MOST_STEPS, products, missed
