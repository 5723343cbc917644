"""How like its siblings a geounit is taken to be, as a term of the objective of a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import float64, int32, int64, void
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model.compiled import compiled

__all__ = ["Likeness", "no_likeness", "size_classes", "steps_of"]

Floats = NDArray[np.float64]

_FACTOR = 2.0  # between the sizes of two classes of geounits
_EMPTY = 0.5  # records of a geounit that is estimated to have none


@dataclass(frozen=True, eq=False)
class Likeness:
    """What the makeup of a parent says about that of its children: x' P x / 2, to be added to their objective.

    A geounit of n records whose parent has p of P records in a group shares these out over the finer groups within about as
    its parent does: the count in a finer group that holds the share q of the parent's group has the variance
    m q (1 - q) (1 + (m - 1) r) around q times its count in the group, with m = n p / P and the correlation r. P is the inverse of
    that, over all groups of all steps. Chains of finer groups make the steps independent of each other; totals and shares of the
    coarsest groups are left alone.

    Args:
        labels: group of every cell, coarse to fine, the last one of its own for each cell, int32, shape (L + 1, cells).
        correlation: of two records of a geounit, by kind of geounits and step, shape (kinds, L).
        size: records of a geounit, by kind, shape (kinds,).
        strength: factor of the whole term, by kind, shape (kinds,); 0 for no likeness.

    Source: Dirichlet-multinomial variances; topdown_solver.md 4 for the objective that it joins.

    Example:
        >>> found = np.zeros((1, 2, 2))
        >>> alike = Likeness(np.array([[0, 0], [0, 1]], np.int32), np.zeros((1, 1)), np.array([4.0]), np.ones(1))
        >>> alike.add(np.zeros(1, np.int32), np.arange(2), np.array([30, 10]), found)
        >>> found[0].round(3).tolist()
        [[0.083, -0.25], [-0.25, 0.75]]
    """

    labels: NDArray[np.int32] = field(repr=False)
    correlation: Floats
    size: Floats
    strength: Floats

    def add(
        self,
        present: NDArray[np.integer],
        cells: NDArray[np.integer],
        p: NDArray[np.integer],
        curvatures: Floats,
    ) -> None:
        """Add P of some kinds of geounits on the cells of their parent, in place.

        Args:
            present: kinds, shape (G,).
            cells: of the parent, shape (K,).
            p: its counts, above 0.
            curvatures: shape (G, K, K).
        """
        add_likeness(
            self.labels, self.correlation, self.size, self.strength, np.ascontiguousarray(cells, np.int32),
            np.ascontiguousarray(p, np.int64), np.ascontiguousarray(present, np.int32), curvatures,
        )  # fmt: skip


def no_likeness() -> tuple[NDArray[np.int32], Floats, Floats, Floats]:
    """What the kernels are given where nothing is known about likeness."""
    return np.zeros((0, 0), np.int32), np.zeros((0, 0)), np.zeros(0), np.zeros(0)


def steps_of(
    groups: Sequence[NDArray[np.integer]], cells: int, kinds: NDArray[np.integer] | None
) -> NDArray[np.int32]:
    """Groups of the steps, from kinds of unit or all cells down to single cells.

    Args:
        groups: of the cells, coarse to fine, each of shape (cells,).
        cells: of the schema.
        kinds: kind of unit of every cell; None where units bound nothing.

    Raises:
        CheckError: groups do not refine each other.

    Example:
        >>> steps_of((np.array([0, 0, 1, 1]),), 4, None).tolist()
        [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
    """
    found = [np.zeros(cells, np.int64) if kinds is None else np.unique(kinds, return_inverse=True)[1].ravel()]
    for label in (*groups, np.arange(cells)):
        own = np.unique(label, return_inverse=True)[1].ravel()
        both = len(np.unique(found[-1] * cells + own))
        if both > int(own.max(initial=0)) + 1:
            raise CheckError("groups of cells that do not refine each other have no likeness step by step")
        if both > int(found[-1].max(initial=0)) + 1:
            found.append(own)
    return np.ascontiguousarray(np.stack(found), np.int32)


def size_classes(records: NDArray[np.integer]) -> tuple[NDArray[np.int64], Floats]:
    """Classes of geounits of about the same number of records, and the records of every class.

    Example:
        >>> of, size = size_classes(np.array([0, 1, 5, 100]))
        >>> of.tolist(), size.tolist()
        ([0, 1, 2, 3], [0.5, 1.0, 4.0, 128.0])
    """
    power = np.rint(np.log(np.maximum(records, 1)) / np.log(_FACTOR)).astype(np.int64)
    size = np.where(records > 0, _FACTOR ** power.astype(np.float64), _EMPTY)
    classes, of = np.unique(size, return_inverse=True)
    return of.ravel().astype(np.int64), classes


@compiled(float64(int32[::1], int64[::1], float64[::1]))
def _held(group, p, out):  # type: ignore[no-untyped-def]
    """Records of the group of every cell; returns those of all cells."""
    total = 0.0
    for k in range(group.shape[0]):
        total += p[k]
        out[k] = 0.0
        for j in range(group.shape[0]):
            out[k] += p[j] if group[j] == group[k] else 0.0
    return total


@compiled(
    void(
        int32[::1], int32[::1], float64[::1], float64[::1], float64, float64, float64, float64, float64[:, ::1]
    )
)  # fmt: skip
def _add_step(coarse, fine, in_coarse, in_fine, everyone, records, correlation, strength, h):  # type: ignore[no-untyped-def]
    """Add one step of one kind."""
    for k in range(coarse.shape[0]):
        held = records * in_coarse[k] / everyone
        spread = records * (1.0 + max(0.0, held - 1.0) * correlation)
        weight = strength * everyone / spread
        for j in range(coarse.shape[0]):
            if coarse[j] == coarse[k]:
                h[k, j] -= weight / in_coarse[k]
            if fine[j] == fine[k]:
                h[k, j] += weight / in_fine[k]


@compiled(
    void(
        int32[:, ::1], float64[:, ::1], float64[::1], float64[::1], int32[::1], int64[::1], int32[::1],
        float64[:, :, ::1],
    )
)  # fmt: skip
def add_likeness(labels, correlation, size, strength, cell, p, present, h):  # type: ignore[no-untyped-def]
    """Add the likeness of every kind, step by step; nothing where there are no labels."""
    cells = cell.shape[0]
    coarse, fine = np.empty(cells, dtype=np.int32), np.empty(cells, dtype=np.int32)
    in_coarse, in_fine = np.empty(cells), np.empty(cells)
    for step in range(labels.shape[0]):
        coarse[:], in_coarse[:] = fine, in_fine
        for k in range(cells):
            fine[k] = labels[step, cell[k]]
        everyone = _held(fine, p, in_fine)
        for g in range(present.shape[0] if step > 0 else 0):
            kind = present[g]
            if strength[kind] > 0.0:
                _add_step(
                    coarse, fine, in_coarse, in_fine, everyone, size[kind], correlation[kind, step - 1],
                    strength[kind], h[g],
                )  # fmt: skip
