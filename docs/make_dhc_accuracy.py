"""Errors of the DHC's measured queries at State and County, beside the noise of their own measurements.

    .venv/bin/python docs/make_dhc_accuracy.py [--persons N] [--runs R] [--outer]

Synthetic records of one state with as many persons as Vermont are estimated R times with test keys, from the state to the blocks, twice:
held to redistricting data without errors, so that the errors are those of the DHC's own estimation, and held to
redistricting data with the errors of the production. For every query of at most 5,000 answers the table has the root mean square of the errors of all
its answers, divided by the standard deviation of the noise of its own measurement there; the mark is 1.1. The
last column is the slope of the logarithm of a county's error, without errors of the redistricting data, on the logarithm of its number of
inhabited blocks; where facilities and counts near 0 do not bound the errors of small counties, the mark is 0.1. ``--outer`` fits
all queries of an outer pass at once, as the production of 2020 did.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from censafe import synthesize
from support.dhc_accuracy import EXACT, QueryErrors, joined, query_errors, slope


def main() -> None:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=643_077)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--outer", action="store_true")
    given = parser.parse_args()
    settings = {"passes": "outer"} if given.outer else {}
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        synthesize(data, persons=given.persons, states=["50"], layout="dhc")
        free = measured(data, given.runs, EXACT, settings)
        held = measured(data, given.runs, {}, settings)
    lines = ["| histogram | level | query | answers | own estimation | with redistricting data | slope |"]
    lines.append("|---|---|---|---:|---:|---:|---:|")
    for key, one in free.items():
        steep = f"{slope(free, 'County', (key[2],)):.2f}" if key[1] == "County" else ""
        errors = f"{one.ratio:.2f} | {held[key].ratio:.2f}"
        lines.append(f"| {' | '.join(key)} | {one.errors.shape[1]:,} | {errors} | {steep} |")
    sys.stdout.write("\n".join(lines) + "\n")


def measured(
    data: Path, runs: int, redistricting: dict[str, str], settings: dict[str, str]
) -> dict[tuple[str, str, str], QueryErrors]:
    """Errors of several runs."""
    return joined(
        [query_errors(data, seed, redistricting=redistricting, settings=settings) for seed in range(runs)]
    )


if __name__ == "__main__":
    main()
