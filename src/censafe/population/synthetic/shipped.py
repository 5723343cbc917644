"""Shipped facts that synthetic populations are drawn from: states, counties, and chances of characteristics."""

from __future__ import annotations

import csv
import itertools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from censafe.population.synthetic.structures import Chances

_GROUPS = ("white", "black", "aian", "asian", "nhpi", "other", "multiple", "hispanic")
_LEAST = (3, 2, 3, 2, 1, 2, 2, 2, 1, 2, 2, 2)


@dataclass(frozen=True)
class SyntheticState:
    """A state: codes of its region and division, and its race and origin groups in percent."""

    code: str
    region: str
    division: str
    groups: tuple[float, ...]


@dataclass(frozen=True)
class County:
    """A county and its population in 2020."""

    state: str
    code: str
    population: int


def _text_of_data(name: str) -> str:
    return files(__package__).joinpath("data").joinpath(name).read_text(encoding="utf-8")


def rows_of_data(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file of the folder `data`, by column."""
    return list(csv.DictReader(_text_of_data(name).splitlines()))


@cache
def toml_of_data(name: str) -> Mapping[str, Any]:
    """A TOML file of the folder `data`."""
    return tomllib.loads(_text_of_data(name))


def marginals() -> Mapping[str, Any]:
    """Published facts and model choices."""
    return toml_of_data("marginals.toml")


@cache
def synthetic_states() -> tuple[SyntheticState, ...]:
    """All states, the District of Columbia and Puerto Rico, by code.

    Example:
        >>> len(synthetic_states()), synthetic_states()[0].code, synthetic_states()[-1].code
        (52, '01', '72')
    """
    return tuple(
        SyntheticState(
            row["state"], row["region"], row["division"], tuple(float(row[group]) for group in _GROUPS)
        )
        for row in rows_of_data("states.csv")
    )


@cache
def counties() -> tuple[County, ...]:
    """All counties and municipios, by state and code.

    Example:
        >>> sum(county.population for county in counties() if county.state != "72")
        331449281
    """
    return tuple(
        County(row["state"], row["county"], int(row["population"])) for row in rows_of_data("counties.csv")
    )


def race_codes() -> tuple[tuple[int, ...], ...]:
    """The races (1 to 6) that each CENRACE code 01 to 63 stands for: by number of races, then in order.

    Example:
        >>> race_codes()[6], race_codes()[62]
        ((1, 2), (1, 2, 3, 4, 5, 6))
    """
    return tuple(races for size in range(1, 7) for races in itertools.combinations(range(1, 7), size))


def _cumulative(shares: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(shares, dtype=np.float64)
    return np.cumsum(values, axis=-1) / values.sum(axis=-1, keepdims=True)


def _race_shares() -> NDArray[np.float64]:
    """Cumulative shares of codes 01-63: multiple not Hispanic, Hispanic, Hispanic in Puerto Rico."""
    facts = marginals()["published"]["hispanic_race"]
    rows = rows_of_data("race_combinations.csv")
    hispanic = np.array([float(row["hispanic"]) for row in rows])
    multiple = np.zeros(63)
    multiple[6:] = [float(row["not_hispanic"]) for row in rows]
    shares = [multiple]
    for place in ("nation", "puerto_rico"):
        *alone, combined = facts[place]
        shares.append(np.concatenate([np.array(alone), combined * hispanic / hispanic.sum()]))
    return _cumulative(np.array(shares))


@cache
def chances() -> Chances:
    """All chances of a draw, from the data files."""
    published, model = marginals()["published"], marginals()["model"]
    homes, race, tenure = model["households"], model["race"], model["tenure"]
    quarters, geography = model["group_quarters"], model["geography"]
    mask, code = np.zeros(64, np.int64), np.zeros(64, np.int64)
    for number, races in enumerate(race_codes(), start=1):
        mask[number] = sum(1 << (one - 1) for one in races)
        code[mask[number]] = number
    facts = published["group_quarters"]
    persons = np.array(facts["millions"]) / math.fsum(facts["millions"]) * facts["person_share"]
    facilities = persons / np.array(quarters["mean_size"])  # per person, by kind
    household, age, group = (np.array(tenure[name]) for name in ("household", "age", "group"))
    log_odds = household[:, None, None] + age[None, :, None] + group[None, None, :]
    return Chances(
        kind=_cumulative(published["household_type"]["shares"]),
        least=np.array(_LEAST),
        head_age=_cumulative(homes["householder_age"]),
        bands=np.array(homes["householder_age_bands"]),
        minor_head=homes["minor_householder"],
        minors=_cumulative(homes["minors"]),
        more_relatives=np.array(homes["more_relatives"]),
        more_nonrelatives=np.array(homes["more_nonrelatives"]),
        crowded=homes["crowded"],
        crowded_more=homes["crowded_more"],
        largest=homes["largest"],
        relatives=_cumulative(homes["relatives"]),
        own_minor=_cumulative(homes["own_minor"]),
        nonrelatives=_cumulative(homes["nonrelatives"]),
        male_head=homes["male_householder"],
        same_sex=np.array([published["same_sex"]["married"], published["same_sex"]["unmarried"]]),
        group=_cumulative([state.groups for state in synthetic_states()]),
        races=_race_shares(),
        hispanic_row=np.array([2 if state.code == "72" else 1 for state in synthetic_states()]),
        dominant=race["dominant"],
        spouse_other=race["spouse_other_race"],
        kin_other=race["kin_other_race"],
        nonrelative_same=race["nonrelative_same"],
        combined=race["child_combined"],
        mask=mask,
        code=code,
        own=1.0 / (1.0 + np.exp(-log_odds)),
        free_and_clear=np.array(tenure["free_and_clear"]),
        no_payment=tenure["no_payment"],
        facilities=float(facilities.sum()),
        facility=_cumulative(facilities),
        facility_size=np.array(quarters["mean_size"]) - 0.5,
        facility_relship=np.array(quarters["relationship"]),
        facility_male=np.array(quarters["male"]),
        facility_ages=np.array([quarters["youngest"], quarters["oldest"]]).T.copy(),
        facility_years=np.array(quarters["mean_years"]),
        block_persons=geography["block_persons"],
        group_persons=geography["group_persons"],
    )
