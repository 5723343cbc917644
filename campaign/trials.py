"""What a trial is, and what one found."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Finding:
    """What a trial came to.

    Args:
        name: what was tried.
        failures: what went wrong, a sentence each; none where the program held.
        facts: further values for the report.
    """

    name: str
    failures: tuple[str, ...] = ()
    facts: dict[str, Any] | None = None


class Part(Protocol):
    """One kind of attack on the program."""

    name: str
    """In figures and on the command line."""

    long: int
    """Trials of the long form."""

    short: int
    """Trials of the short form."""

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """One trial in an empty folder.

        Args:
            number: of the trial; the same number and seed is the same trial.
            chance: what it draws from.
            box: a folder that is removed afterwards.
        """
        ...


Check = Callable[[bool, str], None]


class Failures(list[str]):
    """Sentences, collected by conditions."""

    def unless(self, holds: bool, sentence: str) -> None:
        """Note what did not hold."""
        if not holds:
            self.append(sentence)
