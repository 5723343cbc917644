"""What the ledger hands out, and how a plan is written into its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from censafe.model import PartPlan, ReleasePlan
from censafe.privacy.ledger.entries import fraction_text, fractions_text
from censafe.privacy.ledger.state import Cap, Charge, RunState
from censafe.privacy.loss.accountant import compose, part_cost
from censafe.privacy.loss.promises import Loss, Promise, promise_of


@dataclass(frozen=True)
class RunNotes:
    """What is written down of a run for people."""

    operator: str = ""
    config_digest: str = ""
    folder: str = ""


@dataclass(frozen=True)
class RunRecord:
    """An open run.

    Args:
        run: its identifier, to be kept in the run folder for a restart.
        cap: most that its accounts, and all that are linked with them, may have been charged after this run.
        charged: what they had been charged when the run was opened, under the promise of the cap; None where that is not finite,
            which only a complete run can meet.
    """

    run: str
    cap: Cap
    charged: Fraction | None
    closed: bool


@dataclass(frozen=True)
class Reservation:
    """Budget that is written down and not yet committed.

    Args:
        total_after: of the dataset, over charges of the same definition, relation and unit.
    """

    seq: int
    run: str
    part: str
    cost: Fraction
    total_after: Fraction


@dataclass(frozen=True)
class Settlement:
    """What became of the reservations that a killed run left open.

    Args:
        redo: reservations under which the same addresses may be redrawn, since the key is still there.
    """

    committed: tuple[str, ...]
    redo: Mapping[str, Reservation]
    void: tuple[str, ...]
    lost: tuple[str, ...]


def reservation_of(charge: Charge) -> Reservation:
    """The reservation that a charge came from."""
    return Reservation(charge.seq, charge.run, charge.part, charge.loss.cost, charge.total_after)


def cost_by_part(plan: ReleasePlan) -> dict[str, Fraction]:
    """Checked cost of every part of a plan."""
    costs = {part.name: part_cost(part) for part in plan.parts}
    if len(costs) != len(plan.parts) or not costs:
        raise ValueError("a plan needs at least one part, and parts with distinct names")
    if compose(costs.values()) != plan.total:
        raise ValueError("the plan's total is not the sum of its parts")
    return costs


def promise_fields(plan: ReleasePlan, label: str, loss: Loss) -> dict[str, Any]:
    """What is promised, in the words of the plan."""
    return {
        "label": label,
        "product": plan.product,
        "plan": plan.digest(),
        "definition": plan.definition.value,
        "neighbors": plan.neighbors.value,
        "unit": plan.unit.value,
        "losses": fractions_text(loss.by_relation),
    }


def cap_fields(run: RunState) -> dict[str, str]:
    """The cap of a run and where it comes from."""
    return {
        "cap": fraction_text(run.cap.amount),
        "cap_promise": run.cap.promise.text,
        "cap_source": run.cap_source,
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


def factor_fields(part: PartPlan) -> dict[str, str]:
    """How many times the loss of its queries a part costs; nothing where that is once."""
    return {} if part.factor == 1 else {"factor": fraction_text(part.factor)}


def partition_fields(part: PartPlan) -> dict[str, list[list[int]]]:
    """Which queries measure disjoint rows of a record, by position; nothing when every query may see every row."""
    return {"disjoint": [list(group) for group in part.disjoint]} if part.disjoint else {}


def second_release_text(
    plan: ReleasePlan, spent: Mapping[Promise, Fraction], labels: Iterable[str], unfinished: Iterable[str]
) -> str:
    """Why a second release of a dataset stops, and what the operator can do."""
    before = " and ".join(promise.amount(total) for promise, total in spent.items())
    folders = ", ".join(sorted(set(unfinished)))
    hint = f"; or finish the unfinished run in {folders}" if folders else ""
    return (
        f"files of this run, or files that were read together with them ({', '.join(sorted(set(labels)))}), have already "
        f"spent {before}; this run would add {promise_of(plan).amount(plan.total)}. "
        f"To spend more on purpose, give `spend_more`{hint}"
    )
