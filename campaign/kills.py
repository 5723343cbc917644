"""Kills: a signal at a random instant of any command, and then the same command."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from campaign import child
from campaign.outcomes import HIDDEN, Baselines, finished, left, said
from campaign.trials import Failures, Finding

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WAIT = 10.0  # seconds in which the workers of a killed process must end


class Kills:
    """SIGKILL, SIGTERM and SIGINT."""

    name = "kills"
    long = 1000
    short = 40

    def __init__(self, baselines: Baselines) -> None:
        self._baselines = baselines

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Stop one command and run it again."""
        scenario = self._baselines.drawn(self._baselines.scenarios, chance)
        chosen = chance.choice(SIGNALS)
        ledger, key = self._baselines.charged(scenario, chance, box)
        seconds = self._baselines.seconds(scenario)
        instant = chance.random() * seconds
        scenario.prepare(box)
        ended = child.run(scenario.command(box, key), box, kill=(chosen, instant))
        failures = said(ended)
        failures += self._at_once(chosen, ended, box)
        failures += finished(self._baselines, scenario, box, key, ledger)
        name = f"{scenario.name}{' on a ledger' if ledger else ''}, {chosen.name} at {instant:.2f} s of {seconds:.2f} s"
        return Finding(
            name,
            failures,
            {"stopped": ended.code != 0, "signal": chosen.name, "command": scenario.name},
        )

    def _at_once(self, chosen: signal.Signals, ended: child.Ended, box: Path) -> Failures:
        """What must hold before the command is run a second time."""
        failures = Failures()
        failures.unless(
            _waited(lambda: child.orphans(ended.process)), "processes of the killed command live on"
        )
        if chosen is signal.SIGKILL or ended.code == 0:
            return failures
        expected = (128 + chosen, -chosen)
        failures.unless(
            ended.code in expected, f"exit code {ended.code} after {chosen.name}: {ended.err[-400:]}"
        )
        strange = [
            name for name in left(self._baselines, box) if not name.startswith(HIDDEN)
        ]  # of work that goes on
        failures.unless(not strange, f"left by {chosen.name}: {strange[:5]}")
        return failures


def _waited(living: Callable[[], list[int]]) -> bool:
    start = time.monotonic()
    while living():
        if time.monotonic() - start > WAIT:
            return False
        time.sleep(0.1)
    return True
