"""Answers of another estimate beside the measurements of a histogram."""

import numpy as np
import pytest

from censafe.estimation.topdown.operator.parent import (
    FurtherAnswers,
    OperatorFamily,
    answer_weights,
    estimate_operator_parent,
    with_query,
)
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules
from censafe.model import SparseLevel

CELLS = 6
TENURE = np.array([0, 0, 0, 1, 1, 1], np.int32)
NOTHING = np.zeros(CELLS, np.int32)
ALL = np.arange(CELLS, dtype=np.int32)


def rules() -> OperatorRules:
    """One pass over all cells, which hold one exact sum."""
    return OperatorRules(np.ones(CELLS, np.bool_), (OperatorPass(ALL, (0,), NOTHING),), (ALL,))


def family(values: np.ndarray, weight: float) -> OperatorFamily:
    """Two children of a parent with 60 records, with 21 and 39 of them."""
    return OperatorFamily(
        "parent",
        ALL,
        np.full(CELLS, 10, np.int64),
        np.zeros(1, np.int64),
        np.array([[21], [39]], np.int64),
        None,
        {0: ALL.astype(np.int64)},
        {0: values},
        np.full((2, 1), weight),
    )


def test_an_estimate_moves_to_further_answers_by_their_weight() -> None:
    """Cells that were measured with hardly any weight follow the sums that the other estimate tells."""
    values = np.array([[4, 4, 4, 3, 3, 3], [6, 6, 6, 7, 7, 7]], np.int64)
    other = SparseLevel(
        np.array(["a", "b"]),
        np.array([0, 2, 4]),
        np.array([0, 1, 0, 1], np.int32),
        np.array([15, 6, 15, 24], np.int32),
    )
    further = FurtherAnswers(TENURE, (other,), np.array([0, 1], np.int32), (np.full(2, 5.0),))
    both = further.at(0).added_to(family(values, 1e-6), 0, 2, 1)
    found = estimate_operator_parent(with_query(rules(), TENURE), both, wide=False)[0]
    alone = estimate_operator_parent(rules(), family(values, 1e-6), wide=False)[0]
    sums = np.array([[one[side == TENURE].sum() for side in (0, 1)] for one in found])
    assert sums.tolist() == [[15, 6], [15, 24]]
    assert [int(one[TENURE == 0].sum()) for one in alone] == [12, 18]
    assert np.array_equal(found.sum(axis=0), np.full(CELLS, 10))


def test_answers_of_a_level_are_the_sums_of_the_other_histograms() -> None:
    other = SparseLevel(
        np.array(["a", "b"]),
        np.array([0, 3, 4]),
        np.array([0, 1, 2, 1], np.int32),
        np.array([3, 4, 5, 6], np.int32),
    )
    further = FurtherAnswers(TENURE, (other,), np.array([1, 0, -1], np.int32), (np.array([0.5, 0.25]),))
    found = further.at(0)
    assert found.values.tolist() == [[4, 3], [6, 0]]
    assert found.weights.tolist() == [0.5, 0.25]


def test_a_query_is_fitted_where_the_columns_tell_it_and_weighs_as_the_first_inner_pass() -> None:
    coarse = np.array([0, 1, 0, 1, 0, 1], np.int32)
    first = OperatorPass(coarse, (0,), NOTHING, factors=(30.0,))
    second = OperatorPass(ALL, (1,), coarse)
    two = OperatorRules(np.ones(CELLS, np.bool_), (first, second), (coarse, ALL))
    found = with_query(two, TENURE)
    assert [one.fits for one in found.passes] == [(0,), (1, 2)]
    assert [one.fits for one in with_query(two, coarse).passes] == [(0, 2), (1,)]
    assert with_query(two, coarse).passes[0].factors == (30.0, 30.0)


@pytest.mark.parametrize(("kinds", "expected"), [([[0.5]], [0.25]), ([[0.5], [0.0]], [0.25, 0.0])])
def test_sums_weigh_what_their_answers_do_together(kinds: list[list[float]], expected: list[float]) -> None:
    groups = np.array([0, 0, 1, -1], np.int32)
    found = answer_weights(groups, np.ones(4, np.bool_), [np.arange(4, dtype=np.int32)], np.array(kinds))
    assert found.tolist() == expected


def test_a_query_across_groups_says_nothing_of_their_sums() -> None:
    groups = np.array([0, 1, 1, -1], np.int32)
    across = np.array([0, 0, 1, 1], np.int32)
    found = answer_weights(groups, np.ones(4, np.bool_), [across], np.array([[2.0]]))
    assert found.tolist() == [0.0]
