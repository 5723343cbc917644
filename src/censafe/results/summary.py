"""Published tables of areas from summary files: P.L. 94-171 and the DHC, of the levels that they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.identifiers import GEOCODE as BLOCK_DIGITS
from censafe.geography.identifiers import geocode_texts
from censafe.geography.summary_files import (
    AIANHH,
    GEO_FIELDS,
    GEOCODE,
    GEOCOMP,
    LOGRECNO,
    NAME,
    SEGMENT_KEYS,
    SEGMENT_LOGRECNO,
    STUSAB,
    SUMLEV,
    StateFiles,
    read_fields,
)
from censafe.model.arrays import Integers

LEVELS: Final[Mapping[str, tuple[str, int]]] = {
    "state": ("040", 2), "county": ("050", 5), "tract": ("140", 11), "block_group": ("150", 12), "block": ("750", 15),
    "place": ("160", 7), "cousub": ("060", 10), "aiannh": ("280", 4),
}  # fmt: skip
"""Summary level and digits of the codes of each level."""
Segments = tuple[tuple[tuple[str, int], ...], ...]
"""Tables of each segment in their order, with their numbers of cells."""
_WHOLE: Final = "00"  # geographic component: the area without parts taken out


@dataclass(frozen=True, eq=False)
class AreaRecords:
    """The areas of one level.

    Args:
        codes: of blocks with the block group, shape (areas,).
        records: logical record numbers, by state, and the areas that they are of.
    """

    codes: NDArray[np.str_] = field(repr=False)
    names: NDArray[np.str_] = field(repr=False)
    records: tuple[tuple[StateFiles, Integers], ...] = field(repr=False)


class AreaTables(Protocol):
    """Published tables of areas."""

    @property
    def product(self) -> str:
        """Of the tables."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of which there are areas, the widest first."""

    @property
    def tables(self) -> frozenset[str]:
        """Tables that are there."""

    @property
    def unknown(self) -> list[str]:
        """Cells of no table of the product."""

    def missing(self, table: str, word: str = "") -> list[str]:
        """Cells of a table that are not there, of a level or of every one; none where the table is."""

    def areas(self, word: str) -> AreaRecords:
        """The areas of a level."""

    def values(self, table: str, areas: AreaRecords) -> NDArray[np.float64]:
        """Cells of a table for some areas, NaN where a cell is empty, shape (areas, cells)."""


@dataclass(frozen=True, eq=False)
class SummaryFiles:
    """Tables of the areas of some states.

    Args:
        segments: of the product.
    """

    product: str
    states: tuple[StateFiles, ...]
    segments: Segments = field(repr=False)

    @cached_property
    def _headers(self) -> tuple[Any, ...]:
        fields = (STUSAB, SUMLEV, GEOCOMP, LOGRECNO, GEOCODE, AIANHH, NAME)
        headers = []
        for state in self.states:
            if state.header is None:
                raise DataError(
                    f"{state.state}geo2020.{state.product} is missing; fix: copy the geographic header, too"
                )
            table = read_fields(state.header, GEO_FIELDS, dict.fromkeys(fields, pa.string()))
            others = int(
                pc.sum(pc.not_equal(pc.utf8_lower(table.column(f"f{STUSAB}")), state.state)).as_py() or 0
            )
            if others:
                raise DataError(
                    f"{state.header}: {others:,} records are of another state; fix: copy the file again"
                )
            headers.append(table.filter(pc.equal(table.column(f"f{GEOCOMP}"), _WHOLE)))
        return tuple(headers)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Levels of which there are records."""
        present = {
            level for header in self._headers for level in pc.unique(header.column(f"f{SUMLEV}")).to_pylist()
        }
        return tuple(word for word, (level, _) in LEVELS.items() if level in present)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Tables whose segments are there for every state."""
        numbers = [set(state.segments) for state in self.states]
        return frozenset(
            table
            for number, names in enumerate(self.segments, 1)
            for table, _ in names
            if all(number in own for own in numbers)
        )

    @property
    def unknown(self) -> list[str]:
        """None; other segments are passed over."""
        return []

    def missing(self, table: str, word: str = "") -> list[str]:
        """The table itself where its segment is not there."""
        return [] if table in self.tables else [table]

    def areas(self, word: str) -> AreaRecords:
        """The areas of a level, in the order of the files."""
        level, digits = LEVELS[word]
        codes, names, records = [], [], []
        for state, header in zip(self.states, self._headers, strict=True):
            rows = header.filter(pc.equal(header.column(f"f{SUMLEV}"), level))
            own = _texts(rows, AIANHH if word == "aiannh" else GEOCODE)
            wrong = int((~np.char.isdigit(own) | (np.char.str_len(own) != digits)).sum())
            if wrong:
                raise DataError(
                    f"{state.header}: {wrong:,} codes of the summary level {level} are not {digits} digits; fix: copy the file again"
                )
            codes.append(own)
            names.append(_texts(rows, NAME))
            records.append((state, _numbers(rows, LOGRECNO)))
        every = np.concatenate(codes)
        if word == "block":
            every = np.array(geocode_texts(pa.array(every), BLOCK_DIGITS).to_pylist(), np.str_)
        return AreaRecords(every, np.concatenate(names), tuple(records))

    def values(self, table: str, areas: AreaRecords) -> NDArray[np.float64]:
        """Cells of a table for some areas, NaN where a cell is empty, shape (areas, cells)."""
        number, first, cells, fields = self._place(table)
        parts = []
        for state, records in areas.records:
            types = {
                SEGMENT_LOGRECNO: pa.string(),
                **dict.fromkeys(range(first, first + cells), pa.float64()),
            }
            segment = state.segments[number]
            rows = read_fields(segment, fields, types, empty=True)
            numbers = _numbers(rows, SEGMENT_LOGRECNO)
            order = np.argsort(numbers, kind="stable")
            place = np.minimum(np.searchsorted(numbers[order], records), len(order) - 1)
            chosen = order[place]
            missing = int((numbers[chosen] != records).sum())
            if missing or len(np.unique(numbers)) < len(numbers):
                words = (
                    f"{missing:,} areas of the header have no record"
                    if missing
                    else "record numbers are there twice"
                )
                raise DataError(f"{segment}: {words}; fix: copy the header and the segments of one release")
            columns = [rows.column(f"f{place}").to_numpy()[chosen] for place in range(first, first + cells)]
            parts.append(np.column_stack(columns))
        return np.concatenate(parts).astype(np.float64)

    def _place(self, table: str) -> tuple[int, int, int, int]:
        """Number of the segment of a table, its first field and its cells, and the fields of the segment."""
        for number, names in enumerate(self.segments, 1):
            first = SEGMENT_KEYS
            for name, cells in names:
                if name == table:
                    return number, first, cells, SEGMENT_KEYS + sum(cells for _, cells in names)
                first += cells
        raise DataError(f"table {table} is in no segment")


def _texts(rows: Any, place: int) -> NDArray[np.str_]:
    return np.array(rows.column(f"f{place}").to_pylist(), np.str_)


def _numbers(rows: Any, place: int) -> Integers:
    texts = _texts(rows, place)
    wrong = int((~np.char.isdigit(texts)).sum())
    if wrong:
        raise DataError(f"LOGRECNO: {wrong:,} record numbers are not digits; fix: copy the files again")
    return texts.astype(np.int64)
