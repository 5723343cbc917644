"""What the page of a comparison of defenses says in its first sentences."""

from __future__ import annotations

from typing import Any

import pytest

from censafe.attack.pages.comparison import _answer


def row(name: str, precision: float | None, error: float) -> dict[str, Any]:
    """A defense with the precision of its attack; guessing is right in 8.2% of the matches."""
    return {
        "defense": name, "does": "swaps", "folder": name, "precision": precision, "guesser_precision": 8.2, "matched_by": "sex and age",
        "beyond_guessing": None if precision is None else precision - 8.2,
        **{f"{kind}_{level}": error for kind in ("error", "race_error") for level in ("block", "tract")},
    }  # fmt: skip


@pytest.mark.parametrize("precision", [0.0, 8.2])
def test_no_defense_takes_half_of_a_lead_that_there_is_not(precision: float) -> None:
    exact, *others = row("exact", precision, 0.0), row("round:5", 3.0, 2.0), row("swap:LO", 0.0, 1.0)
    first, second = _answer([exact, *others])
    assert f"is right about race and origin in {precision}% of the matches" in first
    assert second.startswith("The attack on exact tables does not beat guessing")
    assert "half" not in first + second


def test_a_lead_is_taken_away_in_part() -> None:
    text = " ".join(_answer([row("exact", 48.2, 0.0), row("round:5", 18.2, 2.0), row("swap:LO", 40.2, 1.0)]))
    assert "1 of the 2 defenses take away at least half of the attacker's lead" in text
    assert "leaves the least: 10.0 of 40.0 percentage points" in text
