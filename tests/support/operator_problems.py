"""Random passes of a parent in operator form, and slow exact answers of the same problem."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.operator.newton import climb, evaluate
from censafe.estimation.topdown.operator.parent import judge
from censafe.estimation.topdown.operator.problem import Dual, Observed, PassProblem, pass_problem


@dataclass(frozen=True, eq=False)
class SmallPass:
    """What one pass asks, in the terms of `pass_problem`, with the truth behind it."""

    truth: np.ndarray  # (C, K)
    group: np.ndarray
    right: np.ndarray
    column: np.ndarray | None
    observed: list[Observed]
    possible: np.ndarray | None

    def problem(self) -> PassProblem:
        return pass_problem(self.group, self.right, self.column, self.observed, self.possible)

    @property
    def allowed(self) -> np.ndarray:
        allowed = self.right[:, self.group] > 0
        return allowed if self.possible is None else allowed & self.possible

    def dense(self) -> ParentProblem:
        """The same as a problem of matrices over all columns, nothing presolved."""
        children, columns = self.truth.shape
        h, b = np.zeros((children, columns, columns)), np.zeros((children, columns))
        for query in self.observed:
            member = query.group[:, None] == np.arange(query.values.shape[1])
            h += query.weight[:, None, None] * (member @ member.T)
            b += query.weight[:, None] * query.values[:, query.group]
        rows = (self.group == np.arange(self.right.shape[1])[:, None]).astype(np.uint8)
        sides = self.right.astype(float)
        return ParentProblem(
            h, b, self.column, self.allowed, rows, sides, sides, np.arange(children, dtype=np.int32)
        )


def small_pass(
    seed: int,
    *,
    children: int = 3,
    columns: int = 6,
    sums: int = 2,
    crossing: int = 2,
    root: bool = False,
    masks: bool = False,
    mean: float = 2.0,
    noise: float = 2.0,
) -> SmallPass:
    """Random columns under exact sums: answers of columns, of groups inside exact sums, of groups across them, and unmeasured ones."""
    rng = np.random.default_rng(seed)
    of_sum = rng.permutation(np.arange(columns) % sums).astype(np.int32)
    truth = rng.poisson(mean, (children, columns)) * (rng.random((children, sums)) < 0.8)[:, of_sum]
    right = np.zeros((children, sums), np.int64)
    np.add.at(right.T, of_sum, truth.T)
    nested = of_sum * 3 + rng.integers(0, 3, columns)
    labels = [np.arange(columns), nested, *rng.integers(0, max(2, columns // 3), (crossing, columns))]
    observed = []
    for number, label in enumerate([*labels, rng.integers(0, 2, columns)]):
        group = np.unique(label, return_inverse=True)[1].astype(np.int32)
        answers = np.zeros((children, group.max() + 1), np.int64)
        np.add.at(answers.T, group, truth.T)
        answers += np.rint(rng.normal(0, noise, answers.shape)).astype(np.int64)
        weight = rng.uniform(0.2, 3.0, children) if number < len(labels) else np.zeros(children)
        observed.append(Observed(group, answers, weight))
    possible = (truth > 0) | (rng.random(truth.shape) < 0.5) if masks else None
    return SmallPass(truth, of_sum, right, None if root else truth.sum(axis=0), observed, possible)


def contradicting_root(seed: int) -> PassProblem:
    """A root whose exact sums contradict its answers: short ones weigh 900 times as much as fine ones, middle ones 30 times.

    So are households whose householders are those of the persons of a state.
    """
    rng, shape = np.random.default_rng(seed), (6, 8, 3, 40)
    a, b, c, d = np.unravel_index(np.arange(np.prod(shape)), shape)
    likely = np.ones(len(a))
    for place, size in zip((a, b, c, d), shape, strict=True):
        likely *= (rng.pareto(1.0, size) + 0.02)[place]
    truth = rng.multinomial(200_000, likely / likely.sum())
    other = np.maximum(truth + np.rint(rng.normal(0, 1, len(a)) * np.sqrt(truth)).astype(np.int64), 0)
    short = ((a * 3 + c, 3), (c, 4), (b * 3 + c, 4), (d % 12 * 3 + c, 2), (d % 5 * 6 + a, 3))
    answers = [(label, 900.0, deviation) for label, deviation in short]
    answers += [((a * 40 + d) * 3 + c, 30.0, 3), (b * 40 + d, 1.0, 5), (np.arange(len(a)), 1.0, 2)]
    observed = []
    for label, weight, deviation in answers:
        group = np.unique(label, return_inverse=True)[1].astype(np.int32)
        noise = np.rint(rng.normal(0, deviation, group.max() + 1)).astype(np.int64)
        values = np.bincount(group, truth).astype(np.int64) + noise
        observed.append(Observed(group, values[None, :], np.array([weight / deviation**2])))
    right = np.bincount(a * 8 + b, other).astype(np.int64)[None, :]
    return pass_problem((a * 8 + b).astype(np.int32), right, None, observed)


def start(problem: PassProblem) -> Dual:
    """Multipliers of zero."""
    rows, columns = len(problem.sums.right), len(problem.sums.column)
    entries = len(problem.entries.child)
    dual = Dual(np.zeros(rows), np.zeros(columns), np.empty(entries), np.empty(rows), np.empty(columns))
    evaluate(problem.entries, problem.sums, dual)
    return dual


@dataclass(frozen=True, eq=False)
class Climbed:
    dual: Dual
    x: np.ndarray  # (C, K)
    missed: float
    violation: float
    gap: float


def climbed(problem: PassProblem, tolerance: float = 1e-9) -> Climbed:
    """The point of a pass for all columns, and what is said of it."""
    dual = start(problem)
    _, _, missed = climb(problem.entries, problem.sums, dual, tolerance)
    x = problem.fixed.astype(float)
    x[problem.entries.child, problem.free[problem.entries.column]] = dual.x
    return Climbed(dual, x, missed, *judge(problem.sums, dual))


def matrices(problem: PassProblem) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The sums of rows and of columns over the entries, one entry after another by definition."""
    entries, sums = problem.entries, problem.sums
    rows, columns = [], []
    for v, (c, k) in enumerate(zip(entries.child.tolist(), entries.column.tolist(), strict=True)):
        columns.append((k, v))
        for first, size, label in zip(sums.first, sums.size, sums.label, strict=True):
            if label[k] >= 0:
                rows.append((int(first + c * size + label[k]), v))
    found = []
    for pairs, height in ((rows, len(sums.right)), (columns, len(sums.column))):
        at = np.array(pairs if height else [], np.int64).reshape(-1, 2)
        ones = np.ones(len(at))
        found.append(sparse.coo_array((ones, (at[:, 0], at[:, 1])), (height, len(entries.child))).tocsr())
    return found[0], found[1]


def value(problem: PassProblem, x: np.ndarray) -> float:
    """Objective of entries."""
    entries, sums = problem.entries, problem.sums
    residual = matrices(problem)[0] @ x - sums.right
    squares = entries.curvature @ (x - entries.target) ** 2 + sums.weight @ residual**2
    return float(0.5 * squares)


def optimum(
    problem: PassProblem, right: np.ndarray | None = None, column: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Least value and its point by an interior point of others; other right sides of exact rows and columns may be given."""
    clarabel = pytest.importorskip("clarabel")
    entries, sums = problem.entries, problem.sums
    rows, columns = matrices(problem)
    exact = sums.weight == 0.0
    right = sums.right if right is None else right
    column = sums.column if column is None else column
    n = len(entries.child)
    measured = rows[~exact]
    quadratic = sparse.diags_array(entries.curvature) + measured.T @ (
        sums.weight[~exact][:, None] * measured.toarray()
    )
    linear = -entries.curvature * entries.target - measured.T @ (sums.weight * sums.right)[~exact]
    # a sum that no entry belongs to says nothing
    used = np.flatnonzero(exact)[rows[exact].sum(axis=1) > 0]
    equal = sparse.vstack([rows[used], columns, -sparse.eye_array(n)], format="csc")
    sides = np.concatenate([right[used], column, np.zeros(n)])
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(chosen, name, 1e-11)
    cones = [clarabel.ZeroConeT(len(sides) - n), clarabel.NonnegativeConeT(n)]
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.triu(quadratic)), linear, sparse.csc_matrix(equal), sides, cones, chosen
    ).solve()
    x = np.array(answer.x)
    return value(problem, x), x
