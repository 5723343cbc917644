"""The regions that every block of GRF-C lies in.

Public data. A block is the number made of its state, county, tract and block digits; blocks are sorted, and a
block's ordinal is its position in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import BLOCK_NUMBER, NO_AIANNH, NO_PLACE, read_grfc
from censafe.geography.regions import PUERTO_RICO, RegionType, region_type

_WIDTHS = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLK": 4, "PLACEFP": 5, "AIANNHCE": 4}
_COLUMNS = tuple(_WIDTHS)
_STATE, _COUNTY, _TRACT = 10**13, 10**10, 10**4
_PLACES, _AIANNHS = 100_000, 10_000


@dataclass(frozen=True)
class AreaProblem:
    """A rule that some rows of GRF-C break."""

    column: str
    rule: str
    rows: int
    problem: str
    allowed: str
    fix: str

    def text(self) -> str:
        """The problem as one line."""
        return (
            f"{self.column}: {self.problem} ({self.rows} rows) [{self.rule}]; allowed: {self.allowed}; "
            f"fix: {self.fix}"
        )


@dataclass(frozen=True, eq=False)
class Areas:
    """Blocks and the regions they lie in.

    Args:
        keys: sorted block numbers, ``int64[blocks]``: two digits of state, three of county, six of tract, four of block.
        place: PLACEFP of every block, ``int32[blocks]``; 99999 for none.
        aiannh: AIANNHCE of every block, ``int32[blocks]``; 9999 for none.
    """

    keys: NDArray[np.int64]
    place: NDArray[np.int32]
    aiannh: NDArray[np.int32]
    states: tuple[str, ...]
    _known: dict[str, tuple[NDArray[np.int64], NDArray[np.int32]]] = field(default_factory=dict, repr=False)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.keys)

    def numbers(self, name: str) -> NDArray[np.int64]:
        """Sorted numbers of the regions of a type; :meth:`regions` as integers."""
        return self._regions(name)[0]

    def regions(self, name: str) -> tuple[str, ...]:
        """Sorted identifiers of the regions of a type that have a block.

        Example:
            >>> areas = Areas(np.array([440010301001000]), np.array([14140], np.int32), np.array([9999], np.int32), ("44",))
            >>> areas.regions("PLACE"), areas.regions("AIANNH"), areas.regions("USA")
            (('4414140',), (), ('1',))
        """
        kind = region_type(name)
        return tuple(kind.region_id(number) for number in self._regions(name)[0].tolist())

    def ordinals(self, name: str) -> NDArray[np.int32]:
        """Position in :meth:`regions` of the region of every block, ``int32[blocks]``; -1 for none."""
        return self._regions(name)[1]

    def find(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Ordinals of blocks, given as block numbers; -1 for those that GRF-C lacks."""
        return _positions(self.keys, keys)

    def find_regions(self, name: str, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Positions in :meth:`regions` of regions, given as numbers; -1 for those without a block."""
        return _positions(self._regions(name)[0], numbers)

    def restrict(self, included: NDArray[np.bool_]) -> Areas:
        """The areas made of some of the blocks only."""
        return Areas(self.keys[included], self.place[included], self.aiannh[included], self.states)

    def _regions(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Numbers of the regions of a type, rising, and the position among them of the region of every block."""
        if name not in self._known:
            self._known[name] = self._factorise(region_type(name))
        return self._known[name]

    def _factorise(self, kind: RegionType) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        state = self.keys // _STATE
        inside = (state == int(PUERTO_RICO)) == kind.puerto_rico
        if kind.kind == "PLACE":
            inside &= self.place != NO_PLACE
            return _from_codes(state * _PLACES + self.place, inside, 100 * _PLACES)
        if kind.kind == "AIANNH":
            inside &= self.aiannh != NO_AIANNH
            return _from_codes(self.aiannh.astype(np.int64), inside, _AIANNHS)
        if kind.kind == "USA":
            return _from_codes(np.ones(len(state), np.int64), inside, 2)
        divisor = {"STATE": _STATE, "COUNTY": _COUNTY, "TRACT": _TRACT}[kind.kind]
        codes = self.keys // divisor
        starts = np.zeros(len(codes), bool)
        starts[:1] = True
        starts[1:] = codes[1:] != codes[:-1]
        starts &= inside
        ordinals = np.cumsum(starts, dtype=np.int32) - np.int32(1)
        ordinals[~inside] = -1
        return codes[starts], ordinals


def read_areas(paths: Sequence[Path], states: tuple[str, ...]) -> tuple[Areas, tuple[AreaProblem, ...]]:
    """Read GRF-C files, keep the blocks of some states and report what is wrong with the rows."""
    parts = []
    for path in paths:
        table = read_grfc(path, _COLUMNS, coded=True, in_order=True).unify_dictionaries()
        parts.append({name: _numbers(table[name], width) for name, width in _WIDTHS.items()})
    columns = {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}
    problems = [
        AreaProblem(name, "domain", bad, "values outside the allowed set, or empty", f"exactly {width} digits",
                    "use the GRF-C file of the 2020 tabulation geography")
        for name, width in _WIDTHS.items()
        if (bad := int(np.count_nonzero(columns[name] < 0)))
    ]  # fmt: skip
    keep = np.zeros(101, bool)
    keep[[int(state) for state in states]] = True
    chosen = keep[columns["TABBLKST"]]
    for name in BLOCK_NUMBER[1:]:
        chosen &= columns[name] >= 0
    columns["PLACEFP"] = np.where(columns["PLACEFP"] < 0, np.int32(NO_PLACE), columns["PLACEFP"])
    columns["AIANNHCE"] = np.where(columns["AIANNHCE"] < 0, np.int32(NO_AIANNH), columns["AIANNHCE"])
    areas, repeated = _sorted_areas({name: values[chosen] for name, values in columns.items()}, states)
    if repeated:
        problems.append(
            AreaProblem(", ".join(BLOCK_NUMBER), "duplicate-block", repeated, "rows whose block has a row already",
                        "every block once, because records would count several times", "remove the repeated rows")
        )  # fmt: skip
    if not areas.blocks:
        problems.append(
            AreaProblem("TABBLKST", "no-block", 0, "no block lies in a state of the filter", "blocks of the states",
                        "correct the state filter, or check that the right file was given")
        )  # fmt: skip
    return areas, tuple(problems)


def _numbers(column: Any, width: int) -> NDArray[np.int32]:
    """Dictionary-encoded texts of exactly ``width`` digits as numbers; -1 for any other text."""
    if not column.num_chunks:
        return np.empty(0, np.int32)
    texts = column.chunk(0).dictionary.to_pylist()
    digits = [
        int(text) if len(text) == width and text.isascii() and text.isdecimal() else -1 for text in texts
    ]
    values = np.array([*digits, -1], np.int32)
    indices = [chunk.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return values[np.concatenate(indices)]


def _sorted_areas(columns: dict[str, NDArray[np.int32]], states: tuple[str, ...]) -> tuple[Areas, int]:
    keys = columns["TABBLKST"].astype(np.int64)
    for name in BLOCK_NUMBER[1:]:
        keys *= 10 ** _WIDTHS[name]
        keys += columns[name]
    place, aiannh = columns["PLACEFP"], columns["AIANNHCE"]
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, place, aiannh = keys[order], place[order], aiannh[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    repeated = len(keys) - int(np.count_nonzero(first))
    if repeated:
        keys, place, aiannh = keys[first], place[first], aiannh[first]
    return Areas(keys, place, aiannh, states), repeated


def _from_codes(
    codes: NDArray[np.int64], inside: NDArray[np.bool_], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    seen = np.zeros(most, bool)
    seen[codes[inside]] = True
    regions = np.flatnonzero(seen).astype(np.int64)
    position = np.full(most, -1, np.int32)
    position[regions] = np.arange(len(regions), dtype=np.int32)
    return regions, np.where(inside, position[np.where(inside, codes, 0)], np.int32(-1))


def _positions(values: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int32]:
    if not len(values):
        return np.full(len(keys), -1, np.int32)
    places = np.searchsorted(values, keys)
    places[places == len(values)] = 0
    return np.where(values[places] == keys, places, -1).astype(np.int32)
