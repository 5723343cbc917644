"""What the ledger allows, refuses and adds up."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from censafe.errors import LedgerError, OverspendError
from censafe.privacy.ledger.book import RunNotes
from censafe.privacy.ledger.entries import NO_HEAD, read_contents
from censafe.privacy.ledger.report import verify
from censafe.privacy.loss.promises import Promise
from support.ledgers import FILES, RUN, SHA, make_part, make_plan, open_ledger, running, spend, stated

HALF = Fraction(1, 2)
FOLDER = RunNotes(folder="/data/OUT")


RHO = Promise("zcdp", "add_remove", "person")
EPSILON = Promise("puredp", "add_remove", "person")


def test_a_whole_run_is_written_down_line_by_line(path):
    plan = make_plan()
    with open_ledger(path) as ledger:
        assert ledger.head == NO_HEAD
        accounts = ledger.accounts(FILES.values())
        record = ledger.open_run(plan, accounts=accounts, notes=RunNotes("J. Doe", "d" * 64, "OUT"))
        assert (record.cap.amount, record.closed) == (HALF, False)
        reservation = ledger.reserve(plan, plan.parts[0])
        assert (reservation.cost, reservation.total_after) == (Fraction(1, 3), Fraction(1, 3))
        assert ledger.reservations(record.run) == {"PH1": reservation}
        ledger.commit(reservation, "PH1.parquet", SHA)
        ledger.commit(ledger.reserve(plan, plan.parts[1]), "PH2.parquet", SHA)
        assert ledger.committed(record.run) == {"PH1": ("PH1.parquet", SHA), "PH2": ("PH2.parquet", SHA)}
        assert ledger.paid(record.run) == plan.total == HALF
        ledger.close_run(plan)
        ledger.close_run(plan)
        assert ledger.spent(accounts) == {RHO: HALF}
        head = ledger.head
    entries = read_contents(path).entries
    assert [entry.event for entry in entries] == ["open", "reserve", "commit", "reserve", "commit", "close"]
    assert entries[-1].digest == head == verify(path).head
    opening, first = entries[0].body, entries[1].body
    assert opening["operator"] == "J. Doe"
    assert opening["config"] == "d" * 64
    assert opening["program"].startswith("censafe ")
    assert (opening["losses"], opening["cap"], opening["cap_promise"]) == (
        {"add_remove": "1/2"},
        "1/2",
        RHO.text,
    )
    assert (opening["total_after"], first["total_after"]) == ({}, {RHO.text: "1/3"})
    assert opening["accounts"] == sorted(accounts)
    assert (first["cost"], first["source"], first["plan"]) == ("1/3", "system", plan.digest())
    assert first["neighbors"] == "add_remove"
    assert first["unit"] == "person"
    assert first["queries"][1] == {
        "table": "PH1", "level": "level_1", "mechanism": "gaussian", "parameter": "4/1", "cost": "1/12",
    }  # fmt: skip


def test_no_file_hash_is_written_in_the_clear(path):
    spend(path, make_plan())
    text = path.read_text()
    assert not any(value in text for value in FILES.values())


def test_report_rows(path):
    spend(path, make_plan())
    report = verify(path)
    assert [(row.line, row.label, row.product, row.part, row.symbol, row.state) for row in report.rows] == [
        (2, "toy", "phsafe", "PH1", "rho", "committed"),
        (4, "toy", "phsafe", "PH2", "rho", "committed"),
    ]
    assert [(row.cost, row.total) for row in report.rows] == [
        (Fraction(1, 3), Fraction(1, 3)),
        (Fraction(1, 6), HALF),
    ]
    (total,) = report.totals
    assert (total.labels, total.products, total.stated) == (("toy",), ("phsafe",), {RHO: HALF})
    assert (total.combined[RHO], total.combined[EPSILON], len(total.accounts)) == (HALF, None, 2)
    assert total.statement() == "together: rho = 1/2 (about 0.5; add/remove one person)"
    assert (report.entries, report.torn_bytes) == (6, 0)


def test_a_part_costs_its_factor_times_what_its_queries_state(path):
    part = replace(make_part("persons", "1/3"), factor=Fraction(3, 2))
    plan = make_plan(part, make_part("others", "1/2"))
    spend(path, plan)
    report = verify(path)
    assert [(row.part, row.total) for row in report.rows] == [("persons", HALF), ("others", Fraction(1))]
    assert plan.total == 1
    assert plan.digest() != make_plan(replace(part, factor=Fraction(1)), make_part("others", "1/2")).digest()


def test_a_second_release_needs_the_operators_word(path):
    spend(path, make_plan())
    with pytest.raises(OverspendError, match=r"already spent rho = 1/2.*add rho = 1/2.*`spend_more`"):
        spend(path, make_plan())
    assert stated(path) == [HALF]
    record = spend(path, make_plan(), spend_more=True)
    assert record.cap.amount == 1
    assert stated(path) == [Fraction(1)]


def test_files_are_known_by_their_content_not_by_names(path):
    spend(path, make_plan())
    renamed = dict(zip(("x.csv", "y.csv"), FILES.values(), strict=True))
    with pytest.raises(OverspendError, match="`spend_more`"):
        spend(path, make_plan(), files=renamed)
    spend(path, make_plan(), files={"persons.csv": "f" * 64})
    assert stated(path) == [HALF, HALF]


def test_a_cap_that_the_plan_exceeds_stops_before_anything_is_written(path):
    with pytest.raises(OverspendError, match=r"cap of rho = 49/100.*spent rho = 1/2"):
        spend(path, make_plan(), cap=Fraction(49, 100))
    assert path.read_bytes() == b""
    spend(path, make_plan(), cap=HALF)


@pytest.mark.parametrize("cap", [0, Fraction(-1)])
def test_a_cap_that_is_not_positive_is_refused(path, cap):
    with pytest.raises(OverspendError, match="positive"):
        spend(path, make_plan(), cap=cap)


def test_a_part_is_reserved_once(path):
    with running(path) as (ledger, plan):
        reservation = ledger.reserve(plan, plan.parts[0])
        for _ in range(2):
            with pytest.raises(LedgerError, match="PH1 was reserved before"):
                ledger.reserve(plan, plan.parts[0])
            if ledger.reservations(reservation.run):
                ledger.commit(reservation, "PH1.parquet", SHA)
        with pytest.raises(LedgerError, match="no open reservation"):
            ledger.commit(reservation, "PH1.parquet", SHA)


def test_reserving_needs_the_plan_of_an_open_run(path):
    plan, other = make_plan(), make_plan(make_part("PH9", 1))
    with open_ledger(path) as ledger:
        with pytest.raises(LedgerError, match="open a run"):
            ledger.reserve(plan, plan.parts[0])
        ledger.open_run(plan, accounts=ledger.accounts(FILES.values()))
        with pytest.raises(LedgerError, match="PH9 is not of the plan"):
            ledger.reserve(other, other.parts[0])
        with pytest.raises(LedgerError, match="PH1 is not of the plan"):
            ledger.reserve(plan, make_part("PH1", "1/1000"))


def test_a_run_closes_only_when_all_parts_are_committed(path):
    with running(path) as (ledger, plan):
        ledger.commit(ledger.reserve(plan, plan.parts[0]), "PH1.parquet", SHA)
        with pytest.raises(LedgerError, match="not committed: PH2"):
            ledger.close_run(plan)


def half_done(path, *, strict=False):
    """A run that was killed between reserving and committing its second part."""
    plan = make_plan()
    with open_ledger(path, strict=strict) as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(FILES.values()), run=RUN, notes=FOLDER)
        ledger.commit(ledger.reserve(plan, plan.parts[0]), "PH1.parquet", SHA)
        ledger.reserve(plan, plan.parts[1])
    return plan


def resume(ledger, plan, **options):
    return ledger.open_run(plan, accounts=ledger.accounts(FILES.values()), run=RUN, **options)


def test_an_open_reservation_counts_until_it_is_settled(path):
    half_done(path)
    assert stated(path) == [HALF]
    with pytest.raises(OverspendError, match="finish the unfinished run in /data/OUT"):
        spend(path, make_plan())


def test_restart_voids_a_reservation_without_commit_and_measures_again(path):
    plan = half_done(path)
    with open_ledger(path) as ledger:
        assert ledger.settle_open(RUN) == {}
        assert not ledger.reservations(RUN)
        assert ledger.spent(ledger.accounts(FILES.values())) == {RHO: Fraction(1, 3)}
        record = resume(ledger, plan)
        assert (record.run, record.cap.amount) == (RUN, HALF)
        ledger.commit(ledger.reserve(plan, plan.parts[1]), "PH2.parquet", SHA)
        ledger.close_run(plan)
    assert stated(path) == [HALF]
    assert [row.state for row in verify(path).rows] == ["committed", "void", "committed"]


def test_strict_restart_counts_the_reservation_as_lost(path):
    plan = half_done(path)
    with open_ledger(path, strict=True) as ledger:
        assert ledger.settle_open(RUN) == {}
        with pytest.raises(OverspendError, match="cap of rho = 1/2"):
            resume(ledger, plan)
        assert resume(ledger, plan, spend_more=True).cap.amount == Fraction(2, 3)
        ledger.commit(ledger.reserve(plan, plan.parts[1]), "PH2.parquet", SHA)
        ledger.close_run(plan)
    assert stated(path) == [Fraction(2, 3)]
    assert [row.state for row in verify(path).rows] == ["committed", "lost", "committed"]


def test_restart_commits_a_finished_file_at_no_cost(path):
    plan = half_done(path)
    with open_ledger(path) as ledger:
        assert ledger.settle_open(RUN, finished={"PH2": ("PH2.parquet", SHA)}) == {}
        assert list(ledger.committed(RUN)) == ["PH1", "PH2"]
        resume(ledger, plan)
        ledger.close_run(plan)
    assert stated(path) == [HALF]


@pytest.mark.parametrize("strict", [False, True])
def test_restart_with_the_key_draws_again_under_the_same_reservation(path, strict):
    plan = half_done(path)
    with open_ledger(path, strict=strict) as ledger:
        reopened = ledger.settle_open(RUN, redo={"PH2"})
        assert list(reopened) == ["PH2"]
        resume(ledger, plan)
        ledger.commit(reopened["PH2"], "PH2.parquet", SHA)
        ledger.close_run(plan)
    assert stated(path) == [HALF]


def test_a_finished_run_has_nothing_left_to_measure(path):
    plan = make_plan()
    spend(path, plan, run=RUN)
    before = path.read_bytes()
    with open_ledger(path) as ledger:
        assert resume(ledger, plan).closed
        with pytest.raises(LedgerError, match="reserved before"):
            ledger.reserve(plan, plan.parts[0])
        ledger.close_run(plan)
    assert before == path.read_bytes()


def test_a_run_cannot_go_on_with_another_plan_or_input(path):
    half_done(path)
    with open_ledger(path) as ledger:
        with pytest.raises(LedgerError, match="another plan"):
            resume(ledger, make_plan(make_part("PH1", 1)))
        with pytest.raises(LedgerError, match="another input"):
            ledger.open_run(make_plan(), accounts=ledger.accounts(["e" * 64]), run=RUN)


def test_a_run_that_goes_on_keeps_its_cap_and_meets_those_named_since(path):
    plan = make_plan()
    with open_ledger(path) as ledger:
        accounts = ledger.accounts(FILES.values())
        ledger.open_run(plan, accounts=accounts, cap=Fraction(1), run=RUN)
        ledger.open_run(plan, accounts=accounts, cap=Fraction(1, 4) * 3)
        assert ledger.open_run(plan, accounts=accounts, run=RUN).cap.amount == 1
        with pytest.raises(OverspendError, match=r"cap of rho = 3/4 .*named for these records before"):
            ledger.open_run(make_plan(make_part("A", "4/5")), accounts=accounts)


@pytest.mark.parametrize("name", ["", "RUN", "0123", "g" * 16])
def test_run_names_are_hexadecimal(path, name):
    with pytest.raises(ValueError, match="hexadecimal"):
        spend(path, make_plan(), run=name)


def test_floats_are_type_errors(path):
    with open_ledger(path) as ledger:
        accounts = ledger.accounts(FILES.values())
        with pytest.raises(TypeError, match="cap"):
            ledger.open_run(make_plan(), accounts=accounts, cap=0.5)
        part = make_part("PH1", 1)
        object.__setattr__(part.queries[0], "cost", 0.5)
        with pytest.raises(TypeError, match="cost of PH1 level_0"):
            ledger.open_run(make_plan(part), accounts=accounts)
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((make_part("A", 0),), "positive"),
        ((make_part("A", -1),), "positive"),
        ((make_part("A"),), "measures nothing"),
        ((make_part("A", 1), make_part("A", 1)), "distinct names"),
    ],
)
def test_plans_that_cannot_be_charged_are_refused(path, parts, reason):
    with open_ledger(path) as ledger, pytest.raises(ValueError, match=reason):
        ledger.open_run(make_plan(*parts), accounts=ledger.accounts(FILES.values()))


def test_commit_wants_a_file_and_a_digest(path):
    with running(path) as (ledger, plan):
        reservation = ledger.reserve(plan, plan.parts[0])
        for file, digest in (("", SHA), ("PH1.parquet", "xyz")):
            with pytest.raises(ValueError, match="SHA-256"):
                ledger.commit(reservation, file, digest)


def test_a_closed_ledger_writes_nothing(path):
    plan = make_plan()
    ledger = open_ledger(path)
    ledger.open_run(plan, accounts=ledger.accounts(FILES.values()))
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.reserve(plan, plan.parts[0])


def test_a_head_from_a_certificate_must_still_be_in_the_chain(path):
    spend(path, make_plan())
    head = verify(path).head
    spend(path, make_plan(), spend_more=True)
    assert verify(path, head=head).entries == 12
    assert verify(path, head=NO_HEAD).entries == 12
    with pytest.raises(LedgerError, match="no line has the hash"):
        verify(path, head="9" * 64)


def test_lines_are_plain_json_with_text_fractions(path):
    spend(path, make_plan())
    bodies = [json.loads(line) for line in path.read_text().splitlines()]
    assert [body["seq"] for body in bodies] == [1, 2, 3, 4, 5, 6]
    assert not any(isinstance(value, float) for body in bodies for value in body.values())


def test_a_part_of_disjoint_groups_costs_the_larger_and_names_them(path):
    part = replace(make_part("usa_1", "1/2", "1/20", "9/20"), disjoint=((0,), (1, 2)))
    plain = make_plan(make_part("usa_1", "1/2", "1/20", "9/20"))
    plan = make_plan(part, make_part("usa_2", "1/4"))
    assert "disjoint" not in plain.canonical() and plain.digest() != make_plan(part).digest()
    spend(path, plan)
    reserved = [entry.body for entry in read_contents(path).entries if entry.event == "reserve"]
    assert [(body["cost"], body.get("disjoint")) for body in reserved] == [
        ("1/2", [[0], [1, 2]]),
        ("1/4", None),
    ]
    assert stated(path) == [Fraction(3, 4)]
