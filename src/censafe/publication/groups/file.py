"""A written table of population groups, read back as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.geography.regions import REGION_TYPES
from censafe.model import GroupLevel
from censafe.model.groups.cells import GroupLayout, Shell
from censafe.model.groups.estimates import GroupEstimates
from censafe.publication.groups.rows import cells_of

_TYPES = tuple(found.name for found in REGION_TYPES)
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
                _none(keys.has_region[self.kind, self.region]),
            ),
            (
                "rows with an iteration that its level does not have",
                _none(keys.has_code[self.kind, self.code]),
            ),
            ("rows with a cell that the table does not have", int(np.count_nonzero(self.cell < 0))),
            ("rows with a state outside the state filter", self._outside(keys, states)),
            ("rows that appear twice", int(np.count_nonzero(same & (self.cell[1:] == self.cell[:-1])))),
            (
                "rows out of order",
                int(np.count_nonzero((later < earlier) | (same & (self.cell[1:] < self.cell[:-1])))),
            ),
            ("negative counts", int(np.count_nonzero(self.count < 0)) if nonnegative else 0),
        ]

    def groups(
        self, layout: GroupLayout
    ) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int64], int]:
        """Number, stat level and total of every group, and how many cells are not the sum of their parts.

        The stat level is -1 where the rows of a group are not the complete cells of one table, and the lowest possible
        one where the file does not tell it, as for totals.
        """
        if not len(self.group):
            return self.group, np.zeros(0, np.int8), self.group, 0
        starts = np.flatnonzero(np.diff(self.group, prepend=self.group[0] - 1))
        sizes = np.diff(np.append(starts, len(self.group)))
        stat_level, total = np.full(len(starts), -1, np.int8), np.zeros(len(starts), np.int64)
        unequal, fields = 0, _distinct_fields(layout)
        for level, shell in layout.shells.items():
            width = len(shell.cells)
            wanted = np.array([fields[cell.fields] for cell in shell.cells])
            inside = np.flatnonzero((sizes == width) & (stat_level < 0))
            rows = starts[inside][:, None] + np.arange(width)
            whole = (self.cell[rows] == wanted).all(axis=1)
            stat_level[inside[whole]] = level
            total[inside[whole]], wrong = _sums(self.count[rows[whole]], shell)
            unequal += wrong
        return self.group[starts], stat_level, total, unequal

    def _outside(self, keys: GroupKeys, states: Sequence[str] | None) -> int:
        if states is None or not len(keys.regions):
            return 0
        inside = np.isin(keys.regions.astype("U2"), np.array(states, np.str_))
        free = np.isin(np.array(_TYPES), np.array(_ANY_STATE))
        return int(np.count_nonzero((self.region >= 0) & ~free[self.kind] & ~inside[self.region]))


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
    kind = _positions(table["REGION_TYPE"], {name: i for i, name in enumerate(_TYPES)})
    region = _positions(table["REGION_ID"], {name: i for i, name in enumerate(keys.regions.tolist())})
    code = _positions(table["ITERATION_CODE"], {name: i for i, name in enumerate(keys.codes.tolist())})
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
        found = _positions(table[name], values)
        known &= found >= 0
        place = place * len(values) + found
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
        int(np.count_nonzero(count[:, position] != measured[:, list(cell.members)].sum(axis=1)))
        for position, cell in enumerate(shell.cells)
    )
    return measured.sum(axis=1), wrong


def _none(found: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(~found))
