"""Random histories of a ledger: two accountants, a plain model and the file itself agree, and nothing is spent unseen."""

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import OverspendError
from censafe.model import Definition, Neighbors, ProtectedUnit
from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from censafe.privacy.loss.accountant import compose, derive_totals
from censafe.privacy.loss.promises import PROMISES
from support.ledgers import SHA, make_part, make_plan, open_ledger

COSTS = st.fractions(min_value=Fraction(1, 1000), max_value=4, max_denominator=1000)
PLANS = st.builds(
    lambda costs, definition, neighbors, unit, other: make_plan(
        *(make_part(f"P{i}", cost) for i, cost in enumerate(costs)),
        definition=definition,
        neighbors=neighbors,
        unit=unit,
        other=other,
    ),
    st.lists(COSTS, min_size=1, max_size=3),
    st.sampled_from(Definition),
    st.sampled_from(Neighbors),
    st.sampled_from(ProtectedUnit),
    st.one_of(st.none(), st.sampled_from([Fraction(2), Fraction(1, 4)])),
)
FILES = "abcdef"
# One session opens the ledger, settles, opens a run, and measures some parts, of which it commits some.
SESSIONS = st.tuples(
    st.integers(0, 4),  # which run, each with its plan and files
    st.lists(st.sampled_from(["commit", "leave", "skip"]), min_size=3, max_size=3),
    st.sampled_from(["void", "lost", "finish", "redo"]),
    st.one_of(st.none(), COSTS),  # a cap
    st.booleans(),  # --spend-more
)


class Model:
    """Every charge in one list; files, linked files and totals are looked up anew, as slowly as may be."""

    def __init__(self):
        self.live = {}  # by line: (run, part), files, plan, cost
        self.caps = []
        self.known = {}  # runs that the operator knew of when a run was opened

    def linked(self, files):
        """Files that were charged together with some of ``files``, directly or through others."""
        found = set(files)
        for _ in FILES:
            for _, charged, _, _ in self.live.values():
                if found & charged:
                    found |= charged
        return found

    def charges(self, files):
        return [one for one in self.live.values() if one[1] & self.linked(files)]

    def total(self, files, promise):
        amounts = [converted(plan, cost, promise) for _, _, plan, cost in self.charges(files)]
        return None if None in amounts else sum(amounts, Fraction(0))


def converted(plan, cost, promise):
    """A cost under a promise, written out case by case."""
    losses = {one.value: cost * loss / plan.total for one, loss in plan.other_losses.items()}
    losses[plan.neighbors.value] = cost
    if promise.unit == plan.unit.value:
        loss = losses.get(promise.neighbors)
    elif plan.unit is ProtectedUnit.PERSON or "replace" not in losses:
        loss = None
    elif promise.neighbors == "replace":
        loss = max(losses.values()) * (4 if plan.definition is Definition.ZCDP else 2)
    else:
        loss = max(losses.values()) if "add_remove" in losses else None
    if loss is None or plan.definition.value == promise.definition:
        return loss
    return loss * loss / 2 if plan.definition is Definition.PURE else None


def play(path, plan, files, run, session, model):
    """One session; the model follows what the ledger says that it did, and judges whether it might."""
    _, choices, ending, cap, spend_more = session
    with open_ledger(path, strict=ending == "lost") as ledger:
        held = list(ledger.reservations(run))
        finished = {part: (f"{part}.parquet", SHA) for part in held} if ending == "finish" else None
        reopened = ledger.settle_open(run, finished=finished, redo=held if ending == "redo" else ())
        for part in held if ending == "void" else ():
            del model.live[max(seq for seq, one in model.live.items() if one[0] == (run, part))]
        accounts = ledger.accounts(f"{FILES.index(name):x}" * 64 for name in files)
        others = {one[0][0] for one in model.charges(files)} - {run}
        try:
            record = ledger.open_run(plan, accounts=accounts, run=run, cap=cap, spend_more=spend_more)
        except OverspendError:
            return
        if not record.closed:
            assert spend_more or others <= model.known.get(run, set())
            model.known[run] = others
        if cap is not None and not record.closed:
            model.caps.append((cap, record.cap.promise, files))
        for reservation in reopened.values():
            ledger.commit(reservation, "again.parquet", SHA)
        if not record.closed:
            measure(ledger, record, plan, files, choices, model)
        if not record.closed and len(ledger.committed(run)) == len(plan.parts):
            ledger.close_run(plan)


def measure(ledger, record, plan, files, choices, model):
    """Reserve the parts that are chosen and due; after each of them the model finds every cap kept."""
    for part, choice in zip(plan.parts, choices, strict=False):
        if choice == "skip" or part.name in ledger.committed(record.run):
            continue
        try:
            reservation = ledger.reserve(plan, part)
        except OverspendError:
            continue
        model.live[reservation.seq] = ((record.run, part.name), files, plan, part.cost)
        assert model.total(files, record.cap.promise) <= record.cap.amount
        for amount, promise, named_for in model.caps:
            if model.linked(named_for) & files:
                assert model.total(files, promise) is not None
                assert model.total(files, promise) <= amount
        if choice == "commit":
            ledger.commit(reservation, f"{part.name}.parquet", SHA)


def check_totals(path, model):
    """Ledger, second accountant and model agree on every file under every promise."""
    with open_ledger(path) as ledger:
        derived = derive_totals(entry.body for entry in read_contents(path).entries)
        for index, name in enumerate(FILES):
            (account,) = ledger.accounts([f"{index:x}" * 64])
            for promise in PROMISES:
                expected = model.total({name}, promise)
                assert expected == ledger._state.total([account], promise)
                assert expected == derived.get((account, promise), Fraction(0))


@settings(max_examples=60)
@given(
    plans=st.lists(PLANS, min_size=5, max_size=5),
    sets=st.lists(st.frozensets(st.sampled_from(FILES), min_size=1, max_size=3), min_size=5, max_size=5),
    sessions=st.lists(SESSIONS, min_size=1, max_size=8),
)
def test_no_file_and_nothing_linked_with_it_is_charged_less_than_a_plain_model_says(plans, sets, sessions):
    model, heads = Model(), []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        for session in sessions:
            which = session[0]
            play(path, plans[which], sets[which], f"{which:08x}", session, model)
            heads.append(verify(path).head)
        check_totals(path, model)
        for head in heads:
            verify(path, head=head)


@settings(max_examples=40)
@given(st.lists(st.frozensets(st.sampled_from(FILES), min_size=1, max_size=4), min_size=1, max_size=6))
def test_no_sequence_of_file_sets_is_released_twice_unasked(sets):
    """Whatever is read with what: a second release that meets an earlier one, through any chain, is refused."""
    plan = make_plan(make_part("P", 1))
    groups = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        for files in sets:
            met = [group for group in groups if group & files]
            with open_ledger(path) as ledger:
                accounts = ledger.accounts(f"{FILES.index(name):x}" * 64 for name in files)
                refused = False
                try:
                    ledger.open_run(plan, accounts=accounts)
                except OverspendError:
                    refused = True
                    ledger.open_run(plan, accounts=accounts, spend_more=True)
                assert refused is bool(met)
                ledger.commit(ledger.reserve(plan, plan.parts[0]), "P.parquet", SHA)
                ledger.close_run(plan)
            groups = [group for group in groups if group not in met] + [files.union(*met)]
        assert len(groups) == len(verify(path).totals)


@given(st.lists(st.fractions(min_value=0, max_value=100), max_size=20))
def test_compose_is_the_exact_sum(costs):
    assert sum(costs, Fraction(0)) == compose(costs)
