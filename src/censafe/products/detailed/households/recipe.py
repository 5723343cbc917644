"""SafeTab-H: households counted by group, type and tenure, measuring one level, and the truth."""

from __future__ import annotations

from itertools import groupby
from typing import Final

import numpy as np

from censafe.errors import DataError
from censafe.model import GroupLevel as PublicLevel
from censafe.model import GroupMeasurements
from censafe.population.detailed.public_data import PopGroupTotals
from censafe.population.detailed.source import SafetabInput
from censafe.population.findings import Finding, raise_if_fatal, stated
from censafe.privacy.measure.groups import ListedGroups, count_listed_groups, measure_groups
from censafe.privacy.measure.rows import GroupRows
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import SafetabConfig, load_h_config
from censafe.products.detailed.counting import GroupCounter, sorted_records
from censafe.products.detailed.households.variants import (
    TableClass,
    household_tables,
    joint_cell,
    joint_cells,
    stat_levels,
)
from censafe.products.detailed.recipe import Key, PartTask, SafetabRecipe


def count_households(data: SafetabInput, universe: Universe) -> GroupCounter:
    """CONFIDENTIAL. Sort the households of a run by block, ready to be counted at any level."""
    table = data.records
    records = sorted_records(
        table.mutate(CELL=joint_cell(table["HOUSEHOLD_TYPE"], table["TEN"]).cast("int16")),
        blocks=data.areas.blocks,
        combos=len(data.combos),
        cells=joint_cells(),
    )
    return GroupCounter(data.areas, universe, data.combos, records)


def listed_groups(
    totals: PopGroupTotals, public: PublicLevel, table_class: TableClass, thresholds: tuple[int, ...]
) -> ListedGroups:
    """The groups of a level that get a table: those with a published total whose iteration is a candidate."""
    published = totals.of_type(public.region_type)
    codes = np.array([int(code) for code in public.iterations], dtype=np.int32)
    ordinal = np.searchsorted(codes, published.iteration)
    candidate = np.flatnonzero(np.append(codes, -1)[ordinal] == published.iteration)
    order = candidate[np.lexsort((ordinal[candidate], published.region[candidate]))]
    return ListedGroups(
        region=published.region[order],
        iteration=ordinal[order].astype(np.int32),
        stat_level=stat_levels(published.count[order], thresholds, table_class),
        variants=household_tables(table_class),
    )


def measure_level(task: PartTask, key: Key) -> GroupMeasurements:
    """Count the listed groups of a level and measure one class of tables once."""
    if task.totals is None:
        raise DataError("SafeTab-H needs totals of population groups (T1). Name them with `t1`.")
    (query,) = task.part.queries
    table_class: TableClass = "t3" if query.table == "t3" else "t4"
    source = task.counter.groups(task.level, task.stable)
    thresholds = task.config.thresholds[table_class, task.level.key]
    listed = listed_groups(task.totals, source.level, table_class, thresholds)
    return measure_groups(source, listed, query, table_class, key, threads=task.threads)


def true_counts(
    counter: GroupCounter,
    thresholds: tuple[int, ...] | None,
    totals: PopGroupTotals,
    level: PopulationGroupLevel,
    table_class: TableClass,
    *,
    threads: int = 1,
) -> GroupRows:
    """CONFIDENTIAL. The true cells of the groups that have a published total; also what infinite budgets give.

    Args:
        counter: sorted records of the run.
    """
    source = counter.groups(level, None)
    most = len(household_tables(table_class)) - 1
    reached = (np.iinfo(np.int64).min,) * most
    listed = listed_groups(totals, source.level, table_class, reached if thresholds is None else thresholds)
    return count_listed_groups(source, listed, threads=threads)


def _require_overlap(config: SafetabConfig, data: SafetabInput, counter: GroupCounter) -> None:
    """Stop when no household of a run, US or Puerto Rico, is in any group that has a total."""
    if data.totals is None:
        return
    findings: list[Finding] = []
    for run, levels in groupby(
        config.levels, key=lambda level: "PR" if level.key.startswith("pr_") else "US"
    ):
        if not any(
            true_counts(counter, None, data.totals, level, "t4").values.any()
            for level in levels
            if config.budgets["t3", level.key] != 0 or config.budgets["t4", level.key] != 0
        ):
            findings += stated("safetab.no-common-area", "household records", run=run)
    raise_if_fatal(findings, "input data")


RECIPE: Final = SafetabRecipe(load_h_config, count_households, measure_level, _require_overlap)
