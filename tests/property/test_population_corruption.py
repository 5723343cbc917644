"""Random damage to a valid input is always reported, never crashes, and never shows a record.

And the consistency rules agree with a plain second implementation on random households.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import CensafeError
from support.phsafe_inputs import HEADERS, Row, check, csv_text, valid_tables, write_folder

TABLES = ("persons", "units", "geo")
QUIET = settings(max_examples=8)
JUNK = st.one_of(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\r\n\x00"), max_size=6
    ),
    st.sampled_from(
        ["", " 1", "1 ", "+1", "01", "1.0", "1e0", "NULL", "NaN", "-1", "0", "99", "000", '"', ",", "1_0"]
    ),
)


@QUIET
@given(st.sampled_from(TABLES), st.data())
def test_a_replaced_value_is_reported_or_valid(table: str, data: st.DataObject) -> None:
    tables = valid_tables()
    row = data.draw(st.integers(0, len(tables[table]) - 1))
    column = data.draw(st.integers(0, len(HEADERS[table]) - 1))
    value = data.draw(JUNK)
    before = tables[table][row]
    quoted = '"' + value.replace('"', '""') + '"'
    tables[table][row] = (*before[:column], quoted, *before[column + 1 :])
    with tempfile.TemporaryDirectory() as place:
        folder = write_folder(Path(place) / "data", **tables)
        report = check(folder, strict=True)
        free = HEADERS[table][column] in {"TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE", "REGIONCE",
                                          "DIVISIONCE", "PLACEFP", "AIANNHCE", "QAGE", "TEN"}  # fmt: skip
        text = "\n".join(f.text() for f in report.findings)
        assert report.findings or value == before[column] or (free and value.isdecimal()), value
        assert "10000000" not in text.replace("100000001 to 899999999", "")


@QUIET
@given(st.sampled_from(TABLES), st.binary(min_size=1, max_size=4), st.data())
def test_damaged_bytes_never_crash(table: str, junk: bytes, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = write_folder(Path(place) / "data")
        path = folder / f"{table}.csv"
        content = path.read_bytes()
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(len(content), start + 40)))
        path.write_bytes(content[:start] + junk + content[stop:])
        message = ""
        try:
            message = "\n".join(f.text() for f in check(folder, strict=True).findings)
        except CensafeError as error:
            message = str(error)
            assert error.__cause__ is None
        assert "10000000" not in message.replace("100000001 to 899999999", "")


@QUIET
@given(st.sampled_from(TABLES), st.data())
def test_a_lost_or_repeated_row_is_reported(table: str, data: st.DataObject) -> None:
    tables = valid_tables()
    row = data.draw(st.integers(0, len(tables[table]) - 1))
    if data.draw(st.booleans()):
        del tables[table][row]
    else:
        tables[table].append(tables[table][row])
    with tempfile.TemporaryDirectory() as place:
        report = check(write_folder(Path(place) / "data", **tables), strict=True)
    assert report.fatal


def edited(tables: dict[str, list[Row]], data: st.DataObject) -> None:
    domains = {
        "persons": {"QAGE": ["2", "17", "18", "60"], "CENHISP": ["1", "2"], "CENRACE": ["01", "63"],
                    "RELSHIP": [str(code) for code in range(20, 39)]},
        "units": {"FINAL_POP": ["0", "1", "2", "3"], "NPF": ["0", "2", "3"], "HHSPAN": ["0", "1", "2"],
                  "HHRACE": ["00", "01", "63"], "TEN": ["0", "3"], "HHT": list("01234567"),
                  "HHT2": [f"{code:02d}" for code in range(13)], "CPLT": list("012345")},
    }  # fmt: skip
    for _ in range(data.draw(st.integers(1, 3))):
        table = data.draw(st.sampled_from(sorted(domains)))
        row = data.draw(st.integers(0, len(tables[table]) - 1))
        column = data.draw(st.sampled_from(sorted(domains[table])))
        position = HEADERS[table].index(column)
        values = list(tables[table][row])
        values[position] = data.draw(st.sampled_from(domains[table][column]))
        tables[table][row] = tuple(values)


@QUIET
@given(st.data())
def test_rules_agree_with_a_plain_second_implementation(data: st.DataObject) -> None:
    tables = valid_tables()
    edited(tables, data)
    with tempfile.TemporaryDirectory() as place:
        report = check(write_folder(Path(place) / "data", **tables))
    kinds = {row[1]: row[0] for row in tables["geo"]}
    plain: Counter[str] = Counter()
    for row in tables["units"]:
        unit = {name: int(value) for name, value in zip(HEADERS["units"], row, strict=True)}
        members = [tuple(map(int, person)) for person in tables["persons"] if person[1] == row[1]]
        plain["C2"] += kinds[row[1]] != row[0]
        plain["C1"] += sum(
            (kind, relation > 36) != ((3, False) if unit["RTYPE"] == 2 else (5, True))
            for kind, _, _, _, _, relation in members
        )
        plain.update(unit_rules(unit, members))
    assert dict(+plain) == {f.rule: f.rows for f in report.findings}


def unit_rules(u: dict[str, int], members: list[tuple[int, ...]]) -> set[str]:
    """C3 to C12 of one unit, read off the specification one by one."""
    relations = [member[5] for member in members]
    partners = [relation for relation in relations if 21 <= relation <= 24]
    heads = [member for member in members if member[5] == 20]
    occupied = u["RTYPE"] == 2 and u["FINAL_POP"] > 0
    zero = [u[name] == 0 for name in ("HHT", "HHT2", "CPLT", "TEN", "HHSPAN", "HHRACE")]
    married, cohabiting = u["HHT2"] in (1, 2), u["HHT2"] in (3, 4)
    types = {6: {3}, 7: {3}, 10: {2}, 11: {2}, 8: {7}, 12: {5}, 3: {2, 3, 5, 7}, 4: {2, 3, 5, 7}}
    family = sum(relation in (20, 21, 23) or 25 <= relation <= 33 for relation in relations)
    child = any(25 <= member[5] <= 27 and member[2] < 18 for member in members)
    rules = {
        "C3": u["FINAL_POP"] != len(members),
        "C4": len(heads) != int(occupied),
        "C5": any(zero) if occupied else not all(zero),
        "C6": not ((u["HHT"] == 1) == married == (u["CPLT"] in (1, 2)))
        or cohabiting != (u["CPLT"] in (3, 4))
        or (u["HHT2"] >= 5 and u["CPLT"] != 5),
        "C7": (u["HHT2"] == 5) != (u["HHT"] == 6)
        or (u["HHT2"] == 9) != (u["HHT"] == 4)
        or u["HHT"] not in types.get(u["HHT2"], range(8)),
        "C8": len(partners) > 1 or set(partners) != {{1: 21, 2: 23, 3: 22, 4: 24}.get(u["CPLT"], 0)} - {0},
        "C9": child != (u["HHT2"] in (1, 3, 6, 10)),
        "C10": len(heads) == 1 and (heads[0][4], heads[0][3]) != (u["HHRACE"], u["HHSPAN"]),
        "C11": u["HHT"] in (4, 6) and u["FINAL_POP"] != 1,
        "C12": u["NPF"] != (family if family >= 2 else 0),
    }
    return {rule for rule, broken in rules.items() if broken}


def test_an_unchanged_input_is_clean_so_that_the_properties_mean_something(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    assert (folder / "persons.csv").read_text() == csv_text("persons", valid_tables()["persons"])
    assert check(folder, strict=True).findings == ()


@pytest.mark.long
@settings(QUIET, max_examples=100)
@given(st.sampled_from(TABLES), st.binary(min_size=1, max_size=4), st.data())
def test_a_hundred_damages_of_each_kind_are_reported(table: str, junk: bytes, data: st.DataObject) -> None:
    test_a_replaced_value_is_reported_or_valid.hypothesis.inner_test(table, data)
    test_damaged_bytes_never_crash.hypothesis.inner_test(table, junk, data)
    test_a_lost_or_repeated_row_is_reported.hypothesis.inner_test(table, data)
    test_rules_agree_with_a_plain_second_implementation.hypothesis.inner_test(data)
