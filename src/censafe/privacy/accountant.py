"""A second accountant: totals derived from the events alone, by another route than the ledger takes.

The ledger adds and subtracts as it goes. Here the charges are the reservations whose sequence number no ``void`` entry
names, summed over a common denominator at the end. Both are computed whenever a ledger is opened, and compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from censafe.model import Definition, PartPlan
from censafe.privacy.budget import exact
from censafe.privacy.proofs import proven

__all__ = ["compose", "derive_totals", "part_cost"]


@proven("composition.proof.md", digest="945cd35c4b43295c")
def compose(costs: Iterable[Fraction]) -> Fraction:
    """Loss of measuring one dataset several times: the sum, for rho and for pure epsilon alike.

    Raises:
        TypeError: for a float.
        ValueError: for a negative cost.

    Source: Bun & Steinke (2016), Lemma 2.3 (adaptive composition of zCDP); Dwork & Roth (2014), Theorem 3.16.

    Example:
        >>> compose([Fraction(1, 3), Fraction(1, 6)])
        Fraction(1, 2)
    """
    terms = [exact(cost, "cost") for cost in costs]
    if any(term < 0 for term in terms):
        raise ValueError("a cost cannot be negative")
    common = math.lcm(*(term.denominator for term in terms))
    return Fraction(sum(term.numerator * (common // term.denominator) for term in terms), common)


@proven("composition.proof.md", digest="001f2b9be54e3fda")
def derive_totals(events: Iterable[Mapping[str, Any]]) -> dict[tuple[str, Definition], Fraction]:
    """What every dataset has spent under every definition.

    Args:
        events: the JSON objects of a ledger's lines, in any order.

    Returns:
        Totals by (dataset commitment, definition); a dataset without live reservations is absent.
    """
    listed = list(events)
    voided = {event["reservation"] for event in listed if event["event"] == "void"}
    live = [event for event in listed if event["event"] == "reserve" and event["seq"] not in voided]
    keys = {(event["dataset"], event["definition"]) for event in live}
    return {
        (dataset, Definition(definition)): compose(
            Fraction(event["cost"])
            for event in live
            if (event["dataset"], event["definition"]) == (dataset, definition)
        )
        for dataset, definition in keys
    }


@proven("composition.proof.md", digest="9976c37bd8b2706f")
def part_cost(part: PartPlan) -> Fraction:
    """Cost of a part: by :func:`compose` within every disjoint group, the largest over the groups.

    Without groups that is the sum. Every query must cost an exact, positive amount.

    Raises:
        TypeError: a cost that is a float, naming table and level.
        ValueError: a cost that is not positive, a part without queries, or groups that are no partition of them.
    """
    for query in part.queries:
        if exact(query.cost, f"cost of {query.table} {query.level}") <= 0:
            raise ValueError(f"cost of {query.table} {query.level} must be positive")
    if not part.queries:
        raise ValueError(f"part {part.name} measures nothing")
    groups = part.disjoint or (tuple(range(len(part.queries))),)
    if sorted(itertools.chain.from_iterable(groups)) != list(range(len(part.queries))):
        raise ValueError(f"the disjoint groups of part {part.name} must name every query exactly once")
    return max(compose(part.queries[position].cost for position in group) for group in groups)
