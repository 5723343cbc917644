from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from censafe.estimation.detailed import flag_contradictions
from censafe.model.groups.estimates import GroupEstimates, GroupNoise
from support.group_measurements import level, persons, totals

PAIRS = [("1001", "1002"), ("2001", "2002"), ("9998", "9999")]
COUNTIES = level("county_2", [f"{n:05}" for n in range(200)])


def _hidden(found: GroupEstimates, hidden: np.ndarray) -> set[tuple[int, str]]:
    return {
        (int(found.region[i]), found.level.iterations[found.iteration[i]]) for i in np.flatnonzero(hidden)
    }


@pytest.mark.parametrize("suppress", ["both", "alone"])
def test_pairs_that_contradict_themselves_are_marked(suppress: str) -> None:
    found = totals(persons(COUNTIES))
    sums = {
        (int(region), found.level.iterations[iteration]): int(total)
        for region, iteration, total in zip(found.region, found.iteration, found.totals, strict=True)
    }
    expected = set()
    for region in range(200):
        for alone, other in PAIRS:
            if sums.get((region, alone), -(10**9)) > sums.get((region, other), 10**9):
                expected |= {(region, alone)} | ({(region, other)} if suppress == "both" else set())
    flagged = flag_contradictions(found, PAIRS, suppress=suppress)  # type: ignore[arg-type]
    assert len(expected) > 20
    assert expected == _hidden(found, flagged.hidden)
    assert (flagged.source, flagged.negative) == ("system", "zero")


def test_equal_totals_are_not_a_contradiction() -> None:
    found = totals(persons(COUNTIES, share=1.0))
    same = replace(found, values=np.zeros_like(found.values))
    assert not flag_contradictions(same, PAIRS).hidden.any()


def test_the_larger_variance_is_the_one_that_is_marked() -> None:
    found = totals(persons(level("county_2", ["00001"]), share=1.0))
    law = found.noises[0].law
    wide = replace(
        found,
        stat_level=np.array([1, 0, 0, 0], np.int8),
        indptr=np.array([0, 8, 9, 10, 11]),
        values=np.array([9, *[0] * 7, 1, 5, 4], np.int64),
        noises=(GroupNoise(law, 8), GroupNoise(law, 1)),
        noise=np.array([0, 1, 1, 1], np.int32),
    )
    assert {(0, "1001"), (0, "2001"), (0, "2002")} == _hidden(
        wide, flag_contradictions(wide, PAIRS, suppress="larger-variance").hidden
    )


def test_a_level_without_groups_has_no_marks() -> None:
    found = totals(persons(COUNTIES, Fraction(1), share=0.0))
    assert not len(flag_contradictions(found, PAIRS).hidden)
