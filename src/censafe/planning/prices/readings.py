"""Losses of parts of a release: a share of one total, and what is left of the total for one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from censafe.model import Definition
from censafe.model.bounds import upper
from censafe.planning.numbers import loss_text
from censafe.privacy.loss.conversions import Epsilons, epsilons


@dataclass(frozen=True)
class QueryShare:
    """Where the budget of a query comes from."""

    histogram: str
    query: str
    level_share: Fraction
    query_share: Fraction


@dataclass(frozen=True)
class LossReading:
    """The loss of the queries that answer one question about a record whose other values are known.

    Args:
        change: which records change, as a clause; empty for one attribute of one record.
    """

    histogram: str
    kind: str
    name: str
    loss: Fraction
    epsilons: Epsilons | None
    change: str = ""

    @classmethod
    def of(
        cls,
        histogram: str,
        kind: str,
        name: str,
        loss: Fraction,
        definition: Definition,
        delta: Fraction,
        change: str = "",
    ) -> LossReading:
        """Convert a loss at ``delta``.

        Example:
            >>> reading = LossReading.of("persons", "attribute", "race", Fraction(1), Definition.ZCDP, Fraction(1, 10**10))
            >>> round(reading.epsilons.tight, 2)
            10.03
        """
        converted = epsilons(loss, delta) if definition is Definition.ZCDP else None
        return cls(histogram, kind, name, loss, converted, change)


def reading_sentences(readings: Sequence[LossReading]) -> tuple[str, ...]:
    """One sentence for every histogram and kind of question: epsilons, those of rho by the tight bound.

    Example:
        >>> reading = LossReading("persons", "attribute", "race", Fraction(1, 4), None)
        >>> reading_sentences([reading])
        ('Epsilon, persons, of one attribute of one row, the others being known: race 0.25.',)
    """
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for reading in readings:
        value = (
            loss_text(reading.loss) if reading.epsilons is None else f"{upper(reading.epsilons.tight, 2):.2f}"
        )
        kinds.setdefault((reading.histogram, reading.kind, reading.change), []).append(
            f"{reading.name} {value}"
        )
    known = {
        "attribute": "of one attribute of one row, the others being known",
        "answer": "of one answer of a person",
    }
    return tuple(
        f"Epsilon, {'all histograms' if histogram == 'all' else histogram}, {known.get(kind, f'of the {kind}')}"
        f"{f' ({change})' if change else ''}: "
        f"{', '.join(values)}."
        for (histogram, kind, change), values in kinds.items()
    )
