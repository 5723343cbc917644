"""What a TopDown release publishes exactly, and what its guarantee is worth beside these figures.

The guarantee is conditional on them: it compares files that agree in all of them, and no others. ``invariants.proof.md`` proves what
changes that keep them cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from censafe.model import Definition
from censafe.model.bounds import upper
from censafe.model.proven import proven
from censafe.planning.numbers import decimal_text
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import (
    counted_units,
    exact_levels,
    exact_queries,
    lists_occupied,
    record_words,
)

_LONGEST: Final = 12  # characters of an exact loss


def exact_figures(config: TopdownConfig) -> tuple[str, ...]:
    """What is published exactly and therefore not protected, as sentences for plan and certificate.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> exact_figures(load_config("pl94-pr", {"measure": "units"}))[0]
        'Published exactly, without noise: units, totals of State, County, Tract, Block_Group, Block.'
    """
    run = [level.name for level in config.run_levels]
    statements = []
    for histogram in config.histograms:
        figures = []
        levels = [name for name in exact_levels(histogram) if name in run]
        if levels:
            figures.append(f"totals of {', '.join(levels)}")
        figures += [f"numbers by {text} and in all larger areas" for text in exact_queries(histogram)]
        if counted := counted_units(histogram):
            figures.append(f"numbers of {counted} in every {run[-1]}")
        if figures:
            statements.append(f"Published exactly, without noise: {histogram.name}, {'; '.join(figures)}.")
    if any(exact_levels(histogram) for histogram in config.histograms):
        statements.append(
            "Whoever knows all other records can tell from an exact total in which of its areas a record is."
        )
    if lists_occupied(config):
        statements.append(
            f'Published exactly, without noise: which areas ({run[-1]}) have records at all, since areas = "records" makes them the list of areas. '
            "That an area has a record, or none, is not protected."
        )
    rules = [rule for one in config.histograms if (rule := one.schema.facilities) is not None]
    if any(rule.minimum[0] and "vacant" in rule.other_kinds for rule in rules):
        statements.append(
            "Whether a housing unit is occupied or vacant is not protected: both numbers are published as they were counted."
        )
    if statements:
        statements += _conditional(config)
    return tuple(statements)


def _conditional(config: TopdownConfig) -> Iterator[str]:
    """The condition of the guarantee, what follows that is not protected, and what changes within it cost."""
    yield (
        "The guarantee is conditional on what is published exactly: it compares only files that agree in all of these figures. A record "
        "added or removed changes a total, so no loss is stated for it."
    )
    if units := dict.fromkeys(filter(None, map(counted_units, config.histograms))):
        yield (
            f"Not protected: that a unit of these kinds exists in its {config.run_levels[-1].name} ({'; '.join(units)}), since their "
            "numbers are published as they were counted."
        )
    if levels := dict.fromkeys(
        name for histogram in config.histograms for name in exact_levels(histogram)[-1:]
    ):
        yield f"Not protected: a change of a total of {', '.join(levels)}, such as a record that leaves its area and is in another one."
    yield from _unprotected(config)
    symbol = config.definition.symbol
    for histogram in config.histograms:
        single, exchanged, two = (
            _short(loss_within_invariants(histogram.loss, config.definition, records, exchanged=exchanged))
            for records, exchanged in ((1, False), (2, True), (2, False))
        )
        most = " at most" if histogram.invariants else ""
        yield (
            f"{histogram.name}, by rows: one {record_words(histogram)}'s row changes and all these figures stay: {symbol} {single}{most}. Where they tie a record to its "
            f"place, records change together: two exchange places at {symbol} {exchanged} at most, any two change at {symbol} {two} at most."
        )
    if len(config.histograms) > 1:
        yield "The losses of the histograms add."
    if config.published:
        yield (
            f"The losses of {', '.join(config.published)}, released from the same records before, are not in this total and add to it."
        )


def _unprotected(config: TopdownConfig) -> Iterator[str]:
    """By attribute and area, what exact answers tell of a record to whom all others are known."""
    for histogram in config.histograms:
        record = record_words(histogram)
        for one in histogram.invariants:
            query = histogram.schema.query(one.groups.query)
            attributes = " with ".join(query.attributes)
            coarse = (
                ""
                if query.key == histogram.schema.query(" * ".join(query.attributes)).key
                else f", as far as {query.name} tells it"
            )
            yield (
                f"Not protected: {attributes} of a {record} in its {one.lowest} ({histogram.name}{coarse}). Whoever knows all other records of one {one.lowest} can tell it from "
                f"the exact numbers by {query.name}; no loss is stated for a change of it, or of the {one.lowest}."
            )


def _short(loss: Fraction) -> str:
    text = decimal_text(loss)
    return text if len(text) <= _LONGEST else f"{upper(loss, digits=6):.6g}"


@proven("invariants.proof.md", digest="744e0c087281f6b3")
def loss_within_invariants(
    loss: Fraction, definition: Definition, records: int, *, exchanged: bool = False
) -> Fraction:
    """Loss between two files that agree in everything published exactly and differ in a few records.

    Args:
        loss: of a histogram, for one record.
        definition: zCDP (losses are rho) or pure DP (losses are epsilon).
        records: how many differ.
        exchanged: whether they are two records that exchange their geounits and keep their values.

    Source: arXiv 2410.17468, semi-differential privacy: neighbors are files that agree in the invariants.

    Example:
        >>> [loss_within_invariants(Fraction(1, 2), Definition.ZCDP, 2, exchanged=way) for way in (True, False)]
        [Fraction(1, 1), Fraction(2, 1)]
    """
    if exchanged or definition is Definition.PURE:
        return loss * records
    return loss * records**2
