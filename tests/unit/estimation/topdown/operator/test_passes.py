"""Passes that do not follow from each other are refused."""

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError
from censafe.estimation.topdown.operator.descent import operator_rules
from censafe.estimation.topdown.operator.facilities import ExactSums
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules, combined
from censafe.products.topdown.configuration.config import check_pass_order, load_config

CELL = np.arange(8, dtype=np.int32)
PAIR, FOUR, ALL = CELL // 2, CELL // 4, CELL * 0
CROSSING = CELL % 2
FREE = np.ones(8, bool)


def rules(*passes, labels=(CELL, PAIR, CROSSING), allowed=FREE):
    return OperatorRules(allowed, passes, labels)


def test_passes_that_follow_from_each_other():
    found = rules(OperatorPass(PAIR, (1,), ALL, (FOUR,)), OperatorPass(CELL, (0, 2), PAIR))
    assert found.queries == (0, 1, 2)


LAST, CUT_LINK = OperatorPass(CELL, (0,), PAIR), "a link of the chain is not a sum of the columns"


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        pytest.param((OperatorPass(PAIR, (1, 2), ALL), LAST), "pass 1: query 2 is not a sum of the columns", id="query"),
        pytest.param((OperatorPass(PAIR, (1,), CROSSING), LAST), "pass 1: an exact sum is not a sum of the columns", id="exact sum"),
        pytest.param((OperatorPass(PAIR, (1,), ALL, (FOUR, CROSSING)), LAST), "pass 1: link 1 is not a sum of the columns", id="link"),
        pytest.param((OperatorPass(CELL, (0,), ALL, (CROSSING, FOUR)),), CUT_LINK, id="links that do not refine each other"),
        pytest.param((OperatorPass(CELL, (0,), FOUR, (ALL,)),), CUT_LINK, id="link and exact sum"),
        pytest.param(
            (OperatorPass(PAIR, (1,), ALL), OperatorPass(CELL, (0,), FOUR)), "pass 2 must hold the columns of the pass before", id="pass before"
        ),
        pytest.param((), "at least one pass", id="no pass"),
    ],
)  # fmt: skip
def test_what_cuts_a_column_or_does_not_follow_is_refused(passes, message):
    with pytest.raises(CheckError, match=message):
        rules(*passes)


def test_a_last_pass_that_does_not_tell_cells_apart_is_refused():
    with pytest.raises(CheckError, match="must tell all cells apart"):
        rules(OperatorPass(PAIR, (1,), ALL))
    apart = np.array([1, 0] * 4, bool)  # cells that may hold no records need not be told apart
    assert rules(OperatorPass(PAIR, (1,), ALL), allowed=apart).queries == (1,)


def test_structural_zeros_may_lie_anywhere():
    allowed = FREE.copy()
    allowed[1] = False
    label = PAIR.copy()
    label[1] = 3
    assert rules(OperatorPass(CELL, (0,), label, (PAIR,)), allowed=allowed).queries == (0,)


def test_combinations_are_numbered_in_their_order():
    assert combined((FOUR, CROSSING)).tolist() == [0, 1, 0, 1, 2, 3, 2, 3]


def test_factors_are_one_for_each_query_and_above_0():
    for factors in ((1.0,), (1.0, 0.0), (1.0, 2.0, 3.0)):
        with pytest.raises(CheckError, match="pass 1 needs a factor above 0 for each of its queries"):
            rules(OperatorPass(CELL, (0, 2), ALL, factors=factors))


def test_inner_passes_become_factors_and_outer_ones_join_them():
    config = load_config("dhc-us")
    histogram = config.histogram("households")
    exact_sums = ExactSums(np.zeros(histogram.schema.schema.cells, np.int32), ())
    for passes, first in (("production", 30.0), ("outer", 1.0)):
        choices = replace(config.choices, passes=passes)
        found = operator_rules(histogram, "State", exact_sums, choices).passes
        assert found[0].factors == (first,) * 5 + (1.0,)
        assert found[1].factors == (1.0,) * 3
        assert operator_rules(histogram, "County", exact_sums, choices).passes[0].factors == (1.0,) * 6


def test_passes_that_constraints_are_met_in_cannot_be_one():
    with pytest.raises(
        ConfigError, match=r"passes = one fits and rounds all queries.*allowed: production, outer"
    ):
        check_pass_order(load_config("dhc-us", {"passes": "one"}))


@pytest.mark.parametrize("values", [2, 40, 60_000])
def test_few_and_many_possible_combinations_are_numbered_alike(values: int) -> None:
    """Few possible combinations are marked and many are sorted."""
    draw = np.random.default_rng(values)
    labels = [draw.integers(0, values, 3000).astype(np.int32) for _ in range(2)]
    pairs = list(zip(*(label.tolist() for label in labels), strict=True))
    place = {pair: number for number, pair in enumerate(sorted(set(pairs)))}
    found = combined(labels)
    assert found.dtype == np.int32
    assert found.tolist() == [place[pair] for pair in pairs]
