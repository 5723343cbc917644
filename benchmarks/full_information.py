"""Seconds and memory of the estimates from public noisy measurement files, with all answers below every geounit.

    python benchmarks/full_information.py [--nation FRACTION | --like VT|TX] [--data DIR] [--seed S] [--workers N]
        [--information lower|level] [--keep] [--json]

Makes the noisy measurement files of a share of a synthetic nation (all states and counties, that share of persons, tracts and
blocks; American Indian halves, optimized block groups, bypassed geounits, production budgets) with a test key, or takes those that an
earlier call with --keep left in DIR; and runs what `censafe estimate topdown pl94-us OUT --measurements DIR` runs, persons only, in a
process of its own: hashing and reading, linear estimates, least squares, rounding, checks, microdata, tables. All
seconds are CPU seconds of that process, all threads together, which other work on the machine hardly changes.
`seconds_linear` is the linear estimates of all geounits with their covariances, `seconds_total` everything after reading,
`seconds_read` hashing and reading, `wall_seconds` the clock. `dense_ms` is what one geounit costs by dense algebra on its 2,016 cells (the
inverse of its own curvature and that of the sum of both precisions) in the same run, `linear_ms` what it cost here, and `times`
their ratio. `nation_linear_minutes` and `nation_total_minutes` are the same per geounit times the geounits of the nation, the levels
down to the counties as they are: an extrapolation where the share is not 1. `gap_max` is the largest duality gap of a certified solve, in
half chi-square units; `uncertified` the parents without a certificate; `violations` the number of cells of any level that are
not the sum of the blocks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from censafe.model.observer import SilentObserver
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.products.run.options import EstimateOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.public.estimate import estimate_files
from harness import Child, add_size, gib, levels_of, parser_of, population, report, size_of, table
from stored_nation import store
from topdown_scale import violations

CONFIG = "pl94-us"
GEOUNITS = 8_132_968 + 239_780 + 84_414 + 3_143 + 51 + 1
WIDE = ("US", "State", "County")  # levels that a share of the nation has in full


class CpuObserver(SilentObserver):
    """Keeps the CPU seconds of stages."""

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


def estimate(
    files: Path, out: Path, settings: Mapping[str, str], workers: int
) -> tuple[dict[str, float], Child]:
    """What the child process does: CPU seconds of its stages, and what it took."""
    observer, started = CpuObserver(), time.perf_counter()
    options = EstimateOptions(
        confidence=Fraction(9, 10), settings=settings, observer=observer, workers=workers
    )
    estimate_files(CONFIG, files / "measurements", out, None, options)
    # of this process alone: on Linux the usual figure is never below that of the process that started it, which made the files
    peak, status = gib(resource.getrusage(resource.RUSAGE_SELF)), Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        peak = int(lines["VmHWM"].split()[0]) / 2**20
    return observer.stages, Child("", time.perf_counter() - started, time.process_time(), peak)


def measurement_files(
    folder: Path, arguments: argparse.Namespace, settings: Mapping[str, str]
) -> tuple[Path, Path]:
    """Histograms and measurement files in the folder, made where they are not there."""
    persons, states, _ = size_of(arguments)
    name = f"nation-{arguments.like or ''}{persons}-seed-{arguments.seed}"
    data, files = folder / name, folder / f"{name}-files"
    population(
        data, synthesize_histograms, persons=persons, states=states, seed=arguments.seed, layout="pl94"
    )
    if not files.exists():
        started = time.process_time()
        store(data, files, load_config(CONFIG, settings), arguments.seed)
        print(f"files: {time.process_time() - started:.0f} CPU s", file=sys.stderr)
    return data, files


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    persons, _, root = size_of(arguments)
    settings = {"measure": "persons", **root}
    data, files = measurement_files(folder, arguments, settings)
    out = folder / "estimates"
    shutil.rmtree(out, ignore_errors=True)
    chosen = {**settings, "information": arguments.information}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        stages, child = pool.apply(estimate, (files, out, chosen, arguments.workers))
    levels = levels_of(out)["persons"]
    wrong = violations(out, data, CONFIG)[1]
    shutil.rmtree(out)
    size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file())
    if not arguments.keep:
        shutil.rmtree(files)
    nodes = sum(level["geounits"] for level in levels)
    wide = sum(level["geounits"] for level in levels if level["level"] in WIDE)
    linear = stages.get("estimate persons from below", 0.0)
    read = sum(value for name, value in stages.items() if name.startswith("read") or name == "hash inputs")
    total = child.cpu_seconds - read
    fixed = sum(stages.get(f"estimate persons_{name}", 0.0) for name in WIDE)
    share = (GEOUNITS - wide) / max(1, nodes - wide)
    own, dense = linear / nodes * 1e3, dense_ms(2016)
    return {
        "persons": persons,
        "geounits": nodes,
        "file_gib": round(size / 2**30, 3),
        "seconds_linear": round(linear, 3),
        "seconds_total": round(total, 3),
        "seconds_read": round(read, 3),
        "wall_seconds": round(child.seconds, 1),
        "linear_ms": round(own, 4),
        "dense_ms": round(dense, 1),
        "times": round(dense / own, 1) if own else 0.0,
        "nation_linear_minutes": round(own * GEOUNITS / 6e4, 2),
        "nation_total_minutes": round((fixed + (total - fixed) * share) / 60, 2),
        "peak_gib": round(child.peak_gib, 3),
        "gap_max": max(level["gap_most"] for level in levels),
        "uncertified": sum(len(level["approximate"]) for level in levels),
        "violations": wrong,
        "stages": {name: round(value, 3) for name, value in stages.items()},
    }


def text(measured: dict[str, Any]) -> list[str]:
    last = (
        "{persons:,} persons, {geounits:,} geounits, {file_gib} GiB of files; linear {linear_ms} ms a geounit, "
        "dense {dense_ms} ms, {times:,} times; nation: linear {nation_linear_minutes} and in all "
        "{nation_total_minutes} core-minutes after reading; peak {peak_gib} GiB, wall {wall_seconds} s, "
        "largest gap {gap_max:.2g}, without certificate {uncertified}, violations {violations}"
    ).format(**measured)
    return [*table(measured["stages"], measured["seconds_total"] + measured["seconds_read"]), last]


def main() -> None:
    parser = parser_of(__doc__)
    add_size(parser, required=False, default=0.005)
    parser.add_argument("--information", choices=("lower", "level"), default="lower")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="leave the measurement files in --data")
    report(parser.parse_args(), measure, text)


if __name__ == "__main__":
    main()
