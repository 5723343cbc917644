"""Results of the relational layer as Arrow tables, without what the caller does not need, or as streams that a signal ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    import duckdb
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["fetch", "interrupt_queries", "interruptible", "stream_of"]

_OPEN: Final[WeakSet[duckdb.DuckDBPyConnection]] = WeakSet()
"""Databases and cursors in use, by any thread: a signal is of the whole process, and so is this."""
_CHANGING: Final = RLock()  # a signal's handler may come while its own thread holds it


def fetch(expression: ir.Expr) -> pa.Table:
    """Run a query and return its rows.

    On DuckDB the rows come straight from the engine: the general way of Ibis loads pandas first, which takes
    longer than most of our queries.

    Args:
        expression: a table, column or scalar of stored tables.

    Returns:
        Arrow table with the columns and types of the expression.
    """
    table = expression.as_table()
    backend = table.get_backend()
    if backend.name != "duckdb":
        return table.to_pyarrow()
    found = backend.con.sql(backend.compile(table)).to_arrow_table()
    return found.cast(table.schema().to_pyarrow())


def interruptible(con: duckdb.DuckDBPyConnection) -> None:
    """Let :func:`interrupt_queries` end what a connection computes.

    DuckDB looks for signals by itself only while the main thread waits for ``execute`` and works on the query, and not where its
    own threads do, while the next batch of a stream is computed, or in another thread of the program.

    Args:
        con: an open database.
    """
    with _CHANGING:
        _OPEN.add(con)


@contextmanager
def stream_of(con: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor for a stream of its own, which other queries do not end and :func:`interrupt_queries` does.

    Args:
        con: an open database.
    """
    cursor = con.cursor()
    interruptible(cursor)
    try:
        yield cursor
    finally:
        cursor.close()


def interrupt_queries() -> None:
    """End what all connections compute, with ``duckdb.InterruptException`` in the thread that waits for it."""
    with _CHANGING:
        connections = tuple(_OPEN)
    if not connections:
        return
    import duckdb

    for con in connections:
        with suppress(duckdb.ConnectionException):  # closed meanwhile
            con.interrupt()
