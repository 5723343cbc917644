"""Conditions that a release meets: little memory, a clock set back, a second run beside it, folders that are closed or vanish, inputs that change."""

from __future__ import annotations

import os
import random
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from campaign import child
from campaign.child import Ended, Shim
from campaign.corruptions import world_of
from campaign.outcomes import Baselines, finished, outputs, paid, said
from campaign.trials import Failures, Finding
from campaign.worlds import TEST, Scenario

YEAR = 365 * 24 * 3600
NOBODY = 65534
MOST_EXTRA = 400 << 20
"""Bytes that a command gets beyond what the warm process has, at most."""

Verdict = tuple[str, Failures]


class Conditions:
    """Releases under conditions that are none of their making."""

    name = "conditions"
    long = 210
    short = 6

    def __init__(self, baselines: Baselines, shim: Shim | None) -> None:
        self._baselines = baselines
        self._shim = shim
        self._scenarios = [one for one in baselines.alone() if one.startswith("run ") and one != "run dhc"]
        self._kinds: dict[str, Callable[[Scenario, random.Random, Path], Verdict]] = {
            "little memory": self._memory,
            "two runs in one folder": self._one_folder,
            "two runs on one ledger": self._one_ledger,
            "the output vanishes": self._vanishing,
            "an input changes": self._changing,
        }
        if shim is not None:
            self._kinds["the clock is set back"] = self._clock
        if os.geteuid() == 0:
            self._kinds["a folder is closed"] = self._closed

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """One condition after the other, each on any product."""
        kind = sorted(self._kinds)[number % len(self._kinds)]
        scenario = self._baselines.world.scenarios[chance.choice(self._scenarios)]
        box.mkdir(parents=True)
        words, failures = self._kinds[kind](scenario, chance, box)
        return Finding(
            f"{scenario.name}, {kind}: {words}", failures, {"kind": kind, "command": scenario.name}
        )

    def _instant(self, scenario: Scenario, chance: random.Random) -> float:
        return chance.random() * self._baselines.seconds(scenario)

    def _finished(self, scenario: Scenario, box: Path, *ends: Ended) -> Failures:
        """What is wrong with what commands said, and with the same command afterwards."""
        failures = Failures(failure for ended in ends for failure in said(ended))
        failures += finished(self._baselines, scenario, box, _charged(box), box / "ledger.jsonl")
        return failures

    def _memory(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        extra = chance.randrange(1 << 20, MOST_EXTRA)

        def limit() -> None:
            pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
            size = pages * os.sysconf("SC_PAGE_SIZE") + extra
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

        ended = child.run(scenario.command(box, _charged(box)), box, before=limit)
        return f"{extra >> 20} MiB more, exit code {ended.code}", self._finished(scenario, box, ended)

    def _clock(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        shim, years, instant = self._shim, chance.choice((1, 3, 30)), self._instant(scenario, chance)
        if shim is None:
            raise RuntimeError("no clock can be set without the shim")
        command = scenario.command(box, _charged(box))
        first = child.run(command, box, kill=(9, instant))
        if not (box / "io").exists():
            raise RuntimeError("nothing was started")
        ended = child.run(command, box, before=lambda: shim.clock(-years * YEAR))
        failures = Failures()
        failures.unless(ended.code == 0, f"exit code {ended.code} under an earlier clock: {ended.err[-400:]}")
        failures += self._finished(scenario, box, first, ended)
        return f"{years} years after a kill at {instant:.2f} s", failures

    def _one_folder(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        ends = together([scenario.command(box, _charged(box))] * 2, box, chance)
        failures = _either(ends, "another run", "another run holds")
        failures += self._finished(scenario, box)
        return f"exit codes {[one.code for one in ends]}", failures

    def _one_ledger(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        key = (*_charged(box), "--spend-more")
        places = [box / name for name in ("one", "two")]
        for place in places:
            place.mkdir()
        commands = [scenario.command(place, key) for place in places]
        ends = together(commands, box, chance)
        failures = _either(ends, "another run holds the ledger")
        for place, command in zip(places, commands, strict=True):
            last = child.run(command, box / "last")
            failures.unless(last.code == 0, f"the same command ends with {last.code}: {last.err[-400:]}")
            failures.unless((place / "out" / "manifest.json").exists(), "nothing was released")
        twice = Scenario(
            scenario.name, scenario.words, cost=None if scenario.cost is None else 2 * scenario.cost
        )
        failures += [
            failure for failure in paid(twice, box / "ledger.jsonl") if "part is paid" not in failure
        ]  # both runs have the same parts
        return f"exit codes {[one.code for one in ends]}", failures

    def _vanishing(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        out, away, instant = box / "out", box / "away", self._instant(scenario, chance)

        def vanish(_child: int) -> None:
            if out.exists():
                out.rename(away)

        ended = child.run(scenario.command(box, _charged(box)), box, act=(vanish, instant))
        gone = away.exists()
        if gone and ended.code == 0:  # it made its folder anew before anything was measured
            shutil.rmtree(away)
        elif gone:
            for name, path in [*child.files(out)] if out.exists() else []:
                if path.is_file() and not (away / name).exists():
                    (away / name).parent.mkdir(parents=True, exist_ok=True)
                    path.rename(away / name)
            shutil.rmtree(out, ignore_errors=True)
            away.rename(out)
        words = f"at {instant:.2f} s, {'gone' if gone else 'not made yet'}, exit code {ended.code}"
        return words, self._finished(scenario, box, ended)

    def _changing(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        """Under the test key, outputs are those of the records before or after the change, never of both."""
        copy = box / "world"
        own, file = _copied(self._baselines.world.folder, scenario, copy)
        old = file.read_bytes()
        change, instant = (
            chance.choice(("a line less", "the same size", "replaced by another file")),
            self._instant(scenario, chance),
        )
        new = _spoiled(old, file, change)

        def alter(_child: int) -> None:
            if change.startswith("replaced"):
                other = file.with_suffix(".new")
                other.write_bytes(new)
                other.replace(file)
            else:
                file.write_bytes(new)

        ended = child.run(own.command(box, TEST), box, act=(alter, instant))
        failures = Failures(said(ended))
        if ended.code == 0:
            seen, before = outputs(box), self._baselines.expected(scenario)
            file.write_bytes(new)
            (box / "after").mkdir()
            after = child.run(own.command(box / "after", TEST), box / "after")
            same = seen in (before, outputs(box / "after"))
            failures.unless(same, f"outputs of neither the old nor the new records ({after.code})")
        else:
            failures.unless(
                file.name.split(".")[0] in ended.err or "changed while" in ended.err,
                f"the file is not named: {ended.err[-400:]}",
            )
        return f"{file.name}, {change} at {instant:.2f} s, exit code {ended.code}", failures

    def _closed(self, scenario: Scenario, chance: random.Random, box: Path) -> Verdict:
        """As a user who may not write beside the data, in the output, or where the ledger is."""
        open_to = {"out": box / "free", "ledger": box / "books", "scratch": box / "scratch"}
        closed = chance.choice(sorted(open_to))
        for name, place in open_to.items():
            place.mkdir()
            os.chown(place, *((0, 0) if name == closed else (NOBODY, NOBODY)))
            place.chmod(0o755 if name == closed else 0o700)
        for name in ("tmp", "io"):
            (box / name).mkdir()
            os.chown(box / name, NOBODY, NOBODY)
        words = [
            str(open_to["out"] / "out") if word == str(box / "out") else word
            for word in scenario.command(box)
        ]
        words += ["--ledger", str(open_to["ledger"] / "ledger.jsonl"), "--scratch", str(open_to["scratch"])]

        def demoted() -> None:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

        ended = child.run(words, box, before=demoted)
        failures = Failures(said(ended))
        failures.unless(ended.code in (1, 3), f"exit code {ended.code}: {ended.err[-400:]}")
        failures.unless(str(open_to[closed]) in ended.err, f"the folder is not named: {ended.err[-400:]}")
        left = [path.relative_to(box).as_posix() for place in open_to.values() for path in place.rglob("*")]
        failures.unless(not left, f"left behind: {left[:5]}")
        return f"{closed}, exit code {ended.code}", failures


def _charged(box: Path) -> tuple[str, str]:
    """The words that name the ledger of a trial."""
    return "--ledger", str(box / "ledger.jsonl")


def together(commands: list[list[str]], box: Path, chance: random.Random) -> list[Ended]:
    """Commands that run at once, each after a short wait of its own."""
    places = [box / f"run-{number}" for number in range(len(commands))]
    children = []
    for command, place in zip(commands, places, strict=True):
        wait = chance.random() * 0.3
        children.append(child.start(command, place, before=lambda wait=wait: time.sleep(wait)))
    ends = [child.ended(one, place) for one, place in zip(children, places, strict=True)]
    for place in places:
        shutil.rmtree(place)
    return ends


def _either(ends: list[Ended], *words: str) -> Failures:
    """Of two commands at once one may be refused, because of the other and with these words; one at least is done."""
    failures = Failures()
    for ended in ends:
        failures += said(ended)
        refused = ended.code in (2, 3) and any(word in ended.err for word in words)
        failures.unless(ended.code == 0 or refused, f"exit code {ended.code}: {ended.err[-400:]}")
    failures.unless(any(one.code == 0 for one in ends), "neither was done")
    return failures


_RECORDS = {"run phsafe": "phsafe/data/persons.csv", "run safetab-p": "safetab/records/person-records.txt",
            "run safetab-h": "safetab/records/household-records.txt", "run e2e-1940": "e2e/data/histogram.parquet"}  # fmt: skip


def _copied(world: Path, scenario: Scenario, copy: Path) -> tuple[Scenario, Path]:
    """The command on a copy of its inputs, and a file of records among them."""
    file = _RECORDS[scenario.name]
    top = file.split("/")[0]
    copy.mkdir()
    shutil.copytree(world / top, copy / top)
    shutil.copy(world / "config.json", copy / "config.json")
    return world_of(scenario, world, copy), copy / file


def _spoiled(old: bytes, file: Path, change: str) -> bytes:
    """Other valid records, as text; of Parquet a file that is cut off, or holds its rows in another order."""
    if file.suffix == ".parquet":
        return old[: len(old) // 2] if change == "a line less" else old[:-8] + bytes(8)
    lines = old.splitlines(keepends=True)
    if change == "a line less":
        return b"".join(lines[:-1])
    return (
        b"".join([*lines[:-2], lines[-1], lines[-1]])
        if len(lines[-1]) == len(lines[-2])
        else b"".join([*lines[:-1], lines[-2]])
    )
