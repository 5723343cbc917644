"""Linear intervals beside intervals of replicates, of the same releases: coverage, width and error by level, table and size of the number.

    .venv/bin/python docs/make_intervals_compared.py --work FOLDER [--persons N] [--count R] [--keys K] [--csv FILE] [--write]

K releases of the same synthetic state by ``dhc-us``, each with a test key, linear estimates and R replicates of its own. Of every cell of some tables
that has any noise: whether its intervals hold the true number, how wide they are, and how far the linear estimate and the published
count are off. Sizes are those of the true number. What is in FOLDER already is used. With `--write` the tables stand in docs/intervals_compared.md instead of standard output.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from make_replicates import keys, without_noise
from measured import emit, markdown

import censafe
from censafe.products.topdown.census_tables.linear import LinearIntervals
from censafe.products.topdown.folder import ESTIMATES

TABLES = ("P1", "P5", "P12", "P18", "P20", "H1", "H3", "H4", "H9", "P16")
LISTED = (
    "block_group",
    "block",
)  # levels for which a run makes linear estimates where a list names their areas
LEVELS = ("county", "tract", *LISTED)
SIZES = ((0, 1), (1, 10), (10, 100), (100, 1_000), (1_000, 10**9))
CONFIDENCES = ("0.9", "0.95")
LEAST = 50  # cells of which a share is shown
EXACT = 1e-3  # standard deviation up to which a cell is published exactly, but for rounding
COLUMNS = (
    "cells", "coverage_90_linear", "coverage_90_cut", "coverage_90_replicates", "coverage_95_linear", "coverage_95_replicates",
    "width_90_linear", "width_90_cut", "width_90_replicates", "width_linear_to_replicates",
    "median_error_linear", "median_error_published", "rmse_linear", "rmse_published",
)  # fmt: skip
COVERAGE = ("linear, 90%", "cut at 0, 90%", "replicates, 90%", "linear, 95%", "replicates, 95%")
WIDTHS = (
    "linear", "cut at 0", "replicates", "linear to replicates", "median error, linear", "published", "RMSE, linear", "published",
)  # fmt: skip
SHORT = ("linear holds", "replicates hold", "linear width", "cut at 0", "replicates width")


Cells: TypeAlias = pa.Table
"""What was found of some cells, a row each."""


def numbers(cells: Cells) -> tuple[float, ...]:
    """What :data:`COLUMNS` says: coverage in percent, medians of widths and of errors."""
    column = {name: cells[name].to_numpy() for name in cells.column_names}
    shares = ("linear", "cut", "replicates", "linear_95", "replicates_95")
    widths = [float(np.median(column[f"width_{name}"])) for name in ("linear", "cut", "replicates")]
    errors = [np.abs(column[f"error_{name}"]) for name in ("linear", "published")]
    return (
        len(cells),
        *(100 * float(column[name].mean()) for name in shares),
        *widths,
        widths[0] / widths[2] if widths[2] else np.nan,
        *(float(np.median(error)) for error in errors),
        *(float(np.sqrt(np.mean(error**2))) for error in errors),
    )


def spread(cells: Cells) -> tuple[float, float]:
    """Standard errors of the first and third coverage, from differences between releases."""
    key, *hits = (cells[name].to_numpy() for name in ("key", "linear", "replicates"))
    runs = np.unique(key)
    shares = np.array([[100 * hit[key == run].mean() for hit in hits] for run in runs])
    first, second = shares.std(axis=0, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else (np.nan, np.nan)
    return float(first), float(second)


def main() -> None:
    """Write the tables to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--persons", type=int, default=60_000)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    truth = without_noise(options.work, options.persons)
    areas = write_areas(truth, options.work / "areas.csv")
    parts = []
    for key in range(21, 21 + options.keys):
        run = released(options.work, key, options.count, areas)
        parts += [compared(key, run, truth, level) for level in LEVELS]
    cells = pa.concat_tables(parts)
    levels = list(rows_of(cells, "level", LEVELS))
    tables = {
        "coverage": sized_table(("level", "true number", "cells", *COVERAGE), levels, coverage),
        "widths": sized_table(
            ("level", "true number", *WIDTHS), levels, lambda part: [sized(one) for one in numbers(part)[6:]]
        ),
    }
    for level in LEVELS:
        rows = list(rows_of(cells.filter(pc.field("level") == level), "table", TABLES))
        tables[level] = sized_table((f"{level}: table", "true number", "cells", *SHORT), rows, short)
    for name, lines in tables.items():
        script = "docs/make_intervals_compared.py"
        emit("intervals_compared.md", f"compared-{name}", script, lines, write=options.write)
    if options.csv is not None:
        write_csv(options.csv, cells)


def write_areas(truth: Path, path: Path) -> Path:
    """A list of blocks with the block group of each, and itself, as areas."""
    blocks = pq.read_table(truth / "measurements" / "geography.parquet")["geocode"].to_pylist()
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["geocode", *LISTED])
        rows.writerows([code, code[:12], code[:11] + code[12:]] for code in blocks)  # GEOIDs
    return path


def released(work: Path, key: int, count: int, areas: Path) -> Path:
    """A release with linear estimates of the tables for all areas, and its replicates."""
    run = work / f"dhc-{key}"
    chosen = censafe.configuration("topdown", "dhc-us", root="State")
    censafe.release(chosen, work / "data", run, test_key=key, tables=TABLES, areas=areas)
    censafe.replicate(run, count=count)
    return run


def compared(key: int, run: Path, truth: Path, level: str) -> Cells:
    """All cells of a level of one release that have any noise."""
    rows = pq.read_table(run / ESTIMATES, filters=[("geography", "=", level), ("sd", ">", EXACT)])
    cells = list(zip(rows["area"].to_pylist(), rows["variable"].to_pylist(), strict=True))
    linear = {name: rows[name].to_numpy() for name in ("estimate", "sd", "lo90", "hi90", "lo95", "hi95")}
    true = looked_up(censafe.tables(truth, TABLES, level).arrow, "value", cells)
    intervals = {
        level_of_confidence: censafe.tables(
            run, TABLES, level, intervals="replicates", confidence=level_of_confidence
        ).arrow
        for level_of_confidence in CONFIDENCES
    }
    (low, high), (low_95, high_95) = (
        [looked_up(intervals[level_of_confidence], end, cells) for end in ("low", "high")]
        for level_of_confidence in CONFIDENCES
    )
    value = looked_up(intervals["0.9"], "value", cells)
    cut = LinearIntervals(linear["lo90"], linear["hi90"], linear["estimate"], linear["sd"]).rounded(value)
    return pa.table(
        {
            "key": np.full(len(cells), key),
            "table": rows["table"].combine_chunks(),
            "level": [level] * len(cells),
            "true": true,
            "linear": (linear["lo90"] <= true) & (true <= linear["hi90"]),
            "cut": (cut[0] <= true) & (true <= cut[1]),
            "replicates": (low <= true) & (true <= high),
            "linear_95": (linear["lo95"] <= true) & (true <= linear["hi95"]),
            "replicates_95": (low_95 <= true) & (true <= high_95),
            "width_linear": linear["hi90"] - linear["lo90"],
            "width_cut": cut[1] - cut[0],
            "width_replicates": high - low,
            "error_linear": linear["estimate"] - true,
            "error_published": value - true,
        }
    )


def looked_up(table: pa.Table, column: str, cells: list[tuple[str, str]]) -> np.ndarray:
    """Values of areas and variables; 0 in areas without a row, in which nothing was counted."""
    known = dict(zip(keys(table), table[column].to_pylist(), strict=True))
    return np.array([known.get(one, 0) for one in cells], np.float64)


def rows_of(cells: Cells, column: str, values: Iterable[str]) -> Iterator[tuple[str, str, Cells]]:
    """Cells by a column and the size of the true number."""
    for value, (low, high) in product(values, SIZES):
        chosen = (pc.field(column) == value) & (pc.field("true") >= low) & (pc.field("true") < high)
        part = cells.filter(chosen)
        if len(part) >= LEAST:
            size = "0" if high == 1 else f"{low:,} and more" if high == 10**9 else f"{low:,} to {high - 1:,}"
            yield value, size, part


def sized_table(
    header: Sequence[str], rows: Iterable[tuple[str, str, Cells]], texts: Callable[[Cells], list[str]]
) -> list[str]:
    """Rows as a Markdown table."""
    return markdown(header, [(first, second, *texts(part)) for first, second, part in rows], words=2)


def coverage(part: Cells) -> list[str]:
    """Number of cells and shares, two of them with standard errors."""
    shares = [f"{one:.1f}" for one in numbers(part)[1:6]]
    for place, error in zip((0, 2), spread(part), strict=True):
        shares[place] += f" ± {error:.1f}"
    return [f"{len(part):,}", *shares]


def short(part: Cells) -> list[str]:
    """Number of cells; coverage and widths at 90%."""
    figures = numbers(part)
    return [
        f"{figures[0]:,}",
        f"{figures[1]:.1f}",
        f"{figures[3]:.1f}",
        *(sized(one) for one in figures[6:9]),
    ]


def sized(number: float) -> str:
    """A width or an error with as many digits as mean something; nothing where it is not known."""
    return "" if np.isnan(number) else f"{number:,.{0 if number >= 20 else 1}f}"


def write_csv(path: Path, cells: Cells) -> None:
    """All numbers by level, table and size."""
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("level", "table", "true number", *COLUMNS))
        for level in LEVELS:
            for table, size, part in rows_of(cells.filter(pc.field("level") == level), "table", TABLES):
                rows.writerow((level, table, size.replace(",", ""), *(f"{one:.6g}" for one in numbers(part))))


if __name__ == "__main__":
    main()
