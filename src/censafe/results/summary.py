"""Published tables of areas from summary files: P.L. 94-171 and the DHC, of the levels that they have."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
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
    read_batches,
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

    def values(self, table: str, areas: AreaRecords, also: Collection[str] = ()) -> NDArray[np.float64]:
        """Cells of a table for some areas, NaN where a cell is empty, shape (areas, cells).

        Args:
            also: tables that are needed of the same areas; those of the same file are read with it.
        """


@dataclass(frozen=True, eq=False)
class SummaryFiles:
    """Tables of the areas of some states.

    Args:
        segments: of the product.
    """

    product: str
    states: tuple[StateFiles, ...]
    segments: Segments = field(repr=False)
    _waiting: dict[str, tuple[AreaRecords, NDArray[np.float64]]] = field(
        default_factory=dict, init=False, repr=False
    )
    """Tables of one segment that were read with another table, with their areas, until they are needed."""

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

    def values(self, table: str, areas: AreaRecords, also: Collection[str] = ()) -> NDArray[np.float64]:
        """Cells of a table for some areas, NaN where a cell is empty, shape (areas, cells)."""
        of, values = self._waiting.pop(table, (None, np.empty(0)))
        if of is not areas:
            self._waiting.clear()
            self._waiting.update((name, (areas, own)) for name, own in self._read(table, areas, also).items())
            values = self._waiting.pop(table)[1]
        return values

    def _read(self, table: str, areas: AreaRecords, also: Collection[str]) -> dict[str, NDArray[np.float64]]:
        """A table and others of its segment, in one pass through the segment of every state."""
        number = next(place for place, names in enumerate(self.segments, 1) if table in dict(names))
        names, cells = zip(*self.segments[number - 1], strict=True)
        first = np.cumsum([SEGMENT_KEYS, *cells]).tolist()
        fields = {
            name: range(*first[place : place + 2])
            for place, name in enumerate(names)
            if name == table or name in also
        }
        types = dict.fromkeys(itertools.chain(*fields.values()), pa.float64())
        values = {name: np.empty((len(areas.codes), len(own))) for name, own in fields.items()}
        start = 0
        for state, records in areas.records:
            segment, order = state.segments[number], np.argsort(records, kind="stable")
            rising, there = np.append(records[order], -1), np.zeros(len(records), np.bool_)
            numbers = []
            for batch in read_batches(
                segment, first[-1], {SEGMENT_LOGRECNO: pa.string(), **types}, empty=True
            ):
                numbers.append(_numbers(batch, SEGMENT_LOGRECNO))
                place = np.searchsorted(rising[:-1], numbers[-1])
                row = np.flatnonzero(rising[place] == numbers[-1])
                area = order[place[row]]
                there[area] = True
                for name, own in fields.items() if len(row) else ():
                    columns = [batch.column(f"f{one}").to_numpy(zero_copy_only=False)[row] for one in own]
                    values[name][start + area] = np.column_stack(columns)
            every, missing = np.concatenate(numbers), int((~there).sum())
            if missing or len(np.unique(every)) < len(every):
                words = (
                    f"{missing:,} areas of the header have no record"
                    if missing
                    else "record numbers are there twice"
                )
                raise DataError(f"{segment}: {words}; fix: copy the header and the segments of one release")
            start += len(records)
        return values


def _texts(rows: Any, place: int) -> NDArray[np.str_]:
    return np.array(rows.column(f"f{place}").to_pylist(), np.str_)


def _numbers(rows: Any, place: int) -> Integers:
    texts = rows.column(f"f{place}")
    wrong = int(pc.sum(pc.invert(pc.match_substring_regex(texts, "^[0-9]{1,18}$"))).as_py() or 0)
    if wrong:
        raise DataError(f"LOGRECNO: {wrong:,} record numbers are not digits; fix: copy the files again")
    return np.asarray(texts.cast(pa.int64()).to_numpy(zero_copy_only=False))
