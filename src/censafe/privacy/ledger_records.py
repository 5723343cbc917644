"""What the ledger hands out, and how a plan is written into its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from censafe.model import Definition, PartPlan, ReleasePlan
from censafe.privacy.accountant import compose, part_cost
from censafe.privacy.ledger_entries import fraction_text
from censafe.privacy.ledger_state import Charge, RunState

__all__ = [
    "Reservation",
    "RunRecord",
    "Settlement",
    "common_fields",
    "cost_by_part",
    "partition_fields",
    "promise_fields",
    "query_fields",
    "reservation_of",
    "run_state_of",
    "second_release_text",
]


@dataclass(frozen=True)
class RunRecord:
    """An open run.

    Args:
        run: its identifier, to be kept in the run folder for a restart.
        dataset: keyed commitment.
        cap: most that the dataset may have been charged after this run.
        charged: what the dataset had been charged when the run was opened, by the same count.
        closed: the run was complete already; nothing is left to measure.
    """

    run: str
    dataset: str
    cap: Fraction
    charged: Fraction
    closed: bool


@dataclass(frozen=True)
class Reservation:
    """Budget that is written down and not yet committed."""

    seq: int
    run: str
    part: str
    cost: Fraction
    total_after: Fraction


@dataclass(frozen=True)
class Settlement:
    """What became of the reservations that a killed run left open.

    Args:
        committed: parts whose complete measurement file was found.
        redo: reservations under which the same addresses may be drawn again, since the key is still there.
        void: parts given back at no cost.
        lost: parts that stay charged (strict ledger).
    """

    committed: tuple[str, ...]
    redo: Mapping[str, Reservation]
    void: tuple[str, ...]
    lost: tuple[str, ...]


def reservation_of(charge: Charge) -> Reservation:
    """The reservation that a charge came from."""
    return Reservation(charge.seq, charge.run, charge.part, charge.cost, charge.total_after)


def cost_by_part(plan: ReleasePlan) -> dict[str, Fraction]:
    """Checked cost of every part of a plan.

    Raises:
        TypeError: a cost that is a float.
        ValueError: a cost that is not positive, an empty part, two parts of one name, a plan without parts.
    """
    costs = {part.name: part_cost(part) for part in plan.parts}
    if len(costs) != len(plan.parts) or not costs:
        raise ValueError("a plan needs at least one part, and parts with distinct names")
    if compose(costs.values()) != plan.total:
        raise ValueError("the plan's total is not the sum of its parts")
    return costs


def common_fields(run: RunState, total_after: Fraction) -> dict[str, Any]:
    """Fields that every entry of a run carries."""
    return {
        "run": run.run,
        "dataset": run.dataset,
        "definition": run.definition.value,
        "total_after": fraction_text(total_after),
    }


def promise_fields(plan: ReleasePlan, label: str, cost: Fraction, cap: Fraction) -> dict[str, Any]:
    """What is promised, in the words of the plan."""
    return {
        "label": label,
        "product": plan.product,
        "plan": plan.digest(),
        "neighbours": plan.neighbours.value,
        "unit": plan.unit.value,
        "cost": fraction_text(cost),
        "cap": fraction_text(cap),
    }


def query_fields(part: PartPlan) -> list[dict[str, str]]:
    """Mechanism, parameter and cost of every query of a part."""
    return [
        {
            "table": query.table,
            "level": query.level,
            "mechanism": query.law.kind,
            "parameter": fraction_text(query.law.parameter),
            "cost": fraction_text(query.cost),
        }
        for query in part.queries
    ]


def partition_fields(part: PartPlan) -> dict[str, list[list[int]]]:
    """Which queries measure disjoint rows of a record, by position; nothing when every query may see every row."""
    return {"disjoint": [list(group) for group in part.disjoint]} if part.disjoint else {}


def run_state_of(
    plan: ReleasePlan, run: str, dataset: str, label: str, folder: str, cap: Fraction, *, by_operator: bool
) -> RunState:
    """A run of ``plan`` that is about to be opened."""
    return RunState(
        run=run,
        dataset=dataset,
        label=label,
        product=plan.product,
        plan=plan.digest(),
        folder=folder,
        definition=plan.definition,
        neighbours=plan.neighbours,
        unit=plan.unit,
        cap=cap,
        cap_by_operator=by_operator,
    )


def second_release_text(
    plan: ReleasePlan, spent: Mapping[Definition, Fraction], labels: Iterable[str], unfinished: Iterable[str]
) -> str:
    """Why a second release of a dataset stops, and what the operator can do."""
    before = " and ".join(f"{definition.symbol} = {total}" for definition, total in spent.items())
    folders = ", ".join(sorted(set(unfinished)))
    hint = f"; or finish the unfinished run in {folders}" if folders else ""
    return (
        f"this dataset ({', '.join(sorted(set(labels)))}) has already spent {before}; "
        f"this run would add {plan.definition.symbol} = {plan.total}. "
        f"To spend more on purpose, give --spend-more{hint}"
    )
