"""Mutants: planted defects of the release path, each in a copy of the program, and the tests that must fail there.

Every one of them stands in mutants.toml: which words of which file are replaced by which, and the tests that are run. A defect is killed
when at least one of these tests fails; that all of them pass without any defect is the first trial.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from campaign.trials import Failures, Finding

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LONGEST = 600
_PASSED, _FAILED = 0, 1  # exit codes of pytest; others mean that the tests did not run
_NAMED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
_ERROR = re.compile(r"^E +(\w+)", re.MULTILINE)
_BROKEN = {"ImportError", "IndentationError", "ModuleNotFoundError", "NameError", "SyntaxError"}


@dataclass(frozen=True)
class Mutant:
    """One planted defect."""

    name: str  # what is wrong
    file: str  # below the package
    old: str  # words of it, which stand there once
    new: str  # what stands there instead
    tests: tuple[str, ...]  # as pytest names them; one of them must fail

    def plant(self, package: Path) -> None:
        """Spoil a copy of the package.

        Raises:
            ValueError: the words do not stand there once.
        """
        path = package / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the words stand {text.count(self.old)} times in {self.file}")
        path.unlink()  # the copy is a link to the file itself
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def mutants() -> tuple[Mutant, ...]:
    """All of them."""
    listed = tomllib.loads((HERE / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    return tuple(Mutant(**{**one, "tests": tuple(one["tests"])}) for one in listed)


class Mutants:
    """Planted defects, each of which a test must find."""

    name = "mutants"
    short = 1

    def __init__(self, *, quick: bool) -> None:
        self._quick = quick
        self._mutants = mutants()
        self.long = 1 + len(self._mutants)

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Run the tests of one defect; in the long form each once, after all tests without a defect."""
        box.mkdir(parents=True)
        if self._quick:
            return self._killed(chance.choice(self._mutants), box)
        return self._killed(self._mutants[number - 1], box) if number else self._sound(box)

    def _sound(self, box: Path) -> Finding:
        tests = sorted({test for one in self._mutants for test in one.tests})
        code, out = tested(ROOT / "src", tests, box)
        failures = Failures()
        failures.unless(code == _PASSED, f"the tests fail without a defect: {out[-900:]}")
        return Finding(f"{len(tests)} tests without a defect", failures, {"tests": len(tests)})

    def _killed(self, mutant: Mutant, box: Path) -> Finding:
        shutil.copytree(ROOT / "src", box / "src", copy_function=os.link)
        mutant.plant(box / "src" / "censafe")
        code, out = tested(box / "src", mutant.tests, box)
        return judged(mutant, code, out)


def judged(mutant: Mutant, code: int, out: str) -> Finding:
    """What the tests of a defect say of it; one whose own words do not run shows nothing."""
    failures = Failures()
    failures.unless(code != _PASSED, f"no test sees it: {', '.join(mutant.tests)}")
    failures.unless(code in (_PASSED, _FAILED), f"the tests did not run ({code}): {out[-900:]}")
    by, error = (next(iter(pattern.findall(out)), "") for pattern in (_NAMED, _ERROR))
    failures.unless(error not in _BROKEN, f"the defect does not run: {error}")
    return Finding(mutant.name, failures, {"killed": code == _FAILED, "by": by, "error": error})


def tested(source: Path, tests: tuple[str, ...] | list[str], box: Path) -> tuple[int, str]:
    """Exit code and output of pytest against one copy of the package, until the first failure."""
    (box / "tmp").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment |= {"PYTHONPATH": str(source), "TMPDIR": str(box / "tmp")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:xdist",
        "-m",
        "not long",
        "--tb=short",
        *tests,
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    return done.returncode, done.stdout + done.stderr
