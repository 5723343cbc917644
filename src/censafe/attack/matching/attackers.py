"""The data of an attacker: names with block, sex and age, exact or with the errors of commercial files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.people import AGE_BINS, OLDEST, AttackedRecords, People
from censafe.errors import DataError

_COUNTY: Final = 5
_MOVED: Final = 0.7
_MISREAD: Final = 0.2


@dataclass(frozen=True, eq=False)
class Attacker:
    """An attacker's file.

    Args:
        truth: place of the true record with the same identifier, -1 where there is none, shape (n,).
        agrees: whether block, sex and class of age are those of the true record, shape (n,).
        elsewhere: places of the true records of further records, in blocks without persons; they match no person and are counted.
    """

    name: str
    people: AttackedRecords
    truth: NDArray[np.int64]
    agrees: NDArray[np.bool_]
    elsewhere: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def value(self, truth: AttackedRecords) -> NDArray[np.int64]:
        """Target that would be confirmed for each record, -1 where nothing would be, shape (n,)."""
        return np.where(self.agrees, truth.target[np.maximum(self.truth, 0)], -1)


def identified(truth: AttackedRecords, seed: int) -> NDArray[np.int64]:
    """Places of persons who can be looked for: everybody where no identifiers are given, otherwise one record, drawn, of each identifier in a block.

    Source: attack.md 7.2.
    """
    if (truth.person < 0).all():
        return np.arange(len(truth))
    order = np.random.default_rng(seed).permutation(len(truth))
    order = order[truth.person[order] >= 0]
    _, first = np.unique(np.stack([truth.block[order], truth.person[order]]), axis=1, return_index=True)
    return np.sort(order[first])


def exact_attacker(truth: AttackedRecords, seed: int = 0) -> Attacker:
    """Block, sex and age of every identified person as in the true records."""
    places = identified(truth, seed)
    return Attacker("exact", truth.take(places), places, np.ones(len(places), np.bool_))


def noisy_attacker(truth: People, share: float, seed: int) -> Attacker:
    """A file of which some share of the records agrees with the truth on block, sex and class of age.

    Of the others seven in ten live in another block of the county, two have another age, by up to ten years and in another class, and
    one another sex, each drawn at random; who would agree by chance has another sex.

    Source: attack.md 3.
    """
    draw = np.random.default_rng(seed)
    wrong, kind = draw.random(len(truth)) >= share, draw.random(len(truth))
    moved, misread = wrong & (kind < _MOVED), wrong & (kind >= _MOVED) & (kind < _MOVED + _MISREAD)
    county = truth.blocks.astype(f"U{_COUNTY}")
    first, last = np.searchsorted(county, county), np.searchsorted(county, county, side="right")
    block, age, sex = truth.block.copy(), truth.age.astype(np.int64), truth.sex.copy()
    low, high = first[block[moved]], last[block[moved]]
    block[moved] = low + np.floor(draw.random(int(moved.sum())) * (high - low)).astype(np.int64)
    step = draw.integers(1, 11, int(misread.sum())) * draw.choice([-1, 1], int(misread.sum()))
    age[misread] = np.clip(age[misread] + step, 0, OLDEST)
    sex[wrong & ~moved & ~misread] ^= 1
    chance = (
        wrong
        & (block == truth.block)
        & (np.searchsorted(AGE_BINS, age, side="right") - 1 == truth.age_bin)
        & (sex == truth.sex)
    )
    sex[chance] ^= 1
    people = replace(truth, block=block, sex=sex, age=age.astype(np.int16))
    places = identified(truth, seed)
    return _placed("noisy", people.take(places), truth, places)


def attacker_of_file(people: People, truth: People) -> Attacker:
    """A file of the user's; its records are joined with the true ones by person_id."""
    if (truth.person < 0).any():
        raise DataError(
            "the true records need a person_id for every person, so that what is matched can be confirmed; fix: add the column person_id"
        )
    order = np.argsort(truth.person, kind="stable")
    nearest = order[np.minimum(np.searchsorted(truth.person[order], people.person), len(order) - 1)]
    known = truth.person[nearest] == people.person
    if not known.any():
        raise DataError(
            "no person_id of the attacker's file is one of the true records; fix: give both the same identifiers"
        )
    place = np.minimum(np.searchsorted(truth.blocks, people.blocks), len(truth.blocks) - 1)
    here = truth.blocks[place] == people.blocks
    inside = here[people.block]
    places = np.where(known, nearest, -1)
    attacker = _placed("file", people.within(truth.blocks), truth, places[inside])
    return replace(attacker, elsewhere=places[~inside & known])


def _placed(name: str, people: People, truth: People, place: NDArray[np.int64]) -> Attacker:
    own = np.maximum(place, 0)
    same = (
        (people.block == truth.block[own])
        & (people.sex == truth.sex[own])
        & (people.age_bin == truth.age_bin[own])
    )
    return Attacker(name, people, place, same & (place >= 0))
