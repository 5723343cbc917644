"""Brute force over permutations: one exchange of two records changes no output's probability by more than the accountant of permutation swapping says."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from censafe.attack.defenses.permutation import deranged, permutation_loss

RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(7, 10)]


def selection_law(records: int, rate: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Probability of every permutation from the definition: every set selected but those of one record, and every derangement of it."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for chosen in product((False, True), repeat=records):
        places = [place for place, one in enumerate(chosen) if one]
        if len(places) == 1:
            continue
        chance = rate ** len(places) * (1 - rate) ** (records - len(places))
        orders = [
            one for one in permutations(places) if all(a != b for a, b in zip(one, places, strict=True))
        ]
        for order in orders:
            result = list(range(records))
            for place, taken in zip(places, order, strict=True):
                result[place] = taken
            law[tuple(result)] += chance / len(orders)
    whole = sum(law.values())
    return {result: chance / whole for result, chance in law.items()}


def outputs(law: dict[tuple[int, ...], Fraction], values: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Probability of every assignment of values to records."""
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for result, chance in law.items():
        found[tuple(values[one] for one in result)] += chance
    return found


def largest_loss(law: dict[tuple[int, ...], Fraction], values: tuple[int, ...]) -> float:
    """Largest log ratio over all outputs and all exchanges of the values of two records."""
    own = outputs(law, values)
    largest = 0.0
    for one, two in combinations(range(len(values)), 2):
        changed = list(values)
        changed[one], changed[two] = changed[two], changed[one]
        other = outputs(law, tuple(changed))
        assert own.keys() == other.keys()
        ratios = (own[key] / other[key] for key in own)
        largest = max(largest, *(abs(math.log(ratio)) for ratio in ratios))
    return largest


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("records", [2, 3, 4, 5, 6])
def test_the_exact_value_is_attained_by_distinct_values_and_by_no_others_exceeded(
    records: int, rate: Fraction
) -> None:
    law = selection_law(records, rate)
    exact = permutation_loss(records, rate).exchange
    assert largest_loss(law, tuple(range(records))) == pytest.approx(exact, rel=1e-12)
    ties = [tuple(place // 2 for place in range(records)), (0,) * (records - 1) + (1,)]
    assert all(largest_loss(law, values) <= exact * (1 + 1e-12) for values in ties)


def test_a_planted_defect_is_found() -> None:
    # A record that is selected alone stays where it is, without a second draw: then nothing moves more often than the proof says.
    rate = Fraction(1, 2)
    law = selection_law(3, rate)
    alone = 3 * rate * (1 - rate) ** 2
    planted = {key: chance * (1 - alone) for key, chance in law.items()}
    planted[0, 1, 2] += alone
    assert largest_loss(planted, (0, 1, 2)) > 1.5 * permutation_loss(3, rate).exchange


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("records", [2, 3, 4])
def test_draws_follow_the_law(records: int, rate: Fraction) -> None:
    # Pearson's statistic over at most 24 permutations, 60,000 strata; its 1 - 1e-6 quantile for 23 degrees of freedom is 77. A law whose selection
    # has a rate off by 0.02, or derangements with weights off by a tenth, has a statistic of some hundred.
    strata = 60_000
    drawn = deranged(np.repeat(np.arange(strata), records), rate, np.random.default_rng(17))
    found = Counter(
        map(tuple, (drawn.reshape(strata, records) - np.arange(strata)[:, None] * records).tolist())
    )
    law = selection_law(records, rate)
    assert found.keys() <= law.keys()
    assert pearson(found, law, strata) < 77
    other = selection_law(records, rate + Fraction(1, 25))
    assert pearson(found, other, strata) > 77


def pearson(found: Counter[tuple[int, ...]], law: dict[tuple[int, ...], Fraction], strata: int) -> float:
    return sum(
        (found[key] - strata * float(chance)) ** 2 / (strata * float(chance)) for key, chance in law.items()
    )
