"""Tables of the 2010 Summary File: numbers of lines, hand-made blocks, identities between tables."""

from pathlib import Path

import numpy as np
import pytest

from censafe.attack.people import RACE_BITS, People
from censafe.attack.tables import (
    TypeSpace,
    Workload,
    line_tables,
    read_line_tables,
    tabulate_lines,
)
from censafe.errors import ConfigError
from support.block_tables import block_workload

SINGLE = (*range(101), 105, 110)
BLOCK = "500070001001001"


def some_people(seed: int, persons: int = 400, blocks: int = 6) -> People:
    draw = np.random.default_rng(seed)
    codes = np.array([f"50007000100{1000 + one}" for one in draw.integers(0, blocks, persons)])
    race = np.where(draw.random(persons) < 0.6, draw.integers(0, 6, persons), draw.integers(0, 63, persons))
    return People.of(
        codes,
        sex=draw.integers(0, 2, persons),
        age=draw.integers(0, 111, persons),
        race=race,
        hispanic=draw.random(persons) < 0.3,
    )


def counted(table: str, people: People) -> list[int]:
    space = TypeSpace(SINGLE) if table.startswith("PCT") else None
    workload = Workload.of([line_tables()[table]], space)
    return tabulate_lines(workload, people).sum(axis=0).tolist()


def one(sex: int = 0, age: int = 30, race: int = 0, hispanic: int = 0) -> People:
    return People.of(
        np.array([BLOCK]),
        sex=np.array([sex]),
        age=np.array([age]),
        race=np.array([race]),
        hispanic=np.array([hispanic]),
    )


def test_the_tables_have_the_lines_of_the_summary_file() -> None:
    lines = {name: len(table.lines) for name, table in line_tables().items()}
    expected = {"P1": 1, "P6": 7, "P7": 15, "P8": 71, "P9": 73, "P10": 71, "P11": 73, "P14": 43}
    assert expected.items() <= lines.items()
    assert {size for name, size in lines.items() if name.startswith("P12")} == {49}
    assert {size for name, size in lines.items() if name.startswith("PCT12")} == {209}
    assert sum(table.lowest == "block" for table in line_tables().values()) == 18
    assert sum(table.lowest == "tract" for table in line_tables().values()) == 16


def test_a_block_with_every_set_of_races_once() -> None:
    races = np.arange(63)
    people = People.of(np.full(63, BLOCK), sex=0 * races, age=30 + 0 * races, race=races, hispanic=0 * races)
    leaves = [*range(3, 9), *range(11, 26), *range(27, 47), *range(48, 63), *range(64, 70), 71]
    found = counted("P8", people)
    assert [found[line - 1] for line in leaves] == [1] * 63
    assert [found[line - 1] for line in (1, 2, 9, 10, 26, 47, 63, 70)] == [63, 6, 57, 15, 20, 15, 6, 1]
    assert counted("P6", people) == [int(RACE_BITS.sum()), *[32] * 6]
    assert counted("P9", people)[:3] == [63, 0, 63]
    assert counted("P9", people)[2:] == found[0:1] + found[1:]


@pytest.mark.parametrize(
    ("table", "person", "filled"),
    [
        ("P12", {"age": 85}, [1, 2, 25]),
        ("P12", {"sex": 1, "age": 0}, [1, 26, 27]),
        ("P12H", {"race": 3, "hispanic": 1, "age": 21}, [1, 2, 9]),
        ("P12I", {"hispanic": 1}, []),
        ("P12G", {"race": 6}, [1, 2, 12]),
        ("P14", {"sex": 1, "age": 19}, [1, 23, 43]),
        ("P14", {"age": 20}, []),
        ("P10", {"age": 17}, []),
        ("P11", {"hispanic": 1}, [1, 2]),
        ("PCT12", {"age": 110}, [1, 2, 105]),
        ("PCT12O", {"race": 62, "sex": 1, "age": 104}, [1, 106, 207]),
    ],
)  # fmt: skip
def test_a_person_counts_in_the_right_lines(table: str, person: dict[str, int], filled: list[int]) -> None:
    assert [place + 1 for place, value in enumerate(counted(table, one(**person))) if value] == filled


def test_identities_between_tables() -> None:
    people = some_people(1)
    found = {name: np.array(counted(name, people)) for name in line_tables()}
    assert found["P1"][0] == found["P8"][0] == found["P9"][0] == len(people)
    assert np.array_equal(sum(found[f"P12{letter}"] for letter in "ABCDEFG"), found["P12"])
    assert np.array_equal(found["P12"][2:6].sum() + found["P12"][6:7].sum(), found["P14"][2:22].sum() + 0)
    assert (found["P10"] <= found["P8"]).all()
    assert (found["P11"] <= found["P9"]).all()
    for letter in ("", *"ABCDEFGHI"):
        bins = (
            np.searchsorted(
                [0, 5, 10, 15, 18, 20, 21, 22, *range(25, 60, 5), 60, 62, 65, 67, 70, 75, 80, 85],
                [*range(101), 105, 110],
                "right",
            )
            - 1
        )
        male = np.bincount(bins, found[f"PCT12{letter}"][2:105], 23)
        assert np.array_equal(male, found[f"P12{letter}"][2:25])


def test_tables_of_tracts_do_not_fit_the_types_of_blocks() -> None:
    with pytest.raises(ConfigError, match="tells levels of age apart that the types of persons do not"):
        Workload.of([line_tables()["PCT12"]])


def test_a_table_that_is_left_out() -> None:
    assert set(block_workload().names) - set(block_workload(["P8", "P10"]).names) == {"P8", "P10"}
    with pytest.raises(ConfigError, match="Did you mean"):
        block_workload(["P88"])


MINE = """
[tables.T1]
title = "Adults by origin and sex"
universe = "Adults"
histogram = "persons"
where = "age=18-115"
lines = '''
Total:
. Not Hispanic: | hispanic=0
. . Male | sex=0
. . Female | sex=1
. Hispanic: | hispanic=1 & sum
. . Male | sex=0
. . Female | sex=1
'''
"""


def test_tables_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE, encoding="utf-8")
    workload = Workload.of(list(read_line_tables(path).values()))
    assert workload.labels[1:3] == ["Total: Not Hispanic", "Total: Not Hispanic: Male"]
    people = some_people(3)
    adult, hispanic, sex = people.age >= 18, people.hispanic == 1, people.sex
    expected = [adult, *(adult & ~hispanic & one for one in (True, sex == 0, sex == 1))]
    expected += [adult & hispanic & one for one in (True, sex == 0, sex == 1)]
    assert tabulate_lines(workload, people).sum(axis=0).tolist() == [int(one.sum()) for one in expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no table"),
        ("tables = [", "mine"),
        (MINE.replace('"persons"', '"households"'), "tables.T1.histogram"),
        (MINE.replace("title", "subtitle"), "table T1: give title"),
        (MINE.replace("where", 'median = "age"\nwhere'), "medians are no sums"),
        (MINE.replace("hispanic=0", "relgq=0"), "tells relgq apart, which the attacked records do not have"),
        (MINE.replace("Hispanic: | hispanic=1 & sum\n. . Male | sex=0", "Hispanic: | sum\n. . Male | hispanic=1 & sex=0"), "differ in more than one attribute"),
    ],
)  # fmt: skip
def test_a_file_of_tables_that_breaks_a_rule(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        assert Workload.of(list(read_line_tables(path).values())).weights
