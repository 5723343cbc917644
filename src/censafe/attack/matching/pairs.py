"""Matching without replacement in two passes, exact age and then class of age: what is expected of it, one draw of it, and agreement."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.attack.people import AGE_BINS, OLDEST, People

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_VALUES = 126  # sets of races times origins


@dataclass(frozen=True, eq=False)
class Matched:
    """Chances of the attacker's records; in a draw they are 0 or 1.

    Args:
        putative: to be matched with a record of the published file, shape (n,).
        right: to be matched with a record of the given race and origin, shape (n,).
    """

    putative: _Floats = field(repr=False)
    right: _Floats = field(repr=False)


def expected_matches(left: People, right: People, value: _Ints) -> Matched:
    """Chances of every attacker's record to be matched, and to be given its own race and origin, when records of both files are in random order.

    In a key of block, sex and age with n records on the left and k on the right, each record on the right is matched with probability min(n, k) / k, and
    with one of its own value with that times the share of the value on the left. Only one side of a key has records left over, so that those of
    both sides in a class of age are independent, and the second pass is of the same form.

    Args:
        value: race and origin that are right for each of them, -1 where nothing can be right, shape (n,).

    Source: attack.md 7.1 and 14.

    Example:
        One record of a White on the left, two on the right, one of them White: one is matched, and with probability 1/2 it is the right one.

        >>> block = np.array(["500070001001001"])
        >>> of = lambda races: People.of(block.repeat(len(races)), sex=0 * races, age=30 + 0 * races, race=races, hispanic=0 * races)
        >>> found = expected_matches(of(np.array([0])), of(np.array([0, 1])), np.array([0, 2]))
        >>> found.putative.tolist(), found.right.tolist()
        ([0.5, 0.5], [0.5, 0.0])
    """
    keys, own, other = _keys(left, right, binned=False)
    lefts, rights = np.bincount(own, minlength=keys), np.bincount(other, minlength=keys)
    pairs = np.minimum(lefts, rights)
    putative = pairs[other] / np.maximum(rights[other], 1)
    same = _share(own, left.race_origin, np.ones(len(left)), lefts.astype(float), other, value)
    chance = putative * same
    waiting = 1 - putative
    spare = (1 - pairs[own] / np.maximum(lefts[own], 1)) if len(own) else np.zeros(0)
    bins, own, other = _keys(left, right, binned=True)
    lefts_over, rights_over = _sums(own, spare, bins), _sums(other, waiting, bins)
    second = np.minimum(lefts_over, rights_over) / np.maximum(rights_over, 1e-300)
    later = waiting * second[other]
    return Matched(
        putative + later, chance + later * _share(own, left.race_origin, spare, lefts_over, other, value)
    )


def drawn_matches(left: People, right: People, value: _Ints, seed: int) -> Matched:
    """One draw of the same matching.

    Source: attack.md 7.1, algorithms 1, 3 and 4.
    """
    draw = np.random.default_rng(seed)
    partner = np.full(len(right), -1)
    here, there = np.arange(len(left)), np.arange(len(right))
    for binned in (False, True):
        _, own, other = _keys(left.take(here), right.take(there), binned=binned)
        first, second = _pairs(own, other, draw)
        partner[there[second]] = here[first]
        here, there = np.delete(here, first), np.delete(there, second)
    matched = partner >= 0
    found = np.where(matched, left.race_origin[partner] if len(left) else -2, -2)
    return Matched(matched.astype(float), (matched & (found == value)).astype(float))


def agreement(left: People, right: People) -> tuple[_Ints, _Ints]:
    """Records of the blocks that agree in sex, age, race and origin: with exact age, and with exact age or else class of age.

    Returns:
        Two arrays of shape (blocks,).

    Source: attack.md 7.1, algorithm 2.
    """
    if not np.array_equal(left.blocks, right.blocks):
        raise ValueError("both files must be of the same blocks")
    found, spare = [], [np.ones(len(left)), np.ones(len(right))]
    for binned in (False, True):
        keys, own, other = _keys(left, right, binned=binned, valued=True)
        lefts, rights = _sums(own, spare[0], keys), _sums(other, spare[1], keys)
        pairs = np.minimum(lefts, rights)
        found.append(
            np.bincount(
                right.block, (pairs / np.maximum(rights, 1e-300))[other] * spare[1], len(right.blocks)
            )
        )
        spare = [
            spare[0] * (1 - (pairs / np.maximum(lefts, 1e-300))[own]),
            spare[1] * (1 - (pairs / np.maximum(rights, 1e-300))[other]),
        ]
    exact = np.rint(found[0]).astype(np.int64)
    return exact, exact + np.rint(found[1]).astype(np.int64)


def _keys(left: People, right: People, *, binned: bool, valued: bool = False) -> tuple[int, _Ints, _Ints]:
    """Number of keys, and the key of every record of both sides."""
    numbers = []
    for one in (left, right):
        age = one.age_bin if binned else one.age.astype(np.int64)
        key = (one.block * 2 + one.sex) * (len(AGE_BINS) if binned else OLDEST + 1) + age
        numbers.append(key * _VALUES + one.race_origin if valued else key)
    names, place = np.unique(np.concatenate(numbers), return_inverse=True)
    place = place.ravel()
    return len(names), place[: len(left)], place[len(left) :]


def _sums(key: _Ints, weight: _Floats, keys: int) -> _Floats:
    return np.bincount(key, weight, minlength=keys).astype(np.float64)


def _share(
    own: _Ints, values: _Ints, weight: _Floats, totals: _Floats, other: _Ints, wanted: _Ints
) -> _Floats:
    """Share of the left records of a key, weighted, that have the value wanted on the right."""
    names, place = np.unique(own * _VALUES + values, return_inverse=True)
    sums = np.bincount(place.ravel(), weight, minlength=len(names))
    asked = other * _VALUES + wanted
    found = np.minimum(np.searchsorted(names, asked), max(len(names) - 1, 0))
    if not len(names):
        return np.zeros(len(other))
    there = (names[found] == asked) & (wanted >= 0)
    return np.where(there, sums[found] / np.maximum(totals[other], 1e-300), 0.0)


def _pairs(own: _Ints, other: _Ints, draw: np.random.Generator) -> tuple[_Ints, _Ints]:
    """Places of both sides that are paired: the first with the first of every key, both in random order."""
    ranked = []
    for key in (own, other):
        order = np.lexsort((draw.random(len(key)), key))
        sorted_key = key[order]
        start = np.searchsorted(sorted_key, sorted_key)
        ranked.append((order, sorted_key, np.arange(len(key)) - start))
    (first, key, rank), (second, wanted, number) = ranked
    most = max(int(rank.max(initial=0)), int(number.max(initial=0))) + 1
    _, here, there = np.intersect1d(
        key * most + rank, wanted * most + number, assume_unique=True, return_indices=True
    )
    return first[here], second[there]
