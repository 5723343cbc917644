from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.model import (
    Attribute,
    ExactHistograms,
    NoiseLaw,
    PartPlan,
    QueryPlan,
    ReleasePlan,
    Schema,
    make_query,
)
from censafe.model.plan import Definition, Neighbors, ProtectedUnit
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.privacy.keys import ReleaseKey, TestKey, derive_part_key, plan_part_key
from censafe.privacy.measure import histograms as mechanism
from censafe.privacy.measure.histograms import measure_histograms
from censafe.privacy.noise.sampler import draw
from support.histograms import answers_of, exact_level, public_level

SCHEMA = Schema("pair", (Attribute("adult", 2), Attribute("race", 3)))
QUERIES = [make_query(SCHEMA, text, {}) for text in ("total", "race", "detailed")]
SHAPES = [(1, 1), (1, 3), (2, 3)]
LAW = NoiseLaw.gaussian(Fraction(9))
PART = PartPlan(
    "persons_Block", tuple(QueryPlan(f"persons.{q.name}", "Block", LAW, Fraction(1, 9)) for q in QUERIES)
)
TRUTH = np.array([[1, 0, 2, 0, 0, 3], [0, 0, 0, 0, 0, 0], [0, 7, 0, 0, 1, 0]])


def exact(dense=TRUTH):
    return exact_level(np.array([f"{row:04}" for row in range(len(dense))]), dense)


def part_key(seed=1):
    return derive_part_key(TestKey(seed), "0" * 64, b"", PART.name)


def test_answers_are_the_sums_of_cells_plus_addressed_noise():
    found = measure_histograms(exact(), PART, QUERIES, SHAPES, part_key())
    for ordinal, (query, values) in enumerate(zip(QUERIES, found.values, strict=True)):
        noise = draw(
            LAW, part_key(), query=ordinal, geounits=np.arange(3, dtype=np.uint64), answers=query.answers
        )
        true = np.stack([answers_of(query, row) for row in TRUTH])
        assert np.array_equal(values, true + noise)
    assert found.source == "seeded"
    assert not found.private
    assert found.variances == ((pytest.approx(9.0),) * 3,)
    assert found.kinds.tolist() == [0, 0, 0]


def test_geounits_of_other_budgets_get_other_noise_at_the_same_addresses(monkeypatch):
    strong = NoiseLaw.gaussian(Fraction(100))
    budgets = LevelBudgets(
        np.array([1, 0, 2], np.int32),
        ((LAW,) * 3, (strong,) * 3, (None,) * 3),
        ((Fraction(1, 9),) * 3, (Fraction(1, 100),) * 3, (Fraction(0),) * 3),
    )
    found = measure_histograms(exact(), PART, QUERIES, SHAPES, part_key(), budgets)
    for ordinal, (query, values) in enumerate(zip(QUERIES, found.values, strict=True)):
        for row, law in ((0, strong), (1, LAW)):
            units = np.array([row], np.uint64)
            noise = draw(law, part_key(), query=ordinal, geounits=units, answers=query.answers)
            assert np.array_equal(values[row], answers_of(query, TRUTH[row]) + noise[0])
        assert not values[2].any()
    assert found.variances[1] == (pytest.approx(100.0),) * 3
    assert found.variances[2] == (np.inf,) * 3
    monkeypatch.setattr(mechanism, "_CHUNK_ANSWERS", 1)
    ranges = measure_histograms(exact(), PART, QUERIES, SHAPES, part_key(), budgets)
    for one, two in zip(found.values, ranges.values, strict=True):
        assert np.array_equal(one, two)


def test_budgets_must_be_those_of_the_part_and_its_geounits():
    for kinds, queries in ((2, 3), (3, 2)):
        budgets = LevelBudgets(np.zeros(kinds, np.int32), ((LAW,) * queries,), ((Fraction(1, 9),) * queries,))
        with pytest.raises(ValueError, match="a budget for each"):
            measure_histograms(exact(), PART, QUERIES, SHAPES, part_key(), budgets)
    with pytest.raises(ValueError, match="none where it is zero"):
        LevelBudgets(np.zeros(1, np.int32), ((LAW,),), ((Fraction(0),),))
    with pytest.raises(ValueError, match="has no laws"):
        LevelBudgets(np.ones(1, np.int32), ((LAW,),), ((Fraction(1),),))


def test_the_result_does_not_depend_on_the_size_of_the_ranges(monkeypatch):
    whole = measure_histograms(exact(), PART, QUERIES, SHAPES, part_key())
    monkeypatch.setattr(mechanism, "_CHUNK_ANSWERS", 4)
    drawn = []
    ranges = measure_histograms(exact(), PART, QUERIES, SHAPES, part_key(), done=drawn.append)
    assert sum(values.size for values in whole.values) == sum(drawn)
    assert len(drawn) > len(QUERIES)
    for one, two in zip(whole.values, ranges.values, strict=True):
        assert np.array_equal(one, two)


def test_wide_noise_is_kept_whole():
    wide = NoiseLaw.gaussian(Fraction(10) ** 22)
    part = PartPlan("wide", (QueryPlan("persons.detailed", "Block", wide, Fraction(1, 10**22)),))
    found = measure_histograms(exact(), part, QUERIES[2:], SHAPES[2:], part_key())
    assert found.values[0].dtype == np.int64
    assert int(np.abs(found.values[0]).max()) > 2**31


def test_the_same_histograms_give_the_same_answers_and_others_none():
    key = part_key()
    one, two = (measure_histograms(exact(), PART, QUERIES, SHAPES, key) for _ in range(2))
    for left, right in zip(one.values, two.values, strict=True):
        np.testing.assert_array_equal(left, right)
    level = exact()
    more = ExactHistograms(level.geounits, level.node_ptr, level.cell, level.count + np.int32(1))
    with pytest.raises(ReleaseError, match="belongs to other answers"):
        measure_histograms(more, PART, QUERIES, SHAPES, key)


@pytest.mark.parametrize("changed", ["law", "kinds", "query", "count", "place"])
def test_noise_of_a_key_serves_one_set_of_laws_queries_and_counts(changed):
    key, strong, costs = part_key(), NoiseLaw.gaussian(Fraction(100)), (Fraction(1, 9),) * 3
    kinds, laws = np.array([0, 1, 0], np.int32), [(LAW,) * 3, (strong,) * 3]
    queries, shapes, dense = list(QUERIES), list(SHAPES), TRUTH.copy()
    measure_histograms(exact(), PART, QUERIES, SHAPES, key, LevelBudgets(kinds, tuple(laws), (costs, costs)))
    if changed == "law":
        laws[1] = (strong, strong, NoiseLaw.gaussian(Fraction(50)))
    elif changed == "kinds":
        kinds = np.array([1, 0, 0], np.int32)
    elif changed == "query":
        queries[1], shapes[1] = QUERIES[2], SHAPES[2]
    elif changed == "count":
        dense[0, 0] += 1
    else:
        dense[[0, 1]] = dense[[1, 0]]
    with pytest.raises(ReleaseError, match="belongs to other answers"):
        measure_histograms(
            exact(dense), PART, queries, shapes, key, LevelBudgets(kinds, tuple(laws), (costs, costs))
        )


@pytest.mark.parametrize("wrong", ["kind", "parameter", "cost"])
def test_a_law_that_is_not_the_plans_is_refused(wrong):
    law, cost = LAW, PART.queries[0].cost
    if wrong == "kind":
        law = NoiseLaw.laplace(LAW.parameter) if LAW.kind == "gaussian" else NoiseLaw.gaussian(LAW.parameter)
    elif wrong == "parameter":
        law = NoiseLaw(LAW.kind, LAW.parameter / 4)
    else:
        cost *= 100
        law = NoiseLaw(LAW.kind, LAW.parameter / 100)
    kinds = np.zeros(exact().nodes, np.int32)
    laws, costs = tuple(q.law for q in PART.queries), tuple(q.cost for q in PART.queries)
    budgets = LevelBudgets(kinds, ((law, *laws[1:]),), ((cost, *costs[1:]),))
    plan = ReleasePlan("topdown", Definition.ZCDP, Neighbors.REPLACE, ProtectedUnit.PERSON, {}, (PART,))
    with TestKey(1) as run_key, pytest.raises(ReleaseError, match="its share of the plan's budget"):
        measure_histograms(
            exact(), PART, QUERIES, SHAPES, plan_part_key(run_key, plan, b"", PART.name, None), budgets
        )
    with TestKey(1) as run_key, pytest.raises(ReleaseError, match="another law, cost or place"):
        part = PartPlan(PART.name, (replace(PART.queries[0], law=law, cost=cost + 1), *PART.queries[1:]))
        measure_histograms(exact(), part, QUERIES, SHAPES, plan_part_key(run_key, plan, b"", PART.name, None))


def test_only_exact_histograms_and_whole_parts_are_taken():
    level = exact()
    public = public_level(level)
    with pytest.raises(TypeError, match="ExactHistograms"):
        measure_histograms(public, PART, QUERIES, SHAPES, part_key())
    with pytest.raises(ValueError, match="each of its queries"):
        measure_histograms(level, PART, QUERIES[:2], SHAPES[:2], part_key())


def test_a_release_key_outside_a_plan_makes_unaccounted_measurements():
    with ReleaseKey.from_system() as key:
        found = measure_histograms(
            exact(), PART, QUERIES, SHAPES, derive_part_key(key, "0" * 64, b"", PART.name)
        )
    assert (found.source, found.private) == ("unaccounted", False)


def test_the_sensitivity_is_two_records_at_most():
    rng = np.random.default_rng(2)
    for _ in range(50):
        moved = TRUTH.copy()
        node, cell = rng.permutation(np.argwhere(TRUTH > 0))[0]
        moved[node, cell] -= 1
        moved[rng.integers(3), rng.integers(6)] += 1
        for query in QUERIES:
            change = mechanism._exact_answers(exact(moved), query, 0, 3) - mechanism._exact_answers(
                exact(), query, 0, 3
            )
            assert np.abs(change).sum() <= 2
            assert (change**2).sum() <= 2
