"""Synthetic folders: complete, consistent, repeatable, and never left half written."""

import hashlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import StorageError, UsageError
from censafe.population.synthetic import population
from censafe.population.synthetic.population import synthesize
from censafe.population.synthetic.shipped import synthetic_states
from censafe.population.synthetic.writing import SynthReport
from support.consistency import GEO_COLUMNS, PERSON_COLUMNS, UNIT_COLUMNS, breaches, read_table

Tables = dict[str, list[dict[str, str]]]
STATES = ("17", "35", "72")
PERSONS = 20_000


def tables_of(folder: Path) -> Tables:
    return {table: read_table(folder, table) for table in ("persons", "units", "geo")}


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        found.update(path.read_bytes())
    return found.hexdigest()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> SynthReport:
    out = tmp_path_factory.mktemp("synthetic") / "data"
    return synthesize(out, persons=PERSONS, states=STATES, seed=3)


@pytest.fixture(scope="module")
def tables(report: SynthReport) -> Tables:
    return tables_of(report.folder)


def test_every_consistency_rule_holds(tables: Tables) -> None:
    assert dict(breaches(**tables)) == {}


def test_the_checker_sees_planted_breaches(tables: Tables) -> None:
    planted = {name: [dict(row) for row in rows] for name, rows in tables.items()}
    married = next(unit for unit in planted["units"] if unit["HHT"] == "1")
    married["CPLT"] = "3"
    head = next(person for person in planted["persons"] if person["RELSHIP"] == "20")
    head["RELSHIP"] = "36"
    del planted["persons"][-1]
    assert {"C3", "C4", "C6", "C8"} <= set(breaches(**planted))


def test_the_report_counts_the_records(report: SynthReport, tables: Tables) -> None:
    units = tables["units"]
    vacant = [unit for unit in units if unit["RTYPE"] == "2" and unit["FINAL_POP"] == "0"]
    quarters = [unit for unit in units if unit["RTYPE"] == "4"]
    assert len(tables["persons"]) == PERSONS == report.persons
    assert len(units) == report.housing_units + report.group_quarters == len(tables["geo"])
    assert (len(vacant), len(quarters)) == (report.vacant, report.group_quarters)
    assert min(report.vacant, report.group_quarters) > 0
    assert report.states == 3
    assert sorted([*report.files, report.folder / "synthetic.json"]) == sorted(report.folder.iterdir())


def test_columns_come_in_the_order_of_the_layout(tables: Tables) -> None:
    assert list(tables["persons"][0]) == PERSON_COLUMNS
    assert list(tables["units"][0]) == UNIT_COLUMNS
    assert list(tables["geo"][0]) == GEO_COLUMNS


def test_mafids_ascend_and_are_legal(tables: Tables) -> None:
    for table in ("units", "geo"):
        mafids = [int(row["MAFID"]) for row in tables[table]]
        assert mafids == sorted(set(mafids))
        assert mafids[0] >= 100_000_001
        assert mafids[-1] <= 899_999_999
    persons = [int(row["MAFID"]) for row in tables["persons"]]
    assert persons == sorted(persons)


def test_the_largest_plan_stays_in_the_mafid_range() -> None:
    plan = population.make_plan(399_999_999, ("11",), seed=0)
    last = int(plan.tracts.first_mafid[-1] + 2 * plan.tracts.persons[-1] - 1)
    assert last <= 899_999_999
    assert len(set(plan.places.tract.tolist())) == len(plan.places.tract)
    assert plan.places.tract.max() <= 999_999


def test_a_country_of_fourteen_hundred_million_has_mafids_for_all_units() -> None:
    plan = population.make_plan(1_400_000_000, ("11", "44"), seed=0)
    assert int(plan.tracts.first_mafid[-1]) + 10_000 <= 899_999_999
    small = population.make_plan(2_000_000, ("11", "44"), seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("censafe.population.synthetic.plan._ROOMY", 0)
        tight = population.make_plan(2_000_000, ("11", "44"), seed=0)
    _, units = population.draw_people(tight)
    assert (np.diff(units.mafid) > 0).all()
    assert tight.tracts.first_mafid[-1] < small.tracts.first_mafid[-1]


def test_geography_nests(tables: Tables) -> None:
    known = {state.code: (state.region, state.division) for state in synthetic_states()}
    place_of: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in tables["geo"]:
        assert known[row["TABBLKST"]] == (row["REGIONCE"], row["DIVISIONCE"])
        assert row["TABBLK"][0] == row["TABBLKGRPCE"]
        assert [len(row[name]) for name in GEO_COLUMNS] == [1, 9, 2, 3, 6, 4, 1, 1, 1, 5, 4]
        place_of[row["TABBLKST"], row["TABBLKCOU"], row["TABTRACTCE"]].add(row["PLACEFP"])
    assert {len(places) for places in place_of.values()} == {1}
    blocks = {tuple(row[name] for name in GEO_COLUMNS[2:6]) for row in tables["geo"]}
    assert len(blocks) > 2 * len(place_of)  # most of these counties are of 50 people


def test_states_get_their_share(tables: Tables) -> None:
    state_of = {row["MAFID"]: row["TABBLKST"] for row in tables["geo"]}
    counted: dict[str, int] = defaultdict(int)
    for person in tables["persons"]:
        counted[state_of[person["MAFID"]]] += 1
    population_2020 = {"17": 12_812_508, "35": 2_117_522, "72": 3_285_874}
    total = sum(population_2020.values())
    for state, people in population_2020.items():
        # each county is rounded on its own
        assert counted[state] == pytest.approx(PERSONS * people / total, abs=60)


def test_csv_and_parquet_hold_the_same_records(tmp_path: Path) -> None:
    for file_format in ("csv", "parquet"):
        synthesize(tmp_path / file_format, persons=5_000, states=("50",), seed=9, file_format=file_format)
    assert tables_of(tmp_path / "csv") == tables_of(tmp_path / "parquet")
    text = (tmp_path / "csv" / "persons.csv").read_bytes()
    assert text.startswith(b"RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP\n")
    assert text.endswith(b"\n")
    assert b"\r" not in text
    assert b'"' not in text


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 4), ("b", 4), ("c", 5)):
        synthesize(tmp_path / name, persons=2_000, states=("50", "33"), seed=seed, file_format="csv")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    assert digest(tmp_path / "a") != digest(tmp_path / "c")


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_parts_and_workers_do_not_change_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: population.FileFormat
) -> None:
    whole = synthesize(
        tmp_path / "whole", persons=30_000, states=("10", "11"), seed=1, file_format=file_format
    )
    monkeypatch.setattr(population, "PART_PERSONS", 12_000)
    monkeypatch.setattr(population, "CHUNK_PERSONS", 5_000)
    monkeypatch.setattr(population, "THREADS", 3)
    seen: list[int] = []
    parts = synthesize(
        tmp_path / "parts",
        persons=30_000,
        states=("11", "10"),
        seed=1,
        file_format=file_format,
        progress=seen.append,
    )
    assert tables_of(tmp_path / "whole") == tables_of(tmp_path / "parts")
    assert len(whole.files) == 3
    assert len(parts.files) == 9
    assert (tmp_path / "parts" / "persons" / f"part-00000.{file_format}") in parts.files
    assert all(path.is_file() for path in parts.files)
    assert seen == sorted(seen)
    assert seen[-1] == 30_000


def test_a_filled_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="not empty"):
        synthesize(tmp_path, persons=10, states=None, seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    out = tmp_path / "empty"
    out.mkdir()
    assert synthesize(out, persons=10, states=None, seed=1).persons == 10


@pytest.mark.parametrize(
    ("persons", "chosen", "seed", "message"),
    [
        (0, None, 1, "persons: give a number from 1"),
        (-5, None, 1, "persons: give a number from 1"),
        (1_500_000_001, None, 1, "persons: give a number from 1"),
        (10, ("03",), 1, "'03' unknown"),
        (10, ("44", "RI"), 1, "'RI' unknown"),
        (10, (), 1, "the list is empty"),
        (10, ("44", "44"), 1, "given twice"),
        (10, None, -1, "seed: give zero"),
    ],
)
def test_bad_requests(
    tmp_path: Path, persons: int, chosen: tuple[str, ...] | None, seed: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        synthesize(tmp_path / "out", persons=persons, states=chosen, seed=seed)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_draw_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesize(tmp_path / "out", persons=100, states=("44",), seed=1, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(population.PartWriter, "write", full)
    with pytest.raises(StorageError, match="the disk is full; free space"):
        synthesize(tmp_path / "out", persons=100, states=("44",), seed=1)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be made"):
        synthesize(tmp_path / "file" / "out", persons=10, states=None, seed=1)


@pytest.mark.parametrize("persons", [1, 2, 3, 7, 60])
def test_tiny_populations_are_complete_and_consistent(tmp_path: Path, persons: int) -> None:
    synthesize(tmp_path / "out", persons=persons, states=None, seed=persons)
    tables = tables_of(tmp_path / "out")
    assert len(tables["persons"]) == persons
    assert dict(breaches(**tables)) == {}
