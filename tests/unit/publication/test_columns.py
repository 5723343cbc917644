"""Columns of the tidy tables as data."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from censafe.publication.columns import TidyName, coded_words, tidy_columns, tidy_schema, write_codebook_rows

NAMES: tuple[TidyName, ...] = ("tables", "groups", "topdown", "intervals")


@pytest.mark.parametrize("name", NAMES)
def test_every_column_has_a_meaning_and_a_type(name: TidyName) -> None:
    assert all(column.meaning for column in tidy_columns(name).values())
    assert list(tidy_columns(name)) == tidy_schema(name).names


def test_a_column_without_words_or_type_is_that_of_a_table_above() -> None:
    tables, groups = tidy_columns("tables"), tidy_columns("groups")
    assert tables["margin_of_error"] == groups["margin_of_error"]
    assert f"{tables['noise_draws'].meaning}; empty for a weighted mean" == groups["noise_draws"].meaning
    assert groups["noise_draws"].type == pa.int64()
    assert tidy_columns("intervals")["GEOID"] == tables["GEOID"]
    assert tables["cell"].meaning != tidy_columns("topdown")["cell"].meaning


@pytest.mark.parametrize("universe", [True, False])
def test_a_codebook_begins_with_its_warning_and_columns(tmp_path: Path, universe: bool) -> None:
    path = tmp_path / "codebook.csv"
    row = ("cell", "t", "1", "one", "persons")[: 5 if universe else 4]
    write_codebook_rows(path, "topdown", [row], stamp="NOT PRIVATE", universe=universe, reason="why")
    head, warning, *columns, last = csv.reader(path.read_text(encoding="utf-8-sig").splitlines())
    assert head == ["kind", "table", "code", "label", "universe"][: len(row)]
    assert warning[:4] == ["warning", "", "NOT PRIVATE", "why"]
    assert [one[2] for one in columns] == list(tidy_columns("topdown"))
    assert last == list(row)


def test_a_word_stands_once_in_the_dictionary_of_a_column() -> None:
    """Files with a word twice in a dictionary have other bytes now and then."""
    column = coded_words(np.array([2, 0, 1, 2]), ["P12", "P12", "P1"])
    assert column.to_pylist() == ["P1", "P12", "P12", "P1"]
    assert column.dictionary.to_pylist() == ["P12", "P1"]
