"""What the scale benchmarks share: a measured child process, and a table of its stages."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from censafe.population.synthetic.population import Layout, synthesize
from censafe.population.synthetic.writing import FileFormat

COMMAND = [sys.executable, "-c", "from censafe.cli import main; main()"]
STATES = {"VT": ("50", 643_077), "TX": ("48", 29_145_505), "RI": ("44", 1_097_379)}  # code, persons of 2020
MEASURED_RUNS = Path(__file__).parents[1] / "src/censafe/planning/prices/measured_runs.json"
Result = TypeVar("Result")
_SHOWN = 0.05  # seconds


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


def cpu_of_children() -> float:
    """Seconds of processors of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stages_of(out: Path) -> dict[str, float]:
    """Seconds of every stage of a finished run."""
    stages: dict[str, float] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["stages"]
    return stages


def levels_of(out: Path) -> dict[str, Any]:
    """Reports of the levels of a finished run of TopDown, by histogram."""
    post = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["post_processing"]
    return {key.removeprefix("levels_"): value for key, value in post.items() if key.startswith("levels_")}


def population(
    data: Path,
    *,
    persons: int,
    seed: int,
    file_format: FileFormat,
    layout: Layout,
    areas_of: int | None = None,
    states: tuple[str, ...] | None = None,
) -> Path:
    """The synthetic population in the folder `data`, made when it is not there."""
    if not data.exists():
        started = time.perf_counter()
        synthesize(
            data,
            persons=persons,
            states=states,
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


def topdown_table(stages: Mapping[str, float], seconds: float) -> list[str]:
    """Lines of seconds by stage of TopDown, without parts of stages and what takes no time."""
    shown = {
        name: value for name, value in stages.items() if value >= _SHOWN and not name.startswith("of which")
    }
    return table(shown, seconds)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser of the options of all scale benchmarks."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--data", type=Path, help="keep populations here for the next call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--record", action="store_true", help="store seconds and memory where `censafe plan` reads them"
    )
    return parser


def record(path: Path, rate: str, run: Mapping[str, float]) -> None:
    """Put a run into the file of measured runs, in place of one of the same size."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    others = [one for one in stored[rate]["runs"] if one["size"] != run["size"]]
    stored[rate]["runs"] = sorted([*others, dict(run)], key=lambda one: one["size"])
    path.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


def in_folder(data: Path | None, work: Callable[[Path], Result]) -> Result:
    """Work in a folder that stays, or in one that vanishes."""
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
        return work(data)
    with TemporaryDirectory() as folder:
        return work(Path(folder))


def report(
    arguments: argparse.Namespace,
    measure: Callable[..., Any],
    text: Callable[[Any], str],
    run: Callable[[Any], tuple[str, Mapping[str, float]]] | None = None,
) -> None:
    """Measure in a folder and print the measured dataclass, as one JSON object or as text.

    Args:
        run: name of a rate of `censafe plan`, and what it stores of the measured run; None where nothing is stored.
    """
    if arguments.record and run is None:
        raise SystemExit(
            "--record: the runs of this benchmark are not those of a rate that `censafe plan` reads"
        )
    measured = in_folder(arguments.data, partial(measure, arguments=arguments))
    if arguments.record and run is not None:
        record(MEASURED_RUNS, *run(measured))
    print(json.dumps(asdict(measured)) if arguments.json else text(measured))
