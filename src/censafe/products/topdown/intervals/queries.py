"""Queries that intervals are made for: those of the schema, the redistricting tables, and the large groups of races."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model import CellQuery
from censafe.model.entries import nearest
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.model.topdown.pl94 import GQ_ITEMS, TABLE_ITEMS, race_matrix
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.outputs import outputs_of
from censafe.products.topdown.labels import answer_words, item_words, race_words

_RACES: Final = "races"
_LARGE: Final = (2, 3, 4, 5, 6, 7, 8)  # items of P1: one race alone, six of them; two or more races


@dataclass(frozen=True, eq=False)
class IntervalQuery:
    """A query, an answer of which is a sum of cells.

    Args:
        weights: how often each cell counts in each answer, shape (answers, cells).
    """

    name: str
    labels: tuple[str, ...]
    weights: NDArray[np.float64] = field(repr=False)


def chosen_queries(config: TopdownConfig, names: Sequence[str]) -> dict[str, tuple[IntervalQuery, ...]]:
    """The queries of every histogram.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> found = chosen_queries(load_config("pl94-us"), ("votingage", "H1"))
        >>> [(name, [(one.name, one.labels) for one in queries]) for name, queries in found.items()]
        [('persons', [('votingage', ('under 18', '18 and over'))]), ('units', [('H1', ('H1_001 total', 'H1_002 occupied', 'H1_003 vacant'))])]
    """
    found: dict[str, tuple[IntervalQuery, ...]] = {}
    known: set[str] = set()
    for histogram in config.histograms:
        wanted = names or _default(histogram)
        queries = [(name, _query(histogram, name)) for name in dict.fromkeys(wanted)]
        known |= {name for name, query in queries if query is not None}
        found[histogram.name] = tuple(query for _, query in queries if query is not None)
    missing = [name for name in names if name not in known]
    if missing:
        offered = sorted({word for one in config.histograms for word in _offered(one)})
        raise UsageError(
            f"`queries` {missing[0]}: no such query.{nearest(missing[0], offered)} Allowed: {', '.join(offered)}, and attributes or recodes joined by *"
        )
    return found


def _default(histogram: MeasuredHistogram) -> tuple[str, ...]:
    schema = histogram.schema.schema
    usual = ("total", *(name for name in schema.names if schema.cells > 1))
    return outputs_of(histogram).intervals or usual


def _offered(histogram: MeasuredHistogram) -> Iterator[str]:
    yield from ("total", "detailed", *histogram.schema.schema.names, *histogram.schema.recodes)
    yield from outputs_of(histogram).tables
    if _has_races(histogram):
        yield _RACES


def _has_races(histogram: MeasuredHistogram) -> bool:
    """Whether its cells fill table P1, whose items are the groups of races."""
    return "P1" in outputs_of(histogram).tables


def _query(histogram: MeasuredHistogram, name: str) -> IntervalQuery | None:
    """The query of a name; None where the histogram has none."""
    schema = histogram.schema
    if name in outputs_of(histogram).tables:
        weights = _units_table() if name == "H1" else _persons_table(name)
        labels = tuple(f"{name}_{item:03d} {words}" for item, words in enumerate(item_words()[name], 1))
        return IntervalQuery(name, labels, weights)
    words = [word.strip() for word in name.split("*")]
    if _has_races(histogram) and words.count(_RACES) == 1:
        rest = " * ".join(word for word in words if word != _RACES)
        return _by_races(schema, name, rest or "total") if "cenrace" not in words else None
    try:
        query = schema.query(name)
    except ValueError:
        return None
    weights = _one_hot(query)
    return IntervalQuery(name, tuple(answer_words(schema, query)), weights)


def _one_hot(query: CellQuery) -> NDArray[np.float64]:
    weights = np.zeros((query.answers, len(query.label)))
    weights[query.label, np.arange(len(query.label))] = 1.0
    return weights


def _by_races(schema: HistogramSchema, name: str, rest: str) -> IntervalQuery | None:
    """A query beside the large groups of races."""
    try:
        query = schema.query(rest)
    except ValueError:
        return None
    race = schema.schema.levels_of("cenrace")
    groups = race_matrix()[list(_LARGE)][:, race]
    weights = (_one_hot(query)[:, None, :] * groups[None, :, :]).reshape(-1, len(race))
    alone = [f"{race_words(level)} alone" for level in range(len(_LARGE) - 1)]
    before = ["" if label == "total" else f"{label}, " for label in answer_words(schema, query)]
    return IntervalQuery(
        name, tuple(f"{one}{group}" for one in before for group in [*alone, "two or more races"]), weights
    )


def _persons_table(name: str) -> NDArray[np.float64]:
    """How often each cell of a person counts in each item of a table."""
    kind, adult, hispanic, race = np.indices((8, 2, 2, 63)).reshape(4, -1)
    races = race_matrix()[:, race].astype(float)
    if name == "P5":
        weights = np.zeros((TABLE_ITEMS["P5"], len(kind)))
        weights[0], weights[1], weights[6] = kind > 0, (kind > 0) & (kind < 5), kind >= 5
        for level, item in enumerate(GQ_ITEMS, start=1):
            weights[item] = kind == level
        return weights
    counted = (adult == 1) if name in ("P3", "P4") else np.ones(len(kind), np.bool_)
    if name in ("P1", "P3"):
        return np.asarray(races * counted)
    found = np.vstack([np.ones(len(kind)), hispanic, 1 - hispanic, races[1:] * (1 - hispanic)])
    return np.asarray(found * counted)


def _units_table() -> NDArray[np.float64]:
    return np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
