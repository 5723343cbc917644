"""Levels, areas, units and relations of records of one's own, each rule as a table."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import ConfigError, DataError
from censafe.population.records.expressions import check_expression
from support.own_records import CELLS, LEVELS, READ, ROWS, cells_of, own_config, read_own, rules_of, text_of

PLAIN = text_of(ROWS)
ONE = '[schemas.residents]\nattributes = [{ name = "income", levels = 3, labels = ["low", "middle", "high"] }]\n'


def levels_of(
    folder: Path, values: list[str], rule: str, more: str = "", schema: str = ONE
) -> list[int] | set[str]:
    """Counts of the three levels of an attribute, or the broken rules."""
    read = f'[read]\npersons = "persons.csv"\ngeography = ["area"]\nareas = "records"\n{more}\n[read.attributes.income]\n{rule}\n'
    levels = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Area" }]'
    rows = [("a", value, value[::-1]) for value in values]
    text = text_of(rows, header=("area", "income", "back"))
    data = read_own(folder, own_config(read, schema=schema, levels=levels), {"persons.csv": text})
    if data.blocks is None:
        return set(rules_of(data))
    found = np.zeros(3, np.int64)
    for cell, count in cells_of(data)[("a",)].items():
        found[cell] = count
    return found.tolist()


@pytest.mark.parametrize(
    ("values", "rule", "more", "expected"),
    [
        (["low", "high", "high"], "", "", [1, 0, 2]),
        (["0", "2", "low"], "", "", [2, 0, 1]),
        (["A", "b", "high"], 'values = { A = "low", b = 1 }', "", [1, 1, 1]),
        (["A", "x", ""], 'values = { A = "low" }\nother = "high"', "", [1, 0, 2]),
        (["NA", "low"], 'values = { NA = "middle" }', 'missing = ["NA"]', [1, 1, 0]),
        (["NA", "low"], "", 'missing = ["NA"]', {"missing"}),
        (["x", "low"], "", "", {"domain"}),
        (["1.0", "low"], "", "", {"decimal"}),
        (["0", "999.5", "1000", "5e3"], "bands = [0, 1000, 2000]", "", [2, 1, 1]),
        (["999,5", "1000"], "bands = [0, 1000, 2000]", 'decimal = ","', [1, 1, 0]),
        (["-1", "5"], "bands = [0, 1000, 2000]", "", {"below"}),
        (["nan", "5"], "bands = [0, 1000, 2000]", "", {"number"}),
        (["many", "5"], "bands = [0, 1000, 2000]", "", {"number"}),
        (["top", "5"], "bands = [0, 1000, 2000]\nvalues = { top = \"high\" }", "", [1, 0, 1]),
        (["12", "5"], 'expression = "try_cast(income AS INTEGER) * 100"\nbands = [0, 1000, 2000]', "", [1, 1, 0]),
        (["wol", "wol"], 'column = "back"', "", [2, 0, 0]),
        (["5", "", "20"], 'bands = [0, 10]\nother = "high"', "", [1, 1, 1]),
        (["5", "refused"], 'bands = [0, 10]\nvalues = { refused = "high" }', "", [1, 0, 1]),
        (["12", "x"], 'expression = "CAST(income AS INTEGER)"\nbands = [0, 10, 20]', "", {"missing"}),
    ],
)  # fmt: skip
def test_a_value_becomes_a_level(
    tmp_path: Path, values: list[str], rule: str, more: str, expected: object
) -> None:
    assert levels_of(tmp_path, values, rule, more) == expected


def test_numbers_are_no_levels_where_labels_are_numbers(tmp_path: Path) -> None:
    schema = ONE.replace('"low", "middle", "high"', '"1", "2", "3 or more"')
    assert (
        levels_of(tmp_path / "a", ["1", "2"], "", schema=schema) == [1, 1, 0]
        if (tmp_path / "a").mkdir() is None
        else False
    )
    assert levels_of(tmp_path, ["0", "1"], "", schema=schema) == {"domain"}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("upper(a)", ("a",)),
        ("date_diff('year', b::DATE, DATE '2025-12-31')", ("b",)),
        ("CASE WHEN a = 'x' THEN 1 ELSE b::INTEGER END", ("a", "b")),
        ('substring("birth date", 1, 4)', ("birth date",)),
        ("nullif(a, '') || coalesce(b, 'x')", ("a", "b")),
        ("a BETWEEN '1' AND '5' AND b NOT IN ('x')", ("a", "b")),
    ],
)
def test_expressions_of_a_row_are_allowed(text: str, columns: tuple[str, ...]) -> None:
    assert check_expression(text).columns == columns


@pytest.mark.parametrize(
    "text",
    [
        "(SELECT 1)", "a IN (SELECT b)", "count(*)", "sum(a)", "sum(a) OVER ()", "row_number() OVER (ORDER BY a)", "random()", "now()", "a; SELECT 1",
        "a) FROM persons --", "a FROM persons", "a ORDER BY 1", "read_text('/etc/passwd') || a", "getenv('HOME') || a", "current_setting('x') || a",
        "error(a)", "nextval('s') || a", "p.a", "*", "COLUMNS(*)", "list_transform([a], x -> x)", "1", "", "write_log(a)", "system.main.upper(a)",
    ],
)  # fmt: skip
def test_expressions_of_more_than_a_row_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        check_expression(text)


def test_an_expression_that_does_not_fit_text_says_how_to_convert(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"birth_date::DATE"):
        levels_of(
            tmp_path,
            ["1"],
            "expression = \"date_diff('year', income, DATE '2025-12-31')\"\nbands = [0, 1, 2]",
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('areas = "records"', ""), "list of the lowest areas is public input"),
        (('persons = "persons.csv"', ""), "read.persons"),
        (('geography = ["Région", "grid"]', 'geography = ["grid"]'), "1 columns for 2 levels"),
        (('values = {', 'valuse = {'), "valuse"),
        (("bands = [0, 15, 65]", "bands = [0, 15]"), "give 3 rising numbers"),
        (("bands = [0, 15, 65]", "bands = [0, 65, 15]"), "give 3 rising numbers"),
        (('F = "female"', 'F = "femal"'), "no level"),
        (("age_on:2025-12-31", "age_on:2025-31-12"), "completed years on a day"),
        (("[read.attributes.sex]", "[read.attributes.sexx]"), "no histogram has this attribute"),
        (("[read]", 'reader = "histogram"\n[read]'), "reader"),
        (('values = { F = "female", M = "male" }', 'expression = "(SELECT 1)"'), "a subquery"),
        (("[read]\n", '[read]\nencoding = "ebcdic"\n'), "ebcdic"),
        (("[read]\n", '[read]\ndelimiter = ";;"\n'), "one character"),
        (("[read]\n", '[read]\nhouseholds = "h.csv"\n'), "no key joins them"),
    ],
)  # fmt: skip
def test_breaches_of_the_table_are_said(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    text = own_config(READ)
    assert change[0] in text
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        read_own(tmp_path, text.replace(*change), {"persons.csv": PLAIN})


def test_one_column_with_lengths(tmp_path: Path) -> None:
    read = READ.replace('["Région", "grid"]', '"code"\nlengths = [2, 5]')
    rows = [(f"{row[0][:1]}1{place}xy"[:5], *row[2:]) for place, row in enumerate(ROWS)]
    data = read_own(
        tmp_path, own_config(read), {"persons.csv": text_of(rows, header=("code", "born", "sex", "note"))}
    )
    assert data.codes is not None
    assert next(level.codes for level in data.codes.levels) == (("N1",), ("Î1",))
    assert sum(sum(cells.values()) for cells in cells_of(data).values()) == len(ROWS)


def test_a_public_list_keeps_empty_areas_and_refuses_others(tmp_path: Path) -> None:
    read = READ.replace('"records"', '"areas.csv"')
    paths = [*CELLS, ("Süd", "N9")]
    listed = text_of(paths, header=("Région", "grid"), mark=",")
    data = read_own(tmp_path, own_config(read), {"persons.csv": PLAIN, "areas.csv": listed})
    assert cells_of(data) == {**CELLS, ("Süd", "N9"): {}}
    short = text_of(paths[1:], header=("Région", "grid"))
    assert rules_of(read_own(tmp_path, own_config(read), {"persons.csv": PLAIN, "areas.csv": short})) == {
        "unknown-area": 2
    }
    twice = text_of([*paths, paths[0]], header=("Région", "grid"))
    assert rules_of(read_own(tmp_path, own_config(read), {"persons.csv": PLAIN, "areas.csv": twice})) == {
        "duplicate": 1
    }
    zeros = [(a, f"0{b}") for a, b in paths]
    lost = read_own(
        tmp_path,
        own_config(read),
        {"persons.csv": PLAIN, "areas.csv": text_of(zeros, header=("Région", "grid"))},
    )
    assert rules_of(lost) == {"lost-zero": 6}


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    first = read_own(tmp_path, None, {"persons.csv": PLAIN})
    second = read_own(tmp_path, None, {"persons.csv": text_of(ROWS[::-1])})
    assert first.codes is not None and second.codes is not None
    assert first.codes.files == second.codes.files
    assert cells_of(first) == cells_of(second)


def test_more_areas_than_digits_are_refused(tmp_path: Path) -> None:
    levels = LEVELS.replace('{ name = "Grid" }', '{ name = "Grid", digits = 1 }')
    rows = [("a", f"g{place}", *ROWS[0][2:]) for place in range(10)]
    with pytest.raises(DataError, match="digits = 2"):
        read_own(tmp_path, own_config(levels=levels), {"persons.csv": text_of(rows)})


HOUSING = """
[schemas.residents]
attributes = [
    { name = "living", levels = 3, labels = ["home", "care", "barracks"] },
    { name = "sex", levels = 2, labels = ["female", "male"] },
]
[schemas.residents.facilities]
attribute = "living"
minimum = [0, 1, 1]
largest = [9, 99, 99]
[schemas.homes]
record = "household"
attributes = [{ name = "tenure", levels = 2, labels = ["owned", "rented"] }]
"""
HOUSING_READ = """
[read]
persons = "persons.csv"
households = "dwellings.csv"
key = "id"
geography = ["area"]
areas = "records"
[read.where]
homes = "status = 'lived in'"
[read.attributes.living]
column = "kind"
values = { D = "home", C = "care", B = "barracks" }
"""
AREA = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Area" }]'
DWELLINGS = [
    ("1", "a", "D", "owned", "lived in"),
    ("2", "a", "D", "", "empty"),
    ("3", "b", "C", "", "care"),
    ("4", "b", "D", "rented", "lived in"),
]
PEOPLE = [("1", "female"), ("1", "male"), ("3", "male"), ("4", "female")]


def housing(
    folder: Path,
    read: str = HOUSING_READ,
    dwellings: object = DWELLINGS,
    people: object = PEOPLE,
    schema: str = HOUSING,
) -> object:
    text = own_config(read, schema=schema, levels=AREA, histograms=("residents", "homes"))
    files = {
        "dwellings.csv": text_of(dwellings, header=("id", "area", "kind", "tenure", "status")),  # type: ignore[arg-type]
        "persons.csv": text_of(people, header=("id", "sex")),  # type: ignore[arg-type]
    }
    return read_own(folder, text, files)


def test_households_give_areas_kinds_units_and_records_of_their_own(tmp_path: Path) -> None:
    data = housing(tmp_path)
    assert not data.findings, [one.text() for one in data.findings]  # type: ignore[attr-defined]
    assert cells_of(data) == {("a",): {0: 1, 1: 1}, ("b",): {0: 1, 3: 1}}  # type: ignore[arg-type]
    assert cells_of(data, "homes") == {("a",): {0: 1}, ("b",): {1: 1}}  # type: ignore[arg-type]
    assert data.blocks.facilities.tolist() == [[2, 0, 0], [1, 1, 0]]  # type: ignore[attr-defined]


def test_units_are_counted_from_the_keys_of_persons(tmp_path: Path) -> None:
    read = HOUSING_READ + '[read.units]\nof = "persons"\n'
    data = housing(tmp_path, read)
    assert data.blocks.facilities.tolist() == [[1, 0, 0], [1, 1, 0]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("dwellings", "people", "rules"),
    [
        (DWELLINGS, [*PEOPLE, ("9", "male")], {"no-household", "missing"}),
        ([*DWELLINGS, DWELLINGS[0]], PEOPLE, {"duplicate"}),
        ([*DWELLINGS, ("", *DWELLINGS[1][1:])], PEOPLE, {"missing"}),
        ([("1", "a", "D", "", "lived in"), *DWELLINGS[1:]], PEOPLE, {"missing"}),
        ([("1", "a", "Z", "owned", "lived in"), *DWELLINGS[1:]], PEOPLE, {"domain"}),
    ],
)
def test_households_that_do_not_fit_are_found(
    tmp_path: Path, dwellings: object, people: object, rules: set[str]
) -> None:
    data = housing(tmp_path, dwellings=dwellings, people=people)
    assert set(rules_of(data)) == rules  # type: ignore[arg-type]


def test_an_attribute_of_persons_does_not_follow_the_answers_of_their_household(tmp_path: Path) -> None:
    """The record of a unit may change with one person (its tenure), and then the records of all its members would."""
    schema = HOUSING.replace(
        '{ name = "sex"', '{ name = "tenure", levels = 2, labels = ["owned", "rented"] },\n    { name = "sex"'
    )
    data = housing(tmp_path, schema=schema)
    assert set(rules_of(data)) == {"relation"}  # type: ignore[arg-type]
    (found,) = data.findings  # type: ignore[attr-defined]
    assert "record = household" in found.fix


def test_schemas_with_facilities_need_what_is_counted(tmp_path: Path) -> None:
    read = HOUSING_READ.replace('key = "id"\n', "").replace('households = "dwellings.csv"\n', "")
    with pytest.raises(ConfigError, match=r"facilities"):
        housing(tmp_path, read)
