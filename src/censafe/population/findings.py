"""What validation found: numbers of rows and rules, never a value of a record."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from censafe.errors import DataError

Severity = Literal["stop", "warn"]


@dataclass(frozen=True)
class Finding:
    """One rule that some rows break.

    Args:
        column: column, or columns joined by commas; empty when the rule is about whole rows.
        rows: number of rows (or households, where ``problem`` says so) that break the rule.
    """

    file: str
    column: str
    rule: str
    severity: Severity
    rows: int
    problem: str
    allowed: str
    fix: str

    def text(self) -> str:
        """The finding as one line.

        Example:
            >>> Finding("persons.csv", "QAGE", "domain", "stop", 3, "values outside the allowed set",
            ...         "0 to 115", "correct the column").text()
            'persons.csv: QAGE: values outside the allowed set (3 rows) [domain]; allowed: 0 to 115; fix: correct the column'
        """
        place = f"{self.file}: {self.column}" if self.column else self.file
        count = f" ({self.rows} row{'' if self.rows == 1 else 's'})" if self.rows else ""
        return f"{place}: {self.problem}{count} [{self.rule}]; allowed: {self.allowed}; fix: {self.fix}"


def layout_finding(
    file: str, problem: str, allowed: str, *, column: str = "", rule: str = "header"
) -> Finding:
    """A file that is not in the layout of its table, so that none of its rows can be read."""
    return Finding(
        file, column, rule, "stop", 0, problem, allowed, "write the file again in the stated layout"
    )


def finding(
    file: str,
    column: str,
    rule: str,
    rows: int,
    problem: str,
    allowed: str,
    fix: str = "correct the file",
    severity: Severity = "stop",
) -> list[Finding]:
    """A finding, or none where no row breaks the rule."""
    return [Finding(file, column, rule, severity, rows, problem, allowed, fix)] if rows else []


@cache
def _words() -> Mapping[str, Any]:
    text = files("censafe.population").joinpath("findings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def stated(
    rule: str,
    file: str,
    rows: int | None = None,
    *,
    column: str = "",
    warn: bool = False,
    **values: object,
) -> list[Finding]:
    """A finding in the words of findings.toml, or none where no row breaks the rule.

    Args:
        rule: group and rule, such as ``phsafe.no-persons``.
        rows: None where the finding is not about rows.
        warn: whether it does not stop, as those that never stop do not.
        values: what the words leave open.
    """
    group, _, name = rule.partition(".")
    words = _words()[group][name]
    texts = (words.get(part, "correct the file").format_map(values) for part in ("problem", "allowed", "fix"))
    severity: Severity = "warn" if warn or words.get("severity") == "warn" else "stop"
    where = column or words.get("column", ""), name, severity
    return [] if rows == 0 else [Finding(file, *where, rows or 0, *texts)]


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Add up findings of the same rule, file and column, keeping first-seen order."""
    merged: dict[tuple[str, ...], Finding] = {}
    for entry in findings:
        key = (entry.file, entry.column, entry.rule, entry.severity, entry.problem)
        seen = merged.get(key)
        merged[key] = replace(seen, rows=seen.rows + entry.rows) if seen else entry
    return tuple(merged.values())


def raise_if_fatal(findings: Iterable[Finding], what: str) -> None:
    """Raise one DataError that lists every finding that stops."""
    fatal = [one for one in findings if one.severity == "stop"]
    if fatal:
        lines = "\n".join(f"  - {one.text()}" for one in fatal)
        raise DataError(f"{what}: {len(fatal)} problem{'' if len(fatal) == 1 else 's'}\n{lines}")
