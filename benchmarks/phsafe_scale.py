"""Seconds and memory of a whole PHSafe run, by number of persons.

    python benchmarks/phsafe_scale.py [--persons N] [--csv] [--json] [--data DIR] [--seed S] [--config NAME]

Makes a synthetic population of the nation, or takes the one that an earlier call left in DIR, then runs
`censafe run phsafe` on it in a process of its own: reading, full validation, counting, measuring, publishing.
`seconds` is the wall time of that process, start of the interpreter included and synthesis not; `peak_gib` its
largest resident memory. The test key is used, so no ledger is touched; the draws cost the same.
Marks on two cores: 33 million persons in 60 s and 6 GiB; time per person not growing with size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from censafe.population.synthetic.population import synthesize
from censafe.population.synthetic.writing import FileFormat

COMMAND = [sys.executable, "-c", "from censafe.cli import main; main()"]


@dataclass(frozen=True)
class Measured:
    persons: int
    seconds: float
    peak_gib: float
    stages: dict[str, float]


def population(folder: Path, persons: int, seed: int, file_format: FileFormat) -> Path:
    """The synthetic population of this size, seed and format in `folder`, made when it is not there."""
    data = folder / f"persons-{persons}-seed-{seed}-{file_format}"
    if not data.exists():
        started = time.perf_counter()
        synthesize(data, persons=persons, states=None, seed=seed, file_format=file_format)
        seconds = time.perf_counter() - started
        print(f"synthesis: {seconds:.1f} s, {persons / seconds:,.0f} persons/s", file=sys.stderr)
    return data


def run(config: str, data: Path, out: Path) -> tuple[float, float]:
    """Wall seconds and peak GiB of one run in a child process."""
    arguments = [
        "run",
        "phsafe",
        config,
        str(data),
        str(out),
        "--set",
        "reader=csv",
        "--test-key",
        "1",
        "--quiet",
    ]
    started = time.perf_counter()
    child = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"the run failed with exit code {child.returncode}")
    kib = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return seconds, kib / 2**20


def measure(folder: Path, arguments: argparse.Namespace) -> Measured:
    file_format: FileFormat = "csv" if arguments.csv else "parquet"
    data = population(folder, arguments.persons, arguments.seed, file_format)
    with TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "run"
        seconds, peak = run(arguments.config, data, out)
        stages = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["stages"]
    return Measured(arguments.persons, round(seconds, 3), round(peak, 3), stages)


def table(measured: Measured) -> str:
    lines = [f"{'stage':<40}{'seconds':>10}"]
    lines += [f"{name:<40}{seconds:>10.2f}" for name, seconds in measured.stages.items()]
    rest = measured.seconds - sum(measured.stages.values())
    lines.append(f"{'start of the process and the rest':<40}{rest:>10.2f}")
    lines.append(f"{'all':<40}{measured.seconds:>10.2f}")
    rate = measured.persons / measured.seconds
    lines.append(f"{measured.persons:,} persons, {rate:,.0f} persons/s, peak {measured.peak_gib:.2f} GiB")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--csv", action="store_true", help="read CSV; the default is Parquet")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--data", type=Path, help="keep populations here for the next call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--config", default="sdhc-us")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    if arguments.data is not None:
        arguments.data.mkdir(parents=True, exist_ok=True)
        measured = measure(arguments.data, arguments)
    else:
        with TemporaryDirectory() as folder:
            measured = measure(Path(folder), arguments)
    print(json.dumps(asdict(measured)) if arguments.json else table(measured))


if __name__ == "__main__":
    main()
