"""Seconds and memory of a whole TopDown run on a file of someone's own records, by number of persons.

    python benchmarks/own_records.py [--persons N [N ...]] [--areas list|records] [--json] [--data DIR] [--seed S] [--write NAME]

Makes a CSV file of persons with five attributes in 20,000 lowest areas of four levels, or takes the one that an earlier call left in DIR, then
runs `censafe run topdown` on it with a configuration of its own in a process of its own: reading and checking, measuring, least squares,
rounding, writing. `seconds` is the wall time of that process, start of the interpreter included and synthesis not; `peak_gib` its largest
resident memory. The test key is used, so no ledger is used; the draws cost the same. A file of 50 million persons has 2 GiB.
--areas records takes the areas of the records for the list of areas, which reads the file once more; the default is a file with the list.
Marks on two cores: 50 million persons in 6 minutes and 6 GiB.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from harness import TEST, censafe, manifest, markdown, parser_of, population, report, topdown_table

REGIONS, DISTRICTS, AREAS = 20, 20, 50  # each of them in one area of the level above
ROWS = 1 << 20  # that are written at once
ATTRIBUTES = {
    "age": None,
    "sex": (("female", "male"), (0.51, 0.49)),
    "citizenship": (("own", "near", "far"), (0.88, 0.07, 0.05)),
    "education": (("none", "school", "trade", "degree"), (0.2, 0.3, 0.3, 0.2)),
    "status": (("single", "married", "widowed", "divorced"), (0.42, 0.42, 0.07, 0.09)),
}
CONFIGURATION = """
title = "Census of a benchmark"
levels = [
    { name = "Country", prefix = 0, code = "X" },
    { name = "Region" },
    { name = "District" },
    { name = "Area" },
]
[rho]
residents = "1"
[schemas.residents]
attributes = [
    { name = "age", levels = 6, labels = ["0 to 14", "15 to 24", "25 to 44", "45 to 64", "65 to 79", "80 and over"] },
    { name = "sex", levels = 2, labels = ["female", "male"] },
    { name = "citizenship", levels = 3, labels = ["own", "near", "far"] },
    { name = "education", levels = 4, labels = ["none", "school", "trade", "degree"] },
    { name = "status", levels = 4, labels = ["single", "married", "widowed", "divorced"] },
]
[histograms.residents]
schema = "residents"
[level_shares.residents]
Country = "1/4"
Region = "1/4"
District = "1/4"
Area = "1/4"
[query_shares.residents]
Country = { total = "1/4", "age * sex" = "1/2", detailed = "1/4" }
Region = { total = "1/4", "age * sex" = "1/2", detailed = "1/4" }
District = { total = "1/4", "age * sex" = "1/2", detailed = "1/4" }
Area = { total = "1/4", "age * sex" = "1/2", detailed = "1/4" }
[read]
persons = "persons.csv"
geography = ["region", "district", "area"]
areas = "AREAS"
[read.attributes.age]
bands = [0, 15, 25, 45, 65, 80]
"""


def write_country(folder: Path, *, persons: int, seed: int) -> None:
    """Write `persons.csv` and the list of all areas, `areas.csv`."""
    folder.mkdir(parents=True)
    area = np.arange(REGIONS * DISTRICTS * AREAS)
    codes = pa.table(
        {
            "region": pa.array([f"R{one // (DISTRICTS * AREAS):02d}" for one in area]),
            "district": pa.array([f"D{one // AREAS:03d}" for one in area]),
            "area": pa.array([f"A{one:05d}" for one in area]),
        }
    )
    pyarrow.csv.write_csv(codes, folder / "areas.csv")
    generator = np.random.default_rng(seed)
    weights = generator.gamma(2.0, size=len(area))  # of the areas, which differ in size
    shares = np.cumsum(weights / weights.sum())
    schema = _drawn(codes, shares, generator, 0).schema
    plain = pyarrow.csv.WriteOptions(quoting_style="none")
    with pyarrow.csv.CSVWriter(folder / "persons.csv", schema, write_options=plain) as writer:
        for first in range(0, persons, ROWS):
            writer.write_table(_drawn(codes, shares, generator, min(ROWS, persons - first)))


def _drawn(codes: pa.Table, shares: np.ndarray, generator: np.random.Generator, rows: int) -> pa.Table:
    """Some persons."""
    area = np.minimum(np.searchsorted(shares, generator.random(rows)), len(shares) - 1)
    columns = {name: codes[name].take(pa.array(area)) for name in codes.column_names}
    for name, levels in ATTRIBUTES.items():
        if levels is None:
            columns[name] = pa.array(generator.triangular(0, 30, 100, rows).astype(np.int8))
        else:
            labels, weights = levels
            columns[name] = pa.array(labels).take(pa.array(generator.choice(len(labels), rows, p=weights)))
    return pa.table(columns)


def measure(folder: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [row(folder, persons, arguments) for persons in arguments.persons]


def row(folder: Path, persons: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds and memory of one size, whose file is removed where nothing is to be kept."""
    data = population(
        folder / f"own-{persons}-seed-{arguments.seed}", write_country, persons=persons, seed=arguments.seed
    )
    records = data / "persons.csv"
    size = records.stat().st_size / 2**30
    with TemporaryDirectory(dir=folder) as scratch:
        config, out = Path(scratch) / "own.toml", Path(scratch) / "run"
        areas = "areas.csv" if arguments.areas == "list" else "records"
        config.write_text(CONFIGURATION.replace("AREAS", areas), encoding="utf-8")
        run = censafe("run", "topdown", str(config), str(data), str(out), *TEST)
        stages = manifest(out)["stages"]
    if arguments.data is None:
        records.unlink()
    return {"persons": persons, "gib_of_file": size, **run.figures(3), "stages": stages}


def text(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in rows:
        lines += topdown_table(one["stages"], one["seconds"])
        lines.append("{persons:,} persons, {cpu_seconds:.1f} CPU s, peak {peak_gib:.2f} GiB".format(**one))
    return lines


def page(rows: list[dict[str, Any]]) -> list[str]:
    header = ("persons", "file, GiB", "seconds", "processor s", "read and validate, s", "peak, GiB")
    lines = (
        (
            f"{one['persons'] // 1_000_000} million",
            f"{one['gib_of_file']:.2f}",
            f"{one['seconds']:.1f}",
            f"{one['cpu_seconds']:.1f}",
            f"{one['stages']['read and validate']:.1f}",
            f"{one['peak_gib']:.2f}",
        )
        for one in rows
    )
    return markdown(header, lines)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, nargs="+", default=[1_000_000], metavar="N")
    parser.add_argument(
        "--areas", choices=("list", "records"), default="list", help="where the areas are listed"
    )
    report(parser.parse_args(), measure, text, page=page)


if __name__ == "__main__":
    main()
