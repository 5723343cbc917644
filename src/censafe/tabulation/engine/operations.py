"""The relational layer: a handful of operations on Ibis tables, the same on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from censafe.errors import DataError
from censafe.model.engine import engine_of, fetch
from censafe.model.proven import proven

if TYPE_CHECKING:
    from censafe.model.engine import Answer


@contextmanager
def stored(name: str, table: ir.Table) -> Iterator[ir.Table]:
    """Compute an expression once into a temporary table of its engine, dropped at the end of the block."""
    engine = engine_of(table)
    try:
        yield engine.store(name, table)
    finally:
        engine.drop(name)


@contextmanager
def joined_by_key(name: str, left: ir.Table, right: ir.Table, key: str) -> Iterator[ir.Table]:
    """Rows of two tables that have the same key, dropped at the end of the block."""
    engine = engine_of(left)
    try:
        yield engine.joined(name, left, right, key)
    finally:
        engine.drop(name)


def matches(column: ir.Column, codes: Iterable[int]) -> ir.BooleanValue:
    """Whether a code column holds one of ``codes``; unknown, and so not admitted, for a missing value.

    Runs of codes become range comparisons, which engines evaluate faster than long lists.
    """
    tests = [
        column == first if first == last else column.between(first, last) for first, last in _runs(codes)
    ]
    if not tests:
        return ibis.literal(False)
    return ibis.or_(*tests)


def where(table: ir.Table, conditions: Mapping[str, Iterable[int]]) -> ir.BooleanValue:
    """Whether a row meets all conditions, given as allowed codes by column; true when there are none."""
    if not conditions:
        return ibis.literal(True)
    return ibis.and_(*(matches(table[column], codes) for column, codes in conditions.items()))


def recode(column: ir.Column, groups: Sequence[Iterable[int]]) -> ir.IntegerValue:
    """Number, from 1, of the first group that holds the code; 0 for other codes and missing values."""
    branches = [(matches(column, codes), position) for position, codes in enumerate(groups, start=1)]
    return ibis.cases(*branches, else_=0) if branches else ibis.literal(0)


def repeated_keys(table: ir.Table, key: str) -> ir.Table:
    """Keys that occur more than once, each once."""
    counted = table.group_by(key).aggregate(rows=table.count())
    return counted.filter(counted["rows"] > 1).select(key)


@proven("engine.proof.md", digest="c5b40d94e419614d")
def drop_non_unique(table: ir.Table, key: str, repeated: ir.Table) -> ir.Table:
    """Rows whose key occurs exactly once; every row of a repeated or missing key is dropped.

    One row more or less in ``table`` changes the rows that survive by at most one.

    Args:
        table: any rows.
        key: name of the key column.
        repeated: the :func:`repeated_keys` of ``table``, stored or as an expression.
    """
    return table.filter(table[key].notnull()).anti_join(repeated, key)


def count_by(table: ir.Table, keys: Sequence[str], sums: Sequence[str] = ()) -> pa.Table:
    """Number of rows, and sums of columns, for every combination of keys that occurs.

    Returns:
        Arrow table with the keys, ``rows`` (int64) and ``sum_<column>`` (int64), in no particular order.
    """
    engine = engine_of(table)
    totals = {f"sum_{name}": engine.total(table[name]).fill_null(0) for name in sums}
    counted = fetch(table.group_by(list(keys)).aggregate(rows=table.count().cast("int64"), **totals))
    for name in sums:
        position = counted.schema.get_field_index(f"sum_{name}")
        try:
            integers = counted[position].cast(pa.int64())
        except pa.ArrowInvalid:
            raise DataError(
                f"{name}: the sum over all records does not fit into 64 bits; allowed: sums below 2^63; fix: correct the column"
            ) from None
        counted = counted.set_column(position, f"sum_{name}", integers)
    return counted


def record_batches(table: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of an expression as a stream of Arrow batches, in no particular order."""
    return engine_of(table).batches(table, rows)


def _runs(codes: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for code in sorted(set(codes)):
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


class Relational:
    """What an engine does with rows by their keys, in Ibis; an engine may have a faster way for some of it."""

    store: Callable[..., ir.Table]
    total_or_missing: Callable[..., Any]

    def unique(self, table: ir.Table, key: str) -> bool:
        """Nothing is known without counting."""
        del table, key
        return False

    def joined(
        self, name: str, left: ir.Table, right: ir.Table, key: str, *, outer: bool = False
    ) -> ir.Table:
        """A join, computed when it is read."""
        del name
        if not outer:
            return left.join(right, key)
        return left.filter(left[key].notnull()).left_join(right, key).drop(f"{key}_right")

    def summed(
        self,
        name: str,
        table: ir.Table,
        key: str,
        *,
        rows: str,
        sums: Mapping[str, Answer],
        marks: Mapping[str, Answer],
    ) -> ir.Table:
        """Groups by key."""
        keyed = table.filter(table[key].notnull())
        answers = {column: answer(keyed) for column, answer in {**sums, **marks}.items()}
        answered = keyed.select(key, **answers)
        totals = {column: self.total_or_missing(answered[column]) for column in sums}
        totals |= {column: answered[column].bit_or() for column in marks}
        return self.store(
            name, answered.group_by(key).aggregate(**{rows: answered.count().cast("int64")}, **totals)
        )

    def counted(
        self, table: ir.Table, key: str, own: Answer, other: ir.Table, code: str, size: int
    ) -> pa.Table:
        """A join, and groups by both codes."""
        both = table.select(key, _own=own(table)).join(other.select(key, code), key)
        return count_by(both.select(_key=both[code] * size + both["_own"]), ["_key"])
