"""Relations of persons and households, on blocks that were made by hand."""

import numpy as np
import pytest

from censafe.evaluation.areas.areas import level_areas
from censafe.evaluation.counts.pairing import Pair, PublishedRun, pair_histograms
from censafe.evaluation.pairs.inconsistencies import CONTRADICTIONS, count_contradictions
from censafe.evaluation.summary.counts import SummarySources
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import ExactHistograms, SparseLevel
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.histograms import level_of_records

RULES = (LevelRule("State", 1), LevelRule("Block", 2))
Records = dict[str, list[tuple[int, ...]]]
# relgq, sex, age, hispanic, cenrace: a man of 70 and his wife of 66 with a grandson of 4; a woman of 30 alone
PERSONS: Records = {"11": [(1, 0, 70, 0, 0), (2, 1, 66, 0, 0), (11, 0, 4, 0, 0)], "12": [(0, 1, 30, 1, 6)]}
# sex, hhage, hisp, race, elderly, tenure, type: a married couple of three with a child; a woman alone
HOUSEHOLDS: Records = {"11": [(0, 6, 0, 0, 2, 0, 41)], "12": [(1, 1, 1, 6, 0, 2, 392)]}


def columns(spine: Spine, name: str, records: Records) -> SparseLevel:
    shape = shipped_schemas()[name].schema.shape
    cells = [
        [int(np.ravel_multi_index(one, shape)) for one in records.get(code, [])]
        for code in spine.leaf.geounits.tolist()
    ]
    return level_of_records(spine.leaf.geounits, cells)


def found(persons: Records, households: Records) -> dict[tuple[str, str], tuple[int, int]]:
    """By kind and run, blocks that break a rule, and by how many records."""
    spine = build_spine(np.array(["11", "12"]), RULES)
    pairs: list[Pair] = []
    for name, true, public in (
        ("dhc-persons", PERSONS, persons),
        ("dhc-households", HOUSEHOLDS, households),
    ):
        run = PublishedRun("run", columns(spine, name, public))
        counts = columns(spine, name, true)
        exact = ExactHistograms(counts.geounits, counts.node_ptr, counts.cell, counts.count)
        pairs.append(pair_histograms(shipped_schemas()[name], spine, exact, [run]))
    frame = count_contradictions(SummarySources(tuple(pairs)), [level_areas(spine, "Block")])
    return {(row["kind"], row["run_id"]): (row["n"], row["records"]) for row in frame.to_pylist()}


def broken(persons: Records, households: Records) -> dict[str, tuple[int, int]]:
    return {
        kind: value for (kind, run), value in found(persons, households).items() if run == "run" and value[0]
    }


def test_records_of_the_same_homes_agree() -> None:
    rows = found(PERSONS, HOUSEHOLDS)
    assert {(0, 0)} == set(rows.values())
    # occupied housing units are told by no histogram here
    assert {one.name for one in CONTRADICTIONS} - {"occupied_units"} == {kind for kind, _ in rows}


@pytest.mark.parametrize(
    ("block", "persons", "expected"),
    [
        ("12", [], {"householders", "living_alone", "householders_female", "householders_hispanic", "householders_25-34",
                    "householders_two_or_more_races", "persons_of_sizes", "persons_of_exact_sizes"}),
        ("12", [(0, 1, 30, 1, 6), (15, 0, 61, 0, 0)], {"persons_of_exact_sizes", "any_60_and_over"}),
        ("11", [(1, 0, 70, 0, 0), (4, 1, 66, 0, 0), (11, 0, 4, 0, 0)],
         {"opposite_sex_married_couples", "same_sex_married_couples"}),
        ("11", [(1, 0, 70, 0, 0), (2, 1, 66, 0, 0), (14, 0, 24, 0, 0)], {"under_18", "any_under_18"}),
        ("11", [(1, 0, 66, 0, 0), (2, 1, 76, 0, 0), (11, 0, 4, 0, 0)], {"any_75_and_over"}),
    ],
)  # fmt: skip
def test_a_changed_block_breaks_what_it_should(
    block: str, persons: list[tuple[int, ...]], expected: set[str]
) -> None:
    assert expected == set(broken({**PERSONS, block: persons}, HOUSEHOLDS))


def test_a_household_of_seven_or_more_is_of_no_exact_size() -> None:
    # a couple with a child that is not its own, seven persons or more
    homes = {**HOUSEHOLDS, "11": [(0, 6, 0, 0, 2, 0, 45)]}
    changed = broken(PERSONS, homes)
    assert changed["persons_of_sizes"] == (1, 4)
    assert "persons_of_exact_sizes" not in changed
