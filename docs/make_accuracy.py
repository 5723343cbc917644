"""Rewrite docs/accuracy.md and its figures: evaluate TopDown on published counts that stand in for records.

    .venv/bin/python docs/make_accuracy.py --work FOLDER [--only ri2018,hi2020] [--runs 4] [--sweep NAME=FOLDER ...]

The counts are published data, so what is compared here is not a secret. A folder that holds finished evaluations is reused.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measured import markdown, page_table
from studies import DOCS, data_folder

from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.sweep import sweep_page
from censafe.evaluation.pages.topdown import metric_values, topdown_page
from censafe.evaluation.topdown.accuracy import SHORT
from censafe.publication.pages.exhibits import svg_text

SCRIPT = "docs/make_accuracy.py"
PAGE = DOCS / "accuracy.md"


@dataclass(frozen=True)
class Case:
    """One data set, and how it is evaluated."""

    name: str
    title: str
    words: str
    arguments: tuple[str, ...]
    histogram: str = "persons"


CASES = (
    Case(
        "ri2018", "Rhode Island 2018, blocks of the end-to-end test",
        "The published PL 94-171 files of the 2018 test site: 29,225 persons in 569 blocks. The joint of kind of group quarters with "
        "age and race is not published; the reader imputes it by its documented rule.",
        ("pl94-us", "--set", "root=State", "--set", "spine=standard", "--set", "reader=pl94"),
    ),
    Case(
        "il2020", "Illinois 2020, tracts",
        "12,812,508 persons in 3,265 tracts, the full schema of 2,016 cells, with the production budgets of the levels down to tracts.",
        ("pl94-tracts",),
    ),
    Case(
        "hi2020", "Hawaii 2020, blocks",
        "1,455,271 persons in 14,732 blocks: voting age by Hispanic origin and race in sixteen cells.",
        ("blocks-16",),
    ),
    Case(
        "ri2010", "Rhode Island 2010, blocks",
        "1,052,567 persons in 25,181 blocks, in the same sixteen cells.",
        ("blocks-16",),
    ),
    Case(
        "vt2010", "Vermont 2010, housing units",
        "322,539 housing units in 32,580 blocks, occupied or vacant; the number of units of every block is published exactly.",
        ("pl94-us", "--set", "root=State", "--set", "spine=standard", "--set", "measure=units"),
        "units",
    ),
)  # fmt: skip

_SYNTHETIC = "censafe synth DATA --persons 10000000 --layout e2e-1940 --seed 1"
_SWEEP = "censafe evaluate sweep topdown"
SWEEPS = {
    "sweep": (
        "A sweep over budgets: the study of the 1940 census on synthetic records, about 42 districts in a county",
        f"{_SYNTHETIC} --states 17,34,36,42\n{_SWEEP} e2e-1940",
    ),
    "sweep-nation": (
        "The same on all states, about four districts in a county",
        f"{_SYNTHETIC}\n{_SWEEP} e2e-1940",
    ),
    "sweep-il2020": ("The same on Illinois 2020, tracts", f"{_SWEEP} pl94-tracts"),
    "sweep-hi2020": ("The same on Hawaii 2020, blocks", f"{_SWEEP} blocks-16"),
    "sweep-ri2010": ("The same on Rhode Island 2010, blocks", f"{_SWEEP} blocks-16"),
}


def main() -> None:
    """Evaluate, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", default="4")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--sweep", action="append", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    names = options.only.split(",") if options.only else [case.name for case in CASES]
    for case in CASES:
        if case.name in names and not (options.work / case.name / "report.html").exists():
            evaluate(case, options)
    done = [case for case in CASES if (options.work / case.name / "report.html").exists()]
    parts = [HEAD, *(section(case, options.work / case.name) for case in done)]
    folders = dict(text.split("=", 1) for text in options.sweep)
    for name, (title, command) in SWEEPS.items():
        if name in folders:
            parts.append(sweep_section(Path(folders[name]), name, title, command))
    PAGE.write_text("\n".join([*parts, TAIL]), encoding="utf-8")


def evaluate(case: Case, options: argparse.Namespace) -> None:
    """One evaluation in a process of its own."""
    config, *settings = case.arguments
    command = [
        sys.executable, "-c", "from censafe.cli import main; main()", "evaluate", "topdown", config, str(data_folder(case.name, options.work)),
        str(options.work / case.name), *settings, "--runs", options.runs, "--workers", options.workers,
    ]  # fmt: skip
    subprocess.run(command, check=True)  # noqa: S603


def section(case: Case, folder: Path) -> str:
    """Command, figure and table of one data set."""
    document = read_evaluation(folder)
    config, *settings = case.arguments
    lines = [
        f"\n## {case.title}\n",
        case.words,
        "",
        "```",
        " ".join(
            ["censafe evaluate topdown", config, "DATA", "OUT", *settings, f"--runs {document['runs']}"]
        ),
        "```",
        "",
    ]
    for exhibit in topdown_page(folder).exhibits:
        if exhibit.figure is not None:
            name = f"figures/{case.name}-{exhibit.name}.svg"
            (DOCS / name).write_text(
                svg_text(exhibit.figure, f"{case.name}-{exhibit.name}"), encoding="utf-8"
            )
            lines += [f"![{exhibit.alt}]({name})", ""]
    lines += accuracy_table(case, folder, document)
    lines += slope_lines(case, folder)
    return "\n".join(lines)


def accuracy_table(case: Case, folder: Path, document: dict[str, Any]) -> list[str]:
    """Mean absolute errors as Markdown."""
    errors, high = metric_values(folder, "mean_ae"), metric_values(folder, "pct95_ae")
    rows = []
    for query, words in document["histograms"][case.histogram].items():
        for level in document["levels"]:
            values = errors.get((case.histogram, query, level), {})
            if "topdown" in values:
                numbers = [number_text(values[name].value, 2) if name in values else "" for name in SHORT]
                large = number_text(high[case.histogram, query, level]["topdown"].value, 1)
                areas = f"{values['topdown'].units:,}"
                rows.append((words, level.replace("_", " "), areas, *numbers, large))
    header = ("characteristic", "level", "areas", *SHORT.values(), "TopDown, 95th percentile")
    lines = markdown(header, rows, words=2, number="--:")
    return page_table(PAGE, f"{case.name}-errors", SCRIPT, lines)


def slope_lines(case: Case, folder: Path) -> list[str]:
    """How squared errors of totals grow with the number of blocks."""
    rows = [
        row
        for row in read_frame(folder, "slopes", ("histogram", "method")).to_pylist()
        if row["histogram"] == case.histogram and row["slope"] is not None and row["slope"] == row["slope"]
    ]
    levels = list(dict.fromkeys(row["level"] for row in rows))
    if not levels:
        return []
    by_place = {(row["level"], row["method"]): row for row in rows}
    words = (
        "Slope of the logarithm of the squared error of totals on the logarithm of the number of blocks of an area (0: the error does "
        "not grow with it; 1: the squared error grows like it):"
    )
    lines = []
    for level in levels:
        numbers = [
            number_text(by_place[level, name]["slope"], 2) if (level, name) in by_place else ""
            for name in SHORT
        ]
        areas = next(row["n_areas"] for row in rows if row["level"] == level)
        lines.append((level.replace("_", " "), f"{areas:,}", *numbers))
    table = markdown(("level", "areas", *SHORT.values()), lines, number="--:")
    return ["", words, "", *page_table(PAGE, f"{case.name}-slopes", SCRIPT, table)]


def sweep_section(folder: Path, name: str, title: str, command: str) -> str:
    """What a sweep over budgets found."""
    document = read_evaluation(folder)
    lines = [
        f"\n## {title}\n",
        f"{document['runs']} runs at each of {len(document['epsilons'])} budgets on "
        + ", ".join(f"{count:,} {level}" for level, count in document["geounits"].items())
        + ".",
        "",
        "```",
        f"{command} DATA OUT --epsilon {','.join(f'{one:g}' for one in document['epsilons'])} --runs {document['runs']}",
        "```",
        "",
    ]
    for exhibit in sweep_page(folder).exhibits:
        if exhibit.figure is not None:
            file = f"figures/{name}-{exhibit.name}.svg"
            (DOCS / file).write_text(svg_text(exhibit.figure, f"{name}-{exhibit.name}"), encoding="utf-8")
            lines += [exhibit.question, "", f"![{exhibit.alt}]({file})", ""]
    lines += table_one_lines(folder, document["middle"], name)
    header = ("the study found", "here too?", "here", "in the study", "what differs")
    columns = ("finding", "verdict", "measured", "published", "why")
    rows = ([row[name] for name in columns] for row in read_frame(folder, "findings").to_pylist())
    return "\n".join([*lines, *markdown(header, rows, words=5)])


def table_one_lines(folder: Path, middle: str, name: str) -> list[str]:
    """Table 1 of the study: the simple random sample that is most like each budget."""
    printed = {1.0: "50", 2.0: "75", 4.0: "90", 6.0: "95"}
    header = ("epsilon", "sample, % of persons", "distance", "in the study, %")
    rows = (
        (
            f"{row['epsilon']:g}",
            number_text(row["sample_pct"], 0),
            number_text(row["distance"], 2),
            printed.get(row["epsilon"], ""),
        )
        for row in read_frame(folder, "table_one").to_pylist()
    )
    lines = markdown(header, rows, words=0, number="--:")
    return [
        f"Table 1, the simple random sample whose error and empirical privacy loss are most like those of a budget, by stratified counts "
        f"of level {middle} (distance: sum of the absolute log ratios of both):",
        "",
        *page_table(PAGE, f"{name}-samples", SCRIPT, lines),
        "",
    ]


HEAD = """# How accurate is TopDown?

Tables and figures of `censafe evaluate`, on published counts of the Census Bureau that stand in for confidential records: what is
added to them here is measured against them. They are themselves outputs of disclosure avoidance, so they say nothing about the
error of the Bureau's own publications.

How to read the tables: mean absolute error of a count, in records, over all areas of a level and all cells of a characteristic, the
empty ones included.

| column | what it is |
|---|---|
| TopDown | every level measured, fitted and rounded, consistent from blocks to the root |
| Noisy counts | what TopDown starts from: the noisy answers of the level itself, negative numbers and all |
| Fitted blocks | the whole budget on each block, fitted to whole numbers of zero or more block by block, then added up |
| Noisy blocks | the same without fitting |

Totals that are published exactly have error 0. `.venv/bin/python docs/make_accuracy.py --work FOLDER` rewrites this page."""
TAIL = """
## What the tables say

* TopDown's error hardly depends on the level, that of blocks added up grows with every level above them: at the root it is larger by
  orders of magnitude.
* At the lowest level fitting each block alone can be as good or better for small cells, because its whole budget goes there; that is
  what the levels above are paid with.
* Within a level, areas of many blocks are not worse than areas of few beyond the noise of their own count.
"""

if __name__ == "__main__":
    main()
