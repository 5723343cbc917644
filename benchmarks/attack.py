"""Seconds of reconstructing blocks from their 18 tables, or with the 16 of their tracts, and of the variability of every block.

    python benchmarks/attack.py [--blocks N | --like VT|RI|TX] [--mode b|bt] [--workers W] [--json] [--data DIR] [--seed S]

Synthetic DHC records of a state the size of Vermont (of Texas for more than 10,000 blocks), or those that an earlier call left in DIR; N blocks drawn
from it, so that their sizes are those of a state, or all of it. `reconstruct_s` and `variability_s` are wall times of the two computations,
starting of processes included, reading and tabulation not; `..._processor_s` are the seconds of all processors in them, which other work on the machine changes less; `unknown` blocks ran out of time; `zero_share` of the populated blocks have one solution; with
`--mode bt`, `tracts_met` of the `tracts` have all lines of their tables met. Tracts then hold the blocks that were drawn.

Marks on two cores: 10,000 blocks reconstructed in 60 s, with variability in 5 minutes; a state like Vermont with variability in 15 minutes.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np

from censafe.attack.published import PublishedTables
from censafe.attack.reading import read_people
from censafe.attack.reconstruction.solve import Reconstruction, SolveChoices, reconstruct
from censafe.attack.reconstruction.tracts import reconstruct_tracts
from censafe.attack.tables import Workload, chosen_tables
from harness import STATES, parser_of, population, report

_VERMONT_BLOCKS = 10_000


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, float | int]:
    name = arguments.like or ("VT" if arguments.blocks <= _VERMONT_BLOCKS else "TX")
    code, persons = STATES[name]
    data = folder / f"attack-{name}-seed-{arguments.seed}"
    population(data, persons=persons, states=(code,), layout="dhc", seed=arguments.seed)
    people = read_people(data)
    if not arguments.like:
        drawn = np.random.default_rng(arguments.seed).choice(
            len(people.blocks), min(arguments.blocks, len(people.blocks)), replace=False
        )
        people = people.within(people.blocks[np.sort(drawn)])
    tables = PublishedTables.of(
        people, chosen_tables(("block", "tract") if arguments.mode == "bt" else ("block",))
    )
    seconds: list[float] = []
    processor: list[float] = []
    met: dict[str, int] = {}
    for variability in (False, True):
        started, before = time.perf_counter(), processor_seconds()
        reconstruction, met = solved(tables, SolveChoices(variability=variability, workers=arguments.workers))
        seconds.append(round(time.perf_counter() - started, 1))
        processor.append(round(processor_seconds() - before, 1))
    populated = reconstruction.population > 0
    return {
        "blocks": len(people.blocks),
        "persons": len(people),
        "reconstruct_s": seconds[0],
        "variability_s": seconds[1],
        "reconstruct_processor_s": processor[0],
        "variability_processor_s": processor[1],
        "unknown": int(np.isnan(reconstruction.variability).sum()),
        "zero_share": round(float((reconstruction.variability[populated] == 0).mean()), 4),
        "slowest_block_s": round(float(reconstruction.seconds.max()), 2),
    } | met


def processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def solved(tables: PublishedTables[Workload], choices: SolveChoices) -> tuple[Reconstruction, dict[str, int]]:
    if tables.lines is None:
        return reconstruct(tables.workload, tables.low, tables.high, choices), {}
    tracts = reconstruct_tracts(tables.lines, tables.low, tables.tract_values, tables.tract, choices, 0)
    return tracts.records, {"tracts": len(tracts.status), "tracts_met": int((tracts.status == "exact").sum())}


def main() -> None:
    parser = parser_of(__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--blocks", type=int, default=_VERMONT_BLOCKS)
    size.add_argument("--like", choices=sorted(STATES))
    parser.add_argument("--mode", choices=("b", "bt"), default="b")
    parser.add_argument("--workers", type=int, default=2)
    report(
        parser.parse_args(),
        measure,
        lambda measured: [", ".join(f"{name} {value}" for name, value in measured.items())],
    )


if __name__ == "__main__":
    main()
