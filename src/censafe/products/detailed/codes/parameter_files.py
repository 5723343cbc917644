"""Pipe-delimited parameter files, and the short form of the map from codes to iterations: text into checked rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from censafe.errors import DataError
from censafe.population.findings import Finding, Severity

Columns = Sequence[tuple[str, str, str]]
"""Name, regular expression and words for what is allowed, of every column in order."""

_SHOWN: Final = 5


@dataclass
class CodeFindings:
    """What is wrong with the parameter files, gathered before anything is raised."""

    found: list[Finding] = field(default_factory=list)

    def add(
        self,
        file: str,
        column: str,
        rule: str,
        rows: int,
        problem: str,
        allowed: str,
        fix: str,
        severity: Severity = "stop",
    ) -> None:
        """Note one breach."""
        self.found.append(Finding(file, column, rule, severity, rows, problem, allowed, fix))


@dataclass(frozen=True)
class Table:
    """The rows of one file whose columns all have the right form; ``rows`` is empty when the header has not."""

    file: str
    rows: tuple[tuple[str, ...], ...]


def read_table(path: Path, columns: Columns, findings: CodeFindings) -> Table:
    """Read a file with a header; CRLF and LF line ends, with or without a byte order mark."""
    lines = read_lines(path, findings)
    names = tuple(name for name, _, _ in columns)
    if lines is None or not _header_fits(path.name, lines[0], names, findings):
        return Table(path.name, ())
    rows = [tuple(line.split("|")) for line in lines[1:]]
    whole = [row for row in rows if len(row) == len(names)]
    if len(whole) < len(rows):
        findings.add(
            path.name,
            "",
            "fields",
            len(rows) - len(whole),
            "rows with another number of fields than the header",
            f"{len(names)} fields separated by |",
            "correct the rows",
        )
    return Table(path.name, tuple(_well_formed(path.name, whole, columns, findings)))


def read_lines(path: Path, findings: CodeFindings) -> list[str] | None:
    """Lines of a text file without their ends, header first, or None when there is no text."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        fix = "put the file into the parameter folder"
        findings.add(path.name, "", "readable", 0, f"cannot be read: {error.strerror}", "a text file", fix)
        return None
    except UnicodeDecodeError as error:
        findings.add(
            path.name,
            "",
            "encoding",
            0,
            f"not UTF-8 text (byte {error.start})",
            "UTF-8, with or without a byte order mark",
            "save the file as UTF-8",
        )
        return None
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        findings.add(path.name, "", "empty", 0, "the file is empty", "a header and rows", "supply the file")
        return None
    return lines


def examples_text(values: Iterable[str]) -> str:
    """The first few of some public values.

    Example:
        >>> examples_text(["1010", "1020"])
        '1010, 1020'
    """
    listed = list(values)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def _header_fits(file: str, line: str, names: tuple[str, ...], findings: CodeFindings) -> bool:
    header = tuple(line.split("|"))
    if header == names:
        return True
    missing = [name for name in names if name not in header]
    extra = [name for name in header if name not in names]
    if missing:
        problem = f"the header has no column {examples_text(missing)}"
    elif extra:
        problem = f"the header has the unexpected column {examples_text(repr(name) for name in extra)}"
    else:
        problem = "the columns are repeated or in another order"
    findings.add(
        file, "", "header", 0, problem, "|".join(names), "correct the header and the columns under it"
    )
    return False


def _well_formed(
    file: str, rows: list[tuple[str, ...]], columns: Columns, findings: CodeFindings
) -> list[tuple[str, ...]]:
    good = [True] * len(rows)
    for position, (name, pattern, allowed) in enumerate(columns):
        matches = re.compile(pattern, re.ASCII).fullmatch
        bad = [i for i, row in enumerate(rows) if not matches(row[position])]
        if not bad:
            continue
        shown = examples_text(dict.fromkeys(repr(rows[i][position][:40]) for i in bad))
        findings.add(
            file, name, "domain", len(bad), f"values of another form: {shown}", allowed, "correct the column"
        )
        for i in bad:
            good[i] = False
    return [row for row, fits in zip(rows, good, strict=True) if fits]


LONG_HEADER: Final = "ITERATION_CODE|RACE_ETH_CODE"
_LINE: Final = re.compile(
    r"\s*(\d{1,4})\s*\|\s*(\d{4}(?:\s*:\s*\d{4})?(?:\s*,\s*\d{4}(?:\s*:\s*\d{4})?)*)\s*", re.ASCII
)


def is_short_form(lines: list[str]) -> bool:
    """Whether the lines of a map file, header first, are of the short form: some line has a list or a range.

    Example:
        >>> is_short_form(["ITERATION_CODE|RACE_ETH_CODE", "1002|1010"]), is_short_form(["A|B", "2|1010, 1020:1030"])
        (False, True)
    """
    return any("," in line or ":" in line for line in lines[1:])


def expand_short_form(
    lines: Iterable[str], known: Collection[int], where: str
) -> tuple[tuple[str, str], ...]:
    """Rows (iteration code, race or ethnicity code) of the long form.

    Example:
        >>> expand_short_form(["12|1010, 1020:1030"], {1010, 1021, 1029}, "map.txt")
        (('0012', '1010'), ('0012', '1021'), ('0012', '1029'))
    """
    ordered = sorted(known)
    rows: list[tuple[str, str]] = []
    wrong: list[int] = []
    for number, line in enumerate(lines, start=2):
        parsed = _LINE.fullmatch(line)
        ranges = [] if parsed is None else [_bounds(item) for item in parsed[2].split(",")]
        if parsed is None or any(low > high for low, high in ranges):
            wrong.append(number)
            continue
        for low, high in ranges:
            codes = [low] if low == high else [code for code in ordered if low <= code <= high]
            rows += [(parsed[1].zfill(4), f"{code:04d}") for code in codes]
    if wrong:
        shown = ", ".join(str(number) for number in wrong[:10])
        raise DataError(
            f"{where}: {len(wrong)} malformed line{'s' if len(wrong) > 1 else ''} (line {shown}); allowed: an "
            "iteration code of 1 to 4 digits, |, then four-digit codes or ranges aaaa:bbbb with aaaa up to bbbb, "
            "separated by commas; fix: correct the lines"
        )
    return tuple(rows)


def _bounds(item: str) -> tuple[int, int]:
    low, _, high = item.partition(":")
    return int(low), int(high or low)
