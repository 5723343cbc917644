"""Tables as delimited text: the header is checked here, the rows are parsed by the engine as text.

A byte order mark, CRLF line ends, blank lines, quoted values and a missing last newline are accepted.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from censafe.population.files.layout import TableSchema, layout
from censafe.population.files.relation import (
    Relation,
    TableFiles,
    engine_errors,
    name_in,
    quote_paths,
    quote_text,
)
from censafe.population.findings import Finding, layout_finding, stated

if TYPE_CHECKING:
    import duckdb


DELIMITER_NAMES = {",": "comma", "|": "pipe", ";": "semicolon", "\t": "tab"}
"""What separates values, and how messages call it."""
_HEADER_LIMIT = 65_536  # characters; a longer first line is not a header
_MOST_LINES = 10
_REJECT_WORDS = {
    "MISSING COLUMNS": "rows with too few columns",
    "TOO MANY COLUMNS": "rows with too many columns",
    "UNQUOTED VALUE": "rows with broken quotes",
    "LINE SIZE OVER MAXIMUM": "lines longer than 2 MB",
    "INVALID ENCODING": "rows that are not UTF-8",
}


def csv_relation(source: TableFiles) -> Relation:
    """Check the headers of a table's files and describe how to scan them."""
    schema = layout(source.table)
    findings: list[Finding] = []
    delimiters: set[str] = set()
    rows = header_only = 0
    for path in source.paths:
        label = name_in(source.paths, path)
        delimiter, problems, rows_about = _read_head(path, label, schema)
        delimiters.add(delimiter)
        findings += problems
        rows += rows_about
        header_only += rows_about == 0 and not any(finding.severity == "stop" for finding in problems)
    if header_only == len(source.paths):
        findings += no_rows(source, "the file has a header and no rows")
    if len(delimiters) > 1 and not any(finding.severity == "stop" for finding in findings):
        findings.append(
            layout_finding(
                source.label,
                "files of one table differ in their delimiter",
                f"{DELIMITER_NAMES[schema.delimiters[0]]} in all files",
            )
        )
    sql, rejects = csv_scan(source.paths, schema.header, delimiters.pop())
    return Relation(
        table=source.table,
        label=source.label,
        rows_about=rows,
        findings=tuple(findings),
        sql=sql,
        rejects=rejects,
    )


def reject_findings(con: duckdb.DuckDBPyConnection, relation: Relation) -> list[Finding]:
    """Count the lines that the last scan could not read, then forget their content."""
    if relation.rejects is None:
        return []
    schema = layout(relation.table)
    name = DELIMITER_NAMES[schema.delimiters[0]]
    allowed = (
        f"{len(schema.header)} {name}-separated UTF-8 values in every row, quotes only around whole values"
    )
    with engine_errors(relation.label):
        return take_rejects(con, relation.rejects, allowed)


def take_rejects(con: duckdb.DuckDBPyConnection, tables: tuple[str, str], allowed: str) -> list[Finding]:
    """Findings from the engine's two tables of unreadable lines, which are then emptied."""
    rejects, scans = tables
    rows = con.execute(
        f"SELECT s.file_path, r.error_type::VARCHAR, count(DISTINCT r.line), "
        f"list_sort(list(DISTINCT r.line))[1:{_MOST_LINES}] FROM {rejects} r "
        f"JOIN {scans} s USING (scan_id, file_id) GROUP BY 1, 2 ORDER BY 1, 2"
    ).fetchall()
    con.execute(f"DELETE FROM {rejects}")  # the engine cannot restore a dropped one
    con.execute(f"DELETE FROM {scans}")
    return [
        Finding(
            file=Path(path).name,
            column="",
            rule="rows",
            severity="stop",
            rows=count,
            problem=f"{_REJECT_WORDS.get(kind, 'unreadable rows')}, first at line "
            + ", ".join(str(line) for line in lines),
            allowed=allowed,
            fix="correct or remove these lines; a file that was cut short must be copied again",
        )
        for path, kind, count, lines in rows
    ]


def csv_scan(
    paths: Sequence[Path], columns: Sequence[str], delimiter: str, encoding: str = "utf-8"
) -> tuple[str, tuple[str, str]]:
    """A FROM item of the embedded engine that reads files of text with a header, and the two tables that take unreadable lines."""
    suffix = uuid4().hex[:8]
    rejects = (f"rejects_{suffix}", f"reject_scans_{suffix}")
    names = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in columns)
    return (
        f"read_csv([{quote_paths(paths)}], auto_detect=false, header=true, "
        f"encoding={quote_text(encoding)}, delim={quote_text(delimiter)}, quote='\"', escape='\"', strict_mode=true, null_padding=false, "
        f"store_rejects=true, rejects_limit=0, rejects_table='{rejects[0]}', rejects_scan='{rejects[1]}', "
        f"columns={{{names}}})"
    ), rejects


def _read_head(path: Path, label: str, schema: TableSchema) -> tuple[str, list[Finding], int]:
    """What the beginning of a file tells: delimiter, problems, and about how many rows follow.

    Rows are counted in a small file, and estimated from its beginning in a large one.
    """
    with engine_errors(label), path.open("rb") as stream:
        raw = stream.readline(_HEADER_LIMIT)
        rest = stream.read(_HEADER_LIMIT)
        size = path.stat().st_size
    delimiter, findings = _check_header(raw, rest, label, schema)
    if len(raw) + len(rest) >= size:
        rows = sum(bool(line.strip()) for line in (raw + rest).splitlines()[1:])
    else:
        rows = size * (rest.count(b"\n") + 1) // max(len(rest), 1)
    return delimiter, findings, rows


def _check_header(raw: bytes, rest: bytes, label: str, schema: TableSchema) -> tuple[str, list[Finding]]:
    usual = schema.delimiters[0]
    header = usual.join(schema.header)
    if not raw.strip():
        what = "the file is empty" if not (raw + rest).strip() else "the first line is blank"
        return usual, [layout_finding(label, what, f"the header {header}")]
    try:
        line = raw.decode("utf-8-sig").split("\r")[0].rstrip("\n")
    except UnicodeDecodeError:
        return usual, [layout_finding(label, "the first line is not UTF-8 text", f"the header {header}")]
    delimiter = usual if usual in line else max((usual, *DELIMITER_NAMES), key=line.count)
    try:
        names = tuple(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return delimiter, [
            layout_finding(label, "the first line is too long for a header", f"the header {header}")
        ]
    problem = header_problem(names, schema.header)
    words = f"the file is {DELIMITER_NAMES[delimiter]}-delimited", DELIMITER_NAMES[usual]
    if delimiter not in schema.delimiters and sorted(names) == sorted(schema.header):
        return delimiter, [layout_finding(label, *words, rule="delimiter")]
    if problem:
        return delimiter, [layout_finding(label, problem, f"exactly, in this order, {header}")]
    unusual = Finding(label, "", "delimiter", "warn", 0, *words, "none needed")
    return delimiter, [unusual] if delimiter != usual else []


def no_rows(source: TableFiles, problem: str) -> list[Finding]:
    """A table without rows stops, but for persons: all units may be vacant."""
    vacant = source.table == "persons"
    allowed = "no rows, when every unit is vacant" if vacant else "at least one row"
    return stated("records.header-only", source.label, warn=vacant, problem=problem, allowed=allowed)


def printable_names(names: Sequence[str], expected: Sequence[str]) -> str:
    """Names of unexpected columns for a message; empty where they may be values: a file without a header has a record there.

    They are shown where one of the expected names stands beside them, and none of them looks like a value.

    Example:
        >>> printable_names(["A", "C", "D"], ["A"]), printable_names(["A", "000123456"], ["A"]), printable_names(["C"], ["A"])
        ('C, D', '', '')
    """
    unknown = [name for name in names if name not in expected]
    printable = [name for name in unknown if name.isidentifier() and len(name) <= 40][:20]
    return ", ".join(printable) if len(printable) == len(unknown) < len(names) else ""


def header_problem(names: tuple[str, ...], expected: tuple[str, ...]) -> str:
    """What distinguishes a header from the expected one, in words; empty when they are equal.

    Names that look like values are counted and not shown.

    Example:
        >>> header_problem(("A", "C", "12"), ("A", "B"))
        'columns missing: B; 2 unexpected columns'
    """
    if names == expected:
        return ""
    missing = [name for name in expected if name not in names]
    unknown = [name for name in names if name not in expected]
    repeated = sorted({name for name in names if name in expected and names.count(name) > 1})
    words = [f"columns missing: {', '.join(missing)}"] if missing else []
    if unknown:
        listed = printable_names(names, expected)
        words.append(f"{len(unknown)} unexpected columns{f': {listed}' if listed else ''}")
    if repeated:
        words.append(f"columns repeated: {', '.join(repeated)}")
    return "; ".join(words) or "columns in another order"
