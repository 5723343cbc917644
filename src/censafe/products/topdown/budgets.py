"""Budgets of TopDown as a planner turns them: the expected error of any query, before anything is made to fit.

The best unbiased combination of a level's measurements of full marginals has a closed form. Their information matrix sum over q of
rho_q Q'Q has, for every set S of attributes, one eigenvalue: the sum over the queries q that keep all of S of rho_q times the
levels of the attributes that q sums over. The variance of an answer with weights w is the sum over S of
norm2(P_S w)^2 / eigenvalue, P_S projecting onto effects of exactly S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from censafe.errors import ConfigError
from censafe.model import CellQuery, Definition
from censafe.model.entries import nearest
from censafe.model.histograms import MeasuredHistogram
from censafe.planning.prices.programme import Term
from censafe.planning.prices.targets import Asked
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import workloads

__all__ = ["asked", "budgets_of", "overrides"]


def budgets_of(config: TopdownConfig) -> dict[str, Fraction]:
    """Budgets of the measured queries by ``HISTOGRAM.QUERY/LEVEL``.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> budgets_of(load_config("pl94-us"))["units.detailed/US"]
        Fraction(11417641, 31231678045)
    """
    return {
        f"{query.table}/{query.level}": query.cost
        for load in workloads(config)
        for query in load.part.queries
    }


def asked(config: TopdownConfig, name: str, *, combined: bool) -> tuple[Asked, ...]:
    """The answers of a query at a level, measured or not; of a coarsened one, one for each size of its groups.

    Args:
        config: gives schemas and what is measured.
        name: ``HISTOGRAM.QUERY/LEVEL``, such as ``persons.votingage * hispanic/County``.
        combined: the best unbiased combination of the level's queries; otherwise the query's own measurement.

    Raises:
        ConfigError: an unknown histogram, query or level; a query that is not measured, where its own measurement is asked for; or
            pure DP.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> own, = asked(load_config("pl94-us"), "persons.votingage/County", combined=False)
        >>> own.name, own.terms[0].weights
        ('persons.votingage/County', {'persons.votingage/County': Fraction(1, 1)})
    """
    if config.definition is not Definition.ZCDP:
        raise ConfigError("targets are turned into budgets under rho only, not under epsilon")
    histogram, query, level = _resolve(config, name)
    written = f"{histogram.name}.{query.name}/{level}"
    own = _own_name(config, histogram, query, level)
    if not combined:
        if own is None:
            raise ConfigError(
                f"{name}: this query is not measured at {level}, so it has no budget of its own; "
                "add '`minimise` rho' or '`maximise` accuracy', which combine what is measured"
            )
        return (Asked(written, (Term(Fraction(1), {own: Fraction(1)}),), True),)
    sizes = dict.fromkeys(_group_sizes(query))
    answers = []
    for size in sizes:
        terms = tuple(_terms(histogram, query, level, size))
        mark = f" (answers of {math.prod(size)} cells)" if len(sizes) > 1 else ""
        answers.append(Asked(written + mark, terms, False))
    return tuple(answers)


def overrides(config: TopdownConfig, budgets: Mapping[str, Fraction]) -> dict[str, str]:
    """``--set`` keys and values: losses of histograms, shares of levels and of queries, all exact.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us", {"measure": "units"})
        >>> found = overrides(config, budgets_of(config))
        >>> found["rho.units"], found["level_shares.units.US"]
        ('11417641/152349649', '1/205')
    """
    new = {**budgets_of(config), **budgets}
    found = {}
    for histogram in config.histograms:
        levels = {
            level.name: {
                query: new.get(f"{histogram.name}.{query}/{level.name}", Fraction(0))
                for query in histogram.query_shares[level.name]
            }
            for level in config.run_levels
        }
        costs = {level: sum(queries.values(), Fraction(0)) for level, queries in levels.items()}
        skipped = sum(
            (share for level, share in histogram.level_shares.items() if level not in costs), Fraction(0)
        )
        loss = sum(costs.values(), Fraction(0)) / (1 - skipped)
        found[f"rho.{histogram.name}"] = str(loss)
        for level, cost in costs.items():
            found[f"level_shares.{histogram.name}.{level}"] = str(cost / loss)
            for query, value in levels[level].items():
                found[f"query_shares.{histogram.name}.{level}.{query}"] = str(value / cost if cost else value)
    return found


def _resolve(config: TopdownConfig, name: str) -> tuple[MeasuredHistogram, CellQuery, str]:
    path, slash, level = name.rpartition("/")
    word, dot, text = path.partition(".")
    histograms = {histogram.name: histogram for histogram in config.histograms}
    levels = [one.name for one in config.run_levels]
    if not slash or not dot or word not in histograms:
        raise ConfigError(
            f"{name!r}: write HISTOGRAM.QUERY/LEVEL with a histogram among {', '.join(histograms)}, "
            f"for example {next(iter(budgets_of(config)))}"
        )
    if level not in levels:
        raise ConfigError(
            f"{name!r}: the run has no level {level!r}; its levels are {', '.join(levels)}.{nearest(level, levels)}"
        )
    try:
        return histograms[word], histograms[word].schema.query(text), level
    except (ValueError, KeyError) as problem:
        raise ConfigError(f"{name!r}: {problem}") from None


def _own_name(
    config: TopdownConfig, histogram: MeasuredHistogram, query: CellQuery, level: str
) -> str | None:
    """Name of the budget of the measured query with the same answers."""
    for load in workloads(config):
        if load.histogram is histogram and load.level.name == level:
            for one, plan in zip(load.queries, load.part.queries, strict=True):
                if one.key == query.key:
                    return f"{plan.table}/{level}"
    return None


def _group_sizes(query: CellQuery) -> Iterator[tuple[int, ...]]:
    """For every kind of answer, how many levels of each attribute are summed in it."""
    sizes = [dict.fromkeys(np.bincount(factor.of_level).tolist()) for factor in query.factors]
    return itertools.product(*sizes)


def _terms(
    histogram: MeasuredHistogram, query: CellQuery, level: str, size: tuple[int, ...]
) -> Iterator[Term]:
    """Variance of an answer that sums ``size`` levels of each attribute, by effects of sets of attributes."""
    schema = histogram.schema.schema
    marginals = {
        name: one
        for name in histogram.query_shares[level]
        if (one := histogram.schema.query(name)).answers
        == math.prod(schema.shape[schema.position(a)] for a in one.attributes)
    }
    for factors in itertools.product((False, True), repeat=len(size)):
        coefficient = Fraction(1)
        for within, summed, levels in zip(factors, size, schema.shape, strict=True):
            mean = Fraction(summed**2, levels)
            coefficient *= summed - mean if within else mean
        if not coefficient:
            continue
        effect = {a for a, within in zip(schema.names, factors, strict=True) if within}
        yield Term(
            coefficient,
            {
                f"{histogram.name}.{name}/{level}": Fraction(
                    math.prod(
                        n for a, n in zip(schema.names, schema.shape, strict=True) if a not in one.attributes
                    )
                )
                for name, one in marginals.items()
                if effect <= set(one.attributes)
            },
        )
