"""Putative and confirmed re-identification and its precision, by who is attacked and by size of the block, and those of the guessers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.matching.attackers import Attacker
from censafe.attack.matching.guessers import guesses, modal_values, unique_flags
from censafe.attack.people import SIZE_CLASSES, AttackedRecords, block_size_class

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Matched:
    """Chances of the attacker's records; in a draw they are 0 or 1.

    Args:
        putative: to be matched with a record of the published file, shape (n,).
        right: to be matched with a record of the given race and origin, shape (n,).
    """

    putative: _Floats = field(repr=False)
    right: _Floats = field(repr=False)


def expected_matches(left: AttackedRecords, right: AttackedRecords, value: _Ints) -> Matched:
    """Chances of every attacker's record to be matched, and to be given its own race and origin, when records of both files are in random order.

    In a key of block, sex and age with n records on the left and k on the right, each record on the right is matched with probability min(n, k) / k, and
    with one of its own value with that times the share of the value on the left. Only one side of a key has records left over, so that those of
    both sides in a class of age are independent, and the second pass is of the same form.

    Args:
        value: race and origin that are right for each of them, -1 where nothing can be right, shape (n,).

    Source: attack.md 7.1 and 14.

    Example:
        One record of a White on the left, two on the right, one of them White: one is matched, and with probability 1/2 it is the right one.

        >>> from censafe.attack.people import People
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
    same = _share(own, left, np.ones(len(left)), lefts.astype(float), other, value)
    chance = putative * same
    waiting = 1 - putative
    spare = (1 - pairs[own] / np.maximum(lefts[own], 1)) if len(own) else np.zeros(0)
    bins, own, other = _keys(left, right, binned=True)
    lefts_over, rights_over = _sums(own, spare, bins), _sums(other, waiting, bins)
    second = np.minimum(lefts_over, rights_over) / np.maximum(rights_over, 1e-300)
    later = waiting * second[other]
    return Matched(putative + later, chance + later * _share(own, left, spare, lefts_over, other, value))


def drawn_matches(left: AttackedRecords, right: AttackedRecords, value: _Ints, seed: int) -> Matched:
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
    matched_value = np.where(matched, left.target[partner] if len(left) else -2, -2)
    return Matched(matched.astype(float), (matched & (matched_value == value)).astype(float))


def agreement(left: AttackedRecords, right: AttackedRecords) -> tuple[_Ints, _Ints]:
    """Records of the blocks that agree in sex, age, race and origin: with exact age, and with exact age or else class of age.

    Returns:
        Two arrays of shape (blocks,).

    Source: attack.md 7.1, algorithm 2.
    """
    if not np.array_equal(left.blocks, right.blocks):
        raise ValueError("both files must be of the same blocks")
    pairs_of_block, spare = [], [np.ones(len(left)), np.ones(len(right))]
    for binned in (False, True):
        keys, own, other = _keys(left, right, binned=binned, valued=True)
        lefts, rights = _sums(own, spare[0], keys), _sums(other, spare[1], keys)
        pairs = np.minimum(lefts, rights)
        pairs_of_block.append(
            np.bincount(
                right.block, (pairs / np.maximum(rights, 1e-300))[other] * spare[1], len(right.blocks)
            )
        )
        spare = [
            spare[0] * (1 - (pairs / np.maximum(lefts, 1e-300))[own]),
            spare[1] * (1 - (pairs / np.maximum(rights, 1e-300))[other]),
        ]
    exact = np.rint(pairs_of_block[0]).astype(np.int64)
    return exact, exact + np.rint(pairs_of_block[1]).astype(np.int64)


def _keys(
    left: AttackedRecords, right: AttackedRecords, *, binned: bool, valued: bool = False
) -> tuple[int, _Ints, _Ints]:
    """Number of keys, and the key of every record of both sides."""
    numbers = [people.keys(binned=binned) for people in (left, right)]
    if valued:
        numbers = [
            key * people.targets + people.target for key, people in zip(numbers, (left, right), strict=True)
        ]
    names, place = np.unique(np.concatenate(numbers), return_inverse=True)
    place = place.ravel()
    return len(names), place[: len(left)], place[len(left) :]


def _sums(key: _Ints, weight: _Floats, keys: int) -> _Floats:
    return np.bincount(key, weight, minlength=keys).astype(np.float64)


def _share(
    own: _Ints, left: AttackedRecords, weight: _Floats, totals: _Floats, other: _Ints, right: _Ints
) -> _Floats:
    """Share of the left records of a key, weighted, that have the value that is right for the record on the right."""
    if not len(own):
        return np.zeros(len(other))
    names, place = np.unique(own * left.targets + left.target, return_inverse=True)
    sums = np.bincount(place.ravel(), weight, minlength=len(names))
    name = other * left.targets + right
    at = np.minimum(np.searchsorted(names, name), len(names) - 1)
    there = (names[at] == name) & (right >= 0)
    return np.where(there, sums[at] / np.maximum(totals[other], 1e-300), 0.0)


def _pairs(own: _Ints, other: _Ints, draw: np.random.Generator) -> tuple[_Ints, _Ints]:
    """Places of both sides that are paired: the first with the first of every key, both in random order."""
    ranked = []
    for key in (own, other):
        order = np.lexsort((draw.random(len(key)), key))
        sorted_key = key[order]
        start = np.searchsorted(sorted_key, sorted_key)
        ranked.append((order, sorted_key, np.arange(len(key)) - start))
    (first, key, rank), (second, other_key, number) = ranked
    most = max(int(rank.max(initial=0)), int(number.max(initial=0))) + 1
    _, here, there = np.intersect1d(
        key * most + rank, other_key * most + number, assume_unique=True, return_indices=True
    )
    return first[here], second[there]


EVERY_SIZE: Final = "all"
_Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """The true records, and who of them is vulnerable.

    Args:
        populations: flags by name of a population, each of shape (n,).
        size: class of size of every block, shape (blocks,).
    """

    people: AttackedRecords
    guessed: Mapping[str, _Floats] = field(repr=False)
    populations: Mapping[str, _Flags] = field(repr=False)
    size: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def of(people: AttackedRecords, variability: NDArray[np.float64] | None = None) -> AttackTarget:
        """Everybody, modal and nonmodal persons, and the unique among them; with the variability of blocks also those where it is 0.

        Args:
            variability: of every block in percent, NaN where it is not known, shape (blocks,).

        Source: attack.md 7.3.
        """
        nonmodal = modal_values(people)[people.block] != people.target
        alone = unique_flags(people)
        populations = {
            "all": np.ones(len(people), np.bool_),
            "modal": ~nonmodal,
            "nonmodal": nonmodal,
            "unique": alone,
            "nonmodal unique": nonmodal & alone,
        }
        if variability is not None:
            certain = (variability == 0)[people.block]
            populations |= {
                "zero variability": certain,
                "nonmodal unique, zero variability": nonmodal & alone & certain,
            }
        return AttackTarget(people, guesses(people), populations, block_size_class(people.population))


def reidentification_rows(
    data: str, published: AttackedRecords, attacker: Attacker, target: AttackTarget, seed: int
) -> pa.Table:
    """Rates by population and size class: expected over random orders, and in one draw; and both guessers, with block, sex and age of all persons.

    Returns:
        A row for each population and size class, and for each of the published data, the modal and the proportional guesser.
    """
    value = attacker.value(target.people)
    chances = (
        expected_matches(published, attacker.people, value),
        drawn_matches(published, attacker.people, value, seed),
    )
    own = np.maximum(attacker.truth, 0)
    frame = expected_matches(target.people, attacker.people, value).putative
    sure = frame * attacker.agrees
    every: dict[str, tuple[Matched, ...]] = {data: chances} | {
        name: (Matched(frame, sure * chance[own]),) for name, chance in target.guessed.items()
    }
    none = np.zeros(len(attacker.elsewhere))
    places = np.append(attacker.truth, attacker.elsewhere)
    every = {
        name: tuple(
            Matched(np.append(one.putative, none), np.append(one.right, none)) for one in chances_of_file
        )
        for name, chances_of_file in every.items()
    }
    own = np.maximum(places, 0)
    size = target.size[target.people.block[own]]
    rows: list[tuple[Any, ...]] = []
    for name, flags in target.populations.items():
        for words, sized in _by_size(size):
            here = flags[own] & (places >= 0) & sized
            for guesser, matches in every.items():
                number = int(here.sum())
                sums = [(float(one.putative[here].sum()), float(one.right[here].sum())) for one in matches]
                putative, confirmed = sums[0]
                shares = [100 * one / number if number else None for one in sums[0]]
                precision = 100 * confirmed / putative if putative > 0 else None
                drawn = sums[1] if len(sums) > 1 else (None, None)
                rows.append(
                    (attacker.name, guesser, name, words, number, *sums[0], *shares, precision, *drawn)
                )
    return _frame(_COLUMNS, rows)


_COLUMNS: Final = (
    "attacker", "data", "population_attacked", "block_size", "records", "putative", "confirmed", "putative_percent", "confirmed_percent", "precision",
    "putative_drawn", "confirmed_drawn",
)  # fmt: skip


def agreement_rows(data: str, published: AttackedRecords, truth: AttackedRecords) -> pa.Table:
    """Percent of the true persons with a published record of the same block, sex, age, race and origin, by size of the block."""
    exact, binned = agreement(published, truth)
    size, population = block_size_class(truth.population), truth.population
    rows: list[tuple[Any, ...]] = []
    for words, sized in _by_size(size):
        here = sized & (population > 0)
        persons = int(population[here].sum())
        share = [100 * int(one[here].sum()) / persons if persons else None for one in (exact, binned)]
        rows.append((data, words, persons, *share))
    return _frame(("data", "block_size", "persons", "exact_percent", "binned_percent"), rows)


def unique_rows(truth: AttackedRecords) -> pa.Table:
    """Persons who are the only ones of their sex and age in their block, by size of the block: single years of age, and the 38 classes."""
    size = block_size_class(truth.population)[truth.block]
    flags = unique_flags(truth, binned=False), unique_flags(truth)
    rows: list[tuple[Any, ...]] = []
    for words, here in _by_size(size):
        persons = int(here.sum())
        share = [100 * int((one & here).sum()) / persons if persons else None for one in flags]
        rows.append((words, persons, *share))
    return _frame(("block_size", "persons", "unique_percent", "unique_in_class_percent"), rows)


def _by_size(size: _Ints) -> Iterator[tuple[str, _Flags]]:
    """What is of any size, then what is of each class, as flags."""
    yield EVERY_SIZE, np.ones(len(size), np.bool_)
    for place, words in enumerate(SIZE_CLASSES):
        yield words, size == place


def _frame(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.table({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})
