"""Tables of a user: what a TOML file may name, and what it is told when it names something else."""

from pathlib import Path

import pytest

from censafe.errors import CensafeError, ConfigError, StorageError, UsageError
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import fill_book
from censafe.evaluation.summary.tables import read_book, shipped_book
from support.summary import PUBLISHED, TRUE, adults, filled_of, lists_of, numbers_of, pl94_pair

OWN = """
[areas.precinct]
lists = ["precinct"]
[columns]
short = [["Areas", "n_units"], ["Worst", "max_ae"]]
[rows]
own = [["Everybody", ""], ["White alone adults", "18 and over & white alone"]]
[classes.precinct-size]
items = [["All precincts"], ["Small precincts", 0, 100], ["Large precincts", 100]]
[[tables]]
number = "Own 1"
sheet = "Ours"
title = "Precincts by size"
universe = "Total population"
geography = "Precincts"
columns = "short"
parts = [{ areas = "precinct", classes = "precinct-size", rows = "own" }]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_own_areas_classes_rows_and_columns_make_a_table_after_the_shipped_ones(tmp_path: Path) -> None:
    book = read_book(written(tmp_path, OWN))
    assert (*shipped_book().tables, book.tables[-1]) == book.tables
    assert (*shipped_book().sheets, "Ours") == book.sheets
    pair = pl94_pair(adults(TRUE), adults(PUBLISHED))
    lists = lists_of(pair.spine, precinct=["a", "a", "b", "c", "c", ""])
    table = filled_of(SummarySources((pair,), lists), book)["Own 1"]
    assert numbers_of(table, "Everybody", "All precincts") == [3, 10.0]
    assert numbers_of(table, "White alone adults", "Small precincts") == [2, 3.0]
    assert numbers_of(table, "Everybody", "Large precincts") == [1, 10.0]
    assert [one.line.label for one in table.rows] == ["Everybody", "White alone adults"] * 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[areas.precinct]", "[arias.precinct]", "unknown key arias"),
        ('"max_ae"', '"max_ea"', "no metric 'max_ea'"),
        ('areas = "precinct",', 'areas = "precincts",', "no areas 'precincts'"),
        ('rows = "own"', 'rows = "others"', "no rows 'others'"),
        ('rows = "own"', 'measure = "rate", rate = "x"', "no rate 'x'"),
        ('rows = "own"', 'measure = "guess"', "no measure 'guess'"),
        ('rows = "own"', 'color = "own"', "unknown key color"),
        ('sheet = "Ours"', 'sheet = "Ours/theirs"', "cannot be a name"),
        ('number = "Own 1"', 'number = "Table 1.a"', "two tables have one number"),
        ('universe = "Total population"', "", "no key universe"),
        ('parts = [{ areas = "precinct", ', "parts = [{ ", "not of the form"),
        ("[[tables]]", "[[tables", "not valid TOML"),
    ],
)
def test_a_file_that_names_something_else_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_book(written(tmp_path, OWN.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        (
            'rows = "own"',
            'measure = "condition", condition = "one-sox"',
            ConfigError,
            "no condition 'one-sox'",
        ),
        ("white alone", "whyte alone", UsageError, "'whyte alone' names no set of cells"),
    ],
)
def test_conditions_and_sets_are_checked_before_anything_is_filled(
    tmp_path: Path, old: str, new: str, kind: type[CensafeError], message: str
) -> None:
    pair = pl94_pair(adults(TRUE), adults(PUBLISHED))
    lists = lists_of(pair.spine, precinct=["a", "a", "b", "c", "c", ""])
    book = read_book(written(tmp_path, OWN.replace(old, new)))
    with pytest.raises(kind, match=message):
        fill_book(book, SummarySources((pair,), lists))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read_book(tmp_path / "none.toml")
