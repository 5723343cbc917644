"""``censafe evaluate pair`` on microdata, areas off the spine, and housing units."""

import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

from censafe.population.synthetic.blocks import synthesize_histograms
from support.commands import CommandLine
from support.histograms import write_table
from support.rows import csv_rows

HEADER = "SCHEMA_TYPE_CODE|SCHEMA_BUILD_ID|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK"
PERSONS_WITHOUT = (
    "Household population is equal to or greater than 1 while the number of occupied housing units is 0"
)
pytestmark = pytest.mark.usefixtures("plain_figures")
CONFIG = ("--config", "pl94-us", "--set", "root=State", "--quiet")


def block(code: str) -> str:
    return f"MPD|1|{code[:2]}|{code[2:5]}|{code[5:11]}|{code[11]}|{code[12:]}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A synthetic state, and a published folder of microdata in which one block lost a person and another its units."""
    truth = tmp_path_factory.mktemp("pair") / "truth"
    synthesize_histograms(truth, persons=3_000, states=("56",), seed=3)
    published = truth.parent / "published" / "microdata"
    published.mkdir(parents=True)
    rows = pq.read_table(truth / "histogram.parquet").to_pydict()
    lines = ["# a comment", f"{HEADER}|EPNUM|RTYPE|GQTYPE_PL|VOTING_AGE|CENHISP|CENRACE"]
    for code, cell, count in zip(rows["geocode"], rows["cell"], rows["count"], strict=True):
        gq, age, hispanic, race = np.unravel_index(cell, (8, 2, 2, 63))
        row = f"{block(code)}|1|{5 if gq else 3}|{gq}|{age + 1}|{hispanic + 1}|{race + 1:02d}"
        lines += [row] * count
    (published / "persons.txt").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    units = pq.read_table(truth / "units.parquet").to_pydict()
    first = next(place for place, occupied in enumerate(units["occupied"]) if occupied)
    lines = [f"{HEADER}|RTYPE|HH_STATUS"]
    for place, code in enumerate(units["geocode"]):
        occupied = units["occupied"][place] if place != first else 0
        lines += [f"{block(code)}|2|1"] * occupied + [f"{block(code)}|2|2"] * (units["gq0"][place] - occupied)
        lines += [f"{block(code)}|4|0"]
    (published / "units.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return truth, published.parent


@pytest.fixture(scope="module")
def place_list(folders: tuple[Path, Path]) -> Path:
    """Every second block lies in a place, the others in none."""
    path = folders[0].parent / "areas.csv"
    codes = pq.read_table(folders[0] / "units.parquet").column("geocode").to_pylist()
    lines = [f"{code},{'A' if number % 2 else ''}" for number, code in enumerate(codes)]
    path.write_text("\n".join(["geocode,place", *lines]) + "\n", encoding="utf-8")
    return path


def test_microdata_units_and_places_are_compared_block_by_block(
    censafe: CommandLine, folders: tuple[Path, Path], place_list: Path, tmp_path: Path
) -> None:
    truth, published = folders
    censafe("evaluate", "pair", truth, published, tmp_path / "out", *CONFIG, "--areas", place_list, ends=0)
    metrics = {
        (row["level"], row["characteristic"], row["metric"], row["size_class"]): float(row["value"])
        for row in csv_rows(tmp_path / "out" / "metrics_long.csv")
    }
    blocks = pq.read_table(truth / "units.parquet").num_rows
    assert metrics["State", "total", "me", "all"] == -1.0
    assert metrics["Block", "total", "mean_ae", "all"] == pytest.approx(1 / blocks)
    assert metrics["place", "total", "count_mean", "all"] < metrics["State", "total", "count_mean", "all"]
    kinds = {
        (row["level"], row["kind"], row["run_id"]): int(row["n"])
        for row in csv_rows(tmp_path / "out" / "inconsistency.csv")
        if row["status"] == "counted" and row["size_class"] == "all"
    }
    assert kinds["Block", "persons_without_occupied", "1"] == 1
    assert kinds["Block", "persons_without_occupied", "truth"] == 0
    assert kinds["Block", "total_differs", "1"] == 1
    book = load_workbook(tmp_path / "out" / "workbook.xlsx", read_only=True)
    assert book["inconsistency"]["A1"].value == "CONFIDENTIAL: compares with the truth"
    head, *lines = book["metrics_wide"].iter_rows(min_row=2, values_only=True)
    wide = [dict(zip(head, line, strict=True)) for line in lines]
    first = next(row for row in wide if (row["level"], row["characteristic"]) == ("State", "total"))
    assert first["me"] == -1
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "needs SEX" in page
    assert "place" in page


OWN_TABLE = """
[[tables]]
number = "Ours 1"
sheet = "Ours"
title = "Places"
universe = "Total population"
geography = "Places"
columns = "outliers"
parts = [{ areas = "place", label = "All places" }]
"""


def test_the_workbook_has_the_bureaus_tables_and_those_of_a_file(
    censafe: CommandLine, folders: tuple[Path, Path], place_list: Path, tmp_path: Path
) -> None:
    truth, published = folders
    (tmp_path / "own.toml").write_text(OWN_TABLE, encoding="utf-8")
    more = ("--areas", place_list, "--tables", tmp_path / "own.toml")
    censafe("evaluate", "pair", truth, published, tmp_path / "out", *CONFIG, *more, ends=0)
    book = load_workbook(tmp_path / "out" / "workbook.xlsx")
    ours = next(row for row in book["Ours"].iter_rows(values_only=True) if row[0] == "All places")
    bureau = next(
        row for row in book["Updated BAP"].iter_rows(values_only=True) if row[0] == "All incorporated places"
    )
    assert bureau[1:10] == ours[1:10]
    assert ours[1] == 1
    rows = csv_rows(tmp_path / "out" / "summary_tables.csv")
    found = {(row["number"], row["row"], row["metric"]): row for row in rows}
    assert float(found["Ours 1", "All places", "mean_ae"]["value"]) == ours[2]
    assert found["Use Case Table 1", "All tracts", "rmse"]["reason"] == "needs AGE"
    assert "CONFIDENTIAL" in rows[0]["classification"]
    contradictions = {
        (row["kind"], row["level"], row["run_id"]): row["n"]
        for row in csv_rows(tmp_path / "out" / "inconsistency.csv")
        if row["size_class"] == "all"
    }
    assert float(found["Inconsistency Table 4", PERSONS_WITHOUT, "met_published"]["value"]) == float(
        contradictions["persons_without_occupied", "Block", "1"]
    )
    refused = censafe("evaluate", "pair", truth, published, tmp_path / "no", *CONFIG, "--tables", place_list)
    assert refused.code == 1
    assert "not valid TOML" in refused.err


def test_two_text_files_are_compared_by_a_named_column(censafe: CommandLine, tmp_path: Path) -> None:
    for name, first in (("a", 5), ("b", 6)):
        lines = ("area,year,pop", f"01,2020,{first}", "02,2020,7")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sides = (tmp_path / "a.csv", tmp_path / "b.csv")
    done = censafe("evaluate", "pair", *sides, tmp_path / "out", "--count", "pop", "--quiet", ends=0)
    errors = {row["metric"]: row["value"] for row in csv_rows(tmp_path / "out" / "metrics_long.csv")}
    assert float(errors["mean_ae"]) == 0.5
    left = {row["measure"] for row in csv_rows(tmp_path / "out" / "left_out.csv")}
    assert left == {"reliability", "diversity", "homogeneity"}
    assert "Left out: reliability: tables do not tell" in done.out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Mean absolute error of the count: 0.5 over all rows." in page
    assert "What could not be measured?" in page


def classified_files(folder: Path) -> list[str]:
    """Files of an evaluation in which CONFIDENTIAL stands, those of a workbook and of Parquet among them."""
    found = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as book:
                text = b"".join(book.read(name) for name in book.namelist())
        else:
            text = path.read_bytes()
        if b"CONFIDENTIAL" in text or "CONFIDENTIAL" in path.name:
            found.append(path.name)
    return found


def test_nothing_is_stamped_confidential_where_the_truth_was_published(
    censafe: CommandLine, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    more = ("--residuals", "--side-by-side", "County", "--published-data")
    done = censafe("evaluate", "pair", *folders, tmp_path / "out", *CONFIG, *more, ends=0)
    assert classified_files(tmp_path / "out") == []
    assert done.out.startswith("Public, as the truth was published.")
    rows = csv_rows(tmp_path / "out" / "metrics_long.csv")
    assert {row["classification"] for row in rows} == {
        "public: compares with counts that were published before"
    }
    (tmp_path / "a.csv").write_text("area,count\n1,5\n2,7\n", encoding="utf-8")
    table = tmp_path / "a.csv"
    for name, option in (("said", ("--published-data",)), ("unsaid", ())):
        censafe("evaluate", "pair", table, table, tmp_path / name, "--quiet", *option, ends=0)
    assert classified_files(tmp_path / "said") == []
    assert "confidential" not in (tmp_path / "said" / "report.html").read_text(encoding="utf-8").lower()
    words = {row["column"]: row["meaning"] for row in csv_rows(tmp_path / "out" / "codebook.csv")}
    assert words["count_sf"] == "count as tabulated: the true one"
    assert {"report.html", "metrics_long.csv", "workbook.xlsx"} <= set(classified_files(tmp_path / "unsaid"))


def test_files_of_units_may_be_named(
    censafe: CommandLine, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    truth, published = folders
    sides = (truth / "histogram.parquet", published / "microdata" / "persons.txt")
    units = (
        "--true-units",
        truth / "units.parquet",
        "--published-units",
        published / "microdata" / "units.txt",
    )
    censafe("evaluate", "pair", *sides, tmp_path / "out", *CONFIG, *units, ends=0)
    kinds = {
        (row["kind"], row["run_id"]): int(row["n"])
        for row in csv_rows(tmp_path / "out" / "inconsistency.csv")
        if row["level"] == "Block" and row["status"] == "counted" and row["size_class"] == "all"
    }
    assert kinds["persons_without_occupied", "1"] == 1
    alone = censafe("evaluate", "pair", *sides, tmp_path / "other", *CONFIG, *units[:2], ends=2)
    assert "--true-units and --published-units go together" in alone.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("|GQTYPE_PL|", "|GQTYPE|"), "lacks GQTYPE_PL of pl94-persons"),
        (("|3|0|2|", "|3|0|9|"), "VOTING_AGE"),
        (("MPD|1|56|", "MPD|1|x6|"), "codes that are not digits"),
    ],
)
def test_microdata_that_break_the_layout_are_refused(
    censafe: CommandLine, folders: tuple[Path, Path], tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    truth, published = folders
    text = (published / "microdata" / "persons.txt").read_text(encoding="utf-8")
    (tmp_path / "persons.txt").write_text(text.replace(*change, 1), encoding="utf-8")
    done = censafe("evaluate", "pair", truth, tmp_path / "persons.txt", tmp_path / "out", *CONFIG, ends=1)
    assert message in done.err


def test_units_of_other_blocks_and_other_schemas_are_refused(
    censafe: CommandLine, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    truth, published = folders
    other = tmp_path / "units.parquet"
    write_table(other, {"geocode": ["5699901000011001"], "gq0": [1], "occupied": [1]})
    sides = (truth, published, tmp_path / "out")
    done = censafe("evaluate", "pair", *sides, *CONFIG, "--true-units", other, "--published-units", other)
    assert done.code == 1
    assert "1 blocks are not among those of the persons" in done.err
    write_table(other, {"geocode": ["5699901000011001"], "gq0": [1], "occupied": [2]})
    done = censafe("evaluate", "pair", *sides, *CONFIG, "--true-units", other, "--published-units", other)
    assert "more occupied than housing units" in done.err


def test_further_runs_have_a_name_or_none(censafe: CommandLine, tmp_path: Path) -> None:
    table = tmp_path / "a=b.csv"
    table.write_text("area,count\n1,5\n", encoding="utf-8")

    def message(also: str) -> str:
        return censafe("evaluate", "pair", table, table, tmp_path / "out", "--also", also).err

    assert "write NAME=PATH or PATH" in message("nowhere")
    assert "there is no such file or folder" in message("june=nowhere")
    assert "numbers up to 999 name the runs" in message(f"2={table}")
    for right in (str(table), f"june={table}"):
        assert "need --config" in message(right)
