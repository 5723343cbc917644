"""Statistical guessing: how often race and origin are right without any record of the target, and who differs from the most frequent of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.people import AttackedRecords

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
