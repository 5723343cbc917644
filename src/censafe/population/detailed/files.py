"""Where the totals of population groups are, and tables of a SafeTab input as streams of Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from censafe.errors import DataError, StorageError
from censafe.model.engine import stream_of
from censafe.population.files.delimited import csv_relation, reject_findings
from censafe.population.files.layout import NULL, layout
from censafe.population.files.relation import (
    Relation,
    TableFiles,
    engine_errors,
    name_in,
    named_tables,
    only_candidate,
    tables_like,
)
from censafe.population.findings import Finding

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


RecordName = Literal["persons", "households"]


def find_totals(path: Path) -> TableFiles:
    """Find the totals of population groups: a file, a folder of parts, a data folder, or that of a SafeTab-P run."""
    table = "safetab-totals"
    if path.is_file():
        return TableFiles(table, "parquet" if path.suffix == ".parquet" else "text", (path,), path.name)
    if not path.is_dir():
        raise StorageError(f"{path}: no such file or folder; name the totals of population groups (T1)")
    choices = [named_tables(path, table)]
    for folder in (path / "tables" / "t1", path / "t1", path.absolute()):
        parts = (f"{folder.name}/*.{ending}" for ending in layout(table).endings)
        choices.append(tables_like(folder.parent, table, *parts))
    for candidates in choices:
        if candidates:
            return only_candidate(candidates, ", or name the file with `t1`")
    raise DataError(
        f"{path}: no totals of population groups (T1) found; allowed: a pipe-delimited file, a folder of such "
        "files, or the output folder of a SafeTab-P run; fix: correct the path"
    )


BATCH_ROWS = 1 << 18
_TASK_ROWS = 1 << 21


@dataclass(frozen=True)
class Batches:
    """A table as independent tasks, each of which yields batches in the order of the file.

    Args:
        tasks: every task reads its rows anew; with more than one they may run side by side.
    """

    tasks: tuple[Callable[[], Iterator[pa.RecordBatch]], ...]
    null_text: str
    findings: list[Finding]
    portable: bool = False


def table_batches(con: duckdb.DuckDBPyConnection, files: TableFiles) -> Batches:
    """Batches of the files of a table: Parquet, or delimited text with a header."""
    if files.kind == "parquet":
        return _parquet_batches(files, layout(files.table).header)
    relation = csv_relation(files)
    return query_batches(con, f"SELECT * FROM {relation.sql}", files.label, relation)


def _parquet_batches(files: TableFiles, columns: Sequence[str]) -> Batches:
    """Batches of Parquet files: groups of row groups are tasks, text is dictionary-encoded."""
    import pyarrow.parquet as pq

    tasks: list[Callable[[], Iterator[pa.RecordBatch]]] = []
    for path in files.paths:
        label = name_in(files.paths, path)
        with engine_errors(label):
            metadata = pq.read_metadata(path)
        groups: list[int] = []
        rows = 0
        for group in range(metadata.num_row_groups):
            groups.append(group)
            rows += metadata.row_group(group).num_rows
            if rows >= _TASK_ROWS or group == metadata.num_row_groups - 1:
                tasks.append(_parquet_task(path, label, groups, columns))
                groups, rows = [], 0
    return Batches(tuple(tasks), NULL, [], portable=True)


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


def query_batches(
    con: duckdb.DuckDBPyConnection,
    query: str,
    label: str,
    relation: Relation | None = None,
) -> Batches:
    """Batches of the rows of a query."""
    findings: list[Finding] = []

    def read() -> Iterator[pa.RecordBatch]:
        with engine_errors(label), stream_of(con) as cursor:
            yield from cursor.sql(query).to_arrow_reader(BATCH_ROWS)
            if relation is not None:
                findings.extend(reject_findings(cursor, relation))

    return Batches((read,), "", findings)
