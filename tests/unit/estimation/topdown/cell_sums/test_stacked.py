"""Two histograms with shared sums beside dense generalized least squares of both under the equalities."""

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.estimation.topdown.cell_sums.own import AnswerGroups, OwnLevel, own_states
from censafe.estimation.topdown.cell_sums.structure import CellSum, SumProblem, SumTerm
from censafe.estimation.topdown.cell_sums.tree import StackedAnswers, StackedSums, SumLevel, sum_tree
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.model import Recode
from censafe.model.schema import Attribute, Schema, make_query

UNITS = Schema("units", (Attribute("tenure", 5),))
HOMES = Schema("homes", (Attribute("owned", 3), Attribute("race", 3), Attribute("kind", 3)))
COARSE = {
    "two": Recode("two", "kind", ((0, 1), (2,)), True),
    "rented": Recode("rented", "owned", ((0, 1), (2,)), True),
}
SHARED = (
    ((SumTerm({"tenure": frozenset({0})}),), (SumTerm({"tenure": frozenset({1, 2})}),)),
    ((SumTerm({"owned": frozenset({0})}),), (SumTerm({"owned": frozenset({1, 2})}),)),
)  # fmt: skip
ASKED: tuple[tuple[CellSum, ...], ...] = (
    ((SumTerm({"tenure": frozenset({3})}),),),
    ((SumTerm({"race": frozenset({1}), "kind": frozenset({2})}),), (SumTerm({"owned": frozenset({1}), "race": frozenset({0, 2})}),)),
)  # fmt: skip
PARENTS = (np.array([-1]), np.array([0, 0, 0]))


def row(schema: Schema, terms: CellSum) -> NDArray[np.float64]:
    found = np.zeros(schema.shape)
    for term in terms:
        levels = zip(schema.names, schema.shape, strict=True)
        found[np.ix_(*[list(term.when.get(name, range(size))) for name, size in levels])] += term.times
    return found.reshape(-1)


def test_shared_sums_and_known_totals_are_those_of_dense_least_squares() -> None:
    rng = np.random.default_rng(4)
    homes = rng.poisson(4, (3, HOMES.cells))
    tenure = homes @ np.array([row(HOMES, one) for one in SHARED[1]]).T.astype(int)
    split = rng.binomial(tenure[:, 1], 0.5)
    units = np.column_stack([tenure[:, 0], split, tenure[:, 1] - split, rng.poisson(3, 3), rng.poisson(2, 3)])
    total = np.array([0, 0, 0, 0, 1], np.int32)
    problems = [
        SumProblem(UNITS, [make_query(UNITS, "detailed", {})], np.ones(5, bool), [*ASKED[0], *SHARED[0]], total, total),
        SumProblem(
            HOMES, [make_query(HOMES, name, COARSE) for name in ("two * rented", "race", "detailed")],
            np.ones(HOMES.cells, bool), [*ASKED[1], *SHARED[1]],
        ),
    ]  # fmt: skip
    sums = StackedSums(problems[0], problems[1], 2)
    width = UNITS.cells + HOMES.cells
    rows, answers, weights, levels = [], [], [], []
    for depth, leaves in enumerate(([[0, 1, 2]], [[0], [1], [2]])):
        own = []
        for place, (problem, truth) in enumerate(zip(problems, (units, homes), strict=True)):
            variances = rng.uniform(1, 9, len(problem.queries))
            values = []
            for query, variance in zip(problem.queries, variances, strict=True):
                ask = (query.label == np.arange(query.answers)[:, None]).astype(float)
                drawn = []
                for one in leaves:
                    y = np.rint(
                        ask @ truth[one].sum(axis=0) + rng.normal(0, variance**0.5, query.answers)
                    ).astype(int)
                    stacked = np.zeros((query.answers, 3, width))
                    stacked[:, one, place * UNITS.cells : place * UNITS.cells + problem.schema.cells] = ask[
                        :, None
                    ]
                    rows.append(stacked.reshape(query.answers, -1))
                    answers.append(y)
                    weights.append(np.full(query.answers, 1 / variance))
                    drawn.append(y)
                values.append(np.array(drawn))
            labels = [query.label for query in problem.queries]
            objective = LevelObjective.of(labels, variances, values)
            names = [query.name for query in problem.queries]
            present = np.ones((len(leaves), 2), bool)
            level = OwnLevel.of(AnswerGroups(problem), names, objective.weights, objective.kinds, present)
            own.append((level, own_states(level, objective.source)))
        known = np.array([[units[one][:, :4].sum(), units[one][:, 4].sum(), 0, 0] for one in leaves])
        both = StackedAnswers.of(sums, own[0][0], own[1][0])
        levels.append(SumLevel(str(depth), PARENTS[depth], both, sums.states(own[0][1], own[1][1]), known))
    tree = sum_tree(sums, levels)
    system, weight = np.concatenate(rows), np.concatenate(weights)
    equal = [np.concatenate([row(UNITS, a), -row(HOMES, b)]) for a, b in zip(*SHARED, strict=True)]
    holds = np.kron(
        np.eye(3),
        np.array([*(np.concatenate([total == group, np.zeros(HOMES.cells)]) for group in (0, 1)), *equal]),
    )
    right = np.column_stack([units[:, :4].sum(axis=1), units[:, 4], np.zeros((3, 2))]).reshape(-1)
    precision = (system.T * weight) @ system
    covariance = np.linalg.inv(precision)
    gain = covariance @ holds.T @ np.linalg.inv(holds @ covariance @ holds.T)
    estimate = covariance @ (system.T @ (weight * np.concatenate(answers)))
    estimate += gain @ (right - holds @ estimate)
    covariance -= gain @ holds @ covariance
    asked = [np.concatenate([row(UNITS, one), np.zeros(HOMES.cells)]) for one in (*ASKED[0], *SHARED[0])]
    asked += [np.concatenate([np.zeros(5), row(HOMES, one)]) for one in (*ASKED[1], *SHARED[1])]
    for members, leaves in (([(0, 0)], [1, 1, 1]), ([(1, 1)], [0, 1, 0]), ([(1, 0), (1, 2)], [1, 0, 1])):
        wanted = np.array([np.kron(leaves, one) for one in asked])
        np.testing.assert_allclose(tree.union_values(members), wanted @ estimate, rtol=1e-9, atol=1e-9)
        expected = np.einsum("ij,jk,ik->i", wanted, covariance, wanted)
        np.testing.assert_allclose(tree.union_variances(members), expected, rtol=1e-9, atol=1e-9)


def test_sums_that_take_contrasts_are_refused() -> None:
    """Two tenures that every query keeps are averaged and contrasted, so that they cannot be tied to another histogram."""
    plain = Schema("plain", (Attribute("owned", 2), Attribute("race", 3)))
    first = SumProblem(
        UNITS, [make_query(UNITS, "tenure", {})], np.ones(5, bool), SHARED[0], np.arange(5, dtype=np.int32)
    )
    sums = [(SumTerm({"owned": frozenset({level})}),) for level in (0, 1)]
    second = SumProblem(plain, [make_query(plain, "detailed", {})], np.ones(6, bool), sums)
    with pytest.raises(ValueError, match="shared sums"):
        StackedSums(first, second, 2)
