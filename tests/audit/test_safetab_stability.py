"""Stability attacked by enumeration: no record exceeds it, and some record attains the exact one."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import CheckError
from censafe.products.detailed.codes.mapping import iteration_rows
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.stability import (
    bureau_stability,
    exact_stability,
    require_stable,
    stability,
)
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from support.safetab_universes import groups_of, make_universe

CODES = list(range(1000, 1006))


def partial_partition(label):
    """Disjoint sets of some of the codes: a number per code, 0 for none."""
    return st.lists(st.integers(0, 4), min_size=len(CODES), max_size=len(CODES)).map(
        lambda marks: [
            (label, {code for code, mark in zip(CODES, marks, strict=True) if mark == number})
            for number in sorted(set(marks) - {0})
        ]
    )


UNIVERSES = st.builds(
    lambda alone, combination, ethnicity: make_universe(
        ("combination", set()), *alone, *combination, *ethnicity
    ),
    partial_partition("alone"),
    partial_partition("combination"),
    partial_partition("ethnicity"),
)


def every_record(universe, max_race_codes):
    """All combinations of up to m race codes with every ethnicity code, as rows of codes."""
    codes = list(universe.codes)
    rows = [
        [*races, *[0] * (max_race_codes - len(races)), ethnicity]
        for size in range(1, max_race_codes + 1)
        for races in combinations_with_replacement(codes, size)
        for ethnicity in codes
    ]
    return np.array(rows, dtype=np.int32).reshape(-1, max_race_codes + 1)


@settings(max_examples=60)
@given(universe=UNIVERSES, max_race_codes=st.integers(1, 3))
def test_no_record_exceeds_the_stability_and_one_attains_the_exact_one(universe, max_race_codes):
    records = every_record(universe, max_race_codes)
    rows = iteration_rows(universe, 2, "detailed", records)
    exact = stability(universe, 2, "detailed", max_race_codes, "exact")
    assert exact == rows.most
    assert exact <= stability(universe, 2, "detailed", max_race_codes, "bureau")


@settings(max_examples=60)
@given(universe=UNIVERSES, max_race_codes=st.integers(1, 3), data=st.data())
def test_the_map_is_the_rule_read_with_sets(universe, max_race_codes, data):
    records = every_record(universe, max_race_codes)
    if not len(records):
        return
    chosen = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, max_size=20))
    rows = iteration_rows(universe, 2, "detailed", records[chosen])
    for position, record in enumerate(records[chosen].tolist()):
        ordinals = rows.ordinals[rows.indptr[position] : rows.indptr[position + 1]]
        found = [universe.candidates(2, "detailed").codes[ordinal] for ordinal in ordinals]
        assert sorted(groups_of(universe, 2, "detailed", record[:-1], record[-1])) == found


def test_a_universe_where_the_bureaus_formula_is_too_small():
    codes = list(range(1001, 1009))
    universe = make_universe(
        ("alone", set(codes)), *(("combination", {code}) for code in codes), ("ethnicity", {1001})
    )
    candidates = universe.candidates(2, "detailed")
    assert (bureau_stability(universe, candidates, 8), exact_stability(universe, candidates, 8)) == (9, 10)
    worst = np.array([[*codes, 1001]])
    assert iteration_rows(universe, 2, "detailed", worst).most == 10
    for rule in ("bureau", "exact"):
        assert stability(universe, 2, "detailed", 8, rule) == 10


def test_a_small_universe_where_the_exact_rule_needs_less():
    universe = make_universe(("alone", {1001}), ("combination", {1001}), ("ethnicity", {1002}))
    assert stability(universe, 2, "coarse", 8, "bureau") == 9
    assert stability(universe, 2, "coarse", 8, "exact") == 3
    assert stability(universe, 1, "coarse", 8, "exact") == 0


@pytest.mark.parametrize(
    ("level", "granularity"), [(1, "detailed"), (1, "coarse"), (2, "detailed"), (2, "coarse")]
)
def test_the_worst_production_record_attains_nine(level, granularity):
    universe = read_universe()
    candidates = universe.candidates(level, granularity)
    races = [min(universe.members[one.code]) for one in candidates.iterations if one.kind == "combination"][
        :8
    ]
    ethnic = next(min(universe.members[one.code]) for one in candidates.iterations if one.kind == "ethnicity")
    rows = iteration_rows(universe, level, granularity, np.array([[*races, ethnic]]))
    assert 9 == rows.most == stability(universe, level, granularity, 8, "exact")


def test_random_production_records_never_exceed_nine():
    universe = read_universe()
    draw = np.random.default_rng(5)
    records = draw.choice(np.array(list(universe.codes)), (20_000, 9))
    records[:, :8][np.arange(8) >= draw.integers(1, 9, 20_000)[:, None]] = 0
    for level in (1, 2):
        for granularity in ("detailed", "coarse"):
            assert iteration_rows(universe, level, granularity, records).most <= 9


def test_the_guard_stops_what_the_noise_is_not_made_for():
    indptr = np.array([0, 3, 12, 12, 22])
    level = PopulationGroupLevel("COUNTY", 2)
    require_stable(indptr, 10, level)
    with pytest.raises(CheckError, match=r"\(COUNTY, 2\): 1 combinations of codes are in more than 9 groups"):
        require_stable(indptr, 9, level)
