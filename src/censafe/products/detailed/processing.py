"""What is done to the measurements of population groups before they are written, at no privacy cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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


def process(
    config: SafetabConfig,
    plan: ReleasePlan,
    classes: AreaClasses | None,
    measured: Sequence[GroupMeasurements],
) -> tuple[tuple[GroupEstimates, ...], dict[str, CoterminousReport]]:
    """Totals, areas of the same blocks and negative counts, as the configuration says; and by table what was done to such areas."""
    levels = {level.key: level for level in config.levels}
    estimates = [_totals(config, plan, levels[answers.level.name], answers) for answers in measured]
    reports: dict[str, CoterminousReport] = {}
    if config.coterminous != "off":
        if classes is None:
            raise ValueError("areas of the same blocks cannot be made equal without a list of them")
        for table in dict.fromkeys(level.table for level in estimates):
            places = [place for place, level in enumerate(estimates) if level.table == table]
            equal, reports[table] = coterminous(
                [estimates[place] for place in places], classes, mode=config.coterminous
            )
            for place, level in zip(places, equal, strict=True):
                estimates[place] = level
    if config.negatives == "zero":
        estimates = [nonnegative(level) for level in estimates]
    return tuple(estimates), reports


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
