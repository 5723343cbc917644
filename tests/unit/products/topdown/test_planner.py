"""Expected errors of queries against a dense matrix, and budgets that go into a configuration and come back."""

from fractions import Fraction

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.planning.prices.targets import Goal, exact_goal_variance
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.planner import budgets_of, named_answers, overrides


@pytest.fixture(scope="module")
def config() -> TopdownConfig:
    return load_config(
        "blocks-16",
        {
            "query_shares.persons.Tract.hispanic": "0",
            "query_shares.persons.Tract.detailed": "0.5",
            "query_shares.persons.Tract.votingage": "0.1",
            "query_shares.persons.Tract.hispanic_race": "0.15",
            "query_shares.persons.Tract.votingage * hispanic": "0",
            "query_shares.persons.Tract.total": "0.25",
        },
    )


@pytest.mark.parametrize(
    "query", ["total", "votingage", "hispanic_race", "hispanic", "detailed", "votingage * hispanic"]
)
def test_the_best_combination_is_that_of_the_information_matrix(config: TopdownConfig, query: str) -> None:
    schema = config.histogram("persons").schema
    budgets = budgets_of(config)
    information = np.zeros((16, 16))
    for name in ("total", "votingage", "hispanic_race", "detailed"):
        label = schema.query(name).label
        matrix = (label[None, :] == np.arange(label.max() + 1)[:, None]).astype(float)
        information += float(budgets[f"persons.{name}/Tract"]) * matrix.T @ matrix
    wanted = schema.query(query)
    inverse = np.linalg.inv(information)
    expected = {
        round(float(w @ inverse @ w), 9)
        for w in (wanted.label[None, :] == np.arange(wanted.answers)[:, None]).astype(float)
    }
    found = {
        round(float(exact_goal_variance(Goal("", Fraction(1), one.terms), budgets) or 0), 9)
        for one in named_answers(config, f"persons.{query}/Tract", combined=True)
    }
    assert found == expected


@pytest.mark.parametrize("name", ["pl94-us", "pl94-pr", "blocks-16"])
def test_budgets_come_back_as_they_went_in(name: str) -> None:
    config = load_config(name)
    budgets = budgets_of(config)
    key = next(iter(budgets))
    changed = {**budgets, key: budgets[key] * Fraction(7, 5)}
    assert budgets_of(load_config(name, overrides(config, {key: changed[key]}))) == changed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("persons/County", "write HISTOGRAM.QUERY/LEVEL"),
        ("people.total/County", "histogram among persons, units"),
        ("persons.total/Village", "the run has no level 'Village'"),
        ("persons.age/County", "'age' is neither an attribute"),
    ],
)
def test_unknown_answers_are_named(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        named_answers(load_config("pl94-us"), name, combined=True)


def test_own_measurements_are_asked_for_where_there_are_some() -> None:
    config = load_config("pl94-us")
    with pytest.raises(ConfigError, match="is not measured at US"):
        named_answers(config, "persons.total/US", combined=False)
    with pytest.raises(ConfigError, match="under rho only"):
        named_answers(load_config("e2e-1940"), "persons.total/County", combined=True)
