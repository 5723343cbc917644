"""Small plans and ledgers for the accounting tests."""

from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from censafe.model import Definition, Neighbors, NoiseLaw, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.report import verify

FILES = {"persons.csv": "a" * 64, "units.csv": "b" * 64}
SHA = "c" * 64
RUN = "0123456789abcdef"


def make_part(name, *costs):
    """A part with one query of each cost."""
    law = NoiseLaw.gaussian(Fraction(4))
    return PartPlan(
        name, tuple(QueryPlan(name, f"level_{i}", law, Fraction(cost)) for i, cost in enumerate(costs))
    )


def make_plan(
    *parts,
    definition=Definition.ZCDP,
    product="phsafe",
    neighbors=Neighbors.ADD_REMOVE,
    unit=ProtectedUnit.PERSON,
    other=None,
):
    """A plan; parts default to two of rho 1/3 and 1/6. ``other`` times the total is the loss under the other relation."""
    chosen = parts or (make_part("PH1", "1/4", "1/12"), make_part("PH2", "1/6"))
    plan = ReleasePlan(product, definition, neighbors, unit, {}, tuple(chosen))
    second = next(one for one in Neighbors if one is not neighbors)
    return plan if other is None else replace(plan, other_losses={second: plan.total * other})


def open_ledger(path, **options):
    return Ledger.open(path, label="toy", **options)


@contextmanager
def running(path, **options):
    """A ledger with an open run, and the plan of it."""
    plan = make_plan()
    with open_ledger(path) as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(FILES.values()), **options)
        yield ledger, plan


def spend(path, plan, *, files=FILES, commit=True, close=True, **options):
    """Reserve and commit every part of a plan; returns the run."""
    with open_ledger(path) as ledger:
        record = ledger.open_run(plan, accounts=ledger.accounts(files.values()), **options)
        for part in plan.parts:
            reservation = ledger.reserve(plan, part)
            if commit:
                ledger.commit(reservation, f"{part.name}.parquet", SHA)
        if commit and close:
            ledger.close_run(plan)
        return record


def stated(path):
    """What every dataset of a ledger was charged, where all its charges are stated under one promise."""
    return [total for dataset in verify(path).totals for total in dataset.stated.values()]
