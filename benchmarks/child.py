"""What the scale benchmarks share: a measured child process, and a table of its stages."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from censafe.population.synthetic.population import Layout, synthesize
from censafe.population.synthetic.writing import FileFormat

COMMAND = [sys.executable, "-c", "from censafe.cli import main; main()"]
Result = TypeVar("Result")


def censafe(arguments: Sequence[str]) -> tuple[float, float]:
    """Wall seconds and peak GiB of one command in a child process."""
    started = time.perf_counter()
    child = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"the run failed with exit code {child.returncode}")
    kib = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return seconds, kib / 2**20


def stages_of(out: Path) -> dict[str, float]:
    """Seconds of every stage of a finished run."""
    stages: dict[str, float] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["stages"]
    return stages


def population(
    data: Path,
    *,
    persons: int,
    seed: int,
    file_format: FileFormat,
    layout: Layout,
    areas_of: int | None = None,
) -> Path:
    """The synthetic population in the folder `data`, made when it is not there."""
    if not data.exists():
        started = time.perf_counter()
        synthesize(
            data,
            persons=persons,
            states=None,
            seed=seed,
            file_format="csv" if file_format == "csv" else "parquet",
            layout=layout,
            areas_of=areas_of,
        )
        seconds = time.perf_counter() - started
        print(f"synthesis: {seconds:.1f} s, {persons / seconds:,.0f} persons/s", file=sys.stderr)
    return data


def table(stages: Mapping[str, float], seconds: float) -> list[str]:
    """Lines of seconds by stage."""
    rest = seconds - sum(stages.values())
    rows = {**stages, "start of the process and the rest": rest, "all": seconds}
    return [f"{'stage':<40}{'seconds':>10}", *(f"{name:<40}{value:>10.2f}" for name, value in rows.items())]


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser of the options of all scale benchmarks."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--data", type=Path, help="keep populations here for the next call")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def in_folder(data: Path | None, work: Callable[[Path], Result]) -> Result:
    """Work in a folder that stays, or in one that vanishes."""
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
        return work(data)
    with TemporaryDirectory() as folder:
        return work(Path(folder))
