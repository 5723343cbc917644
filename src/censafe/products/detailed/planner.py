"""What ``plan`` and the explorer page use of both SafeTab products: rows, margins and targets, what one record moves, and the paper's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, Final

from censafe.errors import CheckError, ConfigError
from censafe.model import Definition, Neighbors, PartPlan, QueryPlan, ReleasePlan
from censafe.model.entries import nearest
from censafe.model.safe_text import csv_text
from censafe.planning.explorer.sheets import (
    Choice,
    ExplorerSheet,
    Extra,
    Facet,
    MovedAnswers,
    PaperLine,
    PaperTable,
    Question,
    Row,
    Share,
    SheetBound,
    SheetRelation,
    SheetSetting,
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
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import (
    REPLACE_FACTOR,
    STABILITY_RULES,
    PopulationGroupLevel,
    Universe,
)
from censafe.products.detailed.config import (
    CLASSES,
    SafetabConfig,
    SafetabPConfig,
    budget_noun,
    bureau_name,
    load_h_config,
    load_p_config,
    threshold_noun,
)
from censafe.products.detailed.plan import (
    MOST_RACE_CODES,
    area_totals,
    plan_release,
    published_from,
    stabilities,
    stabilities_by_codes,
)
from censafe.products.detailed.tables import measured_table, tables_of
from censafe.products.planned import budget_for_margin, check_margins

REGIONS: Final = {
    "USA": 1,
    "STATE": 51,
    "COUNTY": 3_143,
    "TRACT": 84_414,
    "PLACE": 31_900,
    "AIANNH": 700,
    "PR-STATE": 1,
    "PR-COUNTY": 78,
    "PR-TRACT": 981,
    "PR-PLACE": 292,
}
"""Regions of the census of 2020 by type; places and areas of AIANNH are round numbers."""


CONFIDENCE: Final = Fraction(19, 20)


def published_at_most(
    config: SafetabConfig, level: PopulationGroupLevel, query: str, iterations: int
) -> tuple[int, int] | None:
    """Groups of a level, and their rows if every group had the most detailed table and none were left out.

    Which table a group gets is decided by its noisy size; a group of SafeTab-P in a detailed-only iteration has only a total, and
    stage 1 is not published. Groups of SafeTab-H are those that have a total to begin with.

    Example:
        >>> from censafe.products.detailed.config import load_p_config
        >>> config = load_p_config("ddhca")
        >>> published_at_most(config, PopulationGroupLevel("COUNTY", 2), "stage2", 1000)
        (3143000, 154007000)
        >>> published_at_most(config, PopulationGroupLevel("USA", 2), "detailed_only", 1000)
        (1000, 1000)
    """
    if query == "stage1":
        return None
    tables = tables_of(config.product)
    widths = tables.table(tables.measured_by(query)).widths
    regions = len(config.states) if level.region_type == "STATE" else REGIONS[level.region_type]
    groups = regions * iterations
    return groups, groups * (widths[0] if query == "detailed_only" else max(widths))


_BY_SEX: Final = "T02001-3 by sex"
_AT_MOST: Final = (
    "Groups at most: regions of the census of 2020 times iterations. Answers at most: as if every group had its most detailed table. "
    "The noise decides which table a group gets, so there are far fewer"
)


def query_facts(config: SafetabConfig, universe: Universe, plan: ReleasePlan) -> tuple[QueryFacts, ...]:
    """Every query of the plan in its order, each followed by the sums of its cells that are published.

    The margins of the papers are those of one cell. The sums are shown in JSON and CSV only.
    """
    levels = {level.key: level for level in config.levels}
    stable = stabilities_by_codes(config, universe)
    return tuple(
        fact
        for part in plan.parts
        for query in part.queries
        for fact in _facts_of(config, universe, query, levels[query.level], stable[levels[query.level]])
    )


def plan_notes(config: SafetabConfig, plan: ReleasePlan) -> tuple[str, ...]:
    """Sentences about the shares of the total and about sums of cells."""
    symbol = plan.definition.symbol
    notes = []
    if config.run_us and config.run_pr:
        shares = " and ".join(
            f"{decimal_text(total)} for {area}" for area, total in area_totals(plan).items()
        )
        notes.append(
            f"The total is {symbol} {shares}; a {plan.unit.value} record is in one of them, so its own loss is "
            "that share; the ledger charges the sum."
        )
    if isinstance(config, SafetabPConfig):
        notes.append(
            "Detailed-only iterations and the others are different rows of a record: a level costs its "
            f"{symbol} once, for the first, and for stages 1 and 2 together."
        )
        notes.append("Answers of stage 1 choose the table of a group and are not published.")
    at_most = _AT_MOST
    if not isinstance(config, SafetabPConfig):
        at_most += "; only groups with a total in the input have any"
    elif config.zero_suppression_chance:
        left = decimal_text(100 * (1 - config.zero_suppression_chance))
        at_most += (
            f"; and of the groups below states without any person at most {left}% are published, on average"
        )
    notes.append(f"{at_most}.")
    notes.append(
        "Margins are those of one measured cell, or of a group with only a total; totals that are sums of cells "
        "have larger ones (--csv or --json show them)."
    )
    return tuple(notes)


def _facts_of(
    config: SafetabConfig,
    universe: Universe,
    query: QueryPlan,
    level: PopulationGroupLevel,
    stable: tuple[int, ...],
) -> Iterator[QueryFacts]:
    candidates = universe.candidates(level.level, level.granularity)
    detailed_only = int(candidates.detailed_only.sum())
    iterations, smallest, target = candidates.size, None, config.moe_targets.get(level.key)
    sums: Mapping[str, Mapping[str, int]] = {}
    if isinstance(config, SafetabPConfig):
        iterations = detailed_only if query.table == "detailed_only" else candidates.size - detailed_only
        if not iterations:
            return
        if query.table == "stage2":
            smallest, sums = published_from(config, level, query), _person_sums()
    else:
        sums = {
            shell.table: {cell.code: len(cell.members) for cell in shell.cells if len(cell.members) > 1}
            for shell in tables_of("safetab-h").table(query.table).shells.values()
            if len(shell.cells) > shell.basis
        }

    base = QueryFacts(
        table=query.table,
        level=level.key,
        label=level.label,
        source=query.table,
        tau=None,
        regions=None,
        iterations=iterations,
        terms={"cell": 1},
        target=target,
        places=config.places(level) if target is not None else None,
        stability=stable[config.max_race_codes - 1],
        stability_by_codes=stable,
        published_from=smallest,
        detail=False,
    )
    groups, answers = published_at_most(config, level, query.table, iterations) or (None, None)
    yield replace(base, groups_at_most=groups, at_most=answers)
    added_up = replace(base, target=None, places=None, published_from=None, detail=True)
    for table, terms in sums.items():
        yield replace(added_up, table=table, terms=terms)


def _person_sums() -> dict[str, dict[str, int]]:
    """How many measured cells are summed in totals and by sex, by the table that a group gets."""
    (table,) = tables_of("safetab-p").tables
    totals, by_age = table.layouts
    return {
        "T01001": {
            table.shells[level].table: shell.basis
            for level, shell in totals.shells.items()
            if shell.basis > 1
        },
        _BY_SEX: {
            shell.table: len(cell.members)
            for shell in by_age.shells.values()
            for cell in shell.cells
            if cell.ages is None
        },
    }


def budgets_for_margins(
    config: SafetabConfig, universe: Universe, margins: Mapping[str, Fraction], confidence: Fraction
) -> dict[str, str]:
    """Overrides of budgets that reach target margins of error of one cell, rho = s z^2 / (2 MOE^2).

    For SafeTab-P the cells of stage 2 have 1 - f of the budget.

    Args:
        margins: target margin by level (``county_2``), in persons or households; for SafeTab-H by class and level
            (``t3.county_2``), or by one of the two.

    Source: SafeTab-P paper, appendix B.

    Example:
        >>> from censafe.products.detailed.config import load_p_config
        >>> from censafe.products.detailed.codes.parameters import read_universe
        >>> config, universe = load_p_config("ddhca"), read_universe()
        >>> budgets_for_margins(config, universe, {"county_2": Fraction(11)}, Fraction(19, 20))
        {'budget.county_2': '0.158744'}
    """
    check_margins(config.definition, margins, confidence)
    stable = stabilities(config, universe)
    share = 1 - config.stage_1_fraction if isinstance(config, SafetabPConfig) else Fraction(1)
    levels, budgets = _levels_by_name(config), {}
    for key, margin in margins.items():
        named = [at for name, at in levels.items() if key in (name.replace("/", "."), at[1].key, at[0])]
        if not named:
            names = [name.replace("/", ".") for name in levels]
            raise ConfigError(
                f"the run has no level {key!r}; give one such as {names[0]}.{nearest(key, names)}"
            )
        for table_class, level in named:
            noun = budget_noun(config.product, table_class, level)
            budgets[noun] = budget_for_margin(margin, Fraction(stable[level]), confidence, share)
    return budgets


def _levels_by_name(config: SafetabConfig) -> dict[str, tuple[str, PopulationGroupLevel]]:
    """Class and level by the name of the budget, ``county_2`` or ``t3/county_2``."""
    return {
        budget_noun(config.product, table_class, level).removeprefix("budget.").replace(".", "/"): (
            table_class,
            level,
        )
        for table_class in config.classes
        for level in config.levels
    }


_CALIBRATED_DECIMALS: Final = 6  # of the production budgets


TABLE_9: Final = (
    "population_group_level", "moe_target_95", "rho_unbounded_household_type", "rho_unbounded_tenure", "rho_bounded_household_type",
    "rho_bounded_tenure",
)  # fmt: skip
"""Columns of Table 9 of the SafeTab-H paper."""


def table_9(config: SafetabConfig, universe: Universe) -> str:
    """Rho of every level from its target as comma-separated text: s z^2 / (2 MOE^2) with z = 1.96 and s = 9.

    The factor s, which the paper's Corollary 2 leaves out, is in its numbers. The result rounded to six decimals must
    equal the budgets of both classes of tables; it is printed with the digits of the paper, and the bounded loss is twice
    the printed value.

    Source: SafeTab-H paper, Table 9.
    """
    if config.product != "safetab-h" or not config.moe_targets:
        raise ConfigError(
            f"{config.origin}: no moe_target is stored; the paper's table needs one (see ddhcb)"
        )
    if config.definition is not Definition.ZCDP:
        raise ConfigError(f"{config.origin}: the paper's table is for privacy_definition zcdp, not puredp")
    stable, rows, wrong = stabilities(config, universe), [], []
    for level in sorted(config.levels, key=lambda level: -level.level):
        target = config.moe_targets.get(level.key)
        if target is None:
            continue
        rho = rho_for_margin(target, Fraction(stable[level]), CONFIDENCE)
        calibrated = round(rho, _CALIBRATED_DECIMALS)
        for table_class in config.classes:
            if config.budgets[table_class, level.key] != calibrated:
                noun = budget_noun(config.product, table_class, level)
                wrong.append(
                    f"  {noun}: target {target} asks for rho {fixed_text(calibrated, _CALIBRATED_DECIMALS)}"
                )
        places = config.places(level)
        printed = round(rho, places)
        unbounded, bounded = fixed_text(printed, places), fixed_text(2 * printed, places)
        rows.append((level.label, decimal_text(target), unbounded, unbounded, bounded, bounded))
    if wrong:
        raise CheckError("\n".join([f"{config.origin}: budgets differ from their targets", *wrong]))
    return csv_text([TABLE_9, *rows], line_end="\r\n")


def record_questions(plan: ReleasePlan) -> tuple[RecordQuestion, ...]:
    """One question for each area, as no record is in both: is this record in the data?

    A record is in as many groups of a level as the noise is made for, and moves one cell of each by one in every query. In a part with
    disjoint queries its groups are those of the larger set of queries, both stages of SafeTab-P.
    """
    areas: dict[str, list[PartPlan]] = {}
    for part in plan.parts:
        area = "Puerto Rico" if part.queries[0].level.startswith("pr_") else "the United States"
        areas.setdefault(area, []).append(part)
    return tuple(
        RecordQuestion(
            f"one {plan.unit.value}'s record of {area}, all tables",
            plan.settings[f"neighbors.{Neighbors.ADD_REMOVE.value}"],
            tuple(
                MovedQuery(
                    part.queries[position].law.parameter,
                    int(plan.settings[f"stability.{part.queries[0].level}"]),
                )
                for part in (parts if plan.definition is Definition.ZCDP else ())
                for position in max(part.disjoint or (range(len(part.queries)),), key=len)
            ),
            sum((part.cost for part in parts), Fraction(0)),
            plan.definition,
        )
        for area, parts in areas.items()
    )


@dataclass(frozen=True)
class PlannedConfig:
    """A checked configuration and its universe."""

    config: SafetabConfig
    universe: Universe

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user."""
        return self.config.warnings


@dataclass(frozen=True)
class SafetabPlanner:
    """The planner of one of the products: its reader of configurations, and what both products do with these."""

    load_config: Callable[[str, Mapping[str, str]], SafetabConfig]

    CONFIDENCE = CONFIDENCE

    def load(
        self,
        source: str,
        overrides: Mapping[str, str],
        margins: Mapping[str, Fraction],
        confidence: Fraction,
    ) -> PlannedConfig:
        """Read and check a configuration and its parameter files, with budgets that reach margins of error."""
        config = self.load_config(source, overrides)
        universe = read_universe(config.universe)
        if margins:
            budgets = budgets_for_margins(config, universe, margins, confidence)
            config = self.load_config(source, {**overrides, **budgets})
        return PlannedConfig(config, universe)

    def report(self, planned: PlannedConfig, *, confidence: Fraction, delta: Fraction) -> PlanReport:
        """Cost, noise and margins of every level."""
        config = planned.config
        plan = plan_release(config, planned.universe)
        return with_counts(
            plan_report(
                plan,
                query_facts(config, planned.universe, plan),
                origin=config.origin,
                confidence=confidence,
                delta=delta,
                warnings=config.warnings,
                notes=plan_notes(config, plan),
            )
        )

    def paper(self, planned: PlannedConfig) -> str:
        """Table 9 of the SafeTab-H paper."""
        return table_9(planned.config, planned.universe)

    def budgets_of(self, planned: PlannedConfig) -> dict[str, Fraction]:
        """Budgets above 0 by level, for SafeTab-H by class and level.

        Example:
            >>> HOUSEHOLDS.budgets_of(HOUSEHOLDS.load("ddhcb", {}, {}, CONFIDENCE))["t3/county_2"]
            Fraction(142869, 1000000)
        """
        budgets = {
            name: planned.config.budgets[table_class, level.key]
            for name, (table_class, level) in _levels_by_name(planned.config).items()
        }
        return {
            name: budget for name, budget in budgets.items() if isinstance(budget, Fraction) and budget > 0
        }

    def named_answers(self, planned: PlannedConfig, name: str, *, combined: bool) -> tuple[TargetQuery, ...]:
        """The measured cells of the level that a target names; for SafeTab-P those of stage 2.

        Every cell has one measurement, so there is nothing to combine.

        Example:
            >>> config = HOUSEHOLDS.load("ddhcb", {}, {}, CONFIDENCE)
            >>> [answers.name for answers in HOUSEHOLDS.named_answers(config, "county_2", combined=False)]
            ['t3/county_2', 't4/county_2']
        """
        config = planned.config
        if config.definition is not Definition.ZCDP:
            raise ConfigError("targets are turned into budgets under privacy_definition zcdp only")
        levels, target = _levels_by_name(config), name.replace(".", "/", 1)
        named = {
            noun: level
            for noun, (table_class, level) in levels.items()
            if target in (noun, level.key, table_class if "/" in noun else None)
        }
        if not named:
            names = list(levels)
            raise ConfigError(
                f"the run has no level {name!r}; give one such as {names[0]}.{nearest(name, names)}"
            )
        stable = stabilities(config, planned.universe)
        share = 1 - config.stage_1_fraction if isinstance(config, SafetabPConfig) else Fraction(1)
        return tuple(
            TargetQuery(
                noun,
                (Term(Fraction(stable[level]) / (2 * share), {noun: Fraction(1)}),) if stable[level] else (),
                True,
            )
            for noun, level in named.items()
        )

    def overrides(self, planned: PlannedConfig, budgets: Mapping[str, Fraction]) -> dict[str, str]:
        """``--set`` keys and values."""
        config = planned.config
        levels = _levels_by_name(config)
        return {budget_noun(config.product, *levels[name]): str(value) for name, value in budgets.items()}

    def questions(self, planned: PlannedConfig) -> tuple[RecordQuestion, ...]:
        """One for every area."""
        return record_questions(plan_release(planned.config, planned.universe))

    def effort(
        self, planned: PlannedConfig, size: int | None, estimated: EstimatedTables | None = None
    ) -> Effort:
        """Time and memory for a number of records; no estimates of tables."""
        refuse_tables(estimated, planned.config.product)
        return effort_of(rate_of(planned.config.product), size)


PERSONS: Final = SafetabPlanner(load_p_config)
HOUSEHOLDS: Final = SafetabPlanner(load_h_config)


_CHOICES: Final = (
    Choice("privacy_definition", "definition of privacy", tuple(one.value for one in Definition)),
    Choice("stability", "groups of a record", STABILITY_RULES),
)
_AREAS: Final = ("United States", "Puerto Rico")
_RACES: Final = "max_race_codes"
_STAGE: Final = "stage_1_fraction"


@cache
def sheet(shipped: ShippedConfig) -> ExplorerSheet:
    """One shipped configuration of SafeTab-P or SafeTab-H.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> sheet(get_shipped("ddhca")).rows[1].name, sheet(get_shipped("ddhcb")).rows[1].name
        ('Detailed DHC-A, Nation, Detailed', 'Household type, Nation, Detailed')
    """
    return with_variants(partial(_sheet, shipped), _CHOICES)


def _sheet(shipped: ShippedConfig, chosen: Mapping[str, str]) -> ExplorerSheet:
    load_config = load_p_config if shipped.product == "safetab-p" else load_h_config
    config: SafetabConfig = load_config(shipped.name, chosen)
    universe = read_universe(config.universe)
    person = config.product == "safetab-p"
    bounds = {  # levels without any iteration are left out
        level: SheetBound(setting=_RACES, values=tuple(map(Fraction, numbers)))
        for level, numbers in stabilities_by_codes(config, universe).items()
        if all(numbers)
    }
    labels = tuple(dict.fromkeys(level.label for level in bounds))
    titles = tuple(
        "Detailed DHC-A" if person else measured_table(table).title for table in CLASSES[config.product]
    )
    rows = tuple(_rows(config, bounds, titles, labels))
    unit = "person" if person else "household"
    return ExplorerSheet(
        key=shipped.name,
        product=config.product,
        title=shipped.title,
        symbol=config.definition.symbol,
        law="gaussian" if config.definition is Definition.ZCDP else "geometric",
        unit=unit,
        counted=f"{unit}s",
        confidence=CONFIDENCE,
        relations=(
            SheetRelation("add_remove", "unbounded", Fraction(1), f"one {unit} record is added or removed"),
            SheetRelation(
                "replace", "bounded", Fraction(REPLACE_FACTOR), f"one {unit} record is replaced by another"
            ),
        ),
        settings=_settings(config),
        facets=(Facet("Areas", _AREAS), Facet("Tables", titles), Facet("Levels", labels)),
        totals=(0, 1) if len(titles) > 1 else (0,),
        rows=rows,
        toml=shipped.text,
        json=_json(config),
        paper=_paper(config, tuple(bounds)) if config.moe_targets and not person else None,
        notes=(
            "A record is in the United States or in Puerto Rico, so its own loss is that area's total; "
            "the sum is a bound for every record.",
        ),
        # is a record in the data? One question for each area, as no record is in both
        questions=tuple(
            Question(f"one {unit}'s record of {area}", f"one {unit} record is added or removed", ids)
            for place, area in enumerate(_AREAS if config.definition is Definition.ZCDP else ())
            if (ids := tuple(row.id for row in rows if row.facets[0] == place))
        ),
        chosen={"privacy_definition": config.definition.value, "stability": config.stability},
    )


def _rows(
    config: SafetabConfig,
    bounds: Mapping[PopulationGroupLevel, SheetBound],
    titles: tuple[str, ...],
    labels: tuple[str, ...],
) -> Iterator[Row]:
    """Area by area, class by class, the levels that have a bound."""
    for place, area in enumerate(_AREAS):
        for position, (table_class, title) in enumerate(zip(config.classes, titles, strict=True)):
            for level, bound in bounds.items():
                if level.region_type.startswith("PR") != bool(place):
                    continue
                noun = budget_noun(config.product, table_class, level)
                section, _, key = noun.rpartition(".")
                budget = config.budgets[table_class, level.key]
                yield Row(
                    id=noun.removeprefix("budget."),
                    section=f"{title}, {area}",
                    label=level.label,
                    name=f"{title}, {level.label}",
                    facets=(place, position, labels.index(level.label)),
                    budget=budget if isinstance(budget, Fraction) else Fraction(0),
                    bound=bound,
                    target=config.moe_targets.get(level.key),
                    places=None,
                    toml=(section, key),
                    json=(bureau_name(config.product, noun),),
                    **_answers(config, level, bound),
                )


def _settings(config: SafetabConfig) -> tuple[SheetSetting, ...]:
    races = SheetSetting(
        key=_RACES,
        label="race codes of a record",
        help="Largest number of race codes of one record that are used; it decides in how many groups a record can be.",
        kind="integer",
        low=1,
        high=MOST_RACE_CODES,
        value=Fraction(config.max_race_codes),
        toml=("", _RACES),
        json=(_RACES,),
    )
    if not isinstance(config, SafetabPConfig):
        return (races,)
    stage = SheetSetting(
        key=_STAGE,
        label="stage 1 fraction",
        help="Share of a level's budget that chooses the table of each group; the rest measures the cells.",
        kind="fraction",
        low=0,
        high=1,
        value=config.stage_1_fraction,
        toml=("", _STAGE),
        json=(bureau_name(config.product, _STAGE),),
    )
    return (races, stage)


def _answers(config: SafetabConfig, level: PopulationGroupLevel, bound: SheetBound) -> dict[str, Any]:
    """What a record moves: the cells, and with SafeTab-P the totals of stage 1, which share the budget."""
    full, step = Fraction(1), SheetBound(coefficients=(Fraction(1),))
    if not isinstance(config, SafetabPConfig):
        return {"moved": (MovedAnswers(bound, step),)}
    stages = (Share(Fraction(0), full, _STAGE), Share(full, -full, _STAGE))
    own: dict[str, Any] = {
        "moved": tuple(MovedAnswers(bound, step, share) for share in stages),
        "share": Share(full, -full, _STAGE),
        "extras": (
            Extra("totals of detailed-only groups", Share()),
            Extra("stage 1, not published", Share(Fraction(0), full, _STAGE)),
        ),
    }
    if level.granularity == "coarse" and config.zero_suppression_chance:
        own["suppression"] = config.zero_suppression_chance
    return own


def _json(config: SafetabConfig) -> dict[str, Any]:
    """The Bureau's configuration; the page puts budgets, race codes and the stage 1 fraction in their places."""
    product = config.product

    def name(noun: str) -> str:
        return bureau_name(product, noun)

    values: dict[str, Any] = {_RACES: f"={config.max_race_codes}"}
    for table_class in config.classes:
        for level in config.levels:
            budget = config.budgets[table_class, level.key]
            values[name(budget_noun(product, table_class, level))] = f"={budget}"
    if isinstance(config, SafetabPConfig):
        values[name(_STAGE)] = f"={config.stage_1_fraction}"
    for table_class in config.classes:
        for level in config.levels:
            group, _, key = name(threshold_noun(product, table_class, level)).partition(".")
            values.setdefault(group, {})[key] = list(config.thresholds[table_class, level.key])
    if isinstance(config, SafetabPConfig):
        values["zero_suppression_chance"] = f"={config.zero_suppression_chance}"
    values |= {
        name("negatives"): config.negatives == "keep",
        "run_us": config.run_us,
        "run_pr": config.run_pr,
        "reader": config.reader,
        name("states"): list(config.states),
        name("privacy_definition"): config.definition.value,
        **({} if config.stability == STABILITY_RULES[0] else {name("stability"): config.stability}),
    }
    return values


def _paper(config: SafetabConfig, levels: tuple[PopulationGroupLevel, ...]) -> PaperTable:
    lines = []
    for level in sorted(levels, key=lambda level: -level.level):
        target = config.moe_targets.get(level.key)
        if target is not None:
            ids = tuple(
                budget_noun(config.product, table_class, level).removeprefix("budget.")
                for table_class in config.classes
            )
            lines.append(PaperLine((level.label,), target, config.places(level), ids))
    return PaperTable("Table 9 of the SafeTab-H paper", TABLE_9, tuple(lines))
