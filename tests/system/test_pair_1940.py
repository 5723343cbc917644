"""``evaluate pair`` on an extract of the 1940 census, microdata made from it, and definitions of one's own."""

from pathlib import Path

import pytest

from censafe.evaluation.topdown.runs import open_evaluated
from censafe.model import SparseLevel
from censafe.population.synthetic.fixed_width import synthesize_fixed
from censafe.products.run.options import ReadOptions
from support.commands import CommandLine
from support.microdata import write_e2e_persons, write_e2e_units
from support.rows import csv_rows

pytestmark = pytest.mark.usefixtures("plain_figures")
CONFIG = ("--config", "e2e-1940", "--set", "reader=ipums-1940", "--quiet")
DEFINITIONS = """
[[characteristics]]
name = "boarders"
label = "Persons in rooming houses"
sets = ["rooming houses"]

[[characteristics]]
name = "old"
label = "Persons of 65 and older"
sets = ["age 65+"]

[[areas]]
kind = "region"
codes = { north = ["50"], south = ["44"] }
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An extract, and a release that holds exactly its persons."""
    folder = tmp_path_factory.mktemp("1940")
    data, release = folder / "extract", folder / "release"
    synthesize_fixed(data, persons=1_500, states=("44", "50"), seed=2, layout="ipums-1940")
    population = open_evaluated("e2e-1940", data, {"reader": "ipums-1940"}, ReadOptions())
    true = population.pairs["persons"].confidential
    districts = SparseLevel(true.geounits, true.node_ptr, true.cell, true.count)
    facilities = population.loaded.facts.facilities
    (release / "microdata").mkdir(parents=True)
    write_e2e_persons(release / "microdata" / "persons.txt", districts, facilities)
    write_e2e_units(release / "microdata" / "units.txt", districts, facilities)
    return data, release


def test_an_extract_and_its_own_microdata_agree_everywhere(
    censafe: CommandLine, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    definitions = tmp_path / "mine.toml"
    definitions.write_text(DEFINITIONS, encoding="utf-8")
    out = tmp_path / "out"
    asked = (
        "--characteristics", definitions, "--bins", "100", "--residuals", "--side-by-side", "region,State",
    )  # fmt: skip
    censafe("evaluate", "pair", *sides, out, *CONFIG, *asked, ends=0)
    errors = [row for row in csv_rows(out / "metrics_long.csv") if row["suite"] == "accuracy"]
    assert {float(row["value"]) for row in errors if row["metric"] == "max_ae" and row["value"]} == {0.0}
    assert {"region", "Enumdist"} <= {row["level"] for row in errors if row["characteristic"] == "boarders"}
    unmeasured = csv_rows(out / "characteristics_unmeasured.csv")
    assert [(row["characteristic"], row["reason"]) for row in unmeasured] == [
        ("old", "e2e-1940 does not tell: age 65+")
    ]
    assert {row["geocode"] for row in csv_rows(out / "side_by_side" / "region.csv")} == {"north", "south"}
    assert (out / "residuals.parquet").is_file()
    kinds = {row["kind"]: row["status"] for row in csv_rows(out / "inconsistency.csv")}
    assert kinds["minors_in_adult_quarters"] == "counted"
    assert kinds["one_sex"] == "not in this product"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Persons in rooming houses" in page
    assert "CONFIDENTIAL" in page


def test_options_for_histograms_need_a_configuration(
    censafe: CommandLine, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    done = censafe("evaluate", "pair", *sides, tmp_path / "out", "--bins", "10", ends=2)
    assert "Tables take --by, --count, --unmatched-as-zero and --mode only" in done.err
    done = censafe("evaluate", "pair", *sides, tmp_path / "out", *CONFIG, "--area-kinds", "village", ends=2)
    assert "no list of village" in done.err
