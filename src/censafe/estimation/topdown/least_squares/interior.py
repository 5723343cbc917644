"""Interior point: slow and robust, for parents where the active set goes round in circles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.sides import Tightened
from censafe.estimation.topdown.objective import DenseObjective
from censafe.model.arrays import Floats

Mask = NDArray[np.bool_]

_MOST_STEPS = 80
_TOWARDS_BOUNDARY = 0.99
_DONE = 1e-14  # complementarity of a pair, relative to that of the start
_LEAST_MISS = 1e-7  # persons by which a point to be returned may miss sums and rows
_SOLVES = 3  # of one Newton system: each for what the one before left
_EQUALITY_WEIGHT = (
    1e7  # of equality rows against the curvature; what a step leaves of them goes to their multipliers
)


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """A point within its bounds with the multipliers that belong to it.

    Args:
        x: shape (C, K).
        free: cells that the point keeps away from 0, shape (C, K).
        active: state of every side row as the point suggests it, shape (C, R).
        row_multipliers: shape (C, R); positive on lower sides.
    """

    x: Floats
    free: Mask
    active: NDArray[np.int8]
    row_multipliers: Floats
    group_multipliers: Floats


@dataclass(eq=False)
class _Pairs:
    """Quantities that must stay positive and their multipliers, where ``on`` is true."""

    value: Floats
    dual: Floats
    on: Mask

    def gap(self) -> float:
        return float((self.value * self.dual)[self.on].sum())

    def ratio(self) -> Floats:
        return np.where(self.on, self.dual / self.value, 0.0)

    def target(self, center: float, step: Floats | None, dual_step: Floats | None) -> Floats:
        aim = center - self.value * self.dual
        if step is not None and dual_step is not None:
            aim = aim - step * dual_step
        return np.where(self.on, aim / self.value, 0.0)

    def longest(self, step: Floats, dual_step: Floats) -> float:
        return min(_longest(self.value, step, self.on), _longest(self.dual, dual_step, self.on))


def _longest(value: Floats, step: Floats, on: Mask) -> float:
    down = on & (step < 0)
    return float((value[down] / -step[down]).min(initial=np.inf))


@dataclass(eq=False)
class _Iterate:
    """The point, its pairs with cells and with lower and upper sides, and the multipliers of equations."""

    x: _Pairs
    low: _Pairs
    high: _Pairs
    equal: Floats
    sums: Floats
    groups: Floats

    def gap(self) -> float:
        return self.x.gap() + self.low.gap() + self.high.gap()

    def row_multipliers(self) -> Floats:
        low = np.where(self.low.on, self.low.dual, 0.0)
        return low - np.where(self.high.on, self.high.dual, 0.0) + self.equal


@dataclass(frozen=True, eq=False)
class _Steps:
    x: Floats
    z: Floats
    low: tuple[Floats, Floats]
    high: tuple[Floats, Floats]
    equal: Floats
    sums: Floats
    groups: Floats


class _Newton:
    """One parent in units of ``unit`` persons."""

    def __init__(self, problem: ParentProblem, h: Floats, tight: Tightened) -> None:
        self.h, self.h_of = h, problem.h_of
        sides = np.where(np.isfinite(tight.lo), np.abs(tight.lo), 0.0)
        size = sides.max(initial=1.0) if problem.p is None else float(problem.p.max(initial=1))
        self.unit = max(1.0, float(size) / 100.0)
        self.b, self.allowed = problem.B / self.unit, tight.allowed
        self.objective = DenseObjective(h, problem.h_of, self.b)
        self.p = None if problem.p is None else problem.p / self.unit
        self.a = problem.rows.astype(np.float64)
        self.lo, self.hi = tight.lo / self.unit, tight.hi / self.unit
        self.is_equal = tight.lo == tight.hi
        self.pair = np.zeros((len(problem.group_totals), problem.children))
        inside = np.flatnonzero(problem.group >= 0)
        self.pair[problem.group[inside], inside] = 1.0
        self.group_totals = problem.group_totals / self.unit
        self.weight = _EQUALITY_WEIGHT * float(np.trace(h[0])) / max(1, h.shape[1]) * self.is_equal

    def start(self) -> _Iterate:
        children, cells = self.b.shape
        share = np.maximum(self.allowed.sum(axis=0), 1)
        level = np.ones(cells) if self.p is None else np.maximum(self.p / share, 1e-3)
        x = np.where(self.allowed, np.broadcast_to(level, (children, cells)), 0.0)
        steep = max(1e-3, float(np.abs(self.objective.gradient(x)).mean()))
        sums_of_rows = x @ self.a.T
        own = _Pairs(np.where(self.allowed, x, 1.0), np.full(x.shape, steep), self.allowed)
        pairs = []
        for distance, side in ((sums_of_rows - self.lo, self.lo), (self.hi - sums_of_rows, self.hi)):
            on = np.isfinite(side) & ~self.is_equal
            value = np.where(on, np.maximum(np.where(on, distance, 1.0), 0.1), 1.0)
            pairs.append(_Pairs(value, np.full(side.shape, steep), on))
        nothing = np.zeros(0 if self.p is None else cells)
        return _Iterate(own, pairs[0], pairs[1], np.zeros(self.lo.shape), nothing, np.zeros(len(self.pair)))

    def score(self, at: _Iterate) -> float:
        """About what the certificate of the point will say; infinite while it misses sums and rows."""
        x = np.where(self.allowed, at.x.value, 0.0)
        sums_of_rows = x @ self.a.T
        off = max(
            0.0 if self.p is None else float(np.abs(self.p - x.sum(axis=0)).max(initial=0.0)),
            float(np.abs(self.group_totals - self.pair @ x.sum(axis=1)).max(initial=0.0)),
            float(np.where(np.isfinite(self.lo), self.lo - sums_of_rows, 0.0).max(initial=0.0)),
            float(np.where(np.isfinite(self.hi), sums_of_rows - self.hi, 0.0).max(initial=0.0)),
        )
        if not off * self.unit <= _LEAST_MISS:
            return np.inf
        nu = at.row_multipliers()
        rest = self.objective.gradient(x) - at.x.dual - nu @ self.a - (self.pair.T @ at.groups)[:, None]
        rest = rest - (at.sums if self.p is not None else 0.0)
        return at.gap() + float((np.abs(rest) * x).sum())

    def factor(self, at: _Iterate) -> tuple[Floats, Floats]:
        """Inverses of the children's systems and of what couples them."""
        children, cells = self.b.shape
        inverse = np.zeros((children, cells, cells))
        ratio, rows = at.x.ratio(), at.low.ratio() + at.high.ratio() + self.weight
        for c in range(children):
            own = np.flatnonzero(self.allowed[c])
            a = self.a[:, own]
            system = (
                self.h[self.h_of[c]][np.ix_(own, own)] + np.diag(ratio[c, own]) + a.T @ (rows[c, :, None] * a)
            )
            scale = 1.0 / np.sqrt(system.diagonal())
            inverse[c][np.ix_(own, own)] = (
                np.linalg.inv(system * scale[:, None] * scale) * scale[:, None] * scale
            )
        across = inverse.sum(axis=2)
        across_groups = np.diag(self.pair @ across.sum(axis=1)) if len(self.pair) else np.zeros((0, 0))
        if self.p is None:
            return inverse, np.zeros((0, 0))
        corner = self.pair @ across
        coupling = np.block([[inverse.sum(axis=0), corner.T], [corner, across_groups]])
        return inverse, coupling + np.diag(1e-15 * coupling.diagonal() + 1e-300)

    def _missing(self, x: Floats) -> Floats:
        """What a point lacks of the sums over children, then of the totals of groups."""
        if self.p is None:
            return np.zeros(0)
        return np.concatenate([self.p - x.sum(axis=0), self.group_totals - self.pair @ x.sum(axis=1)])

    def _solved(
        self, at: _Iterate, parts: tuple[Floats, Floats], rest: Floats, missing: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Solution of the Newton system: moves of the cells, multipliers of sums and of group totals.

        Near the end the systems are so ill-conditioned that a product with their inverses leaves more of the right side
        than the step is to mend: what is left is solved for in turn.
        """
        inverse, coupling = parts
        rows = at.low.ratio() + at.high.ratio() + self.weight
        cells = 0 if self.p is None else rest.shape[1]
        move, force = np.zeros(rest.shape), np.zeros(len(missing))
        for _ in range(_SOLVES):
            curved = self.objective.apply(move) + at.x.ratio() * move
            left = np.where(self.allowed, rest - curved - (rows * (move @ self.a.T)) @ self.a, 0.0)
            if self.p is not None:
                left = left + np.where(self.allowed, self._spread(force, cells), 0.0)
            more = np.einsum("ck,ckl->cl", left, inverse)
            if self.p is not None:
                moved = move + more
                lacking = missing - np.concatenate([moved.sum(axis=0), self.pair @ moved.sum(axis=1)])
                extra = np.linalg.solve(coupling, lacking)
                more = more + np.einsum("ck,ckl->cl", self._spread(extra, cells), inverse)
                force = force + extra
            move = move + more
        return move, force[:cells], force[cells:] if self.p is not None else np.zeros(len(self.pair))

    def _spread(self, force: Floats, cells: int) -> Floats:
        spread: Floats = force[:cells] + (self.pair.T @ force[cells:])[:, None]
        return spread

    def step(self, at: _Iterate, parts: tuple[Floats, Floats], center: float, last: _Steps | None) -> _Steps:
        x = np.where(self.allowed, at.x.value, 0.0)
        sums_of_rows, low, high = x @ self.a.T, at.low, at.high
        off_low = np.where(low.on, sums_of_rows - np.where(low.on, self.lo, 0.0) - low.value, 0.0)
        off_high = np.where(high.on, np.where(high.on, self.hi, 0.0) - sums_of_rows - high.value, 0.0)
        off_equal = np.where(self.is_equal, np.where(self.is_equal, self.lo, 0.0) - sums_of_rows, 0.0)
        aim = at.x.target(center, *((last.x, last.z) if last else (None, None)))
        aim_low = low.target(center, *(last.low if last else (None, None)))
        aim_high = high.target(center, *(last.high if last else (None, None)))
        nu = at.row_multipliers()
        rest = -self.objective.gradient(x) + np.where(self.allowed, at.x.dual, 0.0) + nu @ self.a + aim
        rest += (
            aim_low - low.ratio() * off_low - aim_high + high.ratio() * off_high + self.weight * off_equal
        ) @ self.a
        rest += (self.pair.T @ at.groups)[:, None] + (at.sums if self.p is not None else 0.0)
        move, sums, groups = self._solved(at, parts, rest, self._missing(x))
        along = move @ self.a.T
        step_low, step_high = along + off_low, off_high - along
        return _Steps(
            move, aim - at.x.ratio() * move,
            (step_low, aim_low - low.ratio() * step_low), (step_high, aim_high - high.ratio() * step_high),
            self.weight * (off_equal - along), sums, groups,
        )  # fmt: skip


def _length(at: _Iterate, step: _Steps) -> float:
    """The share of a step that keeps all pairs positive: one for point and multipliers, as the objective is quadratic."""
    longest = min(at.x.longest(step.x, step.z), at.low.longest(*step.low), at.high.longest(*step.high))
    return min(1.0, _TOWARDS_BOUNDARY * longest)


def _moved(at: _Iterate, step: _Steps, length: float) -> _Iterate:
    def pairs(old: _Pairs, value: Floats, dual: Floats) -> _Pairs:
        return _Pairs(
            np.where(old.on, old.value + length * value, 1.0),
            np.where(old.on, old.dual + length * dual, 1.0),
            old.on,
        )

    return _Iterate(
        pairs(at.x, step.x, step.z), pairs(at.low, *step.low), pairs(at.high, *step.high),
        at.equal + length * step.equal, at.sums + length * step.sums, at.groups + length * step.groups,
    )  # fmt: skip


def interior_point(problem: ParentProblem, h: Floats, tight: Tightened) -> InteriorPoint:
    """Solve one parent nearly to the limit of floating-point numbers.

    Args:
        h: its curvatures, made regular, shape (G, K, K).

    Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method".
    """
    newton = _Newton(problem, h, tight)
    at = newton.start()
    pairs = int(at.x.on.sum() + at.low.on.sum() + at.high.on.sum())
    first = at.gap() / max(1, pairs)
    best, least = at, np.inf
    with np.errstate(all="ignore"):
        for _ in range(_MOST_STEPS):
            mean = at.gap() / max(1, pairs)
            try:
                parts = newton.factor(at)
                plain = newton.step(at, parts, 0.0, None)
                ahead = _moved(at, plain, _length(at, plain))
                left = ahead.gap() / max(1, pairs)
                step = newton.step(at, parts, mean * min(1.0, max(left / mean, 0.0)) ** 3, plain)
            except np.linalg.LinAlgError:
                break
            length = _length(at, step)
            new = _moved(at, step, length)
            if not (np.isfinite(new.x.value).all() and np.isfinite(new.x.dual).all()):
                break
            at, score = new, newton.score(new)
            if score <= least:  # multipliers may grow without limit where no point is strictly inside
                best, least = new, score
            if mean <= _DONE * first and length > 0.5:
                break
    return _read(newton, best if np.isfinite(least) else at)


def _read(newton: _Newton, at: _Iterate) -> InteriorPoint:
    """The point in persons, with the side of every pair that is closer to 0 called active."""
    curve = newton.h[newton.h_of].diagonal(axis1=1, axis2=2)
    free = newton.allowed & (at.x.value * curve > at.x.dual)
    mean = float(curve.mean()) if curve.size else 1.0
    active = np.where(at.low.on & (at.low.value * mean < at.low.dual), -1, 0)
    active = np.where(at.high.on & (at.high.value * mean < at.high.dual), 1, active)
    nu = at.row_multipliers()
    x = np.where(newton.allowed, at.x.value, 0.0)
    return InteriorPoint(
        x * newton.unit, free, np.where(newton.is_equal, 2, active).astype(np.int8), nu * newton.unit,
        at.groups * newton.unit,
    )  # fmt: skip
