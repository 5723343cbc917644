"""Block histograms from columns: what is read, and that everything wrong is told at once without values."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CensafeError, DataError, StorageError
from censafe.geography.files import column_names, read_table
from censafe.geography.spines.tree import E2E_1940, PL94_PR, PL94_US, LevelRule
from censafe.population.blocks.columns import batches
from censafe.population.files.delimited import csv_relation
from censafe.population.files.relation import TableFiles
from censafe.population.findings import Finding
from censafe.publication.measurements.geography import read_exact_totals
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.histograms import E2E, PL94, dense, flat_index, units_table, write_table
from support.shared import shared_data
from support.topdown_shared import tract_counts, write_illinois

BLOCKS = ["4400100010011000", "4400100010011001", "4400700030033001"]
LAYOUT = pl94_layout(PL94, PL94_PR)
PERSONS = {
    "geocode": [BLOCKS[2], BLOCKS[0], BLOCKS[0]],
    "hhgq": [5, 0, 0],
    "votingage": [1, 1, 0],
    "hispanic": [0, 1, 0],
    "cenrace": [62, 0, 3],
    "count": [4, 2, 1],
}
UNITS = units_table(BLOCKS, [[3, *[0] * 7], [0] * 8, [0, 0, 0, 0, 0, 2, 0, 0]], [2, 0, 0])


def _folder(tmp_path, persons=None, units=None):
    write_table(tmp_path / "histogram.parquet", PERSONS if persons is None else persons)
    write_table(tmp_path / "units.parquet", UNITS if units is None else units)
    return tmp_path


def _problems(folder, layout=LAYOUT) -> str:
    with pytest.raises(DataError) as caught:
        read_blocks(folder, layout)
    return str(caught.value)


def test_attributes_and_flat_cells_give_the_same_histograms(tmp_path):
    by_attribute = read_blocks(_folder(tmp_path), LAYOUT)
    cells = [
        flat_index(PL94, [PERSONS[name][row] for name in PL94.names]) for row in range(len(PERSONS["count"]))
    ]
    flat = {"geocode": PERSONS["geocode"], "cell": cells, "count": PERSONS["count"]}
    by_cell = read_blocks(_folder(tmp_path, flat), LAYOUT)
    expected = np.zeros((3, PL94.cells), np.int64)
    expected[[2, 0, 0], cells] = PERSONS["count"]
    assert np.array_equal(expected, dense(by_attribute.persons, PL94.cells))
    assert np.array_equal(expected, dense(by_cell.persons, PL94.cells))


def test_empty_blocks_stay_and_facilities_and_occupancy_follow_the_spine(tmp_path):
    data = read_blocks(_folder(tmp_path), LAYOUT)
    assert data.spine.leaf.geounits.tolist() == BLOCKS
    assert data.facilities.tolist() == [[3, *[0] * 7], [0] * 8, [0, 0, 0, 0, 0, 2, 0, 0]]
    assert data.units is not None
    assert dense(data.units, 2).tolist() == [[1, 2], [0, 0], [0, 0]]
    assert data.imputed == ()
    assert [path.name for path in data.files] == ["histogram.parquet", "units.parquet"]


def test_rows_without_count_are_persons(tmp_path):
    rows = [0, 0, 0, 0, 1, 1, 2]
    records = {name: [values[row] for row in rows] for name, values in PERSONS.items() if name != "count"}
    expected = read_blocks(_folder(tmp_path), LAYOUT).persons
    actual = read_blocks(_folder(tmp_path, records), LAYOUT).persons
    assert np.array_equal(dense(expected, PL94.cells), dense(actual, PL94.cells))


def test_folders_of_files_and_geocodes_without_block_group(tmp_path):
    short = [code[:11] + code[12:] for code in PERSONS["geocode"]]
    (tmp_path / "histogram").mkdir()
    (tmp_path / "units").mkdir()
    for part in range(3):
        rows = {name: values[part : part + 1] for name, values in {**PERSONS, "geocode": short}.items()}
        write_table(tmp_path / "histogram" / f"{part}.parquet", rows)
        write_table(tmp_path / "units" / f"{part}.parquet", {k: v[part : part + 1] for k, v in UNITS.items()})
    data = read_blocks(tmp_path, LAYOUT)
    assert data.spine.leaf.geounits.tolist() == BLOCKS
    assert int(data.persons.count.sum()) == 7
    assert len(data.files) == 6


def test_confidential_data_show_no_counts_and_are_not_pickled(tmp_path):
    data = read_blocks(_folder(tmp_path), LAYOUT)
    assert "count" not in repr(data)
    with pytest.raises(TypeError, match="confidential"):
        pickle.dumps(data)


def test_layout_of_1940_passes_vacant_units_through(tmp_path):
    codes = ["4400010001", "4400010002"]
    units = {
        "geocode": codes,
        **{f"gq{level}": [int(level == 0), 0] for level in range(8)},
        "vacant": [0, 5],
    }
    persons = {
        "geocode": codes[:1],
        "hhgq": [0],
        "age18plus": [1],
        "hispanic": [0],
        "race": [5],
        "count": [99],
    }
    layout = e2e_layout(E2E, E2E_1940)
    data = read_blocks(_folder(tmp_path, persons, units), layout)
    assert data.facilities[:, 8].tolist() == [0, 5]
    assert data.units is None
    assert int(data.persons.count.sum()) == 99
    crowded = {**persons, "count": [100]}
    assert "too-many-persons" in _problems(_folder(tmp_path, crowded, units), layout)


def test_all_findings_about_rows_come_together_without_values(tmp_path):
    persons = {
        "geocode": ["4400100010011000", "440010001001100x", "4400100010012001", "5500100010011000", None],
        "hhgq": [8, 0, 0, 0, 0],
        "votingage": [0.0, 0.5, 0.0, 0.0, None],
        "hispanic": [0, -1, 0, 0, 0],
        "cenrace": [7777, 0, 0, 0, 0],
        "count": [-5, 2, 1, 2**31, 1],
    }
    text = _problems(_folder(tmp_path, persons))
    for part in (
        "geocode: geocodes of another form (2 rows) [form]",
        "geocode: blocks outside their block group (1 row) [nesting]",
        "geocode: blocks that the unit file does not have (2 rows) [unknown-block]",
        "hhgq: values outside the allowed range (1 row) [domain]; allowed: whole numbers from 0 to 7",
        "votingage: values missing (1 row) [missing]",
        "votingage: values that are not whole (1 row) [fractional]",
        "hispanic: negative values (1 row) [negative]",
        "cenrace: values outside the allowed range (1 row) [domain]",
        "count: negative values (1 row) [negative]",
        "count: values outside the allowed range (1 row) [domain]",
    ):
        assert part in text
    for value in ("7777", "-5", "55001", "100x", "0.5", "2,147,483,648", "2147483648"):
        assert value not in text


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"geocode": [BLOCKS[2], BLOCKS[0], BLOCKS[0]], "hispanic": [0, 1, 1], "votingage": [1] * 3, "cenrace": [0] * 3,
          "hhgq": [5, 0, 0]}, "[duplicate]"),
        ({"geocode": [BLOCKS[2], BLOCKS[1], BLOCKS[0]]}, "[no-facility]"),
        ({"hhgq": [3, 0, 0]}, "[no-facility]"),
        ({"count": [1, 2, 1]}, "[empty-facility]"),
        ({"count": [199_999, 2, 1]}, "[too-many-persons]"),
    ],
)  # fmt: skip
def test_persons_that_do_not_fit_stop(tmp_path, monkeypatch, change, rule):
    folder = _folder(tmp_path, {**PERSONS, **change})
    found = _problems(folder)
    assert rule in found
    monkeypatch.setattr("censafe.population.blocks.layout._BLOCKS", 2)
    assert _problems(folder) == found


def test_minors_in_nursing_facilities_stop(tmp_path):
    units = units_table(BLOCKS, [[3, 0, 0, 1, 0, 0, 0, 0], [0] * 8, [0, 0, 0, 0, 0, 2, 0, 0]], [2, 0, 0])
    persons = {**PERSONS, "hhgq": [5, 0, 3]}
    assert "cells that must be empty have persons (1 row) [must-be-empty]" in _problems(
        _folder(tmp_path, persons, units)
    )


def test_counts_that_sum_above_32_bits_over_records_stop_as_duplicates(tmp_path):
    persons = {"geocode": [BLOCKS[0]] * 2, "cell": [0, 0], "count": [2**31 - 1] * 2}
    text = _problems(_folder(tmp_path, persons))
    assert "[duplicate]" in text
    assert "[too-large]" in text


@pytest.mark.parametrize(
    ("units", "rule"),
    [
        ({**UNITS, "occupied": [4, 0, 0]}, "[occupied]"),
        ({**UNITS, "geocode": [BLOCKS[0], *BLOCKS[:2]]}, "[duplicate]"),
        ({**UNITS, "gq1": [0, -1, 0]}, "[negative]"),
        ({**UNITS, "gq1": ["0", "1", "0"]}, "[type]"),
        ({**UNITS, "geocode": [1, 2, 3]}, "[type]"),
        ({name: values for name, values in UNITS.items() if name != "gq7"}, "gq7: columns missing [header]"),
        ({name: values[:0] for name, values in UNITS.items() if name != "geocode"} | {"geocode": np.array([], "U1")},
         "[header-only]"),
    ],
)  # fmt: skip
def test_unit_files_that_break_a_rule_stop(tmp_path, units, rule):
    assert rule in _problems(_folder(tmp_path, None, units))


def test_missing_columns_and_files_that_are_not_parquet(tmp_path):
    assert "hhgq, votingage, hispanic, cenrace: columns missing" in _problems(
        _folder(tmp_path, {"geocode": BLOCKS, "count": [1, 1, 1]})
    )
    (tmp_path / "histogram.parquet").write_bytes(b"no")
    assert "the content cannot be read" in _problems(tmp_path)


def test_folders_without_the_files_say_which(tmp_path):
    with pytest.raises(StorageError, match="no such data folder"):
        read_blocks(tmp_path / "none", LAYOUT)
    assert "no input file for histogram and units" in _problems(tmp_path)
    _folder(tmp_path)
    (tmp_path / "units").mkdir()
    write_table(tmp_path / "units" / "a.parquet", UNITS)
    assert "units: several candidates found (units.parquet, units/*.parquet)" in _problems(tmp_path)


def test_blocks_of_two_states_need_the_nation_as_root(tmp_path):
    units = {**UNITS, "geocode": [*BLOCKS[:2], "5000700030033001"]}
    persons = {**PERSONS, "geocode": ["5000700030033001", BLOCKS[0], BLOCKS[0]]}
    folder = _folder(tmp_path, persons, units)
    assert "2 geounits at level State" in _problems(folder)
    assert read_blocks(folder, pl94_layout(PL94, PL94_US)).spine.levels[1].nodes == 2


def test_tracts_of_illinois_as_a_user_histogram(tmp_path):
    tracts, counts, quarters = tract_counts()
    rules = (LevelRule("State", 2), LevelRule("County", 5), LevelRule("Tract", 11))
    data = read_blocks(write_illinois(tmp_path), pl94_layout(PL94, rules))
    held = dense(data.persons, PL94.cells).reshape(-1, 8, 2, 126)
    order = np.argsort(tracts["geoid"])
    assert np.array_equal(counts[order], held.sum(axis=1))
    assert np.array_equal(quarters[order, 1:], held.sum(axis=(2, 3))[:, 1:])
    assert [level.nodes for level in data.spine.levels] == [1, 102, 3265]
    assert int(data.persons.count.sum()) == 12_812_508
    assert int(data.facilities[:, 0].sum()) == 5_426_429
    assert data.units is not None
    assert dense(data.units, 2).sum(axis=0).tolist() == [5_426_429 - 4_998_395, 4_998_395]


def test_blocks_of_hawaii_as_a_user_histogram(tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(shared_data("population/hi2020_blocks.parquet")).to_pydict()
    groups = {"hisp": (1, 5), **{g: (0, race) for race, g in
              enumerate(("white", "black", "aian", "asian", "nhpi", "other", "two"))}}  # fmt: skip
    columns: dict[str, list[np.ndarray]] = {name: [] for name in PERSONS}
    for group, (hispanic, race) in groups.items():
        adults = np.array(table[f"vap_{group}"])
        for age, count in ((1, adults), (0, np.array(table[f"pop_{group}"]) - adults)):
            held = {"hhgq": 0, "votingage": age, "hispanic": hispanic, "cenrace": race}
            columns["geocode"].append(np.array(table["geoid"]))
            columns["count"].append(count)
            for name, level in held.items():
                columns[name].append(np.full(len(count), level))
    persons = {name: np.concatenate(parts) for name, parts in columns.items()}
    inhabited = (np.array(table["pop"]) > 0).astype(int)
    units = units_table(
        table["geoid"], np.column_stack([inhabited, *[inhabited * 0] * 7]).tolist(), inhabited
    )
    data = read_blocks(_folder(tmp_path, persons, units), LAYOUT)
    assert [level.nodes for level in data.spine.levels] == [1, 5, 461, 1083, 14_732]
    assert int(data.persons.count.sum()) == 1_455_271
    assert int((np.diff(data.persons.node_ptr) == 0).sum()) == 4_563


def _csv(path, columns):
    names = list(columns)
    rows = zip(*(columns[name] for name in names), strict=True)
    lines = [",".join(names), *(",".join("" if v is None else str(v) for v in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def test_csv_gives_the_same_histograms_and_findings(tmp_path):
    expected = read_blocks(_folder(tmp_path), LAYOUT)
    other = tmp_path / "csv"
    other.mkdir()
    _csv(other / "histogram.csv", PERSONS)
    _csv(other / "units.csv", UNITS)
    actual = read_blocks(other, LAYOUT)
    assert np.array_equal(dense(expected.persons, PL94.cells), dense(actual.persons, PL94.cells))
    assert np.array_equal(expected.facilities, actual.facilities)
    _csv(other / "histogram.csv", {**PERSONS, "count": [0.5, None, -1], "geocode": [*BLOCKS[:2], "x"]})
    text = _problems(other)
    for rule in ("fractional", "missing", "negative", "form"):
        assert f"(1 row) [{rule}]" in text
    _csv(other / "histogram.csv", {**PERSONS, "count": [1, "secret", 1]})
    text = _problems(other)
    assert "the content cannot be read" in text
    assert "secret" not in text
    _csv(other / "histogram.csv", {"geocode": BLOCKS})
    assert "columns missing" in _problems(other)


def test_names_of_columns_that_are_no_text_are_a_finding(tmp_path):
    folder = _folder(tmp_path)
    path = folder / "histogram.parquet"
    path.write_bytes(path.read_bytes().replace(b"votingage", b"voting\xb4ge"))
    assert "histogram.parquet: the content cannot be read" in _problems(folder)


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        (
            "400100010011000",
            "[lost-zero]",
        ),  # 0400100010011000 of Arizona as 15 digits, which no county of state 40 has
        ("10010201001001", "[lost-zero]"),  # 010010201001001 of Alabama without its zero
        ("99990201001001", "[form]"),  # with a zero before it, of no county
        ("100102010011001", "[lost-zero]"),  # 0100102010011001 of Alabama, not a block of Delaware
        ("4403100010011000", "[unknown-county]"),
        ("4400100010021000", "[nesting]"),
    ],
)
def test_geocodes_that_lost_a_zero_are_told_from_those_of_other_places(tmp_path, code, rule):
    units = {**UNITS, "geocode": [*BLOCKS[:2], code]}
    assert rule in _problems(_folder(tmp_path, units=units), pl94_layout(PL94, PL94_US))


# First lines that are no headers are findings, not faults of the program.


TEXTS = {
    "lines end as on old computers": b"geocode,cell,count\r4400103010011000,1,2\r",
    "a name without an end": b"geocode,cell,count," + b"x" * 200_000 + b"\n1,2,3,4\n",
}


@pytest.mark.parametrize("text", TEXTS)
def test_headers_that_cannot_be_parsed_are_findings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "histogram.csv"
    path.write_bytes(TEXTS[text])
    found: list[Finding] = []
    assert list(batches(path, (("geocode", "cell", "count"),), (), found)) == []
    assert [one.severity for one in found] == ["stop"]
    relation = csv_relation(TableFiles("persons", "text", (path,), "persons"))
    assert relation.findings
    for read in (read_table, column_names):
        with pytest.raises(DataError, match=r"histogram\.csv"):
            read(path, "the list")
    with pytest.raises(CensafeError):
        read_exact_totals(path)
