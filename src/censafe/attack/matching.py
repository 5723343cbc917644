"""Matching of records: the data of an attacker, statistical guessing without any record of the target, and putative and confirmed re-identification with its precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.people import AGE_BINS, OLDEST, SIZE_CLASSES, AttackedRecords, People, block_size_class
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


_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


GUESSER: Final = "proportional guesser, target left out"


def modal_values(people: AttackedRecords) -> _Ints:
    """Most frequent race and origin of every block; where it is tied or that of one person, of the block group; then of all people.

    Returns:
        Race and origin as one number, shape (blocks,).

    Source: attack.md 7.3.
    """
    block = _table(people.block, people, len(people.blocks))
    group = people.wider
    wider = _table(group[people.block], people, int(group.max(initial=-1)) + 1)
    mode = np.full(len(people.blocks), int(np.bincount(people.target, minlength=1).argmax()))
    most_frequent, clear = _modes(wider)
    mode = np.where(clear[group], most_frequent[group], mode)
    most_frequent, clear = _modes(block)
    return np.where(clear, most_frequent, mode)


def guesses(people: AttackedRecords) -> Mapping[str, _Floats]:
    """Chances of both guessers, by their names in the tables, to be right about the race and origin of every person, each of shape (n,).

    A guess is the most frequent of the block, or is made in proportion to the block. The person counts, so that these are upper bounds, unless the target
    is left out: then it is the most frequent of all others in the block, of several each as often. A person who is alone in a block is guessed from the block group, and from all people where that is empty.

    Source: attack.md 8.

    Example:
        Nine Whites and one Asian in a block: 90% and 80% without the target; 82% in proportion to everybody.

        >>> from censafe.attack.people import People
        >>> race = np.array([0] * 9 + [3])
        >>> people = People.of(np.array(["500070001001001"] * 10), sex=0 * race, age=50 + 0 * race, race=race, hispanic=0 * race)
        >>> found = guesses(people)
        >>> {name: round(float(chances.mean()), 3) for name, chances in found.items()}
        {'modal guesser': 0.9, 'modal guesser, target left out': 0.9, 'proportional guesser': 0.82, 'proportional guesser, target left out': 0.8}
    """
    values = people.target
    modal = (modal_values(people)[people.block] == values).astype(float)
    group = people.wider
    counts = [
        _counts(people.block, people, len(people.blocks)),
        _counts(group[people.block], people, int(group.max(initial=-1)) + 1),
        _counts(np.zeros(len(people), np.int64), people, 1),
    ]
    proportional = counts[0][1] / np.maximum(counts[0][0], 1)
    modal_without, without = np.zeros(len(people)), np.zeros(len(people))
    open_ = np.ones(len(people), np.bool_)
    for total, same, best in counts:
        here = open_ & (total > 1)
        modal_without[here] = best[here]
        without[here] = ((same - 1) / np.maximum(total - 1, 1))[here]
        open_ &= ~here
    return {
        "modal guesser": modal,
        "modal guesser, target left out": modal_without,
        "proportional guesser": proportional,
        GUESSER: without,
    }


def unique_flags(people: AttackedRecords, *, binned: bool = True) -> NDArray[np.bool_]:
    """Who is the only one of a sex and class of age, or single year of age, in a block, shape (n,)."""
    _, place, count = np.unique(people.keys(binned=binned), return_inverse=True, return_counts=True)
    return np.asarray(count[place.ravel()] == 1)


def _table(area: _Ints, people: AttackedRecords, areas: int) -> csr_array:
    return csr_array((np.ones(len(area)), (area, people.target)), shape=(areas, people.targets))


def _modes(table: csr_array) -> tuple[_Ints, NDArray[np.bool_]]:
    """Most frequent value of every row, and whether it is the only one and of more than one person."""
    most_frequent, clear = np.zeros(table.shape[0], np.int64), np.zeros(table.shape[0], np.bool_)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((table.indices, -table.data, rows))
    first = np.searchsorted(rows, np.flatnonzero(np.diff(table.indptr)))
    best = order[first]
    where = rows[best]
    most_frequent[where] = table.indices[best]
    ties = np.bincount(rows, table.data == _row_most(table)[rows], minlength=table.shape[0])
    clear[where] = (table.data[best] > 1) & (ties[where] == 1)
    return most_frequent, clear


def _row_most(table: csr_array) -> _Floats:
    most = np.zeros(table.shape[0])
    np.maximum.at(most, np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)), table.data)
    return most


def _counts(area: _Ints, people: AttackedRecords, areas: int) -> tuple[_Ints, _Floats, _Floats]:
    """For every person: all persons of the area, those of the same value, and the chance to be guessed as the most frequent of the others."""
    table = _table(area, people, areas)
    total = np.bincount(area, minlength=areas)[area]
    rows = np.repeat(np.arange(areas), np.diff(table.indptr))
    names = rows * people.targets + table.indices
    order = np.argsort(names, kind="stable")
    same = table.data[order][np.searchsorted(names[order], area * people.targets + people.target)]
    most = _row_most(table)
    ties = np.bincount(rows, table.data == most[rows], minlength=areas)
    near = np.bincount(rows, table.data == most[rows] - 1, minlength=areas)
    # without the target its value has one fewer: it is the most frequent still where no other has as many, tied with those one below
    best = np.where((same == most[area]) & (ties[area] == 1), 1 / (1 + near[area]), 0.0)
    return total, same, best


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
