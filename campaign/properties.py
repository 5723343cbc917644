"""Properties: the suite's property tests with new seeds; the suite itself always draws the same examples."""

from __future__ import annotations

import random
import re
from pathlib import Path

from campaign.mutants import ROOT, tested
from campaign.trials import Failures, Finding

_NO_TESTS = 5  # exit code of pytest where every test of a file is deselected


def property_files() -> tuple[str, ...]:
    """Test files that use Hypothesis; those of ``tests/property`` first."""
    tests = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "import given" in path.read_text())
    ordered = sorted(tests, key=lambda path: path.parent.name != "property")
    return tuple(str(path.relative_to(ROOT)) for path in ordered)


class Properties:
    """One file of property tests a trial, under a seed of the trial."""

    name = "properties"
    short = 0

    def __init__(self) -> None:
        self._files = property_files()
        self.long = 10 * len(self._files)

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Files take turns; the seed is part of the words, so that the failure can be repeated by hand."""
        box.mkdir(parents=True)
        file, seed = self._files[number % len(self._files)], chance.randrange(2**32)
        explore = (
            "-m",
            "hypothesis and not long",
            "--hypothesis-profile=campaign",
            f"--hypothesis-seed={seed}",
        )
        code, out = tested(ROOT / "src", [file, *explore], box)
        failures = Failures()
        failures.unless(code in (0, _NO_TESTS), f"{file} fails with --hypothesis-seed={seed}: {out[-3000:]}")
        passed = re.search(r"(\d+) passed", out)
        return Finding(f"{file}, seed {seed}", failures, {"tests": int(passed[1]) if passed else 0})
