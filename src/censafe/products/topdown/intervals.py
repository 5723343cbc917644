"""Intervals of a TopDown run: unbiased estimates with closed variances, and simulated intervals of the published counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.errors import UsageError
from censafe.estimation.topdown.intervals.areas import AreaSet, area_estimates, area_sets
from censafe.estimation.topdown.intervals.simulated import ErrorClasses
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.whole_tree.information import linear_tree
from censafe.estimation.topdown.whole_tree.sums import Functionals
from censafe.estimation.topdown.whole_tree.sweep import LinearTree
from censafe.geography.identifiers import AreaNames
from censafe.geography.own_codes import AreaCodes
from censafe.geography.regions import states
from censafe.model import CellQuery, SparseLevel
from censafe.model.arrays import Integers
from censafe.model.cells.counting import LineSums
from censafe.model.entries import nearest
from censafe.model.observer import Observer
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.products.run.options import IntervalOptions
from censafe.products.topdown.census_tables.definitions import census_tables
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.outputs import interval_queries, outputs_of
from censafe.products.topdown.descents import Estimates
from censafe.products.topdown.files import area_names
from censafe.products.topdown.labels import answer_words, item_words, race_words
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.rehearsal import further_runs
from censafe.publication.atomic import sha256_file
from censafe.publication.intervals import (
    PAGES,
    IntervalRows,
    IntervalWriter,
    percent,
    write_interval_codebook,
    write_interval_page,
)
from censafe.publication.stamps import Stamp

_RACES: Final = "races"
_GROUPS: Final = 7  # of races: one race alone, six of them; two or more races


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
        >>> result = chosen_queries(load_config("pl94-us"), ("votingage", "H1"))
        >>> [(name, [(one.name, one.labels) for one in queries]) for name, queries in result.items()]
        [('persons', [('votingage', ('under 18', '18 and over'))]), ('units', [('H1', ('H1_001 total', 'H1_002 occupied', 'H1_003 vacant'))])]
    """
    chosen: dict[str, tuple[IntervalQuery, ...]] = {}
    known: set[str] = set()
    for histogram in config.histograms:
        listed = names or interval_queries(histogram)
        queries = [(name, _query(histogram, name)) for name in dict.fromkeys(listed)]
        known |= {name for name, query in queries if query is not None}
        chosen[histogram.name] = tuple(query for _, query in queries if query is not None)
    missing = [name for name in names if name not in known]
    if missing:
        offered = {"total", "detailed"}
        for histogram in config.histograms:
            offered |= {
                *histogram.schema.schema.names,
                *histogram.schema.recodes,
                *outputs_of(histogram).tables,
            }
            offered |= {_RACES} if _has_races(histogram) else set()
        raise UsageError(
            f"`queries` {missing[0]}: no such query.{nearest(missing[0], sorted(offered))} Allowed: {', '.join(sorted(offered))}, and attributes or recodes joined by *"
        )
    return chosen


def _has_races(histogram: MeasuredHistogram) -> bool:
    """Whether its cells fill table P1, whose items are the groups of races."""
    return "P1" in outputs_of(histogram).tables


def _query(histogram: MeasuredHistogram, name: str) -> IntervalQuery | None:
    """The query of a name; None where the histogram has none."""
    schema = histogram.schema
    if name in outputs_of(histogram).tables:
        table = census_tables("pl94")[name]
        labels = tuple(map(" ".join, zip(table.items, item_words()[name], strict=True)))
        return IntervalQuery(name, labels, LineSums.of(table.lines, schema.schema).of_cells.T)
    words = [word.strip() for word in name.split("*")]
    if _has_races(histogram) and words.count(_RACES) == 1:
        rest = " * ".join(word for word in words if word != _RACES)
        return _by_races(schema, name, rest or "total") if "cenrace" not in words else None
    try:
        query = schema.query(name)
    except ValueError:
        return None
    return IntervalQuery(name, tuple(answer_words(schema, query)), _one_hot(query))


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
    groups = np.arange(_GROUPS)[:, None] == np.minimum(race, _GROUPS - 1)
    weights = (_one_hot(query)[:, None, :] * groups[None, :, :]).reshape(-1, len(race))
    alone = [f"{race_words(level)} alone" for level in range(_GROUPS - 1)]
    before = ["" if label == "total" else f"{label}, " for label in answer_words(schema, query)]
    return IntervalQuery(
        name, tuple(f"{one}{group}" for one in before for group in [*alone, "two or more races"]), weights
    )


_STATE_DIGITS: Final = 2
_PANELS: Final = 2


@dataclass(frozen=True, eq=False)
class IntervalSource:
    """What intervals are made from.

    Args:
        read: the measurements of a level; it is called once more for each.
        own: codes of areas of a run with codes of its own.
    """

    config: TopdownConfig
    estimates: Estimates
    read: Callable[[LevelWorkload], LevelMeasurements]
    workers: int = 1
    names: Mapping[str, str] | None = None
    own: AreaCodes | None = None

    @property
    def areas(self) -> AreaNames:
        """What stands beside the codes of areas."""
        return area_names(self.config, self.names)

    @property
    def public(self) -> PublicFacts:
        """What is known exactly."""
        return self.estimates.public

    def budgeted(self) -> PublicFacts:
        """The same with the laws of all geounits, which files of others state beside their answers."""
        facts, loads = self.public, workloads(self.config)
        if all(load.part.name in facts.budgets for load in loads):
            return facts
        return replace(facts, budgets={load.part.name: self.read(load).budgets for load in loads})

    def tree(self, histogram: MeasuredHistogram) -> LinearTree:
        """Linear estimates of all geounits of a histogram."""
        objectives = [
            LevelObjective.measured([query.label for query in load.queries], self.read(load))
            for load in workloads(self.config, histogram.name)
        ]
        return linear_tree(histogram, self.public, objectives)


@dataclass(frozen=True, eq=False)
class _Counted:
    """The answers of a histogram's queries at its published blocks.

    Args:
        weights: of all their answers, sparse, shape (F, cells).
        blocks: published answers, shape (blocks, F).
    """

    queries: tuple[IntervalQuery, ...]
    weights: csr_array = field(repr=False)
    blocks: Integers = field(repr=False)

    def parts(self) -> Iterator[tuple[IntervalQuery, slice]]:
        """Every query with the columns of its answers."""
        first = 0
        for query in self.queries:
            yield query, slice(first, first + len(query.labels))
            first += len(query.labels)


_Classes = dict[tuple[str, str, str], ErrorClasses]
"""Errors of further runs by histogram, kind of area and query."""


def write_intervals(
    staging: Path,
    source: IntervalSource,
    options: IntervalOptions,
    *,
    stamp: Stamp | None,
    observer: Observer,
) -> dict[str, Any]:
    """Write the table of intervals, its codebook, and a page for each state, into ``staging``."""
    queries = chosen_queries(source.config, options.queries)
    sets = area_sets(source.public.run, options.areas, observer, source.areas, source.own)
    counted = {}
    for name, own in queries.items():
        if own:
            weights = csr_array(np.vstack([query.weights for query in own]))
            counted[name] = _Counted(own, weights, counts_of(source.estimates.levels[name][-1], weights))
    simulated = options.simulations > 0
    classes = _simulate(source, options, counted, sets, observer) if simulated else {}
    # pages show levels between states and blocks, two at most, or the lowest where there are none
    lower = [level.name for level in source.public.run.standard.levels if level.digits > _STATE_DIGITS]
    kinds, panels = lower[:-1][:_PANELS] or lower, list[IntervalRows]()
    with IntervalWriter(staging, options.confidences, simulated=simulated, stamp=stamp) as writer:
        for histogram in source.config.histograms:
            if histogram.name in counted:
                with observer.stage(f"intervals of {histogram.name}"):
                    for rows in _rows(source, histogram, counted[histogram.name], sets, classes, options):
                        writer.add(rows)
                        if rows.kind in kinds:
                            panels.append(rows)
        written = writer.rows
    document: dict[str, Any] = {
        "confidence": [percent(one) for one in options.confidences],
        "queries": {name: [query.name for query in own] for name, own in queries.items()},
        "areas": {one.kind: one.number for one in sets},
        "area_list": None if options.areas is None else sha256_file(options.areas),
        "simulations": options.simulations,
        "seed": options.seed,
        "rows": written,
    }
    with observer.stage("pages of intervals"):
        (staging / PAGES).mkdir()
        write_interval_codebook(
            staging / PAGES / "codebook.csv",
            options.confidences,
            simulations=options.simulations,
            stamp=stamp,
        )
        _pages(staging / PAGES, panels, source, document, stamp)
    return document


def counts_of(level: SparseLevel, weights: csr_array) -> Integers:
    """Answers of some geounits, shape (n, F), from the weights of the cells, shape (F, cells)."""
    cells = weights.shape[1]
    counts = csr_array(
        (level.count.astype(np.float64), level.cell, level.node_ptr), shape=(level.nodes, cells)
    )
    return np.rint((counts @ weights.T).toarray()).astype(np.int64)


def _rows(
    source: IntervalSource,
    histogram: MeasuredHistogram,
    counted: _Counted,
    sets: Sequence[AreaSet],
    classes: _Classes,
    options: IntervalOptions,
) -> Iterator[IntervalRows]:
    """Estimates of a histogram at the areas of every kind."""
    tree = source.tree(histogram)
    functionals = Functionals.of(tree.blocks, counted.weights)
    standard = source.public.run.standard.names
    census = source.areas.census
    queries = [query.name for query, part in counted.parts() for _ in query.labels]
    cells = [cell for query in counted.queries for cell in range(len(query.labels))]
    labels = [label for query in counted.queries for label in query.labels]
    for estimate in area_estimates(tree, functionals, source.public.run, sets):
        published = estimate.areas.sums(counted.blocks)
        yield IntervalRows(
            histogram.name,
            estimate.areas.kind,
            estimate.areas.codes,
            estimate.areas.names,
            queries,
            cells,
            labels,
            estimate.values,
            estimate.variances,
            published,
            _ends(histogram.name, estimate.areas.kind, counted, published, classes, options),
            census and estimate.areas.kind in standard,
        )


def _ends(
    histogram: str,
    kind: str,
    counted: _Counted,
    published: Integers,
    classes: _Classes,
    options: IntervalOptions,
) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Ends of the simulated intervals of the published counts, by level of confidence."""
    if not classes:
        return ()
    ends = []
    for confidence in options.confidences:
        low, high = np.empty(published.shape), np.empty(published.shape)
        for query, part in counted.parts():
            own = classes[histogram, kind, query.name]
            low[:, part], high[:, part] = own.ends(published[:, part], float(confidence))
        ends.append((low, high))
    return tuple(ends)


def _simulate(
    source: IntervalSource,
    options: IntervalOptions,
    counted: Mapping[str, _Counted],
    sets: Sequence[AreaSet],
    observer: Observer,
) -> _Classes:
    """Errors of further runs on the published counts."""
    classes: _Classes = {
        (name, areas.kind, query.name): ErrorClasses()
        for name, own in counted.items()
        for areas in sets
        for query in own.queries
    }
    with observer.stage(f"{options.simulations} further runs"):
        runs = further_runs(
            source.config,
            source.budgeted(),
            source.estimates.levels,
            runs=options.simulations,
            seed=options.seed,
            workers=source.workers,
        )
        for done, run in enumerate(runs, 1):
            for name, own in counted.items():
                further = counts_of(run[name], own.weights)
                for areas in sets:
                    before, after = areas.sums(own.blocks), areas.sums(further)
                    for query, part in own.parts():
                        classes[name, areas.kind, query.name].add(before[:, part], after[:, part])
            observer.advance(done / options.simulations, options.simulations, "runs")
    return classes


def _pages(
    folder: Path,
    rows: Sequence[IntervalRows],
    source: IntervalSource,
    document: Mapping[str, Any],
    stamp: Stamp | None,
) -> None:
    """A page for each state, or one for all where the levels have no states."""
    standard = source.public.run.standard
    parted = [level for level in standard.levels if level.digits == _STATE_DIGITS]
    codes = parted[0].geounits.tolist() if parted else [""]
    known = {state.code: state.name for state in states()}
    settings = {
        "Configuration": source.config.origin,
        "Further runs": f"{document['simulations']}, for the intervals of published counts",
        "Areas": ", ".join(f"{number:,} {kind}" for kind, number in document["areas"].items()),
        "Table": f"{document['rows']:,} rows",
    }
    for code in codes:
        own = [part for part in (_within(one, code) for one in rows) if len(part.codes)]
        if own:
            name = known.get(code) or (f"state {code}" if code else source.config.origin)
            write_interval_page(folder, name, code or "all", own, settings=settings, stamp=stamp)


def _within(rows: IntervalRows, code: str) -> IntervalRows:
    """The areas whose codes begin with a code."""
    chosen = np.char.startswith(rows.codes, code)
    if chosen.all():
        return rows
    return replace(
        rows,
        codes=rows.codes[chosen],
        names=rows.names[chosen],
        values=rows.values[chosen],
        variances=rows.variances[chosen],
        published=rows.published[chosen],
        simulated=(),
    )
