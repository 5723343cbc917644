"""CONFIDENTIAL. Swapping of households at risk first, with partners nearby that agree on persons and adults."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from censafe.attack.defenses.households import Households, SwappedPeople
from censafe.attack.people import BLOCK_DIGITS, People, area_of_blocks
from censafe.errors import ConfigError, DataError
from censafe.geography.area_lists import listed_blocks
from censafe.geography.geocodes import GeocodeForm
from censafe.products.topdown.census_tables.shapes import read_points
from censafe.publication.atomic import sha256_file

_Ints = NDArray[np.int64]
_FORM: Final = GeocodeForm(BLOCK_DIGITS)
_FARTHEST: Final = (180, 90)  # longitude and latitude, degrees


@dataclass(frozen=True, eq=False)
class BlockPoints:
    """Interior points of blocks, from a file with their latitudes and longitudes.

    Args:
        numbers: of the blocks, rising, shape (blocks,).
        places: on the unit sphere, where a shorter chord is a shorter way over ground, shape (blocks, 3).
    """

    path: Path
    digest: str
    numbers: NDArray[np.int64] = field(repr=False)
    places: NDArray[np.float64] = field(repr=False)

    @staticmethod
    def read(path: Path) -> BlockPoints:
        """Points of a file; its blocks are checked as those of a list of areas."""
        column, codes, degrees = read_points(path)
        if not len(codes):
            raise DataError(f"{path}: there is no block with a point; fix: give a row for each block")
        numbers = listed_blocks(path, column, pa.chunked_array([codes.tolist()]), {}, _FORM).numbers
        wrong = int((~(np.abs(degrees) <= _FARTHEST)).any(axis=1).sum())
        if wrong:
            raise DataError(
                f"{path}: {wrong:,} of {len(codes):,} blocks have no point on earth; allowed: latitudes from -90 to 90 and longitudes from -180 to 180 degrees"
            )
        longitude, latitude = np.radians(degrees).T
        flat = np.cos(latitude)
        places = np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
        order = np.argsort(numbers)
        return BlockPoints(path, sha256_file(path), numbers[order], places[order])

    def of(self, blocks: NDArray[np.str_]) -> NDArray[np.float64]:
        """Points of blocks, shape (blocks, 3)."""
        own = _FORM.pack(blocks)
        place = np.minimum(np.searchsorted(self.numbers, own), len(self.numbers) - 1)
        missing = np.count_nonzero(self.numbers[place] != own)
        if missing:
            raise DataError(
                f"{self.path}: {missing:,} of {len(blocks):,} blocks of the records have no point; fix: a file with the points of all blocks of their states"
            )
        return self.places[place]


_Floats = NDArray[np.float64]
_ONE: Final = 1e-9
_ALONE: Final = 6
"""Races alone come first in the order of ``RACE_BITS``; all other sets are two or more races."""
_LEVELS: Final = ("block group", "tract", "county", "state")


@dataclass(frozen=True)
class TargetedSetting:
    """How many households are swapped, and how much more often those at risk. What the Bureau used in 2010 is confidential; these are stand-ins.

    Args:
        weights: how often a household of each class draws a partner, compared with the others; none is 0, so that every household may be swapped.
    """

    rate: float = 0.05
    shares: tuple[float, ...] = (0.05, 0.10, 0.25, 0.60)
    weights: tuple[float, ...] = (50.0, 12.0, 2.5, 1.0)
    candidates: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1 or self.candidates < 1:
            raise ConfigError(
                "a targeted swap needs a rate between 0 and 1 and at least 1 candidate; fix: correct rate or candidates"
            )
        if (
            len(self.shares) != len(self.weights)
            or abs(sum(self.shares) - 1) > _ONE
            or min(*self.shares, 0) < 0
        ):
            raise ConfigError(
                "shares of classes of risk must not be negative, sum to 1 and have one weight each"
            )
        if not all(weight > 0 for weight in self.weights):
            raise ConfigError(
                "weights of classes of risk must be above 0, so that every household may be swapped"
            )


@dataclass(frozen=True, eq=False)
class _Search:
    """Households by key and block, those of one key and area next to each other."""

    setting: TargetedSetting
    blocks: NDArray[np.str_] = field(repr=False)
    block: _Ints = field(repr=False)
    key: _Ints = field(repr=False)  # state, persons, adults
    order: _Ints = field(repr=False)  # by key, block, at random
    points: _Floats | None = field(repr=False)  # of the blocks, on the unit sphere
    stream: np.random.Generator = field(repr=False)

    def place(self, keys: _Ints, blocks: _Ints) -> _Ints:
        """One number for a key and a block."""
        return keys * (len(self.blocks) + 1) + blocks

    def partners(self, seekers: _Ints, free: NDArray[np.bool_]) -> _Ints:
        """A free household of the same key in another block for each seeker, -1 where there is none."""
        order = self.order[free[self.order]]
        if self.points is None:
            return self._by_area(seekers, order)
        partner = np.full(len(seekers), -1, np.int64)
        for key in np.unique(self.key[seekers]).tolist():
            own = self.key[seekers] == key
            low, high = np.searchsorted(self.key[order], [key, key + 1])
            partner[own] = self._by_distance(self.block[seekers[own]], order[low:high], self.points)
        return partner

    def _by_area(self, seekers: _Ints, order: _Ints) -> _Ints:
        """From the smallest area with enough candidates, each of them equally likely."""
        numbers = self.place(self.key[order], self.block[order])
        key, block = self.key[seekers], self.block[seekers]
        own = np.searchsorted(numbers, [self.place(key, block), self.place(key, block + 1)])
        first, count = np.zeros(len(seekers), np.int64), np.zeros(len(seekers), np.int64)
        for level in _LEVELS:
            area = area_of_blocks(self.blocks, level)
            low = np.searchsorted(area, area[block])
            high = np.searchsorted(area, area[block], side="right")
            span = np.searchsorted(numbers, [self.place(key, low), self.place(key, high)])
            lacking = count < self.setting.candidates
            first = np.where(lacking, span[0], first)
            count = np.where(lacking, span[1] - span[0] - (own[1] - own[0]), count)
        drawn = first + self.stream.integers(0, np.maximum(count, 1))
        drawn += np.where(drawn >= own[0], own[1] - own[0], 0)
        return np.where(count > 0, order[np.minimum(drawn, len(order) - 1)], -1)

    def _by_distance(self, blocks: _Ints, order: _Ints, points: _Floats) -> _Ints:
        """From the nearest candidates over ground, each of them equally likely.

        Args:
            order: free households of one key, by block.
        """
        homes, start, members = np.unique(self.block[order], return_index=True, return_counts=True)
        near = min(self.setting.candidates + 1, len(homes))  # one of them may be the own block
        _, home = cKDTree(points[homes]).query(points[blocks], k=[*range(1, near + 1)])
        count = np.where(homes[home] == blocks[:, None], 0, members[home])
        above = np.cumsum(count, axis=1)
        pool = np.minimum(above[:, -1], self.setting.candidates)
        drawn = self.stream.integers(0, np.maximum(pool, 1))
        column = np.argmax(above > drawn[:, None], axis=1)
        row = np.arange(len(blocks))
        place = start[home[row, column]] + drawn - (above - count)[row, column]
        return np.where(pool > 0, order[np.minimum(place, len(order) - 1)], -1)


def household_risk(people: People, households: Households) -> _Ints:
    """Number of households in the tract with the same composition; the fewer, the higher the risk.

    The composition is the number of persons of each race alone, of two or more races, and of Hispanic origin.

    Source: attack.md 16.1, step 2.
    """
    housed = households.of_person >= 0
    place = households.of_person[housed]
    race = np.minimum(people.race[housed], _ALONE).astype(np.int64)
    counts = np.bincount(place * (_ALONE + 1) + race, minlength=len(households) * (_ALONE + 1))
    hispanic = np.bincount(place, weights=people.hispanic[housed], minlength=len(households)).astype(np.int64)
    profile = area_of_blocks(people.blocks, "tract")[households.block]
    for column in (*counts.reshape(len(households), -1).T, hispanic):
        number = profile * (int(column.max(initial=0)) + 1) + column
        profile = np.unique(number, return_inverse=True)[1].ravel().astype(np.int64)
    return np.bincount(profile)[profile]


def swap_targeted(
    people: People, setting: TargetedSetting, seed: int, points: BlockPoints | None = None
) -> SwappedPeople[People]:
    """Households at risk exchange their blocks with households nearby that have as many persons and adults.

    Risk is the rarity of the household's composition in its tract, then the smallness of its block; ties are broken at random. Households are
    drawn with the weight of their class and look for a partner in the order of their risk, until the rate is reached. Partners live in another block of the state and are drawn from the nearest
    candidates: by distance where points are given, otherwise from the block group, the tract, the county or the state, the first that has enough.
    Where two draw one partner, the one at higher risk is swapped with it and the other draws once more.

    Source: attack.md 9 and 16.1.
    """
    households = Households.of(people)
    ties, choice, order, draws = (np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(4))
    count = len(households)
    risk = household_risk(people, households)
    ranked = np.lexsort((ties.random(count), people.population[households.block], risk))
    parts = np.searchsorted(np.cumsum(setting.shares) * count, np.arange(count), side="right")
    weight = np.empty(count)
    weight[ranked] = np.asarray(setting.weights)[np.minimum(parts, len(setting.weights) - 1)]
    key = households.alike(people.around("state"))
    by = np.lexsort((order.random(count), households.block, key))
    places = None if points is None else points.of(people.blocks)
    search = _Search(setting, people.blocks, households.block, key, by, places, draws)
    partner = np.arange(count)
    left = round(setting.rate * count / 2)
    while left > 0:
        free = partner == np.arange(count)
        chance = weight * (left / weight[free].sum())
        seekers = ranked[(free & (choice.random(count) < chance))[ranked]][:left]
        served = _serve(search, seekers, partner)
        left -= served
        if not served:
            break
    return SwappedPeople.of(people, households, partner)


def _serve(search: _Search, seekers: _Ints, partner: _Ints) -> int:
    """Write partners of seekers, the first ones first, and return the number of pairs."""
    free = partner == np.arange(len(partner))
    pairs = 0
    while len(seekers):
        drawn = search.partners(seekers, free)
        first, second = seekers[drawn >= 0], drawn[drawn >= 0]
        rank = np.arange(len(first))
        earliest = np.full(len(partner), len(first))
        np.minimum.at(earliest, first, rank)
        np.minimum.at(earliest, second, rank)
        served = (earliest[first] == rank) & (earliest[second] == rank)
        partner[first[served]], partner[second[served]] = second[served], first[served]
        free[first[served]] = free[second[served]] = False
        pairs += int(served.sum())
        seekers = first[free[first]]
    return pairs
