"""The Bureau's tabulation block file GRF-C: the regions that every block lies in, and the areas off the standard spine that it puts blocks in.

Public data. A block is the number made of its state, county, tract and block digits; blocks are sorted, and a
block's ordinal is its position in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.geocodes import pack_geocodes
from censafe.geography.regions import PUERTO_RICO, RegionType, region_type

if TYPE_CHECKING:
    import pyarrow as pa


NO_AIANNH: Final = 9999
NO_PLACE: Final = 99999

BLOCK_AREA_COLUMNS: Final[Mapping[str, tuple[int, int]]] = {
    "aiannhce": (4, NO_AIANNH),
    "placefp": (5, NO_PLACE),
    "cousubfp": (5, NO_PLACE),
}
"""Digits of the codes of every kind of area, and the code of none."""

BLOCK_NUMBER: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
"""Columns of GRF-C that make the number of a block; the block group is the first digit of the last one."""

_BLOCK_DIGITS: Final = (2, 3, 6, 4)


@dataclass(frozen=True, eq=False)
class BlockAreas:
    """Areas of every block, in the order of the blocks of the standard spine.

    Args:
        codes: geocodes of 16 digits as numbers, rising; int64, shape (blocks,).
        aiannh: American Indian, Alaska Native or Hawaiian area, 9999 for none; int32, shape (blocks,).
        place: place, 99999 for none; int32, shape (blocks,).
        cousub: county subdivision, 99999 for none; int32, shape (blocks,).
        keys: by name of a crosswalk, a number for every block that is the same for all blocks of an area; int64, shape
            (blocks,). ``prim`` and ``districts`` (school districts) serve the spine of the DHC.
    """

    codes: NDArray[np.int64] = field(repr=False)
    aiannh: NDArray[np.int32] = field(repr=False)
    place: NDArray[np.int32] = field(repr=False)
    cousub: NDArray[np.int32] = field(repr=False)
    keys: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns: tuple[NDArray[Any], ...] = (self.aiannh, self.place, self.cousub, *self.keys.values())
        if any(len(column) != len(self.codes) for column in columns):
            raise ValueError("areas must have one value a block")


def read_grfc(
    path: Path, columns: tuple[str, ...], *, coded: bool = False, in_order: bool = False
) -> pa.Table:
    """Read some columns of a GRF-C file as text.

    Returns:
        Arrow table of text columns in the order of `columns`, one row a block.

    Source: layout of the 2020 tabulation geography (GRF-C), as DHC-A and S-DHC use it.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = column_names(path)
    _require_columns(path, names, columns, in_order=in_order)
    kind = pa.dictionary(pa.int32(), pa.string()) if coded else pa.string()
    try:
        table = arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(delimiter="|", quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(columns), column_types=dict.fromkeys(columns, kind)
            ),
        )
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check its permissions") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError):  # the second where a line ends otherwise than the header
        raise DataError(
            f"{path.name}: rows differ from the header in their number of values, or are not UTF-8; allowed: "
            f"{len(names)} pipe-separated values a row; fix: copy the file again"
        ) from None
    if not table.num_rows:
        raise DataError(f"{path.name}: the file has no blocks; allowed: one row a block; fix: copy it again")
    return table


def _require_columns(path: Path, names: Sequence[str], columns: tuple[str, ...], *, in_order: bool) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        raise DataError(
            f"{path.name}: columns missing: {', '.join(missing)}; allowed: a pipe-delimited file with at least "
            f"{', '.join(columns)}; fix: use the GRF-C file of the 2020 tabulation geography"
        )
    repeated = [name for name in columns if names.count(name) > 1]
    if repeated:
        raise DataError(
            f"{path.name}: columns repeated: {', '.join(repeated)}; allowed: each column once; fix: use the GRF-C file of the "
            "2020 tabulation geography"
        )
    if in_order and [name for name in names if name in columns] != list(columns):
        raise DataError(
            f"{path.name}: columns in another order; allowed: in this order, "
            f"{', '.join(columns)}; fix: use the GRF-C file of the 2020 tabulation geography"
        )


def block_codes(table: pa.Table) -> NDArray[np.int64]:
    """Geocodes of 16 digits of the rows of GRF-C, as numbers.

    Returns:
        int64, shape (rows,); -1 where one of the columns has another form.

    Example:
        >>> import pyarrow as pa
        >>> columns = {"TABBLKST": ["44", "4"], "TABBLKCOU": ["001"] * 2, "TABTRACTCE": ["000100"] * 2, "TABBLK": ["2001"] * 2}
        >>> block_codes(pa.table(columns)).tolist()
        [4400100010022001, -1]
    """
    import pyarrow as pa

    codes = np.zeros(table.num_rows, np.int64)
    bad = np.zeros(table.num_rows, np.bool_)
    for name, digits in zip(BLOCK_NUMBER, _BLOCK_DIGITS, strict=True):
        column = table.column(name).combine_chunks()
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = np.array([*encoded.dictionary.to_pylist(), ""], np.str_)
        part = pack_geocodes(texts, digits)[encoded.indices.fill_null(len(texts) - 1).to_numpy()]
        bad |= part < 0
        if name == "TABBLK":
            codes = codes * 10 + part // 1000
        codes = codes * 10**digits + part
    return np.where(bad, -1, codes)


def column_names(path: Path) -> list[str]:
    """Names of the columns of a GRF-C file, in their order."""
    try:
        with path.open("rb") as stream:
            line = stream.readline()
        if not line:
            raise DataError(f"{path.name}: the file is empty; fix: copy it again")
        return line.decode("utf-8-sig").strip().split("|")
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be opened; check that it exists") from None
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: the header is not UTF-8 text; fix: copy the file again") from None


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
