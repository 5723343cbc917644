"""Records as a stream of Arrow batches, from Parquet (in parallel) or from anything the engine can scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from censafe.errors import DataError
from censafe.population.csv_reader import take_rejects
from censafe.population.findings import Finding
from censafe.population.guard import engine_errors
from censafe.population.relation import quote_paths, quote_text
from censafe.population.safetab.files import InputFiles
from censafe.population.safetab.layout import NULL, RecordName, header

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["BATCH_ROWS", "Batches", "parquet_batches", "query_batches", "table_batches", "text_batches"]

BATCH_ROWS = 1 << 18
_TASK_ROWS = 1 << 21


@dataclass(frozen=True)
class Batches:
    """A table as independent tasks, each of which yields batches in the order of the file.

    Args:
        tasks: every task reads its rows anew; with more than one they may run side by side.
        null_text: the text that a missing value stands for.
        findings: unreadable lines; complete once the tasks are done.
    """

    tasks: tuple[Callable[[], Iterator[pa.RecordBatch]], ...]
    null_text: str
    findings: list[Finding]


def table_batches(con: duckdb.DuckDBPyConnection, files: InputFiles, name: RecordName) -> Batches:
    """Batches of the files of a table, whatever their format.

    Args:
        con: the engine.
        files: the files, whose headers were checked.
        name: which table.
    """
    if files.kind == "parquet":
        return parquet_batches(files, header(name))
    return text_batches(con, files, header(name))


def parquet_batches(files: InputFiles, columns: Sequence[str]) -> Batches:
    """Batches of Parquet files: groups of row groups are tasks, text is dictionary-encoded.

    Args:
        files: the files, whose schemas were checked.
        columns: columns to read.

    Raises:
        StorageError: a file cannot be opened.
    """
    import pyarrow.parquet as pq

    tasks: list[Callable[[], Iterator[pa.RecordBatch]]] = []
    for path in files.paths:
        with engine_errors(files.name_of(path)):
            metadata = pq.read_metadata(path)
        groups: list[int] = []
        rows = 0
        for group in range(metadata.num_row_groups):
            groups.append(group)
            rows += metadata.row_group(group).num_rows
            if rows >= _TASK_ROWS or group == metadata.num_row_groups - 1:
                tasks.append(_parquet_task(path, files.name_of(path), groups, columns))
                groups, rows = [], 0
    return Batches(tuple(tasks), NULL, [])


def _parquet_task(
    path: Path, label: str, groups: list[int], columns: Sequence[str]
) -> Callable[[], Iterator[pa.RecordBatch]]:
    def read() -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with engine_errors(label):
                file = pq.ParquetFile(path, read_dictionary=list(columns))
                yield from file.iter_batches(BATCH_ROWS, groups, list(columns), use_threads=False)
        except pa.ArrowException:
            raise DataError(
                f"{label}: the content cannot be read; allowed: a whole Parquet file; fix: write the file again"
            ) from None

    return read


def text_batches(con: duckdb.DuckDBPyConnection, files: InputFiles, columns: Sequence[str]) -> Batches:
    """Batches of pipe-delimited files with a header.

    Args:
        con: the engine.
        files: the files, whose headers were checked.
        columns: all columns, in file order.
    """
    names = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in columns)
    rejects = (f"rejects_{uuid4().hex[:8]}", f"reject_scans_{uuid4().hex[:8]}")
    scan = (
        f"SELECT * FROM read_csv([{quote_paths(files.paths)}], auto_detect=false, "
        "header=true, delim='|', quote='\"', escape='\"', strict_mode=true, null_padding=false, "
        f"store_rejects=true, rejects_limit=0, rejects_table='{rejects[0]}', rejects_scan='{rejects[1]}', "
        f"columns={{{names}}})"
    )
    allowed = f"{len(columns)} pipe-separated UTF-8 values in every row, quotes only around whole values"
    return query_batches(con, scan, files.label, (rejects, allowed))


def query_batches(
    con: duckdb.DuckDBPyConnection,
    query: str,
    label: str,
    rejects: tuple[tuple[str, str], str] | None = None,
) -> Batches:
    """Batches of the rows of a query.

    Args:
        con: the engine; the query runs on a connection of its own.
        query: yields the columns of the layout as text.
        label: how messages call the files.
        rejects: names of the engine's two tables of unreadable lines, and what a line must look like.
    """
    findings: list[Finding] = []

    def read() -> Iterator[pa.RecordBatch]:
        cursor = con.cursor()
        try:
            with engine_errors(label):
                yield from cursor.execute(query).to_arrow_reader(BATCH_ROWS)
                if rejects:
                    findings.extend(take_rejects(cursor, *rejects))
        finally:
            cursor.close()

    return Batches((read,), "", findings)
