"""One batch of records as numbers: blocks, distinct combinations of codes, and the columns that are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import Areas
from censafe.population.detailed.kernels import (
    BLOCK_ABSENT,
    OUTSIDE,
    RACES,
    TOO_MANY,
    decode_texts,
    find_blocks,
    intern,
    pack_codes,
    rehash,
)
from censafe.population.files.layout import Column
from censafe.population.files.parquet import readable_texts

if TYPE_CHECKING:
    import pyarrow as pa


_FIRST_ROOM = 1 << 14


class Combinations:
    """CONFIDENTIAL. A growing list of distinct packed combinations."""

    def __init__(self) -> None:
        self.count = 0
        self._grow(_FIRST_ROOM)

    def number(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Ordinals of packed combinations, ``int32[rows]``; new ones are added."""
        out = np.empty(len(high), np.int32)
        row = 0
        while True:
            row, self.count = intern(high, low, self._slots, self._high, self._low, row, self.count, out)
            if row == len(high):
                return out
            self._grow(2 * len(self._high))

    def packed(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Upper and lower halves of all combinations so far."""
        return self._high[: self.count], self._low[: self.count]

    def codes(self, most: int) -> NDArray[np.int16]:
        """The codes of all combinations: ``most`` race codes and the origin code, ``int16[combinations, most + 1]``."""
        high, low = self.packed()
        columns = [(high >> np.uint64(7 + 14 * (3 - k))) & np.uint64(0x3FFF) for k in range(4)]
        columns += [(low >> np.uint64(7 + 14 * (3 - k))) & np.uint64(0x3FFF) for k in range(RACES - 4)]
        span = ((high & np.uint64(127)) << np.uint64(7)) | (low & np.uint64(127))
        return np.column_stack([*columns[:most], span]).astype(np.int16)

    def _grow(self, room: int) -> None:
        old = self.packed() if self.count else (np.empty(0, np.uint64), np.empty(0, np.uint64))
        self._high, self._low = np.empty(room, np.uint64), np.empty(room, np.uint64)
        self._high[: self.count], self._low[: self.count] = old
        self._slots = np.full(2 * room, -1, np.int32)
        rehash(self._slots, self._high, self._low, self.count)


AGE_CUTS = (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
AGE_BINS = len(AGE_CUTS) + 1
_BLOCK = ("state", "county", "tract", "block")
_CODES = (*(f"race{k}" for k in range(1, RACES + 1)), "span")
_BITS = 32


@dataclass(frozen=True)
class Encoded:
    """CONFIDENTIAL. The records of a batch that can be counted, and what is wrong with the others.

    Args:
        columns: block ordinals and the counted columns of the usable rows; ``COMBO`` numbers :attr:`high` and :attr:`low`.
        rows: rows of the batch.
        outside: rows of states outside the filter.
        unusable: rows of the filter that cannot be counted.
    """

    columns: dict[str, NDArray[Any]]
    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    rows: int
    outside: NDArray[np.int64]
    unusable: int
    faults: NDArray[np.int64]
    examples: dict[int, list[str]]


class Encoder:
    """CONFIDENTIAL. Turns batches of one table into numbers; safe to use from several threads."""

    def __init__(
        self,
        fields: Sequence[Column],
        areas: Areas,
        codes: Collection[int],
        most: int,
        null_text: str,
        examples: int = 0,
    ) -> None:
        self._fields = tuple(fields)
        self._areas = areas
        self._most = most
        self._null_text = null_text
        self._examples = examples
        self._keep = np.zeros(100, bool)
        self._keep[[int(state) for state in areas.states]] = True
        self._known = np.zeros(10_000, bool)
        self._known[list(codes)] = True
        tracts = areas.keys // 10_000
        self._starts = np.append(np.flatnonzero(np.diff(tracts, prepend=-1)), len(tracts))
        self._tracts = tracts[self._starts[:-1]]
        self._never = sum(1 << bit for bit, field in enumerate(fields) if field.typed) | 1 << TOO_MANY
        self._never |= 1 << BLOCK_ABSENT
        self._block_bits = sum(1 << bit for bit, field in enumerate(fields) if field.typed in _BLOCK)

    def no_rows(self) -> dict[str, NDArray[Any]]:
        """The columns of no record at all."""
        used = {field.typed: np.empty(0, np.int32) for field in self._fields if field.typed}
        return {"BLOCK": np.empty(0, np.int32), **_counted_columns(used), "COMBO": np.empty(0, np.int32)}

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """Turn a batch into numbers."""
        used, block, codes, faults = self._numbers(batch)
        rows = batch.num_rows
        ordinal = np.empty(rows, np.int32)
        high, low = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
        find_blocks(
            block, self._keep, self._block_bits, self._areas.keys, self._tracts, self._starts,
            faults, ordinal,
        )  # fmt: skip
        pack_codes(codes, self._known, self._most, ordinal, faults, high, low)
        any_fault = bool(faults.any())
        usable = ordinal >= 0
        if any_fault:
            usable &= (faults & np.uint32(self._never)) == 0
        inside = ordinal != OUTSIDE
        outside = np.bincount(block[0][~inside], minlength=100)
        columns: dict[str, NDArray[Any]] = {"BLOCK": ordinal, **_counted_columns(used)}
        unusable = int(np.count_nonzero(inside)) - int(np.count_nonzero(usable))
        if unusable or outside.any():
            columns = {name: values[usable] for name, values in columns.items()}
            high, low = high[usable], low[usable]
        combinations = Combinations()
        columns["COMBO"] = combinations.number(high, low)
        return Encoded(
            columns, *combinations.packed(), rows, outside, unusable,
            _count_bits(faults) if any_fault else np.zeros(_BITS, np.int64),
            self._rows_at_fault(batch, faults) if any_fault and self._examples else {},
        )  # fmt: skip

    def _numbers(
        self, batch: pa.RecordBatch
    ) -> tuple[dict[str, NDArray[np.int32]], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint32]]:
        """Rows as numbers by use, parts of their blocks, their codes, and their fault bits."""
        rows = batch.num_rows
        faults = np.zeros(rows, np.uint32)
        block, codes = np.empty((4, rows), np.int32), np.empty((RACES + 1, rows), np.int32)
        used: dict[str, NDArray[np.int32]] = {}
        scratch = np.empty(rows, np.int32)
        for bit, field in enumerate(self._fields):
            texts, positions = encoded_texts(batch.column(field.name), self._null_text, field.width)
            values = np.array([field.number(text) for text in texts], np.int32)
            fill = 0
            if field.typed in _BLOCK:
                out = block[_BLOCK.index(field.typed)]
            elif field.typed in _CODES:
                out, fill = codes[_CODES.index(field.typed)], -1
            elif field.typed:
                out = used[field.typed] = np.empty(rows, np.int32)
            elif not (values < 0).any():
                continue
            else:
                out = scratch
            decode_texts(values, positions, bit, fill, out, faults)
        return used, block, codes, faults

    def _rows_at_fault(self, batch: pa.RecordBatch, faults: NDArray[np.uint32]) -> dict[int, list[str]]:
        examples = {}
        for bit in range(_BITS):
            rows = np.flatnonzero(faults & np.uint32(1 << bit))[: self._examples]
            if len(rows):
                taken = [readable_texts(column) for column in batch.take(rows).columns]
                examples[bit] = [
                    "|".join("" if v is None else str(v) for v in row) for row in zip(*taken, strict=True)
                ]
        return examples


def _counted_columns(used: dict[str, NDArray[np.int32]]) -> dict[str, NDArray[Any]]:
    if "age" in used:
        bins = np.searchsorted(AGE_CUTS, np.arange(116), side="right").astype(np.uint8)
        return {"CELL": bins[used["age"]] + (used["sex"] * AGE_BINS).astype(np.uint8)}
    return {
        "HOUSEHOLD_TYPE": used["household_type"].astype(np.int8),
        "TEN": used["tenure"].astype(np.int8),
    }


def encoded_texts(column: Any, null_text: str, width: int) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts of a column, the last one standing for missing values, and every row's position in them.

    Args:
        width: digits with which whole numbers are written.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    write: Callable[[Any], str] = (
        f"{{:0{width}d}}".format if pa.types.is_integer(column.type.value_type) else str
    )
    values = readable_texts(column.dictionary)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
    texts = [null_text if value is None else write(value) for value in values]
    return [*texts, null_text], indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)


def _count_bits(faults: NDArray[np.uint32]) -> NDArray[np.int64]:
    bad = faults[faults != 0]
    return np.array([np.count_nonzero(bad & np.uint32(1 << bit)) for bit in range(_BITS)], np.int64)
