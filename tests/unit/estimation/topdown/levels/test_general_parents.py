"""Several geounits without a parent: sums over the longest exchangeable attribute are fitted first at every one of them."""

import numpy as np
import pytest
from scipy.optimize import nnls

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.general_parents import root_problems
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits
from censafe.estimation.topdown.levels.passes import estimate_parent
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.sweep import TreeLevel, lower_estimates, pooled

CELLS, KINDS, RACES = 15, 3, 5
KIND = np.repeat(np.arange(KINDS), RACES).astype(np.int32)
LABELS = (np.zeros(CELLS, np.int32), KIND, np.arange(CELLS, dtype=np.int32))
TOTALS = np.array([40, 25])


def objective() -> LevelObjective:
    """Three roots, two of them with a total of their sum, and two children of each."""
    rng = np.random.default_rng(6)
    parent = np.repeat(np.arange(3), 2)
    truth = rng.poisson(0.7, (6, CELLS))

    def answers(counts: np.ndarray, variances: tuple[float, ...]) -> LevelObjective:
        exact = [counts.sum(axis=1, keepdims=True), counts.reshape(-1, KINDS, RACES).sum(axis=2), counts]
        noisy = [
            one + np.rint(rng.normal(0, v**0.5, one.shape)).astype(int)
            for one, v in zip(exact, variances, strict=True)
        ]
        return LevelObjective.of(LABELS, variances, tuple(one.astype(np.int32) for one in noisy))

    roots = np.zeros((3, CELLS), int)
    np.add.at(roots, parent, truth)
    support = np.ones((6, KINDS), bool)
    groups = np.array([0, 1, 0])
    blocks = CellBlocks.of((KINDS, RACES), LABELS, (KIND,))
    levels = [
        TreeLevel("whole", None, np.full(2, -1), support[:2], TOTALS),
        TreeLevel("State", answers(roots, (4.0, 6.0, 9.0)), groups, support[:3]),
        TreeLevel("Block", answers(truth, (2.0, 3.0, 8.0)), parent, support),
    ]
    found = pooled(blocks, levels, lower_estimates(blocks, levels))
    assert found[0] is None
    assert found[1] is not None
    return found[1]


def test_the_sums_of_every_root_are_fitted_first_and_held() -> None:
    own = objective()
    free = np.zeros((3, 0), np.int64)
    limits = LevelLimits(None, free, free, groups=GroupTotals(np.array([0, 1, 0], np.int32), TOTALS))
    solved = {}
    for roots in root_problems(limits, np.ones(CELLS, bool)):
        made = estimate_parent(roots.problem, roots.passes(own, ()))
        first, second = (solve.x[0] for solve in made.solves)
        assert len(first) == KINDS * len(roots.members)
        assert second.reshape(-1, RACES).sum(axis=1) == pytest.approx(first, abs=1e-6)
        total = TOTALS[0] if 0 in roots.members else TOTALS[1]
        assert made.counts.sum() == total
        assert first == pytest.approx(by_hand(own, roots.members, total), abs=1e-4)
        solved[roots.members] = second
    assert set(solved) == {(0, 2), (1,)}


def by_hand(own: LevelObjective, members: tuple[int, ...], total: int) -> np.ndarray:
    """Sums by non-negative least squares: their estimates, weighted by their precision, and the total as a heavy row."""
    rows, sides = [], []
    for place, member in enumerate(members):
        h, _, b = own.equations(member, member + 1, np.arange(CELLS))
        spread = np.kron(np.eye(KINDS), np.full((RACES, 1), 1 / RACES))  # a sum, shared evenly
        precision, right = spread.T @ h[0] @ spread, spread.T @ b[0]
        root = np.linalg.cholesky(precision).T
        whole = np.zeros((KINDS, KINDS * len(members)))
        whole[:, place * KINDS : (place + 1) * KINDS] = root
        rows.append(whole)
        sides.append(np.linalg.solve(root.T, right))
    rows.append(np.full((1, KINDS * len(members)), 1e4))
    sides.append(np.array([1e4 * total]))
    return nnls(np.vstack(rows), np.concatenate(sides))[0]
