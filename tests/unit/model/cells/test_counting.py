"""Every cell of every table, counted record by record, and the identities between lines and between tables."""

import functools
import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import censafe
from censafe.errors import ConfigError, UsageError
from censafe.model import ProtectedUnit
from censafe.model.cells import counting
from censafe.model.cells.counting import AreaBlocks, tabulated
from censafe.model.cells.lines import CensusTable, parse_table, query_table
from censafe.model.schema import Attribute, Recode, Schema
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables, table_named
from censafe.products.topdown.configuration.shipped import shipped_schemas

TABLES = census_tables("dhc")
RECORDS = 250
BLOCKS = 6
# blocks by area: the first is in none, one area is of blocks that are not neighbors, and one is empty
AREAS = AreaBlocks(np.array(["a", "b", "empty", "c"]), np.array([-1, 1, 0, 1, 0, 3]))
_Values = npt.NDArray[np.float64]


@functools.cache
def records(histogram: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Block and cell of some records in cells that may hold any, the last block being full of one cell."""
    rng = np.random.default_rng(7)
    allowed = np.flatnonzero(shipped_schemas()[SCHEMAS["dhc"][histogram]].allowed())
    # people of group quarters, and households of every type, have few of all cells
    chosen = allowed[rng.integers(0, len(allowed), RECORDS)]
    return np.sort(rng.integers(0, BLOCKS, RECORDS)), chosen


@functools.cache
def blocks(histogram: str) -> SparseLevel:
    block, cell = records(histogram)
    cells = shipped_schemas()[SCHEMAS["dhc"][histogram]].schema.cells
    keys, count = np.unique(block * cells + cell, return_counts=True)
    pointer = np.searchsorted(keys, np.arange(BLOCKS + 1) * cells)
    names = np.array([f"{one}" for one in range(BLOCKS)])
    return SparseLevel(
        names, pointer.astype(np.int64), (keys % cells).astype(np.int32), count.astype(np.int32)
    )


@functools.cache
def values(name: str) -> _Values:
    table = TABLES[name]
    schema = shipped_schemas()[SCHEMAS["dhc"][table.histogram]].schema
    pieces = tabulated(table, schema, blocks(table.histogram), AREAS)
    return np.concatenate([own for _, own in pieces])


def slowly(table: CensusTable) -> _Values:
    """Each line, one record after another."""
    schema = shipped_schemas()[SCHEMAS["dhc"][table.histogram]].schema
    block, cell = records(table.histogram)
    levels = dict(zip(schema.names, np.unravel_index(cell, schema.shape), strict=True))
    found = np.zeros((len(AREAS.names), len(table.lines)))
    for number, line in enumerate(table.lines):
        if line.summed:
            continue
        inside = np.ones(len(cell), np.bool_)
        for attribute, own in line.when.items():
            inside &= np.isin(levels[attribute], list(own))
        for area in range(len(AREAS.names)):
            mine = inside & (AREAS.area[block] == area)
            if not table.median:
                found[area, number] = mine.sum()
            else:
                found[area, number] = median(levels[table.median][mine])
    for number in range(len(table.lines) - 1, -1, -1):
        for one in table.lines[number].summed:
            found[:, number] += found[:, one]
    return found


def median(ages: npt.NDArray[np.int64]) -> float:
    """People of an age are spread over the year: the point below which half of them are."""
    if not len(ages):
        return float("nan")
    spread = np.concatenate(
        [
            np.linspace(age, age + 1, 2 * n + 1)[1::2]
            for age, n in zip(*np.unique(ages, return_counts=True), strict=True)
        ]
    )
    half = len(spread) / 2
    if len(spread) % 2:
        return float(spread[int(half)])
    lower, upper = spread[int(half) - 1], spread[int(half)]
    age = np.floor(lower)  # the year in which half is reached
    width = 1 / (np.floor(spread) == age).sum()
    return float(lower + width / 2) if np.floor(upper) != age else float((lower + upper) / 2)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.needs])
def test_every_cell_is_what_counting_record_by_record_gives(name: str) -> None:
    np.testing.assert_allclose(values(name), slowly(TABLES[name]), rtol=0, atol=1e-9)


def test_lines_are_the_sums_of_the_lines_below_them() -> None:
    checked = 0
    for name, table in TABLES.items():
        found = values(name) if not (table.needs or table.median) else None
        for number, line in enumerate(table.lines if found is not None else ()):
            below = []
            for other in range(number + 1, len(table.lines)):
                if table.lines[other].depth <= line.depth:
                    break
                below += [other] if table.lines[other].depth == line.depth + 1 else []
            if not below or found is None:
                continue
            total = found[:, below].sum(axis=1)
            if line.label.endswith(":"):
                assert np.array_equal(found[:, number], total), (name, line.label)
                checked += 1
            else:  # an "of which"
                assert (found[:, number] >= total).all(), (name, line.label)
    assert checked > 1000


def test_repetitions_add_up_to_their_table() -> None:
    both = {name.rstrip("A") for name in TABLES if name.endswith("A") and name + "" in TABLES}
    for name in sorted(both):
        base = {"PCT17": "P17", "PCT18": "P18"}.get(name, name)
        if TABLES[base].median:
            continue
        races = sum(values(name + suffix) for suffix in "ABCDEFG")
        assert np.array_equal(races, values(base)), name
    for name in ("P12", "P16", "H4"):
        apart = values(name + "I") + sum(values(name + suffix) for suffix in "JKLMNO")
        assert np.array_equal(apart + values(name + "H"), values(name))
        hispanic = sum(values(name + suffix) for suffix in "PQRSTUV")
        assert np.array_equal(hispanic, values(name + "H"))
    tallied = values("P7")[:, [2, 3, 4, 5, 6, 7]]  # each race of those who are not Hispanic
    alone = [values("P12" + suffix)[:, 0] for suffix in ("W", "X", "Y", "Z", "AA", "AB")]
    assert np.array_equal(np.stack(alone, axis=1), tallied)


def test_tables_agree_with_each_other() -> None:
    single = values("PCT12")
    for sex, first in ((1, 2), (25, 106)):
        ages = single[:, first : first + 103]
        groups = [(0, 5), (5, 10), (10, 15), (15, 18), (18, 20), (20, 21), (21, 22), (22, 25)]
        for place, (low, high) in enumerate(groups):
            assert np.array_equal(ages[:, low:high].sum(axis=1), values("P12")[:, sex + 1 + place]), (
                sex,
                low,
            )
    everybody = values("P1")[:, 0]
    for name in ("P3", "P4", "P5", "P8", "P9", "P12", "P17", "PCT12"):
        assert np.array_equal(values(name)[:, 0], everybody), name
    households = values("P16")[:, 0]
    for name in (
        "H4",
        "H9",
        "H12",
        "H13",
        "H14",
        "H15",
        "P19",
        "P20",
        "P21",
        "PCT1",
        "PCT2",
        "PCT4",
        "PCT7",
        "PCT15",
        "HCT2",
    ):
        assert np.array_equal(values(name)[:, 0], households), name
    assert np.array_equal(values("P15")[:, 0] + values("P18")[:, 0], everybody)
    assert np.array_equal(values("H8")[:, 0], values("P15")[:, 0])
    assert np.array_equal(values("P18")[:, 0], values("PCO1")[:, 0])
    kinds = sum(values(f"PCO{number}")[:, 0] for number in (3, 4, 5, 6, 8, 9, 10))
    assert np.array_equal(kinds, values("PCO1")[:, 0])
    assert np.array_equal(values("H3")[:, 2], values("H5")[:, 0])
    assert np.array_equal(values("H1")[:, 0], values("H3")[:, 0])
    assert np.array_equal(values("PCT10")[:, 0], values("P16")[:, 1])
    assert np.array_equal(values("PCT16")[:, 0], values("P16")[:, 6])


def test_many_areas_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLES["P12"]
    schema = shipped_schemas()["dhc-persons"].schema
    monkeypatch.setattr(counting, "_AT_ONCE", 100)
    pieces = list(tabulated(table, schema, blocks("persons"), AREAS))
    assert len(pieces) > 1
    assert [piece.start for piece, _ in pieces] == [0, *(piece.stop for piece, _ in pieces[:-1])]
    assert np.array_equal(np.concatenate([own for _, own in pieces]), values("P12"))


def test_areas_without_anybody_have_zeros_and_no_median() -> None:
    assert not values("P12")[2].any()
    assert np.isnan(values("P13")[2]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lines": "Total:\n. . Deep"}, "stands below no line"),
        ({"lines": "Total: | wealth=1"}, "give one of relgq, sex, age"),
        ({"lines": "Total: | sex=3"}, "whole numbers from 0 to 1"),
        ({"lines": "Total: | sex"}, "give one of relgq, sex, age"),
        ({"lowest": "village"}, "lowest is one of block, tract, county"),
        ({"color": "red"}, "unknown key color"),
    ],
)
def test_definitions_that_say_nothing_are_refused(change: dict[str, str], message: str) -> None:
    entry = {"title": "T", "universe": "U", "histogram": "persons", "lines": "Total:", **change}
    with pytest.raises(ConfigError, match=message):
        parse_table("X1", entry, shipped_schemas()["dhc-persons"])


def test_unknown_tables_are_named_with_their_neighbors() -> None:
    assert table_named("p12a").name == "P12A"
    with pytest.raises(ConfigError, match="Did you mean 'PCT12"):
        table_named("PCT12Q")


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
