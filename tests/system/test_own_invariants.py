"""Answers that a country publishes exactly, from end to end: its files, the plan, a run, its certificate, and a second estimate."""

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from support.commands import CommandLine
from support.exact_answers import invariants
from support.own_records import own_config, write_country

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
