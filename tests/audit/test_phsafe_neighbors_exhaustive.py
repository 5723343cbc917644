"""Every neighbor of every dataset of a tiny world: two households, two kinds of person, three states of a unit.

The counts come from the record-by-record reference, which property tests hold against the counting code.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from censafe.model import Neighbors
from censafe.products.phsafe.sensitivity import Sensitivity, sensitivity_bound
from support.neighbors import Dataset, Person, Unit, records_of
from support.reference_counts import reference_release

TAU = dict.fromkeys(("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7"), 1)
PEOPLE: tuple[Person, ...] = ((3, 3, 1, 1, 25), (3, 40, 1, 1, 20))
UNITS: tuple[Unit, ...] = ((2, 1, 1, 1, 1, 1, 1), (2, 2, 2, 3, 2, 10, 5))
HOUSEHOLDS = (0, 1)  # one in each region


def households() -> list[tuple[tuple[Person, ...], tuple[Unit, ...]]]:
    """Up to two persons, and no unit record, one of two, or both."""
    people = [group for size in range(3) for group in itertools.combinations_with_replacement(PEOPLE, size)]
    units = [group for size in range(3) for group in itertools.combinations(UNITS, size)]
    return list(itertools.product(people, units))


def world() -> list[Dataset]:
    datasets = []
    for pair in itertools.product(households(), repeat=len(HOUSEHOLDS)):
        persons = tuple((key, person) for key, (people, _) in enumerate(pair) for person in people)
        units = tuple((key, unit) for key, (_, owned) in enumerate(pair) for unit in owned)
        datasets.append(Dataset(persons, units))
    return datasets


def less(one: Any, other: Any) -> Counter[Any]:
    return Counter(one) - Counter(other)


def alone(data: Dataset) -> bool:
    """Whether no household has two unit records."""
    return len({key for key, _ in data.units}) == len(data.units)


def changed_households(one: Dataset, other: Dataset) -> set[int]:
    """Households whose unit records differ."""
    return {key for key, _ in (less(one.units, other.units) + less(other.units, one.units))}


def bureau(one: Dataset, other: Dataset) -> bool:
    """One person more or less; at most one unit record out and one in."""
    persons = less(one.persons, other.persons).total() + less(other.persons, one.persons).total()
    return (
        persons == 1 and max(less(one.units, other.units).total(), less(other.units, one.units).total()) <= 1
    )


def household_local(one: Dataset, other: Dataset) -> bool:
    """One person more or less; only the unit record of that household differs."""
    moved = less(one.persons, other.persons) + less(other.persons, one.persons)
    return (
        alone(one)
        and alone(other)
        and moved.total() == 1
        and changed_households(one, other) <= {key for key, _ in moved}
    )


def replaced(one: Dataset, other: Dataset) -> bool:
    """One person out and one in; only the unit records of their households differ."""
    out, entered = less(one.persons, other.persons), less(other.persons, one.persons)
    own = {key for key, _ in (out + entered)}
    return (
        alone(one)
        and alone(other)
        and out.total() == entered.total() == 1
        and changed_households(one, other) <= own
    )


RELATIONS: dict[str, tuple[Callable[[Dataset, Dataset], bool], Sensitivity, Neighbors]] = {
    "bureau": (bureau, "bureau", Neighbors.ADD_REMOVE),
    "household-local": (household_local, "household-local", Neighbors.ADD_REMOVE),
    "replaced": (replaced, "household-local-bounded", Neighbors.REPLACE),
}


@pytest.fixture(scope="module")
def counted() -> tuple[list[Dataset], dict[tuple[str, str], Any]]:
    """Every dataset, and its answers by (table, level): int64, shape (datasets, answers)."""
    datasets = world()
    answers: dict[tuple[str, str], list[list[int]]] = {}
    for data in datasets:
        for key, cells in reference_release(records_of([data]), TAU)[0].items():
            answers.setdefault(key, []).append([cells[name] for name in sorted(cells)])
    return datasets, {key: np.array(rows, dtype=np.int64) for key, rows in answers.items()}


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbor_at_all_moves_further_than_is_claimed(relation: str, counted: Any) -> None:
    datasets, answers = counted
    related, sensitivity, neighbors = RELATIONS[relation]
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(len(datasets)), 2)
        if related(datasets[i], datasets[j])
    ]
    assert len(pairs) > 1000
    first, second = np.array(pairs).T
    attained = set()
    for (table, level), values in answers.items():
        difference = values[second] - values[first]
        bound = sensitivity_bound(sensitivity, neighbors, TAU.get(table))
        l1, l2_squared = np.abs(difference).sum(axis=1).max(), (difference**2).sum(axis=1).max()
        assert l1 <= bound.l1, (table, level)
        assert l2_squared <= bound.l2_squared, (table, level)
        if l2_squared == bound.l2_squared:
            attained.add(table)
    if relation == "household-local":
        assert {table for table, _ in answers} == attained
