"""The benchmarks' shared part: measured runs are stored where the plan reads them."""

import json
import runpy
import shutil
import sys
from importlib import import_module
from pathlib import Path

import pytest

from censafe.planning.prices.extras import Run, rate_of
from censafe.population.records.reader import read_records
from support.own_records import layout_of

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "src/censafe/planning/prices/measured_runs.json"


def test_a_recorded_run_takes_the_place_of_one_of_its_size(tmp_path: Path) -> None:
    record = runpy.run_path(str(ROOT / "benchmarks" / "harness.py"))["record"]
    file = tmp_path / "runs.json"
    shutil.copy(STORED, file)
    record(file, "phsafe", {"size": 1_000_000, "seconds": 2.5, "gib": 0.25})
    record(file, "phsafe", {"size": 2_000_000, "seconds": 3.5, "gib": 0.5})
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (STORED, file))
    sizes = [run["size"] for run in after["phsafe"]["runs"]]
    assert sizes == sorted([*(run["size"] for run in before["phsafe"]["runs"]), 2_000_000])
    assert after["phsafe"]["runs"][0] == {"size": 1_000_000, "seconds": 2.5, "gib": 0.25}
    assert {name: rate for name, rate in after.items() if name != "phsafe"} == {
        name: rate for name, rate in before.items() if name != "phsafe"
    }


def test_a_table_of_one_call_is_written_into_its_place_and_part_of_a_table_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    harness = import_module("harness")
    page = tmp_path / "benchmarks" / "README.md"
    page.parent.mkdir()
    begin = "<!-- measured speed by benchmarks/speed.py at 12345678 on 2020-01-01 -->"
    page.write_text(f"{begin}\n\nold\n\n<!-- end of speed -->\n", encoding="utf-8")
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "benchmarks" / "speed.py")])
    arguments = harness.parser_of("Speed.").parse_args(["--write", "speed"])
    harness.report(
        arguments,
        lambda *_: [3, 4],
        lambda _: ["3 and 4"],
        page=lambda row: harness.markdown(("a", "b"), [row]),
    )
    assert "\n\n| a | b |\n|---|---:|\n| 3 | 4 |\n\n<!-- end of speed -->" in page.read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="--write"):
        harness.report(arguments, lambda *_: [3, 4], lambda _: ["3 and 4"])


def test_a_table_of_coverage_has_two_levels_a_column_and_says_how_far_from_nominal_its_shares_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    intervals = import_module("intervals")
    row = {"kind": "State", "draws": 1_500, "covered90": 90.5, "error90": 0.25, "covered95": 95.1, "error95": 0.1}  # fmt: skip
    block = row | {"kind": "Block", "covered90": 90.0, "error90": 0.0}
    columns = {"units": [block, row], "persons": [block]}
    assert intervals.coverage_table(columns) == [
        "| kind of area | units, 1,500 draws, 90% | 95% | persons, 1,500 draws, 90% | 95% |",
        "|---|---|---|---|---|",
        "| State | 90.50 ± 0.25 | 95.10 ± 0.10 |  |  |",
        "| Block | 90.00 ± 0.00 | 95.10 ± 0.10 | 90.00 ± 0.00 | 95.10 ± 0.10 |",
    ]
    assert intervals.distances(columns) == (
        "Farthest from nominal: 2.0 standard errors, of 4 shares; 0.10 points, of those with a standard error below 0.2."
    )


def test_the_records_of_the_benchmark_are_those_that_its_configuration_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    benchmark = import_module("own_records")
    benchmark.write_country(tmp_path / "data", persons=3_000, seed=1)
    text = benchmark.CONFIGURATION.replace("AREAS", "areas.csv")
    (tmp_path / "scratch").mkdir()
    data = read_records(layout_of(tmp_path, text), tmp_path / "data", tmp_path / "scratch")
    assert data.findings == ()
    assert data.blocks is not None
    assert len(data.blocks.spine.leaf.geounits) == 20_000
    assert {int(sizes.sum()) for sizes in data.counts.values()} == {3_000}
    assert all(sizes.all() for sizes in data.counts.values())
    figures = {"seconds": 60.04, "cpu_seconds": 55.55, "peak_gib": 2.345}
    row = {"persons": 50_000_000, "gib_of_file": 1.9, "stages": {"read and validate": 40.01}, **figures}
    assert benchmark.page([row])[-1] == "| 50 million | 1.90 | 60.0 | 55.5 | 40.0 | 2.35 |"


@pytest.mark.parametrize("name", ["phsafe", "safetab-p", "safetab-h", "topdown", "dhc"])
def test_every_rate_has_runs_by_size_and_a_benchmark_that_exists(name: str) -> None:
    rate = rate_of(name)
    assert rate.runs
    assert list(rate.runs) == sorted(rate.runs, key=lambda run: run.size)
    assert all(isinstance(run, Run) and run.seconds > 0 and run.gib > 0 for run in rate.runs)
    assert (ROOT / rate.benchmark).is_file()
