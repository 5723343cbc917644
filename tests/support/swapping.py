"""Random persons in households and group quarters, for tests of defenses."""

import numpy as np

from censafe.attack.defenses.households import SwappedPeople
from censafe.attack.people import People, area_of_blocks


def drawn_people(
    households: int = 400,
    seed: int = 1,
    tracts: int = 8,
    counties: int = 2,
    states: tuple[str, ...] = ("44",),
    blocks: int = 6,
    quarters: int = 50,
) -> People:
    """Households of 1 to 7 persons and persons in group quarters, spread evenly over blocks; tracts are divided among the counties of each state."""
    codes = np.array(
        [
            f"{state}{tract % counties * 2 + 1:03d}{tract // counties + 1:04d}00{block // 3 + 1}{block:03d}"
            for state in states
            for tract in range(tracts)
            for block in range(blocks)
        ]
    )
    stream = np.random.default_rng(seed)
    size = stream.choice(7, households, p=[0.28, 0.35, 0.15, 0.13, 0.06, 0.02, 0.01]) + 1
    member = np.repeat(np.arange(households), size)
    home = stream.integers(0, len(codes), households)[member]
    home = np.concatenate((home, stream.integers(0, len(codes), quarters)))
    persons = len(home)
    household = np.concatenate((member + 1000, np.full(quarters, -1)))
    return People.of(
        codes[home],
        sex=stream.integers(0, 2, persons),
        age=stream.integers(0, 100, persons),
        race=stream.choice(8, persons, p=[0.6, 0.15, 0.02, 0.06, 0.01, 0.08, 0.05, 0.03]),
        hispanic=(stream.random(persons) < 0.2).astype(np.int8),
        person=np.arange(persons),
        household=household,
    )


def size_gap(swapped: SwappedPeople) -> int:
    """Largest difference between the sizes of two partners, in persons."""
    size = swapped.households.size
    return int(np.abs(size - size[swapped.partner]).max(initial=0))


def within(swapped: SwappedPeople, level: str) -> float:
    """Share of the households with a partner whose partner lives in the same area."""
    area = np.arange(len(swapped.people.blocks))
    if level != "block":
        area = area_of_blocks(swapped.people.blocks, level)
    own = area[swapped.households.block]
    return float((own == own[swapped.partner])[swapped.swapped].mean())
