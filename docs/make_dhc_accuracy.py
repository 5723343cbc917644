"""Errors of the DHC's measured queries at State and County, beside the noise of their own measurements.

    .venv/bin/python docs/make_dhc_accuracy.py [--persons N] [--runs R] [--outer] [--counties] [--write NAME]

Synthetic records of one state with as many persons as Vermont are estimated R times with test keys, from the state to the blocks, three times:
held to redistricting data without errors, so that the errors are those of the DHC's own estimation; held to redistricting data with
the errors of the production; and held to the same data where the DHC's own measurements have no errors, so that the errors are those that
the equalities hand on. For every query of at most 5,000 answers the table has the root mean square of the errors of all its answers that may
be above 0, divided by the standard deviation of the noise of its own measurement there; the mark is 1.1. "At least" is what every estimate that repeats
the redistricting data errs by, whatever is measured, and "added" the difference of the second and the third estimate. The last column is the
slope of the logarithm of a county's error, without errors of the redistricting data, on the logarithm of its number of inhabited blocks.
``--outer`` fits all queries of an outer pass at once, as the production of 2020 did.

``--counties`` writes another table, without errors of the redistricting data: the slope of a county's error on what differs between the counties of three
states, in each of which that is one thing alone (`tests/support/dhc_counties.py`), with its standard error over the runs; and the same after division
by the error of the answers' own noise if answers below 0 were set to 0, and those that cannot be above 0, too.

With ``--write`` a table stands in docs/dhc.md instead: ``dhc-errors`` with the arguments as they are, ``dhc-handed-on`` (four of its columns) with
``--persons 100000``, and ``dhc-slopes`` with ``--counties --runs 3``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measured import emit, markdown

from censafe import synthesize
from support.dhc_accuracy import (
    EXACT,
    EXACT_OWN,
    Found,
    joined,
    mean_slope,
    query_errors,
    slope,
    slope_by_size,
)
from support.dhc_counties import STATES, write_state

SCRIPT = "docs/make_dhc_accuracy.py"


def main() -> None:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=643_077)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--outer", action="store_true")
    parser.add_argument("--counties", action="store_true")
    parser.add_argument("--write", choices=["dhc-errors", "dhc-handed-on", "dhc-slopes"])
    options = parser.parse_args()
    if options.counties:
        lines = county_table(options.runs)
    else:
        settings = {"passes": "outer"} if options.outer else {}
        with TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            synthesize(data, persons=options.persons, states=["50"], layout="dhc")
            free = measured(data, options.runs, EXACT, settings)
            constrained = measured(data, options.runs, {}, settings)
            exact = measured(data, options.runs, {}, settings | EXACT_OWN)
        lines = table(free, constrained, exact, short=options.write == "dhc-handed-on")
    emit("dhc.md", options.write, SCRIPT, lines, write=options.write is not None)


def county_table(runs: int) -> list[str]:
    """The lines of the table of slopes, from all its runs: by state the sizes of its counties, and the errors."""
    states = {}
    for name in STATES:
        with TemporaryDirectory() as folder:
            size = write_state(Path(folder), name)
            states[name] = size, measured(Path(folder) / "data", runs, EXACT, {"bypass": "false"})
    columns = [
        (name, divided) for name in states for divided in (False, True)[: 1 if name == "blocks" else 2]
    ]
    words = (f"{name}, beside cut noise" if divided else name for name, divided in columns)
    rows = []
    for key in next(iter(states.values()))[1]:
        if key[1] == "County":
            slopes = (
                slope_by_size(states[name][1][key], states[name][0], runs, beside=divided)
                for name, divided in columns
            )
            rows.append((key[0], key[2], *(f"{steep:.2f} ± {error:.2f}" for steep, error in slopes)))
    means = [
        "" if divided else f"{mean_slope(states[name][1], states[name][0], runs):.2f}"
        for name, divided in columns
    ]
    return [*markdown(("histogram", "query", *words), rows, words=2), f"| mean | | {' | '.join(means)} |"]


def table(free: Found, constrained: Found, exact: Found, *, short: bool) -> list[str]:
    """The lines of the table, from the three estimates; four of its columns alone where it is short."""
    header: tuple[str, ...] = ("histogram", "level", "query", "answers", "own estimation", "with redistricting data", "handed on", "at least", "added", "slope")  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for key, alone in free.items():
        steep = f"{slope(free, 'County', (key[2],)):.2f}" if key[1] == "County" else ""
        both, own = constrained[key], exact[key]
        parts = (alone.ratio, both.ratio, both.handed_on(own), both.unavoidable, both.added(own))
        rows.append((*key, f"{alone.errors.shape[1]:,}", *(f"{part:.2f}" for part in parts), steep))
    if short:
        header, rows = header[:3] + header[5:9], [row[:3] + row[5:9] for row in rows]
    return markdown(header, rows, words=3)


def measured(data: Path, runs: int, redistricting: dict[str, str], settings: dict[str, str]) -> Found:
    """Errors of several runs."""
    return joined(
        [query_errors(data, seed, redistricting=redistricting, settings=settings) for seed in range(runs)]
    )


if __name__ == "__main__":
    main()
