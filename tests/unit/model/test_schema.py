"""Schemas and queries: labels against explicit Kronecker matrices."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.model import Attribute, ExactHistograms, Recode, Schema, SparseLevel, make_query
from support.histograms import answers_of


@st.composite
def problems(draw):
    """A schema, recodes that partition, and a query; with the factor matrix of every attribute."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    schema = Schema("random", tuple(Attribute(f"a{i}", levels) for i, levels in enumerate(shape)))
    recodes, names, factors = {}, [], []
    for attribute in schema.attributes:
        kind = draw(st.sampled_from(["keep", "sum", "recode"]))
        if kind == "sum":
            factors.append(np.ones((1, attribute.levels), int))
            continue
        if kind == "keep":
            names.append(attribute.name)
            factors.append(np.eye(attribute.levels, dtype=int))
            continue
        order = draw(st.permutations(range(attribute.levels)))
        cuts = sorted(draw(st.sets(st.integers(1, attribute.levels - 1)))) if attribute.levels > 1 else []
        groups = tuple(tuple(part.tolist()) for part in np.split(np.array(order), cuts))
        recode = Recode(f"r_{attribute.name}", attribute.name, groups, partition=True)
        recodes[recode.name] = recode
        names.append(recode.name)
        factors.append(
            np.array([[int(level in group) for level in range(attribute.levels)] for group in groups])
        )
    text = " * ".join(draw(st.permutations(names))) if names else "total"
    return schema, recodes, text, factors


@given(problems(), st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_a_query_is_its_kronecker_matrix(problem, seed):
    schema, recodes, text, factors = problem
    query = make_query(schema, text, recodes)
    matrix = reduce(np.kron, factors)
    assert matrix.shape == (query.answers, schema.cells)
    np.testing.assert_array_equal(matrix, np.arange(query.answers)[:, None] == query.label)
    histogram = np.random.default_rng(seed).integers(0, 50, schema.cells)
    np.testing.assert_array_equal(matrix @ histogram, answers_of(query, histogram))
    assert histogram.sum() == answers_of(query, histogram).sum()
    attributes = tuple(
        name for name, factor in zip(schema.names, factors, strict=True) if factor.shape[0] > 1
    )
    assert attributes == query.attributes
    cells = np.random.default_rng(seed).integers(0, schema.cells, 7)
    np.testing.assert_array_equal(query.label[cells], query.labels(cells))


def test_a_constraint_may_leave_cells_out():
    schema = Schema("s", (Attribute("a", 3), Attribute("b", 2)))
    recodes = {
        "some": Recode("some", "a", ((2,), (0,)), partition=False),
        "twice": Recode("twice", "a", ((0, 1), (1, 2)), partition=False),
    }
    query = make_query(schema, "some * b", recodes, measured=False)
    assert [2, 3, -1, -1, 0, 1] == query.label.tolist() == query.labels(np.arange(6)).tolist()
    assert not query.covers
    assert answers_of(query, np.array([1, 2, 3, 4, 6, 7])).tolist() == [6, 7, 1, 2]
    with pytest.raises(ValueError, match="no level of a into two groups"):
        make_query(schema, "twice", recodes, measured=False)


def test_finer_queries_refine_coarser_ones():
    schema = Schema("s", (Attribute("a", 4), Attribute("b", 2)))
    halves = {
        name: Recode(name, "a", groups, partition=True)
        for name, groups in {
            "low": ((0, 1), (2, 3)),
            "ends": ((0, 3), (1, 2)),
            "three": ((0, 1), (2,), (3,)),
        }.items()
    }
    low, ends, three = (make_query(schema, name, halves) for name in halves)
    assert three.refines(low)
    assert not low.refines(three)
    assert not ends.refines(low)
    assert make_query(schema, "b * three", halves).refines(low)
    assert not three.refines(make_query(schema, "b * low", halves))
    assert make_query(schema, "detailed", {}).key == make_query(schema, "b * a", {}).key


def test_the_order_of_names_does_not_matter():
    schema = Schema("s", (Attribute("a", 2), Attribute("b", 3), Attribute("c", 2)))
    first, second = make_query(schema, "a * c", {}), make_query(schema, "c*a", {})
    np.testing.assert_array_equal(first.label, second.label)
    detailed = make_query(schema, "detailed", {})
    np.testing.assert_array_equal(np.arange(12), detailed.label)
    assert detailed.attributes == ("a", "b", "c")
    assert detailed.shape == (2, 3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a * d", "'d' is neither an attribute of s nor a recode"),
        ("a * half", "takes the attribute a twice"),
        ("gap", "exactly one group"),
        ("twice", "exactly one group"),
        ("", "'' is neither"),
        ("total * a", "'total' is neither"),
    ],
)
def test_what_cannot_be_measured_is_refused(text, message):
    schema = Schema("s", (Attribute("a", 3), Attribute("b", 2)))
    recodes = {
        "half": Recode("half", "a", ((0,), (1, 2)), partition=True),
        "gap": Recode("gap", "a", ((0,), (1,)), partition=True),
        "twice": Recode("twice", "a", ((0, 1), (1, 2)), partition=False),
    }
    with pytest.raises(ValueError, match=message):
        make_query(schema, text, recodes)


def test_schemas_refuse_what_has_no_meaning():
    with pytest.raises(ValueError, match="repeats"):
        Schema("s", (Attribute("a", 2), Attribute("a", 2)))
    with pytest.raises(ValueError, match="at least one attribute"):
        Schema("s", ())
    with pytest.raises(ValueError, match="at least one level"):
        Attribute("a", 0)
    with pytest.raises(ValueError, match="cannot name"):
        Attribute("total", 2)


def arrays(counts):
    return {
        "geounits": np.array(["01", "02"]),
        "node_ptr": np.array([0, 1, 3]),
        "cell": np.array([4, 0, 2], np.int32),
        "count": np.array(counts, np.int32),
    }


def test_exact_histograms_are_kept_out_of_logs_and_pickles():
    exact = ExactHistograms(**arrays([777, 888, 999]))
    for secret in ("777", "888", "999", "02"):
        assert secret not in repr(exact)
    with pytest.raises(TypeError, match="confidential"):
        pickle.dumps(exact)
    assert exact.nodes == 2
    level = SparseLevel(**arrays([1, 2, 3]))
    assert (level.nodes, level.total) == (2, 6)


@pytest.mark.parametrize(
    "change",
    [
        {"node_ptr": np.array([0, 3])},
        {"node_ptr": np.array([0, 2, 1])},
        {"node_ptr": np.array([0, 1, 2])},
        {"node_ptr": np.array([0, 1, 3], np.int32)},
        {"cell": np.array([4, 0], np.int32)},
        {"count": np.array([1, 2, 3])},
        {"geounits": np.array([1, 2])},
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(change):
    with pytest.raises(ValueError, match="must"):
        SparseLevel(**(arrays([1, 2, 3]) | change))
