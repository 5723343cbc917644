"""Estimates of sums of cells on small trees beside dense generalized least squares of the stacked system."""

import itertools
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.own import AnswerGroups, OwnLevel, own_states
from censafe.estimation.topdown.cell_sums.structure import CellSum, SumProblem, SumTerm
from censafe.estimation.topdown.cell_sums.tree import StackedAnswers, StackedSums, SumLevel, SumTree, sum_tree
from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.model import CellQuery, Recode
from censafe.model.schema import Attribute, Schema, make_query
from censafe.model.topdown.answers import AnswerSums, SummingInRounds
from censafe.products.topdown.table_estimates.sums import EarlierLevel

_SCHEMA = Schema(
    "small", (Attribute("relgq", 5), Attribute("sex", 2), Attribute("age", 4), Attribute("race", 3))
)
_RECODES = {
    "voting": Recode("voting", "age", ((0, 1), (2, 3)), True),
    "rel3": Recode("rel3", "relgq", ((0,), (1, 2), (3, 4)), True),
    "crossing": Recode("crossing", "relgq", ((0, 3), (1, 2, 4)), True),
}
_NAMES = (
    "voting * rel3", "sex * age", "relgq", "crossing * voting", "rel3 * voting * race * sex", "detailed",
)  # fmt: skip
_SUMS = (
    (SumTerm({}),),
    (SumTerm({"sex": frozenset({0}), "age": frozenset({1, 2})}),),
    (SumTerm({"race": frozenset({0}), "relgq": frozenset({1, 2, 3})}),),
    (SumTerm({"race": frozenset({0, 2}), "sex": frozenset({1}), "age": frozenset({3})}),),
    (SumTerm({"relgq": frozenset({4})}), SumTerm({"relgq": frozenset({0}), "race": frozenset({1})}, -0.5)),
    (SumTerm({"race": frozenset()}),),
)  # fmt: skip
_SIZES = (1, 2, 4, 9)
_ROUNDING = 1 / 12  # variance of rounding


@dataclass(frozen=True, eq=False)
class World:
    """A tree with its answers, and the same as a stacked system; without it where it was not asked for."""

    tree: SumTree
    truth: NDArray[np.int64]
    dense: tuple[NDArray[np.float64], NDArray[np.float64]]
    members: list[list[NDArray[np.int64]]]


def _parents(rng: np.random.Generator) -> list[NDArray[np.int64]]:
    found = [np.array([-1])]
    for above, own in itertools.pairwise(_SIZES):
        found.append(np.sort(np.append(np.arange(above), rng.integers(0, above, own - above))))
    return found


def _sums_matrix() -> NDArray[np.float64]:
    found = np.zeros((len(_SUMS), *_SCHEMA.shape))
    for number, terms in enumerate(_SUMS):
        for term in terms:
            sets = [list(term.when.get(name, range(levels)))
                    for name, levels in zip(_SCHEMA.names, _SCHEMA.shape, strict=True)]  # fmt: skip
            found[number][np.ix_(*sets)] += term.times
    return found.reshape(len(_SUMS), -1)


def make_world(
    seed: int, *, exact_atoms: int, totals: bool = False, detailed: bool = True, dense: bool = True
) -> World:
    rng = np.random.default_rng(seed)
    allowed = np.ones(_SCHEMA.shape, bool)
    allowed[1, :, :1], allowed[3, :, 2:], allowed[4, :, :1] = False, False, False
    allowed = allowed.reshape(-1)
    names = _NAMES if detailed else _NAMES[:-1]
    queries = [make_query(_SCHEMA, name, _RECODES) for name in names]
    kinds = np.clip(_SCHEMA.levels_of("relgq") - 2, 0, None).astype(np.int32)
    parents = _parents(rng)
    present = [np.zeros((size, 3), bool) for size in _SIZES]
    present[-1] = rng.random((_SIZES[-1], 3)) < np.array([0.9, 0.5, 0.5])
    for depth in range(len(_SIZES) - 1, 0, -1):
        np.logical_or.at(present[depth - 1], parents[depth], present[depth])
    members = [[np.array([node]) for node in range(_SIZES[-1])]]
    for depth in range(len(_SIZES) - 1, 0, -1):
        members.insert(0, [
            np.concatenate([members[0][one] for one in np.flatnonzero(parents[depth] == node)])
            for node in range(_SIZES[depth - 1])
        ])  # fmt: skip
    mask = allowed & present[-1][:, kinds]
    truth = rng.poisson(3.0, mask.shape) * mask
    known = np.zeros(_SCHEMA.cells, np.int32) if totals else None
    problem = SumProblem(_SCHEMA, queries, allowed, _SUMS, kinds, known, exact_atoms)
    groups = AnswerGroups(problem)
    levels, rows, answers, noise, exact = [], [], [], [], []
    for depth, size in enumerate(_SIZES):
        own = list(range(len(queries))) if depth != 2 else [len(queries) - 1, *range(len(queries) - 2)]
        variances = rng.uniform(0.5, 30.0, (2, len(own)))
        budget = rng.integers(0, 2, size).astype(np.int32)
        values = []
        for place, ordinal in enumerate(own):
            ask = _ask(queries[ordinal])
            drawn = np.zeros((size, len(ask)), np.int64)
            for node in range(size):
                leaves = members[depth][node]
                variance = variances[budget[node], place]
                drawn[node] = ask @ truth[leaves].sum(axis=0) + np.rint(
                    rng.normal(0, (variance - _ROUNDING) ** 0.5, len(ask))
                )
                row = np.zeros((len(ask), _SIZES[-1], _SCHEMA.cells))
                row[:, leaves] = ask[:, None, :]
                rows.append(row.reshape(len(ask), -1))
                answers.append(drawn[node])
                noise.append(np.full(len(ask), variance))
            values.append(drawn)
        objective = LevelObjective.of([queries[one].label for one in own], variances, values, budget)
        sums = None
        if totals and depth == 1:
            sums = np.array([[truth[one].sum()] for one in members[depth]])
            exact = members[depth]
        level = OwnLevel.of(
            groups, [queries[one].name for one in own], objective.weights, budget, present[depth]
        )
        states = own_states(level, objective.source)
        levels.append(SumLevel(str(depth), parents[depth], level, states, sums))
    if not dense:
        return World(sum_tree(problem, levels), truth, (np.zeros(0), np.zeros(0)), members)
    inside = np.flatnonzero(mask.reshape(-1))
    system = np.concatenate(rows)[:, inside]
    weights = 1 / np.concatenate(noise)
    precision = (system.T * weights) @ system
    covariance = np.linalg.inv(precision)
    estimate = covariance @ (system.T @ (weights * np.concatenate(answers)))
    if totals:
        holds = np.array([np.isin(np.arange(_SIZES[-1]), one) for one in exact]).repeat(
            _SCHEMA.cells, axis=1
        )[:, inside]
        gain = covariance @ holds.T @ np.linalg.inv(holds @ covariance @ holds.T)
        right = np.array([truth[one].sum() for one in exact])
        estimate = estimate + gain @ (right - holds @ estimate)
        covariance = covariance - gain @ holds @ covariance
    size = _SIZES[-1] * _SCHEMA.cells
    whole, spread = np.zeros(size), np.zeros((size, size))
    whole[inside] = estimate
    spread[np.ix_(inside, inside)] = covariance
    return World(sum_tree(problem, levels), truth, (whole, spread), members)


def _ask(query: CellQuery) -> NDArray[np.int64]:
    return (query.label == np.arange(query.answers)[:, None]).astype(np.int64)


def _dense(world: World, leaves: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    row = np.zeros((len(_SUMS), _SIZES[-1], _SCHEMA.cells))
    row[:, leaves] = _sums_matrix()[:, None, :]
    flat = row.reshape(len(_SUMS), -1)
    estimate, covariance = world.dense
    return flat @ estimate, np.einsum("ij,jk,ik->i", flat, covariance, flat)


@pytest.mark.parametrize(("seed", "totals"), [(0, False), (1, True), (2, True)])
def test_every_geounit_and_union_equals_dense_least_squares(seed: int, totals: bool) -> None:
    world = make_world(seed, exact_atoms=1000, totals=totals)
    for depth, nodes in enumerate(world.members):
        values = world.tree.problem.values(world.tree.states(depth))
        for node, leaves in enumerate(nodes):
            expected, variances = _dense(world, leaves)
            np.testing.assert_allclose(values[node], expected, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                world.tree.union_variances([(depth, node)]), variances, rtol=1e-9, atol=1e-9
            )
    union = [(3, 0), (3, 8), (3, 4)]
    expected, variances = _dense(world, np.array([0, 8, 4]))
    np.testing.assert_allclose(world.tree.union_values(union), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(world.tree.union_variances(union), variances, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_a_short_state_costs_little_precision(seed: int) -> None:
    """What is asked for and the answers of the short queries in place of all atoms: never better than the best, and close to it."""
    world = make_world(seed, exact_atoms=0, totals=True)
    ratios = []
    for depth, nodes in enumerate(world.members):
        for node, leaves in enumerate(nodes):
            _, best = _dense(world, leaves)
            found = world.tree.union_variances([(depth, node)])
            known = best > 1e-9
            ratios.append(found[known] / best[known])
    every = np.concatenate(ratios)
    assert (every > 1 - 1e-9).all()
    assert every.max() < 1.25
    assert np.median(every) < 1.01


def test_answers_that_do_not_determine_the_cells_are_refused() -> None:
    with pytest.raises(CheckError, match="do not determine its cells"):
        make_world(0, exact_atoms=1000, detailed=False)


def _coverage(draws: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of intervals that hold the truth by level, for 90% and 95%, and its standard error over draws."""
    found = np.zeros((draws, len(_SIZES), 2))
    for draw in range(draws):
        world = make_world(1000 + draw, exact_atoms=0, totals=True, dense=False)
        for depth, nodes in enumerate(world.members):
            values = world.tree.problem.values(world.tree.states(depth))
            hits = []
            for node, leaves in enumerate(nodes):
                true = _sums_matrix() @ world.truth[leaves].sum(axis=0)
                spread = np.sqrt(world.tree.union_variances([(depth, node)]))
                known = spread > 0
                error = np.abs(values[node] - true)
                np.testing.assert_allclose(error[~known], 0.0, atol=1e-6)
                hits.append(error[known][:, None] <= np.array([1.6449, 1.96]) * spread[known][:, None])
            found[draw, depth] = np.concatenate(hits).mean(axis=0)
    return found.mean(axis=0), found.std(axis=0, ddof=1) / draws**0.5


@pytest.mark.parametrize("draws", [pytest.param(200, marks=pytest.mark.long), 12])
def test_intervals_of_a_short_state_hold_the_truth_as_often_as_they_say(draws: int) -> None:
    """Every draw has a tree, budgets, facilities and noise of its own.

    False alarm: 8 shares beyond four standard errors, 1 in 2,000. A standard deviation too small by a tenth is found by 200 draws.
    """
    share, error = _coverage(draws)
    assert (np.abs(share - [0.9, 0.95]) <= 4 * error + 0.002).all(), share


# Own estimates from answers that are read in rounds: the same states, and no round is in memory while the next one is read.


ROUND_SCHEMA = Schema("small", (Attribute("relgq", 3), Attribute("sex", 2), Attribute("race", 2)))
_GEOUNITS = 7


@dataclass(frozen=True, eq=False)
class Rounds:
    """Stored answers, three geounits at a time; says when a round is still there although the next is asked for."""

    source: StoredAnswers

    def rounds(
        self, asked: Sequence[AnswerSums], pattern: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        held: weakref.ref[NDArray[np.int64]] | None = None
        for first in range(0, len(pattern), 3):
            if held is not None and held() is not None:
                raise RuntimeError("the round before is in memory")
            some = np.arange(first, min(first + 3, len(pattern)))
            found = np.array(
                [self.source.sums(asked[pattern[one]], some[[at]])[0] for at, one in enumerate(some)]
            )
            held = weakref.ref(found)
            yield some, found
            del found


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("beside", [False, True])
def test_a_round_is_let_go_before_the_next_is_read(workers: int, beside: bool) -> None:
    rng = np.random.default_rng(3)
    queries = [make_query(ROUND_SCHEMA, name, {}) for name in ("sex * race", "detailed")]
    problem = SumProblem(
        ROUND_SCHEMA,
        queries,
        np.ones(ROUND_SCHEMA.cells, bool),
        ((SumTerm({"sex": frozenset({0})}),),),
        None,
        None,
    )
    variances, kinds = rng.uniform(1, 9, (2, 2)), rng.integers(0, 2, _GEOUNITS).astype(np.int32)
    level = OwnLevel.of(
        AnswerGroups(problem), ["sex * race", "detailed"], 1 / variances, kinds, np.ones((_GEOUNITS, 1), bool)
    )
    stored = StoredAnswers([rng.integers(0, 50, (_GEOUNITS, size)) for size in (4, ROUND_SCHEMA.cells)])
    plain, rounds = stored, Rounds(stored)
    if beside:
        none = EarlierLevel((), np.zeros((1, 0)), np.zeros(_GEOUNITS, np.int32), ())
        plain, rounds = none.after(stored, 2), none.after(rounds, 2)
        assert isinstance(rounds, SummingInRounds)
    for own, other in zip(own_states(level, plain), own_states(level, rounds, workers), strict=True):
        np.testing.assert_array_equal(own, other)


# Two histograms with shared sums beside dense generalized least squares of both under the equalities.


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
