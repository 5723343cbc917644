"""The order in which the passes of a level are fitted and rounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.levels.limits import compact_form
from censafe.model import CellQuery
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram, Passes, constraints_on

_Labels = NDArray[np.int32]


def passes_of(histogram: MeasuredHistogram, level: str, choices: Choices) -> Passes:
    """The passes of a level, inner ones or all of them joined where that is chosen.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("e2e-1940", {"passes": "one"})
        >>> passes_of(config.histogram("persons"), "State", config.choices).rounding
        ((('detailed',),),)
    """
    passes = histogram.passes[level]
    if choices.passes == "production":
        return passes
    if choices.passes == "outer":
        return Passes(
            tuple((_joined(outer),) for outer in passes.l2),
            tuple((_joined(outer),) for outer in passes.rounding),
        )
    return Passes(
        ((tuple(text for outer in passes.l2 for text in _joined(outer)),),),
        ((tuple(text for outer in passes.rounding for text in _joined(outer)),),),
    )


def _joined(outer: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The queries of all inner passes."""
    return tuple(text for inner in outer for text in inner)


def measured_fits(
    histogram: MeasuredHistogram, level: str, outer: tuple[tuple[str, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """Ordinals of the measured queries of every inner pass; a pass of which nothing is measured is left out."""
    measured = [histogram.schema.query(text).key for text in histogram.query_shares[level]]
    named = [[histogram.schema.query(text).key for text in inner] for inner in outer]
    fits = (tuple(q for q, key in enumerate(measured) if key in inner) for inner in named)
    return tuple(fit for fit in fits if fit)


def query_chains(
    histogram: MeasuredHistogram, outer: tuple[tuple[str, ...], ...]
) -> tuple[tuple[CellQuery, ...], ...]:
    """The queries of every inner pass of rounding: the totals alone where they come first, then the chain, coarse to fine.

    The kinds of units come first, because their bounds must hold after rounding.
    """
    schema = histogram.schema
    form = compact_form(schema, constraints_on(histogram))
    queries = [[schema.query(text) for text in inner] for inner in outer]
    first = len(outer) > 1 and all(query.answers == 1 for query in queries[0])
    kinds = [] if form is None or form.kinds is None else [form.kinds]
    seen: set[object] = set()
    chains: list[tuple[CellQuery, ...]] = []
    if first:
        chains.append((queries[0][0],))
    for ordinal, inner in enumerate(queries[int(first) :]):
        chain = {query.key: query for query in (kinds if ordinal == 0 else []) + inner}
        own = {key: query for key, query in chain.items() if key not in seen}
        seen |= set(own)
        chains.append(tuple(one for one in own.values() if 1 < one.answers < schema.schema.cells))
    return tuple(chains)
