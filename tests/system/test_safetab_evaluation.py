"""Evaluations of both SafeTab products on the reference population, and the demonstration of all three."""

import csv
import json
from pathlib import Path

import pytest

from censafe.attack.comparison import entry
from censafe.evaluation import demo
from support.commands import CommandLine
from support.evaluations import page_from_files
from support.shared import shared_data

SETTINGS = ("--set", "state_filter_us=44,50", "--set", "run_pr=false", "--set", "reader=csv")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["classification"] for row in rows} == {"CONFIDENTIAL: compares with the truth"}
    return rows


def pooled(rows: list[dict[str, str]], column: str) -> float:
    """Mean of a column over all cells of the rows."""
    cells = [int(row["noise_cells"]) for row in rows]
    return sum(n * float(row[column]) for n, row in zip(cells, rows, strict=True)) / sum(cells)


@pytest.mark.parametrize(
    ("product", "smallest"),
    [pytest.param("safetab-p", 100_000, marks=pytest.mark.long), ("safetab-h", 200_000)],
)
def test_margins_are_those_that_were_planned(
    censafe: CommandLine, tmp_path: Path, product: str, smallest: int
) -> None:
    parameters = shared_data(f"bureau/{product.replace('-', '_')}/production")
    households = shared_data("population/households")
    out = tmp_path / "evaluation"
    done = censafe("evaluate", product, parameters, households, out, *SETTINGS, "--trials", "4", "--quiet")
    assert done.code == 0, done.err
    assert done.out.startswith("CONFIDENTIAL. 4 noise draws")
    rows = [row for row in rows_of(out / "accuracy.csv") if row["size"] == "all" and int(row["noise_cells"])]
    assert sum(int(row["noise_cells"]) for row in rows) > smallest
    assert {row["stability"] for row in rows} == {"9"}
    # Exact margins cover 0.95 or a little more, as they are whole numbers; of these laws the smallest share is 0.950 and
    # the largest 0.987. The pooled share of more than 100,000 cells has a standard deviation below 0.0007.
    assert 0.947 < pooled(rows, "noise_coverage") < 0.987
    many = [row for row in rows if int(row["noise_cells"]) >= 2_000]
    assert len(many) > 5
    for row in many:
        # the margin of n cells has a standard deviation of about 0.95 / sqrt(n); six of them, and rounding
        n, expected = int(row["noise_cells"]), int(row["expected_moe_exact"])
        assert abs(float(row["noise_moe"]) - expected) <= 1 + 6 * 0.95 / n**0.5 * expected
    shares = rows_of(out / "tables.csv")
    assert {row["table"] for row in shares} > {"none", "T01001" if product == "safetab-p" else "T03001"}
    for name in ("accuracy.svg", "accuracy.png", "CONFIDENTIAL.txt"):
        assert (out / name).stat().st_size > 0
    assert "CONFIDENTIAL" in (out / "accuracy.svg").read_text(encoding="utf-8")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["confidential"] is True
    page = page_from_files(censafe, out)
    assert all(f'id="{name}"' in page for name in ("margins", "coverage", "sums", "bias", "tables"))
    assert ('id="zeros"' in page) == (product == "safetab-p")
    levels = {(row["region_type"], row["iteration_level"]) for row in rows}
    assert len(levels) == page.partition('id="coverage"')[2].partition("</table>")[0].count(
        '<th scope="row">'
    )
    # the exact chance of an error within the margin is the law's, not that of the draws
    exact = [row for row in rows if row["draws_a_cell"] == "1"]
    assert all(0.95 <= float(row["expected_coverage"]) < 0.99 for row in exact)
    assert abs(pooled(exact, "noise_coverage") - pooled(exact, "expected_coverage")) < 0.004


@pytest.mark.long  # make hashes has a smaller one
def test_the_demonstration_runs_everything_and_names_what_to_open(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer persons in its parts, and fewer draws, than anybody may ask for."""
    few = tuple((product, config, 2) for product, config, _ in demo._RELEASES)
    monkeypatch.setattr(demo, "_RELEASES", few)
    monkeypatch.setattr(demo, "_TOPDOWN_LEAST", 300)
    monkeypatch.setattr(entry, "_DEMO_LEAST", 200)
    out = tmp_path / "demo"
    done = censafe("demo", out, "--persons", 1_000, ends=0)
    listed = done.out.rpartition("Open these:\n")[2].splitlines()[::2]
    assert len(listed) == 14
    assert listed[-1].endswith("attack/report.html")
    for line in listed:
        assert Path(line.strip()).stat().st_size > 0
    for product in ("phsafe", "safetab-p", "safetab-h", "topdown"):
        manifest = json.loads((out / product / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["ledger"] is None
        assert f"{out / product}" in done.out
    done = censafe("demo", out, ends=2, says="is not empty")
