"""A table of the input as the engine sees it before loading, where its files are, and the only way from the engine's errors to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import duckdb

from censafe.errors import CensafeError, DataError, StorageError
from censafe.model.closing import DISK_FULL, write_refusal
from censafe.model.folders import matching_files, packed_words
from censafe.population.files.layout import layout
from censafe.population.findings import Finding

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from censafe.model.engine import Engine


_NO_TABLES = frozenset({"headers.csv", "NOT_PRIVATE.txt", "CONFIDENTIAL.txt"})
"""Files beside the tables of a run."""


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

    table: str
    kind: Literal["text", "parquet"]
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

    table: str
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


def find_tables(names: Iterable[str], find: Callable[[str], TableFiles]) -> dict[str, TableFiles]:
    """The files of several tables; one DataError with all that cannot be found."""
    tables: dict[str, TableFiles] = {}
    problems: list[str] = []
    for name in names:
        try:
            tables[name] = find(name)
        except DataError as error:
            problems.append(f"  - {error}")
    if problems:
        raise DataError("\n".join(["input files:", *problems]))
    return tables


def find_table(folder: Path, table: str, choice: str = "") -> TableFiles:
    """Find the files of a table by its layout.

    Args:
        choice: what else than moving or adding files may be done, for messages.
    """
    require_folder(folder, "the input tables")
    candidates = named_tables(folder, table)
    if not candidates:
        schema = layout(table)
        looked = " or ".join(", ".join(_patterns(schema.stem, ending)) for ending in schema.endings)
        raise DataError(
            f"{schema.stem}: no input file found; allowed: {looked}; fix: add the table to the data folder{choice}{packed_words(folder)}"
        )
    return only_candidate(candidates, choice)


def named_tables(folder: Path, table: str) -> list[TableFiles]:
    """The files of a table by its layout: ``persons.csv``, ``persons/*.csv``, ``persons-*.csv``, and of other endings; one of them is right."""
    schema = layout(table)
    patterns = (pattern for ending in schema.endings for pattern in _patterns(schema.stem, ending))
    return tables_like(folder, table, *patterns)


def _patterns(stem: str, ending: str) -> tuple[str, ...]:
    return f"{stem}.{ending}", f"{stem}/*.{ending}", f"{stem}-*.{ending}"


def tables_like(folder: Path, table: str, *patterns: str) -> list[TableFiles]:
    """The files of a table that each pattern means, as one table; a pattern without a star means one file."""
    candidates: list[TableFiles] = []
    for pattern in patterns:
        place = folder / pattern
        try:
            listed = matching_files(place.parent, place.name)
            paths = tuple(path for path in listed if path.is_file() and path.name not in _NO_TABLES)
        except OSError:
            raise StorageError(f"{folder}: the folder cannot be listed; check its permissions") from None
        kind: Literal["text", "parquet"] = "parquet" if pattern.endswith(".parquet") else "text"
        if "*" not in pattern:
            candidates += [TableFiles(table, kind, (path,), path.name) for path in paths]
        elif paths:
            candidates.append(TableFiles(table, kind, paths, pattern))
    return candidates


def one_or_folder(folder: Path, name: str, *endings: str) -> tuple[Path, ...]:
    """The one file of a name, or the files of one ending in a folder of that name; nothing where there is none."""
    patterns = (pattern for ending in endings for pattern in (f"{name}.{ending}", f"{name}/*.{ending}"))
    candidates = tables_like(folder, name, *patterns)
    return only_candidate(candidates, stem=name).paths if candidates else ()


def only_candidate(candidates: Sequence[TableFiles], choice: str = "", stem: str = "") -> TableFiles:
    """The one candidate; DataError where there are several."""
    if len(candidates) > 1:
        labels = ", ".join(entry.label for entry in candidates)
        raise DataError(
            f"{stem or layout(candidates[0].table).stem}: several candidates found ({labels}); allowed: one of them; fix: move the others away{choice}"
        )
    return candidates[0]
