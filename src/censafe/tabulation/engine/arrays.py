"""Joins, sums and counts of rows as arrays: a key is a place in an array, and a condition is evaluated once for every combination of codes.

They give what the operations of :class:`censafe.tabulation.engine.operations.Relational` give, or None where keys
repeat, or keys or combinations are so many or so far apart that arrays would be too large; the engine then joins by hashing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_Result = TypeVar("_Result")
_MOST = 1 << 27  # entries of an array: half a GiB of 32 bits
_SPARSE, _FEW = 64, 1 << 16  # entries for a value that occurs, and entries that are few in any case
_MOST_KINDS = 1 << 23
_WORD = 1 << 63
_CHUNK = 1 << 19  # rows at a time: what is computed of them stays in the cache
_ONES = np.ones(_CHUNK, np.int64)


@dataclass(frozen=True, eq=False)
class KeyRows:
    """CONFIDENTIAL. The row of every key; no key has two.

    Args:
        row: of every key from ``low`` on, -1 where it has none.
    """

    low: int
    row: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> KeyRows | None:
        """The rows of a column of keys; missing ones have none. None where a key repeats, or keys lie too far apart."""
        keys, valid = _integers(column)
        rows = np.arange(len(keys), dtype=np.int32) if valid is None else np.flatnonzero(valid)
        keys = keys if valid is None else keys[valid]
        span = _span(keys)
        if span is None:
            return None
        low, length = span
        row = np.full(length, -1, np.int32)
        place = _offsets(keys, low)
        row[place] = rows
        return cls(low, row) if np.array_equal(row[place], rows) else None

    def find(self, column: pa.ChunkedArray, threads: int) -> NDArray[np.int32]:
        """The row of every key of a column, -1 where it has none."""
        keys, valid = _integers(column)
        rows_of_keys = np.full(len(keys), -1, np.int32)

        def look_up(rows: slice) -> None:
            place = _offsets(keys[rows], self.low)
            inside = place < len(self.row)
            if valid is not None:
                inside &= valid[rows]
            rows_of_keys[rows] = np.where(inside, self.row.take(place, mode="clip"), np.int32(-1))

        if len(self.row):
            list(_by_chunks(look_up, len(keys), threads))
        return rows_of_keys


@dataclass(frozen=True, eq=False)
class Kinds:
    """CONFIDENTIAL. Rows by the combination of their codes.

    Args:
        rows: one row of codes for each combination that occurs, with its number as _kind.
    """

    number: NDArray[np.int32] = field(repr=False)
    size: int
    rows: pa.Table = field(repr=False)

    def spread(self, answers: pa.Table, name: str) -> NDArray[np.int64]:
        """The answer of every combination, by its number; a missing one is 0.

        Args:
            answers: _kind and a column for every question.
        """
        values = np.zeros(self.size, np.int64)
        values[_integers(answers["_kind"])[0]] = _integers(answers[name])[0]
        return values


def kinds_of(codes: pa.Table) -> Kinds | None:
    """Number the combinations of the codes of a table."""
    number, shape, lows = np.zeros(len(codes), np.int32), [], []
    for column in codes.columns:
        if not pa.types.is_integer(column.type):
            return None
        bounds = pc.min_max(column)
        low, high = (bounds["min"].as_py() or 0) - 1, bounds["max"].as_py() or 0
        shape.append(high - low + 1)
        lows.append(low)
        if np.prod(shape, dtype=object) > _MOST_KINDS:
            return None
        values, valid = _integers(column)
        place = _offsets(values, low).astype(np.int32)
        number *= np.int32(shape[-1])
        number += place if valid is None else np.where(valid, place, 0)
    size = int(np.prod(shape, dtype=object))
    occurring = np.flatnonzero(np.bincount(number, minlength=size))
    columns = {"_kind": pa.array(occurring)}
    for name, low, digits in zip(codes.column_names, lows, np.unravel_index(occurring, shape), strict=True):
        columns[name] = pa.array(digits + low, codes.schema.field(name).type, mask=digits == 0)
    return Kinds(number, size, pa.table(columns))


def join_by_key(left: pa.Table, right: pa.Table, key: str, *, outer: bool, threads: int) -> pa.Table | None:
    """Rows of ``left`` that have a key, each with the row of ``right`` that has the same; without one they go, or stay when ``outer``."""
    at = _matches(left[key], right[key], threads)
    if at is None:
        return None
    stays = _valid(left[key]) if outer else at >= 0
    if stays is not None and not stays.all():
        left, at = left.filter(pa.array(stays)), at[stays]
    places = pa.array(at, mask=at < 0) if outer else pa.array(at)
    for name in right.column_names:
        if name != key:
            left = left.append_column(name, right[name].combine_chunks().take(places))
    return left


def sum_rows(
    keys: pa.ChunkedArray,
    kinds: Kinds,
    rows: str,
    sums: Mapping[str, NDArray[np.int64]],
    marks: Mapping[str, NDArray[np.int64]],
) -> dict[str, NDArray[np.int64]] | None:
    """Rows of every key under ``rows``, sums of answers and unions of their bits; keys under an empty name. None also where a sum may not fit."""
    values, valid = _integers(keys)
    number = kinds.number if valid is None else kinds.number[valid]
    values = values if valid is None else values[valid]
    distinct = _distinct(values)
    if distinct is None:
        return None
    names = distinct.names
    out = {name: np.zeros(len(names), np.int64) for name in (rows, *sums, *marks)}
    for chunk in _chunks(len(values)):
        place, kind = distinct.place(values[chunk]), number[chunk]
        np.add.at(out[rows], place, _ONES[: len(place)])
        for name, answers in sums.items():
            np.add.at(out[name], place, answers[kind])
        for name, answers in marks.items():
            np.bitwise_or.at(out[name], place, answers[kind])
    largest = max((int(np.abs(answers).max(initial=0)) for answers in sums.values()), default=0)
    return None if largest * int(out[rows].max(initial=0)) >= _WORD else {"": names, **out}


def count_pairs(
    keys: pa.ChunkedArray,
    kinds: Kinds,
    own: NDArray[np.int64],
    other: pa.Table,
    columns: tuple[str, str],
    *,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
    """Rows by the code of the one row of ``other`` with the same key, and by their own code."""
    index = KeyRows.of(other[columns[0]])
    codes, own_codes = _distinct(_integers(other[columns[1]])[0]), _distinct(own)
    if index is None or codes is None or own_codes is None:
        return None
    width = len(own_codes.names)
    if len(codes.names) * width > _MOST:
        return None
    of_other = codes.place(_integers(other[columns[1]])[0])
    of_own = own_codes.place(own)
    numbers = np.zeros(len(codes.names) * width, np.int64)
    at = index.find(keys, threads)

    def pairs(rows: slice) -> NDArray[np.int64]:
        stays = at[rows] >= 0
        flat: NDArray[np.int64] = of_other[at[rows][stays]].astype(np.int64) * width
        return flat + of_own[kinds.number[rows][stays]]

    for flat in _by_chunks(pairs, len(at), threads):
        np.add.at(numbers, flat, _ONES[: len(flat)])
    occurring = np.flatnonzero(numbers)
    return codes.names[occurring // width], own_codes.names[occurring % width], numbers[occurring]


def _matches(keys: pa.ChunkedArray, others: pa.ChunkedArray, threads: int) -> NDArray[np.int32] | None:
    """The row of every key among other keys, -1 where it has none; None where other keys repeat or lie too far apart."""
    if pa.types.is_integer(keys.type) and pa.types.is_integer(others.type):
        index = KeyRows.of(others)
        return None if index is None else index.find(keys, threads)
    if pc.count_distinct(others).as_py() < len(others) - others.null_count:
        return None
    positions = pc.index_in(keys, others.combine_chunks(), skip_nulls=True).fill_null(-1)
    return np.asarray(positions, np.int32)


def _valid(column: pa.ChunkedArray) -> NDArray[np.bool_] | None:
    """Which values are not missing, when some are."""
    return column.is_valid().combine_chunks().to_numpy(zero_copy_only=False) if column.null_count else None


def _integers(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Integers, 0 for missing ones, and which are not missing when some are."""
    valid = _valid(column)
    return (column if valid is None else column.fill_null(0)).to_numpy(), valid


def _span(values: NDArray[np.int64]) -> tuple[int, int] | None:
    """The smallest value and how many there are from it to the largest; None for too many, in all or compared with those that occur."""
    if not len(values):
        return 0, 0
    low, high = int(values.min()), int(values.max())
    return (low, high - low + 1) if high - low < min(_MOST, max(_FEW, _SPARSE * len(values))) else None


@dataclass(frozen=True, eq=False)
class _Distinct:
    """Values that occur, in order, and the place of each among them, by what it exceeds the smallest."""

    names: NDArray[np.int64]
    low: int
    places: NDArray[np.int32]

    def place(self, values: NDArray[np.int64]) -> NDArray[np.int32]:
        places: NDArray[np.int32] = self.places[_offsets(values, self.low)]
        return places


def _distinct(values: NDArray[np.int64]) -> _Distinct | None:
    """The values that occur; None when they lie too far apart."""
    span = _span(values)
    if span is None:
        return None
    low, length = span
    seen = np.zeros(length, np.bool_)
    for rows in _chunks(len(values)):
        seen[_offsets(values[rows], low)] = True
    names = np.flatnonzero(seen)
    places = np.zeros(length, np.int32)
    places[names] = np.arange(len(names), dtype=np.int32)
    return _Distinct(names + low, low, places)


def _offsets(values: NDArray[np.int64], low: int) -> NDArray[np.uint64]:
    """What values exceed ``low`` by; a value below it wraps around to a number beyond every array."""
    bounds = np.iinfo(values.dtype)
    if not bounds.min <= low <= bounds.max:
        values = values.astype(np.int64)
    exceeding = values - values.dtype.type(low)
    return exceeding.view(f"u{exceeding.dtype.itemsize}")


def _by_chunks(work: Callable[[slice], _Result], rows: int, threads: int) -> Iterator[_Result]:
    """The results of chunks of rows in their order; numpy lets other threads compute meanwhile."""
    chunks = list(_chunks(rows))
    if threads == 1 or len(chunks) == 1:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, chunks)


def _chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _CHUNK):
        yield slice(start, start + _CHUNK)
