"""Seconds and memory of a whole PHSafe run, by number of persons.

    python benchmarks/phsafe_scale.py [--persons N] [--states S] [--csv] [--json] [--data DIR] [--seed S] [--config NAME] [--engine E]

Makes a synthetic population of the nation, or takes the one that an earlier call left in DIR, then runs
`censafe run phsafe` on it in a process of its own: reading, full validation, counting, measuring, publishing.
`seconds` is the wall time of that process, start of the interpreter included and synthesis not; `peak_gib` its
largest resident memory. The test key is used, so no ledger is used; the draws cost the same.
--states takes the first S states by code for the country, with the same number of persons: 1,400,000,000 persons in 36 states are a country as
large as India. The run is told to count these states.
Marks on two cores: 33 million persons in 60 s and 6 GiB; time per person not growing with size.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from censafe.population.synthetic.shipped import synthetic_states
from censafe.population.synthetic.writing import FileFormat
from child import censafe, parser_of, population, report, stages_of, table
from local_cluster import engine_of

COUNTRY = tuple(state.code for state in synthetic_states() if state.code != "72")
SETTINGS = ("--set", "reader=csv")
TEST = ("--test-key", "1", "--quiet", "--engine")


@dataclass(frozen=True)
class Measured:
    persons: int
    seconds: float
    peak_gib: float
    workers_gib: float | None
    stages: dict[str, float]


def measure(folder: Path, arguments: argparse.Namespace) -> Measured:
    file_format: FileFormat = "csv" if arguments.csv else "parquet"
    persons, seed = arguments.persons, arguments.seed
    states = None if arguments.states is None else COUNTRY[: arguments.states]
    country = "" if states is None else f"-states-{len(states)}"
    settings = () if states is None else ("--set", f"state_filter={','.join(states)}")
    data = folder / f"persons-{persons}{country}-seed-{seed}-{file_format}"
    population(data, persons=persons, states=states, seed=seed, file_format=file_format, layout="phsafe")
    with TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "run"
        with engine_of(arguments.engine, Path(scratch)) as engine:
            seconds, peak = censafe(
                [
                    "run",
                    "phsafe",
                    arguments.config,
                    str(data),
                    str(out),
                    *SETTINGS,
                    *settings,
                    *TEST,
                    engine.option,
                ]
            )
        stages = stages_of(out)
    return Measured(persons, round(seconds, 3), round(peak, 3), engine.workers_gib, stages)


def text(measured: Measured) -> str:
    rate = measured.persons / measured.seconds
    last = f"{measured.persons:,} persons, {rate:,.0f} persons/s, peak {measured.peak_gib:.2f} GiB"
    workers = "" if measured.workers_gib is None else f", workers {measured.workers_gib:.2f} GiB each at most"
    return "\n".join([*table(measured.stages, measured.seconds), last + workers])


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--states", type=int, choices=range(1, len(COUNTRY) + 1), metavar="S")
    parser.add_argument("--csv", action="store_true", help="read CSV; the default is Parquet")
    parser.add_argument("--config", default="sdhc-us")
    parser.add_argument(
        "--engine", default="duckdb", help="duckdb, sail, spark=sc://HOST:PORT or local-cluster"
    )
    return parser.parse_args()


def stored(measured: Measured) -> tuple[str, dict[str, float]]:
    return "phsafe", {"size": measured.persons, "seconds": measured.seconds, "gib": measured.peak_gib}


def main() -> None:
    report(parse(), measure, text, stored)


if __name__ == "__main__":
    main()
