"""Named arrays that the kernels of one parent share, with the algebra they stand for.

The children c of a parent make the sum of x_c' H_c x_c / 2 - b_c' x_c small, subject to

    sum over c of x_c = p                            multipliers lambda, the first K of ``multiplier``
    sum over c in group g of 1' x_c = s_g            multipliers gamma, the rest of ``multiplier``
    lo_c <= R x_c <= hi_c                            multipliers nu_c, positive on lower sides
    x_c >= 0, and x_ck = 0 where not allowed         multipliers mu_c

At the optimum mu_c = H_c x_c - b_c - lambda - gamma_g(c) 1 - R' nu_c is 0 in free cells and at least 0 in the other allowed ones.

In one state of a child, cells F are free and the active rows A R are equations with the sides s. With Q = (H_FF)^-1, M = A R Q,
S = M R' A' and W = S^-1 M its answer to any multipliers is x = v + P (lambda + gamma), nu = q - W (b + lambda + gamma), where
P = Q - M' W, v = P b + M' S^-1 s and q = S^-1 s. The multipliers in turn solve T (lambda, gamma) = (p, s) - sum of v_c, where T is
the sum of the children's P over cells and groups.

Letters: C children, K cells of the parent, R side rows, G distinct H.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int8, int32, int64, uint8
from numpy.typing import NDArray

from censafe.model.arrays import Floats, Integers
from censafe.model.compiled import compiled
from censafe.model.named_arrays import tuple_type

_Mask = NDArray[np.bool_]


class ParentEquations(NamedTuple):
    """The objective of the children, and the counts that they add up to."""

    h: Floats  # (G, K, K) distinct H
    h_of: NDArray[np.int32]  # (C,) which of them a child has
    b: Floats  # (C, K)
    p: Floats  # (K,) counts of the parent; zeros at the root
    coupled: bool  # false at the root, which has no parent


class Sides(NamedTuple):
    """What every child must obey, and groups of children."""

    allowed: _Mask  # (C, K) false where a cell must be 0
    rows: NDArray[np.uint8]  # (R, K) the 0/1 rows of R
    lo: Floats  # (C, R) lower sides; may be -inf
    hi: Floats  # (C, R) upper sides; equal to ``lo`` for an equation
    group: NDArray[np.int32]  # (C,) group of each child, -1 for none
    group_totals: Floats  # s_g, sum over all cells of the children of each group


class SignState(NamedTuple):
    """Which inequalities of every child are equations at the point."""

    free: _Mask  # (C, K) cells that may differ from 0
    active: NDArray[
        np.int8
    ]  # (C, R) rows on their lower side (-1), upper side (1), equations (2), or not active (0)


class PrimalDual(NamedTuple):
    """A point with its multipliers."""

    x: Floats  # (C, K)
    multiplier: Floats  # (K + groups,) lambda, then gamma
    nu: Floats  # (C, R)
    mu: Floats  # (C, K) the reduced gradient


class Tolerances(NamedTuple):
    """Sizes from which a wrong sign counts."""

    x: float  # records
    mu: float  # of a multiplier


class ChildFactors(NamedTuple):
    """The answer of every child in its state."""

    inverse: Floats  # (C, K K) Q, packed into the first n n numbers
    v: Floats  # (C, K) in its first n entries
    cell: Integers  # (C, K) the free cells in its first n entries
    n: Integers  # (C,) number of free cells
    m: Floats  # (C, R, K) M, one row for each active row
    w: Floats  # (C, R, K) W
    q: Floats  # (C, R)
    active_rows: Integers  # (C,) number of active rows
    stale: _Mask  # (C,) whether the state changed since


class MultiplierSystem(NamedTuple):
    """The factored matrix T of the multipliers."""

    t: Floats  # (K + groups, K + groups) Cholesky factor in the lower triangle
    independent: _Mask  # (K + groups,) false for an equation that others imply


class Changes(NamedTuple):
    """What the signs of a point ask the state to change."""

    flip: _Mask  # (C, K) cells to fix or to free
    move: NDArray[np.int8]  # (C, R) new state of every row, or ``NO_MOVE``


EQUATIONS = tuple_type(
    ParentEquations, float64[:, :, ::1], int32[::1], float64[:, ::1], float64[::1], boolean
)
SIDES = tuple_type(
    Sides, boolean[:, ::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1], int32[::1], float64[::1]
)
STATE = tuple_type(SignState, boolean[:, ::1], int8[:, ::1])
POINT = tuple_type(PrimalDual, float64[:, ::1], float64[::1], float64[:, ::1], float64[:, ::1])
TOLERANCES = tuple_type(Tolerances, float64, float64)
FACTORS = tuple_type(
    ChildFactors,
    float64[:, ::1],
    float64[:, ::1],
    int64[:, ::1],
    int64[::1],
    float64[:, :, ::1],
    float64[:, :, ::1],
    float64[:, ::1],
    int64[::1],
    boolean[::1],
)
SYSTEM = tuple_type(MultiplierSystem, float64[:, ::1], boolean[::1])
CHANGES = tuple_type(Changes, boolean[:, ::1], int8[:, ::1])


@compiled(FACTORS(int64, int64, int64))
def new_factors(children, rows, cells):  # type: ignore[no-untyped-def]
    """Room for Q, v, M, W and q of all children; a child uses only the square of its free cells."""
    return ChildFactors(
        np.empty((children, cells * cells)), np.empty((children, cells)),
        np.empty((children, cells), dtype=np.int64), np.zeros(children, dtype=np.int64),
        np.empty((children, rows, cells)), np.empty((children, rows, cells)), np.zeros((children, rows)),
        np.zeros(children, dtype=np.int64), np.ones(children, dtype=np.bool_),
    )  # fmt: skip


@compiled(SYSTEM(int64))
def new_system(size):  # type: ignore[no-untyped-def]
    """Room for T of ``size`` multipliers."""
    return MultiplierSystem(np.zeros((size, size)), np.ones(size, dtype=np.bool_))


@compiled(CHANGES(int64, int64, int64))
def new_changes(children, rows, cells):  # type: ignore[no-untyped-def]
    """Room for the changes of all children."""
    return Changes(np.zeros((children, cells), dtype=np.bool_), np.zeros((children, rows), dtype=np.int8))


@compiled(SIDES(boolean[:, ::1], uint8[:, ::1], float64[:, ::1], float64[:, ::1]))
def sides_without_groups(allowed, rows, lo, hi):  # type: ignore[no-untyped-def]
    """Sides of children of which none is in a group."""
    return Sides(allowed, rows, lo, hi, np.full(allowed.shape[0], np.int32(-1)), np.zeros(0))
