"""Which engine a run uses, and what an engine offers beside Ibis: files, tables of records for a run, exact sums; streams and queries that a signal ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast
from weakref import WeakKeyDictionary

from censafe.errors import UsageError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


Answer = Callable[["ir.Table"], "ir.IntegerValue"]
"""A question about the codes of a row, which depends on nothing else; never missing."""

EngineName = Literal["duckdb", "sail", "spark"]
_NEEDS = {"duckdb": (), "sail": ("pysail", "pyspark"), "spark": ("pyspark",)}
_REMOTE = "SPARK_REMOTE"  # Spark's own name for the address of its server
_ALLOWED = "duckdb, sail, spark=sc://HOST:PORT"


@dataclass(frozen=True)
class EngineChoice:
    """An engine by name, and where its server is.

    Args:
        name: ``duckdb`` in this process, ``sail`` in a process that is started for the run, or ``spark``: a server that speaks Spark Connect.
        trust_this_machine: whether Sail may listen where every process of this machine can reach it, if nothing else can be had.
    """

    name: EngineName = "duckdb"
    url: str = ""
    trust_this_machine: bool = False

    @classmethod
    def parse(cls, text: str, *, trust_this_machine: bool = False) -> EngineChoice:
        """Read an engine as it is written, and check that what it needs is installed.

        Example:
            >>> EngineChoice.parse("duckdb")
            EngineChoice(name='duckdb', url='', trust_this_machine=False)
        """
        name, equals, url = text.partition("=")
        if name not in _NEEDS or (equals and name != "spark"):
            raise UsageError(f"`engine`: there is no engine {text!r}; allowed: {_ALLOWED}")
        if name == "spark":
            url = url or os.environ.get(_REMOTE, "")
            if not url.startswith("sc://") or url == "sc://":
                raise UsageError(
                    "`engine`: spark needs the address of a Spark Connect server; allowed: spark=sc://HOST:PORT, "
                    f"or spark with the address in ${_REMOTE}"
                )
        missing = [package for package in _NEEDS[name] if find_spec(package) is None]
        if missing:
            raise UsageError(
                f'`engine`: {name} is not installed ({", ".join(missing)} missing); fix: pip install "censafe[{name}]"'
            )
        return cls(cast(EngineName, name), url, trust_this_machine)


class Engine(Protocol):
    """CONFIDENTIAL. An Ibis backend that holds the records of one run; all that it writes lies in the run's scratch folder."""

    @property
    def embedded(self) -> Any:
        """The embedded engine, which reads text and fixed-width files for every engine; itself where it is the engine."""

    def scan(self, name: str, files: Sequence[Path], columns: Sequence[str]) -> ir.Table:
        """Parquet files as a table of integers and text under ``name``; nothing is read yet."""

    def store(self, name: str, table: ir.Table, *, shared: bool = False) -> ir.Table:
        """Compute an expression once and hold it under ``name``, in the place of what stood there."""

    def compute(
        self, name: str, tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]], schema: pa.Schema
    ) -> ir.Table:
        """Do independent tasks, on workers where there are any, and hold their batches under ``name``."""

    def hold(self, name: str, rows: pa.Table) -> ir.Table:
        """Rows of this process as a table of the engine."""

    def drop(self, *names: str) -> None:
        """Forget tables, whether or not they exist."""

    def table(self, name: str) -> ir.Table:
        """A table that was scanned or stored."""

    def fetch(self, table: ir.Table) -> pa.Table:
        """The rows of an expression, with its columns and types."""

    def batches(self, table: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of an expression over shared tables in batches of about ``rows``, in no particular order."""

    def unique(self, table: ir.Table, key: str) -> bool:
        """Whether it is known at once that no key of a table repeats; missing keys do not count."""

    def joined(
        self, name: str, left: ir.Table, right: ir.Table, key: str, *, outer: bool = False
    ) -> ir.Table:
        """Rows of two tables that have the same key, each with the columns of both; made fast for a ``right`` whose keys do not repeat.

        Args:
            outer: whether rows of ``left`` whose key ``right`` does not have stay, with missing values.
        """

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
        """One row for every key of a table, held under ``name``."""

    def counted(
        self, table: ir.Table, key: str, own: Answer, other: ir.Table, code: str, size: int
    ) -> pa.Table:
        """Number of pairs of rows with the same key, by the codes of both.

        Returns:
            Arrow table with ``_key``, the other code times ``size`` plus the own, and ``rows``, both int64.
        """

    def total(self, column: ir.NumericColumn) -> ir.NumericScalar:
        """The sum of a column as an expression that cannot wrap around: exact, or an error."""

    def total_or_missing(self, column: ir.NumericColumn) -> ir.IntegerScalar:
        """The sum of a column as an integer of 64 bits, exact, or missing where it does not fit."""

    def coded(self, column: ir.StringColumn, codes: Sequence[str]) -> ir.IntegerColumn:
        """The integer that one of ``codes`` writes, such as 7 of ``"07"``; missing where a column holds another text."""

    def digits(self, column: ir.StringColumn, width: int) -> ir.BooleanColumn:
        """Whether a text is ``width`` digits and nothing else; missing for a missing one."""

    def disconnect(self) -> None:
        """Forget all tables and stop."""


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
    return cast(Engine, expression.get_backend())


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
