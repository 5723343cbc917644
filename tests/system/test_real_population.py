"""The reference population of two states through validate, truth, run and evaluate."""

import csv
from pathlib import Path

import pytest

from support.commands import CommandLine
from support.evaluations import page_from_files
from support.shared import shared_data

SETTINGS = ("--set", "reader=csv", "--set", "state_filter=44,50")


@pytest.fixture
def households() -> Path:
    return shared_data("population/households")


def _lines(path: Path) -> set[tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return {tuple(line) for line in csv.reader(stream, delimiter="|")}


def test_it_is_valid_and_its_truth_is_the_expected_one(
    censafe: CommandLine, households: Path, tmp_path: Path
) -> None:
    censafe("validate", "phsafe", "sdhc-us", households, *SETTINGS, "--strict", ends=0)
    out = tmp_path / "truth"
    censafe("truth", "phsafe", "sdhc-us", households, out, "--confidential", *SETTINGS, ends=0)
    for expected in (households / "expected_phsafe").iterdir():
        found = _lines(out / "tables" / expected.stem / expected.name)
        header = next(iter(line for line in found if line[0] == "REGION_ID"))
        assert {line for line in _lines(expected) if line[0] != "REGION_ID"} == found - {header}


def test_it_is_released_and_evaluated_as_planned(
    censafe: CommandLine, households: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    done = censafe("run", "phsafe", "sdhc-us", households, tmp_path / "out", *SETTINGS, "--ledger", ledger)
    assert done.code == 0, done.err
    assert "total rho 1.25729" in done.out
    done = censafe(
        "evaluate", "phsafe", "sdhc-us", households, tmp_path / "evaluation", *SETTINGS, "--trials", "20"
    )
    assert done.code == 0, done.err
    with (tmp_path / "evaluation" / "accuracy.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    # 90% margins: the share of all 20 x 3,138 noisy cells inside theirs is binomial, sd 0.0012; eight sd either way
    weights = [
        int(row["regions"]) * int(row["trials"]) for row in rows if row["table"] not in ("PH5_num", "PH8_num")
    ]
    shares = [float(row["coverage_noise"]) for row in rows if row["table"] not in ("PH5_num", "PH8_num")]
    coverage = sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)
    assert 0.89 < coverage < 0.912
    page = page_from_files(censafe, tmp_path / "evaluation")
    assert f"Of {sum(weights):,} noisy counts {100 * coverage:.1f}% are within their margin of error" in page
    assert "costs most in PH3" in page
    cut = {row["table"]: 0 for row in rows}
    for row in rows:
        cut[row["table"]] += round(float(row["bias_truncation"]) * int(row["regions"]))
    assert cut["PH1_denom"] == 0
    assert cut["PH7"] < 0  # tau 10 cuts two households
