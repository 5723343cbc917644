"""Measured tables of the documentation: written by their scripts between markers, with commit and date, and which are older than what they measure.

    .venv/bin/python docs/measured.py

A table stands between `<!-- measured NAME by SCRIPT at COMMIT on DATE -->` and `<!-- end of NAME -->`. `measured.toml` lists for every script the
paths that it measures. Without a git repository there is nothing to compare with, and nothing is said.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATHS = "docs/measured.toml"
_NAME = "[a-z0-9-]+"
_BEGIN = re.compile(
    rf"^<!-- measured (?P<name>{_NAME}) by (?P<script>\S+) at (?P<commit>[0-9a-f]{{8,40}}) on (?P<date>\d{{4}}-\d\d-\d\d) -->$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class MeasuredTable:
    """One table of a page: who wrote it, at which commit, and when."""

    page: str
    name: str
    script: str
    commit: str
    date: str


def pages(root: Path = ROOT) -> list[Path]:
    """Every page that may hold measured tables."""
    return [*sorted((root / "docs").glob("*.md")), root / "README.md", root / "benchmarks" / "README.md"]


def measured_tables(root: Path = ROOT) -> Iterator[MeasuredTable]:
    """The measured tables of all pages, in their order."""
    for page in pages(root):
        if page.exists():
            for begin in _BEGIN.finditer(page.read_text(encoding="utf-8")):
                yield MeasuredTable(page.relative_to(root).as_posix(), **begin.groupdict())


def marked(name: str, script: str, lines: Sequence[str], root: Path = ROOT) -> str:
    """A table between its markers, with the commit and the date of now."""
    commit, date = _git(root, "rev-parse", "--short=8", "HEAD").strip(), datetime.date.today().isoformat()
    table = "\n".join(lines).strip("\n")
    return f"<!-- measured {name} by {script} at {commit} on {date} -->\n\n{table}\n\n<!-- end of {name} -->"


def markdown(
    header: Iterable[object], rows: Iterable[Iterable[object]], words: int = 1, number: str = "---:"
) -> list[str]:
    """Lines of a table; the columns after the first ones are numbers."""
    names = list(map(str, header))
    marks = ["---"] * words + [number] * (len(names) - words)
    return [
        f"| {' | '.join(names)} |",
        f"|{'|'.join(marks)}|",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def emit(page: str, name: str, script: str, lines: Sequence[str], *, write: bool) -> None:
    """Write a table into its place, or print it: a call with other arguments than those of the page is for the reader's own use."""
    if write:
        write_table(ROOT / "docs" / page, name, script, lines)
    else:
        sys.stdout.write("\n".join(lines) + "\n\n")


def write_table(page: Path, name: str, script: str, lines: Sequence[str], *, renew: bool = True) -> None:
    """Write a table into its place on a page; without `renew` one that is as before keeps its commit and date."""
    text = page.read_text(encoding="utf-8")
    place = re.compile(
        rf"<!-- measured {name} by {re.escape(script)} at .*?<!-- end of {name} -->", re.DOTALL
    )
    before, written = place.findall(text), marked(name, script, lines)
    if len(before) != 1:
        raise ValueError(f"{page.name} does not have one place for the table {name} of {script}")
    if renew or before[0].splitlines()[1:] != written.splitlines()[1:]:
        page.write_text(text.replace(before[0], written), encoding="utf-8")


def measured_paths(root: Path = ROOT) -> Mapping[str, Sequence[str]]:
    """For every script the paths that it measures, itself included."""
    listed = tomllib.loads((root / PATHS).read_text(encoding="utf-8"))["scripts"]
    return {script: (script, *paths) for script, paths in listed.items()}


def stale_tables(root: Path = ROOT) -> Iterator[str]:
    """A line for the tables of a page and a commit that are older than what they measure; none where there is no repository."""
    if not (root / ".git").exists():
        return
    listed, groups = measured_paths(root), defaultdict(list)
    for table in measured_tables(root):
        groups[replace(table, name="")].append(table.name)
    for table, names in groups.items():
        later = _later(root, table, listed[table.script])
        if later:
            commit, _, date = later[0].partition(" ")
            yield (
                f"{table.page}: {', '.join(names)}; measured {table.date} at {table.commit} by {table.script}, "
                f"{len(later)} later change{'s' * (len(later) > 1)} of what it measures, the last {date} at {commit}"
            )


def shown_stamps(text: str) -> str:
    """A page for readers of the site: under every measured table a line that says when, at which commit and by which script."""
    for begin in list(_BEGIN.finditer(text)):
        line = f"Measured {begin['date']} at `{begin['commit']}` by `{begin['script']}`."
        text = text.replace(
            f"<!-- end of {begin['name']} -->", f'<p class="measured" markdown="span">{line}</p>'
        ).replace(f"{begin[0]}\n", "")
    return text


def _later(root: Path, table: MeasuredTable, paths: Sequence[str]) -> list[str]:
    """Changes of paths after the commit of a table, by its date where the commit is not in the repository; the latest first."""
    known = _git(root, "rev-parse", "--verify", "--quiet", f"{table.commit}^{{commit}}")
    since = [f"{table.commit}..HEAD"] if known else []
    changes = _git(root, "log", "--format=%h %cs", *since, "--", *paths, ":(exclude)*.md").splitlines()
    return [change for change in changes if known or change.split()[1] > table.date]


def _git(root: Path, *arguments: str) -> str:
    """What a command of git prints; nothing where it fails or is not installed."""
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", root, *arguments],  # noqa: S607
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def main() -> None:
    """Print the tables that are older than the code."""
    for line in stale_tables():
        sys.stdout.write(f"older than the code: {line}\n")


if __name__ == "__main__":
    main()
