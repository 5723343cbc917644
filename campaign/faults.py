"""Faults: one system call of a command fails, once."""

from __future__ import annotations

import errno
import json
import random
from collections.abc import Callable
from pathlib import Path

from campaign import child
from campaign.child import Shim
from campaign.outcomes import Baselines, finished, said
from campaign.trials import Finding
from campaign.worlds import Scenario

REASONS = {
    "write": (errno.ENOSPC, errno.EIO),
    "fsync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EACCES, errno.EIO, errno.ENOSPC),
    "open": (errno.EACCES, errno.EMFILE, errno.EIO, errno.ENOSPC),
}


class Faults:
    """The n-th write, fsync, rename or open below the folders of a run fails."""

    name = "faults"
    long = 2000
    short = 30

    def __init__(self, baselines: Baselines, shim: Shim, folder: Path) -> None:
        self._baselines = baselines
        self._shim = shim
        self._folder = folder
        self._calls: dict[str, dict[str, int]] = {}
        self._scenarios = baselines.alone()

    def _counted(self, scenario: Scenario, key: tuple[str, ...], box: Path) -> dict[str, int]:
        """How many calls the command makes when none fails."""
        place = scenario.name + ("" if key[:1] != ("--ledger",) else " ledger")
        if place not in self._calls:
            counts = box / "io" / "calls.json"
            self._command(scenario, key, box, lambda: self._shim.arm(self._folder))
            self._calls[place] = json.loads(counts.read_text(encoding="utf-8"))
        return self._calls[place]

    def _command(
        self, scenario: Scenario, key: tuple[str, ...], box: Path, arm: Callable[[], None]
    ) -> child.Ended:
        scenario.prepare(box)

        def work() -> int:
            arm()
            try:
                child.main()
            finally:
                calls, fired = self._shim.calls(), self._shim.fired()
                self._shim.arm(self._folder / "nowhere")
                (box / "io" / "calls.json").write_text(
                    json.dumps({**calls, "fired": fired}), encoding="utf-8"
                )
            return 0

        return child.run(scenario.command(box, key), box, work=work)

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Fail one call and run the command again."""
        scenario = self._baselines.drawn(self._scenarios, chance)
        ledger, key = self._baselines.charged(scenario, chance, box)
        counting = box.with_name(box.name + "-count")
        words = tuple(str(counting / "ledger.jsonl") if word == str(ledger) else word for word in key)
        calls = self._counted(scenario, words, counting)
        kind = chance.choice([kind for kind in Shim.KINDS if calls[kind]])
        place, reason = chance.randint(1, calls[kind]), chance.choice(REASONS[kind])
        ended = self._command(scenario, key, box, lambda: self._shim.arm(self._folder, kind, place, reason))
        fired = json.loads((box / "io" / "calls.json").read_text(encoding="utf-8"))["fired"]
        failures = said(ended)
        failures += finished(self._baselines, scenario, box, key, ledger)
        name = f"{scenario.name}{' on a ledger' if ledger else ''}, {kind} {place} of {calls[kind]} fails with {errno.errorcode[reason]}"
        return Finding(
            name,
            failures,
            {"fired": fired, "code": ended.code, "kind": kind, "command": scenario.name},
        )
