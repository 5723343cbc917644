"""Census Edited Files: what is read, what stops, and that no value of a record is told."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.geography.spines.tree import E2E_1940, PL94_PR
from censafe.population.blocks.layout import BlockData
from censafe.population.files import fixed_width
from censafe.population.files.fixed_width import fixed_layout
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.fixed_width import GRFC_HEADER, person_2020, unit_2020, write_lines
from support.histograms import E2E, PL94, dense, flat_index
from support.shipped_levels import gq_types

LAYOUT = pl94_layout(PL94, PL94_PR)
GRFC = [
    "B2|44|007|000300|3|3001|2415|99999|05140",
    "B1|44|001|000100|1|1000|9999|00100|05140",
    "B33|44|001|000100|1|1001|9999|99999|99999",
]
UNITS = [
    unit_2020(100000001, 2, "B1"),
    unit_2020(100000002, 0, "B1", vacs=3),
    unit_2020(100000003, 1, "  B2", rtype=4, quarters="501"),
]
PERSONS = [
    person_2020(100000003, quarters="501", race="63"),
    person_2020(100000001, age=17, hispanic=2),
    person_2020(100000001, age=115, quarters="   "),
]


def write(
    folder: Path,
    units: list[str] | None = None,
    persons: list[str] | None = None,
    blocks: list[str] | None = None,
) -> Path:
    write_lines(folder / "CEF20_UNIT.txt", UNITS if units is None else units)
    write_lines(folder / "CEF20_PER.txt", PERSONS if persons is None else persons)
    lines = [GRFC_HEADER, *(GRFC if blocks is None else blocks)]
    (folder / "GRF-C.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def problems(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_blocks(folder, LAYOUT)
    return str(caught.value)


def test_codes_of_group_quarters_are_those_of_the_code_table() -> None:
    expected = {int(code): kind.hhgq for kind in gq_types() for code in kind.input_codes}
    assert {0: 0} | expected == {
        code: kind
        for code, kind in enumerate(fixed_layout("cef_unit").fields["QGQTYP"].level_of.tolist())
        if kind >= 0
    }


def test_persons_units_occupancy_and_areas(tmp_path: Path) -> None:
    data = read_blocks(write(tmp_path), LAYOUT)
    assert data.spine.leaf.geounits.tolist() == ["4400100010011000", "4400100010011001", "4400700030033001"]
    expected = np.zeros((3, 2016), np.int64)
    cells = [[0, 0, 1, 0], [0, 1, 0, 0], [5, 1, 0, 62]]
    expected[[0, 0, 2], [flat_index(PL94, levels) for levels in cells]] = 1
    assert np.array_equal(expected, dense(data.persons, 2016))
    assert data.facilities.tolist() == [[2, *[0] * 7], [0] * 8, [0, 0, 0, 0, 0, 1, 0, 0]]
    assert dense(data.units, 2).tolist() == [[1, 1], [0, 0], [0, 0]]
    assert data.areas is not None
    assert data.areas.aiannh.tolist() == [9999, 9999, 2415]
    assert data.areas.place.tolist() == [100, 99999, 99999]
    assert [path.name for path in data.files] == ["CEF20_UNIT.txt", "CEF20_PER.txt"]


def test_order_chunks_and_parts_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_blocks(write(tmp_path / "a"), LAYOUT)
    monkeypatch.setattr(fixed_width, "CHUNK_BYTES", 100)
    other = write(tmp_path / "b", UNITS[::-1], PERSONS[::-1], GRFC[::-1])
    _same(expected, read_blocks(other, LAYOUT))
    parts = tmp_path / "c"
    for state, units, persons in (("1", UNITS[:2], PERSONS[1:]), ("2", UNITS[2:], PERSONS[:1])):
        write_lines(parts / f"CEF20_UNIT_{state}.txt", units)
        write_lines(parts / f"CEF20_PER_{state}.txt", persons)
        write_lines(parts / f"GRF-C_{state}.txt", [GRFC_HEADER, *(GRFC[:1] if state == "2" else GRFC[1:])])
    _same(expected, read_blocks(parts, LAYOUT))


def _same(expected: BlockData, actual: BlockData) -> None:
    assert expected.spine.leaf.geounits.tolist() == actual.spine.leaf.geounits.tolist()
    assert np.array_equal(dense(expected.persons, 2016), dense(actual.persons, 2016))
    assert np.array_equal(expected.facilities, actual.facilities)
    assert np.array_equal(dense(expected.units, 2), dense(actual.units, 2))


@pytest.mark.parametrize(
    ("place", "record", "message"),
    [
        (0, unit_2020(100000001, 2, "B1", rtype=3), "RTYPE: codes outside the allowed set (1 row) [domain]; allowed: 2 or 4"),
        (0, unit_2020("10000000x", 2, "B1"), "MAFID: numbers that are not digits (1 row) [form]"),
        (1, unit_2020(100000001, 2, "B1"), "MAFID: units with the number of another one (1 row) [duplicate]"),
        (2, unit_2020(100000003, 1, "B2", rtype=4, quarters="107"), "QGQTYP: kinds of group quarters that do not occur (1 row)"),
        (0, unit_2020(100000001, 2, "B1", vacs=9), "VACS: codes outside the allowed set (1 row) [domain]"),
        (0, unit_2020(100000001, 2, "B3"), "OIDTB: units whose block is not in GRF-C (1 row) [unmatched]"),
        (0, unit_2020(100000001, 2, "B1", quarters="501"), "housing units with a kind of group quarters, or group quarters"),
        (2, unit_2020(100000003, 1, "B2", rtype=4), "housing units with a kind of group quarters, or group quarters"),
        (2, unit_2020(100000003, 1, "B2", rtype=4, quarters="501", vacs=1), "group quarters that are vacant (1 row)"),
        (1, unit_2020(100000002, 1, "B1", vacs=3), "vacant housing units with persons (1 row) [vacant]"),
        (1, unit_2020(100000002, 0, "B1"), "housing units without persons that are not vacant (1 row) [no-persons]"),
        (0, unit_2020(100000001, 3, "B1"), "units with another number of records in CEF20_PER.txt (1 row) [persons]"),
        (0, UNITS[0] + " ", "records of another length (1 row) [record-length]; allowed: 76 characters"),
    ],
)  # fmt: skip
def test_units_that_break_a_rule_stop(tmp_path: Path, place: int, record: str, message: str) -> None:
    units = list(UNITS)
    units[place] = record
    text = problems(write(tmp_path, units))
    assert message in text
    assert "100000001" not in text


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (person_2020(100000009), "MAFID: persons whose unit is not in the unit file (1 row) [unmatched]"),
        (person_2020("1000000x1"), "MAFID: numbers that are not digits (1 row) [form]"),
        (person_2020(100000001, age=116), "QAGE: ages outside the allowed range (1 row) [domain]; allowed: 0 to 115"),
        (person_2020(100000001, age="x"), "QAGE: ages outside the allowed range (1 row) [domain]"),
        (person_2020(100000001, hispanic=3), "CENHISP: codes outside the allowed set (1 row) [domain]"),
        (person_2020(100000001, race="64"), "CENRACE: codes outside the allowed set (1 row) [domain]"),
        (person_2020(100000001, race="00"), "CENRACE: codes outside the allowed set (1 row) [domain]"),
        (person_2020(100000001, quarters="302"), "QGQTYP: kinds of group quarters that do not occur (1 row) [domain]"),
        (person_2020(100000001, quarters="301"), "persons in another kind of quarters than their unit is (1 row)"),
        (person_2020(100000002), "MAFID: persons in vacant units (1 row) [vacant]"),
        (PERSONS[1][:-1], "records of another length (1 row) [record-length]; allowed: 91 characters"),
    ],
)  # fmt: skip
def test_persons_that_break_a_rule_stop(tmp_path: Path, record: str, message: str) -> None:
    text = problems(write(tmp_path, None, [PERSONS[0], record, PERSONS[2]]))
    assert message in text
    for value in ("100000001", "1000000x1", "116"):
        assert value not in text


def test_minors_in_nursing_facilities_stop(tmp_path: Path) -> None:
    units = [*UNITS[:2], unit_2020(100000003, 1, "B2", rtype=4, quarters="301")]
    persons = [person_2020(100000003, age=17, quarters="301"), *PERSONS[1:]]
    assert "cells that must be empty have persons (1 row) [must-be-empty]" in problems(
        write(tmp_path, units, persons)
    )


@pytest.mark.parametrize("name", ["CEF20_UNIT.txt", "CEF20_PER.txt"])
def test_a_record_that_is_cut_off_stops(tmp_path: Path, name: str) -> None:
    path = write(tmp_path) / name
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{name}: the last record is cut off (1 row) [truncated]" in problems(tmp_path)


def test_persons_that_are_missing_at_the_end_stop(tmp_path: Path) -> None:
    assert "units with another number of records in CEF20_PER.txt (1 row) [persons]" in problems(
        write(tmp_path, None, PERSONS[:-1])
    )


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([*GRFC, GRFC[0].replace("B2", "B9")], "blocks given twice (1 row) [duplicate]"),
        ([*GRFC, "B2|44|007|000300|3|3002|9999|99999|05140"], "identifiers of blocks given twice (1 row) [duplicate]"),
        ([*GRFC, "|44|007|000300|3|3002|9999|99999|05140"], "identifiers that are empty, too long or no ASCII (1 row) [form]"),
        ([*GRFC, "B\u00e9|44|007|000300|3|3002|9999|99999|05140"], "identifiers that are empty, too long or no ASCII (1 row) [form]"),
        ([*GRFC, "B7|44|07|000300|3|3002|9999|99999|05140"], "codes of another form (1 row) [form]"),
    ],
)  # fmt: skip
def test_block_files_that_break_a_rule_stop(tmp_path: Path, blocks: list[str], message: str) -> None:
    assert message in problems(write(tmp_path, blocks=blocks))


def test_block_files_with_another_delimiter_or_without_a_column_stop(tmp_path: Path) -> None:
    write(tmp_path)
    write_lines(tmp_path / "GRF-C.txt", [text.replace("|", ",") for text in (GRFC_HEADER, *GRFC)])
    assert "GRF-C.txt: columns missing: OIDTABBLK" in problems(tmp_path)
    write_lines(
        tmp_path / "GRF-C.txt", [GRFC_HEADER.replace("|PLACEFP", ""), *(r.rsplit("|", 1)[0] for r in GRFC)]
    )
    assert "GRF-C.txt: columns missing: PLACEFP" in problems(tmp_path)
    (tmp_path / "GRF-C.txt").unlink()
    assert "no block file" in problems(tmp_path)


def test_control_totals_are_compared(tmp_path: Path) -> None:
    write(tmp_path)
    header = "TABBLKST|PERSONS|HOUSING_UNITS|GROUP_QUARTERS"
    totals = tmp_path / "CEF20_CNT.txt"
    write_lines(totals, [header, "44|3|2|1"])
    assert len(read_blocks(tmp_path, LAYOUT).files) == 3
    write_lines(totals, [header, "44|4|2|2", "50|1|1|1"])
    text = problems(tmp_path)
    for column in ("PERSONS", "GROUP_QUARTERS"):
        assert (
            f"{column}: states whose records do not add up to the control total (rows are states) (1 row)"
            in text
        )
    assert "HOUSING_UNITS" not in text
    assert "states that GRF-C does not have (1 row)" in text
    write_lines(totals, [header, "44|3|2"])
    assert "not a file of control totals" in problems(tmp_path)


def test_files_without_counterpart_and_other_schemas_stop(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match="use the configuration pl94-us"):
        read_blocks(tmp_path, e2e_layout(E2E, E2E_1940))
    (tmp_path / "CEF20_PER.txt").rename(tmp_path / "CEF20_PER_44.txt")
    assert "2 of the files CEF20_UNIT* and CEF20_PER* have no counterpart" in problems(tmp_path)


def with_fields(text: str, fields: dict[int, str]) -> str:
    for start, value in fields.items():
        text = text[:start] + value + text[start + len(value) :]
    return text


@pytest.mark.parametrize(
    ("unit", "persons", "rules"),
    [
        ({10: "44"}, [{85: "20", 90: "2"}, {85: "21", 90: "2"}], {}),
        ({10: "09"}, [{}, {}], {"state": 1}),
        ({}, [{85: "20"}, {85: "20"}], {"C4": 1}),
        ({}, [{85: "25"}, {85: "21"}], {"C4": 1}),
        ({}, [{90: "1"}, {0: "5"}], {"alone": 1, "C1": 1}),
    ],
)
def test_units_and_persons_that_contradict_each_other_warn(
    tmp_path: Path, unit: dict[int, str], persons: list[dict[int, str]], rules: dict[str, int]
) -> None:
    people = [PERSONS[0].replace("3", "5", 1)]
    people += [with_fields(text, own) for text, own in zip(PERSONS[1:], persons, strict=True)]
    data = read_blocks(write(tmp_path, [with_fields(UNITS[0], unit), *UNITS[1:]], people), LAYOUT)
    assert {one.rule: one.rows for one in data.findings} == rules
    assert {one.severity for one in data.findings} <= {"warn"}
