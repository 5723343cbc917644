"""Every rule of validation is broken once, alone where that is possible, and counted exactly."""

import stat
from pathlib import Path

import pytest

from censafe.errors import DataError, StorageError
from censafe.population.findings import Finding, merge_findings
from censafe.population.households.validation import ValidationReport
from support.phsafe_inputs import GEO, GEO_HEADER, HEADERS, STATES, check, valid_tables, write_folder


def changed(folder: Path, table: str, edits: dict[tuple[int, str], str]) -> Path:
    tables = valid_tables()
    rows = [list(row) for row in tables[table]]
    for (row, column), value in edits.items():
        rows[row][HEADERS[table].index(column)] = value
    tables[table] = [tuple(row) for row in rows]
    return write_folder(folder, **tables)


def found(report: ValidationReport) -> dict[str, int]:
    return {f"{f.file} {f.column} {f.rule}": f.rows for f in report.findings}


def test_a_consistent_population_has_no_findings(tmp_path: Path) -> None:
    report = check(write_folder(tmp_path / "data"), strict=True)
    assert (report.findings, report.fatal) == ((), False)
    report.require_valid()


WRONG = [
    ("persons", "RTYPE", "4"),
    ("persons", "MAFID", "99999999"),
    ("persons", "MAFID", "900000000"),
    ("persons", "MAFID", "00001.5e8"),
    ("persons", "QAGE", "116"),
    ("persons", "QAGE", "07"),
    ("persons", "QAGE", "-1"),
    ("persons", "QAGE", "4.0"),
    ("persons", "CENHISP", "3"),
    ("persons", "CENRACE", "1"),
    ("persons", "CENRACE", "00"),
    ("persons", "CENRACE", "64"),
    ("persons", "RELSHIP", "19"),
    ("persons", "RELSHIP", "2x"),
    ("persons", "RELSHIP", ""),
    ("units", "RTYPE", "3"),
    ("units", "FINAL_POP", "100000"),
    ("units", "FINAL_POP", "1e3"),
    ("units", "NPF", "1"),
    ("units", "NPF", "98"),
    ("units", "HHSPAN", "3"),
    ("units", "HHRACE", " 1"),
    ("units", "TEN", "5"),
    ("units", "HHT", "8"),
    ("units", "HHT2", "13"),
    ("units", "HHT2", "1"),
    ("units", "CPLT", "6"),
    ("geo", "RTYPE", "5"),
    ("geo", "TABBLKCOU", "1"),
    ("geo", "TABTRACTCE", "00010"),
    ("geo", "TABBLK", "10000"),
    ("geo", "TABBLKGRPCE", ""),
    ("geo", "REGIONCE", "8"),
    ("geo", "DIVISIONCE", "x"),
    ("geo", "PLACEFP", "9999"),
    ("geo", "AIANNHCE", "99 9"),
]
"""A table, a column, and a value outside its domain."""


def rounds() -> list[list[tuple[str, str, str]]]:
    """The wrong values, every column at most once in a round: what one column holds changes no count of another."""
    found: list[list[tuple[str, str, str]]] = []
    for case in WRONG:
        free = next((one for one in found if case[:2] not in {other[:2] for other in one}), None)
        if free is None:
            found.append(free := [])
        free.append(case)
    return found


@pytest.mark.parametrize("wrong", rounds(), ids=range(len(rounds())))
def test_a_value_outside_its_domain_stops_and_is_counted(
    tmp_path: Path, wrong: list[tuple[str, str, str]]
) -> None:
    tables = {name: [list(row) for row in rows] for name, rows in valid_tables().items()}
    for table, column, value in wrong:
        tables[table][0][HEADERS[table].index(column)] = value
    report = check(write_folder(tmp_path / "data", **tables))
    domain = {(f.file, f.column): f for f in report.findings if f.rule == "domain"}
    assert set(domain) == {(f"{table}.csv", column) for table, column, _ in wrong}
    for table, column, value in wrong:
        finding = domain[f"{table}.csv", column]
        assert (finding.severity, finding.rows) == ("stop", 1)
        assert value.strip() not in {"99999999", "900000000"} or value not in finding.problem


def test_all_failures_are_reported_together(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["persons"][0] = ("9", "100000001", "400", "7", "99", "99")
    tables["units"][0] = ("9", "100000001", "-3", "1", "9", "99", "9", "9", "99", "9")
    report = check(write_folder(tmp_path / "data", **tables))
    domain = {(f.file, f.column) for f in report.findings if f.rule == "domain"}
    assert len(domain) == 5 + 9
    with pytest.raises(DataError) as caught:
        report.require_valid()
    assert str(caught.value).count("[domain]") == 14
    assert not any(value in str(caught.value) for value in ("100000001", "400"))


CASES: list[tuple[str, str, dict[tuple[int, str], str], dict[str, int]]] = [
    ("C1", "persons", {(6, "RTYPE"): "3"}, {"persons.csv RTYPE, RELSHIP C1": 1}),
    ("C2", "geo", {(2, "RTYPE"): "4"}, {"geo.csv RTYPE C2": 1}),
    ("C3", "units", {(0, "FINAL_POP"): "4"}, {"units.csv FINAL_POP C3": 1}),
    ("C4", "persons", {(9, "RELSHIP"): "20"}, {"units.csv MAFID C4": 1}),
    ("C5", "units", {(1, "TEN"): "0"}, {"units.csv HHT, HHT2, CPLT, TEN, HHSPAN, HHRACE C5": 1}),
    ("C6 C7 C8", "units", {(5, "CPLT"): "1"}, {"units.csv HHT, HHT2, CPLT C6": 1, "units.csv CPLT C8": 1}),
    ("C7", "units", {(5, "HHT"): "3"}, {"units.csv HHT, HHT2 C7": 1}),
    ("C8", "units", {(3, "CPLT"): "3"}, {"units.csv CPLT C8": 1}),
    ("C9", "persons", {(2, "QAGE"): "18"}, {"units.csv HHT2 C9": 1}),
    ("C10", "units", {(1, "HHSPAN"): "1"}, {"units.csv HHRACE, HHSPAN C10": 1}),
    ("C11", "units", {(1, "FINAL_POP"): "2"}, {"units.csv FINAL_POP C3": 1, "units.csv HHT, FINAL_POP C11": 1}),
    ("C12", "units", {(5, "NPF"): "3"}, {"units.csv NPF C12": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "table", "edits", "expected"), CASES, ids=[case[0] for case in CASES])
def test_consistency_rules_warn_and_stop_under_strict(
    tmp_path: Path, rule: str, table: str, edits: dict[tuple[int, str], str], expected: dict[str, int]
) -> None:
    folder = changed(tmp_path / "data", table, edits)
    report = check(folder)
    assert expected == {key: rows for key, rows in found(report).items() if key in expected or rule in key}
    assert {f.severity for f in report.findings} == {"warn"}
    assert check(folder, strict=True).fatal


def test_duplicate_keys_stop_in_units_and_geo(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["units"].append(tables["units"][1])
    tables["geo"] += [tables["geo"][0], tables["geo"][0]]
    report = found(check(write_folder(tmp_path / "data", **tables)))
    assert report["units.csv MAFID duplicate-mafid"] == 2
    assert report["geo.csv MAFID duplicate-mafid"] == 3


def test_orphan_persons_stop(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["persons"].append(("3", "100000099", "40", "1", "01", "20"))
    report = check(write_folder(tmp_path / "data", **tables))
    assert found(report) == {"persons.csv MAFID no-units": 1, "persons.csv MAFID no-geo": 1}
    assert report.fatal


def test_units_without_geo_and_geo_without_units_stop(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["geo"][2] = (*tables["geo"][2][:1], "100000098", *tables["geo"][2][2:])
    report = check(write_folder(tmp_path / "data", **tables))
    assert found(report) == {"units.csv MAFID no-geo": 1, "geo.csv MAFID no-units": 1}
    assert report.fatal


def test_persons_of_a_unit_that_is_missing_stop(tmp_path: Path) -> None:
    tables = valid_tables()
    del tables["units"][0]
    report = found(check(write_folder(tmp_path / "data", **tables)))
    assert report["persons.csv MAFID no-units"] == 3
    assert report["geo.csv MAFID no-units"] == 1


def test_states_that_are_absent_outside_or_unknown_are_told(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["geo"][6] = tuple(
        "xx" if name == "TABBLKST" else value for name, value in zip(GEO_HEADER, GEO[6], strict=True)
    )
    report = check(write_folder(tmp_path / "data", **tables), states=("01", "44"))
    rows = {f.rule: (f.severity, f.rows) for f in report.findings}
    assert rows == {"state-filter": ("warn", 1), "unknown-state": ("warn", 1), "absent-state": ("warn", 0)}
    assert "01" in next(f for f in report.findings if f.rule == "absent-state").problem


@pytest.mark.parametrize("checks", ["full", "off"])
def test_no_region_left_always_stops(tmp_path: Path, checks: str) -> None:
    report = check(write_folder(tmp_path / "data"), states=("06",), checks=checks)  # type: ignore[arg-type]
    assert "no-region" in {f.rule for f in report.findings if f.severity == "stop"}


def test_group_quarters_alone_are_no_region(tmp_path: Path) -> None:
    tables = valid_tables()
    for name, rows in tables.items():
        tables[name] = [row for row in rows if row[1] == "100000005"]
    report = check(write_folder(tmp_path / "data", **tables), states=("44",))
    assert {f.rule for f in report.findings} == {"no-region"}


def test_checks_off_reports_no_record_rule(tmp_path: Path) -> None:
    folder = changed(tmp_path / "data", "persons", {(0, "QAGE"): "400", (9, "RELSHIP"): "20"})
    assert check(folder, checks="off").findings == ()


def test_examples_are_private_and_name_the_keys(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["units"].append(tables["units"][1])
    tables["persons"][12] = ("3", "100000007", "35", "1", "99", "34")
    target = tmp_path / "examples.csv"
    folder = write_folder(tmp_path / "data", **tables)
    check(folder, examples=target)
    lines = target.read_text().splitlines()
    assert lines[0] == "FILE,COLUMN,RULE,MAFID"
    assert {"units.csv,MAFID,duplicate-mafid,100000002", "persons.csv,CENRACE,domain,100000007"} <= set(lines)
    assert len(lines) == len(set(lines))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_examples_stop_at_a_thousand_a_rule_over_all_parts(tmp_path: Path) -> None:
    count = 1500
    units = [("2", str(100_000_001 + 50 * i), "0", "0", "0", "00", "9", "0", "00", "0") for i in range(count)]
    geo = [(*GEO[0][:1], unit[1], *GEO[0][2:]) for unit in units]
    persons = [("3", unit[1], "40", "1", "01", "20") for unit in units]
    target = tmp_path / "examples.csv"
    folder = write_folder(tmp_path / "data", persons, units, geo)
    report = check(folder, states=("44",), max_persons=400, examples=target)
    assert found(report)["units.csv TEN domain"] == count
    lines = target.read_text().splitlines()
    assert sum(line.startswith("units.csv,TEN,domain,") for line in lines) == 1000


def test_examples_are_never_written_over_a_file(tmp_path: Path) -> None:
    folder = changed(tmp_path / "data", "persons", {(0, "QAGE"): "400"})
    before = (folder / "persons.csv").read_bytes()
    for target in (folder / "persons.csv", tmp_path / "link"):
        if target.name == "link":
            target.symlink_to(folder / "persons.csv")
        with pytest.raises(StorageError, match="already exists and will not be overwritten"):
            check(folder, examples=target)
    assert before == (folder / "persons.csv").read_bytes()


def test_an_examples_file_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    folder = changed(tmp_path / "data", "persons", {(0, "QAGE"): "400"})
    with pytest.raises(StorageError, match="cannot be written"):
        check(folder, examples=tmp_path / "absent" / "examples.csv")


def test_findings_of_parts_add_up() -> None:
    one = Finding("f", "c", "domain", "stop", 2, "p", "a", "x")
    assert merge_findings([one, one, Finding("f", "d", "domain", "stop", 1, "p", "a", "x")])[0].rows == 4


def test_reports_of_the_same_part_do_not_merge() -> None:
    report = ValidationReport((), STATES, frozenset(STATES), frozenset({0}), 2)
    with pytest.raises(ValueError, match="different parts"):
        report.merge(report)


def test_region_findings_wait_for_the_last_part() -> None:
    first = ValidationReport((), STATES, frozenset(), frozenset({0}), 2)
    second = ValidationReport((), STATES, frozenset(), frozenset({1}), 2)
    assert not first.fatal
    assert first.merge(second).fatal
