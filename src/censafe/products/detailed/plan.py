"""What a SafeTab release measures, in which order, and what it costs; no data is opened."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from typing import Final

from censafe.errors import ConfigError
from censafe.model import Neighbors, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.privacy.measure.adaptive import suppression_threshold
from censafe.products.detailed.codes.universe import (
    REPLACE_FACTOR,
    PopulationGroupLevel,
    Universe,
    group_noise_law,
    stability,
)
from censafe.products.detailed.config import SafetabConfig, SafetabPConfig, threshold_noun

MOST_RACE_CODES: Final = 8
"""Race codes that a record can have."""

P_QUERIES: Final = ("detailed_only", "stage1", "stage2")
"""Queries of a part of SafeTab-P, in the order of their ordinals."""
P_DISJOINT: Final = ((0,), (1, 2))
"""Detailed-only iterations and the others are different rows of a record."""
_RELATIONS: Final = {
    Neighbors.ADD_REMOVE: "one {unit} record is added or removed",
    Neighbors.REPLACE: "one {unit} record is replaced by another, in the same block or another",
}


def plan_release(
    config: SafetabConfig, universe: Universe, *, region_types: Collection[str] | None = None
) -> ReleasePlan:
    """Lay out one part for every population group level with a budget; for SafeTab-H one for every class as well.

    A part of SafeTab-P has the queries detailed-only totals (rho), stage 1 (f rho) and stage 2 ((1 - f) rho); the first
    sees other rows of a record than the two others, so the part costs rho. A part of SafeTab-H has one query. Every law
    is exact: sigma2 = s / (2 rho') or scale = s / epsilon'. Levels without an iteration that a record can be in are
    left out.

    Source: SafeTab-P code 5.0.0 and SafeTab-H paper, section 5.

    Example:
        >>> from censafe.products.detailed.config import load_p_config
        >>> from censafe.products.detailed.codes.parameters import read_universe
        >>> plan = plan_release(load_p_config("ddhca", {"run_pr": "false"}), read_universe())
        >>> plan.total, plan.parts[0].name, [str(query.cost) for query in plan.parts[0].queries]
        (Fraction(618, 125), 'usa_1', ['1/125', '1/1250', '9/1250'])
    """
    stable = stabilities(config, universe)
    parts = tuple(
        _part(config, table_class, level, stable[level])
        for level in config.levels
        if stable[level] and (region_types is None or level.region_type in region_types)
        for table_class in config.classes
        if config.budgets[table_class, level.key] != 0
    )
    if not parts:
        raise ConfigError(
            f"{config.origin}: no level with a budget has an iteration and a region, so nothing would be released; "
            "give another level a budget above 0"
        )
    unit = ProtectedUnit.PERSON if config.product == "safetab-p" else ProtectedUnit.HOUSEHOLD
    total = sum((part.cost for part in parts), Fraction(0))
    return ReleasePlan(
        product=config.product,
        definition=config.definition,
        neighbors=Neighbors.ADD_REMOVE,
        unit=unit,
        other_losses={Neighbors.REPLACE: REPLACE_FACTOR * total},
        parts=parts,
        settings=_settings(config, universe, stable, unit),
    )


def part_name(config: SafetabConfig, table_class: str, level: PopulationGroupLevel) -> str:
    """Name of the part of a level, and of a class where there are several: ``usa_1``, ``usa_1_t3``."""
    return level.key if len(config.classes) == 1 else f"{level.key}_{table_class}"


def stabilities(config: SafetabConfig, universe: Universe) -> dict[PopulationGroupLevel, int]:
    """Stability s of every level of the run by the rule of the configuration; 0 where no record can be in any group."""
    by_kind = {
        (number, granularity): stability(
            universe, number, granularity, config.max_race_codes, config.stability
        )
        if universe.candidates(number, granularity).size
        else 0
        for number, granularity in {(level.level, level.granularity) for level in config.levels}
    }
    return {level: by_kind[level.level, level.granularity] for level in config.levels}


def stabilities_by_codes(
    config: SafetabConfig, universe: Universe
) -> dict[PopulationGroupLevel, tuple[int, ...]]:
    """Stability of every level where 1 to 8 race codes of a record are used."""
    numbers = range(1, MOST_RACE_CODES + 1)
    by_number = [stabilities(replace(config, max_race_codes=number), universe) for number in numbers]
    return {level: tuple(stable[level] for stable in by_number) for level in config.levels}


def area_totals(plan: ReleasePlan) -> dict[str, Fraction]:
    """Loss of a record of the United States and of one of Puerto Rico; no record is in both.

    The total of the plan is the sum of the two, a bound that holds for every record.
    """
    totals = {"United States": Fraction(0), "Puerto Rico": Fraction(0)}
    for part in plan.parts:
        totals["Puerto Rico" if part.queries[0].level.startswith("pr_") else "United States"] += part.cost
    return totals


def published_from(config: SafetabPConfig, level: PopulationGroupLevel, query: QueryPlan) -> int | None:
    """Smallest total that is published at a level where groups have only a total; None where all are.

    A total is left out unless it is above t, the smallest integer with P(noise <= t) at least the zero suppression
    chance. For nation, state and Puerto Rico as a whole all are published.

    Example:
        >>> from censafe.products.detailed.config import load_p_config
        >>> from censafe.products.detailed.codes.parameters import read_universe
        >>> config = load_p_config("ddhca")
        >>> stage2 = plan_release(config, read_universe()).parts[4].queries[2]
        >>> stage2.level, published_from(config, PopulationGroupLevel("COUNTY", 1), stage2)
        ('county_1', 94)
    """
    if level.granularity == "detailed" or config.zero_suppression_chance == 0:
        return None
    return suppression_threshold(query.law, config.zero_suppression_chance) + 1


def _part(config: SafetabConfig, table_class: str, level: PopulationGroupLevel, stable: int) -> PartPlan:
    budget = config.budgets[table_class, level.key]
    if not isinstance(budget, Fraction):
        raise ConfigError(
            f"{config.origin}: the budget of ({level.name}) is infinite; a release needs finite budgets"
        )

    def query(table: str, cost: Fraction) -> QueryPlan:
        return QueryPlan(table, level.key, group_noise_law(config.definition, stable, cost), cost)

    name = part_name(config, table_class, level)
    if not isinstance(config, SafetabPConfig):
        return PartPlan(name, (query(table_class, budget),))
    share = config.stage_1_fraction
    costs = (budget, share * budget, (1 - share) * budget)
    queries = zip(P_QUERIES, costs, strict=True)
    return PartPlan(name, tuple(query(table, cost) for table, cost in queries), disjoint=P_DISJOINT)


def _settings(
    config: SafetabConfig, universe: Universe, stable: dict[PopulationGroupLevel, int], unit: ProtectedUnit
) -> dict[str, str]:
    """What decides the measurements besides the laws; rules for published tables are not part of the plan."""
    settings = {
        "states": ",".join(config.states),
        "run_us": str(config.run_us).lower(),
        "run_pr": str(config.run_pr).lower(),
        "max_race_codes": str(config.max_race_codes),
        "universe": universe.digest,
        "stability": config.stability,
    }
    if isinstance(config, SafetabPConfig):
        settings["stage_1_fraction"] = str(config.stage_1_fraction)
        settings["zero_suppression_chance"] = str(config.zero_suppression_chance)
    settings.update({f"stability.{level.key}": str(number) for level, number in stable.items()})
    for table_class in config.classes:
        for level in config.levels:
            numbers = config.thresholds[table_class, level.key]
            settings[threshold_noun(config.product, table_class, level)] = ",".join(map(str, numbers))
    for neighbors, words in _RELATIONS.items():
        settings[f"neighbors.{neighbors.value}"] = words.format(unit=unit.value)
    return settings
