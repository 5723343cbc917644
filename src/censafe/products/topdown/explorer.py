"""What the explorer page needs of TopDown."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from censafe.model import CellQuery, Definition
from censafe.planning.explorer.sheets import (
    ExplorerSheet,
    Facet,
    MovedAnswers,
    Question,
    Row,
    Shares,
    SheetBound,
    SheetRelation,
)
from censafe.products.configuration.source import ShippedConfig
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.keys import read_document
from censafe.products.topdown.intake.spines import load_for_plan
from censafe.products.topdown.person_loss import possible_changes
from censafe.products.topdown.plan import LevelWorkload, exact_figures, plan_release, workloads
from censafe.products.topdown.planner import CONFIDENCE
from censafe.products.topdown.readings import person_question, record_changes

_BOUNDED: Final = "replace"
_BY_ROWS: Final = "one row of each histogram is replaced, the Bureau's statement; the table of the noise taken together has the change of one person"
_TWO_CELLS: Final = (
    MovedAnswers(SheetBound(coefficients=(Fraction(2),)), SheetBound(coefficients=(Fraction(1),))),
)


def sheet(shipped: ShippedConfig) -> ExplorerSheet:
    """One shipped configuration of TopDown.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> result = sheet(get_shipped("e2e-1940"))
        >>> result.law, result.rows[0].name, str(result.rows[0].budget)
        ('geometric', 'persons, National, detailed', '1/160')
    """
    config = load_for_plan(shipped.name, {})
    plan, loads = plan_release(config), workloads(config)
    facets = (
        Facet("Histograms", tuple(histogram.name for histogram in config.histograms)),
        Facet("Levels", tuple(level.name for level in config.run_levels)),
        Facet("Queries", tuple(dict.fromkeys(query.name for load in loads for query in load.queries))),
    )
    return ExplorerSheet(
        key=shipped.name,
        product="topdown",
        title=shipped.title,
        symbol=config.definition.symbol,
        law="gaussian" if config.definition is Definition.ZCDP else "geometric",
        unit=plan.unit.value,
        counted="persons or units",
        confidence=CONFIDENCE,
        relations=(SheetRelation(_BOUNDED, "by rows", Fraction(1), _BY_ROWS),),
        settings=(),
        facets=facets,
        totals=(0, 1),
        rows=tuple(row for load in loads for row in _rows(load, facets)),
        toml=shipped.text,
        shares=_shares(config, shipped.name),
        notes=(
            "Shares of levels and queries follow from the budgets below; the unedited queries keep their budgets.",
            *exact_figures(config),
        ),
        questions=_questions(config),
    )


def _questions(config: TopdownConfig) -> tuple[Question, ...]:
    """Those of the plan: one person, one row of each histogram, and its place within the next larger area; a row counts as often as it is named."""
    if config.definition is not Definition.ZCDP:
        return ()
    by_rows = (
        Question(
            change.name,
            change.words,
            tuple(_id(load, query) for load, times in change.moved for query in load.queries * times),
        )
        for change in record_changes(config)
    )
    alternatives = tuple(
        tuple(
            (f"{name}.{level}.{text}", moved.count(step), step)
            for name, level, text, moved in changes
            for step in sorted(set(moved))
        )
        for changes in possible_changes(config)
    )
    person = person_question(config)
    return (Question(person.name, person.words, alternatives=alternatives), *by_rows)


def _id(load: LevelWorkload, query: CellQuery) -> str:
    return f"{load.histogram.name}.{load.level.name}.{query.name}"


def _rows(load: LevelWorkload, facets: tuple[Facet, ...]) -> Iterator[Row]:
    histogram, level = load.histogram.name, load.level.name
    for query, plan in zip(load.queries, load.part.queries, strict=True):
        doubled = 2 if plan.law.kind == "gaussian" else 1
        yield Row(
            id=_id(load, query),
            section=f"{histogram}, {level}",
            label=query.name,
            name=f"{histogram}, {level}, {query.name}",
            facets=tuple(
                facet.values.index(word)
                for facet, word in zip(facets, (histogram, level, query.name), strict=True)
            ),
            budget=plan.cost,
            bound=SheetBound(coefficients=(plan.law.parameter * doubled * plan.cost,)),
            cells=query.answers,
            shares=(histogram, level, query.name),
            moved=_TWO_CELLS if plan.law.kind == "gaussian" else (),
        )


def _shares(config: TopdownConfig, name: str) -> Shares:
    symbol, run = config.definition.symbol, {level.name for level in config.run_levels}
    written = read_document(name, {}).values[symbol]
    return Shares(
        losses={
            histogram.name: (symbol, histogram.name) if isinstance(written, dict) else ("", symbol)
            for histogram in config.histograms
        },
        outside={
            histogram.name: {
                level: histogram.loss * share
                for level, share in histogram.level_shares.items()
                if level not in run
            }
            for histogram in config.histograms
        },
        order=tuple(level.name for level in config.levels),
        root=config.root,
        exact={
            histogram.name: histogram.exact_totals
            for histogram in config.histograms
            if histogram.exact_totals is not None
        },
        together=tuple(own for own in config.together if len(own) > 1),
    )
