"""Areas of two trees that do not nest: lists, parts, and what is wrong with them."""

import itertools
from pathlib import Path

import pytest

from censafe.errors import ConfigError, DataError
from censafe.population.records import areas
from support.own_records import own_config, read_own, rules_of, text_of

LEVELS = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Region" }, { name = "Town" }, { name = "Part" }]'
TREES = '{ trees = [["region", "town"], ["wide", "fine"]] }'
SCHEMA = '[schemas.residents]\nattributes = [{ name = "sex", levels = 2, labels = ["F", "M"] }]\n'
LISTED = (
    ("North", "a", "W1", "f1"),
    ("North", "a", "W1", "f2"),
    ("North", "b", "W1", "f2"),
    ("South", "c", "W2", "f3"),
    ("South", "c", "W1", "f1"),
)
HEADER = ("region", "town", "wide", "fine")
PEOPLE = text_of(
    [
        ("North", "a", "f2", "F"),
        ("North", "b", "f2", "M"),
        ("North", "b", "f2", "M"),
        ("South", "c", "f3", "F"),
    ],
    header=("region", "town", "fine", "sex"),
)


def config(area_list: str = '"areas.csv"', trees: str = TREES, levels: str = LEVELS, more: str = "") -> str:
    read = f'[read]\npersons = "persons.csv"\ngeography = {trees}\nareas = {area_list}\n{more}\n'
    return own_config(read, schema=SCHEMA, levels=levels)


def listed(rows: tuple[tuple[str, ...], ...] = LISTED) -> str:
    return text_of(rows, header=HEADER)


def test_parts_are_the_listed_combinations_and_say_in_which_area_of_the_other_tree_they_lie(
    tmp_path: Path,
) -> None:
    data = read_own(tmp_path, config(), {"persons.csv": PEOPLE, "areas.csv": listed()})
    assert data.codes is not None
    assert data.blocks is not None
    parts = data.codes.levels[-1]
    codes = [
        (*path[:2], wide, fine)
        for path, wide, fine in zip(parts.codes, *data.codes.others.values(), strict=True)
    ]
    assert sorted(codes) == sorted(LISTED)
    assert [path[2] for path in parts.codes] == list(data.codes.others["fine"])
    rows = data.codes.files["other_areas.csv"].splitlines()
    assert rows[0] == "geocode,wide,fine"
    assert [row.split(",")[0] for row in rows[1:]] == parts.geocodes.tolist()
    counts = data.blocks.others["residents"]
    found = dict(zip(codes, (counts.node_ptr[1:] - counts.node_ptr[:-1]).tolist(), strict=True))
    assert {code for code, cells in found.items() if cells} == {LISTED[1], LISTED[2], LISTED[3]}


def test_a_list_for_each_tree_makes_every_combination_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    towns, grid = sorted({row[:2] for row in LISTED}), sorted({row[2:] for row in LISTED})
    files = {
        "persons.csv": PEOPLE,
        "towns.csv": text_of(towns, header=HEADER[:2]),
        "grid.csv": text_of(grid, header=HEADER[2:]),
    }
    data = read_own(tmp_path, config('["towns.csv", "grid.csv"]'), files)
    assert data.codes is not None
    codes = {
        (*path[:2], wide, path[2])
        for path, wide in zip(data.codes.levels[-1].codes, data.codes.others["wide"], strict=True)
    }
    assert codes == {(*town, *cell) for town, cell in itertools.product(towns, grid)}
    monkeypatch.setattr(areas, "MOST_COMBINATIONS", 8)
    with pytest.raises(
        DataError, match="3 and 3 areas in the two lists make 9 combinations; allowed: at most 8"
    ):
        read_own(tmp_path, config('["towns.csv", "grid.csv"]'), files)


def test_records_may_be_the_list(tmp_path: Path) -> None:
    rows = [(*row, "F") for row in LISTED[:3]]
    data = read_own(tmp_path, config('"records"'), {"persons.csv": text_of(rows, header=(*HEADER, "sex"))})
    assert data.codes is not None
    assert sorted(path[2] for path in data.codes.levels[-1].codes) == ["f1", "f2", "f2"]
    assert data.codes.others["wide"] == ("W1",) * 3


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ((*LISTED, ("South", "d", "W1", "f3")), "not-nested"),
        ((*LISTED, ("South", "d", "", "f9")), "missing"),
        ((*LISTED, ("South", "d", "W1", "")), "missing"),
        ((*LISTED, LISTED[0]), "duplicate"),
    ],
)
def test_lists_that_break_a_rule(tmp_path: Path, rows: tuple[tuple[str, ...], ...], rule: str) -> None:
    data = read_own(tmp_path, config(), {"persons.csv": PEOPLE, "areas.csv": listed(rows)})
    assert data.blocks is None
    assert rule in rules_of(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (config(trees='{ trees = [["region", "town"]] }'), "give two lists of columns"),
        (config(trees='{ trees = [["region", "town"], ["wide", "town"]] }'), "give two lists of columns"),
        (config(trees='{ trees = [["region", "town"], []] }'), "give two lists of columns"),
        (config(trees='{ tree = [["region", "town"], ["fine"]] }'), "give two lists of columns"),
        (config(trees='{ trees = [["town"], ["wide", "fine"]] }'), "3 levels below the root"),
        (
            config(trees='{ trees = [["region", "town"], ["Region", "fine"]] }'),
            "Region is the name of a level",
        ),
        (config(area_list='["a.csv", "b.csv", "c.csv"]'), "or a list for each tree"),
        (config(more="lengths = [1, 2]"), "leave lengths out"),
    ],
)
def test_configurations_that_break_a_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_own(tmp_path, text, {"persons.csv": PEOPLE, "areas.csv": listed()})
