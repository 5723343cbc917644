"""Files of records as the embedded engine sees them: where they are, how their text is written, and which columns they have."""

from __future__ import annotations

import csv
import gzip
import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import duckdb

from censafe.errors import DataError, StorageError
from censafe.geography.files import packed_files, require_plausible_size
from censafe.model.entries import nearest
from censafe.model.folders import packed_words
from censafe.population.files.delimited import DELIMITER_NAMES, csv_scan, printable_names, take_rejects
from censafe.population.files.relation import engine_errors, quote_paths, quote_text
from censafe.population.findings import Finding, merge_findings, stated
from censafe.population.records.layout import DELIMITERS, TextForm

_ENDINGS: Final = (".csv", ".txt", ".tsv", ".dat", ".parquet")
_HEAD: Final = 1 << 16  # characters of the beginning of a file
_NAMED: Final = 10
_COPIED: Final = 1 << 20  # bytes at a time
_PARQUET: Final = b"PAR1"


@dataclass(frozen=True)
class Source:
    """One file, or a table of a database, that the engine can scan.

    Args:
        columns: of its header, in their order; empty where it has none that can be read.
        scan: a FROM item whose columns are those of the header.
        rejects: the engine's tables of lines that it could not read.
    """

    label: str
    columns: tuple[str, ...] = ()
    scan: str = field(default="", repr=False)
    rejects: tuple[str, str] | None = None
    findings: tuple[Finding, ...] = ()
    text: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """Columns as the header writes them, by their names in small letters, as the engine tells names apart."""
        return {name.lower(): name for name in self.columns}


@contextmanager
def records_engine(
    scratch: Path, threads: int | None = None, memory: str | None = None, *, ordered: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine for confidential rows; what does not fit into memory is written to the private scratch folder and nowhere else.

    Joins have their small side on the right, and the engine keeps it there: it takes text files of any size for some dozens of rows, and would
    hold all records in memory to look them up in the list of areas.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": str(scratch),
        "preserve_insertion_order": ordered,
        "disabled_optimizers": "build_side_probe_side",
    }
    if threads:
        settings["threads"] = threads
    if memory:
        settings["memory_limit"] = memory
    with engine_errors("records"):
        con = duckdb.connect(":memory:", config=settings)
    try:
        yield con
    finally:
        con.close()


def identifier(name: str) -> str:
    """A name of a column in the language of the engine.

    Example:
        >>> identifier("birth date")
        '"birth date"'
    """
    return '"' + name.replace('"', '""') + '"'


def matching(folder: Path, pattern: str) -> tuple[Path, ...]:
    """Files below a folder that a name or glob means, sorted; DataError where there is none or it leads outside."""
    place = pattern.partition(".duckdb:")[0] + ".duckdb" if ".duckdb:" in pattern else pattern
    parts = Path(place).parts
    if not parts or Path(place).is_absolute() or ".." in parts:
        raise DataError(f"{pattern}: leads out of the data folder; allowed: a name or glob below {folder}")
    exact = folder / place
    paths = (
        (exact,) if exact.is_file() else tuple(sorted(path for path in folder.glob(place) if path.is_file()))
    )
    if not paths:
        raise DataError(
            f"{folder}: there is no file {place}; allowed: a name or glob of CSV or Parquet files, or FILE.duckdb:TABLE, below the data folder; "
            f"fix: correct [read] of the configuration{packed_words(folder)}"
        )
    return paths


def open_sources(
    con: duckdb.DuckDBPyConnection, folder: Path, pattern: str, form: TextForm, scratch: Path
) -> tuple[Source, ...]:
    """The files of one table; packed ones are unpacked in the scratch folder."""
    paths = matching(folder, pattern)
    _, mark, table = pattern.partition(".duckdb:")
    if mark:
        return (_database_table(con, paths[0], table),)
    sources: list[Source] = []
    for path in paths:
        label = path.relative_to(folder).as_posix()
        own = scratch / f"{len(list(scratch.iterdir()))}"
        own.mkdir()
        for place in _unpacked(path, label, own):
            columnar = place.suffix.lower() == ".parquet" or _is_parquet(place)
            sources.append(_parquet(place, label) if columnar else _text(place, label, form))
    return tuple(sources)


def _unpacked(path: Path, label: str, scratch: Path) -> list[Path]:
    """Where the content is: the file itself, or what was packed in it; the engine reads text that gzip packed as it is."""
    packed = path.suffix.lower() == ".zip" or path.name.lower().endswith(".parquet.gz")
    if not packed:
        return [path]
    members = [one for one in packed_files(path) if one.suffix in _ENDINGS]
    if not members:
        raise DataError(
            f"{label}: no table in the archive; allowed: {', '.join(_ENDINGS)}; fix: pack the tables alone"
        )
    places = [scratch / f"{number}{member.suffix}" for number, member in enumerate(members)]
    for member, place in zip(members, places, strict=True):
        try:
            with member.open() as stream, place.open("xb") as target:  # the folder is private
                shutil.copyfileobj(stream, target, _COPIED)
        except OSError:
            raise StorageError(
                f"{label}: the archive cannot be unpacked; check that it is whole and that the disk of the scratch folder has room"
            ) from None
    return places


def _database_table(con: duckdb.DuckDBPyConnection, path: Path, table: str) -> Source:
    """A table of a database, which is attached to be read only."""
    label = f"{path.name}:{table}"
    name = f"source_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    with engine_errors(label):
        con.execute(f"ATTACH IF NOT EXISTS {quote_text(str(path))} AS {name} (READ_ONLY)")
        rows = con.execute(
            f"SELECT table_name FROM duckdb_tables() WHERE database_name = '{name}' UNION "
            f"SELECT view_name FROM duckdb_views() WHERE database_name = '{name}' AND NOT internal"
        ).fetchall()
    known = [row[0] for row in rows]
    if table not in known:
        raise DataError(
            f"{path.name}: there is no table {table}.{nearest(table, known)} allowed: a table of the database"
        )
    scan = f"{name}.{identifier(table)}"
    with engine_errors(label):
        columns = tuple(row[0] for row in con.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall())
    return Source(label, columns, scan)


def _is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does, whatever its name is."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_PARQUET)) == _PARQUET
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None


def _parquet(path: Path, label: str) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
        names = tuple(metadata.schema.to_arrow_schema().names)
    except (pa.ArrowException, UnicodeDecodeError):
        problem = "the file is not a whole Parquet file"
        return Source(
            label, findings=tuple(stated("source.header", label, problem=problem, allowed="Parquet"))
        )
    except OSError:
        raise StorageError(f"{label}: the file cannot be read; check that it exists") from None
    require_plausible_size(path, metadata)
    return Source(
        label, names, f"read_parquet([{quote_paths((path,))}])", findings=tuple(_repeated(label, names))
    )


class _UnreadableError(Exception):
    """What is wrong with a text file of which no row can be read; it stays in this module."""

    def __init__(self, rule: str, label: str, **values: Any) -> None:
        super().__init__(rule)
        self.findings = tuple(stated(rule, label, **values))


def _text(path: Path, label: str, form: TextForm) -> Source:
    """A text file whose first line has the names of the columns."""
    try:
        head = _head(path, label, form)
        delimiter = _delimiter(head, label, form)
        names = tuple(
            name.strip() for name in next(csv.reader(head.splitlines(keepends=True), delimiter=delimiter), [])
        )
    except _UnreadableError as error:
        return Source(label, findings=error.findings)
    except csv.Error:
        problem, allowed = "the first line cannot be read", "one row of names of columns"
        return Source(label, findings=tuple(stated("source.header", label, problem=problem, allowed=allowed)))
    scan, rejects = csv_scan((path,), [f"c{place}" for place in range(len(names))], delimiter, form.encoding)
    renamed = ", ".join(f"c{place} AS {identifier(name)}" for place, name in enumerate(names))
    repeated = tuple(_repeated(label, names))
    return Source(
        label, names, "" if repeated else f"(SELECT {renamed} FROM {scan})", rejects, repeated, text=True
    )


def _head(path: Path, label: str, form: TextForm) -> str:
    """The beginning of a text file, without a mark of byte order."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            raw = stream.read(_HEAD)
    except (gzip.BadGzipFile, EOFError):
        raise _UnreadableError("source.rows", label) from None
    except OSError:
        raise StorageError(f"{label}: the file cannot be read; check that it exists") from None
    if not raw.strip():
        allowed = "a row of names of columns, and one row a record"
        raise _UnreadableError("source.header", label, problem="the file is empty", allowed=allowed)
    marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    if marked != (form.encoding == "utf-16"):
        other = "utf-16" if marked else "not utf-16"
        raise _UnreadableError("source.encoding", label, other=other, encoding=form.encoding)
    encoding = {"utf-8": "utf-8-sig"}.get(form.encoding, form.encoding)
    try:
        if form.encoding == "utf-16":  # a line end has two bytes
            text = raw[: len(raw) // 2 * 2].decode(encoding, "ignore")
        else:
            text = raw[: raw.rfind(b"\n") + 1 or len(raw)].decode(encoding)
    except UnicodeDecodeError:
        raise _UnreadableError("source-text.encoding", label, encoding=form.encoding) from None
    if not text.splitlines()[0].strip():
        allowed = "a row of names of columns"
        raise _UnreadableError("source.header", label, problem="the first line is blank", allowed=allowed)
    return text


def _delimiter(head: str, label: str, form: TextForm) -> str:
    """The mark that parts the first rows into equally many values, the most of them; that of the form where it has one."""
    first = head.splitlines()[0]
    if form.delimiter is not None:
        others = [DELIMITER_NAMES[mark] for mark in DELIMITERS if mark != form.delimiter and mark in first]
        if others and form.delimiter not in first:
            raise _UnreadableError("source.delimiter", label, name=others[0], delimiter=form.delimiter)
        return form.delimiter
    rows = head.splitlines(keepends=True)[:20]
    if len(rows) > 2 and len(head) >= _HEAD // 2:
        rows = rows[:-1]
    scores: list[tuple[bool, int, str]] = []
    for mark in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(rows, delimiter=mark) if row]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            common = Counter(widths).most_common(1)[0][0] == widths[0]
            scores.append((common, widths[0], mark))
    return max(scores)[2] if scores else ","


def _repeated(label: str, names: Sequence[str]) -> list[Finding]:
    """A finding for columns of one name, by their places: a file without a header has values there. Small and capital letters are alike."""
    counts = Counter(name.lower() for name in names)
    places = [str(place) for place, name in enumerate(names, 1) if counts[name.lower()] > 1]
    return stated("source-names.header", label, places=", ".join(places[:_NAMED])) if places else []


@dataclass(frozen=True)
class Scanned:
    """The files of one table."""

    sources: tuple[Source, ...]

    @property
    def label(self) -> str:
        """How messages call the table."""
        return (
            self.sources[0].label
            if len(self.sources) == 1
            else f"{self.sources[0].label} and {len(self.sources) - 1} more"
        )

    def has(self, column: str) -> bool:
        """Whether every file has a column."""
        return all(column.lower() in one.by_name for one in self.sources)

    def sql(self, columns: Iterable[str], *, numbered: bool = False) -> str:
        """A query for some columns under their names in the configuration, of all files one after another.

        Args:
            numbered: whether each row has the number of its file and of the row in it, from 1.
        """
        names = list(dict.fromkeys(columns))
        parts = []
        for place, one in enumerate(self.sources):
            chosen = [f"{identifier(one.by_name[name.lower()])} AS {identifier(name)}" for name in names]
            chosen += [f"{place} AS file_of_row", "row_number() OVER () AS row_of_file"] if numbered else []
            parts.append(f"SELECT {', '.join(chosen)} FROM {one.scan}")
        return " UNION ALL ".join(parts)

    def missing(self, columns: Sequence[str]) -> list[Finding]:
        """A finding for every file that lacks some columns."""
        findings: list[Finding] = []
        for one in self.sources:
            absent = [name for name in dict.fromkeys(columns) if name.lower() not in one.by_name]
            if absent and one.columns:
                known = printable_names(one.columns, columns)
                hints = "".join(nearest(name, known.split(", ")) for name in absent) if known else ""
                known = f"; the file also has {known}" if known else ""
                findings += stated(
                    "source-columns.header", one.label, column=", ".join(absent), known=known, hints=hints
                )
        return findings

    def rejected(self, con: duckdb.DuckDBPyConnection) -> list[Finding]:
        """Lines that the last scan could not read."""
        findings: list[Finding] = []
        for one in self.sources:
            if one.rejects is not None:
                allowed = f"{len(one.columns)} values in every row, as in the header, quotes only around whole values"
                with suppress(duckdb.CatalogException), engine_errors(one.label):
                    findings += [
                        replace(part, file=one.label) for part in take_rejects(con, one.rejects, allowed)
                    ]
        return list(merge_findings(findings))
