"""Engines over Spark Connect: Sail in a process that is started for the run, or a server of Apache Spark or Sail elsewhere.

Tables that a run holds are Parquet files in its scratch folder, so that a stage can be run again after a worker or the server
was lost: nothing depends on what a server remembers. What an error of a server says is never shown, since it may quote a record.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial, reduce
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
from ibis.expr.operations import DatabaseTable
from sqlglot import expressions as sge

from censafe.errors import CensafeError, DataError, StorageError, UsageError
from censafe.model.engine import interruptible
from censafe.tabulation.engine.embedded import EmbeddedEngine, open_embedded, quoted
from censafe.tabulation.engine.operations import Relational
from censafe.tabulation.engine.sail_server import SailServer

if TYPE_CHECKING:
    import ibis.expr.types as ir


@contextmanager
def _program_with_a_file() -> Iterator[None]:
    """Give the program a file name for a moment.

    PySpark takes a program without one (``python -c``, a worker of some runners) for its own tests, and ends the process where these cannot run.
    """
    program = sys.modules["__main__"]
    if hasattr(program, "__file__"):
        yield
        return
    program.__file__ = __file__
    try:
        yield
    finally:
        del program.__file__


with _program_with_a_file():
    from ibis.backends.pyspark import Backend
    from ibis.backends.sql.compilers.pyspark import PySparkCompiler
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession


class PrivateChannel(DefaultChannelBuilder):
    """A channel to a server that was started for one run."""

    def __init__(self, target: str) -> None:
        super().__init__("sc://localhost", [("grpc.default_authority", "localhost")])
        self._target = target

    def toChannel(self) -> Any:  # noqa: N802 (named by Spark)
        """Open it."""
        return self._insecure_channel(self._target)


# Words of Apache Spark, Sail and gRPC by which the kinds of failures are told apart; they are never shown.
_MEMORY = (
    "resources exhausted",
    "outofmemory",
    "out of memory",
    "memory limit",
    "memoryerror",
    "unable to allocate",
    "exit code 137",
    "exit status 137",
)
_SERVER = (
    "unavailable",
    "session_closed",
    "session_not_found",
    "session_changed",
    "connection refused",
    "socket closed",
    "session not found",
    "invalid session",
    "table_or_view_not_found",  # a server that was started anew knows nothing of the tables of a run
    "table not found",
    "view not found",
)
_WORKER = (
    "executorlost",
    "executor lost",
    "worker lost",
    "lost worker",
    "fetchfailed",
    "exitcodeexception",
    "worker is not",
    "heartbeat",
    "actor",
)
_FILES = (
    "path_not_found",
    "path does not exist",
    "filenotfound",
    "no such file",
    "permission denied",
    "accesscontrol",
    "object not found",
    "not found: /",
    "no files found",
)
_SETUP = (
    "no module named",
    "another version of censafe",
    "python_version_mismatch",
    "different version of python",
)
_FULL = ("no space left", "file too large", "quota exceeded")
_CONTENT = ("parquet", "utf-8", "utf8", "corrupt")


class Failure(Enum):
    """Kinds of failures of a server."""

    MEMORY = "memory"
    SERVER = "server"
    WORKER = "worker"
    FILES = "files"
    FULL = "full"
    CONTENT = "content"
    SETUP = "setup"
    OTHER = "other"

    @property
    def lost(self) -> bool:
        """Whether the same work may succeed when it is done again."""
        return self in (Failure.SERVER, Failure.WORKER, Failure.OTHER)

    def error(self, label: str) -> CensafeError:
        """The error of a run that cannot go on; nothing was measured, and the same command resumes it."""
        kind = DataError if self is Failure.CONTENT else StorageError
        return kind(f"{label}: {_MESSAGES[self]}")


_MESSAGES = {
    Failure.MEMORY: "a worker ran out of memory; give workers more (Apache Spark: spark.executor.memory; Kubernetes: the limit of "
    "the pods), or use more workers or `engine` duckdb, which writes to disk what does not fit",
    Failure.SERVER: "the server was lost and does not answer; start it, then start the same command again",
    Failure.WORKER: "workers were lost three times at the same stage; see that they run, then start the same command again",
    Failure.FILES: "workers cannot read or write the data or the scratch folder; both must be seen by every worker under the same "
    "path; name a shared folder with `scratch`",
    Failure.FULL: "the disk is full where the working files are, or a file would be larger than the system allows (ulimit -f); free space there, or raise the limit",
    Failure.CONTENT: "the content of a file cannot be read; allowed: whole Parquet files whose text is UTF-8; fix: write the file again",
    Failure.SETUP: "workers have not what this process has; allowed: the same minor version of Python and the same version of `censafe`; fix: "
    "install both on every worker (Apache Spark: PYSPARK_PYTHON names the interpreter)",
    Failure.OTHER: "the server could not do a stage, three times; its own log says why",
}


def failure_of(error: BaseException) -> Failure:
    """What kind of failure an error of a server is.

    Example:
        >>> failure_of(RuntimeError("Resources exhausted: Failed to allocate")).value
        'memory'
    """
    text = f"{type(error).__name__} {error}".lower()
    for failure, words in (
        (Failure.SETUP, _SETUP),
        (Failure.MEMORY, _MEMORY),
        (Failure.FULL, _FULL),
        (Failure.FILES, _FILES),
        (Failure.WORKER, _WORKER),
        (Failure.SERVER, _SERVER),
        (Failure.CONTENT, _CONTENT),
    ):
        if any(word in text for word in words):
            return failure
    return Failure.OTHER


_ATTEMPTS = 3
_RETRIES = 7  # of a call of the protocol
_LONGEST_WAIT = 4000  # milliseconds between them
_ANSI = "spark.sql.ansi.enabled"
_VERSION = "4"
_PATTERNS = frozenset("*?[]{}\\")
_READABLE = frozenset({"int8", "int16", "int32", "int64", "string", "large_string"})
_Result = TypeVar("_Result")


@contextmanager
def _silent() -> Iterator[None]:
    """Without warnings of the client about its attempts: what comes of them is said once, by us."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*RETRIES_EXCEEDED", UserWarning)
        yield


class Connecting:
    """How sessions of one server are opened and closed.

    Args:
        url: of the server; of no use for one that was started here.
        server: one that was started for this run, which is stopped with the session.
    """

    def __init__(self, url: str, label: str, server: SailServer | None = None) -> None:
        self.label = label
        self._url = url
        self._server = server
        self._calls = ThreadPoolExecutor(1, thread_name_prefix="spark")

    @property
    def here(self) -> bool:
        """Whether the server was started for this run."""
        return self._server is not None

    @property
    def ended(self) -> bool:
        """Whether the server was started for this run and has ended, so that it is not started again."""
        return self._server is not None and self._server.lost

    def call(self, work: Callable[[], _Result]) -> _Result:
        """Do calls of the protocol in a thread of their own, since Ctrl-C inside the client would leave its locks taken forever."""
        return self._calls.submit(work).result()

    def session(self) -> Any:
        """A new session of the server."""
        opened = SparkSession(self._url if self._server is None else PrivateChannel(self._server.target))
        self.wait(opened, 2)
        return opened

    def wait(self, session: Any, retries: int) -> None:
        """How often a call of the protocol is repeated; without, a lost server is waited for more than ten minutes at every call.

        The number of the policies in use changes, so that it holds for calls that repeat themselves at this moment as well.
        """
        for policy in session.client.get_retry_policies():
            policy.max_retries, policy.max_backoff = retries, _LONGEST_WAIT

    def close(self, session: Any) -> None:
        """End a session, and the server with it where it is ours."""
        with suppress(PySparkException, grpc.RpcError), _silent():
            self.wait(session, 0)
            session.stop()
        if self._server is not None:
            self._server.stop()
        self._calls.shutdown(wait=False, cancel_futures=True)


class _Compiler(PySparkCompiler):
    """Ibis for Spark, with an aggregate that it leaves out, and tests in parentheses, which comparisons of them need."""

    __slots__ = ()

    def visit_InValues(self, op: Any, **parts: Any) -> Any:  # noqa: N802 (named by Ibis)
        return sge.paren(super().visit_InValues(op, **parts))

    def visit_Between(self, op: Any, **parts: Any) -> Any:  # noqa: N802 (named by Ibis)
        return sge.paren(super().visit_Between(op, **parts))

    def visit_BitOr(self, op: Any, *, arg: Any, where: Any) -> Any:  # noqa: N802 (named by Ibis)
        del op
        return self.agg.bit_or(arg, where=where)


class ClusterEngine(Relational, Backend):
    """CONFIDENTIAL. A Spark Connect session with what :class:`censafe.model.engine.Engine` asks for.

    Made by :func:`open_cluster` or :func:`open_sail`.
    """

    compiler = _Compiler()

    def open(self, work: Path, connecting: Connecting, threads: int | None, memory: str | None) -> None:
        """Take the session of a server, and a scratch folder that its workers see."""
        work.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._work = work
        self._connecting = connecting
        self._files: dict[str, tuple[Path, ...]] = {}
        self._views: dict[str, Callable[[], Any]] = {}
        self._schemas: dict[str, Any] = {}
        self._stored: set[str] = set()
        self._embedded: EmbeddedEngine | None = None
        self._limits = (threads, memory)
        self._interrupted = False
        interruptible(self, RuntimeError)

    @property
    def session(self) -> Any:
        """The session of Spark Connect."""
        return self._session

    @property
    def embedded(self) -> EmbeddedEngine:
        """DuckDB, opened when text has to be read."""
        if self._embedded is None:
            threads, memory = self._limits
            self._embedded = open_embedded(self._work / "embedded", threads=threads, memory=memory)
        return self._embedded

    def scan(self, name: str, files: Sequence[Path], columns: Sequence[str]) -> ir.Table:
        """Parquet files as a table of bigint and text; files whose columns have different types are read separately and united."""
        kinds: dict[tuple[str, ...], list[str]] = {}
        rewritten = self._work / f"{name}-{uuid4().hex[:8]}"
        for path in files:
            schema = pq.read_schema(path)
            types = tuple(str(schema.field(column).type) for column in columns)
            if not set(types) <= _READABLE:
                # A file without dictionaries and unsigned integers, which Sail and Spark do not both read; too large integers become missing
                rewritten.mkdir(mode=0o700, parents=True, exist_ok=True)
                target = rewritten / f"{uuid4().hex}.parquet"
                listed = ", ".join(
                    _selected(column, schema.field(column).type, mark='"') for column in columns
                )
                source, out = (quoted(str(text)) for text in (escape(str(path)), target))
                self.embedded.con.execute(
                    f"COPY (SELECT {listed} FROM read_parquet({source})) TO {out} (FORMAT parquet)"
                )
                types, path = ("rewritten",), target
            kinds.setdefault(types, []).append(_uri(path))
        selected = [_selected(column, pq.read_schema(files[0]).field(column).type) for column in columns]

        def frame() -> Any:
            parts = [self._session.read.parquet(*paths).selectExpr(*selected) for paths in kinds.values()]
            return reduce(lambda first, second: first.union(second), parts)

        self._files[name] = (rewritten,)
        return self._name(name, frame)

    def store(self, name: str, table: ir.Table, *, shared: bool = False) -> ir.Table:
        """Compute an expression once into Parquet files of the scratch folder; a repeated attempt writes new files."""
        del shared  # files are seen by all
        query = self.compile(table)
        return self._write(name, lambda: self._session.sql(query), table.schema().to_pyarrow())

    def compute(
        self, name: str, tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]], schema: pa.Schema
    ) -> ir.Table:
        """Do tasks on the workers, a partition each; they are sent there with all that they hold."""

        def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from tasks[number]()

        columns = ", ".join(f"`{field.name}` {_COLUMNS[str(field.type)]}" for field in schema)
        return self._write(
            name, lambda: self._session.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, columns), schema
        )

    def hold(self, name: str, rows: pa.Table) -> ir.Table:
        """Rows of this process as a file that the workers read."""
        folder = self._work / f"{name}-{uuid4().hex[:8]}"
        folder.mkdir(mode=0o700)
        pq.write_table(rows, folder / "rows.parquet")
        self.drop(name)
        self._files[name] = (folder,)
        return self._name(name, lambda: self._session.read.parquet(_uri(folder / "rows.parquet")))

    def _write(self, name: str, frame: Callable[[], Any], schema: pa.Schema) -> ir.Table:
        def write() -> Path:
            folder = self._work / f"{name}-{uuid4().hex[:8]}"
            try:
                frame().write.mode("error").parquet(_uri(folder))
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            return folder

        folder = self._attempt(write)
        files = tuple(sorted(folder.rglob("*.parquet"))) if folder.is_dir() else ()
        if not files:  # the engine wrote none where there are no rows
            files = (folder / "none.parquet",)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            pq.write_table(schema.empty_table(), files[0])
        self.drop(name)
        self._files[name] = (folder,)
        self._stored.add(name)
        return self._name(name, lambda: self._session.read.parquet(*map(_uri, files)))

    def drop(self, *names: str) -> None:
        """Forget tables and remove their files."""
        for name in names:
            self._schemas.pop(name, None)
            self._stored.discard(name)
            if self._views.pop(name, None) is not None and not self._interrupted:
                with suppress(PySparkException, grpc.RpcError), _silent():
                    self._connecting.call(partial(self._session.catalog.dropTempView, name))
            for folder in self._files.pop(name, ()):
                shutil.rmtree(folder, ignore_errors=True)

    def fetch(self, table: ir.Table) -> pa.Table:
        """The rows as Arrow, without pandas."""
        query = self.compile(table)
        rows: pa.Table = self._attempt(lambda: self._session.sql(query).toArrow())
        return rows.cast(table.schema().to_pyarrow())

    def batches(self, table: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of an expression, from files of the scratch folder; those of a stored table as they are."""
        operation = table.op()
        if isinstance(operation, DatabaseTable) and operation.name in self._stored:
            yield from _rows_of(self._files[operation.name], rows)
            return
        name = f"batches_{uuid4().hex[:8]}"
        self.store(name, table)
        try:
            yield from _rows_of(self._files[name], rows)
        finally:
            self.drop(name)

    def total(self, column: ir.NumericColumn) -> ir.NumericScalar:
        """The sum as a decimal of 38 digits: sums of integers wrap around on Sail, silently."""
        return column.cast("decimal(38, 0)").sum().cast("decimal(38, 0)")

    def total_or_missing(self, column: ir.NumericColumn) -> ir.IntegerScalar:
        """The sum by way of a decimal."""
        return self.total(column).try_cast("int64")

    def coded(self, column: ir.StringColumn, codes: Sequence[str]) -> ir.IntegerColumn:
        """The integer of a code, cast where the text is in the list."""
        return column.isin(codes).ifelse(column.try_cast("int32"), None)

    def digits(self, column: ir.StringColumn, width: int) -> ir.BooleanColumn:
        """Whether a text is so many digits; the length says that nothing follows, which $ alone leaves open for a line end."""
        return column.re_search(f"^[0-9]{{{width}}}$") & (column.length() == width)

    def interrupt(self) -> None:
        """End what the server computes for this session; its tables go with it, and nothing waits for a lost server any more."""
        self._interrupted = True
        self._connecting.wait(self._session, 0)
        if not self._connecting.here:  # Sail of this run stops with the session
            with suppress(PySparkException, grpc.RpcError), _silent():
                self._session.interruptAll()

    def disconnect(self) -> None:
        """Forget all tables, end the session, and stop a server that was started for this run."""
        if self._connecting.ended:
            self._connecting.wait(self._session, 0)
        self.drop(*tuple(self._views))
        if self._embedded is not None:
            self._embedded.disconnect()
        self._connecting.close(self._session)

    def _name(self, name: str, frame: Callable[[], Any]) -> ir.Table:
        self._views[name] = frame
        self._attempt(lambda: frame().createOrReplaceTempView(name))
        self._schemas[name] = self._attempt(lambda: self.get_schema(name))
        return self.table(name)

    def table(self, name: str, /, **place: Any) -> ir.Table:
        """A table that was scanned or stored, without asking the server, which may have forgotten it meanwhile."""
        if name not in self._schemas:
            return super().table(name, **place)
        return DatabaseTable(name, schema=self._schemas[name], source=self).to_expr()

    def _attempt(self, work: Callable[[], _Result]) -> _Result:
        """Do some work, and do it again where a worker or the server was lost; at most three times."""
        for attempt in range(_ATTEMPTS):
            try:
                with _silent():
                    return self._connecting.call(work)
            except (PySparkException, grpc.RpcError) as error:
                failure = failure_of(error)
            if not failure.lost or attempt == _ATTEMPTS - 1:
                break
            if failure is Failure.SERVER and not self._reconnect():
                break
        if failure is Failure.SERVER:
            self._connecting.wait(self._session, 0)  # nothing that follows waits for it once more
            if self._connecting.here:
                raise StorageError(
                    f"{self._connecting.label}: the server was lost; start the same command again"
                ) from None
        raise failure.error(self._connecting.label) from None

    def _reconnect(self) -> bool:
        """A new session where the server lost the old one, with its tables named as before; false where no server answers, which was waited for."""
        if self._connecting.ended:
            return False
        with suppress(PySparkException, grpc.RpcError), _silent():
            self._session = self._connecting.session()
            for name, frame in self._views.items():
                frame().createOrReplaceTempView(name)
            self._connecting.wait(self._session, _RETRIES)
            return True
        return False


def open_sail(
    work: Path, *, threads: int | None = None, memory: str | None = None, trust_this_machine: bool = False
) -> tuple[ClusterEngine, str]:
    """Start Sail for this run in a process of its own, where nothing else can reach its sessions, and connect to it."""
    try:
        server = SailServer(threads, trust_this_machine=trust_this_machine)
    except OSError as error:
        if "namespace" in str(error):
            raise UsageError(
                "`engine`: this system allows no network namespace, so that every process of this machine could open a session of Sail, read what "
                "this run may read and run programs beside its records; allowed: engine duckdb, or `engine_trust_this_machine` where nobody else uses "
                "this machine"
            ) from None
        raise StorageError(
            "sail: the server did not start; check that pysail is installed for this Python"
        ) from None
    engine = open_cluster(work, Connecting("", "sail", server), threads=threads, memory=memory)
    if server.apart:
        return (
            engine,
            "Sail runs in a process and a network namespace of its own; it answers this process alone.",
        )
    return engine, (
        "Warning: Sail listens on a port of this machine, and every process on it can read what this run may read and run programs beside its "
        "records; `engine_trust_this_machine` says that none does."
    )


def open_cluster(
    work: Path, connecting: Connecting, *, threads: int | None = None, memory: str | None = None
) -> ClusterEngine:
    """Connect to a Spark Connect server."""
    session = connecting.session()
    try:
        with _silent():
            version, ansi = str(session.version), str(session.conf.get(_ANSI))
            connecting.wait(session, _RETRIES)
    except (PySparkException, grpc.RpcError):
        connecting.close(session)
        raise StorageError(
            f"{connecting.label}: no Spark Connect server answers there; check that it runs, its address and port, and a token "
            "where it asks for one"
        ) from None
    problem = ""
    if version.partition(".")[0] != _VERSION:
        problem = f"the server is of version {version}; allowed: {_VERSION}.x"
    elif ansi.lower() != "true":
        problem = (
            f"{_ANSI} is {ansi}, so integers wrap around silently; allowed: true; fix: set it on the server"
        )
    if problem:
        connecting.close(session)
        raise UsageError(f"`engine`: {connecting.label}: {problem}")
    engine = ClusterEngine().connect(session)
    engine.open(work, connecting, threads, memory)
    return engine


def _uri(path: Path) -> str:
    """A path of this machine, which is no pattern, for a server whose files may be elsewhere by default."""
    text = str(path.absolute())
    if _PATTERNS & set(text):
        raise UsageError(
            f"{path}: this engine takes {' '.join(sorted(_PATTERNS))} in a path for a pattern; move the data, or name "
            "`scratch`, so that the path has none of them"
        )
    return f"file://{text}"


def _selected(column: str, kind: pa.DataType, mark: str = "`") -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    target = "BIGINT" if pa.types.is_integer(kind) else "STRING" if mark == "`" else "VARCHAR"
    return f"try_cast({mark}{column}{mark} AS {target}) AS {mark}{column}{mark}"


_COLUMNS = {"int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "string": "STRING", "binary": "BINARY"}


def _rows_of(folders: Sequence[Path], rows: int) -> Iterator[pa.RecordBatch]:
    for folder in folders:
        for file in sorted(folder.rglob("*.parquet")):
            with pq.ParquetFile(file) as opened:
                yield from opened.iter_batches(rows)
