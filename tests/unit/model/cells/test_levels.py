"""Levels as a schema writes them: ranges, single groups, and the values of columns."""

from fractions import Fraction
from typing import Any

import pytest

from censafe.model.cells.levels import LevelSets
from censafe.model.entries import Problems
from censafe.products.topdown.configuration.schema_checks import check_schemas, read_level_table

SIZES = LevelSets(5, {"size": ("1", "2", "2", "3", "3"), "couple": ("no", "no", "yes", "no", "yes")})


def levels(raw: object) -> tuple[tuple[int, ...], list[str]]:
    problems = Problems()
    return SIZES.read(raw, "when.type", problems), problems.messages


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (Fraction(3), (3,)),
        ([Fraction(3), Fraction(0)], (3, 0)),
        ("1-2, 4", (1, 2, 4)),
        (["0-1", Fraction(4)], (0, 1, 4)),
        ({"size": Fraction(2)}, (1, 2)),
        ({"size": [Fraction(2), Fraction(3)], "couple": "yes"}, (2, 4)),
    ],
)
def test_levels_are_numbers_ranges_or_values(raw: object, expected: tuple[int, ...]) -> None:
    assert levels(raw) == (expected, [])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (Fraction(5), "whole numbers from 0 to 4"),
        ("3-5", "whole numbers from 0 to 4"),
        ("0-999999999", "whole numbers from 0 to 4"),
        ("2-1", "ranges such as"),
        ("0-2, 2", "distinct levels"),
        ("", "distinct levels"),
        ([], "distinct levels"),
        ("1;2", "distinct levels"),
        (Fraction(1, 2), "distinct levels"),
        ({"width": Fraction(1)}, "give one of size, couple"),
        ({"size": Fraction(4)}, "values of the column size, which are 1, 2, 3"),
        ({"size": Fraction(1), "couple": "yes"}, "no level has these values"),
    ],
)
def test_what_names_no_levels_is_refused(raw: object, message: str) -> None:
    found, messages = levels(raw)
    assert found == ()
    assert len(messages) == 1
    assert message in messages[0]


def test_groups_by_columns_have_the_last_fastest_and_leave_out_what_no_level_has() -> None:
    problems = Problems()
    by = {"couple": ["yes", "no"], "size": [Fraction(3), Fraction(2), Fraction(1)]}
    assert SIZES.read_by(by, "by", problems) == ((4,), (2,), (3,), (1,), (0,))
    assert problems.messages == []


def table(raw: object) -> list[str]:
    problems = Problems()
    read_level_table(raw, "table", 2, problems)
    return problems.messages


def test_a_table_has_a_value_for_every_level() -> None:
    assert table({"size": [Fraction(1), "2"], "level": [Fraction(0), Fraction(1)]}) == []
    assert "give 2 values" in table({"size": [Fraction(1)]})[0]
    assert "must count from 0 to 1" in table({"level": [Fraction(1), Fraction(2)]})[0]
    assert "no shipped table nowhere.csv" in table("nowhere.csv")[0]
    assert "neither columns" in table("../schemas.csv")[0]
    assert any("give 2 values" in one for one in table("hhtype_levels.csv"))


def test_a_schema_of_ones_own_has_recodes_by_columns_and_labels_of_its_table() -> None:
    types: dict[str, Any] = {"size": [Fraction(1), Fraction(2), Fraction(2)], "label": ["one", "two", "pair"]}
    raw = {
        "mine": {
            "attributes": [{"name": "type", "levels": Fraction(3), "table": types}],
            "recodes": {"sizes": {"attribute": "type", "by": {"size": [Fraction(2), Fraction(1)]}}},
            "zeros": [{"name": "none", "when": {"type": {"size": Fraction(1)}}}],
        }
    }
    problems = Problems()
    schema = check_schemas(raw, "schemas", problems)["mine"]
    assert problems.messages == []
    assert schema.recodes["sizes"].groups == ((1, 2), (0,))
    assert schema.labels["type"] == ("one", "two", "pair")
    assert schema.allowed().tolist() == [False, True, True]
