"""What ``plan`` uses of TopDown: rows, budgets, and the expected error of any query, before anything is made to fit.

The best unbiased combination of a level's measurements of full marginals has a closed form. Their information matrix sum over q of
rho_q Q'Q has, for every set S of attributes, one eigenvalue: the sum over the queries q that keep all of S of rho_q times the
levels of the attributes that q sums over. The variance of an answer with weights w is the sum over S of
norm2(P_S w)^2 / eigenvalue, P_S projecting onto effects of exactly S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from censafe.errors import ConfigError, UsageError
from censafe.model import CellQuery, Definition
from censafe.model.bounds import upper
from censafe.model.entries import nearest
from censafe.model.safe_text import csv_text
from censafe.model.topdown.histograms import MeasuredHistogram, PublishedAnswers, Stack
from censafe.planning.numbers import decimal_text, loss_text
from censafe.planning.prices.extras import (
    AreaErrors,
    Effort,
    EstimatedTables,
    TableCounts,
    counts_of_queries,
    effort_of,
    rate_of,
)
from censafe.planning.prices.rows import PlanReport, QueryFacts, QueryShare, plan_report
from censafe.planning.prices.targets import TargetQuery, Term
from censafe.privacy.loss.conversions import epsilons
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.spines import load_for_plan, load_of_unknown_run, spine_refusal
from censafe.products.topdown.plan import (
    exact_figures,
    level_costs,
    loss_statements,
    plan_release,
    record_words,
    workloads,
)
from censafe.products.topdown.readings import loss_readings, record_questions

TALLIES: Final = {
    "US": 1,
    "State": 51,
    "County": 3_143,
    "Tract": 84_414,
    "Block_Group": 239_780,
    "Block": 8_132_968,
}
"""The census of 2020: geounits of the 50 states and the District of Columbia, published tallies."""
# Of the DHC's own levels no tallies are published: those of a twentieth of a synthetic nation.
DHC_TALLIES: Final = {
    **{name: TALLIES[name] for name in ("US", "State", "County", "Block")},
    **{
        name: round(TALLIES["Block"] * geounits / 413_273)
        for name, geounits in (
            ("Prim", 4_304),
            ("Tract_Subset_Group", 4_332),
            ("Tract_Subset", 7_449),
            ("Block_Group", 37_482),
        )
    },
}


def effort(
    config: TopdownConfig, size: int | None, estimated: EstimatedTables | None = None
) -> Effort | None:
    """Time and memory for a number of blocks, or the nation's; levels between are those of the nation in proportion.

    None for other levels than those of the redistricting data and of the DHC, and for a run that starts below the nation unless a
    size or data are given.
    """
    from censafe.products.topdown.table_estimates.work import most_work, work_of_data

    estimated = estimated or EstimatedTables()
    linear = None if estimated.data is None else work_of_data(config, estimated, estimated.data)
    if size is None and linear is not None:
        size = linear.size
    names = [level.name for level in config.run_levels]
    for tallies, name in ((TALLIES, "topdown"), (DHC_TALLIES, "dhc")):
        if set(names) <= set(tallies) and (size is not None or names[0] == "US"):
            share = Fraction(tallies["Block"] if size is None else size, tallies["Block"])
            geounits = {level: max(1, round(tally * share)) for level, tally in tallies.items()}
            answers = {load.part.name: load.answers * geounits[load.level.name] for load in workloads(config)}
            planned = effort_of(rate_of(name), size, answers)
            if estimated.data is None:
                linear = most_work(config, estimated, {name: geounits[name] for name in names})
            return replace(planned, linear=linear)
    if estimated.tables or estimated.areas:
        raise UsageError(
            f"`tables`: how many geounits a run of {config.origin} from {names[0]} has is not known; fix: give the data, or `size`, its number of "
            "blocks"
        )
    return None


def area_errors(config: TopdownConfig, data: Path) -> tuple[AreaErrors, ...]:
    """Errors of the areas of two trees that do not nest, with each of them as the spine, from the list of areas of the data."""
    from censafe.products.topdown import area_errors as errors

    return errors.area_errors(config, data)


def budgets_of(config: TopdownConfig) -> dict[str, Fraction]:
    """Budgets of the measured queries, by rows, by ``HISTOGRAM.QUERY/LEVEL``.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> budgets_of(load_config("pl94-us"))["units.detailed/US"]
        Fraction(11417641, 31231678045)
    """
    return {
        f"{histogram.name}.{query}/{level.name}": histogram.cost(level.name, query)
        for histogram in config.histograms
        for level in config.run_levels
        for query in histogram.query_shares[level.name]
    }


def named_answers(config: TopdownConfig, name: str, *, combined: bool) -> tuple[TargetQuery, ...]:
    """The answers of a query at a level, measured or not; of a coarsened one, one for each size of its groups.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> own, = named_answers(load_config("pl94-us"), "persons.votingage/County", combined=False)
        >>> own.name, own.terms[0].weights
        ('persons.votingage/County', {'persons.votingage/County': Fraction(1, 1)})
    """
    if config.definition is not Definition.ZCDP:
        raise ConfigError("targets are turned into budgets under rho only, not under epsilon")
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
    histogram = histograms[word]
    try:
        query = histogram.schema.query(text)
    except (ValueError, KeyError) as problem:
        raise ConfigError(f"{name!r}: {problem}") from None
    written = f"{histogram.name}.{query.name}/{level}"
    if not combined:
        measured = (
            plan.table
            for load in workloads(config, histogram.name)
            if load.level.name == level
            for candidate, plan in zip(load.queries, load.part.queries, strict=True)
            if candidate.key == query.key
        )
        own = next(measured, None)
        if own is None:
            raise ConfigError(
                f"{name}: this query is not measured at {level}, so it has no budget of its own; "
                "add '`minimize` rho' or '`maximize` accuracy', which combine what is measured"
            )
        return (TargetQuery(written, (Term(Fraction(1), {f"{own}/{level}": Fraction(1)}),), True),)
    # for every kind of answer, how many levels of each attribute are summed in it
    summed = [dict.fromkeys(np.bincount(factor.of_level).tolist()) for factor in query.factors]
    sizes = dict.fromkeys(itertools.product(*summed))
    answers = []
    for size in sizes:
        terms = tuple(_terms(histogram, query, level, size))
        mark = f" (answers of {math.prod(size)} cells)" if len(sizes) > 1 else ""
        answers.append(TargetQuery(written + mark, terms, False))
    return tuple(answers)


def overrides(config: TopdownConfig, budgets: Mapping[str, Fraction]) -> dict[str, str]:
    """``--set`` keys and values: losses of histograms, shares of levels and of queries, all exact.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us", {"measure": "units"})
        >>> result = overrides(config, budgets_of(config))
        >>> result["rho.units"], result["level_shares.units.US"]
        ('11417641/152349649', '1/205')
    """
    new = {**budgets_of(config), **budgets}
    settings = {}
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
        settings[f"rho.{histogram.name}"] = str(loss)
        for level, cost in costs.items():
            settings[f"level_shares.{histogram.name}.{level}"] = str(cost / loss)
            for query, value in levels[level].items():
                settings[f"query_shares.{histogram.name}.{level}.{query}"] = str(
                    value / cost if cost else value
                )
    return settings


def _terms(
    histogram: MeasuredHistogram, query: CellQuery, level: str, size: tuple[int, ...]
) -> Iterator[Term]:
    """Variance of an answer that sums ``size`` levels of each attribute, by effects of sets of attributes."""
    schema = histogram.schema.schema
    marginals = {
        name: marginal
        for name in histogram.query_shares[level]
        if (marginal := histogram.schema.query(name)).answers
        == math.prod(schema.shape[schema.position(a)] for a in marginal.attributes)
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
                        n
                        for a, n in zip(schema.names, schema.shape, strict=True)
                        if a not in marginal.attributes
                    )
                )
                for name, marginal in marginals.items()
                if effect <= set(marginal.attributes)
            },
        )


CONFIDENCE: Final = Fraction(9, 10)
_LONGEST: Final = 20  # characters of an exact loss that is printed
questions = record_questions


def load(
    source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
) -> TopdownConfig:
    """Read and check a configuration."""
    if margins:
        raise ConfigError(
            "`margins`: a query of topdown has a share of one total; change the total (--set rho.persons=...) or the "
            "shares (--set query_shares.persons.County.total=...) and look at the margins"
        )
    return load_for_plan(source, overrides)


def report(config: TopdownConfig, *, confidence: Fraction, delta: Fraction) -> PlanReport:
    """Cost, noise and margin of every query at every level, and what the loss means by attribute and area."""
    return plan_report(
        plan_release(config),
        query_facts(config),
        origin=config.origin,
        confidence=confidence,
        delta=delta,
        warnings=config.warnings,
        notes=_notes(config, delta),
        readings=loss_readings(config, delta),
    )


def paper(config: TopdownConfig) -> str:
    """The shares of levels and queries as the certificates of the 2020 runs list them."""
    rows = [("histogram", "level", "level_share", "query", "cells", "query_share", "loss")]
    for load in workloads(config):
        histogram, level = load.histogram, load.level.name
        for query, plan in zip(load.queries, load.part.queries, strict=True):
            shares = str(histogram.level_shares[level]), str(histogram.query_shares[level][query.name])
            rows.append(
                (histogram.name, level, shares[0], query.name, str(query.answers), shares[1], str(plan.cost))
            )
    return csv_text(rows, line_end="\r\n")


def query_facts(config: TopdownConfig) -> tuple[QueryFacts, ...]:
    """Size and shares of every measured query, in the order of the plan."""
    return tuple(
        QueryFacts(
            table=plan.table,
            level=load.level.name,
            label=load.level.name,
            source=plan.table,
            tau=None,
            regions=None,
            iterations=query.answers,
            terms={"cell": 1},
            share=QueryShare(
                load.histogram.name,
                query.name,
                load.histogram.level_shares[load.level.name],
                load.histogram.query_shares[load.level.name][query.name],
            ),
        )
        for load in workloads(config)
        for query, plan in zip(load.queries, load.part.queries, strict=True)
    )


def _notes(config: TopdownConfig, delta: Fraction) -> tuple[str, ...]:
    notes = list(loss_statements(config))
    for histogram in config.histograms:
        shares = ", ".join(f"{level} {float(100 * s):.2f}%" for level, s in histogram.level_shares.items())
        answers = dict.fromkeys(
            f"{load.level.name} {load.answers:,}" for load in workloads(config, histogram.name)
        )
        notes += [
            f"{histogram.name}: {config.definition.symbol} {decimal_text(histogram.loss)} by rows, by level {shares}.",
            f"{histogram.name}: {histogram.schema.schema.cells:,} cells; measured answers of one geounit: "
            f"{', '.join(answers)}.",
        ]
    notes += [_counts(config, histogram) for histogram in config.histograms]
    notes += [_level_sums(config, stack) for stack in config.stacks]
    notes += exact_figures(config)
    notes += _earlier(config, delta)
    if config.choices.production_spine:
        notes.append(
            f"Spine standard: {spine_refusal(config)}"
            if config.choices.spine == "standard"
            else "Spine: optimized, that of the 2020 production, where the input gives block attributes (GRF-C, or columns of the units). Without them "
            "a run uses the standard spine, whose total is no larger; --set spine=standard shows it and its losses by place."
        )
    if config.choices.bypass:
        notes.append(
            f"Spine {config.choices.spine}: the budget of an only child is spent at its parent. Costs and margins are those of "
            "geounits with the level's own share; every path from the root to a block spends the total."
        )
    skipped = config.levels[: len(config.levels) - len(config.run_levels)]
    if skipped:
        names = ", ".join(level.name for level in skipped)
        notes.append(f"The run starts at {config.root}; the shares of {names} are not spent.")
    return tuple(notes)


def _level_sums(config: TopdownConfig, stack: Stack) -> str:
    """Exact loss of every level, of the histograms of one record together."""
    costs = [level_costs(config, histogram) for histogram in stack.histograms]
    levels = {level.name: sum((own[level.name] for own in costs), Fraction(0)) for level in config.run_levels}
    total = sum(levels.values(), Fraction(0))
    exact = all(len(str(cost)) <= _LONGEST for cost in (total, *levels.values()))
    text = str if exact else loss_text
    shares = ", ".join(
        f"{name} {text(cost)} ({float(100 * cost / total):.2f}%)" for name, cost in levels.items()
    )
    record = record_words(stack.histograms[0])
    return (
        f"{stack.name}: {config.definition.symbol} {text(total)} for one {record} record by rows, {'exactly' if exact else 'rounded up'}, by level "
        f"{shares}."
    )


def _earlier(config: TopdownConfig, delta: Fraction) -> list[str]:
    """What the constraints hold to, and the loss together with that of the results that were published before."""
    if not config.published:
        return []
    names = ", ".join(dict.fromkeys(config.published.values()))
    statements = []
    for histogram in config.histograms:
        for constraint in histogram.constraints:
            if isinstance(constraint.right, PublishedAnswers):
                source = f"{config.published[constraint.right.result]}, {constraint.right.histogram}"
                statements.append(
                    f"Held to what was published: {histogram.name}, {constraint.groups.query}, by {constraint.name} ({source})."
                )
    earlier = [
        plan_release(load_of_unknown_run(source)).total for source in dict.fromkeys(config.published.values())
    ]
    own = plan_release(config).total
    total = own + sum(earlier, Fraction(0))
    words = f"at most {config.definition.symbol} {loss_text(total)}"
    if config.definition is Definition.ZCDP:
        words += f", epsilon {upper(epsilons(total, delta).tight, 4):.4f} (tight bound)"
    return [*statements, f"Together with {names}, whose loss adds whatever was published there: {words}."]


def _counts(config: TopdownConfig, histogram: MeasuredHistogram) -> str:
    """Tables and statistics that are measured at one geounit of each level, and in the nation where its geounits are known."""
    allowed = histogram.schema.allowed()
    loads = workloads(config, histogram.name)
    by_level = {load.level.name: counts_of_queries(load.queries, allowed) for load in loads}
    same = dict.fromkeys(by_level.values())
    texts = [
        f"{', '.join(name for name, own in by_level.items() if own == counts)}: {counts.text()}"
        for counts in same
    ]
    text = f"{histogram.name}: measured at one geounit: {'; '.join(texts)}."
    if config.run_levels[0].name != "US" or not set(by_level) <= set(TALLIES):
        return text
    nation = TableCounts(0, 0, 0)
    for name, counts in by_level.items():
        nation = nation.plus(counts.times(TALLIES[name]))
    return f"{text} At the geounits of the census of 2020, level by level: {nation.text()}."
