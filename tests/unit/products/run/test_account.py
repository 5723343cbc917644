"""Which ledger a run may begin, what a cited result that another ledger paid for needs, and reservations of a stopped run."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import LedgerError, OverspendError
from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from censafe.products.run.account import Account, ReleaseRequest, open_account
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import CitedRun, RunOptions
from censafe.publication.atomic import sha256_path
from censafe.publication.manifest import ConfigRecord, LedgerRecord, Manifest, PartRecord
from support.ledgers import FILES, SHA, make_part, make_plan, open_ledger, spend, stated

CITED = make_plan(make_part("first", "1/2"), make_part("second", "1/4"), product="topdown")


def opened(folder: Path, ledger: Path, **options: object) -> tuple[str, ...]:
    """Open the account of a run of a small plan, and close it; what is said of the ledger."""
    chosen = RunOptions(ledger=options.pop("named", ledger), **options)
    synthetic = bool(chosen.dataset == "synthetic")
    request = ReleaseRequest(
        make_plan(), FILES, {}, ledger, "records", "0" * 64, lambda path: None, synthetic=synthetic
    )
    with RunFolder(folder) as run, open_account(request, run, chosen) as account:
        account.settle()
        return account.statement.lines()


def cited_run(ledger: Path, run: str, head: str | None = None) -> CitedRun:
    """The finished run that is cited."""
    manifest = Manifest(
        plan=CITED, config=ConfigRecord("pl94-us", {}, {}), dataset="records", input_commitment="00",
        ledger=LedgerRecord(ledger.name, head or verify(ledger).head), test_key=False, created="", run=run,
        parts=tuple(PartRecord(part.name, f"{part.name}.parquet", SHA) for part in CITED.parts),
    )  # fmt: skip
    return CitedRun.of(manifest)


def test_a_default_ledger_is_begun_on_purpose_only(tmp_path: Path) -> None:
    ledger = tmp_path / "censafe-ledger.jsonl"
    with pytest.raises(LedgerError, match=r"there is no ledger.*copies of these records"):
        opened(tmp_path / "out", ledger, named=None)
    assert not ledger.exists()
    first, _ = opened(tmp_path / "out", ledger, named=None, new_ledger=True)
    assert (
        first == f"Ledger {ledger}: a new ledger, which holds nothing about earlier spending on these records"
    )
    opened(tmp_path / "again", ledger, named=None, spend_more=True)


def test_synthetic_records_and_a_named_ledger_need_no_word(tmp_path: Path) -> None:
    opened(tmp_path / "one", tmp_path / "one.jsonl", named=None, dataset="synthetic")
    opened(tmp_path / "two", tmp_path / "two.jsonl")


def test_a_ledger_that_vanished_is_not_begun_anew(tmp_path: Path) -> None:
    ledger = tmp_path / "censafe-ledger.jsonl"
    spend(ledger, make_plan())
    ledger.unlink()
    with pytest.raises(LedgerError, match="is the key of a ledger"):
        opened(tmp_path / "out", ledger, named=None)


def test_new_records_in_a_known_ledger_are_said_to_be_new_to_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    spend(ledger, make_plan(), files={"other.csv": "d" * 64})
    assert opened(tmp_path / "out", ledger)[0].endswith("holds no earlier spending on these record files")


def test_a_cited_result_that_another_ledger_paid_for_is_refused(tmp_path: Path) -> None:
    other, ledger = tmp_path / "other.jsonl", tmp_path / "ledger.jsonl"
    cited = {"redistricting": cited_run(other, spend(other, CITED).run)}
    with pytest.raises(
        LedgerError, match=r"did not pay for the cited result redistricting \(topdown, rho = 3/4"
    ):
        opened(tmp_path / "out", ledger, cited=cited)
    assert not verify(ledger).rows


@pytest.mark.parametrize("by", ["ledger", "manifest"])
def test_its_cost_is_carried_where_its_ledger_is_named(tmp_path: Path, by: str) -> None:
    other, ledger, out = tmp_path / "other.jsonl", tmp_path / "ledger.jsonl", tmp_path / "out"
    cited = {"redistricting": cited_run(other, spend(other, CITED).run)}
    named = {"redistricting": other if by == "ledger" else None}
    options = {"cited": cited, "ledger_of": named, "spend_more": frozenset({cited["redistricting"].run})}
    before, _ = opened(out, ledger, **options)
    carried = "rho = 3/4 (about 0.75; add/remove one person)"
    assert before.endswith(
        f"a new ledger, with {carried} carried over, and nothing about earlier spending on these records"
    )
    assert stated(ledger) == [Fraction(3, 4)]
    sources = [one.text("source") for one in read_contents(ledger).entries if one.event == "reserve"]
    assert sources == ["carried", "carried"]
    assert [row.state for row in verify(ledger).rows] == ["carried", "carried"]
    assert "carried: redistricting" in read_contents(ledger).entries[0].text("operator")
    opened(out, ledger, **options)  # once more: carried already
    assert stated(ledger) == [Fraction(3, 4)]
    with pytest.raises(OverspendError, match="the cap of"):
        opened(tmp_path / "capped", ledger, **options, cap=Fraction(4, 5))


def test_a_ledger_that_did_not_pay_for_it_or_paid_for_more_is_refused(tmp_path: Path) -> None:
    other, ledger = tmp_path / "other.jsonl", tmp_path / "ledger.jsonl"
    run = spend(other, CITED).run
    for head, message in ((None, "did not pay for run"), ("e" * 64, "no line has the hash")):
        strange = {"redistricting": cited_run(other, run if head else "f" * 16, head)}
        with pytest.raises(LedgerError, match=message):
            opened(tmp_path / "out", ledger, cited=strange, ledger_of={"redistricting": other})
    silent = {"redistricting": replace(cited_run(other, run), head=None, stated="microdata")}
    with pytest.raises(LedgerError, match="microdata does not say which ledger paid for it"):
        opened(tmp_path / "out", ledger, cited=silent, ledger_of={"redistricting": other})
    spend(other, make_plan(), spend_more=True)
    cited = {"redistricting": cited_run(other, run)}
    with pytest.raises(LedgerError, match="charged 1 more runs to the records of redistricting"):
        opened(tmp_path / "out", ledger, cited=cited, ledger_of={"redistricting": other})


def test_a_result_of_other_files_in_the_same_ledger_is_charged_together_from_then_on(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    run = spend(ledger, CITED, files={"blocks.parquet": "d" * 64}).run
    cited = {"redistricting": cited_run(ledger, run)}
    before, _ = opened(tmp_path / "out", ledger, cited=cited, spend_more=frozenset({run}))
    assert before.endswith("spent before: rho = 3/4 (about 0.75; add/remove one person)")


def test_a_carry_that_was_stopped_is_completed(tmp_path: Path) -> None:
    other, ledger = tmp_path / "other.jsonl", tmp_path / "ledger.jsonl"
    run = spend(other, CITED).run
    with open_ledger(ledger) as book:
        book.open_run(CITED, accounts=book.accounts(FILES.values()), run=run)
        book.reserve(CITED, CITED.parts[0], source="carried")
    cited = {"redistricting": cited_run(other, run)}
    known = frozenset({run})
    opened(tmp_path / "out", ledger, cited=cited, ledger_of={"redistricting": other}, spend_more=known)
    assert stated(ledger) == [Fraction(3, 4)]


PARTS = tuple(make_part(name, "1/3") for name in ("persons_US", "persons_State", "persons_County"))
KEPT, VOID, LOST = "reserved", "void", "lost"


def stop(account: Account, folder: RunFolder, measured: str) -> None:
    """Reserve all parts, and measure the first as far as said."""
    for part in PARTS:
        account.reserve(part)
    if measured != "nothing":
        folder.measurements.mkdir()
        file = folder.measurements / f"{PARTS[0].name}.parquet"
        file.write_bytes(b"noisy")
        if measured == "committed":
            account.commit(PARTS[0], file.name, sha256_path(file))


@pytest.mark.parametrize(
    ("joint", "measured", "strict", "same_key", "expected"),
    [
        (True, "committed", False, False, KEPT),
        (True, "written", False, False, KEPT),
        (True, "nothing", False, False, VOID),
        (False, "committed", False, False, VOID),
        (False, "written", False, False, VOID),
        (True, "committed", True, False, LOST),
        (True, "written", True, False, LOST),
        (False, "nothing", True, False, LOST),
        (True, "committed", True, True, KEPT),
        (False, "nothing", False, True, KEPT),
    ],
)
def test_reservations_of_a_stopped_run_stay_charged_where_a_measured_part_may_spend_them(
    tmp_path: Path, joint: bool, measured: str, strict: bool, same_key: bool, expected: str
) -> None:
    plan = replace(make_plan(*PARTS), joint=joint)
    ledger = tmp_path / "ledger.jsonl"
    request = ReleaseRequest(plan, FILES, {}, ledger, "toy", "d" * 64, verify=lambda path: None)
    options = RunOptions(ledger=ledger, strict_ledger=strict, key_dir=tmp_path / "keys" if same_key else None)
    for start in ("first", "second"):
        with RunFolder(tmp_path / "out") as folder, open_account(request, folder, options) as account:
            if start == "first":
                stop(account, folder, measured)
            elif expected == LOST:  # what is lost counts, so that the cap of the first start is in the way
                account.settle()
            else:
                account.settle()
                again = [account.reserve(part) for part in PARTS[1:]]
                assert [one.part for one in again if one is not None] == [part.name for part in PARTS[1:]]
    done = measured != "nothing"
    states = [row.state for row in verify(ledger).rows]
    first = ["committed"] if done else [expected]
    assert [*first, expected, expected] == states[:3]
    assert states[3:] == ([KEPT] * 2 if expected == VOID else [])
    more = (2 if expected == VOID else 0) * Fraction(1, 3)
    counted = sum(1 for state in states[:3] if state != VOID) * Fraction(1, 3)
    assert (
        sum((total for one in verify(ledger).totals for total in one.stated.values()), Fraction(0))
        == counted + more
    )
    assert [entry.event for entry in read_contents(ledger).entries].count("reserve") == len(states)
