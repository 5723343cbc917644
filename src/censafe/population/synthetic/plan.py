"""The plan of a synthetic population: its states, and how persons are divided among tracts and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.regions import states
from censafe.model.work_ahead import worked_ahead
from censafe.population.synthetic.shipped import (
    chances,
    counties,
    marginals,
    synthetic_states,
)
from censafe.population.synthetic.structures import Tracts

FIRST_MAFID = 100_000_001
_PLACES = 1  # stream of the places of a county; its other numbers have one without such a mark
LAST_MAFID = 899_999_999
MOST_PERSONS = 1_500_000_000
_THREADS = 2  # that draw; results do not depend on it
_ROOMY = 399_999_999  # persons for each of whom two MAFIDs are kept free

_Ints = NDArray[np.int64]
_Drawn = TypeVar("_Drawn")


class Places(NamedTuple):
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
        return PopulationPlan(
            Tracts._make(column[first:stop] for column in self.tracts),
            Places._make(column[first:stop] for column in self.places),
        )

    @property
    def counties(self) -> _Ints:
        """State and county of every tract, as numbers of five digits."""
        codes = np.array([int(state.code) for state in synthetic_states()])
        return np.asarray(codes[self.tracts.state] * 1000 + self.places.county)

    def cuts(self, persons: int) -> Iterator[tuple[int, int]]:
        """Ranges of tracts of about `persons` persons each, for files and row groups."""
        group = (np.cumsum(self.tracts.persons) - 1) // persons
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        yield from zip(starts.tolist(), [*starts[1:].tolist(), len(group)], strict=True)

    def drawn_ahead(
        self, persons: int, draw: Callable[[PopulationPlan], _Drawn]
    ) -> Iterator[tuple[PopulationPlan, _Drawn]]:
        """Chunks of about `persons` persons in order with what is drawn for them; the next ones are being drawn meanwhile."""
        chunks = (self.slice(first, stop) for first, stop in self.cuts(persons))
        return worked_ahead(lambda chunk: (chunk, draw(chunk)), chunks, _THREADS)


def share_out(total: int, weights: NDArray[np.float64]) -> _Ints:
    """Whole numbers that add up to `total`, as near to proportional to `weights` as largest remainders allow.

    Args:
        weights: shape (n,), not negative, not all zero.

    Example:
        >>> share_out(10, np.array([1.0, 1.0, 1.0])).tolist()
        [4, 3, 3]
    """
    exact = total * weights / weights.sum()
    parts = np.floor(exact).astype(np.int64)
    order = np.argsort(parts - exact, kind="stable")
    parts[order[: total - int(parts.sum())]] += 1
    return parts


def _checked_states(state_codes: tuple[str, ...] | None) -> tuple[int, ...]:
    known = {state.code: row for row, state in enumerate(synthetic_states())}
    if state_codes is None:
        return tuple(row for code, row in known.items() if code != "72")
    if not state_codes:
        raise UsageError(
            "states: the list is empty; give two-digit codes, or leave it out for the 50 states and DC"
        )
    unknown = sorted({code for code in state_codes if code not in known})
    if unknown:
        postal = {state.postal: state.code for state in states()}
        meant = [f"{code} is {postal[code.upper()]}" for code in unknown if code.upper() in postal]
        hint = f". {', '.join(meant)}" if meant else ""
        raise UsageError(
            f"states: {', '.join(map(repr, unknown))} unknown{hint}; allowed are the two-digit codes of the 50 states, "
            "11 (District of Columbia) and 72 (Puerto Rico), such as 44"
        )
    if len(set(state_codes)) < len(state_codes):
        raise UsageError("states: a code is given twice; give each state once")
    return tuple(sorted(known[code] for code in state_codes))


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
    """The columns of the tracts of one county: those of `Tracts` but for MAFIDs, then those of `Places`; and how many places there are."""
    model = marginals()["model"]["geography"]
    state = int(synthetic_states()[row].code)
    stream = np.random.default_rng((seed, state, county))
    tracts = min(persons, max(1, round(areas_of / model["tract_persons"])))
    spread = model["tract_spread"]
    sizes = 1 + share_out(persons - tracts, stream.uniform(1.0 - spread, 1.0 + spread, tracts))
    # equally spaced quantiles, so that the groups of the tracts repeat the state's mix closely
    quantile = (stream.random() + np.arange(tracts) * 0.6180339887498949) % 1.0
    dominant = np.searchsorted(chances().group[row], quantile, side="right")
    places, runs = _place_numbers(
        tracts, places_before, np.random.default_rng((seed, state, county, _PLACES))
    )
    aiannh = np.where(dominant == 2, 5 + state * 37 % 4990, 9999)
    vacant = float(marginals()["published"]["vacancy"]["vacant_share"])
    share, factor = model["seasonal_tracts"], model["seasonal_factor"]
    seasonal = stream.random(tracts) < share
    per_occupied = (
        vacant / (1.0 - vacant) * np.where(seasonal, factor, (1.0 - share * factor) / (1.0 - share))
    )
    seeds = stream.integers(0, 2**64, tracts, dtype=np.uint64)
    index = np.arange(
        tracts
    )  # numbers of tracts are 000100, 000200, ..., with suffixes 01-98 where one county has very many
    numbers = (index + 1) * 100 if tracts < 9999 else (index // 98 + 1) * 100 + index % 98 + 1
    columns = [
        np.full(tracts, row), sizes, seeds, dominant, per_occupied,
        np.full(tracts, county), numbers, places, aiannh,
    ]  # fmt: skip
    return columns, runs


def make_plan(
    persons: int, state_codes: tuple[str, ...] | None, seed: int, *, areas_of: int | None = None
) -> PopulationPlan:
    """The tracts of a population of exactly `persons` persons."""
    area_persons = persons if areas_of is None else areas_of
    for name, number in (("persons", persons), ("areas_of", area_persons)):
        if not 1 <= number <= MOST_PERSONS:
            raise UsageError(f"{name}: give a number from 1 to {MOST_PERSONS:,}")
    if seed < 0:
        raise UsageError("seed: give zero or a positive whole number")
    rows = _checked_states(state_codes)
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
    state, tract_persons, seeds, dominant, vacancy, code, tract, place, aiannh = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    room = 2 * tract_persons
    if (
        persons > _ROOMY
    ):  # of 33 million persons the units of no tract with more than 1,000 exceed 0.436 times persons and vacant units
        room = np.ceil(0.47 * tract_persons * (1.0 + vacancy)).astype(np.int64) + 20
    before = np.cumsum(room) - room
    if FIRST_MAFID + int(before[-1] + room[-1]) - 1 > LAST_MAFID:
        raise UsageError("persons: the states have more units than there are MAFIDs for; give fewer persons")
    tracts_of = Tracts(state, tract_persons, FIRST_MAFID + before, seeds, dominant, vacancy)
    return PopulationPlan(tracts_of, Places(code, tract, place, aiannh))
