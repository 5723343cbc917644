"""``censafe attack reconstruct`` and ``rank`` on records of one's own: exact counts and variability known by enumeration, runs, stored tables, and refusals."""

import csv
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import censafe as public
from censafe.errors import DataError, UsageError
from support.commands import CommandLine
from support.own_records import own_config, text_of

NAMED = ("--quasi", "sex", "--target", "age", "--area", "grid")
BORN = {"0-14": "2020-01-01", "15-64": "1980-01-01", "65+": "1940-01-01"}
AREAS = {
    "a": {("female", "0-14"): 1, ("male", "15-64"): 2},
    "b": {("female", "15-64"): 3},
    "c": {("female", "0-14"): 1, ("female", "65+"): 1, ("male", "0-14"): 1, ("male", "15-64"): 2, ("male", "65+"): 6},
}  # fmt: skip
MARGINS = """
[tables.OLD]
title = "Old"
universe = "Residents"
histogram = "residents"
lines = '''
Total:
. Female | sex=female
. Male | sex=male
. Old | age=2
'''
"""


def write_areas(folder: Path) -> Path:
    (folder / "data").mkdir()
    rows = [
        ("R", area, BORN[age], sex[0].upper(), "")
        for area, cells in AREAS.items()
        for (sex, age), persons in cells.items()
        for _ in range(persons)
    ]
    (folder / "data" / "persons.csv").write_text(text_of(rows), encoding="utf-8")
    (folder / "own.toml").write_text(own_config(), encoding="utf-8")
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def consistent(sexes: tuple[int, ...], ages: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    """All tables of sex by age with these margins."""
    firsts = product(*(range(count + 1) for count in ages))
    return [np.array([one, np.subtract(ages, one)]) for one in firsts if sum(one) == sexes[0]]


def test_variability_is_that_of_all_data_sets_with_the_same_margins(
    tmp_path: Path, censafe: CommandLine
) -> None:
    write_areas(tmp_path)
    done = censafe(
        "attack", "reconstruct", tmp_path / "data", tmp_path / "out", "--config", tmp_path / "own.toml", *NAMED, "--query", "sex", "--query", "age",
        "--workers", "1", "--claims",
    )  # fmt: skip
    assert done.code == 0, done.err
    shares = {row["Grid"]: float(row["variability"]) for row in rows_of(tmp_path / "out" / "variability.csv")}
    records: dict[str, np.ndarray[Any, Any]] = {area: np.zeros((2, 3), np.int64) for area in AREAS}
    claims = {}
    for row in rows_of(tmp_path / "out" / "reconstruction.csv"):
        place = ("female", "male").index(row["sex_level"]), list(BORN).index(row["age_level"])
        records[row["Grid"]][place] = int(row["persons"])
        claims[row["Grid"], place] = int(row["certain"]), int(row["possible"])
    for area, cells in AREAS.items():
        truth = np.zeros((2, 3), np.int64)
        for (sex, age), persons in cells.items():
            truth[("female", "male").index(sex), list(BORN).index(age)] = persons
        every = consistent(tuple(truth.sum(axis=1)), tuple(truth.sum(axis=0)))
        start = records[area]
        assert any(np.array_equal(start, one) for one in every)
        farthest = max(int(np.abs(one - start).sum()) for one in every)
        assert shares[area] == pytest.approx(100 * farthest / (2 * truth.sum()), abs=1e-5)
        for place in zip(*np.nonzero(start), strict=True):
            values = [int(one[place]) for one in every]
            assert claims[area, tuple(map(int, place))] == (min(values), max(values))
    assert shares["b"] == 0
    assert "block" not in (tmp_path / "out" / "codebook.csv").read_text(encoding="utf-8")


def attacked(folder: Path, data: Path, out: str, **options: Any) -> Any:
    configuration = public.configuration("topdown", folder / "own.toml")
    named: dict[str, Any] = {"quasi": ["sex"], "target": "age", "area": "grid", **options}
    return public.reconstruct(data, folder / out, configuration=configuration, **named)


def test_the_whole_table_gives_every_record_away_and_a_file_of_tables_what_it_counts(tmp_path: Path) -> None:
    folder = write_areas(tmp_path)
    attacked(folder, folder / "data", "whole")
    agreement = rows_of(folder / "whole" / "agreement.csv")[0]
    assert float(agreement["true_percent"]) == 100
    found: Counter[tuple[str, str, str]] = Counter()
    for row in rows_of(folder / "whole" / "records.csv"):
        found[row["Grid"], row["sex_level"], row["age_level"]] += 1
    assert found == {(area, *cell): count for area, cells in AREAS.items() for cell, count in cells.items()}
    (folder / "mine.toml").write_text(MARGINS, encoding="utf-8")
    attacked(folder, folder / "data", "mine", tables=folder / "mine.toml")
    values = {
        (row["Grid"], row["line"]): int(row["value"]) for row in rows_of(folder / "mine" / "tables.csv")
    }
    assert [values.get(("c", str(line)), 0) for line in range(1, 5)] == [11, 2, 9, 7]
    assert {row["age_level"] for row in rows_of(folder / "mine" / "reconstruction.csv")} <= set(BORN)


def test_a_run_and_stored_tables_are_reconstructed_without_records(tmp_path: Path) -> None:
    folder = write_areas(tmp_path)
    configuration = public.configuration("topdown", folder / "own.toml")
    public.release(configuration, folder / "data", folder / "run", test_key=1)
    attacked(folder, folder / "run", "of-run")
    assert not (folder / "of-run" / "agreement.csv").exists()
    named: dict[str, Any] = {
        "configuration": configuration,
        "quasi": ["sex"],
        "target": "age",
        "area": "grid",
    }
    public.compare_defenses(folder / "data", folder / "compared", [f"topdown:{folder / 'run'}"], **named)
    attacked(folder, folder / "compared" / "published" / "exact-tables", "stored")
    stored = rows_of(folder / "stored" / "reconstruction.csv")
    attacked(folder, folder / "of-run" / "tables.csv", "of-file")
    assert rows_of(folder / "of-file" / "records.csv") == rows_of(folder / "of-run" / "records.csv")
    assert sum(int(row["persons"]) for row in stored) == sum(sum(cells.values()) for cells in AREAS.values())
    with pytest.raises(UsageError, match="needs the records themselves"):
        public.rank_records(folder / "run", folder / "ranked", **named)


def test_released_tables_of_a_run_are_reconstructed(tmp_path: Path, censafe: CommandLine) -> None:
    """The file that `censafe tables` writes gives the records of the run, also in columns of others; a value that is left out is unknown."""
    folder = write_areas(tmp_path)
    configuration = public.configuration("topdown", folder / "own.toml")
    public.release(configuration, folder / "data", folder / "run", test_key=1)
    done = censafe(
        "tables", folder / "run", "--query", "sex * age", "--geography", "grid", "--out", folder / "q.csv"
    )
    assert done.code == 0, done.err
    query = ["sex * age"]
    attacked(folder, folder / "run", "of-run", query=query)
    attacked(folder, folder / "q.csv", "of-tables", query=query)
    columns = ("sex_level", "age_level", "persons")
    cells = [
        [tuple(row[name] for name in columns) for row in rows_of(folder / out / "reconstruction.csv")]
        for out in ("of-run", "of-tables")
    ]
    assert cells[0] == cells[1]
    assert set(rows_of(folder / "of-tables" / "variability.csv")[0]) >= {"Grid", "variability"}
    text = "geounit,table,line,value\nx,Q1,1,2\nx,Q1,6,\ny,Q1,2,1\n"
    (folder / "mine.csv").write_text(text, encoding="utf-8")
    attacked(folder, folder / "mine.csv", "of-mine", query=["age * sex", "total"])
    found = {row["Grid"]: row for row in rows_of(folder / "of-mine" / "variability.csv")}
    assert (found["y"]["population"], float(found["y"]["variability"])) == ("1", 0)
    assert int(found["x"]["population"]) >= 2
    (folder / "mine.csv").write_text("geounit,table,line,value\nx,Q1,1,-2\nx,Q1,one,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 rows have a line or value that is no whole number"):
        attacked(folder, folder / "mine.csv", "wrong", query=query)
    (folder / "mine.csv").write_text("area,table,line,value\nx,Q1,1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="no tables of areas; it has the columns area"):
        attacked(folder, folder / "mine.csv", "wrong", query=query)


def test_types_are_ranked_in_the_areas_of_an_own_schema(tmp_path: Path, censafe: CommandLine) -> None:
    folder = write_areas(tmp_path)
    done = censafe(
        "attack", "rank", folder / "data", folder / "ranked", "--config", folder / "own.toml", *NAMED, "--generators", "2", "--rows", "10", "--steps", "30"
    )  # fmt: skip
    assert done.code == 0, done.err
    (area,) = rows_of(folder / "ranked" / "areas.csv")
    assert (area["area"], area["persons"]) == ("c", "6")
    assert {row["sex_level"] for row in rows_of(folder / "ranked" / "ranked.csv")} <= {"female", "male"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "bt"}, "an own schema does not have"),
        ({"without": ["P1"]}, "without: is for records"),
        ({"target": ""}, "target: missing"),
    ],
)
def test_what_cannot_be_attacked_is_refused_in_words(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    folder = write_areas(tmp_path)
    with pytest.raises(UsageError, match=words):
        attacked(folder, folder / "data", "out", **options)
    assert not (folder / "out").exists()
