"""DuckDB in this process: the default engine, and the reader of text for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import ibis.expr.datatypes as dt
import pyarrow as pa
from ibis.backends.duckdb import Backend
from ibis.expr.operations import DatabaseTable

from censafe.errors import StorageError
from censafe.model.closing import write_refusal
from censafe.model.fetching import interruptible, stream_of
from censafe.tabulation.engine import arrays
from censafe.tabulation.engine.operations import Relational

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.model.engine import Answer


_MOST_TRANSLATED = 500


class EmbeddedEngine(Relational, Backend):
    """CONFIDENTIAL. DuckDB with what :class:`censafe.model.engine.Engine` asks for; made by :func:`open_embedded`."""

    @property
    def embedded(self) -> EmbeddedEngine:
        """Itself."""
        return self

    def compile(self, expr: ir.Expr, /, **options: Any) -> str:
        """The query in SQL, translated once: the parts of an input get the same queries, and each takes Ibis longer than DuckDB's plan."""
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
        """Compute an expression once, into arrays, which take half of the time of a table; a shared table is seen by the cursors that streams have."""
        if not shared:
            return self._keep(name, self.fetch(table))
        self.con.execute(f"CREATE OR REPLACE TABLE {name} AS {self.compile(table)}")
        return self.table(name)

    @cached_property
    def _arrays(self) -> dict[str, pa.Table]:
        return {}

    @cached_property
    def _threads(self) -> int:
        """As many as DuckDB has."""
        return int(self.con.execute("SELECT current_setting('threads')").fetchall()[0][0])

    @cached_property
    def _kinds(self) -> dict[str, arrays.Kinds | None]:
        """Of tables that are kept, by name."""
        return {}

    def _keep(self, name: str, rows: pa.Table) -> ir.Table:
        self._kinds.pop(name, None)
        self._arrays[name] = rows
        self.con.register(name, rows)
        return self.table(name)

    def _rows(self, table: ir.Table) -> pa.Table:
        name = _name_of(table)
        return self._arrays[name] if name in self._arrays else self.fetch(table)

    def unique(self, table: ir.Table, key: str) -> bool:
        """Whether every key has a place of its own in an array."""
        return arrays.KeyRows.of(self._rows(table)[key]) is not None

    def joined(
        self, name: str, left: ir.Table, right: ir.Table, key: str, *, outer: bool = False
    ) -> ir.Table:
        """Rows joined by places in an array, or DuckDB's join."""
        rows = arrays.join_by_key(
            self._rows(left), self._rows(right), key, outer=outer, threads=self._threads
        )
        return super().joined(name, left, right, key, outer=outer) if rows is None else self._keep(name, rows)

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
        """Answers for every combination of codes, added up by places in an array, or DuckDB's groups."""
        kinds = self._kinds_of(table, key)
        columns_by_name = None
        if kinds is not None:
            answers = self._answers(table, kinds, {**sums, **marks})
            added, united = ({column: answers[column] for column in columns} for columns in (sums, marks))
            columns_by_name = arrays.sum_rows(self._rows(table)[key], kinds, rows, added, united)
        if columns_by_name is None:
            return super().summed(name, table, key, rows=rows, sums=sums, marks=marks)
        keys = pa.array(columns_by_name.pop(""), table.schema()[key].to_pyarrow())
        return self._keep(name, pa.table({key: keys, **columns_by_name}))

    def counted(
        self, table: ir.Table, key: str, own: Answer, other: ir.Table, code: str, size: int
    ) -> pa.Table:
        """Answers for every combination of codes, counted by places in an array, or DuckDB's join."""
        kinds = self._kinds_of(table, key)
        counts = None
        if kinds is not None:
            answers = self._answers(table, kinds, {"own": own})["own"]
            counts = arrays.count_pairs(
                self._rows(table)[key], kinds, answers, self._rows(other), (key, code), threads=self._threads
            )
        if counts is None:
            return super().counted(table, key, own, other, code, size)
        codes, owns, rows = counts
        return pa.table({"_key": codes * size + owns, "rows": rows})

    def _kinds_of(self, table: ir.Table, key: str) -> arrays.Kinds | None:
        name = _name_of(table)
        if name not in self._arrays:
            return arrays.kinds_of(self._rows(table).drop_columns([key]))
        if name not in self._kinds:
            self._kinds[name] = arrays.kinds_of(self._rows(table).drop_columns([key]))
        return self._kinds[name]

    def _answers(
        self, table: ir.Table, kinds: arrays.Kinds, questions: Mapping[str, Answer]
    ) -> dict[str, Any]:
        """The answer of every combination of codes that occurs, by its number."""
        of_kinds = self._keep(f"{_name_of(table)}_kinds", kinds.rows)
        try:
            answers = self.fetch(
                of_kinds.select(
                    "_kind", **{name: ask(of_kinds).cast("int64") for name, ask in questions.items()}
                )
            )
        finally:
            self.drop(_name_of(of_kinds))
        return {name: kinds.spread(answers, name) for name in questions}

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
            if name in self._arrays:
                del self._arrays[name]
                self._kinds.pop(name, None)
                self.con.unregister(name)
                continue
            # The name is part of the query: DuckDB loads pandas for parameters.
            kinds = self.con.execute(
                f"SELECT DISTINCT table_type FROM information_schema.tables WHERE table_name = '{name}'"
            ).fetchall()
            for (kind,) in kinds:
                self.con.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {name}")

    def fetch(self, table: ir.Table) -> pa.Table:
        """The rows, straight from DuckDB: the general way of Ibis loads pandas first, which takes longer than most queries."""
        rows = self.con.sql(self.compile(table)).to_arrow_table()
        return rows.cast(table.schema().to_pyarrow())

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
        """Whether a text is so many digits, evaluated once for every entry of a file's dictionary."""
        return _matched(column, f"[0-9]{{{width}}}")


def _name_of(table: ir.Table) -> str:
    """The name of a table of the engine; empty for an expression."""
    operation = table.op()
    return operation.name if isinstance(operation, DatabaseTable) else ""


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
    """Open DuckDB; its database and its spill files lie in ``work``, and it loads nothing over the network."""
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings: dict[str, Any] = {
        "temp_directory": str(work / "spill"),
        "preserve_insertion_order": False,
        "enable_external_file_cache": False,  # it would hold all files of records in memory, and each part reads its own rows
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if threads is not None:
        settings["threads"] = threads
    if memory is not None:
        settings["memory_limit"] = memory
    try:
        engine = EmbeddedEngine().connect(work / "tabulation.duckdb", **settings)
    except duckdb.IOException as error:
        reason = write_refusal(error) or "check that the folder can be written"
        raise StorageError(f"{work}: the engine cannot write its working files: {reason}") from error
    # Queries then say how far they are, and write nothing about it themselves. In Jupyter, DuckDB refuses without ipywidgets,
    # which it would draw the bar with: queries then do not say it.
    with suppress(duckdb.InvalidInputException):
        engine.con.execute(
            "SET enable_progress_bar_print = false; SET progress_bar_time = 0; SET enable_progress_bar = true"
        )
    interruptible(engine.con, duckdb.ConnectionException)
    return engine
