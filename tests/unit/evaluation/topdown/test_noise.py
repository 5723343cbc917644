"""Noisy counts beside the truth, and what the laws alone say about them."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.evaluation.topdown.accuracy import compare_methods, growth_frames
from censafe.evaluation.topdown.noise import best_query, leaf_loss, noisy_blocks, noisy_level
from censafe.evaluation.topdown.noise_alone import expected_errors
from censafe.evaluation.topdown.runs import EvaluatedPopulation, open_evaluated
from censafe.evaluation.topdown.sweep_evaluation import loss_of_epsilon
from censafe.model import Definition
from censafe.privacy.loss.conversions import tight_epsilon
from censafe.privacy.noise.variance import exact_variance
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.rehearsal import at_loss, rehearse
from support.topdown_inputs import write_1940

SEEDS = range(40)


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> EvaluatedPopulation:
    folder = write_1940(tmp_path_factory.mktemp("noise") / "data")
    return open_evaluated("e2e-1940", folder, {"epsilon": "2"}, ReadOptions())


def test_the_best_source_of_a_total_is_the_query_whose_answers_add_up_to_the_least_noise() -> None:
    config = load_config("e2e-1940", {"epsilon": "2"})
    persons = config.histogram("persons")
    found = best_query(config, persons, "County", persons.schema.query("total"), Fraction(1, 2))
    assert found is not None
    variances = {
        text: persons.schema.query(text).answers
        * exact_variance(type(found.law).laplace(2 / (Fraction(1, 2) * share)))
        for text, share in persons.query_shares["County"].items()
    }
    assert min(variances, key=lambda text: variances[text]) == found.query.name
    assert float(found.variances[0]) == pytest.approx(min(variances.values()))


def test_a_characteristic_that_no_measured_query_tells_apart_has_no_source() -> None:
    config = load_config("pl94-us", {"root": "State"})
    units = config.histogram("units")
    assert best_query(config, units, "Block", units.schema.query("total"), units.loss) is not None
    persons = config.histogram("persons")
    wanted = persons.schema.query("detailed")
    found = best_query(config, persons, "Block", wanted, persons.loss)
    assert found is not None
    assert found.query.answers == 2016


def test_noise_of_a_level_and_of_added_blocks_has_the_size_that_the_laws_imply(
    population: EvaluatedPopulation,
) -> None:
    histogram = population.main
    expected = {
        (row["method"], row["level"], row["characteristic"]): row["expected_rmse"]
        for row in expected_errors(population.config, population.areas).to_pylist()
    }
    level, added = [], []
    for seed in SEEDS:
        noisy = noisy_level(population, histogram, "County", "age18plus", seed)
        assert noisy is not None
        level.append(np.subtract(*noisy.dense()[::-1]))
        blocks = noisy_blocks(population, histogram, "age18plus", seed)["County"]
        added.append(np.subtract(*blocks.dense()[::-1]))
    for method, errors in (("noisy", np.array(level)), ("blocks_noise", np.array(added))):
        wanted = expected[method, "County", "age18plus"]
        # 480 squared errors of near-Gaussian sums: the relative standard deviation of the RMSE is about 4 %
        assert float(np.sqrt((errors.astype(float) ** 2).mean())) == pytest.approx(wanted, rel=0.17)


def test_exact_totals_have_no_noise_and_are_expected_to_have_none(population: EvaluatedPopulation) -> None:
    cells = noisy_level(population, population.main, "State", "total", 1)
    assert cells is not None
    assert not cells.residual.any()
    rows = expected_errors(population.config, population.areas).to_pylist()
    assert [
        row["expected_rmse"]
        for row in rows
        if (row["method"], row["level"], row["characteristic"]) == ("noisy", "State", "total")
    ] == [0.0]


def test_blocks_get_the_loss_of_all_levels(population: EvaluatedPopulation) -> None:
    assert plan_release(population.config).total == leaf_loss(population.config, population.main)


def test_errors_by_number_of_blocks_hold_every_method_and_area(population: EvaluatedPopulation) -> None:
    runs = []
    compared = compare_methods(population, population.main, runs, noise_runs=2, seed=5)
    bins, slopes = growth_frames(population.pairs["persons"], compared)
    county = [row for row in bins.to_pylist() if (row["method"], row["level"]) == ("blocks_noise", "County")]
    assert [row["n_areas"] for row in county] == [6]
    assert {"noisy", "blocks", "blocks_noise"} == set(slopes.column("method").to_pylist())


def test_an_epsilon_becomes_the_largest_loss_that_keeps_to_it() -> None:
    rho = loss_of_epsilon(Definition.ZCDP, Fraction(4))
    assert tight_epsilon(rho, Fraction(1, 10**10)) <= 4
    assert tight_epsilon(rho * Fraction(10001, 10000), Fraction(1, 10**10)) > 4


def test_a_rehearsal_repeats_itself_and_another_budget_changes_it(population: EvaluatedPopulation) -> None:
    first, second = (rehearse(population.config, population.loaded, 7) for _ in range(2))
    assert first.levels["persons"][-1].count.tolist() == second.levels["persons"][-1].count.tolist()
    large = rehearse(at_loss(population.config, Fraction(10**6)), population.loaded, 7)
    exact = population.pairs["persons"].confidential
    assert exact.cell.tolist() == large.levels["persons"][-1].cell.tolist()
    assert exact.count.tolist() == large.levels["persons"][-1].count.tolist()
    assert first.levels["persons"][-1].count.tolist() != exact.count.tolist()


def test_a_budget_of_nothing_is_refused(population: EvaluatedPopulation) -> None:
    with pytest.raises(ValueError, match="above 0"):
        at_loss(population.config, Fraction(0))


def test_sources_open_the_same_population(tmp_path: Path, population: EvaluatedPopulation) -> None:
    other = open_evaluated("e2e-1940", write_1940(tmp_path / "data"), {"epsilon": "2"}, ReadOptions())
    assert population.commitment == other.commitment
    third = open_evaluated("e2e-1940", write_1940(tmp_path / "more", seed=4), {"epsilon": "2"}, ReadOptions())
    assert population.commitment != third.commitment
