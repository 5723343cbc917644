"""What a run of the DHC refuses: a message with place and fix, exit code 1, nothing spent and no folder begun."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe import configuration, release, synthesize
from censafe.privacy.ledger.report import verify
from censafe.products.configuration.source import get_shipped
from support.commands import CommandLine
from support.once import made_once

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a small state in ``data``, and the redistricting data that were released of them in ``pl94``."""
    return made_once(tmp_path_factory, "dhc-bad-input", write_state)


def write_state(folder: Path) -> None:
    synthesize(folder / "data", persons=2500, states=("44",), layout="dhc")
    publish(folder / "data", folder / "pl94")


@pytest.fixture
def data(state: Path, tmp_path: Path) -> Path:
    """A copy of the records, to be changed."""
    shutil.copytree(state / "data", tmp_path / "data")
    return tmp_path / "data"


def publish(data: Path, out: Path) -> None:
    """Release the redistricting data, paid from a ledger of their own."""
    chosen = configuration("topdown", "pl94-us", {"root": "State", "reader": "records"})
    release(chosen, data, out, ledger=out.with_name(f"{out.name}.jsonl"))


def refused(
    censafe: CommandLine, data: Path, pl94: Path | None, message: str, config: str | Path = "dhc-us"
) -> None:
    """One command with a key of its own and a new ledger: exit code 1, the message, no cost, no folder."""
    place = data.parent
    ledger, out = place / "ledger.jsonl", place / "out"
    given = () if pl94 is None else ("--pl94", pl94, "--ledger-of", "redistricting")
    found = censafe(
        "run", "topdown", config, data, out, "--set", "root=State", "--ledger", ledger, "--quiet", *given
    )
    assert found.code == 1, found.err
    assert message in " ".join(found.err.split())
    assert "fix:" in found.err
    assert "Traceback" not in found.err
    assert not ledger.exists() or all(row.state == "carried" for row in verify(ledger).rows)
    assert not out.exists()
    assert not out.with_name("out-redistricting").exists()


def edit(data: Path, table: str, change: Callable[[Rows], Rows]) -> None:
    path = data / f"{table}.parquet"
    read = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(change(read.to_pylist()), schema=read.schema), path)


def rows(data: Path, table: str) -> Rows:
    found: Rows = pq.read_table(data / f"{table}.parquet").to_pylist()
    return found


def facilities(data: Path) -> Rows:
    """Group quarters with more than one person."""
    return [row for row in rows(data, "units") if row["RTYPE"] == "4" and row["FINAL_POP"] > 1]


def without_one_person(data: Path, unit: Any) -> dict[str, Any]:
    """Take a person out of a facility; returns the record."""
    persons = rows(data, "persons")
    gone = next(row for row in persons if row["MAFID"] == unit["MAFID"])
    persons.remove(gone)
    edit(data, "persons", lambda _: persons)
    less = {"FINAL_POP": unit["FINAL_POP"] - 1}
    edit(
        data,
        "units",
        lambda all_: [{**row, **less} if row["MAFID"] == unit["MAFID"] else row for row in all_],
    )
    return gone


def block(unit: Any) -> str:
    """Geocode of 16 digits."""
    return str(unit["OIDTB"])[-16:]


def test_redistricting_data_of_other_persons(censafe: CommandLine, state: Path, data: Path) -> None:
    without_one_person(data, facilities(data)[0])
    message = (
        "published results: other totals of persons in 1 geounits of level State, such as 44, than the records have; allowed: the "
        "totals of level State, which are published exactly; fix: give the results that were published of these records"
    )
    refused(censafe, data, state / "pl94", message)


def test_redistricting_data_of_other_housing_units(censafe: CommandLine, state: Path, data: Path) -> None:
    vacant = next(row for row in rows(data, "units") if row["VACS"] != "0")
    more = max(row["MAFID"] for row in rows(data, "units")) + 1
    edit(data, "units", lambda all_: [*all_, {**vacant, "MAFID": more}])
    message = (
        f"published results: constraints h1 and owned of households contradict those of units in 1 blocks, such as {block(vacant)}; "
        "fix: give the results that were published of these records"
    )
    refused(censafe, data, state / "pl94", message)


def test_redistricting_data_of_other_blocks(censafe: CommandLine, state: Path, tmp_path: Path) -> None:
    synthesize(tmp_path / "data", persons=300, states=("50",), layout="dhc")
    refused(
        censafe, tmp_path / "data", state / "pl94",
        "blocks that the block files of the records do not have, such as 4400",
    )  # fmt: skip


def test_microdata_of_a_run_that_was_charged_ask_for_more(
    censafe: CommandLine, state: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    for end in (".jsonl", ".key"):
        shutil.copy(state / f"pl94{end}", ledger.with_suffix(end))
    paid = ledger.read_bytes()
    words = ("run", "topdown", "dhc-us", state / "data", tmp_path / "out", "--set", "root=State", "--quiet")
    found = censafe(*words, "--ledger", ledger, "--pl94", state / "pl94" / "microdata", ends=3)
    assert "--ledger-of redistricting" in found.err
    assert paid == ledger.read_bytes()
    assert not (tmp_path / "out").exists()


def test_a_block_without_crosswalk(censafe: CommandLine, data: Path) -> None:
    blocks = sorted(line.split("|")[0][-16:] for line in (data / "GRF-C.txt").read_text().splitlines()[1:])
    table = "".join(f"{code},440019999999999\n" for code in blocks[:-1])
    (data / "prim_crosswalk.csv").write_text(f"block,prim\n{table}")
    message = (
        f"prim_crosswalk.csv: block: 1 blocks of the data are not in the crosswalk, such as {blocks[-1]}"
    )
    refused(censafe, data, None, message)


def test_a_record_that_breaks_an_edit_rule(censafe: CommandLine, state: Path, data: Path) -> None:
    def younger(persons: Rows) -> Rows:
        chosen = next(row for row in persons if row["RELSHIP"] == "20" and row["LIVE_ALONE"] == "2")
        return [{**row, "QAGE": 3} if row is chosen else row for row in persons]

    edit(data, "persons", younger)
    message = "(householder not living alone) of an age that the edit rules forbid (1 row) [edit relgq 1]; allowed: ages 15 to 115"
    refused(censafe, data, None, message)
    refused(censafe, data, state / "pl94", message)


def test_records_that_contradict_each_other_warn_and_stop_under_strict(
    censafe: CommandLine, state: Path, data: Path
) -> None:
    words = ("validate", "topdown", "dhc-us", "--set", "root=State", "--strict")
    censafe(*words, state / "data", ends=0)

    def older(units: Rows) -> Rows:
        chosen = next(row for row in units if 25 <= row["HHLDRAGE"] < 50)
        return [{**row, "HHLDRAGE": row["HHLDRAGE"] + 1} if row is chosen else row for row in units]

    edit(data, "units", older)
    message = "householders whose age is not HHLDRAGE of their unit (1 row) [householder-age]"
    found = censafe(*words[:-1], data, ends=0)
    assert message in " ".join((found.out + found.err).split())
    found = censafe(*words, data, ends=1)
    assert message in " ".join(found.err.split())


def test_a_facility_for_which_no_persons_were_published(
    censafe: CommandLine, state: Path, data: Path
) -> None:
    unit = facilities(data)[0]
    held = {block(row) for row in rows(data, "units") if row["RTYPE"] == "4"}
    elsewhere = next(row for row in rows(data, "units") if block(row) not in held)
    person = without_one_person(data, unit)
    more = max(row["MAFID"] for row in rows(data, "units")) + 1
    edit(data, "persons", lambda all_: [*all_, {**person, "MAFID": more}])
    edit(
        data,
        "units",
        lambda all_: [*all_, {**unit, "MAFID": more, "FINAL_POP": 1, "OIDTB": elsewhere["OIDTB"]}],
    )
    message = f"1 blocks have fewer records than facilities of kind 24, such as {block(elsewhere)}; fix: give the redistricting result"
    refused(censafe, data, state / "pl94", message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("when = { h1 = 1 } }", "when = { h1 = 0 } }",
         "published results: constraints h1 and owned of households contradict those of units in"),
        ('"0-24" = 99999', '"0-24" = 1', "constraint hhgq_total_ub of persons could be exceeded in"),
    ],
    ids=["no histogram can meet it", "a bound that could bind"],
)  # fmt: skip
def test_constraints_that_do_not_fit(
    censafe: CommandLine, state: Path, data: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    config, text = tmp_path / "own.toml", get_shipped("dhc-us").text
    assert text.count(old) == 1
    config.write_text(text.replace(old, new))
    refused(censafe, data, state / "pl94", message, config)
