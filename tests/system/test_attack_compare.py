"""``censafe attack compare`` from the command line: every defense, its files and page, and what is refused."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from censafe import compare_defenses, synthesize
from censafe.attack.comparison import entry
from censafe.attack.reading import read_people
from censafe.attack.reconstruction.solve import Reconstruction, reconstruct
from censafe.errors import UsageError
from censafe.evaluation.pairs.tables import match_tables
from support.commands import CommandLine


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small state of DHC records."""
    folder = tmp_path_factory.mktemp("defended") / "data"
    synthesize(folder, persons=1_000, states=("50",), layout="dhc", seed=4)
    return folder


def test_defenses_beside_each_other(records: Path, tmp_path: Path, censafe: CommandLine) -> None:
    names = ("swap:HI", "swap:permutation:p=0.05", "round:5", "topdown:pl94-us")
    out = tmp_path / "compared"
    words = [word for name in names for word in ("--defense", name)]
    done = censafe(
        "attack", "compare", records, out, *words, "--seconds", "2", "--workers", "1", "--quiet", "--json"
    )
    assert done.code == 0, done.err
    rows = {row["defense"]: row for row in pa_csv.read_csv(out / "defenses.csv").to_pylist()}
    assert list(rows) == ["exact tables", "exact redistricting data", *names]
    document = json.loads(done.out)
    assert [row["defense"] for row in document["defenses"]] == list(rows)
    assert document["report"] == str(out / "report.html")
    exact = rows["exact tables"]
    assert (exact["error_block"], exact["error_county"]) == (0, 0)
    assert exact["precision"] > exact["guesser_precision"] + 10
    districts, protected = rows["exact redistricting data"], rows["topdown:pl94-us"]
    assert districts["matched_by"] == protected["matched_by"] == "block, voting age"
    assert (districts["race_error_block"], districts["binned_percent"]) == (0, 100)
    assert protected["race_error_block"] > 0
    assert protected["confirmed_percent"] < districts["confirmed_percent"] < exact["confirmed_percent"]
    assert rows["swap:HI"]["confirmed_percent"] < exact["confirmed_percent"]
    assert rows["swap:permutation:p=0.05"]["error_county"] == 0
    assert "Epsilon" in rows["swap:permutation:p=0.05"]["claim"]
    assert rows["round:5"]["error_block"] > 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#)(?!http://www.w3.org)[^"]+', page)
    assert all(name in page for name in names)
    manifest = json.loads((out / "releases" / "pl94-us" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["dataset"] == records.name
    assert not list((out / "releases").glob(".input-*"))


def test_published_microdata_and_fewer_categories(records: Path, tmp_path: Path) -> None:
    found = compare_defenses(
        records, tmp_path / "out", [f"published:{records}", "races:2", "topcode:75", "merge:200"], seconds=2
    )
    rows = {row["defense"]: row for row in found.frames()["defenses"].arrow.to_pylist()}
    own = rows[f"published:{records}"]
    assert own["binned_percent"] == 100
    assert own["error_block"] == 0
    assert rows["races:2"]["precision"] < rows["exact tables"]["precision"]
    assert rows["merge:200"]["matched_by"] == "area as published, sex, age"
    assert rows["merge:200"]["putative_percent"] == 100
    assert rows["merge:200"]["precision"] < rows["exact tables"]["precision"]
    assert rows["merge:200"]["error_county"] == 0


def test_what_is_published_can_be_attacked_and_compared_by_itself(
    records: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    out = tmp_path / "out"
    names = ["swap:HI", "round:5", "suppress:threshold=3", "merge:100", "races:3"]
    first = compare_defenses(records, out, names, seconds=2, variability=False)
    found = first.frames()["defenses"].arrow.to_pylist()
    rows = {row["defense"]: row for row in found}
    folders = {row["defense"]: out / row["folder"] for row in found}
    truth = out / "published" / "exact-tables" / "tables.parquet"
    for name in names:
        cells, facts, _ = match_tables(
            truth, folders[name] / "tables.parquet", by=("level",), unmatched_as_zero=True
        )
        assert set(cells) == {"block", "tract", "county"}
        hidden = rows[name]["withheld_block_percent"] > 0
        assert (facts.get("withheld", 0) > 0) == hidden
    tables = truth, folders["suppress:threshold=3"] / "tables.parquet"
    done = censafe("evaluate", "pair", *tables, tmp_path / "pair", "--by", "level", "--quiet", ends=0)
    assert "withheld" in done.out
    repeated = names[:3]
    again = [f"published:{folders[name]}" for name in repeated]
    second = compare_defenses(records, tmp_path / "second", again, seconds=2, variability=False)
    stored = second.frames()["defenses"].arrow.to_pylist()[1:]
    columns = ("error_block", "error_tract", "withheld_block_percent", "putative_percent", "precision")
    for name, row in zip(repeated, stored, strict=True):
        assert [row[column] for column in columns] == pytest.approx(
            [rows[name][column] for column in columns]
        )
    pairs = pa_csv.read_csv(folders["swap:HI"] / "swap_pairs.csv").to_pylist()
    assert pairs
    assert all(abs(row["persons"] - row["partner_persons"]) <= 2 for row in pairs)
    swapped, before = (read_people(folders[name] / "persons.parquet") for name in ("swap:HI", "exact tables"))
    assert np.array_equal(np.sort(swapped.household), np.sort(before.household))
    assert not np.array_equal(swapped.population, before.population)


def test_a_comparison_that_was_stopped_continues_and_other_records_are_refused(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, names = tmp_path / "out", ["swap:LO", "threshold:20"]
    calls: list[int] = []

    def counted(*arguments: Any) -> Reconstruction:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return reconstruct(*arguments)

    monkeypatch.setattr(entry, "reconstruct", counted)
    with pytest.raises(KeyboardInterrupt):
        compare_defenses(records, out, names, seconds=2)
    assert not (out / "defenses.csv").exists()
    compare_defenses(records, out, names, seconds=2)
    assert len(calls) == 4  # exact tables and swap:LO are read
    compare_defenses(records, tmp_path / "whole", names, seconds=2)
    whole = (tmp_path / "whole" / "defenses.csv").read_bytes()
    assert (out / "defenses.csv").read_bytes() == whole
    compare_defenses(records, out, [*names, "threshold:30"], seconds=2)
    assert (out / "defenses.csv").read_bytes() != whole
    given, again = tmp_path / "given", tmp_path / "again"
    found = {}
    for name in ("swap-LO", "threshold-20"):  # what stands in a folder may have changed
        shutil.rmtree(given, ignore_errors=True)
        shutil.copytree(out / "published" / name, given)
        compare_defenses(records, again, [f"published:{given}"], seconds=2)
        found[name] = pa_csv.read_csv(again / "defenses.csv").to_pylist()[1]["confirmed_percent"]
    fresh = compare_defenses(records, tmp_path / "fresh", [f"published:{given}"], seconds=2)
    assert found["threshold-20"] == fresh.frames()["defenses"].arrow.to_pylist()[1]["confirmed_percent"]
    assert found["swap-LO"] != found["threshold-20"]
    with pytest.raises(UsageError, match="different options"):
        compare_defenses(records, out, names, seconds=2, seed=1)
    with pytest.raises(UsageError, match="different records"):
        compare_defenses(out / "published" / "swap-LO" / "persons.parquet", out, names, seconds=2)


def test_partners_by_distance_need_the_points_of_all_blocks(
    records: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    blocks = read_people(records).blocks.tolist()
    points, out = tmp_path / "points.csv", tmp_path / "out"
    name = f"swap:targeted:rate=0.2:points={points}"
    command = (
        "attack", "compare", records, out, "--defense", "swap:targeted:rate=0.2", "--defense", name, "--seconds", "2",
        "--quiet",
    )  # fmt: skip
    rows = [f"{block},{44 + number / 1000},{-72 + number % 7 / 100}" for number, block in enumerate(blocks)]
    points.write_text("\n".join(["GEOID,INTPTLAT,INTPTLON", *rows[1:]]), encoding="utf-8")
    refused = censafe(*command, ends=1)
    assert f"1 of {len(blocks)} blocks of the records have no point" in refused.err
    assert not out.exists()
    points.write_text("\n".join(["GEOID,INTPTLAT,INTPTLON", *rows]), encoding="utf-8")
    censafe(*command, ends=0)
    by_area, by_distance = pa_csv.read_csv(out / "defenses.csv").to_pylist()[1:]
    assert (by_distance["family"], by_distance["error_county"] >= 0) == ("targeted swap by distance", True)
    pairs = [(out / row["folder"] / "swap_pairs.csv").read_bytes() for row in (by_area, by_distance)]
    assert pairs[0] != pairs[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("swop:LO", "there is none of this name. Did you mean 'swap'?"),
        ("swap:XL", "there is no swap 'XL'"),
        ("swap:LO:rat=0.1", "there is no option 'rat'. Did you mean 'rate'?"),
        ("swap:targeted:point=p.csv", "there is no option 'point'. Did you mean 'points'?"),
        ("swap:targeted:points=nowhere.csv", "nowhere.csv"),
        ("round", "its parameter is missing; allowed: round:BASE[:zero=apart]"),
        ("round:five", "its parameter must be a whole number"),
        ("round:1", "the base of rounding must be at least 2"),
        ("topdown:pl94-tracts", "there is no configuration 'pl94-tracts' with microdata of blocks"),
        ("ages:3", "the recode tells ages apart"),
        ("suppress:threshold=1", "the threshold of suppression must be at least 2"),
        ("swap:permutation:p=2", "rate"),
        ("published:", "the folder is missing"),
        ("published:nowhere", "there is no such file or folder"),
        ("published:/", "there are no persons in this folder"),
        ("topcode:200", "a top code must be an age"),
    ],
)
def test_defenses_that_are_none(
    records: Path, name: str, words: str, tmp_path: Path, censafe: CommandLine
) -> None:
    done = censafe("attack", "compare", records, tmp_path / "out", "--defense", name)
    assert done.code in (1, 2)
    assert words in done.err
    assert not (tmp_path / "out").exists()


def test_a_defense_twice_and_swaps_without_households(
    tmp_path: Path, records: Path, censafe: CommandLine
) -> None:
    done = censafe(
        "attack", "compare", records, tmp_path / "out", "--defense", "round:5", "--defense", "round:5", ends=2
    )
    assert "name every defense once" in done.err
    path = tmp_path / "persons.csv"
    path.write_text("block,sex,age,race,hispanic\n500070001001001,1,30,1,0\n500070001001001,2,31,2,0\n")
    done = censafe("attack", "compare", path, tmp_path / "other", "--defense", "swap:LO", ends=1)
    assert "household" in done.err
