"""DuckDB in this process: the default engine, and the reader of text for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import ibis.expr.datatypes as dt
import pyarrow as pa
from ibis.backends.duckdb import Backend

from censafe.model.fetching import interruptible, stream_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["EmbeddedEngine", "open_embedded", "quoted"]

_MOST_TRANSLATED = 500


class EmbeddedEngine(Backend):
    """CONFIDENTIAL. DuckDB with what :class:`censafe.model.engine.Engine` asks for; made by :func:`open_embedded`."""

    @property
    def embedded(self) -> EmbeddedEngine:
        """Itself."""
        return self

    def compile(self, expr: ir.Expr, /, **options: Any) -> str:
        """The query in SQL, translated once: the parts of an input are asked the same questions, and each takes Ibis longer than DuckDB's plan."""
        if options:
            return super().compile(expr, **options)
        known: dict[Any, str] = self.__dict__.setdefault("_translated", {})
        question = expr.op()
        if question not in known:
            if len(known) >= _MOST_TRANSLATED:
                known.clear()
            known[question] = super().compile(expr)
        return known[question]

    def scan(self, name: str, files: Sequence[Path], columns: Sequence[str]) -> ir.Table:
        """Parquet files as a table of integers and text; no character of a path is taken for a pattern."""
        paths = ", ".join(quoted(escape(str(path))) for path in files)
        listed = ", ".join(f'"{column}"' for column in columns)
        return self.view(name, f"SELECT {listed} FROM read_parquet([{paths}], union_by_name=true)")

    def view(self, name: str, query: str) -> ir.Table:
        """A query in SQL, such as a scan of text, under a name."""
        self.con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")
        return self.table(name)

    def store(self, name: str, table: ir.Table, *, shared: bool = False) -> ir.Table:
        """Compute an expression once; a shared table is seen by the cursors that streams have."""
        kind = "TABLE" if shared else "TEMP TABLE"
        self.con.execute(f"CREATE OR REPLACE {kind} {name} AS {self.compile(table)}")
        return self.table(name)

    def compute(
        self, name: str, tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]], schema: pa.Schema
    ) -> ir.Table:
        """Do tasks one after the other, in this process."""
        return self.hold(name, pa.Table.from_batches([batch for task in tasks for batch in task()], schema))

    def hold(self, name: str, rows: pa.Table) -> ir.Table:
        """Rows of this process as a shared table."""
        view = f"{name}_rows"
        self.con.register(view, rows)
        self.con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {view}")
        self.con.unregister(view)
        return self.table(name)

    def drop(self, *names: str) -> None:
        """Forget tables and views, whether or not they exist."""
        for name in names:
            # The name is part of the query: DuckDB loads pandas for parameters.
            kinds = self.con.execute(
                f"SELECT DISTINCT table_type FROM information_schema.tables WHERE table_name = '{name}'"
            ).fetchall()
            for (kind,) in kinds:
                self.con.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {name}")

    def fetch(self, table: ir.Table) -> pa.Table:
        """The rows, straight from DuckDB: the general way of Ibis loads pandas first, which takes longer than most queries."""
        found = self.con.sql(self.compile(table)).to_arrow_table()
        return found.cast(table.schema().to_pyarrow())

    def batches(self, table: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows as a stream on a cursor of its own."""
        with stream_of(self.con) as cursor:
            yield from cursor.sql(self.compile(table)).to_arrow_reader(rows)

    def total(self, column: ir.NumericColumn) -> ir.NumericScalar:
        """The sum, which DuckDB makes with 128 bits."""
        return column.sum().cast("decimal(38, 0)")

    def total_or_missing(self, column: ir.NumericColumn) -> ir.IntegerScalar:
        """The sum, which DuckDB makes with 128 bits; by way of a decimal it would take twice as long."""
        return _wide_sum(column).try_cast("int64")

    def coded(self, column: ir.StringColumn, codes: Sequence[str]) -> ir.IntegerColumn:
        """The integer of a code, looked up once for every entry of a file's dictionary; a long list of `IN` is hashed for every row."""
        return _looked_up({code: int(code) for code in codes}, column)

    def digits(self, column: ir.StringColumn, width: int) -> ir.BooleanColumn:
        """Whether a text is so many digits, asked once for every entry of a file's dictionary."""
        return _matched(column, f"[0-9]{{{width}}}")


@ibis.udf.agg.builtin(name="sum")
def _wide_sum(column: dt.Int64) -> dt.Decimal(38, 0):  # type: ignore[valid-type]
    """DuckDB's own sum under the type that it has; Ibis takes it for 64 bits."""


@ibis.udf.scalar.builtin(name="regexp_full_match")
def _matched(text: dt.String, pattern: dt.String) -> dt.Boolean:
    """DuckDB's own function under its name."""


@ibis.udf.scalar.builtin(name="map_extract_value")
def _looked_up(numbers: dt.Map[dt.String, dt.Int32], text: dt.String) -> dt.Int32:
    """DuckDB's own function under its name."""


def quoted(text: str) -> str:
    """Text as a literal of SQL.

    Example:
        >>> quoted("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def open_embedded(work: Path, *, threads: int | None = None, memory: str | None = None) -> EmbeddedEngine:
    """Open DuckDB; its database and its spill files lie in ``work``, and it loads nothing over the network.

    Args:
        work: confidential scratch folder; made when absent, readable by its owner only.
        threads: number of threads; all cores when None.
        memory: memory limit in DuckDB's notation, for example ``"4GiB"``; DuckDB's own limit when None.
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
    engine = EmbeddedEngine().connect(work / "tabulation.duckdb", **settings)
    # Queries then say how far they are, and write nothing about it themselves.
    engine.con.execute(
        "SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0"
    )
    interruptible(engine.con, duckdb.ConnectionException)
    return engine
