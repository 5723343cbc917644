"""Every rule on SafeTab inputs broken once, all of them together, and nothing confidential in a message."""

import re
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import DataError, StorageError
from censafe.population.files.layout import layout
from censafe.population.findings import Finding, stated
from support.safetab_inputs import CODES, STATES, Rows, header_of, loaded, valid_rows, write_input, write_text
from support.shared import shared_data

Change = Callable[[dict[str, Rows]], None]


def put(table: str, row: int, column: str, value: str) -> Change:
    def change(tables: dict[str, Rows]) -> None:
        tables[table][row][header_of(table).index(column)] = value

    return change


def found(tmp_path: Path, *changes: Change, product: Any = "safetab-p", **options: Any) -> list[Finding]:
    tables = valid_rows()
    for change in changes:
        change(tables)
    with loaded(write_input(tmp_path / "data", tables), product, **options) as data:
        return list(data.findings)


@pytest.mark.parametrize(
    ("product", "table", "column", "value", "expected"),
    [
        *(
            ("safetab-p", "persons", field.name, "?", (field.name, "domain", "stop"))
            for field in layout("safetab-persons").columns
        ),
        *(
            ("safetab-h", "households", field.name, "?", (field.name, "domain", "stop"))
            for field in layout("safetab-households").columns
        ),
        ("safetab-p", "persons", "QRACE1", "Null", ("QRACE1", "domain", "stop")),
        ("safetab-p", "persons", "QRACE1", "1999", ("QRACE1", "unknown-code", "stop")),
        ("safetab-p", "persons", "QRACE2", "1999", ("QRACE2", "unknown-code", "stop")),
        ("safetab-p", "persons", "QSPAN", "1999", ("QSPAN", "unknown-code", "stop")),
        ("safetab-p", "persons", "QRACE3", "1201", ("QRACE1 to QRACE8", "after-null", "stop")),
        ("safetab-p", "persons", "TABBLK", "1009",
         ("TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK", "missing-block", "stop")),
        ("safetab-p", "persons", "TABTRACTCE", "999999",
         ("TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK", "missing-block", "stop")),
        ("safetab-p", "persons", "TABBLKST", "01", ("TABBLKST", "state-filter", "warn")),
        ("safetab-p", "persons", "TABBLKST", "99", ("TABBLKST", "unknown-state", "warn")),
        ("safetab-p", "persons", "TABBLKST", "00", ("TABBLKST", "unknown-state", "warn")),
        ("safetab-p", "blocks", "PLACEFP", "1", ("PLACEFP", "domain", "stop")),
        ("safetab-h", "totals", "REGION_ID", "123", ("REGION_ID", "domain", "stop")),
        ("safetab-h", "totals", "REGION_ID", "99", ("REGION_ID", "domain", "stop")),
        ("safetab-h", "totals", "REGION_TYPE", "BLOCK", ("REGION_TYPE", "domain", "stop")),
        ("safetab-h", "totals", "ITERATION_CODE", "100", ("ITERATION_CODE", "domain", "stop")),
        ("safetab-h", "totals", "COUNT", "1.5", ("COUNT", "domain", "stop")),
        ("safetab-h", "totals", "COUNT", "X", ("COUNT", "domain", "stop")),
    ],
)  # fmt: skip
def test_one_broken_value_is_one_finding(
    tmp_path: Path, product: str, table: str, column: str, value: str, expected: tuple[str, str, str]
) -> None:
    # the first record of each table; the first total is that of the nation
    findings = found(tmp_path, put(table, 0, column, value), product=product)
    assert [(*expected, 1)] == [(f.column, f.rule, f.severity, f.rows) for f in findings]
    assert all(f.allowed and f.fix and f.problem for f in findings)


@pytest.mark.parametrize(
    ("row", "region", "rule", "severity"),
    [
        (1, "50001", "unknown-region", "stop"),  # five digits where a state has two
        (2, "44009", "unknown-region", "stop"),
        (5, "0001", "state-filter", "warn"),  # areas of other states have no state in their id
        (3, "01001000100", "state-filter", "warn"),
        (4, "22833", "state-filter", "warn"),
        (6, "72", "unknown-region", "stop"),  # Puerto Rico is not a STATE
        (7, "44", "unknown-region", "stop"),
    ],
)
def test_regions_of_totals(tmp_path: Path, row: int, region: str, rule: str, severity: str) -> None:
    findings = found(tmp_path, put("totals", row, "REGION_ID", region), product="safetab-h")
    assert (severity, rule, 1) in [(f.severity, f.rule, f.rows) for f in findings]


def test_a_group_twice_in_the_totals_always_stops(tmp_path: Path) -> None:
    def repeat(tables: dict[str, Rows]) -> None:
        tables["totals"] += [["44001", "COUNTY", "1002", "8"], ["44001", "COUNTY", "1002", "7"]]

    for checks in ("full", "off"):
        findings = found(tmp_path, repeat, product="safetab-h", checks=checks)
        assert [(f.rule, f.severity, f.rows) for f in findings] == [("duplicate-group", "stop", 2)]


REGION = st.one_of(
    st.tuples(
        st.sampled_from(["TRACT", "PR-TRACT", "PLACE"]), st.from_regex("(44|99|72)[019]{9}", fullmatch=True)
    ),
    st.tuples(st.sampled_from(["COUNTY", "PR-COUNTY"]), st.from_regex("(44|72)00[0-9]", fullmatch=True)),
    st.tuples(st.sampled_from(["STATE", "AIANNH"]), st.sampled_from(["44", "0044", "44000"])),
)


@settings(max_examples=10)
@given(groups=st.lists(st.tuples(REGION, st.sampled_from(["0001", "4096", "8192", "9999"])), max_size=200))
def test_groups_are_repeated_only_when_all_of_them_is_equal(tmp_path: Path, groups: list[Any]) -> None:
    def add(tables: dict[str, Rows]) -> None:
        tables["totals"] += [[region, kind, iteration, "1"] for (kind, region), iteration in groups]

    rows = [f.rows for f in found(tmp_path, add, product="safetab-h") if f.rule == "duplicate-group"]
    assert len(groups) - len(set(groups)) == sum(rows)


def test_groups_that_differ_in_one_bit_are_different(tmp_path: Path) -> None:
    numbers = [44_000_000_000, *(44_000_000_000 ^ (1 << bit) for bit in range(36))]
    regions = {("TRACT", f"{number:011d}") for number in numbers}
    regions |= {("COUNTY", f"{44_000 ^ (1 << bit):05d}") for bit in range(16)}

    def add(tables: dict[str, Rows]) -> None:
        for kind, region in sorted(regions):
            tables["totals"] += [[region, kind, f"{1 << bit:04d}", "1"] for bit in range(14)]

    assert "duplicate-group" not in {f.rule for f in found(tmp_path, add, product="safetab-h")}


def test_a_block_twice_in_grfc_always_stops(tmp_path: Path) -> None:
    def repeat(tables: dict[str, Rows]) -> None:
        tables["blocks"].append(tables["blocks"][1])

    for checks in ("full", "off"):
        findings = found(tmp_path, repeat, checks=checks)
        assert [(f.rule, f.severity, f.rows) for f in findings] == [("duplicate-block", "stop", 1)]


@pytest.mark.parametrize(("most", "rows"), [(8, 0), (7, 1), (2, 1), (1, 3)])
def test_more_codes_than_allowed_always_stop(tmp_path: Path, most: int, rows: int) -> None:
    for checks in ("full", "off"):
        findings = found(tmp_path, most=most, checks=checks)
        stops = [(f.severity, f.rows) for f in findings if f.rule == "too-many-codes"]
        assert stops == ([("stop", rows)] if rows else [])


def test_all_findings_are_collected(tmp_path: Path) -> None:
    changes = [
        put("households", 0, "TABBLK", "1009"),
        put("households", 1, "TEN", "9"),
        put("households", 2, "QRACE1", "1999"),
        put("households", 3, "QRACE4", "1000"),
        put("blocks", 0, "AIANNHCE", ""),
        put("totals", 0, "COUNT", ""),
        put("totals", 2, "REGION_ID", "44009"),
    ]
    findings = found(tmp_path, *changes, product="safetab-h")
    assert {(f.column.split(",")[0], f.rule, f.rows) for f in findings} == {
        ("TABBLKST", "missing-block", 1),
        ("TEN", "domain", 1),
        ("QRACE1", "unknown-code", 1),
        ("QRACE1 to QRACE8", "after-null", 1),
        ("AIANNHCE", "domain", 1),
        ("COUNT", "domain", 1),
        ("REGION_ID", "unknown-region", 1),
    }


def test_one_error_names_everything_and_shows_no_value(tmp_path: Path) -> None:
    tables = valid_rows()
    put("persons", 0, "QAGE", "777")(tables)
    put("persons", 1, "QRACE2", "7777")(tables)
    put("persons", 3, "TABTRACTCE", "777777")(tables)
    with loaded(write_input(tmp_path / "data", tables)) as data:
        assert data.fatal
        assert (data.rows, data.left_out) == (4, 2)
        with pytest.raises(DataError) as error:
            data.require_valid()
    assert "3 problems" in str(error.value)
    assert "77" not in str(error.value).replace("7777 to", "")


def test_missing_blocks_may_be_dropped_and_are_counted(tmp_path: Path) -> None:
    changes = [put("persons", 0, "TABBLK", "1009"), put("persons", 3, "TABBLK", "1009")]
    tables = valid_rows()
    for change in changes:
        change(tables)
    with loaded(write_input(tmp_path / "data", tables), missing="drop") as data:
        data.require_valid()
        assert [(f.rule, f.severity, f.rows) for f in data.findings] == [("missing-block", "warn", 2)]
        assert (data.rows, data.left_out) == (4, 2)
        assert data.seen.tolist() == [True, True, False, True, True]


def test_without_checks_only_what_cannot_be_counted_is_reported(tmp_path: Path) -> None:
    changes = [
        put("persons", 0, "CENRACE", "?"),
        put("persons", 1, "QRACE2", "1999"),
        put("persons", 2, "QAGE", "?"),
        put("persons", 3, "TABBLK", "1009"),
    ]
    findings = found(tmp_path, *changes, checks="off")
    assert [(f.rule, f.severity, f.rows) for f in findings] == [("unusable", "warn", 2)]


@pytest.mark.parametrize(
    ("product", "drop", "rule", "run"),
    [
        ("safetab-p", {"persons": "72"}, "no-records", "PR"),
        ("safetab-p", {"persons": "us"}, "no-records", "US"),
        ("safetab-h", {"households": "72"}, "no-records", "PR"),
        ("safetab-h", {"totals": "72"}, "no-totals", "PR"),
        ("safetab-h", {"totals": "us"}, "no-totals", "US"),
    ],
)
def test_files_of_other_areas_than_the_run(
    tmp_path: Path, product: str, drop: dict[str, str], rule: str, run: str
) -> None:
    def change(tables: dict[str, Rows]) -> None:
        for table, part in drop.items():
            place = 0 if table == "totals" else list(header_of(table)).index("TABBLKST")
            remaining = [row for row in tables[table] if row[place].startswith("72") == (part == "us")]
            tables[table][:] = remaining

    findings = found(tmp_path, change, product=product)
    assert [(rule, "stop")] == [(f.rule, f.severity) for f in findings]
    assert f"{run} run" in findings[0].problem
    with pytest.raises(DataError, match=f"{run} run"), loaded(tmp_path / "data", product) as data:  # type: ignore[arg-type]
        data.require_valid()


def test_households_and_totals_without_a_common_area(tmp_path: Path) -> None:
    def change(tables: dict[str, Rows]) -> None:
        tables["totals"][:] = [
            row for row in tables["totals"] if row[0].startswith("44003") or row[0] == "72"
        ]

    findings = found(tmp_path, change, product="safetab-h")
    assert [*stated("safetab.no-common-area", "household-records.txt", run="US")] == findings


def test_one_run_needs_no_file_of_the_other(tmp_path: Path) -> None:
    def change(tables: dict[str, Rows]) -> None:
        for rows, place in ((tables["households"], 0), (tables["totals"], 0), (tables["blocks"], 0)):
            rows[:] = [row for row in rows if not row[place].startswith("72")]

    assert found(tmp_path, change, product="safetab-h", states=("44", "50")) == []


def test_examples_are_written_only_when_asked_and_only_for_their_owner(tmp_path: Path) -> None:
    changes = [put("persons", 0, "TABBLK", "1009"), put("persons", 1, "QAGE", "777")]
    private = tmp_path / "examples.csv"
    found(tmp_path, *changes)
    assert not private.exists()
    private.write_text("old")
    with pytest.raises(StorageError, match="already exists and will not be overwritten"):
        found(tmp_path, *changes, examples=private)
    assert private.read_text() == "old"
    private.unlink()
    found(tmp_path, *changes, examples=private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    lines = private.read_text().splitlines()
    assert lines[0] == "FILE,COLUMN,RULE,RECORD"
    assert [line.split(",")[1] for line in lines[1:]] == ["QAGE", '"TABBLKST']
    assert "777|2|False" in lines[1]
    assert "1009" in lines[2]


def test_at_most_a_thousand_examples_a_rule(tmp_path: Path) -> None:
    def change(tables: dict[str, Rows]) -> None:
        tables["persons"] += [
            [*tables["persons"][0][:3], "44", "001", "000100", "1009", *tables["persons"][0][7:]]
        ] * 1500

    found(tmp_path, change, examples=tmp_path / "examples.csv")
    assert len((tmp_path / "examples.csv").read_text().splitlines()) == 1001
    with pytest.raises(StorageError, match="examples cannot be written"):
        found(tmp_path, change, examples=tmp_path / "no" / "folder.csv")


def test_totals_of_a_safetab_p_run_are_found(tmp_path: Path) -> None:
    tables = valid_rows()
    rows = tables.pop("totals")
    folder = write_input(tmp_path / "data", tables)
    run = tmp_path / "run" / "tables" / "t1"
    write_text(run / "part-00000.csv", "totals", rows[:7])
    write_text(run / "part-00001.csv", "totals", rows[7:])
    (run / "headers.csv").write_text("|".join(header_of("totals")))
    for t1 in (tmp_path / "run", tmp_path / "run" / "tables", run):
        with loaded(folder, "safetab-h", t1=t1) as data:
            assert data.findings == ()
            assert data.totals is not None
            assert sum(data.totals.count.tolist()) == 34
            county = data.totals.of_type("COUNTY")
            assert (county.region.tolist(), county.iteration.tolist(), county.count.tolist()) == (
                [0],
                [1002],
                [7],
            )
    nothing = "no totals of population groups"
    with pytest.raises(DataError, match=nothing), loaded(folder, "safetab-h", t1=tmp_path):
        pass
    nowhere = "no such file or folder"
    with pytest.raises(StorageError, match=nowhere), loaded(folder, "safetab-h", t1=tmp_path / "nowhere"):
        pass


@pytest.mark.parametrize(("missing", "severity"), [("fail", "stop"), ("drop", "warn")])
def test_the_toy_totals_of_puerto_rico_name_a_place_that_is_none(missing: Any, severity: str) -> None:
    folder = shared_data("bureau/safetab_h/toy")
    known = frozenset(range(1000, 10_000))
    with loaded(folder, "safetab-h", states=("01", "02", "11", "72"), codes=known, missing=missing) as data:
        assert ("unknown-region", severity, 19) in {(f.rule, f.severity, f.rows) for f in data.findings}


def test_strict_stops_at_states_that_there_are_not(tmp_path: Path) -> None:
    findings = found(tmp_path, put("persons", 0, "TABBLKST", "99"), checks="strict")
    assert [(f.rule, f.severity, f.rows) for f in findings] == [("unknown-state", "stop", 1)]


TEXTS = {
    "QAGE": ["0", "017", "115", "116", "x"],
    "QSEX": ["1", "2", "3"],
    "HOUSEHOLDER": ["True", "False", "true"],
    "TABBLKST": ["44", "50", "01", "99", "4"],
    "TABBLKCOU": ["001", "003", "1"],
    "TABTRACTCE": ["000100", "000200"],
    "TABBLK": ["1000", "1001", "x"],
    "CENRACE": ["01", "00", "x"],
    "QSPAN": ["9950", "2010", "1999", "Null"],
}
CODE_TEXTS = ["1000", "1201", "Null", "Null", "Null", "1999", "0100"]


KNOWN_STATES = {f"{n:02d}" for n in range(1, 57)} - {"03", "07", "14", "43", "52"} | {"72"}
BLOCK_PARTS = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLK": 4}
RACE_COLUMNS = [f"QRACE{k}" for k in range(1, 9)]


def allowed(name: str, text: str) -> bool:
    if name == "QAGE":
        return text.isdigit() and int(text) <= 115
    if name in ("QSEX", "HOUSEHOLDER"):
        return text in {"QSEX": ("1", "2"), "HOUSEHOLDER": ("True", "False")}[name]
    if name in RACE_COLUMNS or name == "QSPAN":
        return re.fullmatch("[1-9][0-9]{3}", text) is not None or (
            text == "Null" and name in RACE_COLUMNS[1:]
        )
    return text.isdigit() and len(text) == BLOCK_PARTS.get(name, 2)


def faults_inside(row: dict[str, str], blocks: set[str]) -> set[tuple[str, str]]:
    races = [row[name] for name in RACE_COLUMNS]
    faults = {(name, "unknown-code") for name in (*RACE_COLUMNS, "QSPAN") if row[name] == "1999"}
    first = races.index("Null", 1) if "Null" in races[1:] else 8
    if any(text != "Null" and allowed("QRACE1", text) for text in races[first:]):
        faults.add(("QRACE1 to QRACE8", "after-null"))
    whole = all(allowed(part, row[part]) for part in BLOCK_PARTS)
    if whole and "".join(row[part] for part in BLOCK_PARTS) not in blocks:
        faults.add((", ".join(BLOCK_PARTS), "missing-block"))
    return faults


def plain_reading(rows: list[dict[str, str]], blocks: set[str]) -> dict[tuple[str, str], int]:
    """Findings about persons by an independent reading, record by record."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        state = row["TABBLKST"]
        faults = {(name, "domain") for name, text in row.items() if not allowed(name, text)}
        if state in ("44", "50"):
            faults |= faults_inside(row, blocks)
        elif allowed("TABBLKST", state):
            faults.add(("TABBLKST", "state-filter" if state in KNOWN_STATES else "unknown-state"))
        counts.update(faults)
    return counts


@settings(max_examples=25)
@given(data=st.data())
def test_random_damage_is_found_like_by_a_plain_reading(tmp_path: Path, data: st.DataObject) -> None:
    fields = {name: st.sampled_from(TEXTS.get(name, CODE_TEXTS)) for name in header_of("persons")}
    rows = data.draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=12))
    tables = valid_rows()
    blocks = {"".join(row[:4]) for row in tables["blocks"]}
    good = dict(zip(header_of("persons"), tables["persons"][0], strict=True))
    tables["persons"] = [[row[name] for name in header_of("persons")] for row in [good, *rows]]
    with loaded(write_input(tmp_path / "data", tables), states=("44", "50")) as loaded_data:
        actual = {(f.column, f.rule): f.rows for f in loaded_data.findings}
    assert plain_reading([good, *rows], blocks) == actual


def test_codes_of_the_test_inputs_are_known() -> None:
    used = {code for row in valid_rows()["persons"] for code in row[8:] if code != "Null"}
    assert {int(code) for code in used} <= CODES
    assert {row[3] for row in valid_rows()["persons"]} == set(STATES)
