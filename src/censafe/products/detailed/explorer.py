"""What the explorer page needs of both SafeTab products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Any, Final

from censafe.model import Definition
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
from censafe.products.configuration.source import ShippedConfig
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.stability import REPLACE_FACTOR, STABILITY_RULES
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from censafe.products.detailed.config import SafetabConfig, SafetabPConfig, load_h_config, load_p_config
from censafe.products.detailed.keys import CLASSES, budget_noun, bureau_name, threshold_noun
from censafe.products.detailed.plan import MOST_RACE_CODES, stabilities_by_codes
from censafe.products.detailed.planner import CONFIDENCE, TABLE_9
from censafe.products.detailed.product_tables import measured_table

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
