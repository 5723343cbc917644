from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.problem import ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.rounding.controlled import _integral, round_parent, round_point, tree_of
from censafe.model.programs import Program
from support.parents import free_parent
from support.rounding import rounding_cost

H = 2 * np.eye(3) + 1
B = np.array([[13.0, 3, 5], [7, 9, 11]])
P = np.array([5, 1, 4])


def chain(cells):
    index = np.arange(cells)
    return tuple((index // width).astype(np.int32) for width in (cells, 4, 2))


def fractional_parent(seed, *, children, cells, fixed_totals=True):
    """A fractional point whose sums over children, groups of cells and children's totals are integers."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(0.7, (children, cells))
    x = truth.astype(float)
    for _ in range(3 * children * cells):
        c, k = rng.integers(0, children, 2), rng.integers(0, cells // 4) * 4 + rng.choice(4, 2, replace=False)
        step = min(rng.uniform(0, 0.6), x[c[0], k[0]], x[c[1], k[1]]) if c[0] != c[1] else 0.0
        x[c[0], k[0]] -= step
        x[c[0], k[1]] += step
        x[c[1], k[1]] -= step
        x[c[1], k[0]] += step
    rows = np.array([np.arange(cells) // 4 == g for g in range(cells // 4)], dtype=np.uint8)
    have = np.rint(x @ rows.T)
    lo, hi = (have, have) if fixed_totals else (np.maximum(have - 1, 0), have + 1)
    allowed = (x > 0) | (rng.random(x.shape) < 0.5)
    return x, ParentProblem(np.eye(cells), x, truth.sum(axis=0), allowed, rows, lo, hi)


def best_by_linear_program(x, problem, tree, leaves="fractional"):
    nested = tree_of(tree, problem.cells)
    whole = np.floor(x + 1e-6)
    f = np.where(x - whole < 1e-6, 0, x - whole)
    children, cells, nodes = *x.shape, len(nested.parent)
    members = np.zeros((nodes, cells))
    for level in nested.label:
        members[level, np.arange(cells)] = 1
    in_tree = sparse.kron(sparse.eye(children), members)
    deviation = sparse.eye(children * nodes)
    over = sparse.kron(np.ones((1, children)), sparse.eye(cells))
    rows = sparse.kron(sparse.eye(children), problem.rows)
    nothing = sparse.csr_matrix((rows.shape[0], 2 * children * nodes))
    have = (whole @ problem.rows.T).ravel()
    answer = linprog(
        np.concatenate([(1 - 2 * f).ravel(), np.ones(2 * children * nodes)]),
        A_eq=sparse.bmat([[in_tree, -deviation, deviation], [over, None, None]]),
        b_eq=np.concatenate([np.rint(f @ members.T).ravel(), problem.p - whole.sum(axis=0)]),
        A_ub=sparse.vstack([sparse.hstack([rows, nothing]), -sparse.hstack([rows, nothing])]),
        b_ub=np.concatenate([problem.hi.ravel() - have, have - problem.lo.ravel()]),
        bounds=[(0, float(up)) for up in (f > 0 if leaves == "fractional" else problem.allowed).ravel()]
        + [(0, None)] * (2 * children * nodes),
        method="highs",
    )
    return answer.fun + f.sum()


def test_worked_example():
    problem, tree = free_parent(H, B, P), (np.array([0, 0, 1], np.int32),)
    x = solve_l2(problem).x
    counts = round_parent(x, problem, tree)
    assert counts.tolist() == [[4, 0, 1], [1, 1, 3]]
    assert rounding_cost(x, counts, tree) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fixed_totals", [True, False])
def test_cost_equal_to_the_linear_program(seed, fixed_totals):
    x, problem = fractional_parent(seed, children=6, cells=16, fixed_totals=fixed_totals)
    counts = round_parent(x, problem, chain(16))
    best = best_by_linear_program(x, problem, chain(16))
    assert counts.dtype == np.int64
    assert rounding_cost(x, counts, chain(16)) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_cell_moves_by_less_than_one(seed):
    x, problem = fractional_parent(seed, children=5, cells=8)
    assert np.abs(round_parent(x, problem, chain(8)) - x).max() < 1


@pytest.mark.parametrize("seed", range(4))
def test_all_positive_leaves_reach_the_linear_program_on_all_of_them(seed):
    x, problem = fractional_parent(seed, children=5, cells=8, fixed_totals=False)
    many = round_parent(x, problem, chain(8), leaves="all_positive")
    best = best_by_linear_program(x, problem, chain(8), "all_positive")
    assert rounding_cost(x, many, chain(8)) == pytest.approx(best, abs=1e-4)


def test_a_leaf_at_zero_may_be_cheaper_than_all_fractional_ones():
    x = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]])
    tree = (np.array([0, 0, 1, 1], np.int32),)
    none = np.zeros((3, 0))
    problem = ParentProblem(
        np.eye(4), x, np.ones(4, np.int64), np.ones((3, 4), bool), np.zeros((0, 4), np.uint8), none, none
    )
    few, many = (round_parent(x, problem, tree, leaves=leaves) for leaves in ("fractional", "all_positive"))
    assert not (few[x == 0] > 0).any()
    assert rounding_cost(x, many, tree) <= rounding_cost(x, few, tree)


def root(x, total=None):
    cells = x.shape[1]
    rows = np.ones((0 if total is None else 1, cells), np.uint8)
    side = np.full((1, len(rows)), 0.0 if total is None else float(total))
    return ParentProblem(np.eye(cells), x, None, np.ones((1, cells), bool), rows, side, side)


def test_root_takes_its_fixed_total_by_largest_fractions():
    x = np.array([[1.9, 0.2, 2.6, 0.3]])
    assert round_parent(x, root(x, 5), ()).tolist() == [[2, 0, 3, 0]]


def test_root_without_a_fixed_total_rounds_its_sum():
    x = np.array([[0.4, 0.4, 0.7]])
    assert int(round_parent(x, root(x), ()).sum()) == 2


def test_root_whose_sum_falls_short_of_its_total_still_meets_it():
    x = np.array([[2.0, 1.0, 0.0]])
    assert int(round_parent(x, root(x, 4), ()).sum()) == 4


def test_root_with_a_bounded_type():
    x = np.array([[1.45, 1.45, 0.55, 0.55]])
    problem = ParentProblem(
        np.eye(4), x, None, np.ones((1, 4), bool), np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.uint8),
        np.array([[4.0, 3.0]]), np.array([[4.0, 3.0]]),
    )  # fmt: skip
    counts = round_parent(x, problem, (np.array([0, 0, 1, 1], np.int32),))
    assert (int(counts.sum()), int(counts[0, :2].sum())) == (4, 3)


def test_integers_come_back_unchanged():
    x = np.array([[5.0, 0, 1], [0, 1, 3]])
    problem = free_parent(H, B, P)
    assert round_parent(x + 1e-9, problem, ()).tolist() == x.tolist()


def test_a_point_snapped_too_high_gives_units_back():
    problem = free_parent(np.eye(1), np.zeros((3, 1)), np.array([2]))
    counts = round_parent(np.full((3, 1), 1 - 5e-7), problem, ())
    assert int(counts.sum()) == 2


def test_levels_must_refine_each_other():
    with pytest.raises(CheckError, match="level 1 of the rounding tree does not refine"):
        tree_of((np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32)), 3)


def test_a_broken_row_is_never_returned():
    problem = ParentProblem(
        np.eye(2), np.zeros((2, 2)), np.array([1, 1]), np.ones((2, 2), bool), np.array([[1, 0]], np.uint8),
        np.array([[1.0], [1.0]]), np.array([[1.0], [1.0]]),
    )  # fmt: skip
    with pytest.raises(CheckError, match="rounding a parent broke 1 rows"):
        round_parent(np.full((2, 2), 0.5), problem, ())


TREE = (np.array([0, 0, 1, 1], np.int32),)
CROSSING = np.array([[0, 1, 1, 0], [1, 1, 1, 0]], np.uint8)


def crossing_parent(seed, *, width=0.0):
    """A fractional point of two children whose crossing rows hold whole numbers."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 4, (3, 4)).astype(float)
    x, pair = whole.copy(), rng.uniform(0.1, 0.9, 2)
    x[0] += np.array([0, pair[0], -pair[0], 0]) * (whole[0, 2] > 0)
    x[1] -= np.array([0, pair[0], -pair[0], 0]) * (whole[0, 2] > 0)
    x += np.array([[pair[1]], [-pair[1]], [0]]) * np.array([1, 0, 0, 1]) * (whole[1, [0, 3]].min() > 0)
    x = np.abs(x)
    have = np.rint(x @ CROSSING.T)
    lo, hi = np.floor(x @ CROSSING.T - width + 1e-9), np.ceil(x @ CROSSING.T + width - 1e-9)
    assert (lo <= have).all()
    return x, ParentProblem(
        np.eye(4), x, np.rint(x.sum(axis=0)).astype(np.int64), np.ones((3, 4), bool), CROSSING, lo, hi
    )


def least_cost(x, problem):
    """By trying all ways to round the fractional entries."""
    whole = np.floor(x + 1e-6)
    leaf = np.argwhere(x - whole > 1e-6)
    best = np.inf
    for chosen in product((0, 1), repeat=len(leaf)):
        counts = whole.copy()
        counts[tuple(leaf.T)] += chosen
        totals = counts @ problem.rows.T
        if (
            (counts.sum(axis=0) == problem.p).all()
            and (totals >= problem.lo).all()
            and (totals <= problem.hi).all()
        ):
            best = min(best, rounding_cost(x, counts.astype(np.int64), TREE))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_cost_equal_to_trying_all_roundings(seed):
    x, problem = crossing_parent(seed)
    found = round_point(x, problem, TREE)
    totals = found.counts @ problem.rows.T
    assert ((totals >= problem.lo) & (totals <= problem.hi)).all()
    assert np.array_equal(found.counts.sum(axis=0), problem.p)
    if found.method == "linear program":
        assert rounding_cost(x, found.counts, TREE) == pytest.approx(least_cost(x, problem), abs=1e-6)


def test_the_flow_is_kept_where_it_meets_all_rows():
    x, problem = crossing_parent(0, width=9.0)
    found = round_point(x, problem, TREE)
    assert (found.method, np.array_equal(found.counts, round_parent(x, problem, TREE))) == ("flow", True)


def odd_cycle():
    """Three cells that pairwise must hold exactly one: a half each is the only fractional way."""
    pairs = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], np.uint8)
    x = np.full((2, 3), 0.5)
    return x, ParentProblem(
        np.eye(3), x, np.ones(3, np.int64), np.ones((2, 3), bool), pairs, np.ones((2, 3)), np.ones((2, 3))
    )


def test_sides_that_no_integers_meet_are_refused():
    with pytest.raises(CheckError, match="no integers next to the fractional point"):
        round_point(*odd_cycle(), ())


def test_a_fractional_vertex_goes_to_the_mixed_integer_program():
    pairs = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    most_of_pairs = Program(-np.ones(3), pairs, np.zeros(3), np.ones(3), 0.0, np.ones(3), False)
    units, method = _integral(most_of_pairs, 3)
    assert (int(units.sum()), method) == (1, "mixed-integer program")


def test_totals_first_keeps_them_nearest():
    x = np.array([[0.6, 0.6, 0.6, 0.7], [0.4, 0.4, 0.4, 0.3]])
    rows = np.array([[0, 1, 1, 0]], np.uint8)
    problem = ParentProblem(
        np.eye(4),
        x,
        np.ones(4, np.int64),
        np.ones((2, 4), bool),
        rows,
        np.array([[1.0], [1.0]]),
        np.array([[1.0], [1.0]]),
    )
    found = round_point(x, problem, TREE, total_first=True)
    assert (found.method, found.counts.sum(axis=1).tolist()) == ("linear program", [2, 2])
    assert found.counts[:, 1:3].sum(axis=1).tolist() == [1, 1]
