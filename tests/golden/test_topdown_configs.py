"""The shipped configurations for other areas and schemas have the budgets of production."""

from fractions import Fraction

import pytest

from censafe.products.topdown.configuration.config import load_config

# what a query of production becomes where there is no kind of quarters, and one attribute for origin and race
BECOMES = {
    "total": "total",
    "hhgq": "total",
    "hhinstlevels": "total",
    "hispanic": "hispanic",
    "votingage": "votingage",
    "votingage * hispanic": "votingage * hispanic",
    "cenrace": "hispanic_race",
    "hispanic * cenrace": "hispanic_race",
    "votingage * cenrace": "detailed",
    "votingage * hispanic * cenrace": "detailed",
    "detailed": "detailed",
}


def test_sixteen_counts_have_production_shares() -> None:
    known = load_config("pl94-us").histogram("persons")
    ours = load_config("blocks-16").histogram("persons")
    assert known.loss == ours.loss
    assert known.level_shares == ours.level_shares
    for level, shares in known.query_shares.items():
        expected: dict[str, Fraction] = {}
        for query, share in shares.items():
            expected[BECOMES[query]] = expected.get(BECOMES[query], Fraction(0)) + share
        assert expected == ours.query_shares[level]


def test_sixteen_counts_are_voting_age_by_hispanic_origin_and_race() -> None:
    schema = load_config("blocks-16").histogram("persons").schema
    assert schema.schema.shape == (2, 8)
    assert schema.facilities is None
    assert schema.query("hispanic").label.tolist() == [0, *[1] * 7] * 2


@pytest.mark.parametrize("histogram", ["persons", "units"])
def test_tracts_have_the_noise_of_production(histogram: str) -> None:
    known = load_config("pl94-us").histogram(histogram)
    ours = load_config("pl94-tracts").histogram(histogram)
    assert tuple(ours.level_shares) == ("US", "State", "County", "Tract")
    for level in ours.level_shares:
        assert known.query_shares[level] == ours.query_shares[level]
        assert known.passes[level] == ours.passes[level]
        for query in ours.query_shares[level]:
            assert known.cost(level, query) == ours.cost(level, query)
