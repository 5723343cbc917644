"""What the studies printed, found again: the power table of the slides, Table 1 of Petti & Flaxman, the variance they mean."""

import csv
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from censafe.evaluation.counts.comparators import matching_rates
from censafe.evaluation.loss import noise_law_masses
from censafe.evaluation.semantics import power_curve
from censafe.model import NoiseLaw
from censafe.privacy.loss.attack import MovedQuery, best_attack, gaussian_power, zcdp_power
from censafe.privacy.noise.variance import exact_variance
from support.shared import shared_data

LEVELS = [0.01, 0.05, 0.10]


def published() -> list[dict[str, str]]:
    with shared_data("evaluation/petti_flaxman_results.csv").open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def slides() -> Any:
    return json.loads(shared_data("evaluation/abowd_slides.json").read_text(encoding="utf-8"))


def test_the_files_are_whole() -> None:
    rows = published()
    assert len(rows) == 994
    assert len({row["source_key"] + row["source_file"] for row in rows}) == 994


def test_table_1_comes_back_by_the_stated_distance() -> None:
    rows = [row for row in published() if (row["stat"], row["level"]) == ("SC", "county")]

    def columns(method: str, key: str) -> pa.Table:
        own = [row for row in rows if row["method"] == method]
        keys = sorted({float(row[key]) for row in own})
        values = {(row["metric"], float(row[key])): float(row["value"]) for row in own}
        return pa.table(
            {
                key: keys,
                "median_ae": [values["median_ae", one] for one in keys],
                "epl": [values["epl_max_abs", one] for one in keys],
            }
        )

    found = matching_rates(columns("topdown", "epsilon"), columns("srs", "sample_pct"))
    epsilon, rate = (found.column(name).to_pylist() for name in ("epsilon", "sample_pct"))
    assert dict(zip(epsilon, rate, strict=True)) == {
        0.25: 40, 0.5: 50, 0.75: 50, 1: 50, 2: 75, 4: 90, 6: 95, 8: 95
    }  # fmt: skip


def block_queries() -> tuple[Any, Any, Fraction]:
    """Person queries, unit query and loss of one block within its block group."""
    allocations = slides()["allocations"]
    shares = {
        name: Fraction(share)
        for name, share in allocations["persons_by_query"]["share_by_level"]["Block"].items()
    }
    assert sum(shares.values()) == 1
    persons = Fraction("2.56") * Fraction(allocations["persons"]["by_level"]["Block"])
    units = Fraction("0.07") * Fraction(allocations["units"]["by_level"]["Block"])
    # the noise of the 2020 census: sigma2 is one over the rho of the query
    moved = tuple(MovedQuery(1 / (persons * share)) for share in shares.values() if share)
    return moved, (MovedQuery(1 / units),), persons + units


def test_the_power_table_of_the_slides() -> None:
    persons, units, rho = block_queries()
    table = slides()["power_table"]
    derived = table["derived"]
    assert float(rho) == pytest.approx(derived["rho_block_sum"], abs=1e-15)
    curve = power_curve(rho, persons + units, LEVELS)
    columns = {name: curve.column(name).to_pylist() for name in curve.column_names}
    assert columns["gaussian"] == pytest.approx(derived["gaussian"], abs=1e-5)
    randomized = derived["discrete_gaussian_all_block_queries_randomised"]
    assert columns["discrete_gaussian_randomized"] == pytest.approx(randomized, abs=1e-5)
    without = derived["discrete_gaussian_all_block_queries_nonrandomised"]
    assert columns["discrete_gaussian"] == pytest.approx(without, abs=1e-4)
    assert columns["bound"] == pytest.approx(derived["zcdp_corrected"], abs=1e-4)
    for name, printed in (
        ("gaussian", "gaussian"),
        ("discrete_gaussian", "discrete_gaussian"),
        ("bound", "zcdp_upper_bound"),
    ):
        assert [f"{value:.2g}" for value in columns[name]] == [f"{value:.2g}" for value in table[printed]]


def test_the_power_table_of_the_slides_with_both_units_of_a_household_that_moves() -> None:
    # the number of units of a block is exact: a household that moves empties one unit and fills another
    persons, units, printed = block_queries()
    rho = printed + sum((1 / query.sigma2 for query in units), Fraction(0))
    assert float(rho) == pytest.approx(0.11995, abs=1e-5)
    curve = power_curve(rho, (*persons, *units, *units), LEVELS)
    columns = {name: curve.column(name).to_pylist() for name in curve.column_names}
    assert columns["gaussian"] == pytest.approx([0.03314, 0.12403, 0.21425], abs=1e-5)
    assert columns["discrete_gaussian_randomized"] == pytest.approx(columns["gaussian"], abs=1e-5)
    assert columns["bound"] == pytest.approx([0.0391, 0.1451, 0.2472], abs=1e-4)


def test_choices_that_do_not_reproduce_the_slides() -> None:
    persons, _, rho = block_queries()
    derived = slides()["power_table"]["derived"]
    assert best_attack(persons).powers(LEVELS) == pytest.approx(
        derived["discrete_gaussian_persons_only_randomised"], abs=1e-5
    )
    assert best_attack([MovedQuery(1 / rho)]).powers(LEVELS) == pytest.approx(
        derived["discrete_gaussian_single_query_two_cells_randomised"], abs=1e-5
    )


def test_the_printed_inequality_of_the_slides_lets_no_test_pass() -> None:
    # the printed denominator exp(rho x (1 - x)) is below 1 for x > 1, while power = level makes the numerator 1
    rho, level, x = 0.1115, 0.05, 2.0
    numerator = level**x * level ** (1 - x) + (1 - level) ** x * (1 - level) ** (1 - x)
    assert numerator == pytest.approx(1)
    assert numerator / np.exp(rho * x * (1 - x)) > 1
    assert zcdp_power(Fraction("0.1115"), level) > gaussian_power(Fraction("0.1115"), level)


@pytest.mark.parametrize(
    ("z", "variance"), [("0.0125", 12_800), ("0.05", 800), ("0.125", 127.8), ("0.5", 7.835), ("1", 1.841)]
)
def test_the_variance_of_geometric_noise_is_the_reciprocal_of_the_printed_one(
    z: str, variance: float
) -> None:
    law = NoiseLaw.laplace(1 / Fraction(z))
    q = np.exp(-float(z))
    k, mass = noise_law_masses(law)
    exact = float((mass * k**2).sum())
    assert exact == pytest.approx(2 * q / (1 - q) ** 2)
    assert exact_variance(law) == pytest.approx(exact)
    assert exact == pytest.approx(variance, rel=5e-4)
    assert exact != pytest.approx((1 - q) ** 2 / (2 * q), rel=0.2)


@pytest.mark.parametrize(
    ("sigma2", "variance"),
    [("1", 0.9999998), ("0.5", 0.498979), ("0.3", 0.281054), ("0.2", 0.141320), ("0.1", 0.013297)],
)
def test_the_variance_of_the_discrete_gaussian_falls_below_its_parameter(
    sigma2: str, variance: float
) -> None:
    law = NoiseLaw.gaussian(Fraction(sigma2))
    k, mass = noise_law_masses(law)
    assert float((mass * k**2).sum()) == pytest.approx(variance, abs=1e-6)
    assert exact_variance(law) == pytest.approx(variance, abs=1e-6)
