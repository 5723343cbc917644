"""Where the files of a SafeTab input are, whether their headers are right, and their records as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from censafe.errors import DataError, StorageError
from censafe.model.fetching import stream_of
from censafe.population.detailed.layout import NULL, RecordName, header
from censafe.population.files.delimited import csv_scan, header_problem, take_rejects
from censafe.population.files.parquet import parquet_metadata
from censafe.population.files.relation import engine_errors, name_in, require_folder
from censafe.population.findings import Finding, layout_finding

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


FILE_NAMES: Mapping[str, str] = {
    "persons": "person-records",
    "households": "household-records",
    "totals": "pop-group-totals",
    "blocks": "GRF-C",
}
_ENDINGS: Mapping[str, Literal["text", "parquet"]] = {"txt": "text", "csv": "text", "parquet": "parquet"}
_HEADER_LIMIT = 65_536
_NO_TABLES = frozenset({"headers.csv", "NOT_PRIVATE.txt", "CONFIDENTIAL.txt"})


@dataclass(frozen=True)
class InputFiles:
    """The files that make up one table.

    Args:
        paths: sorted files.
    """

    kind: Literal["text", "parquet"]
    paths: tuple[Path, ...]
    label: str

    def name_of(self, path: Path) -> str:
        """How messages call one of the files."""
        return name_in(self.paths, path)


def find_input(folder: Path, name: str) -> InputFiles:
    """Find the files of a table, text or Parquet: one file, a folder of files or several files named ``person-records-*``."""
    require_folder(folder, "the input files")
    stem = FILE_NAMES[name]
    candidates = [files for ending in _ENDINGS for files in _candidates(folder, stem, ending)]
    if candidates:
        return _only(candidates, stem)
    raise DataError(
        f"{stem}: no input file found; allowed: {stem}.txt, {stem}/*.txt, {stem}-*.txt; "
        "fix: add the table to the data folder" + (", or name it with `t1`" if name == "totals" else "")
    )


def find_totals(path: Path) -> InputFiles:
    """Find the totals of population groups: a file, a folder of parts, a data folder, or that of a SafeTab-P run."""
    if path.is_file():
        return InputFiles(_ENDINGS.get(path.suffix[1:], "text"), (path,), path.name)
    if not path.is_dir():
        raise StorageError(f"{path}: no such file or folder; name the totals of population groups (T1)")
    stem = FILE_NAMES["totals"]
    named = [files for ending in _ENDINGS for files in _candidates(path, stem, ending)]
    if named:
        return _only(named, stem, ", or name the file with `t1`")
    for folder in (path / "tables" / "t1", path / "t1", path):
        parts = [
            InputFiles(_ENDINGS[ending], paths, f"{folder.name}/*.{ending}")
            for ending in _ENDINGS
            if (paths := _tables(folder, f"*.{ending}"))
        ]
        if parts:
            return _only(parts, stem, ", or name the file with `t1`")
    raise DataError(
        f"{path}: no totals of population groups (T1) found; allowed: a pipe-delimited file, a folder of such "
        "files, or the output folder of a SafeTab-P run; fix: correct the path"
    )


def _only(candidates: Sequence[InputFiles], stem: str, choice: str = "") -> InputFiles:
    """The one candidate; ``choice`` says what else than moving files may be done where there are several."""
    if len(candidates) > 1:
        labels = ", ".join(files.label for files in candidates)
        raise DataError(
            f"{stem}: several candidates found ({labels}); allowed: one of them; fix: move the others away{choice}"
        )
    return candidates[0]


def _tables(folder: Path, pattern: str) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.glob(pattern) if path.name not in _NO_TABLES))


def _candidates(folder: Path, stem: str, ending: str) -> list[InputFiles]:
    kind, inputs = _ENDINGS[ending], []
    try:
        single = folder / f"{stem}.{ending}"
        if single.is_file():
            inputs.append(InputFiles(kind, (single,), single.name))
        for pattern in (f"{stem}/*.{ending}", f"{stem}-*.{ending}"):
            paths = _tables(folder, pattern)
            if paths:
                inputs.append(InputFiles(kind, paths, pattern))
    except OSError:
        raise StorageError(f"{folder}: the folder cannot be listed; check its permissions") from None
    return inputs


def check_headers(files: InputFiles, name: RecordName) -> list[Finding]:
    """Compare the header of every file with the layout; a table without rows is a finding, too."""
    findings: list[Finding] = []
    rows = False
    for path in files.paths:
        label = files.name_of(path)
        check = _text_header if files.kind == "text" else _parquet_header
        problems, has_rows = check(path, label, header(name))
        findings += problems
        rows |= has_rows
    if not rows and not findings:
        findings.append(
            layout_finding(files.label, "the table has no rows", "at least one row", rule="header-only")
        )
    return findings


def _text_header(path: Path, label: str, expected: tuple[str, ...]) -> tuple[list[Finding], bool]:
    with engine_errors(label), path.open("rb") as stream:
        raw = stream.readline(_HEADER_LIMIT)
        rest = stream.read(_HEADER_LIMIT)
    allowed = "exactly, in this order, " + "|".join(expected)
    try:
        line = raw.decode("utf-8-sig").split("\r")[0].rstrip("\n")
    except UnicodeDecodeError:
        return [layout_finding(label, "the first line is not UTF-8 text", allowed)], True
    if not line.strip():
        return [layout_finding(label, "the first line is blank, or the file is empty", allowed)], True
    names = tuple(line.split("|"))
    if len(names) == 1 and line.count(",") == len(expected) - 1:
        return [
            layout_finding(label, "the file is comma-delimited", "pipe-delimited text", rule="delimiter")
        ], True
    problem = header_problem(names, expected)
    return ([layout_finding(label, problem, allowed)] if problem else []), bool(rest.strip())


def _parquet_header(path: Path, label: str, expected: tuple[str, ...]) -> tuple[list[Finding], bool]:
    findings: list[Finding] = []
    metadata = parquet_metadata(str(path), label, findings)
    if metadata is None:
        return findings, True
    schema = metadata.schema.to_arrow_schema()
    names = tuple(
        sorted(schema.names, key=expected.index) if set(schema.names) == set(expected) else schema.names
    )
    problem = header_problem(names, expected)
    wrong = [field.name for field in schema if field.name in expected and not _readable(field.type)]
    if problem:
        findings.append(layout_finding(label, problem, "the columns " + ", ".join(expected)))
    if wrong:
        findings.append(
            layout_finding(
                label, f"type of {', '.join(wrong)} is neither text nor integer", "text or integer"
            )
        )
    return findings, metadata.num_rows > 0


def _readable(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_boolean(kind)
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


def table_batches(con: duckdb.DuckDBPyConnection, files: InputFiles, name: RecordName) -> Batches:
    """Batches of the files of a table: Parquet, or pipe-delimited text with a header."""
    columns = header(name)
    if files.kind == "parquet":
        return _parquet_batches(files, columns)
    scan, rejects = csv_scan(files.paths, columns, "|")
    allowed = f"{len(columns)} pipe-separated UTF-8 values in every row, quotes only around whole values"
    return query_batches(con, f"SELECT * FROM {scan}", files.label, (rejects, allowed))


def _parquet_batches(files: InputFiles, columns: Sequence[str]) -> Batches:
    """Batches of Parquet files: groups of row groups are tasks, text is dictionary-encoded."""
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
    rejects: tuple[tuple[str, str], str] | None = None,
) -> Batches:
    """Batches of the rows of a query."""
    findings: list[Finding] = []

    def read() -> Iterator[pa.RecordBatch]:
        with engine_errors(label), stream_of(con) as cursor:
            yield from cursor.sql(query).to_arrow_reader(BATCH_ROWS)
            if rejects:
                findings.extend(take_rejects(cursor, *rejects))

    return Batches((read,), "", findings)
