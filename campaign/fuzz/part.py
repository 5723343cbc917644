"""The part of the campaign that fuzzes: every reader for its share of the time."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from campaign.fuzz.readers import readers
from campaign.trials import Failures, Finding

ROOT = Path(__file__).resolve().parents[2]
STARTING = 240.0  # seconds that imports and the valid input may take
QUICK = 5  # seconds of the short form
_ENDS = {-6: "it was aborted", -9: "it was killed", -11: "it crashed", 70: "it hung for more than a minute", 71: "it took more than 2 GiB",
         77: "it crashed"}  # fmt: skip


class Fuzz:
    """Spoiled files for every reader, none of which may bring more than a refusal."""

    name = "fuzz"
    short = 1

    def __init__(self, world: Path, folder: Path, *, minutes: float, quick: bool) -> None:
        self._world = world
        self._folder = folder
        self._quick = quick
        self._names = [one.name for one in readers(world)]
        self.long = len(self._names)
        self._seconds = QUICK if quick else max(1, round(60 * minutes / self.long))

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """One reader, in the short form any one, without coverage."""
        name = chance.choice(self._names) if self._quick else self._names[number]
        seed, more = chance.randrange(1, 2**31), ("--blind",) if self._quick else ()
        ended, figures, wrong = fuzzed(name, self._world, box, self._seconds, seed, *more)
        failures = Failures(f"{one['kind']}: {one['words'][-400:]}" for one in wrong)
        failures.unless(ended in (0, None), f"{_ENDS.get(ended or 0, f'exit code {ended}')}: {_last(box)}")
        failures.unless(ended is not None, "it did not end")
        failures.unless(figures.get("readings", 0) > 0, f"nothing was read: {_last(box)}")
        if failures:
            kept = self._folder / "fuzz-inputs" / name.replace(" ", "-").replace("/", "-")
            kept.parent.mkdir(exist_ok=True)
            if not kept.exists():
                box.rename(kept)
        facts: dict[str, Any] = {
            f"{figure} of {name}": figures.get(figure, 0)
            for figure in ("readings", "accepted", "refused", "slowest", "MiB")
        }
        return Finding(name, failures, {**facts, "engine": figures.get("engine", "none")})


def fuzzed(
    name: str, world: Path, box: Path, seconds: int, seed: int, *more: str
) -> tuple[int | None, dict[str, Any], list[dict[str, str]]]:
    """Exit code (None where it did not end), figures and wrong answers of one reader, fuzzed for some seconds with a seed."""
    box.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    command = [sys.executable, "-m", "campaign.fuzz", name, "--world", str(world), "--box", str(box / "fuzz")]
    command += ["--seconds", str(seconds), "--seed", str(seed), *more]
    code = None
    with (box / "err").open("w") as words, suppress(subprocess.TimeoutExpired):
        limit = seconds + STARTING
        code = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=words, stderr=words, timeout=limit
        ).returncode
    figures, wrong = box / "fuzz" / "figures.json", box / "fuzz" / "wrong.jsonl"
    lines = wrong.read_text(encoding="utf-8").splitlines() if wrong.exists() else []
    counts = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else {}
    return code, counts, [json.loads(line) for line in lines]


def _last(box: Path) -> str:
    """The last words of the process."""
    path = box / "err"
    return path.read_text(encoding="utf-8", errors="replace")[-500:] if path.exists() else ""
