"""Whole commands of this checkout and of another one in turn, so that a change of speed is a ratio within one run.

    python benchmarks/revisions.py --before CHECKOUT [--rounds R] [--data DIR] [--json] [--write revisions]

Both run on the same synthetic inputs, under test keys and with this environment; kernels are compiled in both before the clock starts, by one round that is not counted. Medians over
the rounds; a ratio is the median of those of the rounds, this checkout by the other one. Mark: nothing slower by more than 5%.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from harness import COMMAND, ROOT, Child, child, markdown, parser_of, population, report

COMMANDS = {
    "`run phsafe sdhc-us`, 1 million persons": ("phsafe", "run phsafe sdhc-us DATA OUT --set reader=csv"),
    "`run safetab-p ddhca`, 1 million persons": (
        "safetab",
        "run safetab-p ddhca DATA OUT --set reader=csv --set run_pr=false",
    ),
    "`run topdown pl94-us`, a state like Vermont": ("pl94", "run topdown pl94-us DATA OUT --set root=State"),
    "`run topdown dhc-us`, 20,000 persons": ("dhc", "run topdown dhc-us DATA OUT --set root=State"),
    "`evaluate phsafe sdhc-us`, 5 trials": (
        "phsafe",
        "evaluate phsafe sdhc-us DATA OUT --set reader=csv --trials 5",
    ),
    "`evaluate topdown pl94-us`, 1 run": (
        "pl94",
        "evaluate topdown pl94-us DATA OUT --set root=State --runs 1",
    ),
    "`plan topdown pl94-us`": ("", "plan topdown pl94-us"),
}
INPUTS = {
    "phsafe": (1_000_000, None),
    "safetab": (1_000_000, None),
    "pl94": (643_077, ("50",)),
    "dhc": (20_000, ("50",)),
}


def run(checkout: Path, data: Path, out: Path, words: Sequence[str]) -> Child:
    """One command of a checkout, into a folder that is not there."""
    for folder in (out, out.with_name(f"{out.name}-redistricting")):
        shutil.rmtree(folder, ignore_errors=True)
    places = {"DATA": str(data), "OUT": str(out)}
    command = [*COMMAND, *(places.get(word, word) for word in words)]
    if words[0] == "run":
        command += ["--test-key", "1", "--quiet"]
    elif words[0] == "evaluate":
        command += ["--quiet"]
    return child(command, env={**os.environ, "PYTHONPATH": str(checkout / "src")})


def measure(data: Path, arguments: argparse.Namespace) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for name, (layout, text) in COMMANDS.items():
        folder = data / layout if layout else data
        if layout:
            persons, states = INPUTS[layout]
            population(folder, persons=persons, states=states, seed=1, layout=layout)
        after: list[Child] = []
        before: list[Child] = []
        for _ in range(arguments.rounds + 1):
            after.append(run(ROOT, folder, data / "after", text.split()))
            before.append(run(arguments.before.resolve(), folder, data / "before", text.split()))
        pairs = list(zip(after[1:], before[1:], strict=True))
        rows.append(
            {
                "command": name,
                "after_s": median(one.seconds for one, _ in pairs),
                "before_s": median(other.seconds for _, other in pairs),
                "ratio": median(one.seconds / other.seconds for one, other in pairs),
                "cpu_ratio": median(one.cpu_seconds / other.cpu_seconds for one, other in pairs),
                "after_gib": median(one.peak_gib for one, _ in pairs),
                "before_gib": median(other.peak_gib for _, other in pairs),
            }
        )
    return rows


def page(rows: list[dict[str, float | str]]) -> list[str]:
    header = ("command", "after, s", "before, s", "ratio", "ratio of processors", "after, GiB", "before, GiB")
    return markdown(header, ([row["command"], *(f"{row[key]:.2f}" for key in list(row)[1:])] for row in rows))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--before", type=Path, required=True, help="another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    report(parser.parse_args(), measure, page, page=page)


if __name__ == "__main__":
    main()
