"""What bad SafeTab input gets: exit code 1, a message that names the place and the fix, and nothing left behind.

Every rule is broken in the tests of readers and configurations; here stand some of every kind.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from censafe.privacy.ledger.report import verify
from support.commands import CommandLine
from support.config_edits import Edit, drop, put
from support.rows import piped_rows
from support.runs import Runs
from support.safetab_folders import SafetabFolders, bureau_config, data_rows, write_folders

Kind = Literal["p", "h"]
Change = Callable[[SafetabFolders], object]
Fault = tuple[Change, tuple[str, ...]]
PERSONS, HOUSEHOLDS, TOTALS = "person-records.txt", "household-records.txt", "pop-group-totals.txt"
CODES, MAP = "race-and-ethnicity-codes.txt", "race-and-ethnicity-code-to-iteration.txt"


def _edit(name: str, old: str, new: str, count: int = -1) -> Change:
    def change(folders: SafetabFolders) -> None:
        place = folders.data if name in (PERSONS, HOUSEHOLDS, TOTALS, "GRF-C.txt") else folders.p
        path = place / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, count), encoding="utf-8")

    return change


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Change:
    def changed(folders: SafetabFolders) -> None:
        path = (folders.data if (folders.data / name).exists() else folders.p) / name
        path.write_bytes(change(path.read_bytes()))

    return changed


def _cell(table: str, row: int, column: int, value: str) -> Change:
    def change(folders: SafetabFolders) -> None:
        rows = data_rows()[table]
        rows[row][column] = value
        folders.rewrite(**{table: rows})

    return change


def _row(table: str, *values: str) -> Change:
    return lambda folders: folders.rewrite(**{table: [*data_rows()[table], list(values)]})


def _repeated(table: str) -> Change:
    return lambda folders: folders.rewrite(**{table: [*data_rows()[table], data_rows()[table][0]]})


def _only(table: str, keep: Callable[[list[str]], bool]) -> Change:
    return lambda folders: folders.rewrite(**{table: [row for row in data_rows()[table] if keep(row)]})


def _remove(name: str) -> Change:
    return lambda folders: ((folders.data if (folders.data / name).exists() else folders.p) / name).unlink()


BROKEN_PERSONS: dict[str, Fault] = {
    "not text at all": (_bytes(PERSONS, lambda old: b"PK\x03\x04\xff\x00" * 99), (PERSONS, "UTF-8")),
    "too old": (_cell("persons", 3, 0, "987"), (PERSONS, "QAGE", "1 row", "0 to 115")),
    "unknown race": (_cell("persons", 0, 8, "8765"), (PERSONS, "QRACE1", "[unknown-code]", CODES)),
    "block not in GRF-C": (_cell("persons", 3, 6, "7777"), (PERSONS, "[missing-block]", "1 row", "missing_blocks = drop")),
    "more codes than allowed": (
        lambda folders: folders.configure("p", max_race_codes=2), (PERSONS, "12 rows", "raise max_race_codes"),
    ),
    "truncated file": (_bytes(PERSONS, lambda old: old[:-30]), (PERSONS, "1 row")),
    "missing file": (_remove(PERSONS), ("person-records", "no input file found", "add the table")),
    "nobody of a run": (_only("persons", lambda row: row[3] != "72"), (PERSONS, "PR run", "US or of Puerto Rico")),
    "block twice": (_repeated("blocks"), ("GRF-C.txt", "[duplicate-block]", "1 row", "remove the repeated rows")),
    "no block of the states": (_only("blocks", lambda row: False), ("GRF-C.txt",)),
}  # fmt: skip


BROKEN_HOUSEHOLDS: dict[str, Fault] = {
    "tenure": (_cell("households", 3, 15, "0"), (HOUSEHOLDS, "TEN", "1 to 4")),
    "block not in GRF-C": (_cell("households", 3, 3, "7777"), (HOUSEHOLDS, "[missing-block]", "1 row")),
    "no household of a run": (_only("households", lambda row: row[0] == "72"), (HOUSEHOLDS, "US run")),
    "totals missing": (_remove(TOTALS), ("pop-group-totals", "no input file found")),
    "totals of a group twice": (_repeated("totals"), (TOTALS, "[duplicate-group]", "1 row", "every population group once")),
    "totals of an unknown region": (_row("totals", "44099", "COUNTY", "1001", "9"), (TOTALS, "REGION_ID", "[unknown-region]")),
    "totals of the other run": (_only("totals", lambda row: row[1].startswith("PR")), (TOTALS, "US run", "run_us, run_pr and states")),
    "totals of other areas": (
        lambda folders: folders.rewrite(
            households=[row for row in data_rows()["households"] if row[0] in ("50", "72")],
            totals=[row for row in data_rows()["totals"] if row[0][:2] in ("44", "72")],
        ),
        (HOUSEHOLDS, "US run"),
    ),
}  # fmt: skip


def _refused(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, kind: Kind, fragments: tuple[str, ...]
) -> str:
    """Validate and run; both must refuse, and nothing may stay."""
    config, out = folders.p if kind == "p" else folders.h, tmp_path / "out"
    run = censafe("run", f"safetab-{kind}", config, folders.data, out, "--quiet")
    valid = censafe("validate", f"safetab-{kind}", config, folders.data, "--quiet")
    for done in (run, valid):
        assert done.code == 1, done.err
        for fragment in fragments:
            assert fragment in done.err + done.out
        assert "Traceback" not in done.err
    assert not out.exists()
    assert not list(tmp_path.rglob(".censafe"))
    ledger = tmp_path / "censafe-ledger.jsonl"
    assert not ledger.exists() or not verify(ledger).rows
    return run.err + valid.err + valid.out


def _no_record_value(text: str) -> None:
    codes = ("4011", "4023", "5599", "6843", "7537", "2331", "9953", "8765", "7777", "987")
    assert not [value for value in codes if re.search(rf"\b{value}\b", text)]


@pytest.mark.parametrize("fault", BROKEN_PERSONS)
def test_broken_persons_and_blocks_stop_the_run(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, fault: str
) -> None:
    change, fragments = BROKEN_PERSONS[fault]
    change(folders)
    _no_record_value(_refused(censafe, folders, tmp_path, "p", fragments))


@pytest.mark.parametrize("fault", BROKEN_HOUSEHOLDS)
def test_broken_households_and_totals_stop_the_run(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, fault: str
) -> None:
    change, fragments = BROKEN_HOUSEHOLDS[fault]
    change(folders)
    _no_record_value(_refused(censafe, folders, tmp_path, "h", fragments))


def test_no_household_in_any_group_with_a_total_stops_the_run_before_it_pays(
    folders: SafetabFolders, tmp_path: Path
) -> None:
    folders.rewrite(
        households=[
            [*row[:5], "6843", *["Null"] * 7, "9953", *row[14:]] for row in data_rows()["households"]
        ],
        totals=[row for row in data_rows()["totals"] if row[2] in ("1001", "1002")],
    )
    folders.censafe("run", "h", tmp_path / "out", ends=1, says="US run")
    assert not (tmp_path / "out").exists()
    assert not verify(tmp_path / "censafe-ledger.jsonl").rows


def test_all_faults_of_the_records_are_told_together(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    rows = data_rows()["persons"]
    rows[0][0], rows[1][0], rows[2][1], rows[3][6] = "987", "116", "3", "7777"
    folders.rewrite(persons=rows)
    text = _refused(censafe, folders, tmp_path, "p", ("QAGE", "2 rows", "QSEX", "[missing-block]"))
    _no_record_value(text)


BROKEN_PARAMETERS: dict[str, Fault] = {
    "no UTF-8": (_bytes(CODES, lambda old: old.replace(b"Alba", b"Alb\xff")), (CODES, "UTF-8")),
    "wrong delimiter": (_edit(MAP, "|", ","), (MAP, "malformed lines", "1 to 4 digits, |")),
    "hierarchy": (_bytes(MAP, lambda old: old + b"1003|4011\n"), (MAP, "[hierarchy]", "1001 and 1003", "4011")),
    "missing file": (_remove(MAP), (MAP, "put the files there")),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN_PARAMETERS)
def test_broken_parameter_files_stop_everything(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, fault: str
) -> None:
    change, fragments = BROKEN_PARAMETERS[fault]
    change(folders)
    _refused(censafe, folders, tmp_path, "p", fragments)
    planned = censafe("plan", "safetab-p", folders.p, ends=1)
    assert all(fragment in planned.err for fragment in fragments)


def _all(kind: Kind, prefix: str, value: object) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        document.update({key: value for key in bureau_config(kind) if key.startswith(prefix)})

    return edit


def _both(*edits: Edit) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        for one in edits:
            one(document)

    return edit


USA_2 = "privacy_budget_p_level_2_usa"
CONFIGS: dict[str, tuple[Kind, Edit, tuple[str, ...]]] = {
    "missing keys": ("p", _both(drop("reader"), drop(USA_2), drop("thresholds_p", "(TRACT, 2)")), ("missing keys", "reader", USA_2, "thresholds_p.(TRACT, 2)")),
    "no budget of households": ("h", _all("h", "privacy_budget_h", 0), ("all budgets of the run are 0",)),
    "infinite budget": ("p", put(USA_2, value=float("inf")), (USA_2, "--private-path")),
    "definition": ("p", put("privacy_defn", value="zcpd"), ("privacy_defn", "Did you mean 'zcdp'?")),
}  # fmt: skip


@pytest.mark.parametrize("fault", CONFIGS)
def test_broken_configurations_name_the_key(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, fault: str
) -> None:
    kind, edit, fragments = CONFIGS[fault]
    document = bureau_config(kind)
    edit(document)
    folder = folders.p if kind == "p" else folders.h
    (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
    _refused(censafe, folders, tmp_path, kind, fragments)
    planned = censafe("plan", f"safetab-{kind}", folder, ends=1)
    assert all(fragment in planned.err for fragment in fragments)


def test_a_configuration_that_is_no_json_names_the_line(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    path = folders.p / "config.json"
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    _refused(censafe, folders, tmp_path, "p", ("config.json", "line"))
    path.unlink()
    _refused(censafe, folders, tmp_path, "p", ("the folder has no config.json",))


def test_an_unknown_key_warns_in_the_bureaus_json_and_stops_in_toml(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    folders.configure("p", zero_suppresion_chance=0.5)
    done = folders.censafe("validate", "p", ends=0)
    assert "unknown key 'zero_suppresion_chance' is ignored" in done.err
    assert "Did you mean 'zero_suppression_chance'?" in done.err
    shown = censafe("configs", "show", "ddhca").out
    ours = tmp_path / "ours.toml"
    ours.write_text(f'color = "red"\n{shown}', encoding="utf-8")
    censafe("validate", "safetab-p", ours, folders.data, ends=1, says="color: unknown key")


def test_overrides_of_unknown_keys_and_of_other_products_stop(
    folders: SafetabFolders, tmp_path: Path
) -> None:
    for key, hint in (
        ("budget.usa_3=1", "Did you mean 'budget.usa_"),
        ("budget.t3.usa_2=1", "there is no key 'budget.t3.usa_2'"),
        ("color=red", "there is no key 'color'"),
    ):
        done = folders.censafe("run", "p", tmp_path / "out", "--set", key, ends=1)
        assert hint in done.err
    assert not (tmp_path / "out").exists()


def test_dropped_blocks_are_counted_and_the_run_goes_on(folders: SafetabFolders, tmp_path: Path) -> None:
    _cell("persons", 3, 6, "7777")(folders)
    done = folders.censafe("run", "p", tmp_path / "out", "--set", "missing_blocks=drop", ends=0)
    assert "records whose block is not in GRF-C are left out (1 row)" in done.err
    assert "missing-block" not in (tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")


def test_totals_of_unknown_iterations_are_told(folders: SafetabFolders, tmp_path: Path) -> None:
    _row("totals", "44", "STATE", "7777", "9")(folders)
    done = folders.censafe("run", "h", tmp_path / "out", ends=0)
    assert f"{TOTALS}: ITERATION_CODE: rows of iterations that the parameter files lack" in done.err
    assert "(1 row) [unknown-iteration]" in done.err


# Line ends, and the short form of the code map, are those of the tests of readers and parameters.
ACCEPTED: dict[str, Change] = {
    "leading zeros": _edit(PERSONS, "\n3|", "\n003|"),
    "more columns of blocks": _bytes(
        "GRF-C.txt", lambda old: b"\n".join(line + b"|x" for line in old.splitlines())
    ),
}


@pytest.mark.parametrize("form", ACCEPTED)
def test_harmless_forms_are_the_same_records(
    runs: Runs, folders: SafetabFolders, tmp_path: Path, form: str
) -> None:
    exact = ("--set", "budget=10000000", "--set", "zero_suppression_chance=0", "--set", "run_pr=false")
    plain = runs("safetab-p", folders.p, folders.data, *exact, "--test-key", 1)
    ACCEPTED[form](folders)
    changed = runs("safetab-p", folders.p, folders.data, *exact, "--test-key", 1)
    assert changed != plain
    tables = [
        [tuple(row.values()) for t in ("t1", "t2") for row in piped_rows(out / "tables" / t / f"{t}.csv")]
        for out in (plain, changed)
    ]
    assert tables[0] == tables[1]
    assert tables[0]


def test_strict_stops_at_states_that_there_are_not(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    _cell("persons", 3, 3, "99")(folders)
    command = ("run", "safetab-p", folders.p, folders.data, tmp_path / "out", "--test-key", 1)
    censafe(*command, "--strict", ends=1, says="is not a state code")
    censafe(*command, ends=0, says="is not a state code are left out (1 row)")


def test_totals_may_lie_in_another_data_folder_and_belong_to_households(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    other = write_folders(tmp_path / "other").data
    (folders.data / TOTALS).unlink()
    command = ("run", "safetab-h", folders.h, folders.data, tmp_path / "out", "--test-key", 1)
    censafe(*command, ends=1, says="name it with --t1")
    censafe(*command, "--t1", other, ends=0)
    for product in ("safetab-p", "phsafe"):
        config = folders.p if product == "safetab-p" else "sdhc-us"
        refused = censafe("run", product, config, folders.data, tmp_path / "none", "--t1", other, ends=2)
        assert f"{product} reads no totals" in refused.err
