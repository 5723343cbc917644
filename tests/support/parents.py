"""Small parents with a known point inside their constraints, and slow exact answers."""

from dataclasses import replace
from itertools import product

import numpy as np
from scipy.linalg import block_diag

from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2


def free_parent(h: np.ndarray, b: np.ndarray, p: np.ndarray | None) -> ParentProblem:
    """A parent with no side rows, where every child may have every cell."""
    children, cells = b.shape
    none = np.zeros((children, 0))
    return ParentProblem(
        h, b, p, np.ones((children, cells), bool), np.zeros((0, cells), np.uint8), none, none
    )


def small_parent(seed, *, children=3, cells=4, rows=True, masks=True, root=False):
    """A random parent whose constraints a hidden integer point meets."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(2.0, (children, cells))
    labels = [np.zeros(cells, int), np.arange(cells) // 2, np.arange(cells)]
    weights = rng.uniform(0.2, 3.0, len(labels))
    h, b = np.zeros((cells, cells)), np.zeros((children, cells))
    for label, weight in zip(labels, weights, strict=True):
        a = np.zeros((label.max() + 1, cells))
        a[label, np.arange(cells)] = 1
        noisy = truth @ a.T + np.rint(rng.normal(0, 2.0, (children, len(a))))
        h += weight * a.T @ a
        b += weight * noisy @ a
    allowed = (truth > 0) | (rng.random(truth.shape) < 0.7) if masks else np.ones(truth.shape, bool)
    g = np.array([labels[1] == 0, np.ones(cells)], dtype=np.uint8) if rows else np.zeros((0, cells), np.uint8)
    have = truth @ g.T.astype(float)
    slack_down, slack_up = rng.choice([0.0, 1.0, np.inf], (2, *have.shape))
    return ParentProblem(
        h,
        b,
        None if root else truth.sum(axis=0),
        allowed,
        g,
        np.maximum(have - slack_down, -1),
        have + slack_up,
    )


def objective(problem, x):
    return float(0.5 * np.einsum("ck,ckl,cl->", x, problem.H[problem.h_of], x) - (problem.B * x).sum())


def best_by_enumeration(problem):
    """Least objective over the equality-constrained minima of all faces; infinite if no face has a point."""
    children, cells = problem.B.shape
    n = children * cells
    big = block_diag(*problem.H[problem.h_of])
    sums = np.zeros((0, n)) if problem.p is None else np.kron(np.ones((1, children)), np.eye(cells))
    pairs = np.array([np.repeat(problem.group == g, cells) for g in range(len(problem.group_totals))], float)
    sums = np.vstack([sums, pairs.reshape(-1, n)])
    have = np.concatenate([np.zeros(0) if problem.p is None else problem.p, problem.group_totals])
    rows = np.kron(np.eye(children), problem.rows.astype(float))
    lo, hi = problem.lo.ravel(), problem.hi.ravel()
    sides = [
        [*sorted({s for s in (low, high) if np.isfinite(s)}), None] for low, high in zip(lo, hi, strict=True)
    ]
    best = np.inf
    open_cells = np.flatnonzero(problem.allowed.ravel())
    for free in product((False, True), repeat=len(open_cells)):
        index = open_cells[np.array(free, dtype=bool)]
        for chosen in product(*sides):
            held = [r for r, side in enumerate(chosen) if side is not None]
            a = np.vstack([sums, rows[held]])[:, index]
            right = np.concatenate([have, [chosen[r] for r in held]])
            size, m = len(index), len(a)
            kkt = np.block([[big[np.ix_(index, index)], a.T], [a, np.zeros((m, m))]])
            if size + m == 0:
                point = np.zeros(0)
            else:
                point = np.linalg.lstsq(kkt, np.concatenate([problem.B.ravel()[index], right]), rcond=None)[
                    0
                ][:size]
            x = np.zeros(n)
            x[index] = point
            total = rows @ x
            if (
                x.min() >= -1e-9
                and np.abs(sums @ x - have).max(initial=0) <= 1e-8
                and (total >= lo - 1e-8).all()
                and (total <= hi + 1e-8).all()
            ):
                best = min(best, objective(problem, x.reshape(children, cells)))
    return best


def parent_of_halves(seed, *, children=3, cells=3, kinds=2, pairs=1):
    """A small parent with curvatures of several kinds and groups of two children whose sum is known."""
    rng = np.random.default_rng(seed)
    plain = small_parent(seed, children=children, cells=cells)
    truth_total = np.zeros(pairs)
    group = np.full(children, -1)
    group[: 2 * pairs] = np.repeat(np.arange(pairs), 2)
    group = rng.permutation(group)
    inside = solve_l2(plain).x
    for g in range(pairs):
        truth_total[g] = inside[group == g].sum()
    spread = rng.normal(0, 1, (kinds, cells, cells))
    h = plain.H + np.einsum("gkl,gml->gkm", spread, spread)
    return replace(
        plain, H=h, h_of=rng.integers(0, kinds, children).astype(np.int32), group=group.astype(np.int32),
        group_totals=truth_total,
    )  # fmt: skip
