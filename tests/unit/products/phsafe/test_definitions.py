"""Derived tables as sums of measured cells, and laws and losses of the three calibrations against the published numbers and the written claims."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.model import Axis, Definition, KeyDomain, Measurements, Neighbors, NoiseLaw, QueryPlan
from censafe.privacy.noise.variance import reference_variance
from censafe.products.phsafe.definitions import (
    SENSITIVITIES,
    Sensitivity,
    derive,
    loss_factor,
    neighbors_of,
    noise_law,
    phsafe_definitions,
    published_queries,
    query_loss,
    relation_text,
    sensitivity_bound,
    sum_cells,
)

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


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("tau", "rho", "variance"),
    [(HALF, HALF, 9), (1, Fraction(1), 8), (2, Fraction(2), 9), (None, HALF, 4)],
)
def test_published_variances_under_zcdp(tau: Any, rho: Fraction, variance: int) -> None:
    assert NoiseLaw.gaussian(Fraction(variance)) == noise_law(Definition.ZCDP, "bureau", tau, rho)


@pytest.mark.parametrize(
    ("tau", "epsilon", "variance"),
    [
        (1, Fraction(1), 31.83385287773731),
        (None, Fraction(2), 1.8413471884155848),
        (5, HALF, 1151.83335),
    ],
)
def test_published_variances_under_pure_dp(tau: int | None, epsilon: Fraction, variance: float) -> None:
    law = noise_law(Definition.PURE, "bureau", tau, epsilon)
    assert math.isclose(variance, reference_variance(law), rel_tol=1e-8)


@pytest.mark.parametrize(
    ("tau", "rho", "variance"),
    [
        (10, "0.002619", 92401.68),
        (10, "0.016371", 14782.24),
        (10, "0.141622", 1708.77),
        (6, "0.001061", 92365.69),
        (6, "0.006630", 14781.30),
        (6, "0.662976", 147.82),
        (None, "0.000022", 90909.09),
        (None, "0.000135", 14814.81),
        (None, "0.00117", 1709.40),
    ],
)
def test_production_variances(tau: int | None, rho: str, variance: float) -> None:
    law = noise_law(Definition.ZCDP, "bureau", tau, Fraction(rho))
    assert variance == round(float(law.parameter), 2)


@pytest.mark.parametrize("tau", [1, 6, 10])
def test_local_calibrations(tau: int) -> None:
    rho = Fraction(1, 100)
    zcdp, pure = Definition.ZCDP, Definition.PURE
    expected = {
        (zcdp, "household-local", tau): NoiseLaw.gaussian(tau**2 / rho),
        (zcdp, "household-local", None): NoiseLaw.gaussian(1 / rho),
        (zcdp, "household-local-bounded", tau): NoiseLaw.gaussian(4 * tau**2 / rho),
        (zcdp, "household-local-bounded", None): NoiseLaw.gaussian(4 / rho),
        (pure, "household-local", tau): NoiseLaw.laplace(2 * tau / rho),
        (pure, "household-local", None): NoiseLaw.laplace(2 / rho),
        (pure, "household-local-bounded", tau): NoiseLaw.laplace(4 * tau / rho),
        (pure, "household-local-bounded", None): NoiseLaw.laplace(4 / rho),
    }
    assert expected == {key: noise_law(*key, rho) for key in expected}  # type: ignore[arg-type]


@pytest.mark.parametrize("tau", [1, 2, 6, 10, None])
@pytest.mark.parametrize("definition", Definition)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
def test_a_query_loses_its_budget_and_at_most_the_factor_elsewhere(
    sensitivity: Sensitivity, definition: Definition, tau: int | None
) -> None:
    budget = Fraction(3, 7)
    law = noise_law(definition, sensitivity, tau, budget)
    assert budget == query_loss(law, sensitivity, neighbors_of(sensitivity), tau)
    for neighbors in Neighbors:
        factor = loss_factor(definition, sensitivity, neighbors)
        loss = query_loss(law, sensitivity, neighbors, tau)
        assert loss <= factor * budget
        if sensitivity != "bureau" or tau is None:
            assert factor * budget == loss


@pytest.mark.parametrize(
    ("sensitivity", "definition", "other", "factor"),
    [
        ("bureau", Definition.ZCDP, Neighbors.REPLACE, 2),
        ("bureau", Definition.PURE, Neighbors.REPLACE, 2),
        ("household-local", Definition.ZCDP, Neighbors.REPLACE, 4),
        ("household-local", Definition.PURE, Neighbors.REPLACE, 2),
        ("household-local-bounded", Definition.ZCDP, Neighbors.ADD_REMOVE, Fraction(1, 4)),
        ("household-local-bounded", Definition.PURE, Neighbors.ADD_REMOVE, Fraction(1, 2)),
    ],
)
def test_loss_under_the_other_relation(
    sensitivity: Sensitivity, definition: Definition, other: Neighbors, factor: Fraction
) -> None:
    assert factor == loss_factor(definition, sensitivity, other)
    assert loss_factor(definition, sensitivity, neighbors_of(sensitivity)) == 1


def test_gain_over_the_bureaus_calibration() -> None:
    for tau, unbounded, bounded in ((10, 2.42, 1.21), (6, 2.72, 1.36)):
        ours = noise_law(Definition.ZCDP, "household-local", tau, HALF).parameter
        local = noise_law(Definition.ZCDP, "household-local-bounded", tau, HALF).parameter
        same_promise = noise_law(Definition.ZCDP, "bureau", tau, HALF / 2).parameter
        assert unbounded == round(float(noise_law(Definition.ZCDP, "bureau", tau, HALF).parameter / ours), 2)
        assert bounded == round(float(same_promise / local), 2)


def test_a_budget_that_is_not_exact_or_not_positive_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a Fraction, not float"):
        noise_law(Definition.ZCDP, "bureau", 10, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="positive budget"):
        noise_law(Definition.ZCDP, "bureau", 10, Fraction(0))


def test_relations_are_stated_in_words() -> None:
    assert "at most two unit records" in relation_text("bureau", Neighbors.ADD_REMOVE)
    assert "and no other" in relation_text("household-local", Neighbors.ADD_REMOVE)
    texts = {relation_text(name, Neighbors.REPLACE) for name in SENSITIVITIES}
    assert len(texts) == 1
    assert Fraction(88) == 4 * sensitivity_bound("bureau", Neighbors.ADD_REMOVE, 10).l1
