"""Queries whose answers a configuration publishes exactly: the tables ``[[invariants]]``, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np

from censafe.model import CellQuery
from censafe.model.entries import Problems, nearest
from censafe.model.proven import proven
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import (
    CellGroups,
    HistogramSchema,
    LinearConstraint,
    MeasuredHistogram,
    OwnAnswers,
)
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import check_choice, listed, value_text
from censafe.products.topdown.configuration.schema_checks import check_entry, check_query, named_table

_KEYS: Final = ("query", "level", "histogram")


def with_invariants(
    document: Document, histograms: Sequence[MeasuredHistogram], root: str | None, choices: Choices
) -> tuple[MeasuredHistogram, ...]:
    """The histograms with the queries that are published exactly; every query gives the total, so that exact totals reach as far down."""
    raw = document.values.get("invariants", [])
    if not isinstance(raw, list):
        document.add("invariants", f"{value_text(raw)} is not a list of tables; write [[invariants]]")
        return tuple(histograms)
    named = tuple(named_table(document, "histograms"))
    by_name: dict[str, list[LinearConstraint]] = {one.name: [] for one in histograms}
    for place, item in enumerate(raw):
        key = f"invariants[{place}]"
        table, before = check_entry(item, key, _KEYS, document), len(document.messages)
        if "histogram" not in table and len(named) > 1:
            document.add(f"{key}.histogram", f"say whose query it is; histograms are {listed(named)}")
            continue
        name = check_choice(
            table.get("histogram", next(iter(named), "")), f"{key}.histogram", named, document
        )
        if name not in by_name:  # unknown, which is a problem already, or not measured
            continue
        (histogram,) = (one for one in histograms if one.name == name)
        level = _level(table.get("level"), f"{key}.level", histogram, root, document)
        query = _query(table, key, histogram.schema, document)
        if level is not None and query is not None and len(document.messages) == before:
            by_name[name].append(
                LinearConstraint(f"exact {query.name}", CellGroups(query.name), "=", OwnAnswers(), level)
            )
    together = []
    for histogram in histograms:
        invariants = tuple(by_name[histogram.name])
        if invariants:
            names = [one.lowest for one in invariants] + [histogram.exact_totals]
            lowest = max(filter(None, names), key=tuple(histogram.level_shares).index)
            together.append(replace(histogram, invariants=invariants, exact_totals=lowest))
            _check_together(document, together[-1], root, choices)
        else:
            together.append(histogram)
    return tuple(together)


@proven("../exact_answers.proof.md", digest="987c32188d451f5d")
def joint_partition(queries: Sequence[CellQuery]) -> tuple[tuple[int, ...], ...]:
    """By attribute, which levels none of some queries tells apart: one number for each class of levels, at every level.

    All queries together tell two cells apart if and only if these stand in different classes in some attribute, since each query is a product
    of groupings of the attributes.
    """
    classes = []
    for factors in zip(*(query.factors for query in queries), strict=True):
        groups = list(zip(*(factor.of_level.tolist() for factor in factors), strict=True))
        classes.append(tuple(groups.index(group) for group in groups))
    return tuple(classes)


def _level(
    raw: object, key: str, histogram: MeasuredHistogram, root: str | None, problems: Problems
) -> str | None:
    """The level of that name, however it is capitalized, at or below the root."""
    order = tuple(histogram.level_shares)
    spelled = {name.casefold(): name for name in order}
    level = spelled.get(raw.casefold()) if isinstance(raw, str) else None
    if level is None:
        hint = nearest(raw, order) if isinstance(raw, str) else ""
        problems.add(key, f"{value_text(raw)} is no level.{hint} Levels are {listed(order)}")
    elif root in order and order.index(level) < order.index(str(root)):
        problems.add(
            key,
            f"{level} is above {root}, at which the run starts; start there or above, or name a lower level",
        )
    return level


def _query(
    table: Mapping[str, Any], key: str, schema: HistogramSchema, problems: Problems
) -> CellQuery | None:
    text = table.get("query")
    if not isinstance(text, str) or not text.strip():
        problems.add(f"{key}.query", 'give a query in quotes, such as "citizenship" or "age * sex"')
        return None
    before = len(problems.messages)
    check_query(schema, text, f"{key}.query", problems)
    if len(problems.messages) > before:
        return None
    query = schema.query(text)
    if query.answers == 1:
        problems.add(
            f"{key}.query", "it is the total of the records: leave it out, and name the level as exact_totals"
        )
        return None
    return query


def _check_together(
    document: Document, histogram: MeasuredHistogram, root: str | None, choices: Choices
) -> None:
    """What cannot stand beside each other; the message says what can."""
    key = f"invariants of {histogram.name}"
    keys = [histogram.schema.query(one.groups.query).key for one in histogram.invariants]
    for (one, own), (_, other) in combinations(zip(histogram.invariants, keys, strict=True), 2):
        if own == other:
            document.add(key, f"{one.groups.query} is there twice; name it once, at its lowest level")
    raw = named_table(document, "histograms")
    tables = {name: table for name, table in raw.items() if isinstance(table, Mapping)}
    conflicts = [name for name in ("constraints", "informed") if tables.get(histogram.name, {}).get(name)]
    if conflicts:
        document.add(
            key,
            f"{listed(conflicts)} hold the histogram to other figures; allowed beside invariants: exact_totals, and zeros and facilities of the schema",
        )
    for name, table in tables.items():
        right = table.get("informed", {})
        if isinstance(right, Mapping) and right.get("right", {}).get("histogram") == histogram.name:
            document.add(
                key, f"{name} is informed by the histogram, which is changed afterwards; leave out informed"
            )
    if choices.joint:
        document.add(key, "joint estimation of persons and households does not keep them; fix: joint = false")
    if choices.spine != "standard" or choices.bypass:
        document.add(
            key, "they are figures of the areas that geocodes name; fix: spine = standard, and bypass = false"
        )
    for text in _unkept(histogram, root):
        document.add(key, text)


def _unkept(histogram: MeasuredHistogram, root: str | None) -> Iterator[str]:
    """Where answers that cross in areas can be met only by a change of the area above, which would miss an answer that is known further up alone."""
    order = tuple(histogram.level_shares)
    levels = order[order.index(root) :] if root in order else order
    facilities = histogram.schema.facilities is not None
    for above, level in pairwise(levels[1:]):
        own = [one.groups.query for one in histogram.known_at(level)]
        upper = [one.groups.query for one in histogram.known_at(above)]
        lost = [one.groups.query for one in histogram.invariants if one.groups.query not in upper]
        if lost and crossing([histogram.schema.query(text) for text in own], facilities=facilities):
            kinds = " beside facilities" if facilities else ""
            yield (
                f"{listed(own)}{kinds} in every {level} can be met for sure only if {listed(lost)} is exact in every {above}, too; fix: name that level for "
                "it, or leave one of them out"
            )


def crossing(queries: Sequence[CellQuery], *, facilities: bool) -> bool:
    """Whether exact answers of some queries, and bounds by facility, are sums of cells that overlap: no query has all others as sums of its answers."""
    if not queries:
        return False
    return facilities or not any(all(one.refines(other) for other in queries) for one in queries)


def invariant_warnings(histogram: MeasuredHistogram, levels: Sequence[str]) -> Iterator[str]:
    """Where exact answers leave nothing to protect, and budget that buys nothing beside them, at the levels of the run, root first."""
    schema, lowest = histogram.schema, levels[-1]
    key = f"invariants of {histogram.name}"
    for level in reversed(levels):
        exact = [schema.query(one.groups.query) for one in histogram.known_at(level)]
        if exact and tell_all_apart(exact, schema):
            rest = "nothing" if level == lowest else f"nothing but where in its {level} it is"
            yield (
                f"{key}: the exact answers in every {level} tell all cells apart; {rest} is protected of a record of {histogram.name}; fix: coarser queries, or larger "
                "areas"
            )
            break
    known: dict[str, list[str]] = {}
    for level in levels:
        exact = [schema.query(one.groups.query) for one in histogram.known_at(level)]
        for text in histogram.query_shares[level]:
            if any(one.refines(schema.query(text)) for one in exact):
                known.setdefault(text, []).append(level)
    if known:
        named = "; ".join(f"{text} at {listed(own)}" for text, own in known.items())
        yield f"{key}: measured although published exactly, so that their budget buys nothing: {named}; fix: give their shares to other queries"


def tell_all_apart(queries: Sequence[CellQuery], schema: HistogramSchema) -> bool:
    """Whether the answers of some queries tell all cells apart that can hold records."""
    if any(query.answers == schema.schema.cells for query in queries):
        return True
    allowed = schema.allowed()
    labels = np.stack([query.label[allowed] for query in queries])
    return np.unique(labels, axis=1).shape[1] == int(allowed.sum())
