"""What the explorer page needs of PHSafe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final

from censafe.model import Definition, Neighbors
from censafe.planning.explorer.sheets import (
    Choice,
    Derived,
    ExplorerSheet,
    Facet,
    MovedAnswers,
    PaperLine,
    PaperTable,
    Question,
    Row,
    SheetBound,
    SheetRelation,
    SheetSetting,
    quadratic,
    with_variants,
)
from censafe.planning.prices.rows import QueryFacts
from censafe.products.configuration.source import ShippedConfig
from censafe.products.phsafe.config import PhsafeConfig, load_phsafe_config
from censafe.products.phsafe.definitions import (
    levels_of,
    measured_tables,
    phsafe_definitions,
    truncated_tables,
)
from censafe.products.phsafe.planner import CONFIDENCE, TABLE_10, largest_change, query_facts, questions
from censafe.products.phsafe.sensitivity import (
    SENSITIVITIES,
    loss_factor,
    neighbors_of,
    relation_text,
    sensitivity_bound,
)

_CHOICES: Final = (
    Choice("privacy_definition", "definition of privacy", tuple(one.value for one in Definition)),
    Choice("sensitivity", "sensitivity of the noise", SENSITIVITIES),
)
_LABELS: Final = {Neighbors.ADD_REMOVE: "unbounded", Neighbors.REPLACE: "bounded"}


def sheet(shipped: ShippedConfig) -> ExplorerSheet:
    """One shipped configuration of PHSafe.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> result = sheet(get_shipped("sdhc-us"))
        >>> result.product, result.rows[1].id, str(result.rows[1].budget)
        ('phsafe', 'PH1_num.usa_A-G', '2619/1000000')
    """
    return with_variants(partial(_sheet, shipped), _CHOICES)


def _sheet(shipped: ShippedConfig, words: Mapping[str, str]) -> ExplorerSheet:
    config = load_phsafe_config(shipped.name, words)
    facts = query_facts(config)
    tables = tuple(dict.fromkeys(fact.table for fact in facts))
    rows = tuple(row for fact in facts for row in _rows(config, fact, tables))
    own = neighbors_of(config.sensitivity)
    ordered = sorted(Neighbors, key=lambda relation: relation is not own)
    return ExplorerSheet(
        key=shipped.name,
        product="phsafe",
        title=shipped.title,
        symbol=config.definition.symbol,
        law="gaussian" if config.definition is Definition.ZCDP else "geometric",
        unit="person",
        counted="persons or units",
        confidence=CONFIDENCE,
        relations=tuple(
            SheetRelation(
                relation.value,
                _LABELS[relation],
                loss_factor(config.definition, config.sensitivity, relation),
                relation_text(config.sensitivity, relation),
            )
            for relation in ordered
        ),
        settings=tuple(
            SheetSetting(
                key=f"tau.{table}",
                label=f"tau of {table}",
                help="Largest number of persons of one household that enter the table.",
                kind="integer",
                low=1,
                high=10_000,
                value=Fraction(config.tau[table]),
                toml=("tau", table),
                json=("tau", table),
            )
            for table in truncated_tables()
            if table in config.tau
        ),
        facets=(Facet("Tables", tables), Facet("Levels", tuple(phsafe_definitions().level_labels.values()))),
        totals=(),
        rows=rows,
        toml=shipped.text,
        json=_json(config),
        paper=_paper(config) if config.moe_targets else None,
        questions=tuple(
            Question(question.name, question.words, tuple(row.id for row in rows if row.derived is None))
            for question in (questions(config) if config.definition is Definition.ZCDP else ())
        ),
        chosen={"privacy_definition": config.definition.value, "sensitivity": config.sensitivity},
    )


def _moved_answers(config: PhsafeConfig, table: str) -> tuple[MovedAnswers, ...]:
    """The largest change that the noise is made for, in tau where the table has one."""
    if config.definition is not Definition.ZCDP:
        return ()
    if table not in truncated_tables():
        cells, least = largest_change(config.sensitivity, None)
        step = SheetBound(coefficients=(Fraction(least),))
    else:
        cells, _ = largest_change(config.sensitivity, 1)
        steps = quadratic(lambda tau: Fraction(largest_change(config.sensitivity, tau)[1]))
        step = SheetBound(setting=f"tau.{table}", coefficients=steps)
    return (MovedAnswers(SheetBound(coefficients=(Fraction(cells),)), step),)


def _bound(config: PhsafeConfig, table: str) -> SheetBound:
    own = neighbors_of(config.sensitivity)

    def size(tau: int | None) -> Fraction:
        bound = sensitivity_bound(config.sensitivity, own, tau)
        return bound.l2_squared if config.definition is Definition.ZCDP else bound.l1

    if table not in truncated_tables():
        return SheetBound(coefficients=(size(None),))
    return SheetBound(setting=f"tau.{table}", coefficients=quadratic(size))


def _rows(config: PhsafeConfig, fact: QueryFacts, tables: tuple[str, ...]) -> Iterator[Row]:
    """One row of a measured table and level; of a derived one as many as there are numbers of draws in its cells."""
    measured = fact.source == fact.table
    facets = (tables.index(fact.table), tuple(phsafe_definitions().level_labels).index(fact.level))
    draws = dict.fromkeys(fact.terms.values())
    for terms in draws:
        cells = [cell for cell, count in fact.terms.items() if count == terms]
        note = f"; cell {', '.join(cells)}" if len(draws) > 1 else ""
        budget = config.budgets[fact.source, fact.level] if measured else Fraction(0)
        yield Row(
            id=f"{fact.table}.{fact.level}{f'.{terms}' if note else ''}",
            section=fact.table if measured else f"{fact.table}, summed from {fact.source} at no further loss",
            label=f"{fact.label}{note}",
            name=f"{fact.table}, {fact.label}{note}",
            facets=facets,
            budget=budget if isinstance(budget, Fraction) else Fraction(0),
            bound=_bound(config, fact.source),
            target=fact.target,
            places=fact.places,
            cells=len(cells),
            derived=None if measured else Derived(f"{fact.source}.{fact.level}", terms),
            toml=(f"budget.{fact.table}", fact.level) if measured else (),
            json=("privacy_budget", fact.table, fact.level) if measured else (),
            moved=_moved_answers(config, fact.source) if measured else (),
        )


def _json(config: PhsafeConfig) -> dict[str, Any]:
    """The Bureau's configuration; the page puts tau and budgets in their places."""
    return {
        "privacy_budget": {
            table: {level: f"={config.budgets[table, level]}" for level in levels_of(table)}
            for table in measured_tables()
        },
        "tau": {table: f"={config.tau[table]}" for table in config.tau},
        "state_filter": list(config.states),
        "reader": config.reader,
        "privacy_defn": config.definition.value,
        **({} if config.sensitivity == SENSITIVITIES[0] else {"sensitivity": config.sensitivity}),
    }


def _paper(config: PhsafeConfig) -> PaperTable:
    lines = []
    for table in measured_tables():
        for level, label in phsafe_definitions().level_labels.items():
            target, places = config.moe_targets.get((table, level)), config.paper_places(table, level)
            if target is not None and places is not None:
                tau = f"={'tau.' + table}" if table in truncated_tables() else "NA"
                lines.append(PaperLine((table, tau, label), target, places, (f"{table}.{level}",)))
    return PaperTable("Table 10 of the PHSafe paper", TABLE_10, tuple(lines))
