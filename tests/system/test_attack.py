"""``censafe attack reconstruct`` from the command line and from Python: its files and page, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from censafe import reconstruct, synthesize
from censafe.attack.reading import read_people
from support.commands import CommandLine

PEOPLE = 1_200
HEAD = "person_id,block,sex,age,race,hispanic"
PERSONS = (
    "1,500070001001001,1,30,1,0",
    "2,500070001001001,2,31,2,0",
    "3,500070001001002,F,40,63,1",
    "4,500070001001002,M,3,4,N",
)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small state of DHC records."""
    folder = tmp_path_factory.mktemp("attacked") / "data"
    synthesize(folder, persons=PEOPLE, states=("50",), layout="dhc", seed=3)
    return folder


def persons(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "persons.csv"
    path.write_text("\n".join([head, *(rows or PERSONS)]) + "\n", encoding="utf-8")
    return path


def test_a_state_of_records_attacked(records: Path, tmp_path: Path, censafe: CommandLine) -> None:
    out = tmp_path / "attack"
    done = censafe("attack", "reconstruct", records, out, "--workers", "1", "--quiet", "--claims", ends=0)
    assert done.out.startswith("CONFIDENTIAL. ")
    truth = read_people(records)
    assert len(truth) == PEOPLE
    found = pq.read_table(out / "reconstruction.parquet")
    assert sum(found["persons"].to_pylist()) == PEOPLE
    assert set(found["status"].to_pylist()) == {"exact"}
    assert all(
        a <= b for a, b in zip(found["certain"].to_pylist(), found["persons"].to_pylist(), strict=True)
    )
    blocks = pq.read_table(out / "variability.parquet")
    assert blocks["block"].to_pylist() == truth.blocks.tolist()
    assert blocks["population"].to_pylist() == truth.population.tolist()
    rates = pa_csv.read_csv(out / "reidentification.csv").to_pylist()
    certain = [
        row["precision"] for row in rates
        if (row["attacker"], row["data"]) == ("exact", "reconstruction")
        and row["population_attacked"] == "nonmodal unique, zero variability" and row["records"]
    ]  # fmt: skip
    assert certain
    assert min(certain) == pytest.approx(100)
    lines = pa_csv.read_csv(
        out / "codebook.csv", convert_options=pa_csv.ConvertOptions(strings_can_be_null=True)
    ).to_pylist()
    assert all(row["meaning"] for row in lines)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#)(?!http://www.w3.org)[^"]+', page)
    assert (out / "CONFIDENTIAL.txt").exists()
    assert (out.stat().st_mode & 0o777) == 0o700


def test_a_file_of_persons_gives_the_same_as_its_folder(records: Path, tmp_path: Path) -> None:
    truth = read_people(records)
    table = pa.table(
        {
            "person_id": truth.person, "block": truth.blocks[truth.block], "sex": truth.sex + 1, "age": truth.age,
            "race": truth.race.astype(int) + 1, "hispanic": truth.hispanic, "household_id": truth.household,
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "persons.parquet")
    again = read_people(tmp_path / "persons.parquet")
    assert all(
        np.array_equal(getattr(again, name), getattr(truth, name))
        for name in ("block", "sex", "age", "race", "hispanic", "person")
    )


def test_flags_of_races_and_an_attackers_file(tmp_path: Path) -> None:
    head = "person_id,block,sex,age,white,black,aian,asian,nhpi,sor,hispanic"
    path = persons(
        tmp_path, "1,500070001001001,1,30,1,0,0,0,0,0,0", "2,500070001001001,2,31,1,1,0,0,0,0,Y", head=head
    )
    assert read_people(path).race.tolist() == [0, 6]
    names = tmp_path / "names.csv"
    names.write_text("person_id,block,sex,age\n2,500070001001001,2,31\n9,500070001001001,1,50\n")
    found = reconstruct(path, tmp_path / "out", attacker=names, variability=False)
    rows = pa_csv.read_csv(tmp_path / "out" / "reidentification.csv").to_pylist()
    own = [
        row
        for row in rows
        if (row["attacker"], row["data"], row["population_attacked"], row["block_size"])
        == ("file", "reconstruction", "all", "all")
    ]
    assert [(row["records"], row["confirmed"]) for row in own] == [(1, 1)]
    assert "variability" not in found.frames()


def test_repeated_identifiers_are_in_the_tables_and_looked_for_once(
    tmp_path: Path, censafe: CommandLine
) -> None:
    path = persons(tmp_path, *PERSONS, "4,500070001001002,M,5,4,N")
    done = censafe("attack", "reconstruct", path, tmp_path / "out", "--workers", "1", ends=0)
    assert "1 persons without a person_id, or with that of another in their block" in done.err
    rows = pa_csv.read_csv(tmp_path / "out" / "reidentification.csv").to_pylist()
    assert {
        row["records"] for row in rows if row["population_attacked"] == "all" and row["block_size"] == "all"
    } == {4}


@pytest.mark.parametrize(
    ("rows", "head", "words"),
    [
        (["1,50007000100100,1,30,1,0"], HEAD, "lost leading zero"),
        (["1,500070001001001,1,111,1,0"], HEAD, "1 persons without a valid age; allowed: whole numbers up to 110"),
        (["1,500070001001001,,30,1,0"], HEAD, "1 persons without a valid sex"),
        (["1,500070001001001,1,30,64,0"], HEAD, "1 persons without a valid race"),
        (["1,500070001001001,1,30,0,0"], HEAD, "race: 1 persons have a value out of range"),
        (["1,500070001001001,1,30,1,0,7"], HEAD, "as many fields in every row"),
        (["500070001001001,1,30"], "block,sex,age", "columns missing: race, or else white"),
        (["1,1,30,1,0"], "person_id,sex,age,race,hispanic", "columns missing: block"),
    ],
)  # fmt: skip
def test_records_that_break_a_rule(
    rows: list[str], head: str, words: str, tmp_path: Path, censafe: CommandLine
) -> None:
    done = censafe("attack", "reconstruct", persons(tmp_path, *rows, head=head), tmp_path / "out", ends=1)
    assert words in done.err
    assert "111" not in done.err
    assert not (tmp_path / "out" / "report.html").exists()


def test_words_that_name_nothing(tmp_path: Path, censafe: CommandLine) -> None:
    path = persons(tmp_path)
    cases = {
        ("--without", "P88"): (1, "Did you mean"),
        ("--attacker", str(path)): (0, ""),
        ("--agreement", "0"): (2, "agreement"),
    }
    for place, (options, (code, words)) in enumerate(cases.items()):
        done = censafe("attack", "reconstruct", path, tmp_path / f"out{place}", *options)
        assert (done.code, words in done.err) == (code, True), done.err
    other = tmp_path / "others.csv"
    other.write_text("person_id,block,sex,age\n77,500070001001001,2,31\n")
    done = censafe("attack", "reconstruct", path, tmp_path / "none", "--attacker", other, ends=1)
    assert "no person_id of the attacker's file is one of the true records" in done.err
    done = censafe("attack", "reconstruct", tmp_path, tmp_path / "none2", ends=1)
    assert "there are no persons in this folder" in done.err


def test_tables_of_tracts_and_then_the_tables_alone(
    records: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    done = censafe("attack", "reconstruct", records, tmp_path / "bt", "--mode", "bt", "--workers", "1")
    assert done.code == 0, done.err
    blocks = pq.read_table(tmp_path / "bt" / "variability.parquet")
    tracts = pa_csv.read_csv(tmp_path / "bt" / "tracts.csv").to_pylist()
    assert len(tracts) > 3
    assert f"In {len(tracts)} of {len(tracts)} tracts the records have all tables of the tract." in done.out
    assert {(row["status"], row["lines"], row["lines_met"]) for row in tracts} == {("exact", 3344, 3344)}
    assert sum(row["population"] for row in tracts) == PEOPLE
    again, truth = read_people(tmp_path / "bt" / "records.parquet"), read_people(records)
    assert again.population.tolist() == truth.population.tolist()
    wide = pq.read_table(tmp_path / "bt" / "tract_tables_wide.parquet")
    assert sum(wide["PCT012001"].to_pylist()) == PEOPLE
    assert wide.num_columns == 3345
    censafe(
        "attack", "reconstruct", tmp_path / "bt", tmp_path / "alone", "--mode", "bt", "--workers", "1", ends=0
    )
    same = pq.read_table(tmp_path / "alone" / "variability.parquet")
    assert same["variability"].to_pylist() == blocks["variability"].to_pylist()
    assert not (tmp_path / "alone" / "reidentification.csv").exists()
    page = (tmp_path / "alone" / "report.html").read_text(encoding="utf-8")
    assert f"{PEOPLE:,} persons of {len(truth.blocks)} blocks were reconstructed without any record" in page
    assert "node-days of 96 processors" in page


def test_noisy_tables_are_infeasible_or_nearest(tmp_path: Path, censafe: CommandLine) -> None:
    path = tmp_path / "noisy.csv"
    rows = [
        "500070001001001,P1,1,3",
        "500070001001001,P8,1,3",
        "500070001001001,P8,2,4",
        "500070001001001,P8,3,4",
    ]
    rows += [
        "500070001001002,P1,1,1",
        "500070001001002,P8,1,1",
        "500070001001002,P8,2,1",
        "500070001001002,P8,3,1",
    ]
    path.write_text("\n".join(["geounit,table,line,value", *rows]), encoding="utf-8")
    done = censafe("attack", "reconstruct", path, tmp_path / "out", "--workers", "1", ends=0)
    assert "1 of 2 blocks reconstructed" in done.out
    assert "1 blocks have tables that no records have; first conflict: P8." in done.out
    states = pq.read_table(tmp_path / "out" / "variability.parquet").to_pylist()
    assert next((row["status"], row["population"], row["variability"]) for row in states) == (
        "infeasible",
        0,
        None,
    )
    assert pa_csv.read_csv(tmp_path / "out" / "conflicts.csv").to_pylist()[0]["conflict"] == "P8"
    done = censafe("attack", "reconstruct", path, tmp_path / "near", "--workers", "1", "--nearest")
    assert "The records whose tables differ least were taken." in done.out
    found = pq.read_table(tmp_path / "near" / "reconstruction.parquet").to_pylist()
    assert {row["status"] for row in found} == {"exact", "nearest"}
    assert sum(row["persons"] for row in found if row["status"] == "nearest") in (3, 4)
    assert "they are not an exact reconstruction" in (tmp_path / "near" / "report.html").read_text(
        encoding="utf-8"
    )
    done = censafe("attack", "reconstruct", path, tmp_path / "none", "--attacker", path, ends=2)
    assert "an attacker's file is matched with true records, and these are tables" in done.err


def test_records_of_an_attacker_in_blocks_without_persons_are_counted(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("person_id,block,sex,age\n2,500070001001001,2,31\n1,500070001009999,1,30\n")
    reconstruct(persons(tmp_path), tmp_path / "out", attacker=names, variability=False)
    rows = pa_csv.read_csv(tmp_path / "out" / "reidentification.csv").to_pylist()
    own = [row for row in rows if (row["attacker"], row["data"]) == ("file", "reconstruction")]
    found = {
        (row["population_attacked"], row["block_size"]): (row["records"], row["putative"]) for row in own
    }
    assert found["all", "all"] == found["all", "1-9"] == (2, 1)


def test_ranking_needs_areas_of_ten_persons(tmp_path: Path, censafe: CommandLine) -> None:
    done = censafe("attack", "rank", persons(tmp_path), tmp_path / "out", "--without", "P8,P10", ends=1)
    assert "no block has 10 persons" in done.err
