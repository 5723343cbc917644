"""Soak: many releases in one process, whose memory and open files must not grow."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
from pathlib import Path

from campaign import child
from campaign.outcomes import Baselines
from campaign.trials import Failures, Finding
from campaign.worlds import TEST

PAGE = os.sysconf("SC_PAGE_SIZE")
GROWTH = 0.05


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE


class Soak:
    """200 releases of the products in turn; a fifth of them warm the process up."""

    name = "soak"
    long = 1
    short = 1

    def __init__(self, baselines: Baselines, *, releases: int) -> None:
        self._baselines = baselines
        self._releases = releases

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Release again and again in one child."""
        world = self._baselines.world
        chosen = [world.scenarios[f"run {name}"] for name in ("phsafe", "safetab-p", "safetab-h", "e2e-1940")]
        figures = box / "figures.json"

        def work() -> int:
            seen = []
            for turn in range(self._releases):
                place = box / "soak"
                code = child.call(*chosen[turn % len(chosen)].command(place, TEST))
                shutil.rmtree(place, ignore_errors=True)
                if code:
                    return 1
                gc.collect()
                seen.append((resident(), len(list(Path("/proc/self/fd").iterdir()))))
            figures.write_text(json.dumps(seen), encoding="utf-8")
            return 0

        box.mkdir(parents=True)
        ended = child.run((), box, work=work, longest=7200)
        failures = Failures()
        failures.unless(ended.code == 0, f"a release of the soak failed: {ended.code} {ended.err[-400:]}")
        facts: dict[str, object] = {"releases": self._releases}
        if ended.code == 0:
            seen = json.loads(figures.read_text(encoding="utf-8"))
            first = self._releases // 5
            start = max(memory for memory, _ in seen[first : first + len(chosen)])
            end = max(memory for memory, _ in seen[-len(chosen) :])
            facts |= {"MiB before": start >> 20, "MiB after": end >> 20, "files": seen[-1][1]}
            failures.unless(end <= start * (1 + GROWTH), f"memory grew from {start >> 20} to {end >> 20} MiB")
            failures.unless(
                seen[-1][1] <= seen[first][1], f"open files grew from {seen[first][1]} to {seen[-1][1]}"
            )
        return Finding(f"{self._releases} releases in one process", failures, facts)
