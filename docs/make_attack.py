"""Rewrite the table of defenses in docs/attack.md: 20,000 synthetic persons, every defense attacked.

    .venv/bin/python docs/make_attack.py DIR

A comparison in DIR that was stopped is continued.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from measured import ROOT, write_table

from censafe import compare_defenses, synthesize

LINES: Final = (
    ("swap:LO",), ("topcode:75",), ("swap:permutation:p=0.05", "swap:permutation:p=0.5"), ("cellkey",), ("ranges",),
    ("threshold:30", "threshold:100"), ("swap:targeted:rate=0.05", "swap:targeted:rate=0.20"), ("suppress:1980",),
    ("suppress:threshold=3", "suppress:threshold=5"), ("random-round:3", "random-round:5"), ("round:3", "round:5", "round:10"),
    ("swap:HI",), ("ages:5", "ages:10"), ("merge:100", "merge:500"), ("races:7", "races:3"), ("topdown:dhc-us",),
    ("topdown:pl94-us",),
)  # fmt: skip
"""Defenses by line of the table, strengths of one kind together."""
PARTIAL: Final = {"exact redistricting data": "race, origin, voting age alone", "topdown:pl94-us": "the same"}


def line_of(rows: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> str:
    """One line of the table."""
    kind = "race_error" if names[0] in PARTIAL else "error"
    shown = [
        ", ".join("none" if rows[name][column] is None else f"{rows[name][column]:.{places}f}" for name in names)
        for column, places in (("putative_percent", 1), ("precision", 1), (f"{kind}_block", 2), (f"{kind}_tract", 2))
    ]  # fmt: skip
    if names[0] in PARTIAL:
        shown[2] += f" ({PARTIAL[names[0]]})"
    stem = names[0].rpartition(":")[0]
    words = [names[0], *(name.removeprefix(f"{stem}:") if "=" in name else name for name in names[1:])]
    title = names[0] if names[0].startswith("exact") else ", ".join(f"`{word}`" for word in words)
    return f"| {title} | {' | '.join(shown)} |"


def main() -> None:
    """Make what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    data = folder / "data"
    if not data.exists():
        synthesize(data, persons=20_000, states=("50",), layout="dhc", seed=1)
    names = [name for line in LINES for name in line]
    result = compare_defenses(data, folder / "compared", names, variability=False)
    rows = {row["defense"]: row for row in result.frames()["defenses"].arrow.to_pylist()}
    lines = [
        "| | matched, % | right of these, % | mean error of a block count | of a tract count |",
        "|---|---|---|---|---|",
        line_of(rows, ("exact tables",)),
        *(line_of(rows, line) for line in LINES[:-1]),
        line_of(rows, ("exact redistricting data",)),
        line_of(rows, LINES[-1]),
    ]
    write_table(ROOT / "docs" / "attack.md", "defenses", "docs/make_attack.py", lines)


if __name__ == "__main__":
    main()
