"""What ``plan`` and the explorer page use of PHSafe: rows, budgets, margins and targets, what one protected change moves, and the paper's table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final

from censafe.errors import CheckError, ConfigError
from censafe.model import Definition, Neighbors
from censafe.model.entries import nearest
from censafe.model.safe_text import csv_text
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
from censafe.planning.numbers import decimal_text, fixed_text
from censafe.planning.prices.extras import (
    Effort,
    EstimatedTables,
    effort_of,
    rate_of,
    refuse_tables,
    with_counts,
)
from censafe.planning.prices.meaning import RecordQuestion
from censafe.planning.prices.rows import PlanReport, QueryFacts, plan_report
from censafe.planning.prices.targets import TargetQuery, Term
from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.margins import rho_for_margin
from censafe.products.configuration.source import ShippedConfig
from censafe.products.phsafe.config import PhsafeConfig, load_phsafe_config
from censafe.products.phsafe.definitions import (
    SENSITIVITIES,
    Sensitivity,
    levels_of,
    loss_factor,
    measured_tables,
    neighbors_of,
    phsafe_definitions,
    relation_text,
    sensitivity_bound,
    truncated_tables,
)
from censafe.products.phsafe.plan import plan_release
from censafe.products.planned import budget_for_margin, check_margins

CONFIDENCE: Final = Fraction(9, 10)


def query_facts(config: PhsafeConfig) -> tuple[QueryFacts, ...]:
    """Size and truncation of every published table and level, measured or derived, in the order of the paper's table.

    Rows of a state level are counted for the states of the configuration; a release has those of them that
    occur in the geography file.
    """
    definitions = phsafe_definitions()
    facts = []
    for table in definitions.tables:
        terms = (
            {cell: len(sources) for cell, sources in table.derived.cells.items()}
            if table.derived
            else dict.fromkeys(table.basis, 1)
        )
        source = table.derived.source if table.derived else table.name
        levels = definitions.levels(table)
        for level, label in definitions.level_labels.items():
            if level not in levels:
                continue
            geography, group = levels[level]
            facts.append(
                QueryFacts(
                    table=table.name,
                    level=level,
                    label=label,
                    source=source,
                    tau=config.tau.get(source),
                    regions=len(geography.region_ids(config.states)),
                    iterations=len(group.iterations),
                    terms=terms,
                    target=config.moe_targets.get((table.name, level)),
                    places=config.paper_places(table.name, level),
                )
            )
    return tuple(facts)


def budgets_of(config: PhsafeConfig) -> dict[str, Fraction]:
    """Budgets above 0 by ``TABLE/LEVEL``.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> budgets_of(load_phsafe_config("sdhc-us"))["PH3/state_A-G"]
        Fraction(10359, 15625)
    """
    return {
        f"{query.table}/{query.level}": query.cost
        for part in plan_release(config).parts
        for query in part.queries
    }


def named_answers(config: PhsafeConfig, name: str, *, combined: bool) -> tuple[TargetQuery, ...]:
    """The published table and level, or all levels of a table, that a target names.

    A table that is computed from another one spends that one's budget; its cell with the most draws decides. Every answer
    has one measurement, so there is nothing to combine.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> [one.name for one in named_answers(load_phsafe_config("sdhc-us"), "PH6", combined=False)]
        ['PH6/usa_*', 'PH6/state_*']
    """
    if config.definition is not Definition.ZCDP:
        raise ConfigError("targets are turned into budgets under privacy_definition zcdp only")
    table, _, level = name.replace(".", "/", 1).partition("/")
    facts = [fact for fact in query_facts(config) if fact.table == table]
    if not facts:
        tables = list(dict.fromkeys([*measured_tables(), *(fact.table for fact in query_facts(config))]))
        raise ConfigError(
            f"there is no table {table!r}; they are {', '.join(tables)}.{nearest(table, tables)}"
        )
    chosen = [fact for fact in facts if level in ("", fact.level)]
    if not chosen:
        levels = ", ".join(fact.level for fact in facts)
        raise ConfigError(f"{table} has no level {level!r}; its levels are {levels}")
    answers = []
    for fact in chosen:
        bound = sensitivity_bound(
            config.sensitivity, neighbors_of(config.sensitivity), config.tau.get(fact.source)
        )
        draws = max(fact.terms.values())
        term = Term(draws * bound.l2_squared / 2, {f"{fact.source}/{fact.level}": Fraction(1)})
        answers.append(TargetQuery(f"{fact.table}/{fact.level}", (term,), draws == 1))
    return tuple(answers)


def overrides(config: PhsafeConfig, budgets: Mapping[str, Fraction]) -> dict[str, str]:
    """``--set`` keys and values.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> overrides(load_phsafe_config("sdhc-us"), {"PH3/state_A-G": Fraction(1, 3)})
        {'budget.PH3.state_A-G': '1/3'}
    """
    return {f"budget.{name.replace('/', '.', 1)}": str(value) for name, value in budgets.items()}


def budgets_for_margins(
    config: PhsafeConfig, margins: Mapping[str, Fraction], confidence: Fraction = Fraction(9, 10)
) -> dict[str, str]:
    """Overrides of budgets that reach target margins of error by the paper's rule, rho = L2^2 z^2 / (2 MOE^2).

    Args:
        margins: target margin by ``TABLE`` (all its levels) or ``TABLE.LEVEL``, in persons or units.

    Source: PHSafe paper, section on budget planning.

    Example:
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> budgets_for_margins(load_phsafe_config("sdhc-us"), {"PH3.state_A-G": Fraction(20)})
        {'budget.PH3.state_A-G': '0.662977'}
    """
    check_margins(config.definition, margins, confidence)
    budgets: dict[str, str] = {}
    for key, margin in margins.items():
        table, _, level = key.partition(".")
        if table not in measured_tables():
            raise ConfigError(
                f"there is no measured table {table!r}; they are {', '.join(measured_tables())}."
                f"{nearest(table, measured_tables())}"
            )
        levels = levels_of(table)
        if level and level not in levels:
            raise ConfigError(f"{table} has no level {level!r}; its levels are {', '.join(levels)}")
        bound = sensitivity_bound(config.sensitivity, neighbors_of(config.sensitivity), config.tau.get(table))
        budget = budget_for_margin(margin, bound.l2_squared, confidence)
        budgets |= {f"budget.{table}.{name}": budget for name in ((level,) if level else levels)}
    return budgets


TABLE_10: Final = ("table", "tau", "population_group_level", "moe_target_90", "rho_unbounded", "rho_bounded")
"""Columns of Table 10 of the PHSafe paper."""


def paper(config: PhsafeConfig) -> str:
    """Table 10 of the PHSafe paper: rho of every table and level from its target, (2 tau + 2)^2 z^2 / (2 MOE^2) with z = 1.645.

    The result is rounded to the digits that the paper prints and must equal the budget; the bounded loss is
    twice the rounded value.

    Source: PHSafe paper, Table 10 and the section on budget planning.
    """
    if not config.moe_targets:
        raise ConfigError(
            f"{config.origin}: no moe_target is stored; the paper's table needs one (see sdhc-us)"
        )
    if config.definition is not Definition.ZCDP or config.sensitivity != "bureau":
        raise ConfigError(
            f"{config.origin}: the paper's table is for privacy_definition zcdp and sensitivity bureau, "
            f"not {config.definition.value} and {config.sensitivity}"
        )
    rows, wrong = [], []
    for table in measured_tables():
        tau = config.tau.get(table)
        bound = sensitivity_bound("bureau", Neighbors.ADD_REMOVE, tau)
        for level, label in phsafe_definitions().level_labels.items():
            target = config.moe_targets.get((table, level))
            places = config.paper_places(table, level)
            if target is None or places is None:
                continue
            rho = round(rho_for_margin(target, bound.l2_squared, CONFIDENCE), places)
            if rho != config.budgets[table, level]:
                wrong.append(f"  {table}.{level}: target {target} asks for rho {fixed_text(rho, places)}")
            losses = fixed_text(rho, places), decimal_text(2 * rho)
            rows.append((table, "NA" if tau is None else str(tau), label, decimal_text(target), *losses))
    if wrong:
        raise CheckError("\n".join([f"{config.origin}: budgets differ from their targets", *wrong]))
    return csv_text([TABLE_10, *rows], line_end="\r\n")


def largest_change(sensitivity: Sensitivity, tau: int | None) -> tuple[int, int]:
    """Cells, and the step of each, of a change with the largest squared sum that the noise is made for.

    Example:
        >>> largest_change("bureau", 10), largest_change("household-local", 10), largest_change("bureau", None)
        ((1, 22), (2, 10), (1, 2))
    """
    rows = 1 if tau is None else tau
    if sensitivity == "bureau":
        return 1, 2 if tau is None else 2 * rows + 2
    return 2, rows if sensitivity == "household-local" else 2 * rows


def questions(config: PhsafeConfig) -> tuple[RecordQuestion, ...]:
    """One question: is the record of this person as supposed? Every query moves by the whole bound.

    Example:
        >>> from censafe.privacy.loss.loss_law import loss_of
        >>> from censafe.products.phsafe.config import load_phsafe_config
        >>> (question,) = questions(load_phsafe_config("sdhc-us"))
        >>> question.loss == loss_of(question.queries)
        True
    """
    plan = plan_release(config)
    moved = []
    for part in plan.parts:
        for query in part.queries:
            cells, step = largest_change(config.sensitivity, config.tau.get(query.table))
            if plan.definition is Definition.ZCDP:
                moved.append(MovedQuery(query.law.parameter, cells, step))
    words = relation_text(config.sensitivity, neighbors_of(config.sensitivity))
    return (
        RecordQuestion("one person's record, all tables", words, tuple(moved), plan.total, plan.definition),
    )


def load(
    source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
) -> PhsafeConfig:
    """Read and check a configuration, with budgets that reach the target margins."""
    config = load_phsafe_config(source, overrides)
    if not margins:
        return config
    return load_phsafe_config(source, {**overrides, **budgets_for_margins(config, margins, confidence)})


def report(config: PhsafeConfig, *, confidence: Fraction, delta: Fraction) -> PlanReport:
    """Cost, noise and margins of every table and level."""
    return with_counts(
        plan_report(
            plan_release(config),
            query_facts(config),
            origin=config.origin,
            confidence=confidence,
            delta=delta,
            warnings=config.warnings,
        )
    )


def effort(config: PhsafeConfig, size: int | None, estimated: EstimatedTables | None = None) -> Effort:
    """Time and memory for a number of persons; no estimates of tables."""
    refuse_tables(estimated, "phsafe")
    return effort_of(rate_of("phsafe"), size)


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
