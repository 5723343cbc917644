"""The relational layer: a handful of operations on Ibis tables, the same on every engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from censafe.model.fetching import fetch, interruptible, stream_of
from censafe.model.proven import proven

__all__ = [
    "connect",
    "count_by",
    "drop_non_unique",
    "matches",
    "recode",
    "record_batches",
    "repeated_keys",
    "stored",
    "where",
]


def connect(work: Path, *, threads: int | None = None, memory: str | None = None) -> Any:
    """Open a DuckDB backend that keeps all it writes below ``work``.

    Args:
        work: confidential scratch folder; made when absent, readable by its owner only.
        threads: number of threads; all cores when None.
        memory: memory limit in DuckDB's notation, for example ``"4GiB"``; DuckDB's own limit when None.

    Returns:
        An Ibis backend. Its database and its spill files lie in ``work``, and it loads nothing over the network.
    """
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings: dict[str, Any] = {
        "temp_directory": str(work / "spill"),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if threads is not None:
        settings["threads"] = threads
    if memory is not None:
        settings["memory_limit"] = memory
    backend = ibis.duckdb.connect(work / "tabulation.duckdb", **settings)
    interruptible(backend.con)
    return backend


@contextmanager
def stored(table: ir.Table) -> Iterator[ir.Table]:
    """Compute an expression once into a temporary table of its backend, dropped at the end of the block."""
    backend = table.get_backend()
    name = ibis.util.gen_name("tabulation")
    stored_table = backend.create_table(name, table, temp=True)
    try:
        yield stored_table
    finally:
        backend.raw_sql(f'DROP TABLE "{name}"')


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
    """Number, from 1, of the first group that holds the code; 0 for other codes and missing values.

    Args:
        column: integer codes.
        groups: disjoint sets of codes.
    """
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
    totals = {f"sum_{name}": table[name].sum().cast("int64").fill_null(0) for name in sums}
    grouped = table.group_by(list(keys)).aggregate(rows=table.count().cast("int64"), **totals)
    return fetch(grouped)


def record_batches(table: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of an expression on DuckDB as a stream of Arrow batches, in no particular order.

    Args:
        table: over tables that other connections to the same database see, not temporary ones.
        rows: about how many rows a batch has.
    """
    backend: Any = table.get_backend()
    with stream_of(backend.con) as cursor:
        yield from cursor.execute(backend.compile(table)).to_arrow_reader(rows)


def _runs(codes: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for code in sorted(set(codes)):
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs
