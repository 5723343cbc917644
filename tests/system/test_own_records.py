"""A country's own files from end to end: a configuration that reads them, a run, its certificate, and a second estimate."""

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.errors import UsageError
from support.commands import CommandLine
from support.exact_answers import invariants
from support.own_records import CELLS, READ, ROWS, own_config, text_of, write_country

LIST = [("Île", "N1:E 1"), ("Île", "N1:E 2"), ("Nord", "N1:E 1"), ("Nord", "N2:E 1"), ("Süd", "N9:E 9")]


def country(folder: Path, *, listed: bool, rho: str = "1000000") -> tuple[Path, Path]:
    """A configuration and its data."""
    data = folder / "data"
    data.mkdir()
    (data / "persons.csv").write_text(text_of(ROWS), encoding="utf-8")
    read = READ
    if listed:
        read = READ.replace('"records"', '"areas.csv"')
        (data / "areas.csv").write_text(text_of(LIST, mark=",", header=("Région", "grid")), encoding="utf-8")
    config = folder / "own.toml"
    config.write_text(own_config(read, rho=rho), encoding="utf-8")
    return config, data


def published(out: Path, level: str) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for row in pq.read_table(out / "histograms" / f"residents_{level}.parquet").to_pylist():
        found.setdefault(row["geocode"], {})[row["cell"]] = row["count"]
    return found


@pytest.mark.parametrize("listed", [True, False])
def test_without_noise_the_records_come_back_under_their_own_codes(
    censafe: CommandLine, tmp_path: Path, listed: bool
) -> None:
    config, data = country(tmp_path, listed=listed)
    out = tmp_path / "out"
    censafe("run", "topdown", config, data, out, "--test-key", 1, "--quiet", ends=0)
    with (out / "areas.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    codes = {(row["Région"], row["grid"]): row["geocode"] for row in rows if row["level"] == "Grid"}
    assert list(codes) == sorted(
        LIST if listed else CELLS
    )  # in the order of their codes, empty areas of the list included
    counts = published(out, "Grid")
    assert {path: counts[code] for path, code in codes.items() if code in counts} == CELLS
    names = {
        row["geocode"]: row["NAME"]
        for row in pq.read_table(out / "histograms" / "residents_Region.parquet").to_pylist()
    }
    assert set(names.values()) >= {"Île", "Nord"}
    words = (out / "certificate.html").read_text(encoding="utf-8")
    assert ("That an area has a record, or none, is not protected" in words) is not listed
    assert "its level in every attribute follows from this row alone" in words
    before = (out / "areas.csv").read_bytes()
    censafe("estimate", out, "--quiet", ends=0)
    assert (out / "areas.csv").read_bytes() == before
    assert published(out, "Grid") == counts
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert "areas.csv" in manifest["outputs"]
    assert json.loads(manifest["config"]["settings"]["read"])["areas"] == (
        "areas.csv" if listed else "records"
    )


def test_the_plan_states_that_occupied_areas_are_published(censafe: CommandLine, tmp_path: Path) -> None:
    words = []
    for listed in (True, False):
        folder = tmp_path / str(listed)
        folder.mkdir()
        done = censafe("plan", "topdown", country(folder, listed=listed)[0], ends=0)
        words.append(done.out)
    assert "which areas (Grid) have records" not in words[0]
    assert "which areas (Grid) have records" in words[1]


def test_without_a_list_of_areas_both_ways_are_explained(censafe: CommandLine, tmp_path: Path) -> None:
    config, _ = country(tmp_path, listed=False)
    config.write_text(config.read_text(encoding="utf-8").replace('areas = "records"', ""), encoding="utf-8")
    done = censafe("plan", "topdown", config, ends=1)
    assert 'areas = "areas.csv"' in done.err and 'areas = "records"' in done.err


def written(folder: Path, content: str) -> Path:
    """A file of 400 persons of an office: its own delimiter, names, dates and grid codes."""
    path = folder / "persons.csv"
    path.write_text(content, encoding="utf-8-sig")
    return path


def office_rows() -> list[tuple[str, ...]]:
    return [
        (
            f"{place}",
            f"Région {place % 2}",
            f"M{place % 10:02d}",
            f"N{place % 20}:E{place % 20}",
            "" if place == 7 else f"{1 + place % 28:02d}.{1 + place % 12:02d}.{1930 + place % 90}",
            "FM"[place // 2 % 2],
            ("Inland", "EU", "Dritte")[place % 3] if place != 11 else "Seltenheit",
            f"{place * 137 % 5000}",
        )
        for place in range(400)
    ]


def test_from_a_file_to_a_certificate_by_commands_alone(censafe: CommandLine, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    header = ("Nr", "Region", "Gemeinde", "Gridzelle", "geboren", "Geschlecht", "Staat", "Einkommen")
    path = written(data, text_of(office_rows(), header=header))
    drafted = censafe("configs", "new", path, ends=0)
    assert "Seltenheit" not in drafted.out  # of one record
    config = tmp_path / "own.toml"
    config.write_text(drafted.out, encoding="utf-8")
    censafe("plan", "topdown", config, ends=0)
    read = censafe("read", data, "--config", config, "--quiet")
    assert read.code == 0, read.err + read.out
    assert "areas: Region 2, Gemeinde 10, Gridzelle 20" in read.out
    assert "not read Nr" in read.out and "135" not in read.out and "200" not in read.out
    counts = json.loads(censafe("read", data, "--config", config, "--quiet", "--json", "--confidential").out)
    assert counts["levels"]["residents.Geschlecht"] == {"F": 200, "M": 200}
    assert counts["levels"]["residents.geboren"]["unknown"] == 1
    censafe("validate", "topdown", config, data, "--quiet", ends=0)
    out = tmp_path / "out"
    censafe("run", "topdown", config, data, out, "--test-key", 1, "--quiet", ends=0)
    words = (out / "certificate.html").read_text(encoding="utf-8")
    assert "Gridzelle" in words and "which areas (Gridzelle) have records at all" in words
    assert "Région 1" in (out / "areas.csv").read_text(encoding="utf-8")


def test_what_does_not_match_has_an_exit_code_and_private_row_numbers(
    censafe: CommandLine, tmp_path: Path
) -> None:
    config, data = country(tmp_path, listed=False)
    text = text_of(ROWS).replace("1990-12-31;M", "soon;X")
    (data / "persons.csv").write_text(text, encoding="utf-8")
    examples = tmp_path / "rows.csv"
    done = censafe("read", data, "--config", config, "--quiet", "--examples", examples, ends=1)
    assert "persons.csv: sex: values that are no level (1 row) [domain]" in done.out
    assert "persons.csv: born: values that are no date of the stated form (1 row) [date]" in done.out
    assert "soon" not in done.out + done.err
    assert examples.stat().st_mode & 0o777 == 0o600
    lines = examples.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("CONFIDENTIAL") and set(lines[2:]) == {
        "persons.csv,born,date,2",
        "persons.csv,sex,domain,2",
    }
    run = censafe("run", "topdown", config, data, tmp_path / "out", "--test-key", 1, "--quiet")
    assert run.code == 1 and "[date]" in run.err and "soon" not in run.err


def test_data_frames_are_read_as_files_are(censafe: CommandLine, tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow as pa

    import censafe as api

    config, data = country(tmp_path, listed=True)
    censafe("run", "topdown", config, data, tmp_path / "files", "--test-key", 1, "--quiet", ends=0)
    chosen = api.configuration("topdown", config)
    frames = {
        "persons.csv": pd.DataFrame(ROWS, columns=["Région", "grid", "born", "sex", "note"]),
        "areas.csv": pa.table({"Région": [one for one, _ in LIST], "grid": [one for _, one in LIST]}),
    }
    made = api.release_records(chosen, frames, tmp_path / "frames", test_key=1)
    assert published(made.folder, "Grid") == published(tmp_path / "files", "Grid")
    with pytest.raises(UsageError, match=r"areas\.csv, persons\.csv"):
        api.release_records(chosen, {"persons.csv": frames["persons.csv"]}, tmp_path / "more", test_key=1)
    with pytest.raises(UsageError, match="ledger="):
        api.release_records(chosen, frames, tmp_path / "more")


def test_every_verb_takes_lists_with_the_codes_of_the_records(
    censafe: CommandLine, tmp_path: Path, plain_figures: None
) -> None:
    data, config, out, zones = (tmp_path / name for name in ("data", "own.toml", "out", "zones.csv"))
    write_country(data, config)
    rows = [(region, f"N{east}:E {north}", f"é {north}") for region in ("Nord", "Île") for east in range(5) for north in range(2)]  # fmt: skip
    zones.write_text(text_of(rows, header=("Région", "grid", "zone")), encoding="utf-8")
    censafe("run", "topdown", config, data, out, "--test-key", 1, "--quiet", ends=0)
    passed_over = "zones.csv: 10 of 20 rows are of no area of the level Grid of this run, such as N0:E 0"
    made = censafe("tables", out, "--query", "total", "--areas", zones, "--quiet", ends=0, says=passed_over)
    assert [row["zone"] for row in csv.DictReader(made.out.splitlines())] == ["é 0", "é 1"]
    censafe("estimate", out, "--intervals", "--simulations", 0, "--areas", zones, ends=0, says=passed_over)
    intervals = pq.read_table(out / "intervals.parquet").to_pylist()
    assert {row["geocode"] for row in intervals if row["kind"] == "zone"} == {"é 0", "é 1"}
    place = tmp_path / "evaluated"
    evaluated = censafe(
        "evaluate", "topdown", config, data, place, "--runs", 1, "--workers", 1, "--areas", zones
    )
    assert (evaluated.code, passed_over in evaluated.err) == (0, True), evaluated.err
    zones.write_text("region;zone\nNord;n\n", encoding="utf-8")
    refused = censafe("tables", out, "--query", "total", "--areas", zones, ends=1)
    assert "allowed: a header with geocode or Région, grid" in refused.err


# Answers that a country publishes exactly, from end to end: its files, the plan, a run, its certificate, and a second estimate.


EXACT = invariants(("sex", "region"), ("age", "region"))


def exact_by_region(out: Path) -> dict[tuple[str, str], Counter[int]]:
    """Published records of every region by the levels of each attribute; regions in their own words where these are known."""
    found: dict[tuple[str, str], Counter[int]] = {}
    for row in pq.read_table(out / "histograms" / "residents_Region.parquet").to_pylist():
        for name, level in (("age", row["cell"] // 2), ("sex", row["cell"] % 2)):
            found.setdefault((row.get("NAME", row["geocode"]), name), Counter())[level] += row["count"]
    return found


def test_exact_answers_are_published_and_named(censafe: CommandLine, tmp_path: Path) -> None:
    config, data, out = tmp_path / "own.toml", tmp_path / "data", tmp_path / "out"
    write_country(data, config)
    config.write_text(own_config(rho="1/10", more=EXACT), encoding="utf-8")
    plan = censafe("plan", "topdown", config, "--meaning", ends=0)
    words = "Not protected: sex of a person in its Region"
    assert words in " ".join(plan.out.split()) and "numbers by age in every Region" in " ".join(
        plan.out.split()
    )
    censafe("run", "topdown", config, data, out, "--test-key", 1, "--quiet", ends=0)
    truth: dict[tuple[str, str], Counter[int]] = {}
    with (data / "persons.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter=";"):
            age = 2025 - int(row["born"][:4])
            levels = {"age": (age >= 15) + (age >= 65), "sex": int(row["sex"] == "M")}
            for name, level in levels.items():
                truth.setdefault((row["Région"], name), Counter())[level] += 1
    assert exact_by_region(out) == truth
    certificate = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    assert words in json.dumps(certificate)
    anonymity = certificate["anonymity"]
    (figures,) = anonymity["exact"]
    assert figures["answers"] == [["sex", "Region"], ["age", "Region"]]
    assert anonymity["inference"] == [{"name": "age"}, {"name": "sex"}]
    page = (out / "certificate.html").read_text(encoding="utf-8")
    assert words in page
    assert "no limit: figures published exactly tell it" in page
    assert "numbers of residents by sex in every Region and in all larger areas" in page
    censafe("estimate", out, "--quiet", "--set", "leaves=all_positive", ends=0)
    assert exact_by_region(out) == truth
    other = tmp_path / "from-files"
    censafe("estimate", "topdown", config, other, "--measurements", out / "measurements", "--quiet", ends=0)
    assert sorted(map(str, exact_by_region(other).values())) == sorted(map(str, truth.values()))


def test_runs_on_other_lists_of_areas_are_not_compared(censafe: CommandLine, tmp_path: Path) -> None:
    data, config, out, path = (tmp_path / name for name in ("data", "own.toml", "out", "less/persons.csv"))
    write_country(data, config)
    path.parent.mkdir()
    rows = (data / "persons.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(row for row in rows if "N1:E 0" not in row), encoding="utf-8")
    assert censafe("run", "topdown", config, path.parent, out, "--test-key", 1, "--quiet").code == 0
    done = censafe("evaluate", "pair", data, out, tmp_path / "pair", "--config", config)
    assert done.code == 1
    assert "of 17 geocodes of the truth are the same areas there" in done.err
