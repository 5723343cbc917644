"""Who pays: single files, files that were read together, named accounts; caps under one promise and another."""

from fractions import Fraction

import pytest

from censafe.errors import LedgerError, OverspendError
from censafe.model import Definition, Neighbors, ProtectedUnit
from censafe.privacy.ledger.report import verify
from censafe.privacy.loss.promises import Loss, Promise, common_promises, loss_under
from support.ledgers import RUN, make_part, make_plan, open_ledger, spend, stated

HALF = Fraction(1, 2)
RHO = Promise("zcdp", "add_remove", "person")
PERSONS, UNITS, OTHER = ({name: letter * 64} for name, letter in (("p", "1"), ("u", "2"), ("o", "3")))
SMALL = make_part("S", "1/10")


def refused(path, files, plan=None, match="`spend_more`", **options):
    before = path.read_bytes()
    with pytest.raises(OverspendError, match=match):
        spend(path, plan or make_plan(SMALL), files=files, **options)
    assert before == path.read_bytes()


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [PERSONS, UNITS, {**PERSONS, **OTHER}, {**PERSONS, **UNITS, **OTHER}])
def test_any_set_that_shares_a_file_meets_what_was_spent(path, files):
    spend(path, make_plan(), files={**PERSONS, **UNITS})
    refused(path, files)


def test_files_never_read_together_are_apart_until_they_are(path):
    spend(path, make_plan(), files=PERSONS)
    spend(path, make_plan(), files=UNITS)
    assert stated(path) == [HALF, HALF]
    spend(path, make_plan(SMALL), files={**PERSONS, **UNITS}, spend_more=True)
    assert stated(path) == [Fraction(11, 10)]
    assert (
        spend(path, make_plan(SMALL), files=UNITS, spend_more=True).cap.amount
        == Fraction(11, 10) + SMALL.cost
    )


def test_a_chain_of_files_read_together_is_one_dataset(path):
    spend(path, make_plan(SMALL), files={**PERSONS, **UNITS})
    spend(path, make_plan(SMALL), files={**UNITS, **OTHER}, spend_more=True)
    refused(path, PERSONS, match=r"spent rho = 1/5")
    spend(path, make_plan(SMALL), files={"x": "9" * 64})


def test_a_named_account_is_shared_by_all_files_charged_under_it(path):
    spend_named(path, PERSONS, "acs")
    with pytest.raises(OverspendError, match="`spend_more`"):
        spend_named(path, OTHER, "acs")
    spend_named(path, OTHER, "other")
    spend_named(path, UNITS, "acs", spend_more=True)
    refused(path, PERSONS, match=r"spent rho = 1\b")
    assert stated(path) == [1, HALF]


def spend_named(path, files, name, **options):
    plan = make_plan()
    with open_ledger(path) as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(files.values(), name), **options)
        for part in plan.parts:
            ledger.commit(ledger.reserve(plan, part), f"{part.name}.parquet", "0" * 64)
        ledger.close_run(plan)


def test_what_published_nothing_links_nothing(path):
    plan = make_plan(make_part("A", 1))
    spend(path, plan, files={**PERSONS, **UNITS}, commit=False, run=RUN)
    refused(path, UNITS)
    with open_ledger(path) as ledger:
        ledger.settle_open(RUN)
    spend(path, make_plan(), files=PERSONS)
    spend(path, make_plan(), files=UNITS)
    assert stated(path) == [HALF, HALF]


def test_a_run_goes_on_under_the_accounts_it_was_opened_with(path):
    plan = make_plan()
    spend(path, plan, files=PERSONS, commit=False, run=RUN)
    with open_ledger(path) as ledger, pytest.raises(LedgerError, match="another input or `dataset`"):
        ledger.open_run(plan, accounts=ledger.accounts(PERSONS.values(), "name"), run=RUN)


def test_a_run_that_goes_on_needs_a_word_for_what_others_spent_meanwhile(path):
    plan = make_plan()
    with open_ledger(path) as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(PERSONS.values()), run=RUN, cap=Fraction(9))
    spend(path, make_plan(SMALL), files=PERSONS)
    refused(path, PERSONS, plan, run=RUN)
    spend(path, plan, files=PERSONS, run=RUN, spend_more=True)


# --- caps ------------------------------------------------------------------------------------------------------------


def test_a_cap_binds_later_runs_and_their_own_cap_never_loosens_it(path):
    spend(path, make_plan(), cap=Fraction(3, 4), files=PERSONS)
    refused(path, PERSONS, make_plan(), match="cap of rho = 3/4", spend_more=True)
    refused(path, PERSONS, make_plan(), match="cap of rho = 3/4", spend_more=True, cap=Fraction(5))
    refused(path, {**PERSONS, **UNITS}, make_plan(), match="`raise_cap`", spend_more=True)
    record = spend(path, make_plan(), spend_more=True, cap=Fraction(1), raise_cap=True, files=PERSONS)
    assert (record.cap.amount, stated(path)) == (1, [1])
    assert [cap.amount for cap in verify(path).totals[0].caps] == [1]
    refused(path, PERSONS, match="cap of rho = 1 ", spend_more=True)


def test_raising_needs_a_cap(path):
    with pytest.raises(ValueError, match="raise_cap needs a cap"):
        spend(path, make_plan(), raise_cap=True)


def test_epsilon_counts_as_rho_where_both_meet(path):
    pure = make_plan(make_part("A", 1), definition=Definition.PURE)
    spend(path, pure)
    with pytest.raises(OverspendError, match=r"spent epsilon = 1 .*add rho = 1/2"):
        spend(path, make_plan())
    record = spend(path, make_plan(), spend_more=True)
    assert (record.cap.amount, record.cap.promise) == (1, RHO)
    (total,) = verify(path).totals
    assert {one.symbol: value for one, value in total.stated.items()} == {"rho": HALF, "epsilon": 1}
    assert total.combined[RHO] == 1
    assert total.combined[Promise("puredp", "add_remove", "person")] is None


def test_a_cap_on_rho_binds_pure_runs_even_with_a_cap_of_their_own(path):
    spend(path, make_plan(), cap=Fraction(3, 4), files=PERSONS)
    pure = make_plan(make_part("A", 1), definition=Definition.PURE)
    refused(path, PERSONS, pure, match=r"cap of rho = 3/4 .*spent rho = 1 ", spend_more=True)
    refused(path, PERSONS, pure, match="a cap on epsilon cannot be kept", spend_more=True, cap=Fraction(2))
    small = make_plan(make_part("A", HALF), make_part("B", HALF), definition=Definition.PURE)
    assert spend(path, small, spend_more=True, files=PERSONS).cap.amount == Fraction(3, 4)


def test_a_cap_on_epsilon_refuses_every_zcdp_run(path):
    spend(path, make_plan(make_part("A", 1), definition=Definition.PURE), cap=Fraction(9), files=PERSONS)
    for options in ({}, {"cap": Fraction(1)}):
        refused(path, PERSONS, match="bound no epsilon", spend_more=True, **options)


def test_losses_of_different_relations_are_converted_before_they_are_added(path):
    """Rho 1 under add/remove that is 4 under replace, then 2.29 under replace: a cap of 3 must not hold both."""
    first = make_plan(make_part("A", 1), other=4)
    second = make_plan(make_part("B", "229/100"), neighbors=Neighbors.REPLACE, product="topdown")
    spend(path, first, files=PERSONS)
    refused(
        path, PERSONS, second, match=r"rho = 629/100 .*replace one person", spend_more=True, cap=Fraction(3)
    )
    record = spend(path, second, files=PERSONS, spend_more=True)
    assert record.cap.amount == Fraction(629, 100)
    (total,) = verify(path).totals
    assert total.combined[RHO] is None
    assert total.statement() == "together: rho = 629/100 (about 6.29; replace one person)"


def test_a_cap_under_a_relation_that_a_run_does_not_state_refuses_it(path):
    spend(path, make_plan(), cap=Fraction(99), files=PERSONS)
    topdown = make_plan(SMALL, neighbors=Neighbors.REPLACE)
    refused(path, PERSONS, topdown, match="cannot be added to this one", spend_more=True)
    other = make_plan(SMALL, other=2)
    spend(path, other, cap=Fraction(99), files=UNITS)
    refused(path, UNITS, topdown, match="bound no rho of add/remove one person", spend_more=True)
    spend(path, topdown, files=UNITS, spend_more=True, cap=Fraction(99), raise_cap=True)


def test_households_count_for_the_persons_in_them(path):
    persons = make_plan(make_part("P", 1), other=2)
    households = make_plan(make_part("H", 1), other=2, unit=ProtectedUnit.HOUSEHOLD)
    spend(path, persons, files=PERSONS)
    record = spend(path, households, files=PERSONS, spend_more=True)
    assert (record.cap.promise, record.cap.amount) == (RHO, 1 + 2)
    (total,) = verify(path).totals
    replaced = Promise("zcdp", "replace", "person")
    assert (total.combined[RHO], total.combined[replaced]) == (3, 2 + 4 * 2)
    assert total.combined[Promise("zcdp", "add_remove", "household")] is None
    assert "rho = 3 (add/remove one person) and rho = 10 (replace one person)" in total.statement()


# --- promises --------------------------------------------------------------------------------------------------------


def test_conversions_that_have_no_finite_answer():
    persons = Loss(RHO, {"add_remove": HALF})
    fixed = Loss(Promise("zcdp", "replace", "household"), {"replace": HALF})
    assert loss_under(persons, Promise("puredp", "add_remove", "person")) is None
    assert loss_under(persons, Promise("zcdp", "add_remove", "household")) is None
    assert loss_under(persons, Promise("zcdp", "replace", "person")) is None
    assert loss_under(fixed, RHO) is None
    assert loss_under(fixed, Promise("zcdp", "replace", "person")) == 2


def test_the_nearest_common_promise_comes_first():
    persons = Loss(RHO, {"add_remove": HALF, "replace": Fraction(1)})
    fixed = Loss(Promise("puredp", "replace", "household"), {"replace": HALF})
    assert next(common_promises(persons, [])) == RHO
    assert next(common_promises(persons, [fixed])) == Promise("zcdp", "replace", "person")
    assert next(common_promises(fixed, [])) == fixed.promise
    assert not list(common_promises(Loss(RHO, {"add_remove": HALF}), [fixed]))
