"""Composition and its relatives, checked as inequalities on actual noise."""

import math
from fractions import Fraction

import pytest

from censafe.model import Definition, NoiseLaw, PartPlan, QueryPlan
from censafe.privacy.loss.accountant import compose, derive_totals, part_cost
from censafe.privacy.loss.promises import Promise, group_loss, implied_rho


def test_costs_add_exactly():
    thirds = [Fraction(1, 3)] * 3
    assert compose(thirds) == 1
    assert compose([]) == 0
    assert compose(Fraction(1, n) for n in range(1, 30)) == sum(Fraction(1, n) for n in range(1, 30))


def test_costs_are_exact_and_not_negative():
    with pytest.raises(TypeError, match="cost"):
        compose([Fraction(1), 0.5])
    with pytest.raises(ValueError, match="negative"):
        compose([Fraction(1), Fraction(-1, 2)])


def renyi(p, q, order):
    return math.log(math.fsum(a * (a / b) ** (order - 1) for a, b in zip(p, q, strict=True))) / (order - 1)


def gaussian_pmf(sigma2, shift):
    weights = [math.exp(-((k - shift) ** 2) / (2 * sigma2)) for k in range(-60, 61)]
    return [weight / math.fsum(weights) for weight in weights]


def laplace_pmf(scale, shift):
    weights = [math.exp(-abs(k - shift) / scale) for k in range(-200, 201)]
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.parametrize("order", [1.1, 2.0, 5.0, 12.0])
def test_discrete_gaussian_loss_composes_and_grows_with_the_square_of_the_distance(order):
    sigma2 = 6.0
    rho = Fraction(1, 12)
    single = renyi(gaussian_pmf(sigma2, 1), gaussian_pmf(sigma2, 0), order)
    assert single <= float(rho) * order * (1 + 1e-9)
    pair = [[a * b for a in gaussian_pmf(sigma2, s) for b in gaussian_pmf(sigma2, s)] for s in (1, 0)]
    assert renyi(*pair, order) <= float(compose([rho, rho])) * order * (1 + 1e-9)
    for steps in (2, 3):
        far = renyi(gaussian_pmf(sigma2, steps), gaussian_pmf(sigma2, 0), order)
        assert far <= float(group_loss(Definition.ZCDP, rho, steps)) * order * (1 + 1e-9)
        assert far > float(group_loss(Definition.ZCDP, rho, steps - 1)) * order


@pytest.mark.parametrize("order", [1.01, 2.0, 20.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_a_pure_loss_implies_its_rho(order, scale):
    epsilon = Fraction(1) / Fraction(scale)
    loss = renyi(laplace_pmf(scale, 1), laplace_pmf(scale, 0), order)
    assert loss <= float(implied_rho(Definition.PURE, epsilon)) * order
    assert loss <= float(epsilon) * (1 + 1e-12)


def test_losses_under_other_promises():
    assert implied_rho(Definition.ZCDP, Fraction(3, 4)) == Fraction(3, 4)
    assert implied_rho(Definition.PURE, Fraction(3, 4)) == Fraction(9, 32)
    assert group_loss(Definition.PURE, Fraction(1, 2), 2) == 1
    assert group_loss(Definition.ZCDP, Fraction(1, 2), 0) == 0
    for changes in (-1, 1.5, True):
        with pytest.raises(ValueError, match="changes"):
            group_loss(Definition.PURE, Fraction(1), changes)
    with pytest.raises(TypeError, match="cost"):
        implied_rho(Definition.PURE, 0.5)


def test_totals_from_events_in_any_order():
    def reserved(seq, run, definition, losses):
        return {
            "event": "reserve", "seq": seq, "run": run, "definition": definition, "neighbors": "add_remove",
            "unit": "person", "losses": losses,
        }  # fmt: skip

    events = [
        {"event": "open", "run": "r", "accounts": ["a"]},
        {"event": "open", "run": "s", "accounts": ["a", "b"]},
        {"event": "open", "run": "t", "accounts": ["c"]},
        reserved(1, "r", "zcdp", {"add_remove": "1/3"}),
        reserved(2, "s", "zcdp", {"add_remove": "1/6"}),
        reserved(3, "t", "zcdp", {"add_remove": "5/1"}),
        {"event": "void", "seq": 4, "reservation": 3},
    ]
    promise = Promise("zcdp", "add_remove", "person")
    for listed in (events, list(reversed(events))):
        totals = derive_totals(listed)
        assert {account for account, _promise in totals} == {"a", "b"}  # read together once, charged together
        assert totals["a", promise] == totals["b", promise] == Fraction(1, 2)


def test_disjoint_groups_share_the_loss_of_a_part():
    law = NoiseLaw.gaussian(Fraction(4))
    queries = tuple(QueryPlan("T1", name, law, Fraction(1, d)) for name, d in (("a", 2), ("b", 20), ("c", 3)))
    assert part_cost(PartPlan("P", queries)) == PartPlan("P", queries).cost == Fraction(53, 60)
    for groups, cost in (
        (((0,), (1, 2)), Fraction(1, 2)),
        (((0, 1), (2,)), Fraction(11, 20)),
        (((0, 1, 2),), Fraction(53, 60)),
        (((2,), (0,), (1,)), Fraction(1, 2)),
    ):
        part = PartPlan("P", queries, disjoint=groups)
        assert part_cost(part) == part.cost == cost


@pytest.mark.parametrize("groups", [((0,),), ((0, 1), (1, 2)), ((0, 1), (2, 3)), ((),)])
def test_groups_that_are_no_partition_are_refused(groups):
    law = NoiseLaw.gaussian(Fraction(4))
    queries = tuple(QueryPlan("T1", name, law, Fraction(1)) for name in "abc")
    with pytest.raises(ValueError, match="exactly once"):
        PartPlan("P", queries, disjoint=groups)
    forged = PartPlan("P", queries)
    object.__setattr__(forged, "disjoint", groups)
    with pytest.raises(ValueError, match="exactly once"):
        part_cost(forged)


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_rows_split_between_groups_lose_at_most_the_larger_group(order):
    """Two rows of a record (s = 2): one in a group of cost 1/4, the other in a group of two queries of 1/8 each."""
    sigma2 = {cost: 2 / (2 * cost) for cost in (0.25, 0.125)}
    losses = [
        renyi(gaussian_pmf(sigma2[c], 1), gaussian_pmf(sigma2[c], 0), order) for c in (0.25, 0.125, 0.125)
    ]
    assert sum(losses) <= 0.25 * order * (1 + 1e-9)
