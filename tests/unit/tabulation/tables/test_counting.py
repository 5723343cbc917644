"""Key domains, accumulation over parts, unmatched records, what is refused, and the canonical order of truncation."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.errors import ConfigError, DataError
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.counting import (
    Coding,
    CountAccumulator,
    canonical_text,
    coding_for,
    key_domain,
    over_threshold,
    truncate,
)
from support.typed_tables import PERSON_COLUMNS, Records, typed

PHSAFE = phsafe_definitions()
TAU = {"PH1_num": 4, "PH2": 4, "PH3": 4, "PH4": 4, "PH6": 4, "PH7": 4}

# Households of four and five of one state, and a vacant unit of another.
SOUTH = Records(
    persons=[(3, 100000001 + (row >= 4), 30, 1, 1, 20) for row in range(9)],
    units=[
        (2, 100000001, 4, 4, 1, 1, 1, 1, 1, 1),
        (2, 100000002, 5, 5, 2, 2, 2, 1, 1, 1),
        (2, 100000003, 0, 0, 0, 0, 0, 0, 0, 0),
    ],
    geo=[(2, 100000001, "01"), (2, 100000002, "01"), (2, 100000003, "02")],
)
NORTH = Records(
    persons=[(3, 100000009, 30, 1, 1, 20)],
    units=[(2, 100000009, 1, 0, 1, 1, 0, 4, 9, 5)],
    geo=[(2, 100000009, "44"), (4, 100000008, "50")],
)


def test_domains_are_complete_and_in_order() -> None:
    domain = key_domain(PHSAFE, PHSAFE.table("PH8_denom"), "state_A-G", ["01", "44"])
    assert domain.names == ("REGION_ID", "ITERATION_CODE", "PH8_DENOM_DATA_CELL")
    assert (("01", "44"), tuple("ABCDEFG"), ("2", "3")) == tuple(axis.values for axis in domain.axes)
    nation = key_domain(PHSAFE, PHSAFE.table("PH2"), "usa_*", ["01", "44"])
    assert nation.names == ("REGION_ID", "PH2_DATA_CELL")
    assert nation.axes[0].values == ("1",)


def test_parts_add_up_and_regions_unite(backend: Any) -> None:
    counts = CountAccumulator(PHSAFE, tables=["PH7", "PH1_denom"], tau=TAU)
    counts.add(typed(SOUTH, backend))
    assert counts.regions == ("01", "02")
    counts.add(typed(NORTH, backend))
    assert counts.regions == ("01", "02", "44")  # 50 has group quarters only
    finished = counts.finish()
    assert [finished["PH7", "usa_*"].values.sum()] == [8]
    assert finished["PH7", "state_*"].values.tolist() == [4, 4, 0, 0, 0, 0, 0, 0, 0]
    assert finished["PH1_denom", "state_*"].values.tolist() == [2, 0, 1]
    assert counts.unmatched == {"PH1_denom": 0, "PH7": 1}  # the person of the unit without tenure
    assert len(finished) == 12


def test_truncation_keeps_four_of_five(backend: Any) -> None:
    for tau, counted in ((4, 8), (5, 9)):
        counts = CountAccumulator(PHSAFE, tables=["PH1_num"], tau={"PH1_num": tau})
        counts.add(typed(SOUTH, backend))
        assert [0, counted] == counts.finish({"PH1_num": ["usa_*"]})["PH1_num", "usa_*"].values.tolist()


def test_truncation_counts_the_persons_of_the_universe_alone(backend: Any) -> None:
    """Adults of a household take no place of its children in the table of children."""
    home = 100000002
    adults = [(3, home, age, 1, 1, 34) for age in range(30, 35)]
    children = [(3, home, age, 1, 1, 25) for age in (5, 6, 7)]
    data = Records([*adults, *children], SOUTH.units, SOUTH.geo)
    counts = CountAccumulator(PHSAFE, tables=["PH1_num", "PH3"], tau={"PH1_num": 3, "PH3": 3})
    counts.add(typed(data, backend))
    assert {
        table: sum(exact.values) for (table, level), exact in counts.finish().items() if level == "usa_*"
    } == {"PH1_num": 3, "PH3": 3}


def test_only_the_asked_levels_are_counted(backend: Any) -> None:
    counts = CountAccumulator(PHSAFE, tables=["PH8_denom"])
    counts.add(typed(SOUTH, backend))
    assert list(counts.finish({"PH8_denom": ["state_H,I"], "PH2": ["usa_*"]})) == [("PH8_denom", "state_H,I")]
    with pytest.raises(ConfigError, match="PH8_denom has no level 'county_A-G'; its levels are usa_A-G"):
        counts.finish({"PH8_denom": ["county_A-G"]})


def test_empty_tables_give_zeros_over_the_whole_domain(backend: Any) -> None:
    counts = CountAccumulator(PHSAFE, tau=TAU)
    counts.add(typed(Records([], [], SOUTH.geo), backend))
    finished = counts.finish()
    assert len(finished) == 9 * 6 - 2 * 4
    assert all(
        exact.values.sum() == 0 and len(exact.values) == exact.domain.size for exact in finished.values()
    )
    assert finished["PH3", "state_A-G"].domain.shape == (2, 7, 7)


def test_no_region_is_an_error_and_names_the_fix(backend: Any) -> None:
    counts = CountAccumulator(PHSAFE, tau=TAU)
    counts.add(typed(Records(SOUTH.persons, SOUTH.units, [(4, 100000001, "01")]), backend))
    with pytest.raises(DataError, match=r"no region to publish\. Check state_filter"):
        counts.finish()


@pytest.mark.parametrize("tau", [{}, {**TAU, "PH3": 0}, {**TAU, "PH3": True}, {**TAU, "PH3": 2.0}])
def test_tau_must_be_a_positive_integer(tau: Any) -> None:
    with pytest.raises(ConfigError, match=r"at least 1 is needed for .*PH3"):
        CountAccumulator(PHSAFE, tau=tau)


def test_unknown_and_derived_tables_are_refused() -> None:
    for name in ("PH9", "PH8_num"):
        with pytest.raises(ConfigError, match=f"cannot count .*{name}"):
            CountAccumulator(PHSAFE, tables=[name], tau=TAU)


def test_counts_stay_out_of_messages(backend: Any) -> None:
    counts = CountAccumulator(PHSAFE, tables=["PH7"], tau=TAU)
    counts.add(typed(SOUTH, backend))
    assert "8" not in repr(counts.finish({"PH7": ["usa_*"]})["PH7", "usa_*"]).replace("PH8", "")


# Atoms: no finer than needed, and never across a condition.


CODES = st.integers(0, 2**13 - 1).map(lambda bits: frozenset(code for code in range(13) if bits >> code & 1))
"""Sets of the codes 0 to 12, each from one drawn number; sets drawn code by code took too long on a busy machine."""
WHERE = st.fixed_dictionaries({}, optional={"A": CODES, "B": CODES})


@given(st.lists(WHERE, max_size=5))
def test_atoms_refine_every_condition_and_are_as_few_as_possible(
    conditions: list[dict[str, frozenset[int]]],
) -> None:
    coding = coding_for(conditions)
    for column, atoms in coding.atoms.items():
        sets = [condition[column] for condition in conditions if column in condition]
        assert sum(map(len, atoms)) == len(frozenset().union(*sets))
        for codes in sets:
            admitted = coding.admitted(column, codes)
            assert not admitted[0]
            chosen = [atom for atom, inside in zip(atoms, admitted[1:], strict=True) if inside]
            assert codes == frozenset().union(*chosen)
        signatures = {tuple(atom <= codes for codes in sets) for atom in atoms}
        assert len(signatures) == len(atoms)


def test_decode_numbers_the_last_column_fastest() -> None:
    coding = Coding({"A": (frozenset({1}), frozenset({2})), "B": (frozenset({5}),)})
    assert coding.shape == (3, 2)
    assert coding.size == 6
    decoded = coding.decode(np.arange(6))
    assert decoded["A"].tolist() == [0, 0, 1, 1, 2, 2]
    assert decoded["B"].tolist() == [0, 1, 0, 1, 0, 1]
    assert Coding({}).decode(np.arange(1)) == {}


def test_a_condition_that_the_coding_was_not_made_for_is_refused() -> None:
    coding = coding_for([{"A": frozenset({1, 2})}])
    for codes in ({1}, {1, 2, 3}):
        with pytest.raises(ValueError, match="not made for these codes"):
            coding.admitted("A", frozenset(codes))


CANONICAL = phsafe_definitions().canonical

HOUSEHOLD = [
    (3, 100000001, 41, 1, 1, 20),
    (3, 100000001, 39, 1, 1, 21),
    (3, 100000001, 7, 1, 12, 25),
    (3, 100000001, 7, 1, 12, 25),
    (3, 100000001, 3, 2, 63, 25),
    (3, 100000001, None, 1, 1, 29),
]
# SHA-256 of "3|100000001|41|1|01|20|1" and so on: the order in which this household is retained.
RETAINED_IN_ORDER = [4, 3, 1, 2, 0, 5]


def persons(backend: Any, rows: list[tuple[int | None, ...]]) -> Any:
    return typed(Records(rows, [], []), backend).persons


def people(table: Any) -> Counter[tuple[Any, ...]]:
    arrow = table.to_pyarrow()
    return Counter(zip(*(arrow[column].to_pylist() for column in PERSON_COLUMNS), strict=True))


def test_canonical_text_is_fixed(backend: Any) -> None:
    records = persons(backend, HOUSEHOLD)
    texts = records.select(text=canonical_text(records, CANONICAL)).to_pyarrow()["text"].to_pylist()
    assert Counter(
        [
            "3|100000001|41|1|01|20", "3|100000001|39|1|01|21", "3|100000001|7|1|12|25", "3|100000001|7|1|12|25",
            "3|100000001|3|2|63|25", "3|100000001||1|01|29",
        ]
    ) == Counter(texts)  # fmt: skip


def test_the_kept_rows_of_a_household_are_fixed_for_all_time(backend: Any) -> None:
    digests = {
        hashlib.sha256(text.encode()).hexdigest()[:8]: row
        for text, row in [
            ("3|100000001|41|1|01|20|1", 0),
            ("3|100000001|39|1|01|21|1", 1),
            ("3|100000001|7|1|12|25|1", 2),
            ("3|100000001|7|1|12|25|2", 3),
            ("3|100000001|3|2|63|25|1", 4),
            ("3|100000001||1|01|29|1", 5),
        ]
    }
    assert [digests[digest] for digest in sorted(digests)] == RETAINED_IN_ORDER
    for tau in range(1, len(HOUSEHOLD) + 2):
        retained, dropped = truncate(persons(backend, HOUSEHOLD), "MAFID", CANONICAL, tau)
        assert Counter(HOUSEHOLD[row] for row in RETAINED_IN_ORDER[:tau]) == people(retained)
        assert Counter(HOUSEHOLD[row] for row in RETAINED_IN_ORDER[tau:]) == people(dropped)


@pytest.mark.parametrize(("tau", "retained_rows"), [(4, 8), (5, 9), (6, 9), (1, 2)])
def test_households_of_four_and_five(backend: Any, tau: int, retained_rows: int) -> None:
    rows = [(3, 100000001 + (row >= 4), 30 + row % 3, 1, 1, 20) for row in range(9)]
    retained, dropped = truncate(persons(backend, rows), "MAFID", CANONICAL, tau)
    assert retained_rows == people(retained).total()
    assert 9 - retained_rows == people(dropped).total()


def test_one_person_changes_the_kept_rows_by_at_most_two(backend: Any) -> None:
    chance = random.Random(7)
    rows = [(3, chance.choice([100000001, 100000002]), chance.randrange(3), 1, 1, 25) for _ in range(9)]
    for tau in (1, 3):
        reached = 0
        whole = people(truncate(persons(backend, rows), "MAFID", CANONICAL, tau)[0])
        for position in range(len(rows)):
            fewer = rows[:position] + rows[position + 1 :]
            retained = people(truncate(persons(backend, fewer), "MAFID", CANONICAL, tau)[0])
            change = (whole - retained).total() + (retained - whole).total()
            assert change <= 2
            reached = max(reached, change)
        assert reached == 2


def test_only_households_over_the_threshold_are_named(backend: Any) -> None:
    records = persons(backend, [(3, mafid, 1, 1, 1, 25) for mafid in (100000001, 100000002, 100000002)])
    assert over_threshold(records, "MAFID", 1).to_pyarrow()["MAFID"].to_pylist() == [100000002]
    assert over_threshold(records, "MAFID", 2).to_pyarrow()["MAFID"].to_pylist() == []
