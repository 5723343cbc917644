"""Seconds of the estimate from all answers below every geounit, beside dense algebra.

    python benchmarks/full_information.py [--nation FRACTION] [--data DIR] [--seed S] [--workers N] [--json]

Makes the block histograms of a share of a synthetic nation (all states and counties, that share of persons, tracts and blocks), or
takes those that an earlier call left in DIR; measures all of its answers with the production budgets and a test key; and estimates
it with `information = lower`, from the widest level down. `seconds_linear` is the CPU time of the linear estimates of all
geounits with their covariances, `seconds_total` that of these and of all least squares, rounding and checks: everything after the answers
are there. `dense_ms` is what one geounit costs by dense algebra on its 2,016 cells (the inverse of its own curvature and
that of the sum of both precisions), in CPU time measured in the same process, `linear_ms` what it cost here, and `times` their
ratio. `nation_minutes` is `linear_ms` times the number of geounits of the nation. `gap_max` is the largest duality gap of a certified
solve, in half chi-square units; `violations` the number of cells of any level that are not the sum of the blocks.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from censafe.geography.spine_sums import sum_histograms
from censafe.population.synthetic.histograms import synthesize_histograms
from censafe.products.observer import SilentObserver
from censafe.products.options import ReadOptions
from censafe.products.topdown.config import load_config
from censafe.products.topdown.intake import Intake
from censafe.products.topdown.rehearsal import rehearse
from child import in_folder, parser_of, table

PERSONS = 331_449_281
GEOUNITS = 8_132_968 + 239_780 + 84_414 + 3_143 + 51 + 1
SETTINGS = {"measure": "persons", "information": "lower"}


@dataclass(frozen=True)
class Measured:
    persons: int
    geounits: int
    seconds_linear: float
    seconds_total: float
    linear_ms: float
    dense_ms: float
    times: float
    nation_minutes: float
    peak_gib: float
    gap_max: float
    violations: int
    stages: dict[str, float]


class CpuObserver(SilentObserver):
    """Keeps the CPU seconds of stages, which other work on the machine hardly changes."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.stages[name] = self.stages.get(name, 0.0) + time.process_time() - started


def dense_ms(cells: int, repeats: int = 2) -> float:
    """CPU milliseconds of the two inverses of one geounit."""
    rng = np.random.default_rng(1)
    own = rng.random((cells, cells))
    own = own @ own.T + cells * np.eye(cells)
    started = time.process_time()
    for _ in range(repeats):
        below = np.linalg.inv(own)
        np.linalg.inv(own + below) @ own[0]
    return (time.process_time() - started) / repeats * 1e3


def measure(folder: Path, arguments: argparse.Namespace) -> Measured:
    persons = round(arguments.nation * PERSONS)
    data = folder / f"nation-{persons}-seed-{arguments.seed}"
    if not data.exists():
        synthesize_histograms(data, persons=persons, states=None, seed=arguments.seed, layout="pl94")
    config = load_config("pl94-us", SETTINGS)
    with Intake(data, config, ReadOptions()) as intake:
        loaded = intake.load()
    observer = CpuObserver()
    found = rehearse(config, loaded, arguments.seed, observer, workers=arguments.workers)
    stages = {name: seconds for name, seconds in observer.stages.items() if name.startswith("estimate")}
    linear, total = stages["estimate persons from below"], sum(stages.values())
    levels = found.levels["persons"]
    geounits = sum(level.nodes for level in levels)
    summed = sum_histograms(loaded.facts.run.standard, levels[-1], 2016)
    wrong = sum(
        int((one.count != other.count).sum()) if np.array_equal(one.cell, other.cell) else len(other.cell)
        for one, other in zip(levels, summed, strict=True)
    )
    own, dense = linear / geounits * 1e3, dense_ms(2016)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    gap = max(report["gap_most"] for report in found.reports["persons"])
    return Measured(
        persons, geounits, round(linear, 3), round(total, 3), round(own, 4), round(dense, 1), round(dense / own, 1),
        round(own * GEOUNITS / 6e4, 2), round(kib / 2**20, 3), gap, wrong, stages,
    )  # fmt: skip


def text(measured: Measured) -> str:
    last = (
        f"{measured.persons:,} persons, {measured.geounits:,} geounits; linear {measured.linear_ms} ms a geounit, dense {measured.dense_ms} ms, "
        f"{measured.times:,} times; nation {measured.nation_minutes} minutes; peak {measured.peak_gib} GiB, largest gap "
        f"{measured.gap_max:.2g}, violations {measured.violations}"
    )
    return "\n".join([*table(measured.stages, measured.seconds_total), last])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--nation", type=float, default=0.005, metavar="FRACTION")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    measured = in_folder(arguments.data, partial(measure, arguments=arguments))
    print(json.dumps(asdict(measured)) if arguments.json else text(measured))


if __name__ == "__main__":
    main()
