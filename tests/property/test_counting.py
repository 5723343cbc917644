"""The engine against the record-by-record reference, on random populations full of faults."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.evaluation.tables.phsafe.truth import truth_tables
from censafe.model import ExactCounts
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.counting import CountAccumulator
from support.reference_counts import reference_release, reference_truth
from support.typed_tables import Records, typed, with_facts

HOUSEHOLDS = list(range(100000001, 100000011))
PERSON_TABLES = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")


def code(*values: int) -> st.SearchStrategy[int | None]:
    """One of the values, or now and then a value that could not be read."""
    return st.one_of(st.sampled_from(values), st.sampled_from(values), st.sampled_from([*values, None]))


MAFID = st.sampled_from([*HOUSEHOLDS, HOUSEHOLDS[0], HOUSEHOLDS[0], None])
PERSONS = st.tuples(
    code(3, 3, 3, 5),
    MAFID,
    code(0, 3, 4, 5, 6, 11, 12, 17, 18, 90),
    code(1, 2),
    code(1, 1, 2, 3, 4, 5, 6, 7, 63),
    code(20, 21, 22, 23, 24, 25, 25, 26, 27, 28, 30, 33, 34, 36, 37),
)
UNITS = st.tuples(
    code(2, 2, 4),
    MAFID,
    code(0, 1, 12),
    code(0, 2),
    code(0, 1, 2),
    code(0, 1, 1, 2, 6, 7, 40),
    code(0, 1, 2, 3, 4),
    code(*range(8)),
    code(*range(13)),
    code(*range(6)),
)
GEO = st.tuples(code(2, 2, 2, 4), MAFID, st.sampled_from(["01", "06", "44"]))
TAU = st.fixed_dictionaries({name: st.sampled_from([1, 2, 3, 6]) for name in PERSON_TABLES})


@st.composite
def populations(draw: st.DrawFn) -> Records:
    """Mostly one unit and one place a household, with repeats, gaps and missing values on top."""
    others = draw(st.sampled_from([0, 2]))
    units = [(2, mafid, *draw(UNITS)[2:]) for mafid in HOUSEHOLDS] + draw(st.lists(UNITS, max_size=others))
    geo = [(2, mafid, draw(GEO)[2]) for mafid in HOUSEHOLDS] + draw(st.lists(GEO, max_size=others))
    persons = draw(st.lists(PERSONS, max_size=60))
    repeated = draw(st.lists(st.sampled_from(persons), max_size=10)) if persons else []
    return Records([*persons, *repeated], units, geo)


def rows(counts: ExactCounts) -> dict[tuple[str, ...], int]:
    """Keys (region, iteration, cell) and values in the order of the domain."""
    columns = [counts.domain.column(name).tolist() for name in counts.domain.names]
    if len(columns) == 2:
        columns.insert(1, ["*"] * counts.domain.size)
    keys = zip(*columns, strict=True)
    return dict(zip(keys, counts.values.tolist(), strict=True))


@settings(max_examples=10)
@given(records=populations(), tau=TAU, facts=st.booleans())
def test_release_counts_agree_with_the_reference(
    backend: Any, records: Records, tau: dict[str, int], facts: bool
) -> None:
    counted = CountAccumulator(phsafe_definitions(), tau=tau)
    tables = typed(records, backend)
    counted.add(with_facts(tables, records) if facts else tables)
    expected, unmatched = reference_release(records, tau)
    actual = {key: rows(exact) for key, exact in counted.finish().items()}
    assert expected.keys() == actual.keys()
    for key, table in expected.items():
        assert list(table) == list(actual[key]), key
        assert table == actual[key], key
    assert unmatched == counted.unmatched


@settings(max_examples=8)
@given(records=populations())
def test_truth_agrees_with_the_reference(backend: Any, records: Records) -> None:
    expected = reference_truth(records)
    counts = CountAccumulator(phsafe_definitions(), mode="truth")
    counts.add(typed(records, backend))
    for name, true_rows in truth_tables(counts).items():
        actual = [(row.region_type, row.region_id, row.iteration, row.cell, row.count) for row in true_rows]
        assert len(set(actual)) == len(actual)
        assert expected.get(name, set()) == set(actual), name
