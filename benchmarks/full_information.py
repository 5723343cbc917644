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
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

import numpy as np

from censafe.model.observer import SilentObserver
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.products.run.options import EstimateOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.public.estimate import estimate_files
from child import STATES, levels_of, parser_of, report, table
from stored_nation import store
from topdown_scale import PERSONS, violations

CONFIG = "pl94-us"
GEOUNITS = 8_132_968 + 239_780 + 84_414 + 3_143 + 51 + 1
WIDE = ("US", "State", "County")  # levels that a share of the nation has in full


@dataclass(frozen=True)
class Measured:
    persons: int
    geounits: int
    file_gib: float
    seconds_linear: float
    seconds_total: float
    seconds_read: float
    wall_seconds: float
    linear_ms: float
    dense_ms: float
    times: float
    nation_linear_minutes: float
    nation_total_minutes: float
    peak_gib: float
    gap_max: float
    uncertified: int
    violations: int
    stages: dict[str, float]


class CpuObserver(SilentObserver):
    """Keeps the CPU seconds of stages."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.stages[name] = self.stages.get(name, 0.0) + time.process_time() - started


@dataclass(frozen=True)
class Child:
    stages: dict[str, float]
    cpu: float
    wall: float
    peak_gib: float


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


def estimate(files: Path, out: Path, settings: Mapping[str, str], workers: int) -> Child:
    """What the child process does."""
    observer, started = CpuObserver(), time.perf_counter()
    options = EstimateOptions(
        confidence=Fraction(9, 10), settings=settings, observer=observer, workers=workers
    )
    estimate_files(CONFIG, files / "measurements", out, None, options)
    return Child(observer.stages, time.process_time(), time.perf_counter() - started, _peak_gib())


def _peak_gib() -> float:
    """Of this process alone: on Linux the usual figure is never below that of the process that started it, which made the files."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return int(lines["VmHWM"].split()[0]) / 2**20
    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1) / 2**20
    )


def made(folder: Path, arguments: argparse.Namespace, settings: Mapping[str, str]) -> tuple[Path, Path]:
    """Histograms and measurement files in the folder, made where they are not there."""
    states, persons = None, round(arguments.nation * PERSONS[CONFIG])
    if arguments.like:
        code, persons = STATES[arguments.like]
        states = (code,)
    name = f"nation-{arguments.like or ''}{persons}-seed-{arguments.seed}"
    data, files = folder / name, folder / f"{name}-files"
    if not data.exists():
        synthesize_histograms(data, persons=persons, states=states, seed=arguments.seed, layout="pl94")
    if not files.exists():
        started = time.process_time()
        store(data, files, load_config(CONFIG, settings), arguments.seed)
        print(f"files: {time.process_time() - started:.0f} CPU s", file=sys.stderr)
    return data, files


def measure(folder: Path, arguments: argparse.Namespace) -> Measured:
    root = {"root": "State"} if arguments.like else {}
    settings = {"measure": "persons", **root}
    data, files = made(folder, arguments, settings)
    out = folder / "estimates"
    shutil.rmtree(out, ignore_errors=True)
    chosen = {**settings, "information": arguments.information}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        child: Child = pool.apply(estimate, (files, out, chosen, arguments.workers))
    reports = levels_of(out)["persons"]
    wrong = violations(out, data, CONFIG)[1]
    shutil.rmtree(out)
    size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file())
    if not arguments.keep:
        shutil.rmtree(files)
    return _measured(arguments, child, reports, wrong, size)


def _measured(
    arguments: argparse.Namespace, child: Child, reports: list[dict[str, float]], wrong: int, size: int
) -> Measured:
    geounits = {str(report["level"]): int(report["geounits"]) for report in reports}
    nodes, wide = sum(geounits.values()), sum(geounits.get(name, 0) for name in WIDE)
    reading = [name for name in child.stages if name.startswith("read") or name == "hash inputs"]
    linear = child.stages.get("estimate persons from below", 0.0)
    read = sum(child.stages[name] for name in reading)
    total = child.cpu - read
    fixed = sum(child.stages.get(f"estimate persons_{name}", 0.0) for name in WIDE)
    share = (GEOUNITS - wide) / max(1, nodes - wide)
    own, dense = linear / nodes * 1e3, dense_ms(2016)
    persons = STATES[arguments.like][1] if arguments.like else round(arguments.nation * PERSONS[CONFIG])
    return Measured(
        persons, nodes, round(size / 2**30, 3), round(linear, 3), round(total, 3), round(read, 3), round(child.wall, 1),
        round(own, 4), round(dense, 1), round(dense / own, 1) if own else 0.0, round(own * GEOUNITS / 6e4, 2),
        round((fixed + (total - fixed) * share) / 60, 2), round(child.peak_gib, 3),
        max(report["gap_most"] for report in reports),
        sum(len(cast(list[str], report["approximate"])) for report in reports),
        wrong, {name: round(value, 3) for name, value in child.stages.items()},
    )  # fmt: skip


def text(measured: Measured) -> str:
    last = (
        f"{measured.persons:,} persons, {measured.geounits:,} geounits, {measured.file_gib} GiB of files; linear {measured.linear_ms} ms a geounit, "
        f"dense {measured.dense_ms} ms, {measured.times:,} times; nation: linear {measured.nation_linear_minutes} and in all "
        f"{measured.nation_total_minutes} core-minutes after reading; peak {measured.peak_gib} GiB, wall {measured.wall_seconds} s, "
        f"largest gap {measured.gap_max:.2g}, without certificate {measured.uncertified}, violations {measured.violations}"
    )
    return "\n".join([*table(measured.stages, measured.seconds_total + measured.seconds_read), last])


def main() -> None:
    parser = parser_of(__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--nation", type=float, default=0.005, metavar="FRACTION")
    size.add_argument("--like", choices=sorted(STATES))
    parser.add_argument("--information", choices=("lower", "level"), default="lower")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="leave the measurement files in --data")
    report(parser.parse_args(), measure, text)


if __name__ == "__main__":
    main()
