"""Derived tables: sums of measured cells with the noise that is in them."""

from fractions import Fraction

import numpy as np
import pytest

from censafe.model import Axis, KeyDomain, Measurements, NoiseLaw, QueryPlan
from censafe.products.phsafe.definitions import derive, phsafe_definitions, published_queries, sum_cells

LAW = NoiseLaw.gaussian(Fraction(5))
DOMAINS = {
    "PH4": KeyDomain(
        (
            Axis("REGION_ID", ("01", "02")),
            Axis("ITERATION_CODE", ("H", "I")),
            Axis("PH4_DATA_CELL", ("2", "3")),
        )
    ),
    "PH7": KeyDomain(
        (
            Axis("REGION_ID", ("01", "02")),
            Axis("ITERATION_CODE", ("H", "I")),
            Axis("PH7_DATA_CELL", ("2", "3", "4")),
        )
    ),
}


def measured(table: str, source: str = "system") -> Measurements:
    domain = DOMAINS[table]
    values = np.arange(domain.size, dtype=np.int64) - 3
    return Measurements(QueryPlan(table, "state_H,I", LAW, Fraction(1, 9)), domain, values, source)  # type: ignore[arg-type]


def test_published_tables_in_output_order_with_their_costs() -> None:
    published = published_queries([measured("PH7"), measured("PH4")])
    assert [query.table for query in published] == ["PH4", "PH5_num", "PH7", "PH8_num"]
    assert [Fraction(1, 9), 0, Fraction(1, 9), 0] == [query.cost for query in published]
    assert {"state_H,I"} == {query.level for query in published}
    assert {LAW} == {query.law for query in published}


def test_ph5_num_repeats_ph4_with_its_noise() -> None:
    ph4, ph5 = published_queries([measured("PH4")])
    assert ph4.values.tolist() == ph5.values.tolist()
    assert ph5.terms.tolist() == [1] * 8
    assert ph5.domain.names == ("REGION_ID", "ITERATION_CODE", "PH5_NUM_DATA_CELL")


def test_ph8_num_adds_cells_of_ph7_and_counts_their_draws() -> None:
    _, ph8 = published_queries([measured("PH7")])
    assert ph8.values.tolist() == [-5, -1, 1, 2, 7, 5, 13, 8]
    assert ph8.terms.tolist() == [2, 1] * 4
    assert (ph8.domain.axes[-1].values, ph8.domain.axes[-1].name) == (("2", "3"), "PH8_NUM_DATA_CELL")
    assert np.int64 == ph8.values.dtype == ph8.terms.dtype


def test_seeded_noise_stays_marked() -> None:
    assert [query.private for query in published_queries([measured("PH7", "seeded")])] == [False, False]


def test_a_table_is_derived_from_its_own_source_only() -> None:
    definitions = phsafe_definitions()
    with pytest.raises(ValueError, match="PH8_num is not derived from PH4"):
        derive(definitions.table("PH8_num"), measured("PH4"))
    with pytest.raises(ValueError, match="PH4 is measured"):
        sum_cells(definitions.table("PH4"), DOMAINS["PH4"], np.zeros(8, dtype=np.int64))
