"""Results of the relational layer as Arrow tables, and streams and queries that a signal ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from censafe.model.engine import Engine


class Interruptible(Protocol):
    """A database, a cursor of it, or a session of a cluster."""

    def interrupt(self) -> None:
        """End what it computes, with an error in the thread that waits for it."""


class _Database(Interruptible, Protocol):
    def cursor(self) -> Any: ...


_OPEN: Final[WeakKeyDictionary[Interruptible, type[Exception]]] = WeakKeyDictionary()
"""Databases and cursors in use, by any thread, and the error of a closed one: a signal is of the whole process, and so is this."""
_INTERRUPTED: Final = "INTERRUPT Error"
"""How Arrow's reader of a stream, which knows no exception of the database, begins to say that the database was interrupted."""
_CHANGING: Final = RLock()  # a signal's handler may come while its own thread holds it


def engine_of(expression: ir.Expr) -> Engine:
    """The engine that holds the tables of an expression."""
    return cast("Engine", expression.get_backend())


def fetch(expression: ir.Expr) -> pa.Table:
    """Run a query and return its rows."""
    return engine_of(expression).fetch(expression.as_table())


def interruptible(opened: Interruptible, closed: type[Exception]) -> None:
    """Let :func:`interrupt_queries` end what a connection computes.

    DuckDB looks for signals by itself only while the main thread waits for ``execute`` and works on the query, and not where its
    own threads do, while the next batch of a stream is computed, or in another thread of the program.
    """
    with _CHANGING:
        _OPEN[opened] = closed


@contextmanager
def stream_of(con: _Database) -> Iterator[Any]:
    """Yield a cursor for a stream of its own, which other queries do not end and :func:`interrupt_queries` does, with KeyboardInterrupt."""
    cursor = con.cursor()
    interruptible(cursor, _OPEN[con])
    try:
        yield cursor
    except OSError as error:
        if str(error).startswith(_INTERRUPTED):
            raise KeyboardInterrupt from None
        raise
    finally:
        with _CHANGING:
            _OPEN.pop(cursor, None)
        cursor.close()


def query_share() -> float:
    """How much of the query under way is done, 0 to 1, as its database says; 0 where none says it."""
    with _CHANGING:
        connections = tuple(_OPEN.items())
    shares = [0.0]
    for con, closed in connections:
        progress = getattr(con, "query_progress", None)
        if progress is not None:
            with suppress(closed):
                shares.append(progress() / 100.0)
    return min(max(shares), 1.0)


def interrupt_queries() -> None:
    """End what all connections compute, with an error in the thread that waits for it."""
    with _CHANGING:
        connections = tuple(_OPEN.items())
    for con, closed in connections:
        with suppress(closed):  # closed meanwhile
            con.interrupt()
