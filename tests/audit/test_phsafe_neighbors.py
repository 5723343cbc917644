"""Brute force over neighbors: no protected change moves the exact answers further than is claimed.

The claims are those of ``products/phsafe/definitions.py``; the answers are those of the counting code that a release
uses, before noise. Nothing here trusts the written proofs.
"""

import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from censafe.model import Neighbors
from censafe.products.phsafe.definitions import Bound, Sensitivity, sensitivity_bound
from censafe.tabulation.engine import connect
from support.neighbors import (
    Dataset,
    Pair,
    Person,
    Unit,
    bureau_pairs,
    differences,
    household_pairs,
    records_of,
    replacement_pairs,
)
from support.reference_counts import reference_release

TAUS = {
    "small": {"PH1_num": 2, "PH2": 3, "PH3": 2, "PH4": 3, "PH6": 2, "PH7": 3},
    "one": dict.fromkeys(("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7"), 1),
}
POPULATIONS = {"small": 24, "one": 12}  # each with 13 to 56 pairs
LEVELS = 46  # seven tables with six levels and two with two
Differences = Mapping[tuple[str, str], Any]
RELATIONS: dict[str, tuple[Callable[..., list[Pair]], Sensitivity, Neighbors]] = {
    "bureau": (bureau_pairs, "bureau", Neighbors.ADD_REMOVE),
    "household-local": (household_pairs, "household-local", Neighbors.ADD_REMOVE),
    "replaced": (replacement_pairs, "household-local-bounded", Neighbors.REPLACE),
}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Any:
    engine = connect(tmp_path_factory.mktemp("engine"), threads=2, memory="1GB")
    yield engine
    engine.disconnect()


@pytest.fixture(scope="module")
def found(backend: Any) -> Callable[[str, str], Differences]:
    """Differences of a few thousand pairs by relation and tau, each computed once."""
    known: dict[tuple[str, str], Differences] = {}

    def compute(relation: str, taus: str) -> Differences:
        if (relation, taus) not in known:
            pairs = RELATIONS[relation][0](random.Random(f"{relation} {taus}"), POPULATIONS[taus], 5)
            assert len(pairs) > 150
            known[relation, taus] = differences(pairs, TAUS[taus], backend)
        return known[relation, taus]

    return compute


def largest(difference: Any) -> tuple[int, int]:
    """Largest L1 and largest squared L2 norm over pairs."""
    return int(np.abs(difference).sum(axis=1).max()), int((difference**2).sum(axis=1).max())


def breaches(found: Differences, claim: Callable[[str], Bound]) -> list[tuple[str, str]]:
    """Tables and levels where some pair differs by more than is claimed."""
    return [
        (table, level)
        for (table, level), difference in found.items()
        if largest(difference)[0] > claim(table).l1 or largest(difference)[1] > claim(table).l2_squared
    ]


def claim_of(relation: str, tau: Mapping[str, int]) -> Callable[[str], Bound]:
    _, sensitivity, neighbors = RELATIONS[relation]
    return lambda table: sensitivity_bound(sensitivity, neighbors, tau.get(table))


@pytest.mark.parametrize("taus", TAUS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_pair_moves_further_than_is_claimed(relation: str, taus: str, found: Any) -> None:
    differing = found(relation, taus)
    assert len(differing) == LEVELS
    assert all(difference.any() for difference in differing.values())
    assert not breaches(differing, claim_of(relation, TAUS[taus]))


@pytest.mark.parametrize("taus", TAUS)
def test_the_bounded_claim_holds_for_all_calibrations(taus: str, found: Any) -> None:
    for sensitivity in ("bureau", "household-local", "household-local-bounded"):

        def claim(table: str, name: Sensitivity = sensitivity) -> Bound:
            return sensitivity_bound(name, Neighbors.REPLACE, TAUS[taus].get(table))

        assert not breaches(found("replaced", taus), claim)


def alike(person: Person, units: tuple[Unit, Unit]) -> tuple[Dataset, Dataset]:
    """Two households of one region, full of persons of one kind, whose units change in the same way."""
    persons = tuple((key, person) for key in (0, 2) for _ in range(6))
    before, after = (Dataset(persons, ((0, unit), (2, unit))) for unit in units)
    return before, after


UNIT = (
    2,
    1,
    1,
    1,
    1,
    1,
    1,
)  # a White, non-Hispanic householder who owns with a mortgage, a married couple with children
OTHER = (2, 2, 2, 3, 2, 10, 5)  # a Black, Hispanic householder who rents, a father alone
EXTREMES = (((3, 3, 1, 1, 25), (UNIT, OTHER)), ((3, 40, 1, 1, 20), (UNIT, OTHER)))


def household_extremes() -> list[Pair]:
    """One person leaves a full household whose unit record changes."""
    pairs = []
    for person, units in EXTREMES:
        before, after = alike(person, units)
        pairs.append((before, Dataset(after.persons[1:], (after.units[0], before.units[1]))))
    return pairs


def replacement_extremes() -> list[Pair]:
    """One person moves between two full households whose unit records change in the same way."""
    pairs = []
    for person, units in EXTREMES:
        before, after = alike(person, units)
        pairs.append((before, Dataset((*after.persons[1:], (2, person)), after.units)))
    return pairs


def bureau_extremes() -> list[Pair]:
    """Two full households lose their unit record (one by a second record), and a person leaves a third one.

    In the third household that person is alone, or is replaced by one of another kind that truncation had cut.
    """
    child: Person = (3, 3, 1, 1, 25)
    others: list[Person] = [
        (3, age, 1, race, relation) for age in (5, 20) for race in (1, 2) for relation in (25, 20)
    ]
    full = tuple((key, child) for key in (0, 2) for _ in range(6))
    units = tuple((key, UNIT) for key in (0, 2, 4))
    pairs = []
    for third in [(child,), *((child, *[other] * 5) for other in others)]:
        persons = (*full, *((4, person) for person in third))
        leaving = persons.index((4, child))
        rest = persons[:leaving] + persons[leaving + 1 :]
        pairs.append((Dataset(persons, units), Dataset(rest, (*units[1:], (2, UNIT)))))
    return pairs


# Where every cell of a level is decided by the person alone, or there is one cell, no change of a unit can move rows.
CONFINED = {
    (table, f"{place}_*")
    for table in ("PH1_num", "PH4", "PH1_denom", "PH5_denom")
    for place in ("usa", "state")
}


@pytest.mark.parametrize("taus", TAUS)
@pytest.mark.parametrize("relation", ["household-local", "replaced"])
def test_the_local_claims_are_attained(relation: str, taus: str, backend: Any) -> None:
    pairs = household_extremes() if relation == "household-local" else replacement_extremes()
    differing = differences(pairs, TAUS[taus], backend)
    claim = claim_of(relation, TAUS[taus])
    attained = {
        (table, level)
        for (table, level), difference in differing.items()
        if largest(difference) == (claim(table).l1, claim(table).l2_squared)
    }
    assert set(differing) - CONFINED == attained


def test_random_pairs_attain_the_household_local_claim(found: Any) -> None:
    differing = found("household-local", "small")
    claim = claim_of("household-local", TAUS["small"])
    attained = {
        table
        for (table, _), difference in differing.items()
        if largest(difference)[1] == claim(table).l2_squared
    }
    assert {table for table, _ in differing} == attained


def test_the_largest_difference_under_the_bureaus_calibration_is_reported(
    found: Any,
    backend: Any,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    tau = TAUS["small"]
    random_pairs, built = found("bureau", "small"), differences(bureau_extremes(), tau, backend)
    claim = claim_of("bureau", tau)
    assert not breaches(built, claim)
    lines = []
    for table in dict.fromkeys(table for table, _ in built):
        norms = [largest(d) for d in (*by_table(random_pairs, table), *by_table(built, table))]
        l1, l2_squared = max(norm[0] for norm in norms), max(norm[1] for norm in norms)
        record_property(f"{table} largest L1 and squared L2", (l1, l2_squared))
        lines.append(
            f"  {table:<9} L1 {l1:>2} of {claim(table).l1}   L2 {l2_squared**0.5:5.3f} of {claim(table).l1}"
        )
        assert l2_squared >= ((2 * tau[table] + 1) ** 2 if table in tau else 2)
    with capsys.disabled():
        head = "\nLargest change found under the Bureau's relation (tau 2 or 3), of the claimed bound:\n"
        sys.stdout.write(head + "\n".join(lines) + "\n")


def by_table(found: Differences, table: str) -> list[Any]:
    return [difference for (name, _), difference in found.items() if name == table]


def test_a_claim_that_is_too_small_is_caught(found: Any, backend: Any) -> None:
    tau = TAUS["small"]
    person_tables = {*tau}
    forgets_the_person = differences(bureau_extremes(), tau, backend)

    def two_households(table: str) -> Bound:
        rows = Fraction(tau.get(table, 1))
        return Bound(2 * rows, 4 * rows**2)

    def one_too_few(table: str) -> Bound:
        return sensitivity_bound("household-local", Neighbors.ADD_REMOVE, tau.get(table, 1) - 1)

    assert person_tables == {table for table, _ in breaches(forgets_the_person, two_households)}
    assert person_tables < {table for table, _ in breaches(found("household-local", "small"), one_too_few)}
    unbounded = claim_of("household-local", tau)
    assert person_tables <= {table for table, _ in breaches(found("replaced", "small"), unbounded)}


def test_a_forgotten_truncation_is_caught(backend: Any) -> None:
    untruncated = dict.fromkeys(TAUS["small"], 99)
    differing = differences(household_extremes(), untruncated, backend)
    caught = {table for table, _ in breaches(differing, claim_of("household-local", TAUS["small"]))}
    assert {*TAUS["small"]} == caught


# Every neighbor of every dataset of a tiny world: two households, two kinds of person, three states of a unit.


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


EXHAUSTIVE: dict[str, tuple[Callable[[Dataset, Dataset], bool], Sensitivity, Neighbors]] = {
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


@pytest.mark.parametrize("relation", EXHAUSTIVE)
def test_no_neighbor_at_all_moves_further_than_is_claimed(relation: str, counted: Any) -> None:
    datasets, answers = counted
    related, sensitivity, neighbors = EXHAUSTIVE[relation]
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
