"""What is done to the measurements of population groups before they are written, at no privacy cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from censafe.estimation.detailed import (
    AreaClasses,
    area_classes,
    coterminous,
    nonnegative,
    read_block_list,
    totals,
)
from censafe.geography.areas import Areas
from censafe.model import GroupMeasurements, ReleasePlan
from censafe.model.groups.estimates import CoterminousReport, GroupEstimates
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from censafe.products.detailed.config import SafetabConfig, SafetabPConfig
from censafe.products.detailed.plan import published_from
from censafe.products.detailed.product_tables import tables_of
from censafe.publication.groups.check import check_group_measurements

_STAGE2 = "stage2"


@dataclass(frozen=True)
class Processed:
    """Estimates ready to be written, and what was done to get them."""

    estimates: tuple[GroupEstimates, ...]
    reports: Mapping[str, CoterminousReport] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def process(
    config: SafetabConfig,
    plan: ReleasePlan,
    classes: AreaClasses | None,
    measured: Sequence[GroupMeasurements],
) -> Processed:
    """Totals, areas of the same blocks and negative counts, as the configuration says."""
    levels = {level.key: level for level in config.levels}
    found = [_totals(config, plan, levels[one.level.name], one) for one in measured]
    reports: dict[str, CoterminousReport] = {}
    if config.coterminous != "off":
        if classes is None:
            raise ValueError("areas of the same blocks cannot be made equal without a list of them")
        for table in dict.fromkeys(one.table for one in found):
            places = [place for place, one in enumerate(found) if one.table == table]
            equal, reports[table] = coterminous(
                [found[place] for place in places], classes, mode=config.coterminous
            )
            for place, one in zip(places, equal, strict=True):
                found[place] = one
    if config.negatives == "zero":
        found = [nonnegative(one) for one in found]
    return Processed(tuple(found), reports, _options(config), _notes(config))


def configured_classes(config: SafetabConfig, areas: Areas, water_blocks: Path | None = None) -> AreaClasses:
    """Areas of the levels of a run that consist of the same blocks."""
    kinds = list(dict.fromkeys(level.region_type for level in config.levels))
    empty = None if water_blocks is None else read_block_list(water_blocks)
    return area_classes(areas, kinds, empty=empty)


def _totals(
    config: SafetabConfig, plan: ReleasePlan, level: PopulationGroupLevel, measured: GroupMeasurements
) -> GroupEstimates:
    table = tables_of(config.product).table(measured.table)
    if not isinstance(config, SafetabPConfig):
        return totals(measured, table)
    thresholds = config.thresholds["p", level.key][:3]
    (stage2,) = (
        query
        for part in plan.parts
        for query in part.queries
        if (query.level, query.table) == (level.key, _STAGE2)
    )
    smallest = published_from(config, level, stage2)
    limit = None if smallest is None else smallest - 1
    check_group_measurements(measured, plan, table, thresholds=thresholds, limit=limit)
    return totals(measured, table, t1=config.t1, thresholds=thresholds, conditional=limit is not None)


def _options(config: SafetabConfig) -> dict[str, Any]:
    options: dict[str, Any] = {
        "coterminous": config.coterminous,
        "mark_x": config.mark_x,
        "negatives": config.negatives,
    }
    return {"t1": config.t1, **options} if isinstance(config, SafetabPConfig) else options


def _notes(config: SafetabConfig) -> tuple[str, ...]:
    notes = []
    if isinstance(config, SafetabPConfig) and config.t1 == "pooled":
        notes.append("Totals are the weighted mean of the two noisy totals that were measured of a group.")
    if config.coterminous != "off":
        notes.append("Areas that consist of the same blocks were given the same counts.")
    if config.negatives == "zero":
        notes.append("Negative counts were replaced by 0, which raises totals of small groups on average.")
    if config.mark_x:
        notes.append(
            "A second set of tables shows X where a count alone is above the count alone or in any combination."
        )
    return tuple(notes)
