"""How often intervals from replicates hold the true numbers: coverage and width by size of the number, level and table.

    .venv/bin/python docs/make_replicates.py --work FOLDER [--persons N] [--count R] [--write]

Synthetic records of one state are released by ``dhc-us`` with a test key, and without noise, which gives the true numbers; R replicates of the release
follow. For every table and level: of the cells with a true or published number above 0, how many intervals of 90% hold the true number, and how wide they are. What is
in FOLDER already is used. With `--write` the table stands in docs/replicates.md instead of standard output.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from measured import emit, markdown

import censafe

TABLES = ("P5", "P12", "P18", "H4", "P16", "P20")
LEVELS = ("county", "tract", "block_group")
SIZES = ((0, 10), (10, 100), (100, 1_000), (1_000, 10**9))
HUGE = "10000000000"
Compared: TypeAlias = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # of cells: published values, whether intervals hold the true ones, widths


def main() -> None:
    """Write the tables to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--persons", type=int, default=60_000)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    run, truth = released(options.work, options.persons, options.count)
    cells_of: dict[tuple[str, str], Compared] = {
        (table, level): compared(run, truth, table, level) for table in TABLES for level in LEVELS
    }
    header = [f"{low:,} and more" if high == 10**9 else f"{low:,} to {high - 1:,}" for low, high in SIZES]
    value, hit, width = (np.concatenate(parts) for parts in zip(*cells_of.values(), strict=True))
    cells_of["all", "all"] = value, hit, width
    rows = [(*key, *(summary(*cells, size) for size in SIZES)) for key, cells in cells_of.items()]
    lines = markdown(("table", "level", *header), rows, words=2)
    emit("replicates.md", "replicates-coverage", "docs/make_replicates.py", lines, write=options.write)


def released(work: Path, persons: int, count: int) -> tuple[Path, Path]:
    """The release with its replicates, and the same without noise."""
    truth, run = without_noise(work, persons), work / "dhc"
    censafe.release(censafe.configuration("topdown", "dhc-us", root="State"), work / "data", run, test_key=11)
    censafe.replicate(run, count=count)
    return run, truth


def without_noise(work: Path, persons: int) -> Path:
    """A release with hardly any noise, which is the true numbers, of the records in the folder `data`; both are made where they are not there."""
    data, truth = work / "data", work / "truth"
    if not data.exists():
        censafe.synthesize(data, persons=persons, states=["44"], layout="dhc")
    huge = {"rho.persons": HUGE, "rho.units": HUGE, "root": "State"}
    censafe.release(
        censafe.configuration("topdown", "pl94-us", {**huge, "reader": "records"}),
        data,
        work / "truth94",
        test_key=12,
    )
    censafe.release(
        censafe.configuration("topdown", "dhc-us", {**huge, "rho.households": HUGE}),
        data,
        truth,
        test_key=12,
        results={"redistricting": work / "truth94"},
    )
    return truth


def compared(run: Path, truth: Path, table: str, level: str) -> Compared:
    """Published values, whether their intervals hold the true ones, and widths, of cells that are not 0 in both."""
    published = censafe.tables(run, table, level, intervals="replicates").arrow
    exact = censafe.tables(truth, table, level).arrow
    true = dict(zip(keys(exact), exact["value"].to_pylist(), strict=True))
    right = np.array([true.get(key, 0) for key in keys(published)])
    value, low, high = (published[name].to_numpy() for name in ("value", "low", "high"))
    some = (value > 0) | (right > 0)
    return value[some], ((low <= right) & (right <= high))[some], (high - low)[some]


def keys(table: pa.Table) -> list[tuple[str, str]]:
    """Area and variable of every row."""
    return list(zip(table["GEOID"].to_pylist(), table["variable"].to_pylist(), strict=True))


def summary(value: np.ndarray, hit: np.ndarray, width: np.ndarray, size: tuple[int, int]) -> str:
    """Coverage and median width of the cells of a size."""
    inside = (value >= size[0]) & (value < size[1])
    if inside.sum() < 20:
        return ""
    return f"{100 * hit[inside].mean():.1f}% ({np.median(width[inside]):.0f})"


if __name__ == "__main__":
    main()
