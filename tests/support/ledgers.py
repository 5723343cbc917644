"""Small plans and ledgers for the accounting tests."""

from fractions import Fraction

from censafe.model import Definition, Neighbours, NoiseLaw, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.privacy.ledger import Ledger

FILES = {"persons.csv": "a" * 64, "units.csv": "b" * 64}
SHA = "c" * 64
RUN = "0123456789abcdef"


def make_part(name, *costs):
    """A part with one query of each cost."""
    law = NoiseLaw.gaussian(Fraction(4))
    return PartPlan(
        name, tuple(QueryPlan(name, f"level_{i}", law, Fraction(cost)) for i, cost in enumerate(costs))
    )


def make_plan(*parts, definition=Definition.ZCDP, product="phsafe", neighbours=Neighbours.ADD_REMOVE):
    """A plan over persons; parts default to two of rho 1/3 and 1/6."""
    chosen = parts or (make_part("PH1", "1/4", "1/12"), make_part("PH2", "1/6"))
    return ReleasePlan(product, definition, neighbours, ProtectedUnit.PERSON, {}, tuple(chosen))


def open_ledger(path, **options):
    """The ledger at ``path`` with the label ``toy``."""
    return Ledger.open(path, dataset="toy", **options)


def spend(path, plan, *, files=FILES, commit=True, close=True, **options):
    """Reserve and commit every part of a plan; returns the run."""
    with open_ledger(path) as ledger:
        record = ledger.open_run(plan, dataset=ledger.dataset_commitment(files), **options)
        for part in plan.parts:
            reservation = ledger.reserve(plan, part)
            if commit:
                ledger.commit(reservation, f"{part.name}.parquet", SHA)
        if commit and close:
            ledger.close_run(plan)
        return record
