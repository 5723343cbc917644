"""The last part of the demonstration: defenses of a small synthetic state beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from censafe.attack.comparison.entry import compare_defenses_on
from censafe.attack.study import AttackChoices
from censafe.model.observer import Observer
from censafe.population.synthetic.dhc.writing import synthesize_dhc

_SHARE: Final = (
    300  # of the persons of the demonstration, so that an attack on all defenses takes ten seconds
)
_LEAST: Final = 1_000
_SECONDS: Final = 20.0  # many times what a block takes, so that results are the same on a slow machine
_DEFENSES: Final = ("swap:LO", "swap:HI", "round:3", "round:5", "suppress:threshold=3", "topdown:pl94-us")


def demonstrate_defenses(
    out: Path, persons: int, state: str, seed: int, observer: Observer
) -> tuple[str, Mapping[str, str]]:
    """Draw a few thousand persons of a state, apply defenses to them, and attack what each publishes."""
    observer.remark("attack and defenses")
    records, place = out / "records", out / "attack"
    with observer.stage("synthetic records"):
        synthesize_dhc(records, persons=max(_LEAST, persons // _SHARE), states=(state,), seed=seed)
    choices = AttackChoices(seconds=_SECONDS, seed=seed)
    found = compare_defenses_on(records, place, _DEFENSES, choices, observer)
    return "\n".join(found.lines), {
        "attack/report.html": "which defense hides whom, and at what price: all of them attacked (open in a browser)"
    }
