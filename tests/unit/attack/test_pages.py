"""What the page of a comparison of defenses says in its first sentences."""

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from censafe.attack.pages import DISTRICT_KEYS, _comparison_answer, frontier_exhibit
from censafe.attack.results import CENSUS_WORDS


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
    first, second = _comparison_answer([exact, *others])
    assert f"is right about race and origin in {precision}% of the matches" in first
    assert second.startswith("The attack on exact tables does not beat guessing")
    assert "half" not in first + second


def test_a_lead_is_taken_away_in_part() -> None:
    text = " ".join(
        _comparison_answer([row("exact", 48.2, 0.0), row("round:5", 18.2, 2.0), row("swap:LO", 40.2, 1.0)])
    )
    assert "1 of the 2 defenses take away at least half of the attacker's lead" in text
    assert "leaves the least: 10.0 of 40.0 percentage points" in text


def test_own_words_stand_in_the_place_of_those_of_the_census() -> None:
    words = replace(
        CENSUS_WORDS, prefix="own_", area="Grid", known="Grid and sex", target="citizenship", levels=("Grid", "Country"),
        at_risk="differ from the most frequent citizenship of their Grid",
    )  # fmt: skip
    rows = [
        {**row(name, precision, error), "error_Grid": error, "error_Country": error + 1}
        for name, precision, error in (("exact", 48.2, 0.0), ("round:5", 18.2, 2.0))
    ]
    text = " ".join(_comparison_answer(rows, words))
    assert (
        "an attacker who knows Grid and sex is right about citizenship in 48.2% of the matches with persons who differ from"
        in text
    )
    assert "mean error 2.00 persons in a count of the level Grid, 3.00 in one of the level Country" in text
    lost = _comparison_answer([{**rows[0], "precision": 8.2, "beyond_guessing": 0.0}, rows[1]], words)
    assert lost[1].startswith("The attack on exact tables does not beat guessing (0.0 percentage points)")
    assert len(lost) == 2


def full_row(name: str, beyond: float, error: float, matched_by: str = "block, sex, age") -> dict[str, Any]:
    errors = {
        f"{kind}_{level}": error for kind in ("error", "race_error") for level in ("block", "tract", "county")
    }
    return {
        "defense": name, "family": "", "strength": None, "matched_by": matched_by, "beyond_guessing": beyond,
        "withheld_block_percent": 0.0, "putative_percent": 100.0, "precision": 8.2 + beyond, **errors,
    }  # fmt: skip


def test_the_first_figure_has_every_defense_also_those_of_redistricting_data() -> None:
    """Defenses of other counts stand with the errors of these, marked, and are not among the efficient ones."""
    rows = [full_row("exact tables", 40.0, 0.0), full_row("swap:LO", 38.0, 0.5)]
    partial = full_row("topdown:pl94-us", -1.0, 9.0, DISTRICT_KEYS)
    partial.update({f"race_error_{level}": 3.0 for level in ("block", "tract", "county")})
    exhibit = frontier_exhibit([*rows, partial])
    assert exhibit.figure is not None
    for axes in exhibit.figure.axes:
        labels = {text.get_text() for text in axes.texts}
        assert labels == {"exact tables", "swap:LO", "topdown:pl94-us †"}
        marks = {tuple(line.get_xydata()[0]): line for line in axes.lines if line.get_marker() != "None"}
        assert marks[3.0, -1.0].get_markerfacecolor() == "white"
    assert "†: publishes race, origin and voting age only" in exhibit.answer
    assert [line[1] for line in exhibit.tables[0].rows] == ["0.00", "0.50", "3.00"]
    assert "†" not in frontier_exhibit(rows).answer


def test_no_mark_lies_on_a_label() -> None:
    """The labels of five defenses close to each other keep apart from all marks."""
    rows = [full_row(f"swap:rate={place}", 30.0 - place / 2, place / 10) for place in range(5)]
    figure = frontier_exhibit(
        [full_row("exact tables", 30.5, 0.0), *rows, full_row("round:5", 0.0, 8.0)]
    ).figure
    assert figure is not None
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        marks = [
            axes.transData.transform(line.get_xydata()[0])
            for line in axes.lines
            if line.get_marker() != "None"
        ]
        for label in axes.texts:
            box = Text.get_window_extent(label)  # without the line to its mark
            inside = [mark for mark in marks if box.x0 < mark[0] < box.x1 and box.y0 < mark[1] < box.y1]
            assert inside == [], label.get_text()
