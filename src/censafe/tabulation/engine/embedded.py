"""DuckDB in this process: the default engine, and the reader of text for all others. Joins, sums and counts of few keys are done as arrays.

They give what the operations of :class:`censafe.tabulation.engine.operations.Relational` give, or None where keys
repeat, or keys or combinations are so many or so far apart that arrays would be too large; the engine then joins by hashing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ibis.backends.duckdb import Backend
from ibis.expr.operations import DatabaseTable
from numpy.typing import NDArray

from censafe.errors import StorageError
from censafe.model.closing import write_refusal
from censafe.model.engine import interruptible, stream_of
from censafe.tabulation.engine.operations import Relational

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.model.engine import Answer


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
    def _kinds(self) -> dict[str, Kinds | None]:
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
        return KeyRows.of(self._rows(table)[key]) is not None

    def joined(
        self, name: str, left: ir.Table, right: ir.Table, key: str, *, outer: bool = False
    ) -> ir.Table:
        """Rows joined by places in an array, or DuckDB's join."""
        rows = join_by_key(self._rows(left), self._rows(right), key, outer=outer, threads=self._threads)
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
            columns_by_name = sum_rows(self._rows(table)[key], kinds, rows, added, united)
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
            counts = count_pairs(
                self._rows(table)[key], kinds, answers, self._rows(other), (key, code), threads=self._threads
            )
        if counts is None:
            return super().counted(table, key, own, other, code, size)
        codes, owns, rows = counts
        return pa.table({"_key": codes * size + owns, "rows": rows})

    def _kinds_of(self, table: ir.Table, key: str) -> Kinds | None:
        name = _name_of(table)
        if name not in self._arrays:
            return kinds_of(self._rows(table).drop_columns([key]))
        if name not in self._kinds:
            self._kinds[name] = kinds_of(self._rows(table).drop_columns([key]))
        return self._kinds[name]

    def _answers(self, table: ir.Table, kinds: Kinds, questions: Mapping[str, Answer]) -> dict[str, Any]:
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
