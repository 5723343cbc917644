"""Statistical guessing: how often race and origin are right without any record of the target, and who differs from the most frequent of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.people import AGE_BINS, OLDEST, People

_VALUES = 126
_GROUP = 12  # digits of a block group
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Guesses:
    """Chances that a guess of a person's race and origin is right, each of shape (n,).

    Args:
        modal: guess the most frequent of the block; the person counts, so that this is an upper bound.
        proportional: guess in proportion to the block; the person counts, so that this is an upper bound.
        modal_without: guess the most frequent of all others in the block; of several, each as often.
    """

    modal: _Floats = field(repr=False)
    proportional: _Floats = field(repr=False)
    modal_without: _Floats = field(repr=False)
    proportional_without: _Floats = field(repr=False)

    def by_name(self) -> Mapping[str, _Floats]:
        """All four, by the words of the tables."""
        return {
            "modal guesser": self.modal,
            "modal guesser, target left out": self.modal_without,
            "proportional guesser": self.proportional,
            "proportional guesser, target left out": self.proportional_without,
        }


def modal_values(people: People) -> _Ints:
    """Most frequent race and origin of every block; where it is tied or that of one person, of the block group; then of all people.

    Returns:
        Race and origin as one number, shape (blocks,).

    Source: attack.md 7.3.
    """
    block = _table(people.block, people.race_origin, len(people.blocks))
    names, group = np.unique(people.blocks.astype(f"U{_GROUP}"), return_inverse=True)
    wider = _table(group.ravel()[people.block], people.race_origin, len(names))
    mode = np.full(len(people.blocks), int(np.bincount(people.race_origin, minlength=1).argmax()))
    found, clear = _modes(wider)
    mode = np.where(clear[group.ravel()], found[group.ravel()], mode)
    found, clear = _modes(block)
    return np.where(clear, found, mode)


def guesses(people: People) -> Guesses:
    """Chances of both guessers for every person, with the person in the block and without.

    A person who is alone in a block is guessed from the block group, and from all people where that is empty.

    Source: attack.md 8.

    Example:
        Nine Whites and one Asian in a block: 90% and 80% without the target; 82% in proportion to everybody.

        >>> race = np.array([0] * 9 + [3])
        >>> people = People.of(np.array(["500070001001001"] * 10), sex=0 * race, age=50 + 0 * race, race=race, hispanic=0 * race)
        >>> found = guesses(people)
        >>> [round(float(one.mean()), 3) for one in (found.modal, found.proportional, found.modal_without, found.proportional_without)]
        [0.9, 0.82, 0.9, 0.8]
    """
    values = people.race_origin
    modal = (modal_values(people)[people.block] == values).astype(float)
    names, group = np.unique(people.blocks.astype(f"U{_GROUP}"), return_inverse=True)
    own = [_Others.of(people.block, values, len(people.blocks))]
    own.append(_Others.of(group.ravel()[people.block], values, len(names)))
    own.append(_Others.of(np.zeros(len(people), np.int64), values, 1))
    proportional, best = np.zeros(len(people)), np.zeros(len(people))
    open_ = np.ones(len(people), np.bool_)
    for one in own:
        here = open_ & (one.others > 0)
        proportional[here], best[here] = one.share[here], one.best[here]
        open_ &= ~here
    return Guesses(modal, own[0].whole, best, proportional)


def unique_flags(people: People, *, binned: bool = True) -> NDArray[np.bool_]:
    """Who is the only one of a sex and class of age, or single year of age, in a block, shape (n,)."""
    age = people.age_bin if binned else people.age.astype(np.int64)
    key = (people.block * 2 + people.sex) * (len(AGE_BINS) if binned else OLDEST + 1) + age
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[place.ravel()] == 1)


def _table(area: _Ints, values: _Ints, areas: int) -> csr_array:
    return csr_array((np.ones(len(area)), (area, values)), shape=(areas, _VALUES))


def _modes(table: csr_array) -> tuple[_Ints, NDArray[np.bool_]]:
    """Most frequent value of every row, and whether it is the only one and of more than one person."""
    found, clear = np.zeros(table.shape[0], np.int64), np.zeros(table.shape[0], np.bool_)
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((table.indices, -table.data, rows))
    first = np.searchsorted(rows, np.flatnonzero(np.diff(table.indptr)))
    best = order[first]
    where = rows[best]
    found[where] = table.indices[best]
    ties = np.bincount(rows, table.data == _row_most(table)[rows], minlength=table.shape[0])
    clear[where] = (table.data[best] > 1) & (ties[where] == 1)
    return found, clear


def _row_most(table: csr_array) -> _Floats:
    found = np.zeros(table.shape[0])
    np.maximum.at(found, np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)), table.data)
    return found


@dataclass(frozen=True, eq=False)
class _Others:
    """For every person: how many others there are in the area, chances to be guessed from them, and in proportion to everybody."""

    others: _Ints
    share: _Floats
    best: _Floats
    whole: _Floats

    @staticmethod
    def of(area: _Ints, values: _Ints, areas: int) -> _Others:
        table = _table(area, values, areas)
        total = np.bincount(area, minlength=areas)[area]
        names = np.repeat(np.arange(areas), np.diff(table.indptr)) * _VALUES + table.indices
        order = np.argsort(names, kind="stable")
        own = table.data[order][np.searchsorted(names[order], area * _VALUES + values)]
        most = _row_most(table)
        rows = np.repeat(np.arange(areas), np.diff(table.indptr))
        ties = np.bincount(rows, table.data == most[rows], minlength=areas)
        near = np.bincount(rows, table.data == most[rows] - 1, minlength=areas)
        # without the target its value has one fewer: it is the most frequent still where no other has as many, tied with those one below
        best = np.where((own == most[area]) & (ties[area] == 1), 1 / (1 + near[area]), 0.0)
        others = total - 1
        share = np.where(others > 0, (own - 1) / np.maximum(others, 1), 0.0)
        return _Others(others, share, best, own / np.maximum(total, 1))
