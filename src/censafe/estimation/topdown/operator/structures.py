"""The problem of one parent in operator form, and the symbols of its algebra.

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

from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64
from numpy.typing import NDArray

from censafe.model.arrays import Floats, Integers
from censafe.model.named_arrays import tuple_type

__all__ = ["DUAL", "ENTRIES", "SUMS", "Dual", "Entries", "Sums"]


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
