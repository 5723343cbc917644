"""The first minute after an installation: import, a plan, a small run, the demonstration, each with an empty cache of compiled code.

    python benchmarks/first_minute.py [--skip-demo] [--json]

The package is copied to a temporary folder, so that the cache of this checkout stays as it is. Seconds of wall clock; processor seconds of
all processes together stand beside them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import censafe
from harness import TEST, child, parser_of, report

_STATES = "44,50"
_SETTINGS = ["--set", "reader=csv", "--set", f"state_filter={_STATES}", *TEST]


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Every step in a fresh copy of the package, with bytecode and without compiled kernels."""
    source = folder / "source"
    ignored = shutil.ignore_patterns("kernels-*")
    shutil.copytree(Path(censafe.__path__[0]), source / "censafe", ignore=ignored)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    environment.pop("NUMBA_CACHE_DIR", None)
    run = partial(child, env=environment, stderr=subprocess.DEVNULL)
    program = [sys.executable, "-m", "censafe"]
    run([sys.executable, "-m", "compileall", "-q", str(source)])
    people = folder / "people"
    run([*program, "synth", str(people), "--persons", "5000", "--states", _STATES])
    shutil.rmtree(source / "censafe" / "__pycache__")
    steps = {
        "import": [sys.executable, "-c", "import censafe"],
        "plan": [*program, "plan", "phsafe", "sdhc-us"],
        "run": [*program, "run", "phsafe", "sdhc-us", str(people), str(folder / "out"), *_SETTINGS],
    }
    if not arguments.skip_demo:
        steps["demo"] = [*program, "demo", str(folder / "demo")]
    measured: dict[str, float] = {}
    for step, command in steps.items():
        if step == "demo":
            for kernels in (source / "censafe" / "__pycache__").glob("kernels-*"):
                shutil.rmtree(kernels)
        _, measured[f"{step}_s"], measured[f"{step}_cpu_s"], _ = run(command)
    return measured


def text(measured: dict[str, float]) -> Iterator[str]:
    yield f"{'step':10}{'seconds':>10}{'CPU s':>10}"
    for step in ("import", "plan", "run", "demo"):
        if f"{step}_s" in measured:
            yield f"{step:10}{measured[f'{step}_s']:10.2f}{measured[f'{step}_cpu_s']:10.2f}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--skip-demo", action="store_true")
    report(parser.parse_args(), measure, text)


if __name__ == "__main__":
    main()
