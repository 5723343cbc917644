"""What the noise laws alone imply, against closed forms, and measured losses beside those of pure noise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from censafe.evaluation.loss import epl_noise_frames, epl_summary, noise_law_masses, residuals_of
from censafe.evaluation.pages.page import Page, page_html
from censafe.evaluation.pages.pair import examples_exhibit, loss_exhibit, noise_exhibit
from censafe.evaluation.topdown.noise_alone import (
    attack_frame,
    budget_of,
    expected_errors,
    noise_loss_frame,
    noise_of_level,
)
from censafe.model import NoiseLaw
from censafe.privacy.loss.attack import largest_power
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release

AREAS = {"National": 1, "State": 2, "County": 40, "Enumdist": 400}


def test_masses_of_a_sum_are_those_of_the_convolution() -> None:
    k, one = noise_law_masses(NoiseLaw.laplace(Fraction(3)))
    wide, three = noise_law_masses(NoiseLaw.laplace(Fraction(3)), 3)
    direct = np.convolve(np.convolve(one, one), one)
    middle = len(direct) // 2
    assert three[len(wide) // 2 - 20 : len(wide) // 2 + 21] == pytest.approx(
        direct[middle - 20 : middle + 21], rel=1e-6
    )
    assert float((three * wide.astype(float) ** 2).sum()) == pytest.approx(3 * float((one * k**2).sum()))


def test_expected_sizes_are_those_of_the_closed_forms() -> None:
    config = load_config("e2e-1940", {"epsilon": "1"})
    rows = {
        (row["method"], row["level"], row["characteristic"]): row
        for row in expected_errors(config, AREAS).to_pylist()
    }
    # the spec's own table: epsilon 1, race by ethnicity by age has z = .675 / 4 / 2 and deviation 16.8
    z = 0.675 / 8
    share = math.exp(-z)
    row = rows["noisy", "County", "age18plus * hispanic * race"]
    assert row["expected_rmse"] == pytest.approx(math.sqrt(2 * share) / (1 - share))
    assert round(row["expected_rmse"], 1) == 16.8
    assert row["expected_mean_ae"] == pytest.approx(2 * share / (1 - share**2))
    inside = 1 - 2 * share ** (row["within_95"] + 1) / (1 + share)
    assert inside >= 0.95 > inside - 2 * share ** row["within_95"] * (1 - share) / (1 + share)
    assert rows["noisy", "State", "total"]["expected_rmse"] == 0.0
    added = rows["blocks_noise", "County", "total"]["expected_rmse"]
    assert rows["blocks_noise", "State", "total"]["expected_rmse"] == pytest.approx(added * math.sqrt(20))


def test_every_budget_has_its_rows_and_twice_the_budget_half_the_error() -> None:
    config = load_config("e2e-1940")
    budgets = [budget_of(config.definition, Fraction(one)) for one in ("1/2", "1")]
    rows = expected_errors(config, AREAS, budgets).to_pylist()
    size = {
        row["epsilon"]: row["expected_mean_ae"]
        for row in rows
        if (row["method"], row["level"], row["characteristic"]) == ("noisy", "Enumdist", "total")
    }
    assert size[0.5] / size[1.0] == pytest.approx(2, rel=0.01)


def test_the_loss_of_the_noise_is_the_shipped_one_and_its_maximum_is_too_high() -> None:
    config = load_config("e2e-1940", {"epsilon": "4"})
    rows = {
        (row["level"], row["characteristic"], row["estimator"], row["statistic"]): row
        for row in noise_loss_frame(config, AREAS).to_pylist()
    }
    query = "age18plus * hispanic * race"
    found = rows["County", query, "kernel", "max"]
    assert (found["truth"], found["n"], found["added"]) == (pytest.approx(0.3375), 960, 1)
    assert found["bias"] > 0.05
    assert rows["Enumdist", query, "discrete", "median"]["mean"] == pytest.approx(0.3375, rel=0.1)
    assert not [key for key in rows if key[:2] == ("State", "total")]
    same = noise_of_level(config, Fraction(4), "County", query, 960)
    assert same["kernel", "max"]["mean"] == found["mean"]
    assert noise_of_level(config, Fraction(4), "State", "total", 960) == {}
    assert noise_of_level(config, Fraction(4), "County", query, 10) == {}


def test_attacks_are_bounded_as_the_definition_says() -> None:
    config = load_config("e2e-1940", {"epsilon": "1/4"})
    rows = [row for row in attack_frame(config).to_pylist() if row["question"] == "one row of each histogram"]
    assert [row["false_alarm"] for row in rows] == [0.01, 0.05, 0.1]
    for row in rows:
        bound = largest_power(Fraction(1, 4), config.definition, Fraction(str(row["false_alarm"])))
        assert row["bound"] == pytest.approx(bound)
        assert math.isnan(row["best_attack"])


def test_the_budget_of_a_configuration_is_that_of_a_person() -> None:
    config = load_config("pl94-us", {"measure": "units"})
    rows = attack_frame(config).to_pylist()
    assert {row["loss"] for row in rows} == {float(plan_release(config).total)}
    assert {row["question_loss"] for row in rows if row["question"] == "one person"} == {
        float(plan_release(config).total)
    }


def measured(z: float, size: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    chance = -math.expm1(-z)
    r = rng.geometric(chance, size) - rng.geometric(chance, size)
    found = epl_summary(residuals_of(r), mode="corrected", replicates=0)
    about = {"level": "County", "area_class": "", "size_class": "all", "characteristic": "total"}
    columns: dict[str, Any] = {name: [value] * found.num_rows for name, value in about.items()}
    return pa.table(columns | {name: found.column(name) for name in found.column_names})


def test_measured_loss_of_pure_noise_is_that_of_pure_noise() -> None:
    frames = epl_noise_frames(measured(0.2, 4_000, 3))
    rows = {(row["law"], row["estimator"], row["statistic"]): row for row in frames["epl_noise"].to_pylist()}
    largest = rows["laplace", "kernel", "max"]
    assert largest["bias"] > 0.02
    assert abs(largest["measured_epl"] - largest["mean"]) < 0.06
    middle = rows["laplace", "discrete", "median"]
    assert middle["truth"] == pytest.approx(middle["measured_epl"], rel=1e-5)
    share = math.exp(-middle["truth"])
    assert rows["gaussian", "kernel", "max"]["parameter"] == pytest.approx(
        2 * share / (1 - share) ** 2, rel=1e-5
    )
    ratios = [row["ratio"] for row in frames["epl_examples"].to_pylist()]
    assert ratios == pytest.approx([1, 1 / 2, 1 / 4] * 2, abs=0.06)


def test_nothing_is_drawn_beside_too_few_errors_or_a_loss_without_end() -> None:
    frame = measured(0.2, 60, 3)
    assert epl_noise_frames(frame)["epl_noise"].num_rows == 0
    infinite = measured(0.2, 4_000, 3).to_pylist()
    rows = [row | {"value": math.inf} for row in infinite]
    assert epl_noise_frames(pa.Table.from_pylist(rows))["epl_noise"].num_rows == 0


def test_the_page_has_the_maximum_its_bias_and_the_noise_beside_it() -> None:
    epl = measured(0.2, 4_000, 3)
    frames = epl_noise_frames(epl)
    document = {"words": {"total": "total"}}
    exhibits = [
        loss_exhibit(epl.to_pylist(), document),
        noise_exhibit(frames["epl_noise"].to_pylist(), document),
        examples_exhibit(frames["epl_examples"].to_pylist(), document),
    ]
    text = page_html(Page("t", "k", [], [], exhibits))
    for words in ("its bias", "County: total, 4,000 errors", "areas scaled to the level above"):
        assert words in text, words
    assert noise_exhibit([], document).tables == []
