"""Definitions of tables: the shipped ones are complete, and every broken rule is named with its place."""

import pytest

from censafe.errors import ConfigError
from censafe.model.groups import GroupTable
from censafe.products.detailed.tables import (
    measured_table,
    parse_tables,
    table_text,
    tables_of,
)

P_TEXT = table_text("safetab-p")
H_TEXT = table_text("safetab-h")


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
        ('"15-17", "18-19"', '"18-19", "15-17"', "column QAGE: cells must be consecutive codes, in ascending order"),
        ('"80-84", "85-115"', '"80-84"', r"line 54 \(Male, 85 years and over\) must hold most detailed cells"),
        ('"85-115",', '"85-116",', "give distinct levels, whole numbers from 0 to 115"),
        ('cells = ["each 1-2"]', 'cells = ["each 1-2", "each 2-2"]', "column SEX: cells must be consecutive codes"),
        ("codes = 116", 'codes = "116"', "not of the kind that its key needs"),
        (". . Male, under 18 years | QAGE=0-17", ". . Male, under 18 years | QAGE=0-16", "line 2 .* no part of one"),
        (". . Male, under 18 years | QAGE=0-17", ". . Male, under 18 years | SEX=0", "line 2 .* must hold most detailed cells"),
        (". . Male, under 18 years | QAGE=0-17", ". . Male, under 18 years | AGE=0-17", "condition 'AGE=0-17': give one of SEX, QAGE"),
        (". . Male, under 18 years | QAGE=0-17", ". . Male, under 18 years | QAGE=0-44", r"at stat level 1 the lines with none below them, \[2, .* once"),
        (". Male | SEX=1", ". Male | SEX=1-2", "at stat level 1 the lines with none below them"),
        ("Total\n", "Total | SEX=1,2\n", r"T01001 at stat level 0: line 0 \(Total\) must be of one sex or all"),
        ('lines = "1-10"', 'lines = "1-9"', "at stat level 1 the lines with none below them"),
        ('lines = "1-10"', 'lines = "1-80"', "T02001: .*lines: give distinct levels, whole numbers from 0 to 78"),
        ('columns = ["AGESTART", "AGEEND", "SEX"]', 'columns = ["SEX"]', "two cells with the same entries"),
        ('columns = ["AGESTART", "AGEEND", "SEX"]', 'columns = ["RACE"]', "columns must be among AGESTART"),
        ('folder = "t2"', 'path = "t2"', r"file t2: missing keys \['folder'\], unknown keys \['path'\]"),
        ("codes = 116", "codes = ", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_broken_definition_of_persons_is_named(old: str, new: str, message: str) -> None:
    assert old in P_TEXT
    with pytest.raises(ConfigError, match=f"(?s)^here.toml: .*({message})"):
        parse_tables(P_TEXT.replace(old, new, 1), "here.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('lines = "0,1,6"', 'lines = "1,2,6"', "stat level 1 the lines with none below them, .2, 6., must hold every"),
        ('lines = "0-3,6-8"', 'lines = "0,0"', "T03003: .*lines: give distinct levels"),
        ('lines = "0,1,6"', 'line = "0,1,6"', r"file T03002: missing keys \['lines'\], unknown keys \['line'\]"),
        ("HOUSEHOLD_TYPE=1-3", "HOUSEHOLD_TYPE=1,2", r"line 5 \(Female householder, no spouse present\) must hold"),
        ("HOUSEHOLD_TYPE=1-3", "HOUSEHOLD_TYPE=1-4", "at stat level 1 the lines with none below them"),
        ("HOUSEHOLD_TYPE=4,5", "HOUSEHOLD_TYPE=5", r"line 7 \(Householder living alone\) must hold"),
        ("Other family | HOUSEHOLD_TYPE=2,3", "Other family | TEN=1", "stat level 2 the lines with none below them"),
        ('cells = ["each 1-4"]', 'cells = ["each 1-2", "4", "3"]', "column TEN: cells must be consecutive codes"),
        ('cells = ["each 1-4"]', 'cells = ["1-2", "3-4"]', r"line 1 \(Owned with a mortgage or a loan\)"),
        ('key = "t4"', 'key = "t5"', "table t5, file T04001: columns must be among .*T5_DATA_CELL"),
        ('product = "safetab-h"', 'product = "safetab-h"\ncolumn = 1', r"unknown keys \['column'\]"),
        ("level = 3", "level = 4", "t3: the files must have tables for the stat levels 0 to 3"),
        ('name = "T03002"\nfolder = "t3/T03002"', 'name = "T03001"\nfolder = "t3/T03001"', "two files have the same name"),
        ('folder = "t3/T03002"', 'folders = "t3"', r"file T03002: missing keys \['folder'\]"),
    ],
)  # fmt: skip
def test_a_broken_definition_of_households_is_named(old: str, new: str, message: str) -> None:
    assert old in H_TEXT
    with pytest.raises(ConfigError, match=f"(?s)^here.toml: .*{message}"):
        parse_tables(H_TEXT.replace(old, new, 1), "here.toml")


def test_a_file_writes_sums_of_all_measured_lines_once() -> None:
    first = 'lines = "0" },\n  { level = 2'
    one_level = '{ level = 1, table = "T02001", title = "Sex by age (4 age groups)", lines = "1-10" }'
    owned, other = (
        H_TEXT.index(". Owned with"),
        ". Owned | TEN=1,2\n. . With a mortgage | TEN=1\n. Others | TEN=2-4\n",
    )
    crossed = H_TEXT[:owned] + other + H_TEXT[H_TEXT.index('"""', owned) :]
    for text, message in (
        (P_TEXT.replace(first, first.replace("0", "1", 1)), "T01001 at stat level 1 must write sums of all"),
        (P_TEXT.replace(one_level, f"{one_level},\n  {one_level}"), "file t2: two tables of one stat level"),
        (crossed, r"T04002 at stat level 1: line 1 \(Owned\) is no sum of the measured lines"),
        (
            H_TEXT.replace('"t4"', '"t5"').replace("T4_DATA", "T5_DATA"),
            "the keys must be t3, t4, in this order",
        ),
    ):
        assert text not in (P_TEXT, H_TEXT)
        with pytest.raises(ConfigError, match=message):
            parse_tables(text)
