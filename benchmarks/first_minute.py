"""The first minute after an installation: import, a plan, a small run, the demonstration, each with an empty cache of compiled code.

    python benchmarks/first_minute.py [--skip-demo] [--json]

The package is copied to a temporary folder, so that the cache of this checkout stays as it is. Seconds of wall clock; processor seconds of
all processes together stand beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import censafe

_STATES = "44,50"
_SETTINGS = ["--set", "reader=csv", "--set", f"state_filter={_STATES}", "--test-key", "1", "--quiet"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-demo", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measured(Path(name), demo=not asked.skip_demo)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"{'step':10}{'seconds':>10}{'CPU s':>10}")
    for step in ("import", "plan", "run", "demo"):
        if f"{step}_s" in found:
            print(f"{step:10}{found[f'{step}_s']:10.2f}{found[f'{step}_cpu_s']:10.2f}")


def measured(folder: Path, demo: bool) -> Mapping[str, float]:
    """Every step in a fresh copy of the package, with bytecode and without compiled kernels."""
    source = folder / "source"
    ignored = shutil.ignore_patterns("kernels-*")
    shutil.copytree(Path(censafe.__path__[0]), source / "censafe", ignore=ignored)
    given = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": ""}
    given.pop("NUMBA_CACHE_DIR")
    program = [sys.executable, "-m", "censafe"]
    timed([sys.executable, "-m", "compileall", "-q", str(source)], given)
    people = folder / "people"
    timed([*program, "synth", str(people), "--persons", "5000", "--states", _STATES], given)
    shutil.rmtree(source / "censafe" / "__pycache__")
    steps = {
        "import": [sys.executable, "-c", "import censafe"],
        "plan": [*program, "plan", "phsafe", "sdhc-us"],
        "run": [*program, "run", "phsafe", "sdhc-us", str(people), str(folder / "out"), *_SETTINGS],
        "demo": [*program, "demo", str(folder / "demo")],
    }
    found: dict[str, float] = {}
    for step, command in steps.items():
        if step == "demo":
            for kernels in (source / "censafe" / "__pycache__").glob("kernels-*"):
                shutil.rmtree(kernels)
        if demo or step != "demo":
            found[f"{step}_s"], found[f"{step}_cpu_s"] = timed(command, given)
    return found


def timed(command: list[str], given: Mapping[str, str]) -> tuple[float, float]:
    """Wall and processor seconds of a command and all that it started."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=dict(given), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, spent


if __name__ == "__main__":
    main()
