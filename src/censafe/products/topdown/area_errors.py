"""Expected errors of the areas of two trees that do not nest, with each of them as the spine, from the public list of areas alone.

The variance of a linear unbiased estimate follows from the budgets and the tree, whatever the counts are. So a tree whose areas have one record
each, and answers that are all 0, give the errors of a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from censafe.estimation.topdown.intervals.areas import AreaSet, area_estimates, area_sets
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.whole_tree.information import linear_tree
from censafe.estimation.topdown.whole_tree.sums import Functionals
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import LevelRule, Spine
from censafe.model.observer import SilentObserver
from censafe.model.sparse import ExactHistograms
from censafe.model.topdown.histograms import GeoLevel, MeasuredHistogram
from censafe.planning.prices.extras import AreaErrors
from censafe.population.records.layout import AreaRule, RecordLayout
from censafe.population.records.reader import read_records, require_readable
from censafe.privacy.measure.histograms import level_variances
from censafe.products.run.scratch import private_scratch
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.reading import level_digits
from censafe.products.topdown.intake.facts import declared_totals, public_facts, run_spine
from censafe.products.topdown.intervals import chosen_queries
from censafe.products.topdown.plan import exact_levels, workloads


def area_errors(config: TopdownConfig, data: Path) -> tuple[AreaErrors, ...]:
    """Errors of every kind of areas and query, with the spine of the configuration and with the other tree in its place.

    None where the configuration has no second tree, where the records list the areas, where the run starts below the root, whose areas the other
    tree does not have, and of histograms that are bounded by units or held to others.

    Raises:
        DataError: the list of areas breaks a rule.
    """
    layout = config.read
    if layout is None or not layout.geography.other_tree or not layout.geography.listed:
        return ()
    if config.root != config.levels[0].name:
        return ()
    rule = layout.geography
    other = with_other_spine(config, layout)
    spines = (", ".join(rule.columns[:-1]), ", ".join(rule.other_tree))
    first, second = _errors(config, layout, data), _errors(other, other.read or layout, data)
    columns = dict(
        zip(rule.levels[:-1], rule.columns[:-1], strict=True)
    )  # names of these areas off the spine
    return tuple(
        AreaErrors(
            histogram,
            kind,
            query,
            areas,
            dict(zip(spines, (error, second[histogram, columns.get(kind, kind), query][1]), strict=True)),
        )
        for (histogram, kind, query), (areas, error) in first.items()
    )


def with_other_spine(config: TopdownConfig, layout: RecordLayout) -> TopdownConfig:
    """The configuration with its other tree as the spine.

    The root and the lowest level keep their shares of the budget; what the levels between have is shared out among the other ones alike, with the
    queries of the lowest of them.
    """
    rule = layout.geography
    names = (*rule.other_tree, config.levels[-1].name)
    root = [level for level in config.levels if not level.prefix]
    lengths = np.cumsum(level_digits(len(names))).tolist()
    levels = (*root, *(GeoLevel(name, length) for name, length in zip(names, lengths, strict=True)))
    swapped = AreaRule(
        names,
        (*rule.other_tree, rule.columns[-2]),
        tuple(level_digits(len(names))),
        tuple(reversed(rule.areas)),
        (),
        rule.columns[:-1],
    )
    rules = tuple(LevelRule(level.name, level.prefix or 0, level.code) for level in levels)
    return replace(
        config,
        levels=levels,
        root=levels[0].name,
        histograms=tuple(
            _shared_out(one, [level.name for level in levels], len(root)) for one in config.histograms
        ),
        read=replace(layout, geography=swapped, rules=rules),
        microdata={},
    )


def _shared_out(histogram: MeasuredHistogram, names: Sequence[str], first: int) -> MeasuredHistogram:
    own = list(histogram.level_shares)
    between = own[first:-1]
    share = sum((histogram.level_shares[name] for name in between), Fraction(0)) / (len(names) - first - 1)
    old_names = dict(zip((*names[:first], names[-1]), (*own[:first], own[-1]), strict=True))
    exact = histogram.exact_totals
    if exact in between:
        exact = own[0] if first else None
    return replace(
        histogram,
        level_shares={
            name: histogram.level_shares[old_names[name]] if name in old_names else share for name in names
        },
        query_shares={name: histogram.query_shares[old_names.get(name, between[-1])] for name in names},
        exact_totals=exact,
    )


def _errors(
    config: TopdownConfig, layout: RecordLayout, data: Path
) -> dict[tuple[str, str, str], tuple[int, float]]:
    """By histogram, kind of areas and query: number of areas, and the root of the mean variance of their answers."""
    with private_scratch(
        data, None
    ) as scratch:  # the tree of the lowest areas; no file with records is opened
        read = read_records(replace(layout, files={}, histograms=(), units=None), data, scratch)
    spine = require_readable(read).spine
    free = [
        one
        for one in config.histograms
        if not one.constraints and one.schema.facilities is None and one.informed is None
    ]
    facts = _facts(replace(config, histograms=tuple(free), together=()), spine)
    kinds = [*area_sets(facts.run, None, SilentObserver())]
    for kind, of_leaf in read.codes.others.items() if read.codes else ():
        names, area_of = np.unique(np.array(of_leaf, np.str_), return_inverse=True)
        kinds.append(AreaSet(kind, names, np.full(len(names), ""), area_of.astype(np.int64)))
    errors = {}
    for histogram in free:
        queries = chosen_queries(config, ())[histogram.name]
        tree = linear_tree(histogram, facts, list(_objectives(config, histogram, facts)))
        functionals = Functionals.of(tree.blocks, csr_array(np.vstack([one.weights for one in queries])))
        for estimate in area_estimates(tree, functionals, facts.run, kinds):
            start = 0
            for query in queries:
                part = estimate.variances[:, start : start + len(query.labels)]
                start += len(query.labels)
                key = (histogram.name, estimate.areas.kind, query.name)
                errors[key] = (estimate.areas.number, float(np.sqrt(part.mean())))
    return errors


def _facts(config: TopdownConfig, spine: Spine) -> PublicFacts:
    """What is public of a population of one record in every area."""
    leaves = spine.leaf.nodes
    facilities = np.zeros((leaves, 1), np.int32)
    run = run_spine(config, spine, None, facilities)
    totals = {}
    for histogram in config.histograms:
        cells = histogram.schema.schema.cells
        somewhere = int(np.argmax(histogram.schema.allowed()))
        one_each = ExactHistograms(
            spine.leaf.geounits,
            np.arange(leaves + 1),
            np.full(leaves, somewhere, np.int32),
            np.ones(leaves, np.int32),
        )
        totals[histogram.name] = declared_totals(
            run, sum_histograms(run.spine, one_each, cells), exact_levels(histogram)
        )
    return public_facts(config, run, facilities, totals)


def _objectives(
    config: TopdownConfig, histogram: MeasuredHistogram, facts: PublicFacts
) -> Iterator[LevelObjective]:
    """Answers of every level that are all 0, with the variances of the plan."""
    for load in workloads(config, histogram.name):
        budgets = facts.budgets[load.part.name]
        values = tuple(np.zeros((len(budgets.kinds), query.answers), np.int16) for query in load.queries)
        labels = [query.label for query in load.queries]
        yield LevelObjective.of(labels, level_variances(budgets), values, budgets.kinds)
