"""What a budget means for one person's record: epsilon at several deltas, the exact composition, and the best attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final

from censafe.model import Definition
from censafe.model.bounds import factor_text, lower, upper
from censafe.planning.numbers import decimal_text
from censafe.privacy.loss.attack import MovedQuery, best_attack, gaussian_power, largest_power
from censafe.privacy.loss.conversions import ODDS_DELTAS, Epsilons, epsilons, odds_bound
from censafe.privacy.loss.loss_law import (
    EpsilonBracket,
    composed_epsilon,
    gathered,
    loss_of,
    odds_epsilon,
    spare_variance,
)

ALARMS: Final = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10))
"""Chances of a false alarm at which the power of the best attack is stated."""


@dataclass(frozen=True)
class RecordQuestion:
    """One question about one record, and the measured cells that its answer moves."""

    name: str
    words: str
    queries: tuple[MovedQuery, ...]
    loss: Fraction
    definition: Definition


@dataclass(frozen=True)
class DeltaRow:
    """Epsilon at one delta.

    Args:
        composed: bracket of the smallest epsilon of the very noise that is drawn.
        spare_tight: share of all variances that could be saved at the tight epsilon.
    """

    delta: Fraction
    stated: Epsilons
    composed: EpsilonBracket
    spare_tight: float
    spare_slide: float


@dataclass(frozen=True)
class AttackRow:
    """How often an attack succeeds at one chance of a false alarm.

    Args:
        best: power of the best test of the noise that is drawn; None under pure DP.
        gaussian: power against continuous Gaussian noise of that rho; None under pure DP.
    """

    alarm: Fraction
    best: float | None
    gaussian: float | None
    bound: float


@dataclass(frozen=True)
class OddsRow:
    """How far an attacker's odds about a record move, whatever was believed before.

    Args:
        exact: bracket of the smallest epsilon for the noise that is drawn and an attacker who knows all other records; None under pure DP.
        bound: epsilon for every mechanism of that loss, also where the other records are not known.
    """

    delta: Fraction
    exact: EpsilonBracket | None
    bound: float


@dataclass(frozen=True)
class Meaning:
    """What the loss means for one question about a record."""

    question: RecordQuestion
    deltas: tuple[DeltaRow, ...]
    attacks: tuple[AttackRow, ...]
    odds: tuple[OddsRow, ...]


def meaning_of(
    question: RecordQuestion, deltas: Sequence[Fraction], alarms: Sequence[Fraction] = ALARMS
) -> Meaning:
    """Compose the noise of the cells that move and find the best attack; takes seconds for many different laws.

    Example:
        >>> moved = (MovedQuery(Fraction(100), 2),)
        >>> meaning = meaning_of(RecordQuestion("r", "", moved, Fraction(1, 100), Definition.ZCDP), (Fraction(1, 10**6),))
        >>> round(meaning.attacks[1].best, 3), meaning.attacks[1].bound
        (0.066, 0.0698)
    """
    definition = question.definition
    if definition is not Definition.ZCDP:
        loss = question.loss
        rows = tuple(AttackRow(alarm, None, None, largest_power(loss, definition, alarm)) for alarm in alarms)
        odds = tuple(OddsRow(delta, None, odds_bound(loss, definition, delta)) for delta in ODDS_DELTAS)
        return Meaning(question, (), rows, odds)
    attack = best_attack(gathered(question.queries)).powers([float(alarm) for alarm in alarms])
    rho = loss_of(question.queries)
    rows = tuple(
        AttackRow(alarm, best, gaussian_power(rho, float(alarm)), largest_power(rho, definition, alarm))
        for alarm, best in zip(alarms, attack, strict=True)
    )
    odds = tuple(
        OddsRow(delta, odds_epsilon(question.queries, delta), odds_bound(rho, definition, delta))
        for delta in ODDS_DELTAS
    )
    return Meaning(question, tuple(_delta_row(question, delta) for delta in deltas), rows, odds)


def _delta_row(question: RecordQuestion, delta: Fraction) -> DeltaRow:
    stated = epsilons(question.loss, delta)
    return DeltaRow(
        delta,
        stated,
        composed_epsilon(question.queries, delta),
        spare_variance(question.queries, delta, stated.tight),
        spare_variance(question.queries, delta, stated.slide),
    )


def meaning_sentences(meaning: Meaning) -> tuple[str, ...]:
    """The same in words that need no mathematics.

    Example:
        >>> question = RecordQuestion("any one record", "its block changes", (), Fraction(1, 10), Definition.PURE)
        >>> for line in meaning_sentences(meaning_of(question, ())):
        ...     print(line)
        Any one record: its block changes (epsilon 0.1).
          The best attack that knows all else and raises a false alarm 1 time in 100 finds it at most 1.11 times in 100; with 5 false alarms at most 5.53; with 10 at most 11.06.
          Without any data a random guess is right as often as it raises false alarms.
          Whatever an attacker believed before, the release moves their odds about this by a factor of 1.11 at most.
    """
    question = meaning.question
    loss = decimal_text(question.loss)
    if len(loss) > 12:
        loss = f"{upper(question.loss, digits=6):.6g}"
    lines = [
        f"{question.name[:1].upper()}{question.name[1:]}: {question.words} ({question.definition.symbol} {loss})."
    ]
    for row in meaning.deltas:
        lines.append(
            f"  At delta {float(row.delta):.3g} epsilon is {upper(row.stated.slide, 2):.2f} as the Bureau states it, "
            f"{upper(row.stated.tight, 2):.2f} by the tight bound on rho, and between {lower(row.composed.lower, 4):.4f} and "
            f"{upper(row.composed.upper, 4):.4f} for the noise that is drawn."
        )
        lines.append(
            f"  Noise with {lower(100 * row.spare_tight, 1):.1f}% less variance would still keep the tight epsilon, "
            f"with {lower(100 * row.spare_slide, 1):.1f}% less the Bureau's."
        )
    return (*lines, *_attack_lines(meaning.attacks), *_odds_lines(meaning.odds))


def _attack_lines(attacks: Sequence[AttackRow]) -> tuple[str, ...]:
    first, *others = attacks
    at_most = "" if first.best is not None else "at most "
    start = (
        f"  The best attack that knows all else and raises a false alarm {_per_hundred(float(first.alarm))} time in 100 "
        f"finds it {at_most}{_per_hundred(_power(first))} times in 100"
    )
    more = (
        f"with {_per_hundred(float(row.alarm))}{' false alarms' if row is others[0] else ''} "
        f"{at_most}{_per_hundred(_power(row))}"
        for row in others
    )
    lines = ["; ".join((start, *more)) + "."]
    if first.best is not None:
        bounds = ", ".join(_per_hundred(row.bound) for row in attacks)
        lines.append(
            f"  Whatever the method, an attack on this rho cannot do better than {bounds} times in 100."
        )
    return (*lines, "  Without any data a random guess is right as often as it raises false alarms.")


def _odds_lines(odds: Sequence[OddsRow]) -> list[str]:
    """The curve of the odds, as the factor by which they move."""
    if odds[0].exact is None:
        return [
            "  Whatever an attacker believed before, the release moves their odds about this by a factor of "
            f"{factor_text(odds[0].bound)} at most."
        ]
    exact = ", ".join(
        f"{factor_text(row.exact.upper)} (delta {float(row.delta):.3g})"
        for row in odds
        if row.exact is not None
    )
    bounds = ", ".join(factor_text(row.bound) for row in odds)
    return [
        "  Whatever an attacker who knows all other records believed before, with probability at least 1 - delta the release "
        "moves their odds "
        f"about this by a factor of at most {exact}.",
        f"  For every mechanism of this rho, and where the other records are not known, the factors are {bounds}.",
    ]


def _power(row: AttackRow) -> float:
    return row.bound if row.best is None else row.best


def _per_hundred(share: float) -> str:
    return f"{upper(100 * share, 2):.2f}".rstrip("0").rstrip(".")


def meaning_record(meaning: Meaning) -> dict[str, Any]:
    """As plain values for JSON; exact numbers are text."""
    question = meaning.question
    return {
        "question": question.name,
        "change": question.words,
        question.definition.symbol: decimal_text(question.loss),
        f"{question.definition.symbol}_float": float(question.loss),
        "cells": sum(query.cells for query in question.queries),
        "epsilon": [
            {
                "delta": decimal_text(row.delta),
                **asdict(row.stated),
                "composed_lower": row.composed.lower,
                "composed_upper": row.composed.upper,
                "spare_variance_at_tight": row.spare_tight,
                "spare_variance_at_slide": row.spare_slide,
            }
            for row in meaning.deltas
        ],
        "attack": [
            {
                "false_alarm": decimal_text(row.alarm),
                "power": row.best,
                "power_gaussian": row.gaussian,
                "bound": row.bound,
            }
            for row in meaning.attacks
        ],
        "odds": [
            {
                "delta": decimal_text(row.delta),
                **({"exact_lower": row.exact.lower, "exact_upper": row.exact.upper} if row.exact else {}),
                "bound": row.bound,
            }
            for row in meaning.odds
        ],
    }
