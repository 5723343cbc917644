"""Putative and confirmed re-identification and its precision, by who is attacked and by size of the block, beside the guessers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.matching.attackers import Attacker
from censafe.attack.matching.guessers import Guesses, guesses, modal_values, unique_flags
from censafe.attack.matching.pairs import Matched, agreement, drawn_matches, expected_matches
from censafe.attack.people import SIZE_CLASSES, People, block_size_class

EVERY_SIZE: Final = "all"
_Flags = NDArray[np.bool_]
_Rows = dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """The true records, and who of them is vulnerable.

    Args:
        populations: flags by name of a population, each of shape (n,).
        size: class of size of every block, shape (blocks,).
    """

    people: People
    guessed: Guesses
    populations: Mapping[str, _Flags] = field(repr=False)
    size: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def of(people: People, variability: NDArray[np.float64] | None = None) -> AttackTarget:
        """Everybody, modal and nonmodal persons, and the unique among them; with the variability of blocks also those where it is 0.

        Args:
            variability: of every block in percent, NaN where it is not known, shape (blocks,).

        Source: attack.md 7.3.
        """
        nonmodal = modal_values(people)[people.block] != people.race_origin
        alone = unique_flags(people)
        found = {
            "all": np.ones(len(people), np.bool_),
            "modal": ~nonmodal,
            "nonmodal": nonmodal,
            "unique": alone,
            "nonmodal unique": nonmodal & alone,
        }
        if variability is not None:
            certain = (variability == 0)[people.block]
            found |= {
                "zero variability": certain,
                "nonmodal unique, zero variability": nonmodal & alone & certain,
            }
        return AttackTarget(people, guesses(people), found, block_size_class(people.population))


def reidentification_rows(
    data: str, published: People, attacker: Attacker, target: AttackTarget, seed: int
) -> pa.Table:
    """Rates by population and size class: expected over random orders, and in one draw; and both guessers, who know block, sex and age of everybody.

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
        name: (Matched(frame, sure * chance[own]),) for name, chance in target.guessed.by_name().items()
    }
    none = np.zeros(len(attacker.elsewhere))
    places = np.append(attacker.truth, attacker.elsewhere)
    every = {
        name: tuple(Matched(np.append(one.putative, none), np.append(one.right, none)) for one in found)
        for name, found in every.items()
    }
    own = np.maximum(places, 0)
    size = target.size[target.people.block[own]]
    rows: _Rows = {name: [] for name in _COLUMNS}
    for name, flags in target.populations.items():
        for place, words in enumerate((EVERY_SIZE, *SIZE_CLASSES)):
            here = flags[own] & (places >= 0)
            if place:
                here &= size == place - 1
            for guesser, found in every.items():
                _add(
                    rows,
                    (attacker.name, guesser, name, words, int(here.sum())),
                    [(one.putative[here], one.right[here]) for one in found],
                )
    return pa.table(rows)


_COLUMNS: Final = (
    "attacker", "data", "population_attacked", "block_size", "records", "putative", "confirmed", "putative_percent", "confirmed_percent", "precision",
    "putative_drawn", "confirmed_drawn",
)  # fmt: skip


def _add(
    rows: _Rows, names: tuple[Any, ...], found: list[tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> None:
    number = names[-1]
    putative, confirmed = float(found[0][0].sum()), float(found[0][1].sum())
    drawn = (float(found[1][0].sum()), float(found[1][1].sum())) if len(found) > 1 else (None, None)
    share = [100 * one / number if number else None for one in (putative, confirmed)]
    precision = 100 * confirmed / putative if putative > 0 else None
    for column, one in zip(_COLUMNS, (*names, putative, confirmed, *share, precision, *drawn), strict=True):
        rows[column].append(one)


def agreement_rows(data: str, published: People, truth: People) -> pa.Table:
    """Percent of the true persons with a published record of the same block, sex, age, race and origin, by size of the block."""
    exact, binned = agreement(published, truth)
    size, population = block_size_class(truth.population), truth.population
    rows: _Rows = {name: [] for name in ("data", "block_size", "persons", "exact_percent", "binned_percent")}
    for place, words in enumerate((EVERY_SIZE, *SIZE_CLASSES)):
        here = population > 0 if not place else (size == place - 1) & (population > 0)
        persons = int(population[here].sum())
        share = [100 * int(one[here].sum()) / persons if persons else None for one in (exact, binned)]
        for column, one in zip(rows, (data, words, persons, *share), strict=True):
            rows[column].append(one)
    return pa.table(rows)


def unique_rows(truth: People) -> pa.Table:
    """Persons who are the only ones of their sex and age in their block, by size of the block: single years of age, and the 38 classes."""
    size = block_size_class(truth.population)[truth.block]
    flags = unique_flags(truth, binned=False), unique_flags(truth)
    rows: _Rows = {
        name: [] for name in ("block_size", "persons", "unique_percent", "unique_in_class_percent")
    }
    for place, words in enumerate((EVERY_SIZE, *SIZE_CLASSES)):
        here = np.ones(len(truth), np.bool_) if not place else size == place - 1
        persons = int(here.sum())
        share = [100 * int((one & here).sum()) / persons if persons else None for one in flags]
        for column, one in zip(rows, (words, persons, *share), strict=True):
            rows[column].append(one)
    return pa.table(rows)
