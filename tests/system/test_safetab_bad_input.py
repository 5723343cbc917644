"""What bad SafeTab input gets: exit code 1, a message that names the place and the fix, and nothing left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from censafe.privacy.ledger.report import verify
from support.commands import CommandLine
from support.config_edits import Edit, drop, put
from support.safetab_folders import SafetabFolders, bureau_config, data_rows, read_rows, write_folders

Kind = Literal["p", "h"]
Change = Callable[[SafetabFolders], object]
Fault = tuple[Change, tuple[str, ...]]
PERSONS, HOUSEHOLDS, TOTALS = "person-records.txt", "household-records.txt", "pop-group-totals.txt"
CODES, RACES = "race-and-ethnicity-codes.txt", "race-characteristic-iterations.txt"
ETHNICITIES, MAP = "ethnicity-characteristic-iterations.txt", "race-and-ethnicity-code-to-iteration.txt"


@pytest.fixture
def folders(tmp_path: Path) -> SafetabFolders:
    return write_folders(tmp_path)


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


def _line(name: str, line: str) -> Change:
    return _bytes(name, lambda old: old + line.encode() + b"\n")


BROKEN_PERSONS: dict[str, Fault] = {
    "no UTF-8": (_bytes(PERSONS, lambda old: old.replace(b"|2331", b"|\xff\xfe31", 1)), (PERSONS, "1 row")),
    "not text at all": (_bytes(PERSONS, lambda old: b"PK\x03\x04\xff\x00" * 99), (PERSONS, "UTF-8")),
    "too old": (_cell("persons", 3, 0, "987"), (PERSONS, "QAGE", "1 row", "0 to 115")),
    "third sex": (_cell("persons", 3, 1, "3"), (PERSONS, "QSEX", "1 row", "1 or 2")),
    "householder": (_cell("persons", 3, 2, "yes"), (PERSONS, "HOUSEHOLDER", "True or False")),
    "short county": (_cell("persons", 3, 4, "1"), (PERSONS, "TABBLKCOU", "exactly 3 digits")),
    "no race": (_cell("persons", 0, 8, "Null"), (PERSONS, "QRACE1", "four digits, the first not 0")),
    "no ethnicity": (_cell("persons", 0, 16, "Null"), (PERSONS, "QSPAN", "four digits")),
    "unknown race": (_cell("persons", 0, 8, "8765"), (PERSONS, "QRACE1", "[unknown-code]", CODES)),
    "unknown ethnicity": (_cell("persons", 0, 16, "8765"), (PERSONS, "QSPAN", "[unknown-code]", CODES)),
    "code after Null": (_cell("persons", 0, 12, "4023"), (PERSONS, "code after the first Null", "1 row")),
    "block not in GRF-C": (_cell("persons", 3, 6, "7777"), (PERSONS, "[missing-block]", "1 row", "missing_blocks = drop")),
    "more codes than allowed": (
        lambda folders: folders.configure("p", max_race_codes=2), (PERSONS, "12 rows", "raise max_race_codes"),
    ),
    "commas": (_edit(PERSONS, "|", ","), (PERSONS, "[delimiter]", "pipe-delimited")),
    "semicolons": (_edit(PERSONS, "|", ";"), (PERSONS, "QAGE|QSEX|HOUSEHOLDER")),
    "missing column": (_edit(PERSONS, "QAGE|QSEX", "QAGE", 1), (PERSONS, "QSEX")),
    "extra column": (_edit(PERSONS, "QSPAN\n", "QSPAN|COLOR\n", 1), (PERSONS, "COLOR")),
    "reordered columns": (_edit(PERSONS, "QAGE|QSEX", "QSEX|QAGE", 1), (PERSONS, "order")),
    "ragged row": (_line(PERSONS, "5|1|True|44"), (PERSONS, "1 row")),
    "truncated file": (_bytes(PERSONS, lambda old: old[:-30]), (PERSONS, "1 row")),
    "empty file": (_bytes(PERSONS, lambda old: b""), (PERSONS, "empty")),
    "header only": (_bytes(PERSONS, lambda old: old.split(b"\n")[0] + b"\n"), (PERSONS, "no rows")),
    "missing file": (_remove(PERSONS), ("person-records", "no input file found", "add the table")),
    "nobody of a run": (_only("persons", lambda row: row[3] != "72"), (PERSONS, "PR run", "US or of Puerto Rico")),
    "block twice": (_repeated("blocks"), ("GRF-C.txt", "[duplicate-block]", "1 row", "remove the repeated rows")),
    "malformed block": (_cell("blocks", 0, 2, "1"), ("GRF-C.txt", "TABTRACTCE", "exactly 6 digits")),
    "malformed place": (_cell("blocks", 0, 4, "x"), ("GRF-C.txt", "PLACEFP", "exactly 5 digits")),
    "no place column": (_edit("GRF-C.txt", "PLACEFP", "PLACE", 1), ("GRF-C.txt", "PLACEFP")),
    "columns of blocks reordered": (_edit("GRF-C.txt", "PLACEFP|AIANNHCE", "AIANNHCE|PLACEFP", 1), ("GRF-C.txt", "order")),
    "no geography": (_remove("GRF-C.txt"), ("GRF-C", "no input file found")),
    "no block of the states": (_only("blocks", lambda row: False), ("GRF-C.txt",)),
}  # fmt: skip


BROKEN_HOUSEHOLDS: dict[str, Fault] = {
    "householder's race": (_cell("households", 3, 4, "64"), (HOUSEHOLDS, "HHRACE", "01 to 63")),
    "household type": (_cell("households", 3, 14, "6"), (HOUSEHOLDS, "HOUSEHOLD_TYPE", "1 to 5")),
    "tenure": (_cell("households", 3, 15, "0"), (HOUSEHOLDS, "TEN", "1 to 4")),
    "code after Null": (_cell("households", 0, 8, "4023"), (HOUSEHOLDS, "code after the first Null", "1 row")),
    "block not in GRF-C": (_cell("households", 3, 3, "7777"), (HOUSEHOLDS, "[missing-block]", "1 row")),
    "truncated file": (_bytes(HOUSEHOLDS, lambda old: old[:-3]), (HOUSEHOLDS, "1 row")),
    "missing file": (_remove(HOUSEHOLDS), ("household-records", "no input file found")),
    "no household of a run": (_only("households", lambda row: row[0] == "72"), (HOUSEHOLDS, "US run")),
    "totals missing": (_remove(TOTALS), ("pop-group-totals", "no input file found")),
    "totals of a group twice": (_repeated("totals"), (TOTALS, "[duplicate-group]", "1 row", "every population group once")),
    "totals of an unknown region": (_row("totals", "44099", "COUNTY", "1001", "9"), (TOTALS, "REGION_ID", "[unknown-region]")),
    "region of the wrong length": (_row("totals", "440", "COUNTY", "1001", "9"), (TOTALS, "REGION_ID", "1 row")),
    "unknown region type": (_row("totals", "44", "PARISH", "1001", "9"), (TOTALS, "REGION_TYPE", "PR-COUNTY")),
    "malformed iteration": (_row("totals", "44", "STATE", "x", "9"), (TOTALS, "ITERATION_CODE")),
    "totals that are not numbers": (_row("totals", "44", "STATE", "1003", "X"), (TOTALS, "COUNT", "a whole number")),
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
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    folders.rewrite(
        households=[
            [*row[:5], "6843", *["Null"] * 7, "9953", *row[14:]] for row in data_rows()["households"]
        ],
        totals=[row for row in data_rows()["totals"] if row[2] in ("1001", "1002")],
    )
    done = censafe("run", "safetab-h", folders.h, folders.data, tmp_path / "out")
    assert done.code == 1
    assert "US run" in done.err
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
    "wrong header": (_edit(RACES, "ALONE", "LONELY", 1), (RACES, "ALONE")),
    "wrong delimiter": (_edit(MAP, "|", ","), (MAP, "malformed lines", "1 to 4 digits, |")),
    "malformed code": (_edit(CODES, "4011|", "0411|"), (CODES, "RACE_ETH_CODE", "0411", "the first not 0")),
    "malformed flag": (_edit(RACES, "0101|North alone|1|True|False", "0101|North alone|1|True|No"), (RACES, "DETAILED_ONLY")),
    "both flags true": (
        _edit(RACES, "1001|Alba alone|2|True|False|False", "1001|Alba alone|2|True|True|True"),
        (RACES, "both flags are True", "1001"),
    ),
    "Null below level 0": (
        _edit(RACES, "1001|Alba alone|2|True|False|False", "1001|Alba alone|2|True|Null|Null"),
        (RACES, "LEVEL is not 0", "1001"),
    ),
    "flags at level 0": (_edit(ETHNICITIES, "3000|All|0|Null|Null", "3000|All|0|False|False"), (ETHNICITIES, "LEVEL is 0", "3000")),
    "level 3": (_edit(ETHNICITIES, "3001|Fir|2", "3001|Fir|3"), (ETHNICITIES, "LEVEL is above 2", "3001")),
    "hierarchy": (_line(MAP, "1003|4011"), (MAP, "[hierarchy]", "1001 and 1003", "4011")),
    "overlapping iterations": (_edit(ETHNICITIES, "3001|", "1001|"), (ETHNICITIES, "[overlap]", "1001", "codes of their own")),
    "iteration that is not listed": (_line(MAP, "4444|4011"), (MAP, "4444", RACES)),
    "code that is not listed": (_line(MAP, "1001|4444"), (MAP, "4444", CODES)),
    "iteration twice": (_line(RACES, "1001|Alba alone|2|True|False|False"), (RACES, "1001", "keep one row")),
    "ragged row": (_line(CODES, "4012"), (CODES, "1 row")),
    "missing file": (_remove(MAP), (MAP, "put the files there")),
    "empty file": (_bytes(ETHNICITIES, lambda old: b""), (ETHNICITIES, "empty")),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN_PARAMETERS)
def test_broken_parameter_files_stop_everything(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, fault: str
) -> None:
    change, fragments = BROKEN_PARAMETERS[fault]
    change(folders)
    _refused(censafe, folders, tmp_path, "p", fragments)
    planned = censafe("plan", "safetab-p", folders.p)
    assert planned.code == 1
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


USA_2, T4 = "privacy_budget_p_level_2_usa", "thresholds_h_t4"
CONFIGS: dict[str, tuple[Kind, Edit, tuple[str, ...]]] = {
    "missing keys": ("p", _both(drop("reader"), drop(USA_2), drop("thresholds_p", "(TRACT, 2)")), ("missing keys", "reader", USA_2, "thresholds_p.(TRACT, 2)")),
    "thresholds of a level missing": ("h", drop("thresholds_h_t3", "(PR-PLACE, 1)"), ("thresholds_h_t3.(PR-PLACE, 1)",)),
    "thresholds not ascending": ("p", put("thresholds_p", "(USA, 2)", value=[5, 3, 9]), ("thresholds_p.(USA, 2)", "[5, 3, 9]", "ascending")),
    "two thresholds": ("p", put("thresholds_p", "(USA, 2)", value=[5, 9]), ("thresholds_p.(USA, 2)", "too few", "three")),
    "thresholds with decimals": ("p", put("thresholds_p", "(USA, 2)", value=[1, 2.5, 3]), ("thresholds_p.(USA, 2)", "2.5", "whole number")),
    "two thresholds of T4": ("h", put(T4, "(USA, 2)", value=[5, 9]), (f"{T4}.(USA, 2)", "exactly one")),
    "no budget anywhere": ("p", _all("p", "privacy_budget_p_level", 0), ("all budgets of the run are 0", "above 0")),
    "no budget of households": ("h", _all("h", "privacy_budget_h", 0), ("all budgets of the run are 0",)),
    "budgets of the other run only": ("p", _both(put("run_us", value=False), put("privacy_budget_p_level_2_pr_state", value=0)), ("all budgets of the run are 0",)),
    "negative budget": ("p", put(USA_2, value=-1), (USA_2, "-1", "negative")),
    "text budget": ("p", put(USA_2, value="1.0"), (USA_2, "without quotes")),
    "true as budget": ("p", put(USA_2, value=True), (USA_2, "true is not a number")),
    "NaN budget": ("p", put(USA_2, value=float("nan")), (USA_2,)),
    "infinite budget": ("p", put(USA_2, value=float("inf")), (USA_2, "--private-path")),
    "neither run": ("p", _both(put("run_us", value=False), put("run_pr", value=False)), ("run_us, run_pr", "both are false")),
    "text flag": ("p", put("run_us", value="yes"), ("run_us", "'yes'", "true or false")),
    "negatives": ("h", put("allow_negative_counts", value=1), ("allow_negative_counts", "true or false")),
    "no states": ("p", put("state_filter_us", value=[]), ("state_filter_us", "empty")),
    "states twice": ("p", put("state_filter_us", value=["44", "44"]), ("state_filter_us", "44", "once")),
    "no such state": ("p", put("state_filter_us", value=["44", "03"]), ("state_filter_us", "03")),
    "Puerto Rico as a state": ("p", put("state_filter_us", value=["72"]), ("state_filter_us", "run_pr")),
    "numbers as states": ("p", put("state_filter_us", value=[44]), ("state_filter_us", "quotes")),
    "nine race codes": ("p", put("max_race_codes", value=9), ("max_race_codes", "1 to 8")),
    "true race codes": ("p", put("max_race_codes", value=True), ("max_race_codes", "true", "1 to 8")),
    "reader": ("p", put("reader", value="parquet"), ("reader", "csv, cef")),
    "definition": ("p", put("privacy_defn", value="zcpd"), ("privacy_defn", "Did you mean 'zcdp'?")),
    "whole budget for stage 1": ("p", put("privacy_budget_p_stage_1_fraction", value=1), ("privacy_budget_p_stage_1_fraction", "below 1")),
    "certain suppression": ("p", put("zero_suppression_chance", value=1), ("zero_suppression_chance", "below 1")),
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
    planned = censafe("plan", f"safetab-{kind}", folder)
    assert planned.code == 1
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
    done = censafe("validate", "safetab-p", folders.p, folders.data)
    assert done.code == 0, done.out
    assert "unknown key 'zero_suppresion_chance' is ignored" in done.err
    assert "Did you mean 'zero_suppression_chance'?" in done.err
    shown = censafe("configs", "show", "ddhca").out
    ours = tmp_path / "ours.toml"
    ours.write_text(f'color = "red"\n{shown}', encoding="utf-8")
    stopped = censafe("validate", "safetab-p", ours, folders.data)
    assert stopped.code == 1
    assert "color: unknown key" in stopped.err


def test_overrides_of_unknown_keys_and_of_other_products_stop(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    for key, hint in (
        ("budget.usa_3=1", "Did you mean 'budget.usa_"),
        ("budget.t3.usa_2=1", "there is no key 'budget.t3.usa_2'"),
        ("color=red", "there is no key 'color'"),
    ):
        done = censafe("run", "safetab-p", folders.p, folders.data, tmp_path / "out", "--set", key)
        assert done.code == 1
        assert hint in done.err
    assert not (tmp_path / "out").exists()


def test_dropped_blocks_are_counted_and_the_run_goes_on(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    _cell("persons", 3, 6, "7777")(folders)
    done = censafe(
        "run", "safetab-p", folders.p, folders.data, tmp_path / "out", "--set", "missing_blocks=drop"
    )
    assert done.code == 0, done.err
    assert "records whose block is not in GRF-C are left out (1 row)" in done.err
    assert "missing-block" not in (tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")


def test_totals_of_unknown_iterations_are_told(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    _row("totals", "44", "STATE", "7777", "9")(folders)
    done = censafe("run", "safetab-h", folders.h, folders.data, tmp_path / "out")
    assert done.code == 0, done.err
    assert f"{TOTALS}: ITERATION_CODE: rows of iterations that the parameter files lack" in done.err
    assert "(1 row) [unknown-iteration]" in done.err


ACCEPTED: dict[str, Change] = {
    "byte order mark": _bytes(PERSONS, lambda old: b"\xef\xbb\xbf" + old),
    "carriage returns": _bytes(PERSONS, lambda old: old.replace(b"\n", b"\r\n")),
    "carriage returns of blocks": _bytes("GRF-C.txt", lambda old: old.replace(b"\n", b"\r\n")),
    "carriage returns of parameters": _bytes(MAP, lambda old: old.replace(b"\n", b"\r\n")),
    "blank lines": _bytes(PERSONS, lambda old: old + b"\n\n"),
    "no newline at the end": _bytes(PERSONS, lambda old: old.rstrip()),
    "leading zeros": _edit(PERSONS, "\n3|", "\n003|"),
    "more columns of blocks": _bytes("GRF-C.txt", lambda old: b"\n".join(line + b"|x" for line in old.splitlines())),
    "short form of the map": lambda folders: (folders.p / MAP).write_text(
        "ITERATION_CODE|RACE_ETH_CODE\n0101|4011, 4023:5599\n0102|4011:5599\n0103|6843:7537\n0104|6843,7537\n1001|4011\n"
        "1002|4011\n1003|4023\n1004|4023\n1005|5599\n1006|5599\n1007|6843:7537\n1008|6843:7537\n3000|2331\n3001|2331\n",
        encoding="utf-8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ACCEPTED)
def test_harmless_forms_are_the_same_records(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, form: str
) -> None:
    exact = ("--set", "budget=10000000", "--set", "zero_suppression_chance=0", "--test-key", 1)
    levels = ("--set", "run_pr=false")
    tables = []
    for name in ("plain", "changed"):
        if name == "changed":
            ACCEPTED[form](folders)
        done = censafe("run", "safetab-p", folders.p, folders.data, tmp_path / name, *exact, *levels)
        assert done.code == 0, done.err
        rows = [read_rows(tmp_path / name / "tables" / t / f"{t}.csv") for t in ("t1", "t2")]
        tables.append([tuple(row.values()) for table in rows for row in table])
    assert tables[0] == tables[1]
    assert tables[0]


def test_strict_stops_at_states_that_there_are_not(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    _cell("persons", 3, 3, "99")(folders)
    command = ("run", "safetab-p", folders.p, folders.data, tmp_path / "out", "--test-key", 1)
    stopped = censafe(*command, "--strict")
    assert stopped.code == 1
    assert "is not a state code" in stopped.err
    warned = censafe(*command)
    assert warned.code == 0
    assert "is not a state code are left out (1 row)" in warned.err


def test_totals_may_lie_in_another_data_folder_and_belong_to_households(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    other = write_folders(tmp_path / "other").data
    (folders.data / TOTALS).unlink()
    command = ("run", "safetab-h", folders.h, folders.data, tmp_path / "out", "--test-key", 1)
    missing = censafe(*command)
    assert missing.code == 1
    assert "name it with --t1" in missing.err
    done = censafe(*command, "--t1", other)
    assert done.code == 0, done.err
    for product in ("safetab-p", "phsafe"):
        config = folders.p if product == "safetab-p" else "sdhc-us"
        refused = censafe("run", product, config, folders.data, tmp_path / "none", "--t1", other)
        assert refused.code == 2
        assert f"{product} reads no totals" in refused.err
