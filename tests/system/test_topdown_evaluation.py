"""``censafe evaluate`` of TopDown from the outside: files, figures, resumption, secrecy, and bad input."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from censafe.evaluation.topdown.evaluation import evaluate_topdown
from censafe.evaluation.topdown.runs import (
    PublishedSource,
    RunRequest,
    RunSeries,
    SourceOf,
    open_evaluated,
    run_all,
)
from censafe.evaluation.topdown.uncertainty import evaluate_uncertainty, uncertainty_frames
from censafe.model.observer import SilentObserver
from censafe.products.run.options import ReadOptions, RunOptions
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.recipe import run
from support.commands import CommandLine
from support.histograms import write_table
from support.rows import csv_rows
from support.topdown_inputs import write_1940

SETTINGS = {"epsilon": "4"}
STAMP = "CONFIDENTIAL: compares with the truth"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_1940(tmp_path_factory.mktemp("evaluation") / "data")


@pytest.fixture(scope="module")
def evaluated(data: Path) -> Path:
    out = data.parent / "evaluated"
    source = SourceOf.of("e2e-1940", data, SETTINGS)
    evaluate_topdown(source, out, ReadOptions(), RunSeries(2, 3, 1))
    return out


@pytest.fixture(scope="module")
def published(data: Path) -> Path:
    out = data.parent / "published"
    settings = {**SETTINGS, "noisy_measurements": "stored"}
    run("e2e-1940", data, out, settings, ReadOptions(), RunOptions(test_key=11))
    return out


def test_every_file_says_that_it_compares_with_the_truth(evaluated: Path) -> None:
    tables = [path for path in evaluated.rglob("*.csv") if path.name != "codebook.csv"]
    assert len(tables) > 10
    for path in tables:
        assert {STAMP} == {row["classification"] for row in csv_rows(path)}, path
    for path in evaluated.rglob("*_long.parquet"):
        assert STAMP.encode() == pq.read_schema(path).metadata[b"classification"]
    for path in (evaluated / "figures").glob("*.svg"):
        assert "<svg" in path.read_text(encoding="utf-8")
    assert (evaluated / "CONFIDENTIAL.txt").exists()
    assert STAMP in (evaluated / "report.html").read_text(encoding="utf-8")


def county_of(sheet: Worksheet) -> float:
    """Mean absolute error of county totals in a sheet of summary metrics."""
    row = next(row for row in sheet.iter_rows(values_only=True) if row[0] == "All counties")
    return float(row[2])


def test_the_workbook_has_the_bureaus_tables_of_the_mean_over_runs(evaluated: Path) -> None:
    book = load_workbook(evaluated / "workbook.xlsx")
    assert book.sheetnames[:3] == ["Contents", "Updated BAP", "Updated Use Cases"]
    found = {
        (
            row["run_id"], row["suite"], row["level"], row["size_class"], row["characteristic"], row["metric"],
        ): row["value"]
        for row in csv_rows(evaluated / "metrics_long.csv")
    }  # fmt: skip
    key = ("all", "total", "mean_ae")
    mean = float(found["pooled", "persons/topdown", "County", *key])
    assert mean == pytest.approx(county_of(book["Updated BAP"]))
    assert mean == pytest.approx(float(found["pooled", "summary", "county", *key[:2], "mean_ae_run_mean"]))


def test_errors_are_those_of_the_counts_side_by_side(evaluated: Path) -> None:
    metrics = {
        (row["run_id"], row["suite"], row["level"], row["characteristic"], row["metric"]): row
        for row in csv_rows(evaluated / "metrics_long.csv")
    }
    sides = pq.read_table(evaluated / "side_by_side_long.parquet").to_pylist()
    for level, areas in (("State", 2), ("County", 6), ("Enumdist", 48)):
        own = [row for row in sides if (row["level"], row["characteristic"]) == (level, "age18plus")]
        assert all(row["count_dp"] - row["count_sf"] == row["error"] for row in own)
        mean = sum(abs(row["error"]) for row in own) / (2 * areas)
        first = metrics["4/1", "persons/topdown", level, "age18plus", "mean_ae"]
        assert mean == pytest.approx(float(first["value"]))
    assert float(metrics["pooled", "persons/topdown", "State", "total", "max_ae"]["value"]) == 0.0
    assert float(metrics["pooled", "persons/topdown", "County", "total", "max_ae"]["value"]) > 0.0


def test_wide_files_have_original_and_protected_counts_of_every_area(evaluated: Path) -> None:
    wide = csv_rows(evaluated / "side_by_side" / "persons_age18plus_County.csv")
    assert len(wide) == 6
    columns = {
        "geocode", "age18plus0_sf", "age18plus0_dp", "age18plus1_sf", "age18plus1_dp", "classification",
    }  # fmt: skip
    assert columns == set(wide[0])
    described = {(row["file"], row["column"]) for row in csv_rows(evaluated / "codebook.csv")}
    assert ("side_by_side/persons_age18plus_County.csv", "age18plus1_sf") in described
    assert all(row["meaning"] for row in csv_rows(evaluated / "codebook.csv"))


def test_the_page_comes_again_from_the_files_alone(censafe: CommandLine, evaluated: Path) -> None:
    before = (evaluated / "report.html").read_bytes()
    (evaluated / "report.html").unlink()
    censafe("evaluate", "report", evaluated, ends=0)
    assert before == (evaluated / "report.html").read_bytes()


@pytest.mark.usefixtures("plain_figures")
def test_the_same_evaluation_goes_on_and_another_is_refused(
    censafe: CommandLine, data: Path, evaluated: Path
) -> None:
    arguments = ("evaluate", "topdown", "e2e-1940", data, evaluated, "--seed", 3, "--workers", 1)
    censafe(*arguments, "--runs", 3, "--set", "epsilon=4", ends=0, says="2 of 3 runs are there already")
    censafe(*arguments, "--set", "epsilon=2", ends=2, says="another run")


@pytest.mark.usefixtures("plain_figures")
def test_without_noise_nothing_is_wrong(data: Path, tmp_path: Path) -> None:
    source = SourceOf.of("e2e-1940", data, {"epsilon": "1000000"})
    evaluate_topdown(source, tmp_path / "out", ReadOptions(), RunSeries(1, 0, 1))
    rows = [
        row for row in csv_rows(tmp_path / "out" / "metrics_long.csv") if row["suite"] == "persons/topdown"
    ]
    assert {0.0} == {float(row["value"]) for row in rows if row["metric"] in ("max_ae", "rmse", "me")}


@pytest.mark.usefixtures("plain_figures")
def test_counts_of_areas_off_the_spine_are_compared_too(
    data: Path, censafe: CommandLine, tmp_path: Path
) -> None:
    codes = pq.read_table(data / "units.parquet").column("geocode").to_pylist()
    lines = [f"{code},{'A' if place % 2 else ''}" for place, code in enumerate(codes)]
    (tmp_path / "areas.csv").write_text("\n".join(["geocode,ward", *lines]) + "\n", encoding="utf-8")
    more = ("--runs", 1, "--workers", 1, "--areas", tmp_path / "areas.csv", "--published-data", "--quiet")
    done = censafe("evaluate", "topdown", "e2e-1940", data, tmp_path / "out", *more, ends=0)
    assert "CONFIDENTIAL" not in done.out
    side = csv_rows(tmp_path / "out" / "side_by_side" / "persons_total_ward.csv")
    assert [row["geocode"] for row in side] == ["A"]
    error = abs(int(side[0]["total_dp"]) - int(side[0]["total_sf"]))
    rows = csv_rows(tmp_path / "out" / "metrics_long.csv")
    own = {
        (row["suite"], row["characteristic"], row["metric"]): row for row in rows if row["level"] == "ward"
    }
    assert float(own["persons/topdown", "total", "mean_ae"]["value"]) == error
    assert ("persons/blocks", "total", "mean_ae") in own
    assert ("persons/noisy", "total", "mean_ae") not in own
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "ward" in page
    assert "CONFIDENTIAL" not in page
    (tmp_path / "areas.csv").write_text(f"geocode,ward,Ward\n{codes[0]},A,B\n", encoding="utf-8")
    twice = ("--areas", tmp_path / "areas.csv", "--areas", tmp_path / "areas.csv")
    done = censafe("evaluate", "topdown", "e2e-1940", data, tmp_path / "no", "--quiet", *twice, ends=2)
    assert "listed twice" in done.err


@pytest.fixture(scope="module")
def other(data: Path) -> Path:
    """Other records in the same districts, with the same group quarters: everybody is in one cell of its kind."""
    other = data.parent / "other"
    other.mkdir()
    units = pq.read_table(data / "units.parquet").to_pydict()
    (other / "units.parquet").write_bytes((data / "units.parquet").read_bytes())
    codes = [code for code, homes in zip(units["geocode"], units["gq0"], strict=True) if homes]
    homes = [count for count in units["gq0"] if count]
    rows = [(code, 0, count) for code, count in zip(codes, homes, strict=True)]
    for kind in range(1, 8):
        rows += [
            (code, 24 * kind, count)
            for code, count in zip(units["geocode"], units[f"gq{kind}"], strict=True)
            if count
        ]
    geocode, cell, count = zip(*sorted(rows), strict=True)
    write_table(
        other / "histogram.parquet", {"geocode": list(geocode), "cell": list(cell), "count": list(count)}
    )
    return other


def same_files(one: Path, two: Path) -> list[str]:
    """Names of the files of two folders, which must hold the same bytes; the manifest has the random name of the run."""
    names = sorted(str(path.relative_to(one)) for path in one.rglob("*") if path.is_file())
    assert sorted(str(path.relative_to(two)) for path in two.rglob("*") if path.is_file()) == names
    for name in names:
        first, second = (folder.joinpath(name).read_bytes() for folder in (one, two))
        if name == "manifest.json":
            first, second = (
                json.dumps(json.loads(text) | {"run": ""}, sort_keys=True).encode()
                for text in (first, second)
            )
        assert first == second, name
        assert b"CONFIDENTIAL" not in first, name
    return names


@pytest.mark.parametrize(
    "verb", [("topdown", "e2e-1940"), ("sweep", "topdown", "e2e-1940", "--epsilon", "1/2,4")]
)
def test_what_is_public_does_not_depend_on_the_records(
    censafe: CommandLine, data: Path, other: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    names = [one for one in verb if one in ("topdown", "sweep", "e2e-1940")]
    options = verb[len(names) :]
    for number, folder in enumerate((data, other)):
        done = censafe("evaluate", *names, folder, tmp_path / str(number), "--public", *options, ends=0)
        assert "CONFIDENTIAL" not in done.out
    written = same_files(tmp_path / "0", tmp_path / "1")
    assert {"report.html", "expected.csv", "noise_loss.csv", "attack.csv", "codebook.csv"} <= set(written)


def test_the_public_page_of_an_evaluation_holds_nothing_of_its_comparison(
    censafe: CommandLine, data: Path, other: Path, evaluated: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    source = SourceOf.of("e2e-1940", other, SETTINGS)
    evaluate_topdown(source, second, ReadOptions(), RunSeries(1, 8, 1))
    for number, folder in enumerate((evaluated, second)):
        censafe("evaluate", "report", folder, "--public", tmp_path / str(number), ends=0)
    same_files(tmp_path / "0", tmp_path / "1")
    rows = csv_rows(tmp_path / "0" / "expected.csv")
    assert {"4"} == {row["epsilon"] for row in rows}
    repeated = censafe("evaluate", "report", tmp_path / "0", "--public", tmp_path / "again")
    assert (repeated.code, "is public already" in repeated.err) == (2, True)


def test_nothing_is_public_of_an_evaluation_whose_noise_is_not_known(
    censafe: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "one.csv").write_text("REGION_ID,COUNT\n44,1\n45,2\n", encoding="utf-8")
    out = tmp_path / "out"
    censafe("evaluate", "pair", tmp_path / "one.csv", tmp_path / "one.csv", out, ends=0)
    done = censafe("evaluate", "report", out, "--public", tmp_path / "public", ends=2)
    assert "did not keep a configuration" in done.err
    assert not (tmp_path / "public").exists()


@pytest.mark.usefixtures("plain_figures")
def test_a_sweep_makes_the_tables_of_the_study_and_grows(
    censafe: CommandLine, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("censafe.evaluation.topdown.sweep_evaluation.RATES", (25, 75))
    out = tmp_path / "sweep"
    arguments = ("evaluate", "sweep", "topdown", "e2e-1940", data, out, "--runs", 2, "--workers", 1)
    first = censafe(*arguments, "--epsilon", "1,4", ends=0)
    assert "State totals are published exactly." in first.out
    censafe(*arguments, "--epsilon", "1/2,1,4", "--quiet", ends=0, says="4 of 6 runs are there already")
    full = csv_rows(out / "full_table.csv")
    assert {"topdown", "srs"} == {row["method"] for row in full}
    assert {"0.5", "1", "4"} == {row["epsilon"] for row in full if row["method"] == "topdown"}
    county = [
        float(row["mean_ae"])
        for row in full
        if (row["method"], row["mode"], row["stat"], row["level"]) == ("topdown", "corrected", "TC", "County")
    ]
    assert sorted(county, reverse=True) == county
    verdicts = {row["finding"]: row["verdict"] for row in csv_rows(out / "findings.csv")}
    assert len(verdicts) == 7
    assert verdicts["State totals are published exactly."] == "yes"
    for name in ("figure-1", "figure-2", "figure-3-Enumdist", "budget"):
        assert (out / "figures" / f"{name}.svg").exists(), name
    assert {"epsilon", "sample_pct"} <= set(csv_rows(out / "table_one.csv")[0])
    book = load_workbook(out / "workbook.xlsx")
    sheets = ["epsilon 0.5", "epsilon 1", "epsilon 4"]
    assert ["Contents", *sheets, "full_table", "table_one", "findings", "columns"] == book.sheetnames
    assert county == pytest.approx([county_of(book[name]) for name in sheets])


@pytest.mark.usefixtures("plain_figures")
def test_the_study_is_made_of_published_files(
    censafe: CommandLine, data: Path, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("censafe.evaluation.topdown.sweep_evaluation.RATES", (25, 75))
    files = {1: published / "microdata", 4: published}
    command = (
        "evaluate", "sweep", "topdown", "e2e-1940", data, tmp_path / "study", "--quiet", "--published-data",
    )  # fmt: skip
    given = [part for epsilon, path in files.items() for part in ("--published", f"{epsilon}={path}")]
    censafe(*command, *given, "--published", f"4={published / 'microdata' / 'persons.txt'}", ends=0)
    full = csv_rows(tmp_path / "study" / "full_table.csv")
    total = {
        (row["epsilon"], row["level"]): (row["mean_ae"], row["n_runs"])
        for row in full
        if (row["method"], row["stat"], row["mode"]) == ("topdown", "TC", "corrected")
    }
    assert {key: one[0] for key, one in total.items() if key[0] == "1"} == {
        ("1", level): one[0] for (epsilon, level), one in total.items() if epsilon == "4"
    }
    assert {one[1] for (epsilon, _), one in total.items() if epsilon == "4"} == {"2"}
    assert float(total["1", "Enumdist"][0]) > 0
    assert [row["epsilon"] for row in csv_rows(tmp_path / "study" / "table_one.csv")] == ["1", "4"]
    for name in ("figure-1", "figure-2", "figure-3-Enumdist"):
        assert (tmp_path / "study" / "figures" / f"{name}.svg").is_file(), name
    page = (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    assert "published files, 1 to 2 for each budget" in page
    assert "CONFIDENTIAL" not in page


def test_expected_errors_of_a_published_run_are_those_it_has(data: Path, published: Path) -> None:
    """Root mean square errors within a third, and nine of ten true counts in their intervals (more, since they are whole)."""
    folder = published.parent / "further"
    source = PublishedSource(published)
    population = source.open(ReadOptions())
    requests = [RunRequest(Fraction(4), number, 5) for number in range(1, 9)]
    run_all(population, source, requests, folder, workers=1, observer=SilentObserver())
    classes, tables = uncertainty_frames(population, requests, folder, 0.9)
    truth = open_evaluated("e2e-1940", data, SETTINGS, ReadOptions())
    query = "age18plus * hispanic * race"
    level = truth.exact["persons"][-1]
    label = truth.main.schema.query(query).label
    true = np.zeros((level.nodes, 24))
    node = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    np.add.at(true, (node, label[level.cell]), level.count)
    table = tables["persons_age18plus_hispanic_race_Enumdist"].to_pydict()
    errors = np.array(table["published"]) - true.reshape(-1)
    expected = float(np.sqrt((np.array(table["rmse"]) ** 2).mean()))
    assert expected == pytest.approx(float(np.sqrt((errors**2).mean())), rel=0.33)
    inside = (np.array(table["lo"]) <= true.reshape(-1)) & (true.reshape(-1) <= np.array(table["hi"]))
    assert 0.88 <= inside.mean() <= 0.995
    zeros = np.array(table["published"]) == 0
    assert inside[zeros].mean() >= 0.9
    state = [
        row for row in classes.to_pylist() if (row["level"], row["characteristic"]) == ("State", "total")
    ]
    assert {0.0} == {row["rmse"] for row in state}


def test_uncertainty_reads_the_published_folder_only(published: Path, tmp_path: Path) -> None:
    found = evaluate_uncertainty(
        PublishedSource(published), tmp_path / "u", ReadOptions(), RunSeries(2, 1, 1)
    )
    assert found.lines[0] == "NOT PRIVATE: the run used a test key."
    assert not (tmp_path / "u" / "CONFIDENTIAL.txt").exists()
    assert "how sure is" in (tmp_path / "u" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "u" / "intervals" / "persons_total_County.parquet").exists()


def test_two_files_are_compared_and_the_truth_with_itself_has_no_error(
    censafe: CommandLine, data: Path, published: Path, tmp_path: Path
) -> None:
    censafe("evaluate", "pair", data, data, tmp_path / "same", "--config", "e2e-1940", ends=0)
    rows = csv_rows(tmp_path / "same" / "metrics_long.csv")
    inhabited = [row for row in rows if row["reason"] != "empty"]
    assert {0.0} == {float(row["value"]) for row in inhabited if row["metric"] == "max_ae"}
    censafe("evaluate", "pair", data, published, tmp_path / "two", "--config", "e2e-1940", ends=0)
    page = (tmp_path / "two" / "report.html").read_text(encoding="utf-8")
    for name in ("accuracy", "epl", "bias", "diversity", "reliability", "inconsistency"):
        assert f'id="{name}"' in page, name
    for verb in ("epl", "reliability"):
        censafe("evaluate", verb, data, published, tmp_path / verb, "--config", "e2e-1940", ends=0)
        assert csv_rows(tmp_path / verb / f"{verb}.csv")
    words = ("--config", "e2e-1940", "--alpha", "0.5", "--beta", "0.9")
    censafe("evaluate", "reliability", data, published, tmp_path / "loose", *words, ends=0)
    assert "none" not in {row["answer"] for row in csv_rows(tmp_path / "loose" / "reliability.csv")}
    assert "10% of areas are within 50 points" in (tmp_path / "loose" / "report.html").read_text()


def test_tables_of_any_product_are_compared(censafe: CommandLine, tmp_path: Path) -> None:
    true, public = tmp_path / "true.csv", tmp_path / "public.csv"
    true.write_text("REGION_ID|REGION_TYPE|CELL|COUNT\n44|STATE|1|10\n1|USA|1|20\n50|STATE|2|5\n")
    public.write_text("REGION_ID|REGION_TYPE|CELL|COUNT\n44|STATE|1|13\n1|USA|1|19\n50|STATE|1|-2\n")
    done = censafe(
        "evaluate", "pair", true, public, tmp_path / "out", "--by", "REGION_TYPE", "--unmatched-as-zero"
    )
    assert done.code == 0, done.err
    values = {
        (row["level"], row["metric"]): row["value"] for row in csv_rows(tmp_path / "out" / "metrics_long.csv")
    }
    assert (float(values["STATE", "mean_ae"]), float(values["USA", "mean_ae"])) == (10 / 3, 1.0)
    document = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert document["facts"] == {"only_true": 1, "only_published": 1}


@pytest.mark.parametrize(
    ("content", "options", "fragment"),
    [
        ("REGION_ID,NUMBER\n44,1\n", (), "no column COUNT"),
        ("PLACE,COUNT\n44,1\n", (), "no column is a key on both sides"),
        ("REGION_ID,COUNT\n44,1\n44,2\n", (), "1 rows repeat the key"),
        ("REGION_ID,COUNT\n44,1.5\n", (), "not whole numbers"),
        ("REGION_ID,COUNT\n44,1\n", ("--by", "LEVEL"), "no such column"),
    ],
)
def test_bad_tables_are_refused(
    censafe: CommandLine, tmp_path: Path, content: str, options: tuple[str, ...], fragment: str
) -> None:
    true, public = tmp_path / "true.csv", tmp_path / "public.csv"
    true.write_text("REGION_ID,COUNT\n44,1\n" if "NUMBER" not in content else content)
    public.write_text(content)
    censafe("evaluate", "pair", true, public, tmp_path / "out", *options, ends=1, says=fragment)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("sweep", "topdown", "e2e-1940", ".", "out"), "give budgets"),
        (("sweep", "topdown", "e2e-1940", ".", "out", "--epsilon", "1,0"), "above 0"),
        (("sweep", "topdown", "e2e-1940", ".", "out", "--published", "1"), "write EPS=FOLDER"),
        (("sweep", "topdown", "e2e-1940", ".", "out", "--published", "1=nowhere"), "no such file or folder"),
        (("sweep", "topdown", "e2e-1940", ".", "out", "--published", "0=."), "above 0"),
        (
            ("sweep", "topdown", "e2e-1940", ".", "out", "--published", "1=.", "--rho", "1"),
            "says the budgets",
        ),
        (("sweep", "topdown", "e2e-1940", ".", "out", "--epsilon", "1,x"), "is not a number"),
        (("sweep", "phsafe", "sdhc-us", ".", "out", "--epsilon", "1"), "topdown"),
        (("report", "."), "holds no finished evaluation"),
        (("reliability", ".", ".", "out"), "give --config"),
        (("pair", ".", ".", "out", "--groups", "race"), "need --config"),
        (("pair", ".", ".", "out", "--config", "e2e-1940", "--by", "x"), "are for tables"),
        (("pair", ".", ".", "out", "--config", "e2e-1940", "--histogram", "units"), "has persons"),
        (("uncertainty", ".", "out"), "manifest"),
    ],
)
def test_wrong_usage_gets_a_hint(
    censafe: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    fragment: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = censafe("evaluate", *arguments)
    assert done.code in (1, 2)
    assert fragment in done.err


def test_the_plan_of_a_sweep_is_the_plan_of_its_budget(data: Path) -> None:
    population = open_evaluated("e2e-1940", data, {"epsilon": "3/4"}, ReadOptions())
    assert plan_release(population.config).total == Fraction(3, 4)
