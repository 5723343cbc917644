"""What a synthetic population is drawn from: shipped chances, states and counties, and how persons are divided among tracts and files."""

from __future__ import annotations

import csv
import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from censafe.errors import UsageError
from censafe.geography.regions import states
from censafe.population.synthetic.structures import Chances, Tracts

__all__ = [
    "FIRST_MAFID",
    "MOST_PERSONS",
    "County",
    "Places",
    "PopulationPlan",
    "SyntheticState",
    "chances",
    "counties",
    "make_plan",
    "marginals",
    "race_codes",
    "rows_of_data",
    "share_out",
    "synthetic_states",
]


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


def rows_of_data(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file of the folder `data`, by column."""
    text = files(__package__).joinpath("data").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def marginals() -> Mapping[str, Any]:
    """The file of published facts and model choices, as read from TOML."""
    return tomllib.loads(
        files(__package__).joinpath("data").joinpath("marginals.toml").read_text(encoding="utf-8")
    )


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


def _owning() -> NDArray[np.float64]:
    tenure = marginals()["model"]["tenure"]
    household, age, group = (np.array(tenure[name]) for name in ("household", "age", "group"))
    log_odds = household[:, None, None] + age[None, :, None] + group[None, None, :]
    return np.asarray(1.0 / (1.0 + np.exp(-log_odds)), dtype=np.float64)


def _race_tables() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    mask = np.zeros(64, np.int64)
    code = np.zeros(64, np.int64)
    for number, races in enumerate(race_codes(), start=1):
        mask[number] = sum(1 << (race - 1) for race in races)
        code[mask[number]] = number
    return mask, code


def _facility_shares() -> tuple[float, NDArray[np.float64]]:
    """Expected group quarters per person, and the cumulative shares of their kinds."""
    facts, model = marginals()["published"]["group_quarters"], marginals()["model"]["group_quarters"]
    persons = np.array(facts["millions"]) / math.fsum(facts["millions"]) * facts["person_share"]
    facilities = persons / np.array(model["mean_size"])
    return float(facilities.sum()), _cumulative(facilities)


def _household_chances() -> dict[str, Any]:
    published, homes = marginals()["published"], marginals()["model"]["households"]
    return {
        "kind": _cumulative(published["household_type"]["shares"]),
        "least": np.array(_LEAST),
        "head_age": _cumulative(homes["householder_age"]),
        "bands": np.array(homes["householder_age_bands"]),
        "minor_head": homes["minor_householder"],
        "minors": _cumulative(homes["minors"]),
        "more_relatives": np.array(homes["more_relatives"]),
        "more_nonrelatives": np.array(homes["more_nonrelatives"]),
        "crowded": homes["crowded"],
        "crowded_more": homes["crowded_more"],
        "largest": homes["largest"],
        "relatives": _cumulative(homes["relatives"]),
        "own_minor": _cumulative(homes["own_minor"]),
        "nonrelatives": _cumulative(homes["nonrelatives"]),
        "male_head": homes["male_householder"],
        "same_sex": np.array([published["same_sex"]["married"], published["same_sex"]["unmarried"]]),
    }


def _race_chances() -> dict[str, Any]:
    race = marginals()["model"]["race"]
    mask, code = _race_tables()
    return {
        "group": _cumulative([state.groups for state in synthetic_states()]),
        "races": _race_shares(),
        "hispanic_row": np.array([2 if state.code == "72" else 1 for state in synthetic_states()]),
        "dominant": race["dominant"],
        "spouse_other": race["spouse_other_race"],
        "kin_other": race["kin_other_race"],
        "nonrelative_same": race["nonrelative_same"],
        "combined": race["child_combined"],
        "mask": mask,
        "code": code,
    }


@cache
def chances() -> Chances:
    """All chances of a draw, from the data files."""
    model = marginals()["model"]
    quarters, geography = model["group_quarters"], model["geography"]
    facilities, facility = _facility_shares()
    return Chances(
        **_household_chances(),
        **_race_chances(),
        own=_owning(),
        free_and_clear=np.array(model["tenure"]["free_and_clear"]),
        no_payment=model["tenure"]["no_payment"],
        facilities=facilities,
        facility=facility,
        facility_size=np.array(quarters["mean_size"]) - 0.5,
        facility_relship=np.array(quarters["relationship"]),
        facility_male=np.array(quarters["male"]),
        facility_ages=np.array([quarters["youngest"], quarters["oldest"]]).T.copy(),
        facility_years=np.array(quarters["mean_years"]),
        block_persons=geography["block_persons"],
        group_persons=geography["group_persons"],
    )


FIRST_MAFID = 100_000_001
_PLACES = 1  # stream of the places of a county; its other numbers have one without such a mark
LAST_MAFID = 899_999_999
MOST_PERSONS = 1_500_000_000
_ROOMY = 399_999_999  # persons for each of whom two MAFIDs are kept free

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Geographic codes of every tract, as numbers."""

    county: _Ints
    tract: _Ints
    place: _Ints
    aiannh: _Ints


@dataclass(frozen=True)
class PopulationPlan:
    """The tracts of a population, in geographic order, and their codes."""

    tracts: Tracts
    places: Places

    def slice(self, first: int, stop: int) -> PopulationPlan:
        """The tracts from `first` up to, not including, `stop`."""
        places = self.places
        return PopulationPlan(
            Tracts._make(column[first:stop] for column in self.tracts),
            Places(
                *(column[first:stop] for column in (places.county, places.tract, places.place, places.aiannh))
            ),
        )

    def cuts(self, persons: int) -> Iterator[tuple[int, int]]:
        """Ranges of tracts of about `persons` persons each, for files and row groups."""
        group = (np.cumsum(self.tracts.persons) - 1) // persons
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        yield from zip(starts.tolist(), [*starts[1:].tolist(), len(group)], strict=True)


def share_out(total: int, weights: NDArray[np.float64]) -> _Ints:
    """Whole numbers that add up to `total`, as near to proportional to `weights` as largest remainders allow.

    Args:
        total: what to share out, zero or more.
        weights: shape (n,), not negative, not all zero.

    Returns:
        Shape (n,). Ties go to the earlier entry.

    Example:
        >>> share_out(10, np.array([1.0, 1.0, 1.0])).tolist()
        [4, 3, 3]
    """
    exact = total * weights / weights.sum()
    parts = np.floor(exact).astype(np.int64)
    order = np.argsort(parts - exact, kind="stable")
    parts[order[: total - int(parts.sum())]] += 1
    return parts


def _stream(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def _checked_states(wanted: tuple[str, ...] | None) -> tuple[int, ...]:
    known = {state.code: row for row, state in enumerate(synthetic_states())}
    if wanted is None:
        return tuple(row for code, row in known.items() if code != "72")
    if not wanted:
        raise UsageError(
            "states: the list is empty; give two-digit codes, or leave it out for the 50 states and DC"
        )
    unknown = sorted({code for code in wanted if code not in known})
    if unknown:
        postal = {state.postal: state.code for state in states()}
        meant = [f"{code} is {postal[code.upper()]}" for code in unknown if code.upper() in postal]
        hint = f". {', '.join(meant)}" if meant else ""
        raise UsageError(
            f"states: {', '.join(map(repr, unknown))} unknown{hint}; allowed are the two-digit codes of the 50 states, "
            "11 (District of Columbia) and 72 (Puerto Rico), such as 44"
        )
    if len(set(wanted)) < len(wanted):
        raise UsageError("states: a code is given twice; give each state once")
    return tuple(sorted(known[code] for code in wanted))


def _tract_numbers(tracts: int) -> _Ints:
    """Unique six-digit numbers: 000100, 000200, ..., with suffixes 01-98 where one county has very many."""
    index = np.arange(tracts)
    return (index + 1) * 100 if tracts < 9999 else (index // 98 + 1) * 100 + index % 98 + 1


def _place_numbers(tracts: int, first: int, stream: np.random.Generator) -> tuple[_Ints, int]:
    """PLACEFP by tract, consecutive tracts sharing one; and the number of places used."""
    model = marginals()["model"]["geography"]
    run = (np.arange(tracts) / model["place_tracts"]).astype(np.int64)
    runs = int(run[-1]) + 1
    codes = 100 + (first + np.arange(runs)) * 7 % 99_800
    outside = stream.random(runs) < model["outside_place"]
    return np.where(outside, 99_999, codes)[run], runs


def _county_tracts(
    row: int, county: int, persons: int, areas_of: int, places_before: int, seed: int
) -> tuple[list[NDArray[np.generic]], int]:
    """The columns of the tracts of one county, in the order of `_COLUMNS`."""
    model = marginals()["model"]["geography"]
    state = int(synthetic_states()[row].code)
    stream = _stream(seed, state, county)
    tracts = min(persons, max(1, round(areas_of / model["tract_persons"])))
    spread = model["tract_spread"]
    sizes = 1 + share_out(persons - tracts, stream.uniform(1.0 - spread, 1.0 + spread, tracts))
    # equally spaced quantiles, so that the groups of the tracts repeat the state's mix closely
    quantile = (stream.random() + np.arange(tracts) * 0.6180339887498949) % 1.0
    dominant = np.searchsorted(chances().group[row], quantile, side="right")
    places, runs = _place_numbers(tracts, places_before, _stream(seed, state, county, _PLACES))
    aiannh = np.where(dominant == 2, 5 + state * 37 % 4990, 9999)
    vacant = float(marginals()["published"]["vacancy"]["vacant_share"])
    share, factor = model["seasonal_tracts"], model["seasonal_factor"]
    seasonal = stream.random(tracts) < share
    per_occupied = (
        vacant / (1.0 - vacant) * np.where(seasonal, factor, (1.0 - share * factor) / (1.0 - share))
    )
    seeds = stream.integers(0, 2**64, tracts, dtype=np.uint64)
    columns = [
        np.full(tracts, row), sizes, seeds, dominant, per_occupied,
        np.full(tracts, county), _tract_numbers(tracts), places, aiannh,
    ]  # fmt: skip
    return columns, runs


def _most_units(persons: _Ints, per_occupied: NDArray[np.float64]) -> _Ints:
    """MAFIDs kept for tracts: of 33 million persons the units of no tract with more than 1,000 exceed 0.436 times persons and vacant units."""
    return np.ceil(0.47 * persons * (1.0 + per_occupied)).astype(np.int64) + 20


def make_plan(
    persons: int, wanted: tuple[str, ...] | None, seed: int, *, areas_of: int | None = None
) -> PopulationPlan:
    """The tracts of a population of exactly `persons` persons.

    Args:
        persons: how many persons, 1 to 1,500,000,000; shared out over counties in proportion to their 2020 population.
        wanted: two-digit state codes; None for the 50 states and the District of Columbia.
        seed: zero or more.
        areas_of: number of persons whose tracts and places these persons live in, when it is not their own; a tract
            has at least one person.

    Returns:
        The plan; counties that get no person have no tract.

    Raises:
        UsageError: a number out of range, an unknown or repeated state, or more units than there are MAFIDs for.
    """
    area_persons = persons if areas_of is None else areas_of
    for name, number in (("persons", persons), ("areas_of", area_persons)):
        if not 1 <= number <= MOST_PERSONS:
            raise UsageError(f"{name}: give a number from 1 to {MOST_PERSONS:,}")
    if seed < 0:
        raise UsageError("seed: give zero or a positive whole number")
    rows = _checked_states(wanted)
    row_of = {synthetic_states()[row].code: row for row in rows}
    chosen = [county for county in counties() if county.state in row_of]
    weights = np.array([float(county.population) for county in chosen])
    sizes, areas = share_out(persons, weights), share_out(area_persons, weights)
    columns: list[list[NDArray[np.generic]]] = []
    places = dict.fromkeys(rows, 0)
    for county, size, area in zip(chosen, sizes.tolist(), areas.tolist(), strict=True):
        if size:
            row = row_of[county.state]
            tracts, runs = _county_tracts(row, int(county.code), size, area, places[row], seed)
            columns.append(tracts)
            places[row] += runs
    state, held, seeds, dominant, vacancy, code, tract, place, aiannh = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    room = 2 * held if persons <= _ROOMY else _most_units(held, vacancy)
    before = np.cumsum(room) - room
    if FIRST_MAFID + int(before[-1] + room[-1]) - 1 > LAST_MAFID:
        raise UsageError("persons: the states have more units than there are MAFIDs for; give fewer persons")
    tracts_of = Tracts(state, held, FIRST_MAFID + before, seeds, dominant, vacancy)
    return PopulationPlan(tracts_of, Places(code, tract, place, aiannh))
