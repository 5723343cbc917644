"""Small populations and their neighbors, many of them counted at once by the real counting code.

A pair is two datasets that differ by one protected change. Every pair lives in two regions of its own and has
its own household keys, the same in both datasets, so one count of all "before" datasets and one of all "after"
datasets gives the differences of thousands of pairs.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.counting import CountAccumulator
from support.typed_tables import Records, typed

KEYS = tuple(range(6))
"""Households of a dataset; the even ones lie in the first region. All are in geo, not all have units."""

Person = tuple[int, int, int, int, int]  # P_RTYPE, QAGE, CENHISP, CENRACE, RELSHIP
Unit = tuple[int, int, int, int, int, int, int]  # RTYPE, HHSPAN, HHRACE, TEN, HHT, HHT2, CPLT

_PEOPLE = ((3, 2, 25), (3, 5, 26), (3, 17, 27), (3, 8, 30), (3, 12, 33), (3, 15, 34), (3, 16, 20))
_ADULTS = ((3, 18, 20), (3, 40, 21), (3, 66, 29), (3, 115, 36), (5, 50, 37), (5, 3, 25))


@dataclass(frozen=True)
class Dataset:
    """Persons and units as (household, record) pairs, in any order, repetitions allowed."""

    persons: tuple[tuple[int, Person], ...]
    units: tuple[tuple[int, Unit], ...]


Pair = tuple[Dataset, Dataset]
Change = Callable[[Dataset, random.Random], Dataset]


def random_person(rng: random.Random) -> Person:
    kind, age, relation = rng.choice(_PEOPLE + _ADULTS)
    return kind, age, rng.choice((1, 1, 2)), rng.choice((1, 1, 2, 6, 7, 63)), relation


def random_unit(rng: random.Random) -> Unit:
    return (
        rng.choice((2, 2, 2, 2, 4)),
        rng.choice((0, 1, 1, 2)),
        rng.choice((0, 1, 1, 2, 6, 7, 63)),
        rng.choice((0, 1, 2, 3, 4)),
        rng.choice((0, 1, 1, 2, 3, 4, 7)),
        rng.choice((0, 1, 1, 2, 3, 5, 6, 9, 10, 12)),
        rng.choice((0, 1, 2, 3, 4, 5)),
    )


def random_dataset(rng: random.Random, largest: int, *, repeated_units: bool) -> Dataset:
    """A few households of 0 to ``largest`` persons, half of them with persons of one kind only."""
    persons: list[tuple[int, Person]] = []
    units: list[tuple[int, Unit]] = []
    for key in KEYS:
        size = rng.choice((0, 1, largest - 1, largest))
        one = random_person(rng)
        alike = rng.random() < 0.5
        persons += [(key, one if alike else random_person(rng)) for _ in range(size)]
        copies = rng.choice((0, 1, 1, 1, 2)) if repeated_units else rng.choice((0, 1, 1, 1))
        units += [(key, random_unit(rng)) for _ in range(copies)]
    return Dataset(tuple(persons), tuple(units))


def person_changes(data: Dataset, rng: random.Random) -> list[tuple[int, Dataset]]:
    """Every removal of one person, and one addition to every household, with the household concerned."""
    removed = [
        (key, replace(data, persons=data.persons[:place] + data.persons[place + 1 :]))
        for place, (key, _) in enumerate(data.persons)
    ]
    added = [(key, replace(data, persons=(*data.persons, (key, random_person(rng))))) for key in KEYS]
    return removed + added


def new_unit_of(data: Dataset, key: int, rng: random.Random) -> Dataset:
    """The unit record of one household changed arbitrarily: other attributes, gone, or new."""
    others = tuple(row for row in data.units if row[0] != key)
    fresh = () if rng.random() < 0.2 else ((key, random_unit(rng)),)
    return replace(data, units=others + fresh)


def household_pairs(rng: random.Random, populations: int, largest: int) -> list[Pair]:
    """Add or remove one person; the unit record of that household, and no other, may change."""
    pairs = []
    for _ in range(populations):
        data = random_dataset(rng, largest, repeated_units=False)
        for key, changed in person_changes(data, rng):
            pairs += [(data, changed), (data, new_unit_of(changed, key, rng))]
    return pairs


def replacement_pairs(rng: random.Random, populations: int, largest: int) -> list[Pair]:
    """Replace one person, in place or into another household; the unit records of both may change."""
    pairs = []
    for _ in range(populations):
        data = random_dataset(rng, largest, repeated_units=False)
        for place, (key, _) in enumerate(data.persons):
            others = data.persons[:place] + data.persons[place + 1 :]
            target = rng.choice(KEYS)
            changed = replace(data, persons=(*others, (target, random_person(rng))))
            changed = new_unit_of(changed, key, rng)
            if target != key:
                changed = new_unit_of(changed, target, rng)
            pairs.append((data, changed))
    return pairs


def bureau_pairs(rng: random.Random, populations: int, largest: int) -> list[Pair]:
    """Add or remove one person; one unit record of any household may leave and one may enter."""
    pairs = []
    for _ in range(populations):
        data = random_dataset(rng, largest, repeated_units=True)
        for _, changed in person_changes(data, rng):
            units = list(changed.units)
            if units and rng.random() < 0.9:
                units.pop(rng.randrange(len(units)))
            if rng.random() < 0.9:
                units.append((rng.choice(KEYS), random_unit(rng)))
            pairs.append((data, replace(changed, units=tuple(units))))
    return pairs


def records_of(datasets: Sequence[Dataset]) -> Records:
    """All datasets side by side: two regions and a block of household keys for each."""
    persons: list[list[Any]] = []
    units: list[list[Any]] = []
    geo: list[list[Any]] = []
    for number, data in enumerate(datasets):
        base = 100_000_001 + 10 * number
        persons += [[kind, base + key, *rest] for key, (kind, *rest) in data.persons]
        units += [[kind, base + key, 1, 0, *rest] for key, (kind, *rest) in data.units]
        geo += [[2, base + key, f"{number:06d}{'ab'[key % 2]}"] for key in KEYS]
    return Records(persons, units, geo)


def counts_of(
    datasets: Sequence[Dataset], tau: Mapping[str, int], backend: Any
) -> dict[tuple[str, str], Any]:
    """Exact answers by (table, level): int64, shape (datasets, answers), through the real counting code."""
    counted = CountAccumulator(phsafe_definitions(), tau=tau)
    counted.add(typed(records_of(datasets), backend))
    finished = counted.finish()
    answers = {}
    for (table, level), exact in finished.items():
        if level.startswith("state_"):
            by_region = exact.values.reshape(len(datasets), 2, -1)
            answers[table, level] = by_region.reshape(len(datasets), -1)
            answers[table, level.replace("state_", "usa_")] = by_region.sum(axis=1)
    for (table, level), exact in finished.items():
        if level.startswith("usa_"):
            np.testing.assert_array_equal(exact.values, answers[table, level].sum(axis=0))
    return answers


def differences(pairs: Sequence[Pair], tau: Mapping[str, int], backend: Any) -> dict[tuple[str, str], Any]:
    """After less before by (table, level): int64, shape (pairs, answers)."""
    before = counts_of([pair[0] for pair in pairs], tau, backend)
    after = counts_of([pair[1] for pair in pairs], tau, backend)
    return {key: after[key] - before[key] for key in before}
