"""Statements of the study: its own numbers must be recognized, and their opposites must not."""

import csv
from importlib import resources
from typing import Any

import pytest

from censafe.evaluation.topdown.sweep_evaluation import Sweep, findings, published_values
from support.shared import shared_data

LEVELS = ("National", "State", "County", "Enumdist")


def study(**changes: Any) -> Sweep:
    """The published values in the shape of a sweep."""
    full = [
        {
            "method": "topdown", "mode": mode, "stat": stat, "level": level, "epsilon": epsilon, "median_ae": error, "mean_ae": error,
            "max_ae": published_values(stat, level, "max_ae")[epsilon],
            "epl": published_values(stat, level, "epl_max_abs").get(epsilon, float("inf")),
        }
        for mode in ("as_published", "corrected")
        for stat in ("TC", "SC")
        for level in LEVELS[1:]
        for epsilon, error in published_values(stat, level, "median_ae").items()
    ]  # fmt: skip
    bias = [
        {"level": "Enumdist", "mode": "as_published", "setting": setting, "index": index, "cells": 24, "n_areas": 99, "bias": bias, "se": 0.5}
        for setting, index, bias in (
            (0.25, 0, -52.6), (0.25, 22, 8.7), (1.0, 0, -18.9), (1.0, 22, 3.6), (8.0, 0, -2.9), (8.0, 22, 0.9),
        )
    ]  # fmt: skip
    wanted: dict[str, Any] = {
        "full": full,
        "bias": bias,
        "levels": LEVELS,
        "exact": ["State"],
        "middle": "County",
    }
    return Sweep(**(wanted | changes))


def test_the_study_shows_what_it_found() -> None:
    assert [one["verdict"] for one in findings(study())] == ["yes"] * 7


def test_bias_of_the_other_sign_is_no_confirmation() -> None:
    turned = [row | {"bias": -row["bias"]} for row in study().bias]
    verdicts = {one["finding"]: one["verdict"] for one in findings(study(bias=turned))}
    assert verdicts["Diverse areas lose people, homogeneous ones gain."] == "no"


def test_errors_that_do_not_fall_are_no_confirmation() -> None:
    flat = [row | {"mean_ae": 10.0} for row in study().full]
    assert findings(study(full=flat))[0]["verdict"] == "no"


def test_a_population_without_classes_leaves_statements_open() -> None:
    verdicts = [one["verdict"] for one in findings(study(bias=[]))]
    assert verdicts[5:] == ["open", "open"]


def test_shipped_values_are_those_of_the_reference() -> None:
    reference = shared_data("evaluation/petti_flaxman_results.csv")
    with reference.open(encoding="utf-8") as stream:
        values = [row["value"] for row in csv.DictReader(stream)]
    text = resources.files("censafe.evaluation").joinpath("data", "petti_flaxman.csv").read_text("utf-8")
    shipped = [row["value"] for row in csv.DictReader(text.splitlines())]
    assert len(shipped) == 994
    assert values == shipped


@pytest.mark.parametrize(
    ("stat", "level", "epsilon", "value"),
    [("TC", "County", 1.0, 24), ("TC", "Enumdist", 0.25, 56), ("SC", "County", 8.0, 1)],
)
def test_published_values_are_found_by_name(stat: str, level: str, epsilon: float, value: float) -> None:
    assert value == published_values(stat, level, "median_ae")[epsilon]
