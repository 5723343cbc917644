"""Definitions of tables: the shipped ones are complete, and every broken rule is named with its place."""

import pytest

from censafe.errors import ConfigError
from censafe.model.groups import GroupTable
from censafe.products.detailed.tables import (
    measured_table,
    parse_household_tables,
    parse_person_tables,
    table_text,
    tables_of,
)

P_TEXT = table_text("persons")
H_TEXT = table_text("households")
T03002 = "{ cell = 0, sum = [1, 6] }, { cell = 1, sum = [1] }, { cell = 6, sum = [6] }"


@pytest.mark.parametrize("key", ["t1t2", "t3", "t4"])
def test_files_of_a_stat_level_sum_the_same_cells(key: str) -> None:
    table: GroupTable = measured_table(key)
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            assert table.sizes[level] == shell.basis
            assert set(range(shell.basis)) == {member for cell in shell.cells for member in cell.members}
    written = [
        sum(len(lay.shells[n].cells) for lay in table.layouts if n in lay.shells) for n in table.shells
    ]
    assert tuple(written) == table.widths


def test_queries_belong_to_the_table_of_their_name_or_to_the_only_one() -> None:
    persons, households = tables_of("safetab-p"), tables_of("safetab-h")
    assert [persons.measured_by(name) for name in ("detailed_only", "stage1", "stage2")] == ["t1t2"] * 3
    assert [households.measured_by(name) for name in ("t3", "t4")] == ["t3", "t4"]
    with pytest.raises(KeyError):
        households.table("t1t2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cuts = [18, 45, 65]", "cuts = [18, 65, 45]", "stat_level 1: cuts must ascend"),
        ("cuts = [18, 45, 65]", "cuts = [18, 45, 116]", "ages from 1 to 115"),
        ("cuts = [18, 45, 65]", 'cuts = ["18"]', "not of the kind that its key needs"),
        ('margins = [["SEX"], ["SEX", "AGE"]]', 'margins = [["AGE"]]', "file t2: margins must be among"),
        ('margins = [["SEX"], ["SEX", "AGE"]]', "margins = [[\"SEX\"], [\"SEX\"]]", "cells with the same code"),
        ('margins = [["SEX"], ["SEX", "AGE"]]', "margins = []", "writes no cell with the measured cells"),
        ('columns = ["AGESTART", "AGEEND", "SEX"]', 'columns = ["SEX"]', "two cells with the same entries"),
        ('columns = ["AGESTART", "AGEEND", "SEX"]', 'columns = ["RACE"]', "columns must be among SEX"),
        ('name = "t2"', 'name = "t9"', r"tables of files \['t2'\], which are not defined"),
        ('folder = "t2"', 'path = "t2"', r"file t2: missing keys \['folder'\], unknown keys \['path'\]"),
        ("code = 2", "code = 1", "sex: two entries have the same code"),
        ("last = 115", "last = ", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_broken_definition_of_persons_is_named(old: str, new: str, message: str) -> None:
    assert old in P_TEXT
    with pytest.raises(ConfigError, match=f"^here.toml: .*({message})"):
        parse_person_tables(P_TEXT.replace(old, new, 1), "here.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (T03002, "{ cell = 0, sum = [1] }", r"T03002 at stat level 1 writes no cell with the measured cells \[1\]"),
        (T03002, "{ cell = 0, sum = [1, 2] }", r"T03002: written cell 0 sums \[2\]; measured are \[1, 6\]"),
        (T03002, "{ cell = 0, sum = [1, 6, 6] }", "a measured cell twice"),
        (T03002, "{ cell = 0, sum = [1, 6] }, { cell = 0, sum = [1] }", "two cells with the same code"),
        (T03002, "{ cell = 9, sum = [1, 6] }", "written cell 9 has no label; labels are 0 to 8"),
        (T03002, "{ cell = 0, of = [1, 6] }", r"T03002, written: missing keys \['sum'\], unknown keys \['of'\]"),
        ("codes = [1, 2, 3] }", "codes = [1, 2] }", "every code of HOUSEHOLD_TYPE must be in exactly one"),
        ("codes = [1, 2, 3] }", "codes = [1, 2, 3, 4] }", "every code of HOUSEHOLD_TYPE must be in exactly one"),
        ("codes = [1, 2, 3, 4]\n", "codes = [1, 3, 2, 4]\n", "column TEN: codes must be consecutive"),
        ('class = "t4"', 'class = "t5"', "T04001: class must be one of t3, t4"),
        ('key = "t4"', 'key = "t5"', "class"),
        ('column = "TEN"', 'column = "RENT"', "class t4: column must be one of HOUSEHOLD_TYPE, TEN"),
        ("stat_level = 3", "stat_level = 4", "t3: the files must have tables for the stat levels 0 to 3"),
        ('folder = "t3/T03002"', 'folders = "t3"', r"table T03002: missing keys \['folder'\]"),
    ],
)  # fmt: skip
def test_a_broken_definition_of_households_is_named(old: str, new: str, message: str) -> None:
    assert old in H_TEXT
    with pytest.raises(ConfigError, match=f"^here.toml: .*{message}"):
        parse_household_tables(H_TEXT.replace(old, new, 1), "here.toml")
