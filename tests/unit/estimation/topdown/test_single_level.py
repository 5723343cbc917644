"""One level alone: the fit of a root is non-negative least squares, here by scipy's solver of another kind."""

import numpy as np
import pytest
from scipy.optimize import nnls

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.least_squares.problem import L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2

SHAPE = (3, 2, 4)


def labels() -> list[np.ndarray]:
    cell = np.arange(np.prod(SHAPE))
    kind, _, race = np.unravel_index(cell, SHAPE)
    return [np.zeros_like(cell), kind, race, kind * SHAPE[2] + race, cell]


@pytest.mark.parametrize("seed", range(6))
def test_a_level_alone_is_nonnegative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.poisson(0.8, np.prod(SHAPE))
    variances = rng.uniform(0.5, 40, 5)
    noisy = []
    for label, variance in zip(labels(), variances, strict=True):
        exact = np.bincount(label, weights=truth).astype(np.int64)
        noisy.append((exact + np.rint(rng.normal(0, variance**0.5, exact.shape)).astype(np.int64))[None])
    queries = [label.astype(np.int32) for label in labels()]
    h, _, b = LevelObjective.of(queries, variances, noisy).equations(0, 1, np.arange(truth.size))
    found = solve_l2(ParentProblem.without_rows(h, b, None))
    rows = [
        (label == answer) / variance**0.5
        for label, variance in zip(labels(), variances, strict=True)
        for answer in range(label.max() + 1)
    ]
    sides = np.concatenate([one[0] / v**0.5 for one, v in zip(noisy, variances, strict=True)])
    expected, _ = nnls(np.array(rows, float), sides)
    assert found.status is L2Status.OK
    assert (expected == 0).any()  # so that the bounds are at work
    assert found.x[0] == pytest.approx(expected, abs=1e-7)
