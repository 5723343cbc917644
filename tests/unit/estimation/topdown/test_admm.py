import numpy as np
import pytest

from censafe.estimation.topdown import L2Status, l2, solve_l2
from censafe.estimation.topdown.admm import alternating_directions
from censafe.estimation.topdown.presolve import tighten
from support.parents import small_parent


@pytest.mark.parametrize("seed", range(6))
def test_comes_close_to_the_exact_point(seed):
    problem = small_parent(seed, children=4, cells=6)
    tight = tighten(problem)
    point = alternating_directions(problem, problem.H, tight)
    assert point.x == pytest.approx(solve_l2(problem).x, abs=1e-3)
    assert (point.x >= 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_root_comes_close_to_the_exact_point(seed):
    problem = small_parent(seed, children=1, cells=6, root=True)
    tight = tighten(problem)
    point = alternating_directions(problem, problem.H, tight)
    assert point.x == pytest.approx(solve_l2(problem).x, abs=1e-3)


def a_parent_whose_active_set_fails_first(monkeypatch, failures):
    """Let the first runs of the active set end without a point."""
    run, calls = l2._run, []

    def failing(setting, state, status):
        calls.append(status)
        return None if len(calls) <= failures else run(setting, state, status)

    monkeypatch.setattr(l2, "_run", failing)
    return small_parent(3, children=4, cells=6)


def test_the_active_set_finishes_from_its_point(monkeypatch):
    exact = solve_l2(small_parent(3, children=4, cells=6)).x
    result = solve_l2(a_parent_whose_active_set_fails_first(monkeypatch, 1))
    assert (result.status, result.x) == (L2Status.OK_AFTER_ADMM, pytest.approx(exact, abs=1e-9))


def test_an_approximate_point_is_called_so(monkeypatch):
    result = solve_l2(a_parent_whose_active_set_fails_first(monkeypatch, 2))
    assert (result.status, result.status.exact) == (L2Status.APPROXIMATE, False)
    assert 0 < result.violation < 1e-3
    assert np.isfinite(result.gap)
