"""Alternating directions: slow and robust, only to find a state from which the active set can finish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["AdmmPoint", "alternating_directions"]

Floats = NDArray[np.float64]

_RELAXATION = 1.6
_ROW_WEIGHT = 3.0
_MOST_STEPS = 4000
_TUNE_EVERY = 25
_TUNE_UNTIL = 600
_RESIDUAL = 1e-5


@dataclass(frozen=True, eq=False)
class AdmmPoint:
    """A point within its bounds and a guess of the active rows."""

    x: Floats
    active: NDArray[np.int8]


@dataclass(eq=False)
class _Split:
    """The parts of the split problem: x meets the sums, z and s meet bounds and rows; w and u are scaled duals."""

    h: Floats
    b: Floats
    p: Floats | None
    g: Floats
    rho: float
    inverse: Floats

    def invert(self) -> None:
        cells = len(self.h)
        matrix = self.h + self.rho * np.eye(cells) + _ROW_WEIGHT * self.rho * self.g.T @ self.g
        self.inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)

    def step(self, z: Floats, w: Floats, s: Floats, u: Floats) -> Floats:
        x: Floats = (self.b + self.rho * (z - w) + _ROW_WEIGHT * self.rho * (s - u) @ self.g) @ self.inverse
        return x if self.p is None else x + (self.p - x.sum(axis=0)) / len(x)


def alternating_directions(
    h: Floats,
    b: Floats,
    p: Floats | None,
    allowed: NDArray[np.bool_],
    rows: NDArray[np.uint8],
    lo: Floats,
    hi: Floats,
) -> AdmmPoint:
    """Solve one parent to about 1e-5 persons.

    Args:
        h: shape (K, K).
        b: shape (C, K).
        p: shape (K,), or None without sums over children.
        allowed: shape (C, K).
        rows: shape (R, K).
        lo: shape (C, R).
        hi: shape (C, R).

    Returns:
        The point that meets the bounds, whether or not the steps were enough.

    Source: Boyd et al. (2011), "Distributed optimization and statistical learning via ADMM", section 5.
    """
    ends = np.linalg.eigvalsh(h)[[0, -1]]
    g = rows.astype(np.float64)
    split = _Split(h, b, p, g, float(np.sqrt(max(ends[0], 1e-9 * ends[1]) * ends[1])) or 1.0, h)
    split.invert()
    z, w = np.zeros_like(b), np.zeros_like(b)
    s, u = np.clip(np.zeros_like(lo), lo, hi), np.zeros_like(lo)
    scale = max(1.0, 0.0 if p is None else float(p.max(initial=0.0)) * 1e-6)
    for step in range(1, _MOST_STEPS + 1):
        x = split.step(z, w, s, u)
        gx = x @ g.T
        mixed = _RELAXATION * x + (1 - _RELAXATION) * z
        mixed_rows = _RELAXATION * gx + (1 - _RELAXATION) * s
        new_z = np.where(allowed, np.maximum(mixed + w, 0.0), 0.0)
        new_s = np.clip(mixed_rows + u, lo, hi)
        w, u = w + mixed - new_z, u + mixed_rows - new_s
        primal = max(np.abs(x - new_z).max(), np.abs(gx - new_s).max(initial=0.0))
        dual = split.rho * max(np.abs(new_z - z).max(), _ROW_WEIGHT * np.abs(new_s - s).max(initial=0.0))
        z, s = new_z, new_s
        if primal <= _RESIDUAL * scale and dual <= _RESIDUAL * scale:
            break
        if step % _TUNE_EVERY == 0 and step <= _TUNE_UNTIL and not 0.2 <= primal / max(dual, 1e-300) <= 5.0:
            factor = 2.5 if primal > dual else 0.4
            split.rho *= factor
            w, u = w / factor, u / factor
            split.invert()
    return AdmmPoint(z, _active_rows(u, lo, hi))


def _active_rows(u: Floats, lo: Floats, hi: Floats) -> NDArray[np.int8]:
    active = np.where(u > 1e-9, 1, np.where(u < -1e-9, -1, 0))
    return np.where(lo == hi, 2, active).astype(np.int8)
