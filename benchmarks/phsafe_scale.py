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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from censafe.population.synthetic.shipped import synthetic_states
from harness import TEST, censafe, manifest, parser_of, population, report, sets, table
from local_cluster import add_engine, engine_of, workers_text

COUNTRY = tuple(state.code for state in synthetic_states() if state.code != "72")


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    file_format = "csv" if arguments.csv else "parquet"
    persons, seed = arguments.persons, arguments.seed
    states = None if arguments.states is None else COUNTRY[: arguments.states]
    country = "" if states is None else f"-states-{len(states)}"
    settings = {"reader": "csv"} | ({} if states is None else {"state_filter": ",".join(states)})
    data = folder / f"persons-{persons}{country}-seed-{seed}-{file_format}"
    population(data, persons=persons, states=states, seed=seed, file_format=file_format, layout="phsafe")
    with TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "run"
        words = ["run", "phsafe", arguments.config, str(data), str(out), *sets(settings), *TEST]
        with engine_of(arguments.engine, Path(scratch)) as engine:
            run = censafe(*words, "--engine", engine.option)
        stages = manifest(out)["stages"]
    return {
        "persons": persons,
        **run.figures(3),
        "workers_gib": engine.workers_gib,
        "stages": stages,
    }


def text(measured: dict[str, Any]) -> list[str]:
    persons, seconds, peak = measured["persons"], measured["seconds"], measured["peak_gib"]
    last = f"{persons:,} persons, {persons / seconds:,.0f} persons/s, peak {peak:.2f} GiB"
    return [*table(measured["stages"], seconds), last + workers_text(measured["workers_gib"])]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--states", type=int, choices=range(1, len(COUNTRY) + 1), metavar="S")
    parser.add_argument("--csv", action="store_true", help="read CSV; the default is Parquet")
    parser.add_argument("--config", default="sdhc-us")
    add_engine(parser)
    report(parser.parse_args(), measure, text, rate=lambda measured: ("phsafe", measured["persons"]))


if __name__ == "__main__":
    main()
