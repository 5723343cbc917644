"""Rewrite the tables and figures of docs/accuracy.md: evaluate TopDown on published counts that stand in for records.

    .venv/bin/python docs/make_accuracy.py --work FOLDER [--only ri2018,hi2020] [--runs 4] [--sweep NAME=FOLDER ...]

The counts are published data, so what is compared here is not a secret. A folder that holds finished evaluations is reused; a table that
is as before keeps its commit and date.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from measured import markdown, write_table
from studies import DOCS, data_folder

from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.sweep import sweep_page
from censafe.evaluation.pages.topdown import metric_values, topdown_page
from censafe.evaluation.topdown.accuracy import SHORT
from censafe.publication.pages import Exhibit, svg_text

STATE = ("pl94-us", "--set", "root=State", "--set", "spine=standard", "--set")
CASES = {
    "ri2018": (*STATE, "reader=pl94"),
    "il2020": ("pl94-tracts",),
    "hi2020": ("blocks-16",),
    "ri2010": ("blocks-16",),
    "vt2010": (*STATE, "measure=units"),
}
"""Configuration and settings of every data set."""
PRINTED = {1.0: "50", 2.0: "75", 4.0: "90", 6.0: "95"}
"""Samples of the study by budget, % of persons."""
FINDINGS = ("finding", "verdict", "measured", "published", "why")


def main() -> None:
    """Evaluate, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--runs", default="4")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--sweep", action="append", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        folder = options.work / name
        if name in options.only.split(",") and not (folder / "report.html").exists():
            evaluate(name, options)
        if (folder / "report.html").exists():
            write_case(name, folder)
    for name, _, folder in (text.partition("=") for text in options.sweep):
        write_sweep(name, Path(folder))


def evaluate(name: str, options: argparse.Namespace) -> None:
    """One evaluation in a process of its own."""
    config, *settings = CASES[name]
    command = [
        sys.executable, "-c", "from censafe.cli import main; main()", "evaluate", "topdown", config, str(data_folder(name, options.work)),
        str(options.work / name), *settings, "--runs", options.runs, "--workers", options.workers,
    ]  # fmt: skip
    subprocess.run(command, check=True)  # noqa: S603


def write(name: str, lines: Sequence[str]) -> None:
    """Write a table into its place."""
    write_table(DOCS / "accuracy.md", name, "docs/make_accuracy.py", lines, renew=False)


def draw(name: str, exhibits: Iterable[Exhibit]) -> None:
    """Write the figures of a page."""
    for exhibit in exhibits:
        if exhibit.figure is not None:
            stem = f"{name}-{exhibit.name}"
            (DOCS / "figures" / f"{stem}.svg").write_text(svg_text(exhibit.figure, stem), encoding="utf-8")


def write_case(name: str, folder: Path) -> None:
    """Figures of one data set, its mean absolute errors, and how squared errors of totals grow with the number of blocks."""
    draw(name, topdown_page(folder).exhibits)
    document = read_evaluation(folder)
    histogram = "units" if name == "vt2010" else "persons"
    long = read_frame(folder, "metrics_long")
    errors, high = metric_values(long, "mean_ae"), metric_values(long, "pct95_ae")
    rows = []
    for query, words in document["histograms"][histogram].items():
        for level in document["levels"]:
            values = errors.get((histogram, query, level), {})
            if "topdown" in values:
                numbers = [number_text(values[one].value, 2) if one in values else "" for one in SHORT]
                large = number_text(high[histogram, query, level]["topdown"].value, 1)
                count = f"{values['topdown'].units:,}"
                rows.append((words, level.replace("_", " "), count, *numbers, large))
    header = ("characteristic", "level", "areas", *SHORT.values(), "TopDown, 95th percentile")
    write(f"{name}-errors", markdown(header, rows, words=2, number="--:"))
    slopes = [
        row
        for row in read_frame(folder, "slopes", ("histogram", "method")).to_pylist()
        if row["histogram"] == histogram and row["slope"] is not None and row["slope"] == row["slope"]
    ]
    by_place = {(row["level"], row["method"]): row for row in slopes}
    areas = {row["level"]: f"{row['n_areas']:,}" for row in slopes}
    lines = [
        (
            level.replace("_", " "),
            areas[level],
            *(
                number_text(by_place[level, one]["slope"], 2) if (level, one) in by_place else ""
                for one in SHORT
            ),
        )
        for level in areas
    ]
    if lines:
        write(f"{name}-slopes", markdown(("level", "areas", *SHORT.values()), lines, number="--:"))


def write_sweep(name: str, folder: Path) -> None:
    """Figures of a sweep over budgets, the sample that is most like each budget (table 1 of the study), and what the study found."""
    draw(name, sweep_page(folder).exhibits)
    header: tuple[str, ...] = ("epsilon", "sample, % of persons", "distance", "in the study, %")
    samples = (
        (
            f"{row['epsilon']:g}",
            number_text(row["sample_pct"], 0),
            number_text(row["distance"], 2),
            PRINTED.get(row["epsilon"], ""),
        )
        for row in read_frame(folder, "table_one").to_pylist()
    )
    write(f"{name}-samples", markdown(header, samples, words=0, number="--:"))
    findings = ([row[one] for one in FINDINGS] for row in read_frame(folder, "findings").to_pylist())
    header = ("the study found", "here too?", "here", "in the study", "what differs")
    write(f"{name}-findings", markdown(header, findings, words=5))


if __name__ == "__main__":
    main()
