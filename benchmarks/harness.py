"""What the benchmarks share: options, populations, measured child processes, tables of stages, and the report."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from censafe import synthesize

COMMAND = [sys.executable, "-c", "from censafe.cli import main; main()"]
NATION = 331_449_281  # persons of 2020
STATES = {"VT": ("50", 643_077), "TX": ("48", 29_145_505), "RI": ("44", 1_097_379)}  # code, persons of 2020
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
markdown: Callable[..., list[str]] = import_module("measured").markdown
write_table: Callable[..., None] = import_module("measured").write_table
MEASURED_RUNS = ROOT / "src/censafe/planning/prices/measured_runs.json"
TEST = ("--test-key", "1", "--quiet")
_SHORTEST = 0.05  # seconds


class Child(NamedTuple):
    """What a child process printed and took, its own children included."""

    text: str
    seconds: float
    cpu_seconds: float
    peak_gib: float

    def figures(self, digits: int = 2) -> dict[str, float]:
        """Wall and processor seconds, and peak memory."""
        names = ("seconds", "cpu_seconds", "peak_gib")
        return {name: round(getattr(self, name), digits) for name in names}


def child(command: Sequence[str], **options: Any) -> Child:
    """Run a command to its end."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    text = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"the run failed with exit code {process.returncode}")
    return Child(text, seconds, usage.ru_utime + usage.ru_stime, gib(usage))


def censafe(*words: str) -> Child:
    """Run a command of censafe to its end."""
    return child([*COMMAND, *words])


def gib(usage: resource.struct_rusage) -> float:
    """Peak memory."""
    return usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1) / 2**20


def manifest(out: Path) -> dict[str, Any]:
    """The manifest of a finished run."""
    document: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return document


def levels_of(out: Path) -> dict[str, Any]:
    """Reports of the levels of a finished run of TopDown, by histogram."""
    post = manifest(out)["post_processing"]
    return {key.removeprefix("levels_"): value for key, value in post.items() if key.startswith("levels_")}


def population(data: Path, make: Callable[..., object] = synthesize, *, persons: int, **options: Any) -> Path:
    """The synthetic population in the folder `data`, made when it is not there."""
    if not data.exists():
        started = time.perf_counter()
        make(data, persons=persons, **options)
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
    long_stages = {
        name: value
        for name, value in stages.items()
        if value >= _SHORTEST and not name.startswith("of which")
    }
    return table(long_stages, seconds)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser of the options of all benchmarks."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--data", type=Path, help="keep populations here for the next call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--record", action="store_true", help="store seconds and memory where `censafe plan` reads them"
    )
    parser.add_argument("--write", metavar="NAME", help="write the table NAME of benchmarks/README.md")
    return parser


def add_size(parser: argparse.ArgumentParser, *, required: bool = True, default: float | None = None) -> None:
    """Options of the size of a population: a share of the nation, or one state."""
    size = parser.add_mutually_exclusive_group(required=required)
    size.add_argument("--nation", type=float, default=default, metavar="FRACTION")
    size.add_argument("--like", choices=sorted(STATES))


def size_of(
    arguments: argparse.Namespace, nation: int = NATION
) -> tuple[int, tuple[str, ...] | None, dict[str, str]]:
    """Persons, states (None: all) and the setting of the root, by the options of `add_size`, of a nation of some size."""
    if not arguments.like:
        return round((arguments.nation or 0) * nation), None, {}
    code, persons = STATES[arguments.like]
    return round(persons * nation / NATION), (code,), {"root": "State"}


def sets(settings: Mapping[str, str]) -> list[str]:
    """Settings as options of a command."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def record(path: Path, rate: str, run: Mapping[str, float]) -> None:
    """Put a run into the file of measured runs, in place of one of the same size."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    others = [one for one in stored[rate]["runs"] if one["size"] != run["size"]]
    stored[rate]["runs"] = sorted([*others, dict(run)], key=lambda one: one["size"])
    path.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


def report(
    arguments: argparse.Namespace,
    measure: Callable[[Path, argparse.Namespace], Any],
    text: Callable[[Any], Iterable[str]],
    *,
    rate: Callable[[Any], tuple[str, float]] | None = None,
    page: Callable[[Any], Sequence[str]] | None = None,
) -> None:
    """Measure in a folder, that of `--data` or one that vanishes, and print the figures, as one JSON object or as lines of text.

    `rate` gives the name of a rate of `censafe plan` and the size of the run for `--record`, `page` the lines of the table for `--write`.
    """
    if arguments.record and rate is None:
        raise SystemExit(
            "--record: the runs of this benchmark are not those of a rate that `censafe plan` reads"
        )
    if arguments.write and page is None:
        raise SystemExit("--write: one call of this benchmark does not measure a whole table")
    if arguments.data is not None:
        arguments.data.mkdir(parents=True, exist_ok=True)
        measured = measure(arguments.data, arguments)
    else:
        with TemporaryDirectory() as folder:
            measured = measure(Path(folder), arguments)
    print(json.dumps(measured) if arguments.json else "\n".join(text(measured)))
    if arguments.record and rate is not None:
        name, size = rate(measured)
        run = {"size": size, "seconds": measured["seconds"], "gib": measured["peak_gib"]}
        record(MEASURED_RUNS, name, run)
    if arguments.write and page is not None:
        script = Path(sys.argv[0]).resolve().relative_to(ROOT).as_posix()
        write_table(ROOT / "benchmarks/README.md", arguments.write, script, page(measured))
