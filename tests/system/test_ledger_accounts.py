"""Releases of records that were released before, in whole or in part, by another product or into another folder."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from censafe import configuration, plan, synthesize
from censafe.privacy.ledger.report import verify
from censafe.products.run.account import ledger_place
from support.commands import CommandLine
from support.ledgers import make_plan, spend
from support.phsafe_inputs import STATES, write_cef
from support.safetab_cef import write_cef as write_safetab_cef
from support.safetab_folders import SafetabFolders, data_rows, write_folders
from support.same_population import write_histograms

NAME = "censafe-ledger.jsonl"


def refused(done):
    assert done.code == 3, done.err
    assert "--spend-more" in done.err
    return done.err


def test_a_state_out_of_several_and_a_block_file_with_one_more_line_are_no_new_records(
    censafe: CommandLine, config: Path, tmp_path: Path
) -> None:
    ini = write_cef(tmp_path / "cef")
    words = ("run", "phsafe", config, ini)
    both, one = (
        ("--set", "reader=cef", "--set", f"state_filter={','.join(some)}") for some in (STATES, STATES[:1])
    )
    first = censafe(*words, tmp_path / "both", *both, ends=0)
    new = "a new ledger, which holds nothing about earlier spending on these records"
    assert f"Ledger {tmp_path / NAME}: {new}" in first.out
    assert "total spent in this ledger: rho = 46 (add/remove one person)" in first.out
    assert "rho = 46" in refused(censafe(*words, tmp_path / "one", *one))
    for blocks in ini.parent.glob("grfc*"):
        blocks.write_text(blocks.read_text() + "\n")
    refused(censafe(*words, tmp_path / "elsewhere" / "one", *one))
    second = censafe(*words, tmp_path / "one", *one, "--spend-more", "--json")
    assert json.loads(second.out)["ledger"] == {
        "file": str(tmp_path / NAME),
        "new": False,
        "spent_before": {"zcdp add_remove person": "46"},
        "spent_in_all": {"zcdp add_remove person": "92"},
    }
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
    certificate = json.loads((tmp_path / "one" / "certificate.json").read_text())
    (total,) = verify(tmp_path / NAME).totals
    assert len(manifest["file_commitments"]) == 2  # persons and units of one state; the block file is public
    assert set(manifest["file_commitments"]) < set(total.accounts)
    assert certificate["inputs"]["file_commitments"] == manifest["file_commitments"]
    shown = censafe("ledger", "show", tmp_path / NAME)
    assert "together: rho = 92 (add/remove one person) and rho = 184 (replace one person)" in shown.out


def test_persons_and_households_of_the_same_files_meet(censafe: CommandLine, tmp_path: Path) -> None:
    folders: SafetabFolders = write_folders(tmp_path)
    tables = data_rows()
    for number, home in enumerate(tables["households"]):
        home[14] = "1454"[number % 4]  # the household types that the files are written with
    ini = write_safetab_cef(tmp_path / "cef", tables)
    for product in ("p", "h"):
        folders.configure(product, reader="cef")
    censafe("run", "safetab-p", folders.p, ini, tmp_path / "p", ends=0)
    words = ("run", "safetab-h", folders.h, ini, tmp_path / "h", "--t1", tmp_path / "p")
    refused(censafe(*words))
    censafe(*words, "--spend-more", ends=0)
    (total,) = verify(tmp_path / NAME).totals
    assert total.products == ("safetab-p", "safetab-h")
    assert total.statement().startswith("together: rho = ")
    assert "add/remove one person" in total.statement()


def test_units_first_and_then_both_meet(censafe: CommandLine, tmp_path: Path) -> None:
    data = write_histograms(tmp_path / "columns", persons=300, states=("50",), seed=1)
    words = ("run", "topdown", "pl94-us", data)
    more = ("--set", "reader=histogram", "--set", "root=State", "--quiet")
    censafe(*words, tmp_path / "units", *more, "--set", "measure=units", ends=0)
    said = refused(censafe(*words, tmp_path / "both", *more))
    assert "replace one person" in said
    assert "household" not in said.partition("have already spent")[2]


def test_a_cap_that_stops_one_run_stops_its_halves_as_well(censafe: CommandLine, tmp_path: Path) -> None:
    """Persons and then units cost what both cost at once, so that a cap between their sum and the larger one stops the second run."""
    data = write_histograms(tmp_path / "columns", persons=300, states=("50",), seed=1)
    words, more = (
        ("run", "topdown", "pl94-us", data),
        ("--set", "reader=histogram", "--set", "root=State", "--quiet"),
    )
    plans = {
        name: plan(
            configuration("topdown", "pl94-us", {"root": "State", "spine": "standard", "measure": name})
        ).total
        for name in ("persons", "units", "persons,units")
    }
    assert plans["persons"] + plans["units"] == plans["persons,units"]
    cap = plans["persons,units"] - Fraction(1, 10**6)
    censafe(*words, tmp_path / "both", *more, "--cap", cap, ends=3, says="the cap")
    censafe(*words, tmp_path / "persons", *more, "--set", "measure=persons", "--cap", cap, ends=0)
    for again in ((), ("--cap", cap)):  # named again or not
        second = censafe(*words, tmp_path / "units", *more, "--set", "measure=units", "--spend-more", *again)
        assert (second.code, "the cap" in second.err) == (3, True), second.err
    (total,) = verify(tmp_path / NAME).totals
    assert list(total.stated.values()) == [plans["persons"]]


def test_the_ledger_lies_beside_the_data_or_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "paths.ini").touch()
    (tmp_path / "link").symlink_to(data)
    for named in (data, data / "paths.ini", tmp_path / "link"):
        assert ledger_place(None, named) == tmp_path / NAME
    monkeypatch.setenv("CENSAFE_LEDGER", str(tmp_path / "central.jsonl"))
    assert ledger_place(None, data) == tmp_path / "central.jsonl"
    assert ledger_place(tmp_path / "mine.jsonl", data) == tmp_path / "mine.jsonl"


def test_a_place_that_cannot_be_written_says_what_to_set(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CENSAFE_LEDGER", str(tmp_path / "absent" / "ledger.jsonl"))
    censafe("run", "phsafe", config, data, tmp_path / "out", ends=3, says="set CENSAFE_LEDGER or --ledger")
    assert not (tmp_path / "out").exists()


def test_a_copied_folder_cannot_spend_a_second_time_unnoticed(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "elsewhere" / "data"
    shutil.copytree(data, copied)
    censafe("ledger", "new", tmp_path / NAME, ends=0)
    censafe("ledger", "new", tmp_path / NAME, ends=3, says="will not be replaced")
    censafe("run", "phsafe", config, data, tmp_path / "out", new_ledger=False, ends=0)
    done = censafe("run", "phsafe", config, copied, tmp_path / "second", new_ledger=False, ends=3)
    assert f"{copied.parent / NAME}: there is no ledger" in done.err
    assert "--new-ledger" in done.err
    assert [path.name for path in copied.parent.iterdir()] == ["data"]
    assert not (tmp_path / "second").exists()


def test_records_of_synth_need_no_ledger_begun_until_they_are_changed(
    censafe: CommandLine, tmp_path: Path
) -> None:
    synthesize(tmp_path / "data", persons=300, states=("44",), file_format="csv")
    words = ("run", "phsafe", "sdhc-us", tmp_path / "data")
    more = ("--set", "reader=csv", "--set", "state_filter=44", "--quiet")
    censafe(*words, tmp_path / "out", *more, new_ledger=False, ends=0)
    (tmp_path / NAME).rename(tmp_path / "kept.jsonl")
    (tmp_path / NAME).with_suffix(".key").rename(tmp_path / "kept.key")
    for path in (tmp_path / "data").glob("*.csv"):
        path.write_text(path.read_text() + "\n")
    censafe(*words, tmp_path / "changed", *more, new_ledger=False, ends=3, says="there is no ledger")


def test_raising_a_cap_needs_a_cap(censafe: CommandLine, data: Path, config: Path, tmp_path: Path) -> None:
    done = censafe("run", "phsafe", config, data, tmp_path / "out", "--raise-cap", ends=2)
    assert "--raise-cap needs --cap" in done.err


def test_garbage_at_the_end_of_a_ledger_is_not_called_whole(censafe: CommandLine, tmp_path: Path) -> None:
    ledger = tmp_path / NAME
    spend(ledger, make_plan())
    assert "the chain is intact" in censafe("ledger", "verify", ledger).out
    with ledger.open("ab") as stream:
        stream.write(b"garbage")
    done = censafe("ledger", "verify", ledger)
    assert (done.code, "whole, 2 parts" in done.out) == (4, False)
    assert "the 7 bytes after them are not a whole line" in done.err
    verified = censafe("ledger", "verify", ledger, "--json")
    assert (verified.code, json.loads(verified.out)["valid"]) == (4, False)
    assert "7 bytes" in censafe("ledger", "show", ledger).out
