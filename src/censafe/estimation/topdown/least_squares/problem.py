"""The problem of one parent: the children's measurements, the parent's cells, what every child must obey."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model.arrays import Floats


class L2Status(Enum):
    """How a solve ended; only the two kinds of ``OK`` raise no warning."""

    OK = "ok"
    OK_AFTER_INTERIOR = "ok after interior point"
    APPROXIMATE = "approximate"
    INFEASIBLE = "infeasible"

    @property
    def exact(self) -> bool:
        """Whether the optimum was certified."""
        return self in (L2Status.OK, L2Status.OK_AFTER_INTERIOR)


@dataclass(frozen=True, eq=False)
class ParentProblem:
    """Children of one parent on the parent's cells with a count above 0 (of the root: all cells).

    The objective is the sum over children c of x_c' H_c x_c / 2 - b_c' x_c with H_c = H[h_of[c]].

    Args:
        H: distinct sums over queries of w A'A, shape (G, K, K), w being 1 / variance; one of shape (K, K) serves all.
        B: sum over queries of w A'y, shape (C, K).
        p: the parent's integer counts, shape (K,); None for the root, which has no parent.
        allowed: false where a child cannot have persons, shape (C, K).
        rows: 0/1 side rows, the same for every child, shape (R, K).
        lo: lower sides in persons, shape (C, R); may be -inf.
        hi: upper sides in persons, shape (C, R); may be inf; equal to ``lo`` for an equality.
        h_of: which H each child has, shape (C,); all have the first if not given.
        group: group of each child, -1 for none, shape (C,); no child is in a group if not given.
        group_totals: persons in all cells of all children of each group, exactly, shape (number of groups,).

    Raises:
        CheckError: shapes do not fit, p is not an integer count, or a value is not finite.
    """

    H: Floats
    B: Floats
    p: NDArray[np.int64] | None
    allowed: NDArray[np.bool_]
    rows: NDArray[np.uint8]
    lo: Floats
    hi: Floats
    h_of: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    group: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    group_totals: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        children, cells = self.B.shape
        put = object.__setattr__
        stack = self.H[None] if self.H.ndim == 2 else self.H
        put(self, "H", np.ascontiguousarray(stack, dtype=np.float64))
        for name, default in (("h_of", 0), ("group", -1)):
            ordinals = getattr(self, name)
            chosen = ordinals if len(ordinals) else np.full(children, default)
            put(self, name, np.ascontiguousarray(chosen, dtype=np.int32))
        for name in ("B", "lo", "hi", "group_totals"):
            put(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))
        put(self, "allowed", np.ascontiguousarray(self.allowed, dtype=np.bool_))
        put(self, "rows", np.ascontiguousarray(self.rows, dtype=np.uint8))
        if self.p is not None:
            if not np.issubdtype(self.p.dtype, np.integer):
                raise CheckError("the counts of a parent are not integers: its level is not final")
            put(self, "p", np.ascontiguousarray(self.p, dtype=np.int64))
        self._check(children, cells)

    def _check(self, children: int, cells: int) -> None:
        rows = self.rows.shape[0]
        shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
            "H": (self.H.shape[1:], (cells, cells)),
            "h_of": (self.h_of.shape, (children,)),
            "group": (self.group.shape, (children,)),
            "allowed": (self.allowed.shape, (children, cells)),
            "rows": (self.rows.shape, (rows, cells)),
            "lo": (self.lo.shape, (children, rows)),
            "hi": (self.hi.shape, (children, rows)),
        }
        if self.p is not None:
            shapes["p"] = (self.p.shape, (cells,))
        wrong = [f"{name} is {have}, must be {must}" for name, (have, must) in shapes.items() if have != must]
        if wrong:
            raise CheckError(f"arrays of a parent do not fit: {'; '.join(wrong)}")
        if self.p is None and (children != 1 or len(self.group_totals)):
            raise CheckError(
                "a problem without a parent (the root) must have exactly one child and no groups"
            )
        for name, ordinals, least, most in (
            ("h_of", self.h_of, 0, len(self.H)),
            ("group", self.group, -1, len(self.group_totals)),
        ):
            if children and not (least <= ordinals.min() and ordinals.max() < most):
                raise CheckError(f"{name} of a parent points outside what is given: {most} ordinals")
        if self.p is not None and self.p.size and int(self.p.min()) < 0:
            raise CheckError("a parent has a negative count: its level is not final")
        if not (np.isfinite(self.H).all() and np.isfinite(self.B).all()):
            raise CheckError("weights or measurements of a parent are not finite")

    @property
    def children(self) -> int:
        """Number of children C."""
        return int(self.B.shape[0])

    @property
    def cells(self) -> int:
        """Number of cells K."""
        return int(self.B.shape[1])


@dataclass(frozen=True, eq=False)
class L2Result:
    """The fractional point of one parent and the evidence for it.

    Args:
        x: shape (C, K), in persons.
        gap: upper bound on objective minus optimum, in half chi-square units.
        row_multipliers: multipliers of the side rows, shape (C, R); positive on lower sides.
        ridge: what was added to the diagonal of a singular H; 0 if nothing.
    """

    x: Floats
    status: L2Status
    gap: float
    violation: float
    iterations: int
    row_multipliers: Floats
    ridge: float = 0.0
    reason: str = ""
