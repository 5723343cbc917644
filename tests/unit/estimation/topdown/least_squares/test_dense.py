import numpy as np
import pytest

from censafe.estimation.topdown.least_squares.dense import BLOCK, factor, invert, solve_factored, solve_vector


@pytest.mark.parametrize("size", [1, 2, 7, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_inverse_and_factor(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + np.eye(size)
    inverse, lower, used = matrix.copy(), matrix.copy(), np.ones(size, bool)
    invert(inverse)
    assert inverse @ matrix == pytest.approx(np.eye(size), abs=1e-9)
    factor(lower, used)
    sides = rng.normal(size=(size, 2))
    answer = sides.copy()
    solve_factored(lower, used, answer)
    assert (matrix @ answer, used.all()) == (pytest.approx(sides, abs=1e-9), True)
    vector = sides[:, 0].copy()
    solve_vector(lower, used, vector)
    assert vector == pytest.approx(answer[:, 0], abs=1e-12)


def test_a_dependent_equation_is_left_out():
    matrix, used = np.array([[2.0, 2, 0], [2, 2, 0], [0, 0, 5]]), np.ones(3, bool)
    lower, sides = matrix.copy(), np.array([[4.0], [4], [10]])
    factor(lower, used)
    solve_factored(lower, used, sides)
    assert (used.tolist(), matrix @ sides) == (
        [True, False, True],
        pytest.approx(np.array([[4.0], [4], [10]])),
    )
