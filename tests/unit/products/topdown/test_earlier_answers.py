"""Noisy answers of an earlier result beside a histogram's own: which sums they are, at which geounits, and the estimate from both."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, UsageError
from censafe.estimation.topdown.cell_sums.own import AnswerGroups, OwnLevel, own_states
from censafe.estimation.topdown.cell_sums.structure import SumProblem, SumTerm
from censafe.estimation.topdown.cell_sums.tree import SumLevel, sum_tree
from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.choice import SpineChoice, build_run_spine
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import PL94_US, build_spine
from censafe.model import CellQuery, Recode
from censafe.model.schema import Attribute, Factor, Schema, make_query
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.table_estimates.earlier_answers import (
    _require_same_records,
    moved_query,
    parted_query,
    same_geounits,
)
from censafe.products.topdown.table_estimates.estimates import TableEstimates, TableRows
from censafe.products.topdown.table_estimates.sums import EarlierLevel

OURS = Schema("ours", (Attribute("relgq", 5), Attribute("sex", 2), Attribute("age", 4), Attribute("race", 3)))
THEIRS = Schema("theirs", (Attribute("kind", 3), Attribute("adult", 2), Attribute("race", 3)))
RECODES = {
    "adult": Recode("adult", "age", ((0, 1), (2, 3)), True),
    "kind": Recode("kind", "relgq", ((0,), (1, 2), (3, 4)), True),
}
TWO = {"two": Recode("two", "kind", ((0,), (1, 2)), True)}
SHARED = make_query(OURS, "kind * adult * race", RECODES)
WHOLE = make_query(THEIRS, "detailed", TWO)
PARENT = np.array([0, 0, 0])
SUMS = (
    (SumTerm({}),),
    (SumTerm({"age": frozenset({0, 1})}),),
    (SumTerm({"race": frozenset({1}), "relgq": frozenset({0, 1})}),),
    (SumTerm({"sex": frozenset({0}), "age": frozenset({2})}),),
)


def asked(query: CellQuery) -> np.ndarray:
    return (query.label == np.arange(query.answers)[:, None]).astype(np.int64)


def test_redistricting_queries_count_the_same_persons_of_the_dhc() -> None:
    """Cell by cell of all 1,227,744: the answer of its redistricting cell."""
    held = next(one for one in load_config("dhc-us").histogram("persons").constraints if one.name == "pl94")
    ours, theirs = shipped_schemas()["dhc-persons"], shipped_schemas()["pl94-persons"]
    left, right = ours.grouped(held.groups), theirs.grouped(held.right.groups)  # type: ignore[union-attr]
    cell = np.argsort(right.label)[left.label]
    redistricting = load_config("pl94-us").histogram("persons")
    texts = {text for shares in redistricting.query_shares.values() for text in shares}
    assert len(texts) == 11
    for text in sorted(texts):
        query = theirs.query(text)
        found = moved_query(query, left, right)
        assert found is not None
        moved, answers = found
        assert moved.covers
        assert answers.tolist() == list(range(query.answers))
        assert np.array_equal(query.label[cell], answers[moved.label])


@pytest.mark.parametrize("seed", range(2))
def test_estimates_from_both_equal_dense_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = [make_query(OURS, name, RECODES) for name in ("sex * age", "kind * adult", "relgq", "detailed")]
    theirs = [make_query(THEIRS, name, TWO) for name in ("total", "two * race", "adult * race", "detailed")]
    moved = [moved_query(query, SHARED, WHOLE) for query in theirs]
    beside = [
        CellQuery(f"beside {place}", one[0].answers, one[0].factors) for place, one in enumerate(moved) if one
    ]
    assert len(beside) == len(theirs)
    truth = rng.poisson(4.0, (3, OURS.cells))
    problem = SumProblem(OURS, [*own, *beside], np.ones(OURS.cells, bool), SUMS)
    levels, rows, answers, noise = [], [], [], []
    for depth, nodes in enumerate((1, 3)):
        counts = [truth.sum(axis=0)] if depth == 0 else list(truth)
        kinds = rng.integers(0, 2, nodes).astype(np.int32)
        there = np.arange(nodes) != 1
        values, spread = {}, {}
        for name, queries in (("own", own), ("beside", beside)):
            spread[name] = rng.uniform(1.0, 20.0, (2, len(queries)))
            values[name] = [
                np.array([
                    asked(query) @ count + np.rint(rng.normal(0, 3.0, query.answers)).astype(np.int64)
                    for count in counts
                ])
                for query in queries
            ]  # fmt: skip
            for place, query in enumerate(queries):
                for node in range(nodes):
                    if name == "beside" and not there[node]:
                        continue
                    row = np.zeros((query.answers, 3, OURS.cells))
                    row[:, slice(None) if depth == 0 else node] = (
                        asked(query)[:, None] if depth == 0 else asked(query)
                    )
                    rows.append(row.reshape(query.answers, -1))
                    answers.append(values[name][place][node])
                    noise.append(np.full(query.answers, spread[name][kinds[node], place]))
        level = EarlierLevel(
            tuple(beside),
            np.vstack([spread["beside"], np.full(len(beside), np.inf)]),
            np.where(there, kinds, 2).astype(np.int32),
            tuple(values["beside"]),
        )
        objective = LevelObjective.of([query.label for query in own], spread["own"], values["own"], kinds)
        weights, both = level.joined(objective.weights, kinds)
        names = [query.name for query in (*own, *beside)]
        ready = OwnLevel.of(AnswerGroups(problem), names, weights, both, np.ones((nodes, 1), bool))
        states = own_states(ready, level.after(StoredAnswers(tuple(values["own"])), len(own)))
        parent = np.array([-1]) if depth == 0 else PARENT
        levels.append(SumLevel(str(depth), parent, ready, states))
    tree = sum_tree(problem, levels)
    system, weight = np.concatenate(rows), 1 / np.concatenate(noise)
    covariance = np.linalg.inv((system.T * weight) @ system)
    estimate = (covariance @ (system.T @ (weight * np.concatenate(answers)))).reshape(3, -1)
    wanted = np.zeros((len(SUMS), *OURS.shape))
    for number, (term,) in enumerate(SUMS):
        sets = [
            list(term.when.get(one, range(size))) for one, size in zip(OURS.names, OURS.shape, strict=True)
        ]
        wanted[number][np.ix_(*sets)] = 1
    wanted = wanted.reshape(len(SUMS), -1)
    for node in range(3):
        block = slice(node * OURS.cells, (node + 1) * OURS.cells)
        assert np.allclose(
            wanted @ estimate[node], tree.problem.values(tree.states(1))[node], rtol=0, atol=1e-9
        )
        dense = np.einsum("ij,jk,ik->i", wanted, covariance[block, block], wanted)
        assert np.allclose(dense, tree.union_variances([(1, node)]), rtol=1e-9, atol=1e-9)


def test_occupancy_says_of_housing_units_what_both_answers_say() -> None:
    """With the housing units and group quarters of a geounit known exactly: equal to dense least squares under these sums."""
    rng = np.random.default_rng(3)
    units, occupancy = Schema("units", (Attribute("tenure", 6),)), Schema("occupancy", (Attribute("h1", 2),))
    vacant = make_query(
        units, "vacant", {"vacant": Recode("vacant", "tenure", ((2, 3, 4),), False)}, measured=False
    )
    detailed = make_query(units, "detailed", {})
    theirs = make_query(occupancy, "detailed", {})
    group = CellQuery("total", 1, (Factor(1, np.array([0, -1], np.int32)),))
    found = parted_query(theirs, vacant, group)
    assert found is not None
    query, answers = found
    assert query.label.tolist() == [1, 1, 0, 0, 0, 1]
    assert answers.tolist() == [0, 1]
    truth = np.array([30, 20, 4, 2, 5, 7])
    housing, quarters = int(truth[:5].sum()), int(truth[5])
    own = truth + rng.integers(-9, 9, 6)
    y, z = int(truth[2:5].sum()) + 3, int(truth[:2].sum()) - 5
    known = np.array([0, 0, 0, 0, 0, 1], np.int32)
    sums = ((SumTerm({"tenure": frozenset({0, 1})}),), (SumTerm({"tenure": frozenset({2})}),))
    problem = SumProblem(units, [detailed, query], np.ones(6, bool), sums, known, known)
    level = EarlierLevel((query,), np.array([[6.0]]), np.zeros(1, np.int32), (np.array([[y, z + quarters]]),))
    objective = LevelObjective.of([detailed.label], np.array([[9.0]]), [own[None]], np.zeros(1, np.int32))
    weights, kinds = level.joined(objective.weights, np.zeros(1, np.int32))
    ready = OwnLevel.of(
        AnswerGroups(problem), ["detailed", query.name], weights, kinds, np.ones((1, 2), bool)
    )
    states = own_states(ready, level.after(StoredAnswers((own[None],)), 1))
    exact = np.array([[housing, quarters]])
    tree = sum_tree(problem, [SumLevel("all", np.array([-1]), ready, states, exact)])
    rows = np.vstack([np.eye(6), [0, 0, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]])
    weight = np.array([1 / 9] * 6 + [1 / 6] * 2)
    covariance = np.linalg.inv((rows.T * weight) @ rows)
    estimate = covariance @ (rows.T @ (weight * np.array([*own, y, z])))
    holds = np.array([[1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1.0]])
    gain = covariance @ holds.T @ np.linalg.inv(holds @ covariance @ holds.T)
    estimate, covariance = (
        estimate + gain @ (exact[0] - holds @ estimate),
        covariance - gain @ holds @ covariance,
    )
    wanted = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1.0, 0, 0, 0]])
    assert np.allclose(wanted @ estimate, tree.problem.values(tree.states(0))[0], rtol=0, atol=1e-9)
    dense = np.diag(wanted @ covariance @ wanted.T)
    assert np.allclose(dense, tree.union_variances([(0, 0)]), rtol=0, atol=1e-9)


def test_what_has_no_answers_of_its_own_has_none_beside_them() -> None:
    level = EarlierLevel((SHARED,), np.array([[4.0]]), np.zeros(3, np.int32), (np.zeros((3, 18), np.int64),))
    weights, kinds = level.joined(np.array([[0.5], [0.0]]), np.array([0, 1, 0], np.int32))
    assert weights[kinds].tolist() == [[0.5, 0.25], [0.0, 0.0], [0.5, 0.25]]


def test_a_query_that_our_cells_do_not_tell_is_left_out() -> None:
    coarse = make_query(OURS, "adult * race", RECODES)
    summed = make_query(THEIRS, "adult * race", TWO)
    assert moved_query(make_query(THEIRS, "two * race", TWO), coarse, summed) is None
    assert moved_query(make_query(THEIRS, "race", TWO), coarse, summed) is not None


def test_geounits_of_two_trees_are_the_same_where_they_hold_the_same_blocks() -> None:
    codes = np.array(
        [(44 * 1000 + county) * 10**11 + tract * 10**5 + 10**4 + block
         for county in (1, 3, 5) for tract in (100, 200, 300) for block in range(1000, 1008)], np.int64
    )  # fmt: skip
    rng = np.random.default_rng(5)
    none = np.full(len(codes), 99999, np.int32)
    inside = np.where((codes // 10**11 == 44003) & (rng.random(len(codes)) < 0.5), 10, 9999).astype(np.int32)
    areas = BlockAreas(codes, inside, none, none)
    standard = build_spine(codes, PL94_US)
    other = build_run_spine(standard, SpineChoice("optimized", None, {}), areas)
    some = codes // 10**11 != 44005
    less = build_spine(codes[some], PL94_US)
    for ours, every in (
        (RunSpine("standard", standard, standard, None, {}), codes),
        (RunSpine("less", less, less, None, {}), codes[some]),
    ):
        for depth in range(len(PL94_US)):
            found = same_geounits(ours, depth, other, depth)
            mine, theirs = held(ours, every, depth), held(other, codes, depth)
            for node, match in enumerate(found.tolist()):
                same = [place for place, blocks in enumerate(theirs) if blocks == mine[node]]
                assert same == ([match] if match >= 0 else [])


def held(run: RunSpine, codes: np.ndarray, depth: int) -> list[set[int]]:
    order = codes if run.order is None else codes[run.order]
    of = run.spine.ancestors(depth)
    return [set(order[of == node].tolist()) for node in range(run.spine.levels[depth].nodes)]


@pytest.mark.parametrize("grouped", [False, True], ids=["totals", "groups"])
@pytest.mark.parametrize("case", ["the same", "other records", "other blocks", "no totals"])
def test_a_result_of_other_records_is_refused_by_its_exact_total(case: str, grouped: bool) -> None:
    def facts(total: int | None, blocks: int) -> Any:
        none, codes = np.zeros((1, 0), np.int64), np.arange(blocks)
        groups = GroupTotals(np.zeros(1, np.int32), np.array([total])) if grouped and total else None
        limits = LevelLimits(
            None if grouped or total is None else np.array([total]), none, none, groups=groups
        )
        run = SimpleNamespace(standard=SimpleNamespace(leaf=SimpleNamespace(codes=codes)))
        return SimpleNamespace(run=run, exact_limits=lambda _: (limits,))

    theirs = {"the same": (7, 3), "other records": (8, 3), "other blocks": (8, 4), "no totals": (None, 3)}[
        case
    ]
    result = SimpleNamespace(name="redistricting", public=facts(*theirs), run=facts(*theirs).run)
    if case == "other records":
        with pytest.raises(UsageError, match="counts 8 persons in all, and 7 are known exactly here"):
            _require_same_records(facts(7, 3), "persons", result, "persons")
    else:
        _require_same_records(facts(7, 3), "persons", result, "persons")


# What estimates of tables say of themselves on disk: intervals, standard deviations, and whether they are private.


ROWS = TableRows(
    "County", np.array(["44001", "44003"]), ("P1", "P1"), ("P1_001", "P1_002"),
    np.array([[10.0, -2.5], [0.0, 7.0]]), np.array([[4.0, 9.0], [0.0, 25.0]]),
)  # fmt: skip


def written(folder: Path, stamp: str | None) -> pq.ParquetFile:
    made = SimpleNamespace(rows=[ROWS], choice=SimpleNamespace(tables=()))
    TableEstimates.write(made, folder, stamp)  # type: ignore[arg-type]
    return pq.ParquetFile(folder / "table_estimates.parquet")


def test_intervals_are_those_of_the_normal_law_about_the_estimate(tmp_path: Path) -> None:
    found = written(tmp_path, None).read().to_pylist()
    assert [one["estimate"] for one in found] == [10.0, -2.5, 0.0, 7.0]
    assert [one["sd"] for one in found] == [2.0, 3.0, 0.0, 5.0]
    for one in found:
        for level, factor in (("90", 1.6448536), ("95", 1.9599640)):
            assert one[f"lo{level}"] == pytest.approx(one["estimate"] - factor * one["sd"], abs=1e-6)
            assert one[f"hi{level}"] == pytest.approx(one["estimate"] + factor * one["sd"], abs=1e-6)


@pytest.mark.parametrize(("stamp", "private"), [(None, b"true"), ("NOT PRIVATE", b"false")])
def test_estimates_of_a_test_key_are_stamped(tmp_path: Path, stamp: str | None, private: bytes) -> None:
    metadata = written(tmp_path, stamp).schema_arrow.metadata
    assert metadata[b"private"] == private
    assert metadata.get(b"stamp") == (None if stamp is None else stamp.encode())


@pytest.mark.parametrize("case", ["tables are not wanted", "none are there", "of another shape"])
def test_states_of_other_tables_are_not_taken_for_those_of_a_stopped_run(case: str) -> None:
    load = SimpleNamespace(part=SimpleNamespace(name="persons_County"))
    states = None if case == "none are there" else np.zeros((3, 4))
    sums = None if case == "tables are not wanted" else SimpleNamespace(shape=lambda _: (3, 5))
    made = SimpleNamespace(sums=lambda _: sums)
    with pytest.raises(CheckError, match="linear estimates of these tables and areas"):
        TableEstimates.take(made, load, states)  # type: ignore[arg-type]
