"""A second accountant: totals derived from the events alone, by another route than the ledger takes.

The ledger adds and subtracts as it goes. Here the charges are the reservations whose sequence number no ``void`` entry
names, summed over a common denominator at the end. Both are computed whenever a ledger is opened, and compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from censafe.model import PartPlan
from censafe.model.proven import proven
from censafe.privacy.loss.budget import exact
from censafe.privacy.loss.promises import PROMISES, Loss, Promise, loss_under


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


@proven("composition.proof.md", digest="cd6727972e619520")
def derive_totals(
    events: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, Promise], Fraction | None]:
    """What every account has been charged, with all that are linked with it, under every promise.

    Args:
        events: the JSON objects of a ledger's lines, in any order.

    Returns:
        Totals by (account, promise), None where the losses are not finite under the promise; accounts without live
        reservations are absent.
    """
    listed = list(events)
    accounts = {event["run"]: event["accounts"] for event in listed if event["event"] == "open"}
    voided = {event["reservation"] for event in listed if event["event"] == "void"}
    live = [event for event in listed if event["event"] == "reserve" and event["seq"] not in voided]
    leader = _merged(accounts[run] for run in dict.fromkeys(event["run"] for event in live))
    groups: dict[str, list[Loss]] = {}
    for event in live:
        groups.setdefault(leader[accounts[event["run"]][0]], []).append(_loss_of(event))
    totals: dict[tuple[str, Promise], Fraction | None] = {}
    for promise in PROMISES:
        sums = {name: _sum([loss_under(loss, promise) for loss in losses]) for name, losses in groups.items()}
        totals |= {(account, promise): sums[name] for account, name in leader.items()}
    return totals


def _merged(sets: Iterable[Collection[str]]) -> dict[str, str]:
    """One name for all members of sets that overlap, directly or through others: relabeled set by set."""
    leader: dict[str, str] = {}
    for names in sets:
        met = {leader[member] for member in names if member in leader}
        name = min(names)
        leader = {member: name if group in met else group for member, group in leader.items()}
        leader |= dict.fromkeys(names, name)
    return leader


def _loss_of(event: Mapping[str, Any]) -> Loss:
    promise = Promise(event["definition"], event["neighbors"], event["unit"])
    return Loss(promise, {relation: Fraction(loss) for relation, loss in event["losses"].items()})


def _sum(amounts: Collection[Fraction | None]) -> Fraction | None:
    finite = [amount for amount in amounts if amount is not None]
    return compose(finite) if len(finite) == len(amounts) else None


@proven("composition.proof.md", digest="620fa4b460ebb5cb")
def part_cost(part: PartPlan) -> Fraction:
    """Cost of a part: by :func:`compose` within every disjoint group, the largest over the groups, times the factor of the part.

    Without groups that is the sum. Every query must cost an exact, positive amount.

    Raises:
        TypeError: a cost that is a float, naming table and level.
        ValueError: a cost that is not positive, a part without queries, or groups that are not a partition of them.
    """
    for query in part.queries:
        if exact(query.cost, f"cost of {query.table} {query.level}") <= 0:
            raise ValueError(f"cost of {query.table} {query.level} must be positive")
    if not part.queries:
        raise ValueError(f"part {part.name} measures nothing")
    groups = part.disjoint or (tuple(range(len(part.queries))),)
    if sorted(itertools.chain.from_iterable(groups)) != list(range(len(part.queries))):
        raise ValueError(f"the disjoint groups of part {part.name} must name every query exactly once")
    if exact(part.factor, f"factor of part {part.name}") <= 0:
        raise ValueError(f"factor of part {part.name} must be positive")
    return part.factor * max(compose(part.queries[position].cost for position in group) for group in groups)
