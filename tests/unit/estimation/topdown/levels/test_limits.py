"""The arrays that the kernels read, made of constraints: the reference's cases, and every geounit of random trees beside its constraints."""

import json
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from censafe.errors import DataError
from censafe.estimation.topdown.levels.limits import LevelLimits, compact_form, contradictions, level_limits
from censafe.geography.spines.sums import sum_vectors
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import Attribute, ProtectedUnit, Recode, Schema
from censafe.model.topdown.histograms import (
    CellGroups,
    Facilities,
    FacilityCounts,
    HistogramSchema,
    LinearConstraint,
    OwnAnswers,
    own_constraints,
)
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.shared import shared_data

PL94 = shipped_schemas()["pl94-persons"]
SCHEMAS = {"pl94_persons": "pl94-persons", "e2e_1940": "e2e-1940"}
RULES = (LevelRule("State", 1), LevelRule("County", 2), LevelRule("Block", 3))
Totals = dict[str, np.ndarray]
SEEDS = (0, 1, 2, 3, 39, 46, 58)  # the last three have bounds of sets of kinds


def alone(schema: HistogramSchema, units: np.ndarray, total: int | None) -> LevelLimits:
    """Limits of one geounit."""
    tree = build_spine(np.array(["1"]), RULES[:1])
    known = {} if total is None else {"State": np.array([total])}
    (found,) = level_limits(tree, schema, own_constraints(schema, "State" if known else None), units, known)
    return found


def test_the_references_cases() -> None:
    cases = json.loads(shared_data("topdown/constraint_examples.json").read_text())["gq_bounds"]
    assert len(cases) == 10
    for case in cases:
        schema = shipped_schemas()[SCHEMAS[case["product"]]]
        assert schema.facilities is not None
        assert case["minimum_per_unit"] == list(schema.facilities.minimum)
        assert case["cap_per_unit"] == list(schema.facilities.largest)
        found = alone(schema, np.array([case["units_by_hhgq"]]), case["total"])
        assert case["hhgq_total_lb"] == found.lower[0].tolist(), case["case"]
        assert case["hhgq_total_ub"] == found.upper[0].tolist(), case["case"]


def test_bounds_without_totals_add_up() -> None:
    document = json.loads(shared_data("topdown/constraint_examples.json").read_text())
    expected = document["gq_bounds_sum"]
    units = np.array([case["units_by_hhgq"] for case in document["gq_bounds"][:2]])
    tree = build_spine(np.array(["11", "12"]), RULES[:2])
    state, _ = level_limits(tree, PL94, own_constraints(PL94, None), units, {})
    assert expected["hhgq_total_lb"] == state.lower[0].tolist()
    assert expected["hhgq_total_ub"] == state.upper[0].tolist()


def test_contradictions_are_found() -> None:
    low, high = np.array([[0, 0], [0, 2], [0, 2]]), np.array([[0, 0], [99, 9], [99, 9]])
    totals = np.array([5, 1, 2])
    np.testing.assert_array_equal([True, True, False], contradictions(low, high, totals))
    np.testing.assert_array_equal([False] * 3, contradictions(low, high))
    with pytest.raises(DataError, match="level State: in 1 the exact total does not fit"):
        alone(PL94, np.array([[3, 2, 0, 0, 0, 0, 0, 0]]), 1)


def test_wrong_shapes_levels_and_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="8 columns"):
        alone(PL94, np.zeros((1, 7), np.int64), None)
    with pytest.raises(ValueError, match="negative"):
        alone(PL94, np.full((1, 8), -1), None)
    tree, units = build_spine(np.array(["11", "12"]), RULES[:2]), np.zeros((2, 8), np.int64)
    exact = own_constraints(PL94, "State")
    with pytest.raises(ValueError, match="one value of 0 or more a geounit"):
        level_limits(tree, PL94, exact, units, {"State": np.zeros(2, np.int64)})
    for known in ({}, {"State": np.zeros(1, np.int64), "County": np.zeros(2, np.int64)}):
        with pytest.raises(ValueError, match=r"pl94-persons has those of \['State'\]"):
            level_limits(tree, PL94, exact, units, known)


def bound(relation: str, query: str = "hhgq", each: tuple[int, ...] = (9,) * 8) -> LinearConstraint:
    return LinearConstraint(f"{query} {relation}", CellGroups(query), relation, FacilityCounts(query, each))


@pytest.mark.parametrize(
    "constraints",
    [
        (bound(">="),),
        (bound(">="), bound("<="), bound("<=")),
        (bound(">="), bound("<=", "hhinst", (9, 9))),
        (bound("="),),
        (bound(">=", each=(1, 1)), bound("<=", each=(9, 9))),
        (LinearConstraint("part", CellGroups("total", {"hhgq": (0,)}), "=", OwnAnswers()),),
    ],
)
def test_other_forms_are_not_taken_for_the_compact_one(constraints: tuple[LinearConstraint, ...]) -> None:
    assert compact_form(PL94, constraints) is None
    tree = build_spine(np.array(["1"]), RULES[:1])
    with pytest.raises(ValueError, match="pl94-persons have no compact form"):
        level_limits(tree, PL94, constraints, np.zeros((1, 8), np.int64), {})


class World:
    """A random tree with a random schema, facilities, and totals of some levels from random histograms that obey them."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        codes = sorted({f"1{rng.integers(1, 4)}{rng.integers(1, 4)}" for _ in range(rng.integers(2, 6))})
        self.tree = build_spine(np.array(codes), RULES)
        kinds = int(rng.integers(2, 5))
        self.schema = random_schema(rng, kinds)
        rule = self.schema.facilities
        assert rule is not None
        self.units = rng.integers(0, 3, (len(codes), kinds)) * (rng.random((len(codes), kinds)) < 0.7)
        held = rng.integers(self.units * rule.minimum, self.units * rule.largest + 1)
        lowest = int(rng.integers(-1, 3))
        self.exact = None if lowest < 0 else RULES[lowest].name
        self.totals: Totals = {
            name: counts.sum(axis=1)
            for name, counts in list(zip(self.tree.names, sum_vectors(self.tree, held), strict=True))[
                : lowest + 1
            ]
        }
        self.constraints = own_constraints(self.schema, self.exact)

    def limits(self) -> tuple[LevelLimits, ...]:
        return level_limits(self.tree, self.schema, self.constraints, self.units, self.totals)

    def rows(self, depth: int) -> list[tuple[int, np.ndarray, str, int]]:
        """Every constraint at every geounit of a level, read from the list: geounit, cells, relation, right side."""
        level, found = self.tree.levels[depth], []
        counts = sum_vectors(self.tree, self.units)[depth]
        for one in self.constraints:
            if one.lowest is not None and depth > self.tree.names.index(one.lowest):
                continue
            label = self.schema.grouped(one.groups).label
            for node in range(level.nodes):
                if isinstance(one.right, OwnAnswers):
                    sides = self.totals[level.name][node : node + 1]
                else:
                    assert isinstance(one.right, FacilityCounts)
                    sides = counts[node] * np.array(one.right.each)
                found += [
                    (node, label == group, one.relation, side) for group, side in enumerate(sides.tolist())
                ]
        return found


def random_schema(rng: np.random.Generator, kinds: int) -> HistogramSchema:
    """Kinds that are the levels of an attribute in any place, or groups of a recode of it."""
    levels = kinds + int(rng.integers(0, 2))
    other = Attribute("race", int(rng.integers(1, 3)))
    own = Attribute("unit", levels)
    schema = Schema("random", (own, other) if rng.random() < 0.5 else (other, own))
    groups = tuple(
        tuple(np.flatnonzero(np.minimum(np.arange(levels), kinds - 1) == kind).tolist())
        for kind in range(kinds)
    )
    minimum = tuple(rng.integers(0, 2, kinds).tolist())
    largest = tuple((np.array(minimum) + rng.integers(0, 3, kinds)).tolist())
    recodes = {"kinds": Recode("kinds", "unit", groups, partition=True)}
    return HistogramSchema(
        schema, ProtectedUnit.PERSON, recodes, facilities=Facilities("kinds", minimum, largest)
    )


def can_be_shared(world: World, depth: int, node: int, held: np.ndarray) -> bool:
    """Whether blocks of a geounit can hold given cells in all, every constraint met in it and everywhere below: a linear program."""
    cells, blocks = world.schema.schema.cells, np.flatnonzero(world.tree.ancestors(depth) == node)
    above, sides = [], []
    equal, right = [np.tile(np.eye(cells), len(blocks))], [held.astype(float)]
    for below in range(depth, len(RULES)):
        of = world.tree.ancestors(below)[blocks]
        for place, inside, relation, side in world.rows(below):
            if place not in of:
                continue
            row = np.kron(of == place, inside).astype(float)
            if relation == "=":
                equal.append(row[None])
                right.append(np.array([side], float))
            else:
                above.append(row if relation == "<=" else -row)
                sides.append(float(side if relation == "<=" else -side))
    made = linprog(
        np.zeros(cells * len(blocks)), A_ub=np.array(above) if above else None, b_ub=sides or None,
        A_eq=np.concatenate(equal), b_eq=np.concatenate(right),
    )  # fmt: skip
    return bool(made.status == 0)


def obeys(limits: LevelLimits, node: int, held: np.ndarray) -> bool:
    """Whether the cells of a geounit obey the arrays of its level."""
    good = limits.totals is None or bool(held.sum() == limits.totals[node])
    if limits.kinds is not None:
        by_kind = np.bincount(limits.kinds, held, limits.lower.shape[1])
        good &= bool((limits.lower[node] <= by_kind).all() and (by_kind <= limits.upper[node]).all())
        if limits.cuts is not None:
            sums = limits.cuts.sets @ by_kind
            good &= bool((limits.cuts.lower[node] <= sums).all() and (sums <= limits.cuts.upper[node]).all())
    return good


@pytest.mark.parametrize("seed", SEEDS)
def test_the_arrays_say_what_the_constraints_say_of_a_geounit_and_all_below_it(seed: int) -> None:
    """Of every small histogram: it obeys the arrays exactly where blocks can share it under the listed constraints."""
    world, rng = World(seed), np.random.default_rng(seed)
    answers = set()
    for depth, limits in enumerate(world.limits()):
        for node in range(world.tree.levels[depth].nodes):
            for held in near(world, limits, node, rng):
                expected = can_be_shared(world, depth, node, held)
                answers.add(expected)
                assert expected == obeys(limits, node, held), (depth, node, held)
    assert answers == {True, False}


def test_some_of_the_random_trees_need_bounds_of_sets_of_kinds() -> None:
    assert any(limits.cuts is not None for seed in SEEDS for limits in World(seed).limits())


def near(world: World, limits: LevelLimits, node: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Cells of a geounit whose sums by kind are inside its bounds, or at and just beyond them; the total is right where there is one."""
    kinds, cells = world.schema.grouped(world.constraints[-1].groups).label, world.schema.schema.cells
    lower, upper = limits.lower[node], limits.upper[node]
    spans = [
        sorted({max(0, low - 1), low, high, high + 1})
        for low, high in zip(lower.tolist(), upper.tolist(), strict=True)
    ]
    every = rng.permutation(np.array(list(product(*spans))))
    if limits.totals is not None:
        every[:, -1] = np.maximum(0, limits.totals[node] - every[:, :-1].sum(axis=1))
    inside = ((lower <= every) & (every <= upper)).all(axis=1)
    found = []
    for by_kind in (*every[inside][:6], *every[~inside][:3]):
        held = np.zeros(cells, np.int64)
        for kind, records in enumerate(by_kind.tolist()):
            members = np.flatnonzero(kinds == kind)
            held[members] = rng.multinomial(records, np.full(len(members), 1 / len(members)))
        found.append(held)
    return found
