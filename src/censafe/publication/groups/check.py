"""Validation of measurements and written tables of population groups against plan, thresholds and levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import GroupMeasurements, ReleasePlan
from censafe.model.groups.cells import GroupLayout, GroupTable, ProductTables
from censafe.model.groups.estimates import GroupEstimates
from censafe.publication.groups.file import FileRows, GroupKeys, read_rows
from censafe.publication.groups.rows import in_file
from censafe.publication.stamps import STAMP, Stamp
from censafe.publication.tables.bureau import STAMP_FILE
from censafe.publication.tables.check import raise_if_wrong


def check_group_measurements(
    measurements: GroupMeasurements,
    plan: ReleasePlan,
    table: GroupTable,
    *,
    thresholds: Sequence[int],
    limit: int | None = None,
    chosen_by: NDArray[np.int64] | None = None,
) -> None:
    """Compare the measurements of one part with its plan and with the rules for tables and suppression.

    Args:
        chosen_by: int64[rows], what SafeTab-H chose the tables by, the counts of T1; SafeTab-P brings its own.
    """
    level = measurements.level.name
    planned = {
        query.table: (query.law, query.cost)
        for part in plan.parts
        for query in part.queries
        if query.level == level
    }
    problems = []
    for name, law in measurements.laws.items():
        query = measurements.table if name == "cells" else name
        if planned.get(query) != (law, measurements.costs[name]):
            problems.append(f"noise law or budget of {query} differ from the plan")
    counts = [
        ("groups without the cells of their stat level", _wrong_cells(measurements, table)),
        ("groups with a table that their total does not choose", _wrong_levels(measurements, table, thresholds, chosen_by)),
    ]  # fmt: skip
    if limit is not None:
        alone = measurements.stat_level == 0
        counts.append((f"totals not above {limit}", int(np.count_nonzero(measurements.sums[alone] <= limit))))
    problems += [f"{number} {what}" for what, number in counts if number]
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise CheckError(
            f"the measurements of level {level} ({measurements.table}) are not what the plan demands; do not publish "
            f"them:\n{listed}"
        )


def check_group_tables(
    folder: Path,
    tables: ProductTables,
    estimates: Sequence[GroupEstimates],
    *,
    plan: ReleasePlan,
    states: Sequence[str] | None = None,
    nonnegative: bool = False,
    stamp: Stamp | None = None,
) -> int:
    """Reread the written tables and compare them with what the plan demands.

    Checked are: exactly the product's files, all of them; every level of the plan and no other; header, number of
    fields, whole numbers; regions and iterations of the levels, states within the filter; order, and no row twice; of every
    group the complete cells of one table; every group in its table and in no other; sums that add up within a table,
    and between t1 and t2; no negative count where none is allowed.
    """
    problems = [*_names(folder, tables, stamp), *_levels(tables, estimates, plan)]
    rows = 0
    for table in tables.tables:
        chosen = [found for found in estimates if found.table == table.key]
        keys = GroupKeys.of([found.level for found in chosen])
        for layout in table.layouts:
            path = folder / layout.path
            if not path.is_file():
                continue
            found = read_rows(path, layout, keys)
            if isinstance(found, str):
                problems.append(f"{layout.path}: {found}")
                continue
            rows += len(found.count)
            counts = [
                *found.problems(keys, states=states, nonnegative=nonnegative),
                *_content(found, layout, keys, chosen),
            ]
            problems += [f"{layout.path}: {number} {what}" for what, number in counts if number]
    raise_if_wrong(folder, problems)
    return rows


def _names(folder: Path, tables: ProductTables, stamp: Stamp | None) -> Iterator[str]:
    wanted = {layout.path for layout in tables.layouts}
    if stamp == STAMP:
        places = {
            parent for name in wanted for parent in (folder / name).parents if parent.is_relative_to(folder)
        }
        wanted |= {(place / STAMP_FILE).relative_to(folder).as_posix() for place in places}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(wanted - found):
        yield f"{name}: missing"
    for name in sorted(found - wanted):
        yield f"{name}: not a file that this release publishes"


def _levels(tables: ProductTables, estimates: Sequence[GroupEstimates], plan: ReleasePlan) -> Iterator[str]:
    planned = {
        (tables.measured_by(query.table), query.level) for part in plan.parts for query in part.queries
    }
    found = {(estimate.table, estimate.level.name) for estimate in estimates}
    for table, level in sorted(planned - found):
        yield f"level {level} of {table}: planned, but not among the tables"
    for table, level in sorted(found - planned):
        yield f"level {level} of {table}: not in the plan"


def _content(
    rows: FileRows, layout: GroupLayout, keys: GroupKeys, estimates: Sequence[GroupEstimates]
) -> list[tuple[str, int]]:
    """Groups, tables and totals of a file against the estimates."""
    group, stat_level, total, unequal = rows.groups(layout)
    expected = np.concatenate([keys.of_groups(found) for found in estimates] or [np.zeros(0, np.int64)])
    levels = np.concatenate([found.stat_level for found in estimates] or [np.zeros(0, np.int8)])
    totals = np.concatenate([found.totals for found in estimates] or [np.zeros(0, np.int64)])
    chosen = in_file(layout, levels)
    expected, levels, totals = expected[chosen], levels[chosen], totals[chosen]
    order = np.argsort(expected, kind="stable")
    expected, levels, totals = expected[order], levels[order], totals[order]
    place = np.minimum(np.searchsorted(expected, group), max(len(expected) - 1, 0))
    there = expected[place] == group if len(expected) else np.zeros(len(group), np.bool_)
    one_table = len(layout.cell_columns) > 0
    return [
        ("groups without the complete cells of one table", int(np.count_nonzero(stat_level < 0))),
        ("cells that are not the sum of their parts", unequal),
        ("groups that do not belong in the file", int(np.count_nonzero(~there))),
        ("groups missing from the file", len(expected) - _reached(place, there)),
        (
            "groups in the table of another stat level",
            int(np.count_nonzero(there & (stat_level >= 0) & (levels[place] != stat_level))) if one_table and len(levels) else 0,
        ),
        (
            "groups whose counts do not add up to their total",
            int(np.count_nonzero(there & (stat_level >= 0) & (totals[place] != total))) if len(totals) else 0,
        ),
    ]  # fmt: skip


def _reached(place: NDArray[np.int64], there: NDArray[np.bool_]) -> int:
    """How many expected groups the groups of a file stand for, in whichever order and however often."""
    found = np.zeros(len(place) and int(place.max()) + 1, np.bool_)
    found[place[there]] = True
    return int(np.count_nonzero(found))


def _wrong_cells(measurements: GroupMeasurements, table: GroupTable) -> int:
    sizes = np.array(table.sizes, np.int64)
    known = (measurements.stat_level >= 0) & (measurements.stat_level < len(sizes))
    expected = np.where(known, sizes[np.where(known, measurements.stat_level, 0)], -1)
    return int(np.count_nonzero(np.diff(measurements.indptr) != expected))


def _wrong_levels(
    measurements: GroupMeasurements,
    table: GroupTable,
    thresholds: Sequence[int],
    chosen_by: NDArray[np.int64] | None,
) -> int:
    first = measurements.stage1 if chosen_by is None else chosen_by
    if first is None:
        return 0
    most = len(table.sizes) - 1
    reached = np.searchsorted(np.array(thresholds[:most], np.int64), first, side="right")
    only = measurements.level.detailed_only[measurements.iteration] & (measurements.stage1 is not None)
    return int(np.count_nonzero(np.where(only, 0, reached) != measurements.stat_level))
