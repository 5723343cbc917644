"""Rows of a SafeTab plan: how many numbers can be published at most, and what every query buys at every level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from censafe.model import QueryPlan, ReleasePlan
from censafe.planning.numbers import decimal_text
from censafe.planning.prices.rows import QueryFacts
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import SafetabConfig, SafetabPConfig
from censafe.products.detailed.plan import area_totals, published_from, stabilities_by_codes
from censafe.products.detailed.product_tables import tables_of

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
    groups = _regions(config, level) * iterations
    return groups, groups * (widths[0] if query == "detailed_only" else max(widths))


def _regions(config: SafetabConfig, level: PopulationGroupLevel) -> int:
    return len(config.states) if level.region_type == "STATE" else REGIONS[level.region_type]


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
    facts: list[QueryFacts] = []
    for part in plan.parts:
        for query in part.queries:
            level = levels[query.level]
            facts += _facts_of(config, universe, query, level, stable[level])
    return tuple(facts)


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
    notes.append(_at_most(config))
    notes.append(
        "Margins are those of one measured cell, or of a group with only a total; totals that are sums of cells "
        "have larger ones (--csv or --json show them)."
    )
    return tuple(notes)


def _at_most(config: SafetabConfig) -> str:
    if not isinstance(config, SafetabPConfig):
        return f"{_AT_MOST}; only groups with a total in the input have any."
    if not config.zero_suppression_chance:
        return f"{_AT_MOST}."
    left = decimal_text(100 * (1 - config.zero_suppression_chance))
    return f"{_AT_MOST}; and of the groups below states without any person at most {left}% are published, on average."


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
        sums = _household_sums(query.table)

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


def _household_sums(key: str) -> dict[str, dict[str, int]]:
    """How many measured cells are summed in the other written cells, by table and cell."""
    sums = {
        shell.table: {cell.code: len(cell.members) for cell in shell.cells if len(cell.members) > 1}
        for shell in tables_of("safetab-h").table(key).shells.values()
    }
    return {table: cells for table, cells in sums.items() if cells}
