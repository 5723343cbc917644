"""Error against what an attacker finds beyond guessing: the figure that compares defenses, strengths of one kind joined by a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.outputs import number_text
from censafe.evaluation.pages.page import quiet
from censafe.publication.pages.exhibits import Exhibit, PageTable

_Row = Mapping[str, Any]
_COLORS: Final = (
    "#0b5c7a", "#d1762a", "#6b4c9a", "#4d7c2f", "#b3365b", "#8a6d1d", "#2f6fb0", "#5f6b76", "#a0522d", "#1d8a7a", "#7a3e9d", "#94603a",
)  # fmt: skip
DISTRICT_KEYS: Final = "block, voting age"
_PARTIAL: Final = "†"
"""Stands behind the names of defenses whose errors are those of other counts."""
_MARKERS: Final = "os^Dvph<>X"
_LABEL_HEIGHT: Final = 0.034
_BLANK: Final = 0.03
_MARK: Final = 0.012
"""Half of the width of a mark, as a share of the panel's."""
_LEFT_HALF: Final = 0.6


def efficient(rows: Sequence[_Row], errors: Sequence[str]) -> list[_Row]:
    """Rows of which no other is better: nowhere worse, in its errors and in what it gives away, and somewhere better.

    Example:
        >>> rows = [{"e": 0, "beyond_guessing": 9}, {"e": 1, "beyond_guessing": 2}, {"e": 2, "beyond_guessing": 3}]
        >>> [row["e"] for row in efficient(rows, ["e"])]
        [0, 1]
    """
    known = [row for row in rows if row["beyond_guessing"] is not None]
    values = [[row[name] for name in (*errors, "beyond_guessing")] for row in known]
    return [
        row
        for row, own in zip(known, values, strict=True)
        if not any(other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in values)
    ]


def frontier_exhibit(defenses: Sequence[_Row]) -> Exhibit:
    """The first figure of the page, and the numbers behind it.

    Args:
        defenses: rows of ``defenses.csv``, exact tables first.
    """
    full = [row for row in defenses if row["matched_by"] != DISTRICT_KEYS]
    partial = [_by_races(row) for row in defenses if row["matched_by"] == DISTRICT_KEYS]
    shown = [*full, *partial]
    lines = [
        [row["defense"], *(number_text(row[f"error_{level}"], 2) for level in ("block", "tract", "county")),
         number_text(row["withheld_block_percent"]), number_text(row["putative_percent"]), number_text(row["precision"]), number_text(row["beyond_guessing"])]
        for row in shown
    ]  # fmt: skip
    return Exhibit(
        "frontier",
        "What does each defense cost, and what does it hide?",
        "Read each figure from the lower left: there counts are close to the truth and the attack finds little more than neighbors give away. On the dashed line it finds no more. "
        "Lines join strengths of one kind of defense. A filled mark: no other defense is better in one and at least as good in the other."
        + (f" {_PARTIAL}: publishes race, origin and voting age only; its error is that of these counts, and it is not compared with the others." if partial else ""),
        _figure(shown, {"Counts of tracts": "error_tract", "Counts of blocks": "error_block"}),
        alt="Error of counts of tracts and of blocks against precision beyond the guesser, a point for each defense.",
        tables=[PageTable("Persons alone with sex and class of age in their block who differ from its most frequent race and origin; mean absolute errors of counts.", (
            "defense", "error, block", "tract", "county", "withheld, %", "matched, %", "right, %", "beyond, points"), lines, numbers=7)],
        how=[
            "Errors are those of all lines of the tables that are not 0 in truth; what is not published is read as 0. Withheld: of these lines of blocks. Right: of the matches.",
            "Of swapped, merged and recoded records the exact tables are published and reconstructed; rounded, suppressed and perturbed tables are reconstructed from what their values allow, a published 0 read as 0 "
            "first, and where no records fit from the nearest; microdata are matched as they are. An attacker matches by what is published: by age groups where ages are grouped, by areas where blocks are merged. Race is right where all of the 63 sets agree, also where only groups are published.",
            "Tables of tracts and counties are not used in the attack. An agency that publishes them as well gives more away than is shown here: suppressed counts of a block can follow from those of its tract and its neighbors.",
        ],
        files=["defenses.csv"],
    )  # fmt: skip


def districts_exhibit(defenses: Sequence[_Row]) -> Exhibit:
    """The same for the counts that redistricting data publish; for pages that compare such data.

    Args:
        defenses: rows of ``defenses.csv``, exact tables first.
    """
    lines = [
        [row["defense"], row["matched_by"], *(number_text(row[f"race_error_{level}"], 2) for level in ("block", "tract", "county")),
         number_text(row["putative_percent"]), number_text(row["precision"]), number_text(row["beyond_guessing"])]
        for row in defenses
    ]  # fmt: skip
    return Exhibit(
        "districts",
        "And if only race, origin and voting age are published?",
        "Redistricting data do not say sex or age, so that an attacker can match by block and voting age only: exact ones already give less away than exact tables of sex and age. Protected ones are to be read beside these.",
        _figure(defenses, {"Counts of race, origin and voting age, tracts": "race_error_tract"}),
        alt="Error of tract counts of race, origin and voting age against precision beyond the guesser, a point for each defense.",
        tables=[PageTable("Errors of the counts of race, origin and voting age alone; the same persons at risk.", (
            "defense", "matched by", "error, block", "tract", "county", "matched, %", "right, %", "beyond, points"), lines, numbers=6)],
        how=[
            "What these data cannot tell, an attacker does not learn from them: sex and age stay hidden, and race and origin are found of whoever is matched in the block among all of the same voting age. The persons looked for, and "
            "the guesser, are the same as for the other defenses.",
        ],
        files=["defenses.csv"],
    )  # fmt: skip


def _by_races(row: _Row) -> _Row:
    """A defense that publishes race, origin and voting age only, with the errors of these counts."""
    errors = {f"error_{level}": row[f"race_error_{level}"] for level in ("block", "tract", "county")}
    return {
        **row,
        **errors,
        "defense": f"{row['defense']} {_PARTIAL}",
        "family": row["family"] and f"{row['family']} {_PARTIAL}",
        "withheld_block_percent": None,
    }


def _figure(rows: Sequence[_Row], panels: Mapping[str, str]) -> Figure:
    """A panel for each error, by its title."""
    figure = Figure(figsize=(8, 4.6 * len(panels)), layout="constrained")
    styles = _styles(rows)
    for axes, (title, error) in zip(
        figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True
    ):
        _panel(axes, rows, error, styles)
        axes.set_title(title, fontsize=10, loc="left")
    return figure


def _styles(defenses: Sequence[_Row]) -> dict[str, tuple[str, str]]:
    """Color and mark of every family; a defense without one stands for itself."""
    names = list(dict.fromkeys(_family(row) for row in defenses))
    return {
        name: (_COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)])
        for place, name in enumerate(names)
    }


def _family(row: _Row) -> str:
    return row["family"] or row["defense"]


def _panel(axes: Axes, rows: Sequence[_Row], error: str, styles: Mapping[str, tuple[str, str]]) -> None:
    shown = [row for row in rows if row["beyond_guessing"] is not None]
    compared = [row for row in shown if not row["defense"].endswith(_PARTIAL)]
    best = {row["defense"] for row in efficient(compared, [error])}
    for family in dict.fromkeys(map(_family, shown)):
        color, mark = styles[family]
        own = sorted((row for row in shown if _family(row) == family), key=lambda row: row["strength"] or 0)
        axes.plot(
            [row[error] for row in own],
            [row["beyond_guessing"] for row in own],
            color=color,
            linewidth=1.3,
            alpha=0.7,
            zorder=2,
        )
        for row in own:
            fill = color if row["defense"] in best else "white"
            axes.plot(
                row[error],
                row["beyond_guessing"],
                mark,
                markersize=6.5,
                markerfacecolor=fill,
                markeredgecolor=color,
                markeredgewidth=1.4,
                zorder=5,
            )
    axes.axhline(0, color="#9aa5b1", linewidth=1, linestyle="--")
    axes.set_xscale("symlog", linthresh=1, linscale=0.7)
    axes.set_xlim(-0.08, max((row[error] for row in shown), default=1) * 1.9 + 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    low, high = (pick([0.0, *(row["beyond_guessing"] for row in shown)]) for pick in (min, max))
    axes.set_ylim(low - 0.08 * (high - low + 1), high + 0.08 * (high - low + 1))
    axes.set_xlabel("mean absolute error of a count, persons (logarithmic above 1)", fontsize=9)
    axes.set_ylabel("right beyond guessing, percentage points", fontsize=9)
    quiet(axes)
    _label(axes, shown, error, styles)


def _label(axes: Axes, rows: Sequence[_Row], error: str, styles: Mapping[str, tuple[str, str]]) -> None:
    """Names beside the marks, moved up or down where they would lie on each other or on a mark."""
    to_axes = axes.transData + axes.transAxes.inverted()
    marks = [to_axes.transform((row[error], row["beyond_guessing"])) for row in rows]
    taken = [(x - _MARK, x + _MARK, y) for x, y in marks]  # left, right, middle
    for row in sorted(rows, key=lambda row: -row["beyond_guessing"]):
        x, y = to_axes.transform((row[error], row["beyond_guessing"]))
        width = 0.0115 * len(row["defense"])
        left = x + _BLANK if x < _LEFT_HALF or x + width < 1 else x - _BLANK - width
        places = (
            place for step in range(60) for place in (y - step * 0.5 * _LABEL_HEIGHT, y + step * 0.5 * _LABEL_HEIGHT)
            if all(abs(place - other) >= _LABEL_HEIGHT or left > end or left + width < begin for begin, end, other in taken)
        )  # fmt: skip
        at = next(places, y)
        taken.append((left, left + width, at))
        axes.annotate(
            row["defense"], (row[error], row["beyond_guessing"]), xytext=(left, at), textcoords="axes fraction", fontsize=7.5, va="center", zorder=4,
            color=styles[_family(row)][0],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6}, arrowprops={"arrowstyle": "-", "color": "#b8c0c8", "linewidth": 0.6, "shrinkB": 4} if abs(at - y) > _LABEL_HEIGHT else None,
        )  # fmt: skip
