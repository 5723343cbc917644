"""True counts of SafeTab against the published truth of the reference population, through the reader and the engine."""

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from censafe.errors import CheckError, ConfigError
from censafe.population.detailed.source import RecordScope, SafetabInput, open_safetab
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_levels
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.detailed.intake import GroupCounter
from censafe.products.detailed.plan import plan_release
from censafe.products.detailed.planner import table_9
from censafe.products.detailed.recipe import count_households, count_persons, true_persons
from censafe.products.detailed.recipe import true_households as true_household_counts
from censafe.products.detailed.tables import variants_of
from censafe.tabulation.engine import connect
from support.safetab_reference import HOUSEHOLD_BASIS, Person, person_cells
from support.shared import shared_data

STATES = ("44", "50")
EUROPEAN = "1113"  # European alone or in any combination
Group = tuple[str, str, str]


@pytest.fixture(scope="module")
def folder() -> Path:
    return shared_data("population/households")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    work = tmp_path_factory.mktemp("engine")
    backend = connect(work, threads=2, memory="1GB")
    yield backend, work
    backend.disconnect()


def load(folder: Path, product: Literal["safetab-p", "safetab-h"], engine: tuple[Any, Path]) -> SafetabInput:
    backend, work = engine
    source = open_safetab(
        folder,
        RecordScope(product, "csv", STATES, read_universe().codes, 8),
        backend=backend,
        work=work,
    )
    found = source.load()
    found.require_valid()
    return found


@pytest.fixture(scope="module")
def persons(folder: Path, engine: tuple[Any, Path]) -> GroupCounter:
    return count_persons(load(folder, "safetab-p", engine), read_universe())


@pytest.fixture(scope="module")
def households(folder: Path, engine: tuple[Any, Path]) -> tuple[GroupCounter, SafetabInput]:
    data = load(folder, "safetab-h", engine)
    return count_households(data, read_universe()), data


@pytest.fixture(scope="module")
def published(folder: Path) -> dict[Group, int]:
    with (folder / "pop-group-totals.txt").open(encoding="utf-8", newline="") as file:
        return {
            (row["REGION_TYPE"], row["REGION_ID"], row["ITERATION_CODE"]): int(row["COUNT"])
            for row in csv.DictReader(file, delimiter="|")
        }


def test_t1_equals_the_totals_of_the_reference_population(
    persons: GroupCounter, published: dict[Group, int]
) -> None:
    found: dict[Group, int] = {}
    for level in group_levels(pr=False):
        if level == PopulationGroupLevel("AIANNH", 1):
            continue  # the file has no level 1 there, as production gives it no budget
        public, rows = persons.groups(level, 9).level, true_persons(persons, level)
        sums = np.add.reduceat(rows.values, rows.indptr[:-1])
        for region, iteration, total in zip(rows.region, rows.iteration, sums.tolist(), strict=True):
            found[level.region_type, str(public.regions[region]), public.iterations[iteration]] = total
    assert len(published) == 36_701
    assert published == found


def test_sex_by_age_of_the_states_equals_the_records(persons: GroupCounter, folder: Path) -> None:
    universe = read_universe()
    level = PopulationGroupLevel("STATE", 1)
    public, rows = persons.groups(level, 9).level, true_persons(persons, level)
    codes = universe.members[EUROPEAN]
    for position, state in enumerate(STATES):
        with (folder / "person-records.txt").open(encoding="utf-8", newline="") as file:
            members = [
                Person(0, int(row["QSEX"]), int(row["QAGE"]), (), 0)
                for row in csv.DictReader(file, delimiter="|")
                if row["TABBLKST"] == state
                and any(int(row[f"QRACE{k}"].replace("Null", "0")) in codes for k in range(1, 9))
            ]
        (row,) = np.flatnonzero(
            (rows.region == position) & (rows.iteration == public.iterations.index(EUROPEAN))
        )
        assert rows.stat_level[row] == 3
        assert person_cells(members, 3) == rows.values[rows.indptr[row] : rows.indptr[row + 1]].tolist()
        assert len(variants_of("t1t2")[3].cells) == rows.indptr[row + 1] - rows.indptr[row]


@pytest.mark.parametrize("table_class", ["t3", "t4"])
def test_households_of_the_counties_equal_the_records(
    households: tuple[GroupCounter, SafetabInput],
    published: dict[Group, int],
    folder: Path,
    table_class: Literal["t3", "t4"],
) -> None:
    counter, data = households
    universe, level = read_universe(), PopulationGroupLevel("COUNTY", 2)
    assert data.totals is not None
    rows = true_household_counts(counter, None, data.totals, level, table_class)
    public = counter.groups(level, 9).level
    groups = {
        (str(public.regions[region]), public.iterations[iteration])
        for region, iteration in zip(rows.region, rows.iteration, strict=True)
    }
    assert groups == {
        (region, code) for kind, region, code in published if kind == "COUNTY" and code in public.iterations
    }
    column = "HOUSEHOLD_TYPE" if table_class == "t3" else "TEN"
    basis = HOUSEHOLD_BASIS[table_class][-1]
    expected: dict[tuple[str, str], list[int]] = {group: [0] * len(basis) for group in groups}
    ethnic = [one for one in universe.candidates(2, "coarse").iterations if one.kind == "ethnicity"]
    with (folder / "household-records.txt").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="|"):
            slot = next(slot for slot, codes in enumerate(basis) if int(row[column]) in codes)
            for one in ethnic:
                group = row["TABBLKST"] + row["TABBLKCOU"], one.code
                if int(row["QSPAN"]) in universe.members[one.code] and group in groups:
                    expected[group][slot] += 1
    compared = 0
    for number, (region, iteration) in enumerate(zip(rows.region, rows.iteration, strict=True)):
        group = str(public.regions[region]), public.iterations[iteration]
        if group[1] in {one.code for one in ethnic}:
            assert expected[group] == rows.values[rows.indptr[number] : rows.indptr[number + 1]].tolist()
            compared += sum(expected[group])
    assert compared > 100


# The SafeTab-H paper's Table 9 and the production figures, from the shipped configurations, digit for digit.


def test_table_9_is_reprinted_byte_for_byte() -> None:
    printed = shared_data("bureau/paper_tables/safetab_h_table9.csv").read_bytes()
    assert printed == table_9(load_h_config("ddhcb"), read_universe()).encode()


@pytest.mark.parametrize(
    ("area", "persons", "households"), [("us", "4.944", "8.895302"), ("pr", "2.643", "4.754134")]
)
def test_production_totals(area: str, persons: str, households: str) -> None:
    other = {"run_pr" if area == "us" else "run_us": "false"}
    universe = read_universe()
    assert Fraction(persons) == plan_release(load_p_config("ddhca", other), universe).total
    assert Fraction(households) == plan_release(load_h_config("ddhcb", other), universe).total


def test_budgets_that_are_not_their_targets_are_named() -> None:
    changes = {"budget.t3.usa_2": "1.92", "budget.t4.tract_1": "0.0069"}
    with pytest.raises(CheckError) as caught:
        table_9(load_h_config("ddhcb", changes), read_universe())
    assert "budget.t3.usa_2: target 3 asks for rho 1.920800" in str(caught.value)
    assert "budget.t4.tract_1: target 50 asks for rho 0.006915" in str(caught.value)


def test_the_factor_nine_is_in_the_papers_numbers() -> None:
    fewer = load_h_config("ddhcb", {"max_race_codes": "3"})
    with pytest.raises(CheckError, match=r"target 3 asks for rho 0\.853689"):
        table_9(fewer, read_universe())


def test_configurations_without_the_table() -> None:
    universe = read_universe()
    with pytest.raises(ConfigError, match="no moe_target is stored"):
        table_9(load_p_config("ddhca"), universe)
    with pytest.raises(ConfigError, match="privacy_definition zcdp, not puredp"):
        table_9(load_h_config("ddhcb", {"privacy_definition": "puredp"}), universe)


# rho -> sigma2 detailed-only, stage 1, stage 2; 95% margin of a stage 2 cell.
FIGURES = {
    "usa_2": (2.11, 21.1, 2.34, 3),
    "county_2": (28.3, 283, 31.4, 11),
    "county_1": (562.5, 5625, 625, 49),
}


@pytest.mark.parametrize("level", FIGURES)
def test_production_noise_of_safetab_p(level: str) -> None:
    plan = plan_release(load_p_config("ddhca"), read_universe())
    part = {part.name: part for part in plan.parts}[level]
    *variances, margin = FIGURES[level]
    assert [float(f"{float(query.law.parameter):.3g}") for query in part.queries] == [
        float(f"{number:.3g}") for number in variances
    ]
    assert round(1.96 * float(part.queries[2].law.parameter) ** 0.5) == margin
