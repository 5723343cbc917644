"""CONFIDENTIAL. Swapping of households that agree on size, with the two published settings of the Bureau's public experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.households import Households, Records, SwappedPeople, rank_in_run
from censafe.attack.people import AttackedRecords
from censafe.errors import ConfigError

_Ints = NDArray[np.int64]
_ONE: Final = 1e-9


@dataclass(frozen=True)
class SwapSetting:
    """How many households are swapped, and with whom.

    Args:
        size_noise: chances that a household is matched as if it had one person less, as many as it has, or one more.
        geography: chances that it is matched in its own tract, in another of the county, or in another of the state.
    """

    rate: float
    size_noise: tuple[float, float, float] = (0.0, 1.0, 0.0)
    geography: tuple[float, float, float] = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ConfigError(f"the rate of a swap must be between 0 and 1, not {self.rate:g}")
        for name, chances in (("size_noise", self.size_noise), ("geography", self.geography)):
            if len(chances) != 3 or min(chances) < 0 or abs(sum(chances) - 1) > _ONE:
                raise ConfigError(
                    f"{name}: three chances are needed that are not negative and sum to 1; fix: correct them, such as 0.25, 0.5, 0.25"
                )


SWAP_SETTINGS: Final[Mapping[str, SwapSetting]] = {
    "LO": SwapSetting(0.05),
    "HI": SwapSetting(0.50, (0.25, 0.50, 0.25), (0.30, 0.40, 0.30)),
}
"""The two settings whose results the article prints."""


def swap_households(people: Records, setting: SwapSetting, seed: int) -> SwappedPeople[Records]:
    """Pairs of households exchange their blocks.

    Households are sorted by a size with noise, by a tract that is their own or one drawn from their county or state, and by a random number. Neighbors of
    one size and tract make pairs, those chosen at random first. A chosen household that is left over takes a neighbor that was not chosen in one of two cases,
    so that the rate is the requested one. One that is alone in its tract takes the next such household of its size in the state. Sizes, tracts, choice,
    order and leftovers have independent random streams.

    Source: technical supplement of "A Simulated Reconstruction and Reidentification Attack on the 2010 U.S. Census" (HDSR, 2025), swapping experiments.
    """
    households = Households.of(people)
    streams = [np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(5)]
    sizes, places, order, chosen, coins = streams
    size = households.size + sizes.choice([-1, 0, 1], len(households), p=setting.size_noise)
    tract = _pseudo_tract(people, households, setting, places)
    state = people.around(people.within_levels[-1])[households.block]
    selected = np.zeros(len(households), np.bool_)
    selected[chosen.permutation(len(households))[: round(setting.rate * len(households))]] = True
    run = _numbered(tract, _numbered(size, state))  # sorted by state, size, tract
    by = np.lexsort((order.random(len(households)), ~selected, run))
    partner = np.arange(len(households))
    for first, second in (_pairs(run, selected, by, coins), _lone_pairs(run, size, state, selected, by)):
        partner[first], partner[second] = second, first
    return SwappedPeople.of(people, households, partner)


def _pseudo_tract(
    people: AttackedRecords, households: Households, setting: SwapSetting, stream: np.random.Generator
) -> _Ints:
    """Tract in which each household is matched."""
    own, county, state = (people.around(level)[households.block] for level in people.within_levels)
    group = stream.choice(3, len(households), p=setting.geography)
    tract = own.copy()
    for number, area in ((1, county), (2, state)):
        members = np.flatnonzero(group == number)
        fixed = members[np.argsort(area[members], kind="stable")]
        drawn = members[np.lexsort((stream.random(len(members)), area[members]))]
        tract[fixed] = own[drawn]
    return tract


def _numbered(inner: _Ints, outer: _Ints) -> _Ints:
    """One number for two keys, which sorts by the outer one first."""
    low = inner.min(initial=0)
    return outer * (inner.max(initial=0) - low + 1) + inner - low


def _pairs(
    run: _Ints, selected: NDArray[np.bool_], by: _Ints, coins: np.random.Generator
) -> tuple[_Ints, _Ints]:
    """Neighbors of one run; the selected ones come first in it."""
    _, place, members = np.unique(run[by], return_inverse=True, return_counts=True)
    chosen = np.bincount(place, weights=selected[by], minlength=len(members)).astype(np.int64)
    completed = (chosen % 2 == 1) & (coins.random(len(members)) < 0.5)
    pairs = np.minimum(chosen // 2 + completed, members // 2)
    paired = by[rank_in_run(place) < 2 * pairs[place]]
    return paired[0::2], paired[1::2]


def _lone_pairs(
    run: _Ints, size: _Ints, state: _Ints, selected: NDArray[np.bool_], by: _Ints
) -> tuple[_Ints, _Ints]:
    """Selected households that are alone in their run, paired with the next one of their size and state."""
    _, place, members = np.unique(run[by], return_inverse=True, return_counts=True)
    lone = by[(members[place] == 1) & selected[by]]
    key = _numbered(size, state)[lone]
    _, place, members = np.unique(key, return_inverse=True, return_counts=True)
    paired = lone[rank_in_run(place) < members[place] // 2 * 2]
    return paired[0::2], paired[1::2]
