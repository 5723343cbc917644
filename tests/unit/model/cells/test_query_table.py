import itertools
from pathlib import Path

import numpy as np
import pytest

import censafe
from censafe.errors import ConfigError, UsageError
from censafe.model import ProtectedUnit
from censafe.model.cells.counting import AreaBlocks, tabulated
from censafe.model.cells.lines import query_table
from censafe.model.schema import Attribute, Recode, Schema
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema

AGE, SEX, HOME = Attribute("age", 4), Attribute("sex", 2), Attribute("home", 3)
SCHEMA = HistogramSchema(
    Schema("people", (AGE, SEX, HOME)),
    ProtectedUnit.PERSON,
    {
        "adult": Recode("adult", "age", ((0,), (1, 2, 3)), True),
        "middle": Recode("middle", "age", ((1,), (2,)), False),
    },
    labels={
        "sex": ("female", "male"),
        "adult": ("child", "adult"),
        "age": ("0 to 14", "15, 16", "17 to 64", "65+"),
    },
)
COUNTS = np.arange(24).reshape(4, 2, 3)


def _values(query: str, where: str = "") -> dict[str, float]:
    table = query_table("Q1", query, "people", SCHEMA, where)
    level = SparseLevel(
        np.array(["1"]), np.array([0, 24]), np.arange(24, dtype=np.int32), COUNTS.reshape(-1).astype(np.int32)
    )
    ((_, values),) = tabulated(table, SCHEMA.schema, level, AreaBlocks(np.array(["1"]), np.array([0])))
    return dict(zip([line.label for line in table.lines], values[0].tolist(), strict=True))


def test_lines_are_the_answers_of_the_query() -> None:
    assert _values("total") == {"Total": COUNTS.sum()}
    assert _values("sex") == {"female": COUNTS[:, 0].sum(), "male": COUNTS[:, 1].sum()}
    expected = {
        f"{age}, {sex}": COUNTS[ages][:, place].sum()
        for (age, ages), (place, sex) in itertools.product(
            {"child": [0], "adult": [1, 2, 3]}.items(), enumerate(("female", "male"))
        )
    }
    assert _values("sex * adult") == expected
    assert _values("middle") == {"middle 0": COUNTS[1].sum(), "middle 1": COUNTS[2].sum()}
    assert len(_values("detailed")) == COUNTS.size and sum(_values("detailed").values()) == COUNTS.sum()


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("sex=1", COUNTS[:, 1]),
        ("sex=Male", COUNTS[:, 1]),
        ("age=1-2 & home=0", COUNTS[1:3, :, 0]),
        ("age=15, 16", COUNTS[1]),
        ("age=0 to 14,65+", COUNTS[[0, 3]]),
        ("sex=female & sex=male", COUNTS[:0]),
    ],
)
def test_a_condition_narrows_all_lines_by_number_or_label(where: str, chosen: np.ndarray) -> None:
    assert _values("total", where) == {"Total": chosen.sum()}
    assert sum(_values("sex * home", where).values()) == chosen.sum()


@pytest.mark.parametrize(
    ("query", "where", "words"),
    [
        ("ages", "", "'ages' is neither an attribute"),
        ("age", "sex=femle", "Did you mean 'female'"),
        ("age", "home=7", "whole numbers from 0 to 2"),
        ("age", "size=1", "give one of age, sex, home"),
        ("age * adult", "", "age"),
    ],
)
def test_what_the_schema_does_not_have_is_named(query: str, where: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        query_table("Q1", query, "people", SCHEMA, where)


def test_a_query_counts_what_a_table_of_the_run_counts(tmp_path: Path) -> None:
    data = censafe.synthesize(tmp_path / "data", persons=300, states=["44"], layout="pl94")
    run = tmp_path / "run"
    censafe.release(censafe.configuration("topdown", "pl94-us", root="State"), data, run, test_key=1)
    shown = censafe.tables(run, geography="county", query=["total", "hispanic"], where="votingage=1").arrow
    table = censafe.tables(run, "P3", "county").arrow.to_pylist()
    adults = {row["GEOID"]: row["value"] for row in table if row["variable"] == "P3_001N"}
    assert {row["GEOID"]: row["value"] for row in shown.to_pylist() if row["table"] == "Q1"} == adults
    assert sum(row["value"] for row in shown.to_pylist() if row["table"] == "Q2") == sum(adults.values())
    mine = tmp_path / "mine.toml"
    entry = 'title = "ADULTS"\nuniverse = "People"\nhistogram = "persons"\n'
    lines = "lines = '''\nTotal: | votingage=1\n. Hispanic | hispanic=1\n'''\n"
    mine.write_text(f"[tables.A1]\n{entry}{lines}", encoding="utf-8")
    own = censafe.tables(run, geography="county", tables_file=mine).arrow.to_pylist()
    assert {row["GEOID"]: row["value"] for row in own if row["variable"] == "A1_001N"} == adults
    hispanic = [row["value"] for row in shown.to_pylist() if row["variable"] == "Q2_002N"]
    assert [row["value"] for row in own if row["variable"] == "A1_002N"] == hispanic
    text = mine.read_text(encoding="utf-8")
    for broken, words in (
        (
            text.replace("persons", "homes"),
            r"broken\.toml, tables\.A1\.histogram: give one of persons, units",
        ),
        ("[table.A1]\n", "missing keys"),
        ("tables = 3\n", "give a table for each"),
        ("[tables]\nA1 = 3\n", "give one of persons, units"),
        (text + "where = 3\n", "table A1: give where, as text"),
        (text + "lowest = 'ward'\n", "lowest is one of block, tract, county"),
        (text + "iterations = 'A-I'\n", "unknown key iterations"),
        (text + "median = 'age'\n", "median 'age' is no attribute; allowed: hhgq, votingage"),
        (f"[tables.A1]\n{entry}lines = ''\n", "there is no line"),
        (text.replace("A1", "'../A1'"), "files and columns are named after it"),
        (text.replace("A1", "P1"), "a table of the run has this name"),
    ):
        (tmp_path / "broken.toml").write_text(broken, encoding="utf-8")
        with pytest.raises(ConfigError, match=words):
            censafe.tables(run, tables_file=tmp_path / "broken.toml")
    for options, words in (
        ({"tables_file": mine, "intervals": "linear"}, "have intervals of `replicates`"),
        ({"where": "sex=1"}, "are of a `query`"),
        ({"query": "h1", "histogram": "persons"}, "neither an attribute"),
        ({"query": "h1", "histogram": "homes"}, "Allowed: persons, units"),
        ({"query": "h1", "intervals": "linear"}, "have intervals of `replicates`"),
    ):
        with pytest.raises((UsageError, ConfigError), match=words):
            censafe.tables(run, geography="county", **options)
