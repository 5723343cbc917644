"""Codes to iterations: the twelve cases vetted by the Bureau, and the figures of the production universe."""

import csv
from importlib.resources import files

import numpy as np
import pytest

import censafe.products.detailed.codes as shipped_codes
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import iteration_rows, stability
from support.shared import shared_data

CASES = "race_eth_codes_to_iterations_testcases.txt"
GRANULARITIES = {"detailed": "DETAILED_ITERATION_CODES", "coarse": "COARSE_ITERATION_CODES"}


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_the_vetted_cases(granularity: str) -> None:
    folder = shared_data("bureau/race_mapping")
    universe = read_universe(folder)
    with (folder / CASES).open(encoding="utf-8-sig", newline="") as stream:
        cases = list(csv.DictReader(stream, delimiter="|"))
    assert len(cases) == 12
    combinations = np.zeros((len(cases), 9), dtype=np.int32)
    for row, case in zip(combinations, cases, strict=True):
        races = [int(code) for code in case["RACE_CODES"].split(",")]
        row[: len(races)] = races
        row[-1] = int(case["ETHNICITY_CODE"])
    found: list[set[str]] = [set() for _ in cases]
    for level in (1, 2):
        rows = iteration_rows(universe, level, granularity, combinations)
        codes = universe.candidates(level, granularity).codes
        for case, (start, stop) in enumerate(zip(rows.indptr, rows.indptr[1:], strict=False)):
            found[case] |= {codes[ordinal] for ordinal in rows.ordinals[start:stop]}
    expected = [set(case[GRANULARITIES[granularity]].split(",")) for case in cases]
    assert expected == found


@pytest.mark.parametrize("product", ["safetab_p", "safetab_h"])
def test_production_folders_hold_the_shipped_universe(product: str) -> None:
    universe = read_universe(shared_data(f"bureau/{product}/production"))
    shipped = read_universe()
    assert universe.digest == shipped.digest
    assert [one.name for one in universe.iterations] == [one.name for one in shipped.iterations]
    assert dict(universe.codes) == dict(shipped.codes)


def test_production_counts() -> None:
    universe = read_universe()
    kinds = [one.kind for one in universe.iterations]
    assert (
        len(universe.codes),
        len(kinds) - kinds.count("ethnicity"),
        kinds.count("ethnicity"),
    ) == (1755, 3016, 38)
    assert sum(len(codes) for codes in universe.members.values()) == 14_088
    sizes = {
        (level, granularity): (found.size, int(found.detailed_only.sum()))
        for level in (1, 2)
        for granularity in ("detailed", "coarse")
        for found in [universe.candidates(level, granularity)]
    }
    assert sizes == {
        (1, "detailed"): (52, 4),
        (1, "coarse"): (48, 0),
        (2, "detailed"): (2944, 794),
        (2, "coarse"): (2150, 0),
    }


def test_production_pairs() -> None:
    universe = read_universe()
    pairs = {level: universe.pairs(level) for level in (1, 2)}
    assert {level: len(found) for level, found in pairs.items()} == {1: 24, 2: 1457}
    for alone, combination in (*pairs[1], *pairs[2]):
        name = alone.name.replace(" alone", " alone or in any combination", 1)
        assert name == combination.name
    assert sum(alone.detailed_only != other.detailed_only for alone, other in pairs[2]) == 83


@pytest.mark.parametrize("rule", ["bureau", "exact"])
def test_production_stability_is_nine_by_both_rules(rule: str) -> None:
    universe = read_universe()
    found = {stability(universe, lv, g, 8, rule) for lv in (1, 2) for g in ("detailed", "coarse")}
    assert {9} == found


@pytest.mark.parametrize(
    "name",
    [
        "ethnicity-characteristic-iterations.txt",
        "race-and-ethnicity-codes.txt",
        "race-characteristic-iterations.txt",
    ],
)
def test_shipped_names_of_groups_are_the_bureaus_to_the_byte(name: str) -> None:
    published = shared_data("bureau/safetab_h/production") / name
    assert published.read_bytes() == (files(shipped_codes).joinpath("shipped", name)).read_bytes()
