"""What must hold of a command that was stopped or failed, and of the same command afterwards."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from campaign import child
from campaign.child import Ended
from campaign.trials import Failures
from campaign.worlds import TEST, Scenario, World
from censafe.privacy.ledger.report import verify

VOLATILE = ("manifest.json", "evaluation.json", "report.html")
"""Files that hold seconds, and are not compared."""

DATED = ("certificate.json", "certificate.html")
_TIME = re.compile(rb"<time .*?</time>|\d{4}-\d\d-\d\dT[0-9:.+]*")


class Baselines:
    """What every command gives when nothing disturbs it, found once for each process and within it, which warms it."""

    def __init__(self, world: World, folder: Path, *, quick: bool, needed: str | None = "") -> None:
        """Try every command whose name begins with some text; none, where it is None."""
        self.world = world
        self._quick = quick
        self.scenarios = sorted(
            name
            for name in world.scenarios
            if needed is not None and name.startswith(needed) and not (quick and world.scenarios[name].slow)
        )
        self._expected: dict[str, dict[str, str]] = {}
        self._seconds: dict[str, float] = {}
        for name in self.scenarios:
            self._find(world.scenarios[name], folder)
        self._inputs = world.inputs()

    def drawn(self, names: list[str], chance: random.Random) -> Scenario:
        """Any command of some names; one that takes seconds less often (3 to 10, in the short form 1 to 10): more trials fit."""
        often = 1 if self._quick else 3
        weights = [often if self.world.scenarios[name].long else 10 for name in names]
        return self.world.scenarios[chance.choices(names, weights)[0]]

    def charged(
        self, scenario: Scenario, chance: random.Random, box: Path
    ) -> tuple[Path | None, tuple[str, ...]]:
        """The ledger of a trial and the words that name it: half of the plans with a cost are charged, all other runs have the test key."""
        if scenario.cost is not None and chance.random() < 0.5:
            ledger = box / "ledger.jsonl"
            return ledger, ("--ledger", str(ledger))
        return None, TEST if scenario.name.startswith("run ") else ()

    def alone(self) -> list[str]:
        """Commands that the warm process itself may run, and that open files of their own only."""
        return [name for name in self.scenarios if not self.world.scenarios[name].apart]

    def _find(self, scenario: Scenario, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        scenario.prepare(folder)
        start = time.process_time()
        command = scenario.command(folder, TEST if scenario.name.startswith("run ") else ())
        ended = child.run(command, folder) if scenario.apart else None
        code = ended.code if ended else child.call(*command)
        if code:
            raise RuntimeError(f"{scenario.name} fails undisturbed with {code}")
        self._seconds[scenario.name] = ended.seconds if ended else time.process_time() - start
        self._expected[scenario.name] = outputs(folder)
        shutil.rmtree(folder)

    def expected(self, scenario: Scenario) -> dict[str, str]:
        """Contents of the outputs under the test key."""
        return self._expected[scenario.name]

    def seconds(self, scenario: Scenario) -> float:
        """Processor seconds of the last undisturbed command."""
        return self._seconds[scenario.name]

    def note(self, scenario: Scenario, seconds: float) -> None:
        """Remember how long an undisturbed command took in a child, which loads nothing."""
        self._seconds[scenario.name] = seconds

    def unchanged(self) -> bool:
        """Whether the inputs, and the folders that hold them, are as at the start."""
        return self.world.inputs() == self._inputs


def outputs(box: Path) -> dict[str, str]:
    """Contents of what a command wrote; files that hold times are left out, and the dates of certificates."""
    contents = {}
    for top in ("out", "out-redistricting"):
        place = box / top
        for name, path in [("", place)] if place.is_file() else list(child.files(place)):
            if path.name in DATED:
                contents[f"{top}/{name}"] = hashlib.sha256(_TIME.sub(b"", path.read_bytes())).hexdigest()
            elif path.name not in VOLATILE:
                contents[f"{top}/{name}"] = child.digest(path)
    return contents


def said(ended: Ended) -> Failures:
    """What is wrong with how a command ended that was disturbed: never a fault of the program, and never silent."""
    failures = Failures()
    failures.unless(not ended.hung, "it hung")
    failures.unless("Traceback" not in ended.err, f"a traceback: {ended.err[-600:]}")
    failures.unless(ended.code != 70, f"exit code 70: {ended.err[-600:]}")
    failures.unless(ended.code in (0, 1, 2, 3, 4, 130, 143) or ended.code < 0, f"exit code {ended.code}")
    failures.unless(ended.code <= 0 or bool(ended.err.strip()), f"exit code {ended.code} without a message")
    return failures


def finished(
    baselines: Baselines, scenario: Scenario, box: Path, key: tuple[str, ...], ledger: Path | None
) -> Failures:
    """What is wrong after the same command has run to its end."""
    before = measured(box)
    ended = child.run(scenario.command(box, key), box)
    failures = Failures()
    complete = scenario.name in ONCE and ended.code == USAGE and outputs(box) == baselines.expected(scenario)
    if (
        ended.code and not complete
    ):  # a finished output that is not written over is what the command would give
        failures.append(f"the same command ends with {ended.code}: {ended.err[-600:]}")
        return failures
    if not before:
        baselines.note(scenario, ended.seconds)
    if ledger is None:
        expected, actual = baselines.expected(scenario), outputs(box)
        differing = sorted(name for name in {*expected, *actual} if expected.get(name) != actual.get(name))
        failures.unless(not differing, f"other outputs: {differing[:8]}")
    else:
        failures += paid(scenario, ledger)
        after = measured(box)
        changed = sorted(name for name, digest in before.items() if after.get(name) != digest)
        failures.unless(not changed, f"committed measurements changed: {changed[:5]}")
    return failures + left(baselines, box)


def measured(box: Path) -> dict[str, str]:
    """Measurement files that the ledger counts as committed."""
    ledger = box / "ledger.jsonl"
    if not ledger.exists():
        return {}
    committed = {row.sha256 for row in verify(ledger).rows if row.state == "committed"}
    return {
        name: digest
        for name, digest in child.digests(box).items()
        if digest in committed and name.startswith("out")
    }


def paid(scenario: Scenario, ledger: Path) -> Failures:
    """Whether the ledger holds the cost of the plan exactly once."""
    failures = Failures()
    report = verify(ledger)
    rows: list[Any] = [row for row in report.rows if row.state == "committed"]
    total = sum((row.cost for row in rows), Fraction(0))
    parts = [(row.part, row.cost) for row in rows]  # the DHC and its redistricting data share names
    failures.unless(total == scenario.cost, f"the ledger holds {total}, the plan costs {scenario.cost}")
    failures.unless(len(parts) == len(set(parts)), "a part is paid for twice")
    failures.unless(
        {row.state for row in report.rows} <= {"committed", "void"},
        f"states {sorted({row.state for row in report.rows})}",
    )
    return failures


HIDDEN = "hidden files in the output"
ONCE, USAGE = ("synth", "truth", "evaluate phsafe", "evaluate topdown"), 2
EXPECTED = {"out", "out-redistricting", "tmp", "io", "ledger.jsonl", "ledger.key"}
"""What may lie in the folder of a trial."""


def left(baselines: Baselines, box: Path) -> Failures:
    """What lies where nothing should."""
    failures = Failures()
    strange = sorted({path.name for path in box.iterdir()} - EXPECTED)
    failures.unless(not strange, f"left beside the output: {strange}")
    temporary = [name for name, _ in child.files(box / "tmp")]
    failures.unless(not temporary, f"left in the temporary folder: {temporary[:5]}")
    hidden = [name for name, path in child.files(box / "out") if path.name.startswith(".")]
    failures.unless(not hidden, f"{HIDDEN}: {hidden[:5]}")
    failures.unless(baselines.unchanged(), "the folders of the input changed")
    return failures
