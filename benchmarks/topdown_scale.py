"""Seconds and memory of a whole TopDown run: a state, a share of the nation, or the nation.

    python benchmarks/topdown_scale.py --config pl94-us|e2e-1940 --nation FRACTION | --like VT|TX [--json]
        [--data DIR] [--seed S] [--workers N] [--engine E]

Makes the block histograms of a synthetic population straight, or takes those that an earlier call left in DIR, then runs
`censafe run topdown` on them in a process of its own, with the production budgets, noise drawn where the estimate touches
it, and the test key: reading, checking, measuring, least squares, rounding, writing, level by level. `seconds` is the wall
time of that process, start of the interpreter included and synthesis not; `cpu_seconds` what its threads used, which other
work on the machine hardly changes (not those of a server elsewhere or of local_cluster.py); `peak_gib` its largest resident memory;
`gap_max` the largest duality gap of a certified solve, in half chi-square units; `violations` the number of cells of any
published level that are not the sum of the published blocks, counted after the run from its files.

--nation 1 has 51 states, 3,143 counties, about 84,000 tracts, 250,000 block groups and 8.1 million blocks, and 331 million
persons (1940: 132 million in about 135,000 districts). A fraction of it has all states and counties and that share of
persons, tracts and blocks, so that the root and the step to the states are those of the nation. --like is one state
alone, with the state as root.
Marks on two cores: Vermont 20 s, Texas 120 s, nation 20 minutes and 16 GiB, a twentieth of it 90 s, 1940 3 minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.geography.geocodes import pack_geocodes
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import E2E_1940, PL94_US, build_spine
from censafe.population.synthetic.blocks import HistogramLayoutName, synthesize_histograms
from censafe.publication.microdata.histograms import read_histograms
from harness import (
    NATION,
    TEST,
    add_size,
    censafe,
    levels_of,
    manifest,
    parser_of,
    population,
    report,
    sets,
    size_of,
    topdown_table,
)
from local_cluster import add_engine, engine_of, workers_text

PERSONS = {"pl94-us": NATION, "e2e-1940": 132_404_766}
LAYOUTS: dict[str, HistogramLayoutName] = {"pl94-us": "pl94", "e2e-1940": "e2e"}
RULES = {"pl94-us": PL94_US, "e2e-1940": E2E_1940}
CELLS = {"persons": {"pl94-us": 2016, "e2e-1940": 192}, "units": {"pl94-us": 2}}
SETTINGS = ("--set", "noisy_measurements=lazy", "--set", "spine=standard", *TEST)


def files_of(data: Path, name: str) -> list[Path]:
    return [*data.glob(f"{name}.parquet"), *sorted(data.glob(f"{name}/*.parquet"))]


def geocodes(data: Path, config: str) -> NDArray[np.int64]:
    """Codes of all blocks, from the file of units."""
    digits = RULES[config][-1].digits
    codes = []
    for path in files_of(data, "units"):
        for batch in pq.ParquetFile(path).iter_batches(1 << 20, columns=["geocode"]):
            texts = np.array(batch.column(0).cast("string").to_pylist(), np.str_)
            codes.append(pack_geocodes(texts, digits))
    return np.concatenate(codes)


def violations(out: Path, data: Path, config: str) -> tuple[int, int]:
    """Number of blocks, and of cells of all levels that are not the sums of the blocks."""
    spine = build_spine(geocodes(data, config), RULES[config])
    wrong = 0
    for name, cells in CELLS.items():
        levels = {level.name: level for level in spine.levels}
        path = out / "histograms" / f"{name}_{spine.leaf.name}.parquet"
        if not path.exists():
            continue
        blocks = read_histograms(path, spine.leaf.geounits)
        for level, summed in zip(spine.levels, sum_histograms(spine, blocks, cells[config]), strict=True):
            path = out / "histograms" / f"{name}_{level.name}.parquet"
            if not path.exists():  # above the root of a state's run
                continue
            published = read_histograms(path, levels[level.name].geounits)
            same = np.array_equal(published.node_ptr, summed.node_ptr) and np.array_equal(
                published.cell, summed.cell
            )
            wrong += int((published.count != summed.count).sum()) if same else len(summed.cell)
    return spine.leaf.nodes, wrong


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    config, seed = arguments.config, arguments.seed
    persons, states, root = size_of(arguments, PERSONS[config])
    data = folder / f"{config}-{persons}-{arguments.like or 'nation'}-seed-{seed}"
    layout = LAYOUTS[config]
    population(data, synthesize_histograms, persons=persons, states=states, seed=seed, layout=layout)
    workers = () if arguments.workers is None else ("--workers", str(arguments.workers))
    with TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "run"
        words = ["run", "topdown", config, str(data), str(out), *sets(root), *SETTINGS, *workers]
        with engine_of(arguments.engine, Path(scratch)) as engine:
            run = censafe(*words, "--engine", engine.option)
        levels, stages = levels_of(out), manifest(out)["stages"]
        blocks, wrong = violations(out, data, config)
    return {
        "config": config,
        "persons": persons,
        "blocks": blocks,
        "workers": arguments.workers,
        **run.figures(3),
        "engine": arguments.engine,
        "workers_gib": engine.workers_gib,
        "stages": stages,
        "levels": levels,
        "gap_max": max(level["gap_most"] for own in levels.values() for level in own),
        "violations": wrong,
    }


def text(measured: dict[str, Any]) -> list[str]:
    last = (
        "{persons:,} persons, {blocks:,} blocks, {cpu_seconds:.1f} CPU s, peak {peak_gib:.2f} GiB, "
        "largest gap {gap_max:.2g}, violations {violations}"
    ).format(**measured)
    workers = workers_text(measured["workers_gib"])
    return [*topdown_table(measured["stages"], measured["seconds"]), last + workers]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--config", choices=sorted(PERSONS), default="pl94-us")
    add_size(parser)
    parser.add_argument("--workers", type=int)
    add_engine(parser)
    report(parser.parse_args(), measure, text, rate=lambda measured: ("topdown", measured["blocks"]))


if __name__ == "__main__":
    main()
