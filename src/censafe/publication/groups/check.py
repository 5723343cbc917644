"""Validation of measurements and written tables of population groups against plan, thresholds and levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.regions import REGION_TYPES
from censafe.model import GroupLevel, GroupMeasurements, ReleasePlan
from censafe.model.groups import GroupEstimates, GroupLayout, GroupTable, ProductTables, Shell
from censafe.publication.groups.tables import cells_of, in_file
from censafe.publication.stamps import Stamp
from censafe.publication.tables.bureau import file_problems, raise_if_wrong

_TYPES = tuple(region_type.name for region_type in REGION_TYPES)
_ANY_STATE = ("USA", "AIANNH")
_CODE = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, eq=False)
class GroupKeys:
    """Numbers for the groups of all levels, in the order of the files.

    Args:
        regions: sorted ids of all levels.
        codes: sorted iteration codes of all levels.
    """

    regions: NDArray[np.str_]
    codes: NDArray[np.str_]
    has_region: NDArray[np.bool_]
    has_code: NDArray[np.bool_]

    @classmethod
    def of(cls, levels: Sequence[GroupLevel]) -> GroupKeys:
        """Keys of the groups of some levels."""
        empty = np.zeros(0, np.str_)
        regions = np.unique(np.concatenate([empty, *(level.regions for level in levels)]))
        codes = np.unique(np.concatenate([empty, *(np.array(level.iterations, np.str_) for level in levels)]))
        has_region = np.zeros((len(_TYPES), len(regions) + 1), np.bool_)
        has_code = np.zeros((len(_TYPES), len(codes) + 1), np.bool_)
        for level in levels:
            kind = _TYPES.index(level.region_type)
            has_region[kind, np.searchsorted(regions, level.regions)] = True
            has_code[kind, np.searchsorted(codes, np.array(level.iterations, np.str_))] = True
        return cls(regions, codes, has_region, has_code)

    def number(
        self, kind: NDArray[np.int64], region: NDArray[np.int64], code: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Number of groups given by their positions; ascending in the order of the files."""
        return (kind * len(self.regions) + region) * max(len(self.codes), 1) + code

    def of_groups(self, estimates: GroupEstimates) -> NDArray[np.int64]:
        """Numbers of the groups of one level."""
        level = estimates.level
        region = np.searchsorted(self.regions, level.regions).astype(np.int64)
        code = np.searchsorted(self.codes, np.array(level.iterations, np.str_)).astype(np.int64)
        kind = np.full(estimates.rows, _TYPES.index(level.region_type), np.int64)
        return self.number(kind, region[estimates.region], code[estimates.iteration])


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of a file; positions are -1 where a code is unknown.

    Args:
        kind: int64[rows], position of REGION_TYPE among all types.
        region: int64[rows], position of REGION_ID in the keys.
        code: int64[rows], position of ITERATION_CODE in the keys.
        cell: int64[rows], position of what stands in the cell columns, ascending in the order of the file.
        count: int64[rows].
        group: int64[rows], number of the group.
    """

    kind: NDArray[np.int64]
    region: NDArray[np.int64]
    code: NDArray[np.int64]
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    group: NDArray[np.int64]

    def problems(
        self, keys: GroupKeys, *, states: Sequence[str] | None, nonnegative: bool
    ) -> list[tuple[str, int]]:
        """What is wrong with single rows and their order, with the number of rows."""
        later, earlier = self.group[1:], self.group[:-1]
        same = later == earlier
        return [
            (
                "rows with a region that its type does not have",
                _count(~keys.has_region[self.kind, self.region]),
            ),
            (
                "rows with an iteration that its level does not have",
                _count(~keys.has_code[self.kind, self.code]),
            ),
            ("rows with a cell that the table does not have", _count(self.cell < 0)),
            ("rows with a state outside the state filter", self._outside(keys, states)),
            ("rows that appear twice", _count(same & (self.cell[1:] == self.cell[:-1]))),
            (
                "rows out of order",
                _count((later < earlier) | (same & (self.cell[1:] < self.cell[:-1]))),
            ),
            ("negative counts", _count(self.count < 0) if nonnegative else 0),
        ]

    def groups(
        self, layout: GroupLayout
    ) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int64], int]:
        """Number, stat level and total of every group, and how many cells are not the sum of their parts.

        The stat level is -1 where the rows of a group are not the complete cells of one table, and the lowest possible
        one where the file does not show it, as for totals.
        """
        if not len(self.group):
            return self.group, np.zeros(0, np.int8), self.group, 0
        starts = np.flatnonzero(np.diff(self.group, prepend=self.group[0] - 1))
        sizes = np.diff(np.append(starts, len(self.group)))
        stat_level, total = np.full(len(starts), -1, np.int8), np.zeros(len(starts), np.int64)
        unequal, fields = 0, _distinct_fields(layout)
        for level, shell in layout.shells.items():
            width = len(shell.cells)
            expected = np.array([fields[cell.fields] for cell in shell.cells])
            inside = np.flatnonzero((sizes == width) & (stat_level < 0))
            rows = starts[inside][:, None] + np.arange(width)
            complete = (self.cell[rows] == expected).all(axis=1)
            stat_level[inside[complete]] = level
            total[inside[complete]], wrong = _sums(self.count[rows[complete]], shell)
            unequal += wrong
        return self.group[starts], stat_level, total, unequal

    def _outside(self, keys: GroupKeys, states: Sequence[str] | None) -> int:
        if states is None or not len(keys.regions):
            return 0
        inside = np.isin(keys.regions.astype("U2"), np.array(states, np.str_))
        free = np.isin(np.array(_TYPES), np.array(_ANY_STATE))
        return _count((self.region >= 0) & ~free[self.kind] & ~inside[self.region])


def read_rows(path: Path, layout: GroupLayout, keys: GroupKeys) -> FileRows | str:
    """Read a file; text that says what is wrong where it is not a table of this layout."""
    with path.open("rb") as stream:
        header = stream.readline().rstrip(b"\n")
    if header != "|".join(layout.header).encode():
        return f"the header must be {'|'.join(layout.header)}"
    types = dict.fromkeys(layout.header[:-1], _CODE)
    try:
        table = pc.read_csv(
            path,
            parse_options=pc.ParseOptions(delimiter="|", quote_char=False),
            convert_options=pc.ConvertOptions(
                column_types={**types, "COUNT": pa.int64()}, strings_can_be_null=False, null_values=[]
            ),
        ).unify_dictionaries()
    except pa.ArrowInvalid:
        return f"rows without exactly {len(layout.header)} fields, or with a COUNT that is not a whole number"
    kind, region, code = (
        _positions(table[column], {name: place for place, name in enumerate(names)})
        for column, names in (
            ("REGION_TYPE", _TYPES),
            ("REGION_ID", keys.regions.tolist()),
            ("ITERATION_CODE", keys.codes.tolist()),
        )
    )
    cell = _cells(table, layout)
    return FileRows(kind, region, code, cell, table["COUNT"].to_numpy(), keys.number(kind, region, code))


def _distinct_fields(layout: GroupLayout) -> dict[tuple[str, ...], int]:
    """Position of what stands in the cell columns, in the order of the file; tables of several stat levels share some."""

    def key(fields: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(int(text) if text != "*" else -1 for text in (*fields[2:], *fields[:2]))

    distinct = {cell.fields for _, cell in cells_of(layout)}
    return {fields: position for position, fields in enumerate(sorted(distinct, key=key))}


def _cells(table: pa.Table, layout: GroupLayout) -> NDArray[np.int64]:
    """Position of the cell of every row; -1 for a cell that the file does not have."""
    fields = _distinct_fields(layout)
    place = np.zeros(len(table), np.int64)
    known = np.ones(len(table), np.bool_)
    codes = dict.fromkeys(fields, 0)
    size = 1
    for i, name in enumerate(layout.cell_columns):
        values = {value: j for j, value in enumerate(dict.fromkeys(field[i] for field in fields))}
        position = _positions(table[name], values)
        known &= position >= 0
        place = place * len(values) + position
        codes = {field: code * len(values) + values[field[i]] for field, code in codes.items()}
        size *= len(values)
    lookup = np.full(size, -1, np.int64)
    lookup[list(codes.values())] = list(fields.values())
    return np.where(known, lookup[np.where(known, place, 0)], -1)


def _positions(column: pa.ChunkedArray, known: dict[str, int]) -> NDArray[np.int64]:
    if not column.num_chunks:
        return np.zeros(0, np.int64)
    texts = column.chunk(0).dictionary.to_pylist()
    places = np.array([*(known.get(text, -1) for text in texts), -1], np.int64)
    return places[np.concatenate([chunk.indices.fill_null(len(texts)).to_numpy() for chunk in column.chunks])]


def _sums(count: NDArray[np.int64], shell: Shell) -> tuple[NDArray[np.int64], int]:
    """Total of every group, and how many of the written sums are not the sums of the written parts."""
    basis = np.full(shell.basis, -1, np.int64)
    for position, cell in enumerate(shell.cells):
        if len(cell.members) == 1:
            basis[cell.members[0]] = position
    if (basis < 0).any():
        return count[:, 0], 0
    measured = count[:, basis]
    wrong = sum(
        _count(count[:, position] != measured[:, list(cell.members)].sum(axis=1))
        for position, cell in enumerate(shell.cells)
    )
    return measured.sum(axis=1), wrong


def _count(wrong: NDArray[Any]) -> int:
    return int(np.count_nonzero(wrong))


def check_group_measurements(
    measurements: GroupMeasurements,
    plan: ReleasePlan,
    table: GroupTable,
    *,
    thresholds: Sequence[int],
    limit: int | None,
) -> None:
    """Compare the measurements of one part with its plan and with the rules for tables and suppression."""
    level = measurements.level.name
    planned = {
        query.table: (query.law, query.cost)
        for part in plan.parts
        for query in part.queries
        if query.level == level
    }
    sizes = np.array(table.sizes, np.int64)
    known = (measurements.stat_level >= 0) & (measurements.stat_level < len(sizes))
    cells = np.where(known, sizes[np.where(known, measurements.stat_level, 0)], -1)
    problems = []
    for name, law in measurements.laws.items():
        query = measurements.table if name == "cells" else name
        if planned.get(query) != (law, measurements.costs[name]):
            problems.append(f"noise law or budget of {query} differ from the plan")
    counts = [
        ("groups without the cells of their stat level", _count(np.diff(measurements.indptr) != cells)),
        ("groups with a table that their total does not choose", _wrong_levels(measurements, table, thresholds)),
    ]  # fmt: skip
    if limit is not None:
        alone = measurements.stat_level == 0
        counts.append((f"totals not above {limit}", _count(measurements.sums[alone] <= limit)))
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
    problems = file_problems(folder, {layout.path for layout in tables.layouts}, stamp)
    planned = {
        (tables.measured_by(query.table), query.level) for part in plan.parts for query in part.queries
    }
    published = {(estimate.table, estimate.level.name) for estimate in estimates}
    problems += [
        f"level {level} of {table}: planned, but not among the tables"
        for table, level in sorted(planned - published)
    ]
    problems += [f"level {level} of {table}: not in the plan" for table, level in sorted(published - planned)]
    total = 0
    for table in tables.tables:
        chosen = [estimate for estimate in estimates if estimate.table == table.key]
        keys = GroupKeys.of([estimate.level for estimate in chosen])
        for layout in table.layouts:
            path = folder / layout.path
            if not path.is_file():
                continue
            rows = read_rows(path, layout, keys)
            if isinstance(rows, str):
                problems.append(f"{layout.path}: {rows}")
                continue
            total += len(rows.count)
            counts = [
                *rows.problems(keys, states=states, nonnegative=nonnegative),
                *_content(rows, layout, keys, chosen),
            ]
            problems += [f"{layout.path}: {number} {what}" for what, number in counts if number]
    raise_if_wrong(folder, problems)
    return total


def _content(
    rows: FileRows, layout: GroupLayout, keys: GroupKeys, estimates: Sequence[GroupEstimates]
) -> list[tuple[str, int]]:
    """Groups, tables and totals of a file against the estimates."""
    group, stat_level, total, unequal = rows.groups(layout)
    expected = np.concatenate([np.zeros(0, np.int64), *(keys.of_groups(one) for one in estimates)])
    levels = np.concatenate([np.zeros(0, np.int8), *(one.stat_level for one in estimates)])
    totals = np.concatenate([np.zeros(0, np.int64), *(one.totals for one in estimates)])
    chosen = np.flatnonzero(in_file(layout, levels))
    order = chosen[np.argsort(expected[chosen], kind="stable")]
    expected, levels, totals = expected[order], levels[order], totals[order]
    place = np.minimum(np.searchsorted(expected, group), max(len(expected) - 1, 0))
    there = expected[place] == group if len(expected) else np.zeros(len(group), np.bool_)
    one_table = len(layout.cell_columns) > 0
    return [
        ("groups without the complete cells of one table", _count(stat_level < 0)),
        ("cells that are not the sum of their parts", unequal),
        ("groups that do not belong in the file", _count(~there)),
        ("groups missing from the file", len(expected) - _count(np.bincount(place[there]))),
        (
            "groups in the table of another stat level",
            _count(there & (stat_level >= 0) & (levels[place] != stat_level)) if one_table and len(levels) else 0,
        ),
        (
            "groups whose counts do not add up to their total",
            _count(there & (stat_level >= 0) & (totals[place] != total)) if len(totals) else 0,
        ),
    ]  # fmt: skip


def _wrong_levels(measurements: GroupMeasurements, table: GroupTable, thresholds: Sequence[int]) -> int:
    """Groups of SafeTab-P with another table than the total chooses that was measured for it."""
    if measurements.stage1 is None:
        return 0
    bounds = np.array(thresholds[: len(table.sizes) - 1], np.int64)
    chosen = np.searchsorted(bounds, measurements.stage1, side="right")
    chosen[measurements.level.detailed_only[measurements.iteration]] = 0
    return _count(chosen != measurements.stat_level)
