"""``censafe evaluate semantics`` from the outside: the files, the page, and what they must not hold."""

from fractions import Fraction
from pathlib import Path

import pytest

from censafe.model import Definition
from censafe.privacy.loss.attack import largest_power
from support.commands import CommandLine
from support.rows import csv_rows


def test_under_zcdp_the_best_attack_lies_between_a_coin_and_the_bound(
    censafe: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "meaning"
    censafe("evaluate", "semantics", "topdown", "blocks-16", out, "--quiet", ends=0)
    rows = csv_rows(out / "power.csv")
    questions = {row["question"] for row in rows}
    assert questions == {"one person", "one row of each histogram", "its Block within its Block_Group"}
    for row in rows:
        alarm, best, bound = (
            float(row[name]) for name in ("false_alarm", "discrete_gaussian_randomized", "bound")
        )
        assert alarm < best <= bound + 1e-4
    readings = csv_rows(out / "epsilon.csv")
    assert all(float(row["epsilon_tight"]) < float(row["epsilon_slide"]) for row in readings)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == len(questions) + 1  # and the losses by delta
    assert "CONFIDENTIAL" not in page
    assert not (out / "CONFIDENTIAL.txt").exists()
    described = {row["column"]: row["meaning"] for row in csv_rows(out / "codebook.csv")}
    assert described["bound"] == "no test against any mechanism of that loss has more power"
    censafe("evaluate", "report", out, ends=0)
    assert page == (out / "report.html").read_text(encoding="utf-8")


def test_under_pure_differential_privacy_the_bound_alone_is_stated(
    censafe: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "meaning"
    censafe("evaluate", "semantics", "topdown", "e2e-1940", out, "--set", "epsilon=1", "--quiet", ends=0)
    whole = [row for row in csv_rows(out / "power.csv") if row["question"] == "one row of each histogram"]
    found = {row["false_alarm"]: float(row["bound"]) for row in whole}
    assert found["0.05"] == pytest.approx(largest_power(Fraction(1), Definition.PURE, Fraction(1, 20)))
    assert {row["discrete_gaussian"] for row in whole} == {"nan"}
    assert not (out / "epsilon.csv").exists()
