"""What a trial is, and what one found."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Finding:
    """What a trial came to: what was tried, what went wrong (a sentence each), and further values for the report."""

    name: str
    failures: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class Part(Protocol):
    """One kind of attack on the program."""

    name: str  # in figures and on the command line
    long: int  # trials of the long form
    short: int

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """One trial in a folder that is removed afterward; the same number and seed is the same trial."""
        ...


class Failures(list[str]):
    """Sentences, collected by conditions."""

    def unless(self, holds: bool, sentence: str) -> None:
        """Note what did not hold."""
        if not holds:
            self.append(sentence)
