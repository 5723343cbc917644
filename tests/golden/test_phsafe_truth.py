"""The Bureau's non-private golden tables, and those of the synthetic population, reproduced by the truth."""

import csv
import json
from pathlib import Path

import pytest

from censafe.evaluation.tables.phsafe.truth import TruthRow, truth_tables
from censafe.population.households.source import open_population
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.engine import connect
from censafe.tabulation.tables.counting import CountAccumulator
from support.shared import shared_data

CASES = ["golden/case1", "golden/case2", "golden/case3", "golden/case4", "golden/case5", "end_to_end/test1"]


def expected_rows(path: Path, cell_column: str) -> set[tuple[str, str, str, str, int]]:
    text = path.read_text(encoding="utf-8")
    delimiter = "|" if "|" in text.splitlines()[0] else ","
    rows = list(csv.DictReader(text.splitlines(), delimiter=delimiter))
    return {
        (
            row["REGION_TYPE"],
            row["REGION_ID"],
            row.get("ITERATION_CODE", "*"),
            row[cell_column],
            int(row["COUNT"]),
        )
        for row in rows
    }


def actual_rows(rows: list[TruthRow]) -> set[tuple[str, str, str, str, int]]:
    return {(row.region_type, row.region_id, row.iteration, row.cell, row.count) for row in rows}


def truth_of(folder: Path, states: tuple[str, ...], tmp_path: Path) -> dict[str, list[TruthRow]]:
    backend = connect(tmp_path / "engine")
    source = open_population(folder, reader="csv", states=states, backend=backend, work=tmp_path / "work")
    counts = CountAccumulator(phsafe_definitions(), mode="truth")
    for part in source.parts():
        counts.add(part)
    truth = truth_tables(counts)
    backend.disconnect()
    return truth


@pytest.mark.parametrize("case", CASES)
def test_golden_cases_are_reproduced(case: str, tmp_path: Path) -> None:
    folder = shared_data(f"bureau/phsafe/{case}")
    states = json.loads((folder / "config.json").read_text(encoding="utf-8"))["state_filter"]
    truth = truth_of(folder, tuple(states), tmp_path)
    for path in sorted((folder / "expected").glob("*.csv")):
        column = phsafe_definitions().table(path.stem).cell_column
        assert expected_rows(path, column) == actual_rows(truth[path.stem]), path.stem


@pytest.mark.parametrize("states", [("44", "50"), ("44",)])
def test_the_synthetic_population_is_reproduced(states: tuple[str, ...], tmp_path: Path) -> None:
    folder = shared_data("population/households")
    truth = truth_of(folder, tuple(states), tmp_path)
    assert len(truth) == len(list((folder / "expected_phsafe").glob("*.csv"))) == 11
    for name, rows in truth.items():
        column = phsafe_definitions().table(name).cell_column
        expected = expected_rows(folder / "expected_phsafe" / f"{name}.csv", column)
        if len(states) == 1:  # the expected nation is both states together
            expected = {row for row in expected if row[1] in states}
            actual = {row for row in actual_rows(rows) if row[0] == "STATE"}
        else:
            actual = actual_rows(rows)
        assert expected == actual, name
