"""The benchmarks' shared part: measured runs are stored where the plan reads them."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import pytest

from censafe.planning.prices.extras import Run, rate_of

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


@pytest.mark.parametrize("name", ["phsafe", "safetab-p", "safetab-h", "topdown", "dhc"])
def test_every_rate_has_runs_by_size_and_a_benchmark_that_exists(name: str) -> None:
    rate = rate_of(name)
    assert rate.runs
    assert list(rate.runs) == sorted(rate.runs, key=lambda run: run.size)
    assert all(isinstance(run, Run) and run.seconds > 0 and run.gib > 0 for run in rate.runs)
    assert (ROOT / rate.benchmark).is_file()
