"""Seconds and memory of a whole SafeTab run, by number of records and of areas.

    python benchmarks/safetab_scale.py --product safetab-p|safetab-h [--records N] [--areas FRACTION] [--json]
        [--data DIR] [--seed S] [--engine E]

Makes a synthetic population of the nation, or takes the one that an earlier call left in DIR, then runs `censafe run`
with the shipped configuration (every iteration of the Detailed DHC-A or DHC-B, production budgets) on it in a process of
its own: reading, full validation, counting, measuring, publishing. `seconds` is the wall time of that process, start of
the interpreter included and synthesis not; `peak_gib` its largest resident memory. The test key is used, so no ledger is
touched; the draws cost the same.

N is the number of persons for safetab-p, of households (within a few percent) for safetab-h. FRACTION 1 spreads them over
all areas of the nation, about 84,000 tracts and 32,000 places; counties are always all there. safetab-h reads its totals
of population groups from a run of safetab-p on the same population, which is not timed.
Marks on two cores: safetab-p 33 million persons with a tenth of the areas in 120 s, safetab-h 13 million households in
60 s, 8 GiB; linear in records and in areas.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from censafe.population.synthetic.plan import MOST_PERSONS, make_plan
from harness import NATION, TEST, Child, censafe, manifest, parser_of, population, report, table

PERSONS_A_HOUSEHOLD = 2.6  # of the synthetic population, group quarters included
CONFIGS = {"safetab-p": "ddhca", "safetab-h": "ddhcb"}
RECORDS = {"safetab-p": "person-records", "safetab-h": "household-records"}
SETTINGS = ("--set", "reader=csv", "--set", "run_pr=false", *TEST, "--engine")


def areas(persons: int, areas_of: int, seed: int) -> tuple[int, int]:
    """Number of tracts and of places."""
    plan = make_plan(persons, None, seed, areas_of=areas_of)
    place = plan.tracts.state.astype(np.int64) * 100_000 + plan.places.place
    return len(plan.tracts.persons), len(np.unique(place[plan.places.place != 99_999]))


def records_in(data: Path, product: str) -> int:
    """Number of records of a product, from the footers of its Parquet files."""
    files = [*data.glob(f"{RECORDS[product]}.parquet"), *data.glob(f"{RECORDS[product]}/*.parquet")]
    return sum(pq.ParquetFile(file).metadata.num_rows for file in files)


def release(product: str, data: Path, out: Path, engine: str, *more: str) -> Child:
    """One run."""
    return censafe("run", product, CONFIGS[product], str(data), str(out), *SETTINGS, engine, *more)


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    product, seed = arguments.product, arguments.seed
    households = product == "safetab-h"
    persons = round(arguments.records * PERSONS_A_HOUSEHOLD) if households else arguments.records
    areas_of = max(1, round(arguments.areas * NATION))
    if persons > MOST_PERSONS:
        raise SystemExit(f"--records: at most {MOST_PERSONS:,} persons")
    data = folder / f"safetab-{persons}-of-{areas_of}-seed-{seed}"
    population(data, persons=persons, seed=seed, file_format="parquet", layout="safetab", areas_of=areas_of)
    with TemporaryDirectory(dir=folder) as scratch:
        totals: tuple[str, ...] = ()
        if households:
            release("safetab-p", data, Path(scratch) / "totals", "duckdb")
            totals = ("--t1", str(Path(scratch) / "totals"))
        out = Path(scratch) / "run"
        run = release(product, data, out, arguments.engine, *totals)
        stages = manifest(out)["stages"]
    tracts, places = areas(persons, areas_of, seed)
    return {
        "product": product,
        "persons": persons,
        "records": records_in(data, product),
        "tracts": tracts,
        "places": places,
        **run.figures(3),
        "stages": stages,
    }


def text(measured: dict[str, Any]) -> list[str]:
    last = (
        "{product}: {records:,} records, {tracts:,} tracts, {places:,} places; {rate:,.0f} records/s, peak {peak_gib:.2f} GiB"
    ).format(**measured, rate=measured["records"] / measured["seconds"])
    return [*table(measured["stages"], measured["seconds"]), last]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--product", choices=sorted(CONFIGS), required=True)
    parser.add_argument("--records", type=int, default=1_000_000, help="persons, or households for safetab-h")
    parser.add_argument("--areas", type=float, default=0.1, help="fraction of the nation's tracts and places")
    parser.add_argument("--engine", default="duckdb", help="duckdb, sail or spark=sc://HOST:PORT")
    report(
        parser.parse_args(), measure, text, rate=lambda measured: (measured["product"], measured["records"])
    )


if __name__ == "__main__":
    main()
