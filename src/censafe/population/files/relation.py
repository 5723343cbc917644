"""A table of the input as the engine sees it before loading, where its files are, and the only way from the engine's errors to ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import duckdb

from censafe.errors import CensafeError, DataError, StorageError
from censafe.model.closing import DISK_FULL, write_refusal
from censafe.model.folders import matching_files, packed_words
from censafe.population.files.layout import TableName, layout
from censafe.population.findings import Finding

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.model.engine import Engine


_KINDS: Final[tuple[Literal["csv", "parquet"], ...]] = ("csv", "parquet")


@contextmanager
def at_the_end(what: str) -> Iterator[None]:
    """Give up working tables inside the block, whose engine may be closed already, or ended by a signal; that one is heard elsewhere."""
    with suppress(CensafeError), engine_errors(what), suppress(duckdb.InterruptException):
        yield


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Translate engine errors inside the block into censafe errors without their text."""
    translated: CensafeError
    try:
        yield
    except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException):
        raise  # a fault of our own query, which quotes no record
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if isinstance(
            error.__cause__, KeyboardInterrupt | SystemExit
        ):  # a signal came while the engine worked
            raise error.__cause__ from None
        raise
    except duckdb.OutOfMemoryException:
        translated = StorageError(
            f"{what}: memory ran out; give the engine more with `memory`, or fewer `threads`"
        )
    except (duckdb.IOException, duckdb.HTTPException, OSError) as error:
        refusal = write_refusal(error).replace(
            DISK_FULL, "the disk is full where the working files are; free space there"
        )
        reason = refusal or "a file cannot be read or written; check that it exists, is whole and is readable"
        translated = StorageError(f"{what}: {reason}")
    except duckdb.Error as error:
        allowed = (
            "whole Parquet files whose text is UTF-8"
            if what.endswith(".parquet")
            else "one consistent line ending, quotes only around whole values, UTF-8"
        )
        translated = DataError(
            f"{what}: the content cannot be read ({type(error).__name__}); allowed: {allowed}; fix: write the file again"
        )
    else:
        return
    raise translated from None


@dataclass(frozen=True)
class TableFiles:
    """The files that make up one table.

    Args:
        paths: sorted files.
    """

    table: TableName
    kind: Literal["csv", "parquet"]
    paths: tuple[Path, ...]
    label: str


@dataclass(frozen=True)
class Relation:
    """A table of the input that the engine can scan.

    Args:
        sql: for text, a FROM item of the embedded engine that yields the columns of the layout; empty for Parquet.
        files: of Parquet, which are cheap to scan again; empty for text.
        clustered: whether a range of MAFIDs lies in few places of the files, so that parts may be small.
    """

    table: TableName
    label: str
    rows_about: int
    findings: tuple[Finding, ...]
    sql: str = ""
    rejects: tuple[str, str] | None = None
    files: tuple[Path, ...] = ()
    integers: frozenset[str] = frozenset()
    clustered: bool = False

    def scan(self, engine: Engine, name: str) -> ir.Table:
        """The table of an engine under ``name``; text is scanned by the embedded one alone."""
        if self.files:
            return engine.scan(name, self.files, layout(self.table).header)
        table: ir.Table = engine.embedded.view(name, f"SELECT * FROM {self.sql}")
        return table


def one_row(con: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    """The one row of counts that a query gives."""
    row = con.execute(query).fetchone()
    return () if row is None else tuple(row)


def name_in(paths: tuple[Path, ...], path: Path) -> str:
    """How messages call one of the files of a table; its folder tells it from others where there are several.

    Example:
        >>> name_in((Path("data/persons/1.csv"), Path("data/persons/2.csv")), Path("data/persons/1.csv"))
        'persons/1.csv'
    """
    return path.name if len(paths) == 1 else f"{path.parent.name}/{path.name}"


def quote_text(text: str) -> str:
    """Quote text as an SQL string literal.

    Example:
        >>> quote_text("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quote_paths(paths: Iterable[Path]) -> str:
    """Quote paths as a list of SQL literals of which the engine takes no character for a pattern.

    Example:
        >>> quote_paths((Path("a?/b.csv"),))
        "'a[?]/b.csv'"
    """
    return quote_list(tuple(escape(str(path)) for path in paths))


def quote_list(texts: tuple[str, ...]) -> str:
    """Quote texts as a comma-separated list of SQL literals.

    Example:
        >>> quote_list(("01", "02"))
        "'01', '02'"
    """
    return ", ".join(quote_text(text) for text in texts)


def require_folder(folder: Path, content: str) -> None:
    """Refuse a data folder that is none."""
    if not folder.is_dir():
        problem = "a file, not a data folder" if folder.exists() else "there is no such data folder"
        raise StorageError(f"{folder}: {problem}; name the folder that holds {content}")


def find_table(folder: Path, table: TableName) -> TableFiles:
    """Find the files of a table: ``persons.csv``, ``persons/*.csv`` or ``persons-*.csv``, or Parquet alike; both are refused.

    Returns:
        The files, sorted by name.
    """
    require_folder(folder, "the input tables")
    candidates: list[TableFiles] = []
    try:
        for kind in _KINDS:
            single = (path for path in matching_files(folder, f"{table}.{kind}") if path.is_file())
            candidates += [TableFiles(table, kind, (path,), path.name) for path in single]
            for pattern in (f"{table}/*.{kind}", f"{table}-*.{kind}"):
                paths = matching_files((folder / pattern).parent, Path(pattern).name)
                if paths:
                    candidates.append(TableFiles(table, kind, paths, pattern))
    except OSError:
        raise StorageError(f"{folder}: the folder cannot be listed; check its permissions") from None
    looked = " or ".join(f"{table}.{kind}, {table}/*.{kind}, {table}-*.{kind}" for kind in _KINDS)
    if not candidates:
        raise DataError(
            f"{table}: no input file found; allowed: {looked}; fix: add the table to the data folder{packed_words(folder)}"
        )
    if len(candidates) > 1:
        labels = ", ".join(entry.label for entry in candidates)
        raise DataError(
            f"{table}: several candidates found ({labels}); allowed: one of them; fix: move the others away"
        )
    return candidates[0]
