"""The Bureau's non-private golden tables, and those of the synthetic population, reproduced by the truth."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import CheckError, ConfigError
from censafe.evaluation.tables.phsafe import TruthRow, truth_tables
from censafe.model import Neighbors
from censafe.planning.prices.rows import plan_rows
from censafe.population.households.source import open_population
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.products.phsafe.plan import plan_release
from censafe.products.phsafe.planner import paper, query_facts
from censafe.tabulation.engine import connect
from censafe.tabulation.tables.counting import CountAccumulator
from support.phsafe_inputs import check, opened
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


# The Bureau's toy, golden and end-to-end inputs and the real-size population, as the specification says.


TOY_STATES = ("01", "02", "44", "51")


def states_of(relative: str) -> tuple[str, ...]:
    return tuple(json.loads((shared_data(relative) / "config.json").read_text())["state_filter"])


def test_the_toy_data_pass_without_strict() -> None:
    report = check(shared_data("bureau/phsafe/toy"), states=TOY_STATES)
    assert not report.fatal
    assert report.regions == {"44"}


def test_the_toy_data_keep_the_key_that_is_in_two_states() -> None:
    with opened(shared_data("bureau/phsafe/toy"), states=TOY_STATES) as parts:
        part = next(parts)
        assert sorted(part.persons.MAFID.to_pyarrow().to_pylist()) == [100000001] * 3 + [100000002] * 2
        assert sorted(part.units.MAFID.to_pyarrow().to_pylist()) == [100000001, 100000002]


@pytest.mark.parametrize("case", range(1, 6))
def test_golden_cases_pass_without_strict(case: int) -> None:
    relative = f"bureau/phsafe/golden/case{case}"
    report = check(shared_data(relative), states=states_of(relative))
    assert not report.fatal
    assert {f.rule for f in report.findings} - {"absent-state"} <= {f"C{number}" for number in range(1, 13)}


def test_the_end_to_end_case_fails_on_its_region_and_reads_with_checks_off() -> None:
    relative = "bureau/phsafe/end_to_end/test1"
    folder, states = shared_data(relative), states_of(relative)
    report = check(folder, states=states)
    assert [(f.column, f.rule, f.rows) for f in report.findings if f.severity == "stop"] == [
        ("REGIONCE", "domain", 1)
    ]
    assert check(folder, states=states, checks="off").findings == ()
    with opened(folder, states=states) as parts:
        part = next(parts)
        kinds = {row["MAFID"]: row["RTYPE"] for row in part.units.to_pyarrow().to_pylist()}
        geo = {row["MAFID"]: row["GEO_RTYPE"] for row in part.geo.to_pyarrow().to_pylist()}
    assert (kinds[100000014], geo[100000014]) == (2, 4)


@pytest.mark.parametrize("most", [None, 10_000])
def test_the_population_of_two_states_passes_strict_validation(most: int | None) -> None:
    folder = shared_data("population/households")
    report = check(folder, states=("44", "50"), strict=True, max_persons=most)
    assert report.findings == ()
    with opened(folder, states=("44", "50"), max_persons=most) as parts:
        counts = [tuple(t.count().to_pyarrow().as_py() for t in (p.persons, p.units, p.geo)) for p in parts]
    assert tuple(map(sum, zip(*counts, strict=True))) == (46_156, 21_987, 21_987)


# The PHSafe paper's Table 10, from the shipped configuration, digit for digit.


TABLE = "bureau/paper_tables/phsafe_table10.csv"


def test_table_10_is_reprinted_byte_for_byte() -> None:
    printed = shared_data(TABLE).read_bytes()
    assert printed == paper(load_phsafe_config("sdhc-us")).encode()


def test_the_plan_shows_the_same_digits() -> None:
    config = load_phsafe_config("sdhc-us")
    rows = [row for row in plan_rows(plan_release(config), query_facts(config)) if not row.derived]
    shown = [
        [
            row.facts.table,
            "NA" if row.facts.tau is None else str(row.facts.tau),
            row.facts.label,
            str(row.facts.target),
            row.loss_text(Neighbors.ADD_REMOVE),
            row.loss_text(Neighbors.REPLACE),
        ]
        for row in rows
    ]
    with shared_data(TABLE).open(encoding="utf-8", newline="") as stream:
        _, *printed = csv.reader(stream)
    assert printed == shown


def test_every_target_is_met_to_its_printed_precision() -> None:
    config = load_phsafe_config("sdhc-us")
    for row in plan_rows(plan_release(config), query_facts(config)):
        if row.facts.target is not None and row.moe is not None:
            assert abs(row.moe - row.facts.target) / row.facts.target < 0.01  # 0.000022 prints two digits


def test_a_budget_that_is_not_its_targets_is_named() -> None:
    config = load_phsafe_config("sdhc-us", {"budget.PH3.state_A-G": "0.6", "budget.PH7.usa_*": "0.002618"})
    with pytest.raises(CheckError) as caught:
        paper(config)
    assert "PH3.state_A-G: target 20 asks for rho 0.662976" in str(caught.value)
    assert "PH7.usa_*: target 500 asks for rho 0.002619" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("sdhc-pr", {}, "no moe_target is stored"),
        ("sdhc-us", {"sensitivity": "household-local"}, "not zcdp and household-local"),
        ("sdhc-us", {"privacy_definition": "puredp"}, "not puredp and bureau"),
    ],
)
def test_configurations_without_the_table(name: str, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        paper(load_phsafe_config(name, overrides))


def test_production_totals() -> None:
    assert Fraction("1.257281") == plan_release(load_phsafe_config("sdhc-us")).total
    assert Fraction("1.226649") == plan_release(load_phsafe_config("sdhc-pr")).total
