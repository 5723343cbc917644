"""Random histories of a ledger: two accountants, a plain model and the file itself agree, and no cap is exceeded."""

from collections import defaultdict
from fractions import Fraction
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import OverspendError
from censafe.model import Definition
from censafe.privacy.accountant import compose, derive_totals
from censafe.privacy.ledger import read_entries, verify
from support.ledgers import SHA, make_part, make_plan, open_ledger

COSTS = st.fractions(min_value=Fraction(1, 1000), max_value=4, max_denominator=1000)
PLANS = st.builds(
    lambda costs, definition: make_plan(
        *(make_part(f"P{i}", cost) for i, cost in enumerate(costs)), definition=definition
    ),
    st.lists(COSTS, min_size=1, max_size=4),
    st.sampled_from(Definition),
)
# One session opens the ledger, settles, opens a run, and measures some parts, of which it commits some.
SESSIONS = st.tuples(
    st.integers(0, 3),  # which run
    st.integers(0, 1),  # which dataset
    st.lists(st.sampled_from(["commit", "leave", "skip"]), min_size=4, max_size=4),
    st.sampled_from(["void", "lost", "finish", "redo"]),
    st.one_of(st.none(), COSTS),
)


class Model:
    """Totals kept the naive way: a list of everything that was measured."""

    def __init__(self):
        self.live = {}

    def total(self, dataset, definition):
        return sum((c for (d, k, c) in self.live.values() if (d, k) == (dataset, definition)), Fraction(0))

    def charged(self, dataset, definition):
        rho = self.total(dataset, Definition.ZCDP)
        squares = [c * c / 2 for (d, k, c) in self.live.values() if (d, k) == (dataset, Definition.PURE)]
        return rho + sum(squares) if definition is Definition.ZCDP else self.total(dataset, definition)


def play(path, plan, run, dataset_files, choices, ending, cap, model, owners):
    """One session; the model follows what the ledger says that it did."""
    with open_ledger(path, strict=ending == "lost") as ledger:
        held = list(ledger.held(run))
        finished = {part: (f"{part}.parquet", SHA) for part in held} if ending == "finish" else None
        settled = ledger.settle_open(run, finished=finished, redo=held if ending == "redo" else ())
        for part in settled.void:
            del model.live[owners.pop((run, part))]
        for part in settled.lost:
            owners.pop((run, part))
        dataset = ledger.dataset_commitment(dataset_files)
        try:
            record = ledger.open_run(plan, dataset=dataset, run=run, cap=cap, spend_more=True)
        except OverspendError:
            return
        for reservation in settled.redo.values():
            ledger.commit(reservation, "again.parquet", SHA)
        for part, choice in zip(plan.parts, choices, strict=False):
            if record.closed or choice == "skip" or part.name in ledger.committed(run):
                continue
            reservation = ledger.reserve(plan, part)
            model.live[reservation.seq] = (dataset, plan.definition, part.cost)
            owners[run, part.name] = reservation.seq
            assert model.charged(dataset, plan.definition) <= record.cap
            if choice == "commit":
                ledger.commit(reservation, f"{part.name}.parquet", SHA)
        if len(ledger.committed(run)) == len(plan.parts):
            ledger.close_run(plan)
        for definition in Definition:
            assert model.total(dataset, definition) == ledger.spent(dataset)[definition]
            assert model.charged(dataset, definition) == ledger.charged(dataset, definition)


@settings(max_examples=60, deadline=None)
@given(plans=st.lists(PLANS, min_size=8, max_size=8), sessions=st.lists(SESSIONS, min_size=1, max_size=8))
def test_two_accountants_and_a_plain_model_agree_on_random_histories(plans, sessions):
    model, owners, heads = Model(), {}, []
    with TemporaryDirectory() as folder:
        from pathlib import Path

        path = Path(folder) / "ledger.jsonl"
        for which_run, which_data, choices, ending, cap in sessions:
            identity = 2 * which_run + which_data
            files = {"persons": f"{which_data}" * 64}
            play(path, plans[identity], f"{identity:08x}", files, choices, ending, cap, model, owners)
            heads.append(verify(path).head)
        expected = defaultdict(Fraction)
        for dataset, definition, cost in model.live.values():
            expected[dataset, definition] += cost
        assert dict(expected) == derive_totals(entry.body for entry in read_entries(path))
        for head in heads:
            verify(path, head=head)


@given(st.lists(st.fractions(min_value=0, max_value=100), max_size=20))
def test_compose_is_the_exact_sum(costs):
    assert sum(costs, Fraction(0)) == compose(costs)
