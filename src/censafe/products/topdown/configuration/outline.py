"""Schemas, queries, passes and constraints of a TopDown configuration as lines of text, to be printed with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import (
    AnswersInStack,
    FacilityCounts,
    HistogramSchema,
    MeasuredHistogram,
    PublishedAnswers,
    RightSide,
)
from censafe.products.configuration.source import ShippedConfig
from censafe.products.topdown.configuration.config import load_config

_MOST_WORDS: Final = 12
_RECORDS: Final = {ProtectedUnit.PERSON: "person", ProtectedUnit.HOUSEHOLD: "household or housing unit"}


def outline(shipped: ShippedConfig) -> tuple[str, ...]:
    """Every histogram: attributes and recodes of its schema, measured queries, passes and constraints.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> outline(get_shipped("pl94-us"))[0]
        'Histogram persons: schema pl94-persons, 2,016 cells, of which 1,890 can hold records; a record is a person.'
    """
    config = load_config(shipped.name)
    return tuple(line for histogram in config.histograms for line in _histogram(histogram))


def _histogram(histogram: MeasuredHistogram) -> Iterator[str]:
    schema = histogram.schema
    yield (
        f"Histogram {histogram.name}: schema {schema.name}, {schema.schema.cells:,} cells, of which "
        f"{int(schema.allowed().sum()):,} can hold records; a record is a {_RECORDS[schema.record]}."
    )
    yield from _schema(schema)
    yield "  measured queries (answers of one geounit):"
    shares = histogram.query_shares
    for levels, queries in _same((level, tuple(own)) for level, own in shares.items()):
        names = ", ".join(f"{name} ({schema.query(name).answers:,})" for name in queries)
        yield f"    {', '.join(levels)}: {names}"
    for words, kind in (("least squares", "l2"), ("rounding", "rounding")):
        yield f"  passes of {words}:"
        for levels, passes in _same((level, getattr(own, kind)) for level, own in histogram.passes.items()):
            outer = [" then ".join(" + ".join(inner) for inner in own) for own in passes]
            yield f"    {', '.join(levels)}: " + "; ".join(f"{i}. {text}" for i, text in enumerate(outer, 1))
    if histogram.exact_totals:
        yield f"  exact: totals of {histogram.exact_totals} and all levels above it"
    for constraint in histogram.constraints:
        lowest = f", at {constraint.lowest} and above" if constraint.lowest else ""
        yield f"  constraint {constraint.name}: {constraint.groups.query} {constraint.relation} {_right(constraint.right)}{lowest}"


def _schema(schema: HistogramSchema) -> Iterator[str]:
    for attribute in schema.schema.attributes:
        yield f"  attribute {attribute.name}: {attribute.levels} levels{_words(schema, attribute.name)}"
    for recode in schema.recodes.values():
        yield f"  recode {recode.name} of {recode.attribute}: {len(recode.groups)} groups{_words(schema, recode.name)}"
    if schema.zeros:
        yield f"  structural zeros: {'; '.join(one.name for one in schema.zeros)}"
    if schema.facilities is not None:
        yield "  persons are bounded by the published counts of housing units and group quarters by kind, in every block"


def _words(schema: HistogramSchema, name: str) -> str:
    labels = schema.labels.get(name, ())
    if not labels:
        return ""
    more = f", and {len(labels) - _MOST_WORDS} more" if len(labels) > _MOST_WORDS else ""
    return f": {'; '.join(labels[:_MOST_WORDS])}{more}"


def _same(rows: Iterator[tuple[str, Sequence[Any]]]) -> Iterator[tuple[list[str], Sequence[Any]]]:
    """Neighboring levels with the same queries or passes together."""
    for content, group in groupby(rows, key=lambda row: row[1]):
        yield [level for level, _ in group], content


def _right(side: RightSide) -> str:
    """What the sums are compared with, in words."""
    if isinstance(side, FacilityCounts):
        return f"published counts of units by {side.kinds}"
    if isinstance(side, PublishedAnswers):
        return f"{side.groups.query} of {side.histogram} in the published {side.result}"
    if isinstance(side, AnswersInStack):
        return f"{side.groups.query} of {side.histogram}, estimated together"
    return "the true counts (invariant)"
