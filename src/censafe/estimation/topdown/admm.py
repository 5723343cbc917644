"""Alternating directions: slow and robust, only to find a state from which the active set can finish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.presolve import Tightened
from censafe.estimation.topdown.problem import ParentProblem

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
    """The parts of the split problem: x meets the sums, z and s meet bounds and rows; w and u are scaled duals.

    Totals of groups are left out: the active set that starts from here knows them.
    """

    problem: ParentProblem
    h: Floats
    g: Floats
    rho: float
    inverse: Floats
    sums: Floats

    def invert(self) -> None:
        cells = self.h.shape[1]
        matrix = self.h + self.rho * np.eye(cells) + _ROW_WEIGHT * self.rho * self.g.T @ self.g
        self.inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        self.sums = np.asarray(np.linalg.inv(self.inverse[self.problem.h_of].sum(axis=0)), dtype=np.float64)

    def step(self, z: Floats, w: Floats, s: Floats, u: Floats) -> Floats:
        problem = self.problem
        force = problem.B + self.rho * (z - w) + _ROW_WEIGHT * self.rho * (s - u) @ self.g
        own = self.inverse[problem.h_of]
        x: Floats = np.einsum("ck,ckl->cl", force, own)
        if problem.p is None:
            return x
        step: Floats = np.einsum("k,ckl->cl", self.sums @ (problem.p - x.sum(axis=0)), own)
        return x + step


def alternating_directions(problem: ParentProblem, h: Floats, tight: Tightened) -> AdmmPoint:
    """Solve one parent to about 1e-5 persons, without the totals of groups.

    Args:
        problem: the parent.
        h: its curvatures, made regular, shape (G, K, K).
        tight: its mask and sides after presolve.

    Returns:
        The point that meets the bounds, whether or not the steps were enough.

    Source: Boyd et al. (2011), "Distributed optimization and statistical learning via ADMM", section 5.
    """
    ends = np.linalg.eigvalsh(h)
    least, most = float(ends[:, 0].min()), float(ends[:, -1].max())
    g = problem.rows.astype(np.float64)
    allowed, lo, hi, p = tight.allowed, tight.lo, tight.hi, problem.p
    split = _Split(problem, h, g, float(np.sqrt(max(least, 1e-9 * most) * most)) or 1.0, h, h[0])
    split.invert()
    z, w = np.zeros_like(problem.B), np.zeros_like(problem.B)
    s, u = np.clip(np.zeros_like(lo), lo, hi), np.zeros_like(lo)
    scale = max(1.0, 0.0 if p is None else float(p.max(initial=0)) * 1e-6)
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
