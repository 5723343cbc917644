"""One pass of one parent as a problem in operator form: its algebra, what the exact sums decide alone, and the rest.

Children c share the columns k of their parent, the cells or groups of cells that one pass tells apart. An entry v is a pair
(c, k) that may hold records. With one measured target t and curvature d for every entry, and sums of entries over groups of columns,
each a row i of some child, the problem is

    minimize    1/2 sum_v d_v (x_v - t_v)^2  +  1/2 sum_i w_i (R_i x - b_i)^2         over the measured rows (w > 0)
    subject to  R_i x = b_i over the exact rows (w = 0),   sum_c x_ck = p_k,   x >= 0.

With one multiplier y_i a row and one s_k a column, the point of least value is x_v = max(0, t_v + (s_k + sum_i R_iv y_i) / d_v),
and what is missed is F_i = b_i - y_i / w_i - R_i x (without y / w where w = 0) and F_k = p_k - sum_c x_ck. Both are the gradient of the
concave dual function, whose curvature along a direction needs the positive entries alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, void
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.objective import GroupAnswers, OperatorObjective
from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type


class Entries(NamedTuple):
    """Pairs of child and column that may hold records, child by child."""

    child: NDArray[np.int32]  # (N,)
    column: NDArray[np.int32]  # (N,)
    target: Floats  # (N,) t
    curvature: Floats  # (N,) d, above 0


class Sums(NamedTuple):
    """Sums of every child over groups of columns, family by family; the row of child c and group g is first + c size + g."""

    label: NDArray[np.int32]  # (F, K) group of every column, -1 where the family leaves it out
    first: Integers  # (F,)
    size: Integers  # (F,) groups of the family
    right: Floats  # (R,) b
    weight: Floats  # (R,) w, 0 where the sum is exact
    column: Floats  # (K,) p, what the children add up to; of no length where there is no parent


class Dual(NamedTuple):
    """Multipliers, and the point that is least for them with what it misses."""

    row: Floats  # (R,) y
    column: Floats  # (K,) s, or of no length
    x: Floats  # (N,)
    missed_row: Floats  # (R,)
    missed_column: Floats  # (K,) or of no length


ENTRIES = tuple_type(Entries, int32[::1], int32[::1], float64[::1], float64[::1])
SUMS = tuple_type(Sums, int32[:, ::1], int64[::1], int64[::1], float64[::1], float64[::1], float64[::1])
DUAL = tuple_type(Dual, float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])


class Observed(NamedTuple):
    """Noisy answers of one query at the children, for the columns of a parent."""

    group: NDArray[np.int32]  # (K,) answer of every column, numbered from 0
    values: Integers  # (C, answers)
    weight: Floats  # (C,) 0 where nothing is measured


@dataclass(frozen=True, eq=False)
class PassProblem:
    """The problem of one pass of one parent.

    Args:
        fixed: counts that follow from the exact sums alone, int64, shape (C, K).
        free: columns with entries that do not, positions among the K.
        right: exact sums of the children, int64, shape (C, sums).
        scale: the curvatures and weights of the problem times this are those of the measurements.
    """

    fixed: Integers = field(repr=False)
    free: Integers = field(repr=False)
    group: NDArray[np.int32] = field(repr=False)
    right: Integers = field(repr=False)
    entries: Entries = field(repr=False)
    sums: Sums = field(repr=False)
    scale: float

    @property
    def objective(self) -> OperatorObjective:
        """What is measured of the free columns, as a function of their counts, in half chi-square units."""
        children, columns = len(self.fixed), len(self.free)
        entries, sums, shape = self.entries, self.sums, (children, columns)
        diagonal, target = np.zeros(shape), np.zeros(shape)
        diagonal[entries.child, entries.column] = entries.curvature * self.scale
        target[entries.child, entries.column] = entries.target
        answers = []
        for label, first, size in zip(sums.label[1:], sums.first[1:], sums.size[1:], strict=True):
            rows = slice(int(first), int(first + children * size))
            right, weight = sums.right[rows], sums.weight[rows] * self.scale
            answers.append(GroupAnswers(label, right.reshape(-1, size), weight.reshape(-1, size)))
        return OperatorObjective(diagonal, target, tuple(answers))

    def counts_of(self, x: Floats) -> Floats:
        """Values of the entries by child and free column, 0 where there is no entry."""
        counts = np.zeros((len(self.fixed), len(self.free)))
        counts[self.entries.child, self.entries.column] = x
        return counts


@compiled(int64(int64[:, ::1], int32[::1], int64[::1], int64[:, ::1], int32[::1], int32[::1]))
def _list_entries(right, group, column, fixed, child_out, column_out):  # type: ignore[no-untyped-def]
    """List the pairs that the exact sums leave open and write what they decide; returns their number.

    An exact sum of one child takes all of its columns; an exact sum of one column takes the sums of the children. ``column`` are the counts
    of the parent, of no length where there is none.
    """
    children, sums = right.shape
    members, positive = np.zeros(sums, dtype=np.int64), np.zeros(sums, dtype=np.int64)
    for k in range(group.shape[0]):
        members[group[k]] += 1
    for c in range(children):
        for g in range(sums):
            positive[g] += right[c, g] > 0
    entries = 0
    for c in range(children):
        for k in range(group.shape[0]):
            g = group[k]
            if right[c, g] <= 0:
                continue
            if members[g] == 1:
                fixed[c, k] = right[c, g]
            elif positive[g] == 1 and column.shape[0] > 0:
                fixed[c, k] = column[k]
            else:
                if child_out.shape[0] > 0:
                    child_out[entries], column_out[entries] = c, k
                entries += 1
    return entries


def pass_problem(
    group: NDArray[np.int32],
    right: Integers,
    column: Integers | None,
    observed: list[Observed],
    possible: NDArray[np.bool_] | None = None,
) -> PassProblem:
    """Presolve a pass of a parent and set up what is left.

    Args:
        group: exact sum of every column, shape (K,).
        right: exact sums of every child, int64, shape (C, sums).
        column: counts of the parent by column, int64, shape (K,); None at a root.
        possible: which columns a child may have, shape (C, K), where that differs within exact sums; then nothing is fixed.
    """
    counts = np.zeros(0, np.int64) if column is None else column
    fixed = np.zeros((len(right), len(group)), np.int64)
    if possible is None:
        none = np.zeros(0, np.int32)
        size = _list_entries(right, group, counts, fixed, none, none)
        child, place = np.empty(size, np.int32), np.empty(size, np.int32)
        if size:
            _list_entries(right, group, counts, fixed, child, place)
    else:
        child, place = (places.astype(np.int32) for places in np.nonzero(possible & (right[:, group] > 0)))
        size = len(child)
    free, back = np.unique(place, return_inverse=True)
    new = back.astype(np.int32)
    open_column = counts[free] - fixed[:, free].sum(axis=0) if column is not None else counts
    # an exact sum is open at every child or at none: its columns are many and its children are several
    used, label = np.unique(group[free], return_inverse=True)
    families = [_Family(label.astype(np.int32), right[:, used].astype(np.float64), np.zeros(len(right)))]
    curvature, target = np.zeros(size), np.zeros(size)
    for query in observed:
        family = _measured(query, fixed, free, child, new, curvature, target)
        if family is not None:
            families.append(family)
    if size and not curvature.min() > 0.0:
        raise CheckError("every cell that is estimated needs a measured answer of its own")
    scale = float(curvature.max(initial=0.0)) or 1.0
    target /= np.where(curvature > 0.0, curvature, 1.0)
    return PassProblem(
        fixed, free, group[free], right,
        Entries(child, new, target, curvature / scale),
        _stacked(families, len(right), open_column.astype(np.float64), scale),
        scale,
    )  # fmt: skip


class _Family(NamedTuple):
    label: NDArray[np.int32]  # (free columns,)
    right: Floats  # (C, groups)
    weight: Floats  # (C,) 0 for an exact family


def _measured(
    query: Observed, fixed: Integers, free: Integers, child: NDArray[np.int32], new: NDArray[np.int32],
    curvature: Floats, target: Floats,
) -> _Family | None:  # fmt: skip
    """Put the answers that concern one open column into its curvature and target; the family of the others, if there are any."""
    values = query.values.astype(np.float64)
    if fixed.size:
        _subtract(query.group, fixed, values)
    used, label = np.unique(query.group[free], return_inverse=True)
    values = np.ascontiguousarray(values[:, used])
    single = np.bincount(label, minlength=len(used))[label] == 1
    if single.any():
        _add_single(child, new, single, label.astype(np.int32), query.weight, values, curvature, target)
    if single.all() or not query.weight.any():
        return None
    several = np.where(single, -1, label)
    used_by_several = np.unique(several[~single])
    place = np.full(len(used), -1, np.int32)
    place[used_by_several] = np.arange(len(used_by_several), dtype=np.int32)
    return _Family(
        np.where(single, np.int32(-1), place[label]).astype(np.int32),
        np.ascontiguousarray(values[:, used_by_several]),
        query.weight,
    )


@compiled(void(int32[::1], int64[:, ::1], float64[:, ::1]))
def _subtract(group, fixed, values):  # type: ignore[no-untyped-def]
    """Subtract the fixed counts from the answers."""
    for c in range(fixed.shape[0]):
        for k in range(fixed.shape[1]):
            values[c, group[k]] -= fixed[c, k]


@compiled()
def _add_single(child, new, single, label, weight, values, curvature, target):  # type: ignore[no-untyped-def]
    """Add the answers about one column to its entries."""
    for v in range(child.shape[0]):
        k = new[v]
        if single[k]:
            c = child[v]
            curvature[v] += weight[c]
            target[v] += weight[c] * values[c, label[k]]


def _stacked(families: list[_Family], children: int, column: Floats, scale: float) -> Sums:
    """All families one after another; a row that is not measured where others of its family are gets no label of its own."""
    size = np.array([family.right.shape[1] for family in families], np.int64)
    first = np.zeros(len(families), np.int64)
    np.cumsum(size[:-1] * children, out=first[1:])
    weight = [np.repeat(family.weight / scale, family.right.shape[1]) for family in families]
    for family in families[1:]:
        if not family.weight.all():
            raise CheckError("the children of a parent must be measured alike or not at all")
    return Sums(
        np.ascontiguousarray([family.label for family in families], np.int32).reshape(len(families), -1),
        first,
        size,
        np.concatenate([family.right.ravel() for family in families]),
        np.concatenate(weight),
        column,
    )
