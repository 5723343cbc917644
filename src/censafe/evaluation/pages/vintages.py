"""Exhibits of several vintages beside each other, from the files of ``evaluate pair`` alone, and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.confidential import legend_below
from censafe.evaluation.outputs import number_text, read_frame
from censafe.evaluation.pages.page import Triple, capital, exhibit, interval, panel_grid, plain_log, quiet
from censafe.evaluation.pairs.vintages import MAIN
from censafe.publication.pages.exhibits import Exhibit

_COLORS: Final = ("#0b5c7a", "#d1762a", "#6b4c9a", "#4d7c2f", "#b0413e", "#9aa5b1")
_HATCHES: Final = ("", "//", "..", "xx")
_LINEAR: Final = 20  # ratio of the tallest bar to the lowest one beyond which heights are logarithmic
_LABELED: Final = 18  # bars of a panel that have room for their value


def draw_bars(panels: Mapping[str, Mapping[str, Sequence[Triple]]], places: Sequence[str]) -> Figure:
    """A panel for each measure, at each place one bar for each vintage."""
    figure, grid = panel_grid(len(panels), 2.9)
    for axes, (title, vintages) in zip(grid, panels.items(), strict=True):
        _panel(axes, title, vintages, places)
    legend_below(figure, grid[0], columns=4)
    return figure


def _panel(axes: Axes, title: str, vintages: Mapping[str, Sequence[Triple]], places: Sequence[str]) -> None:
    width = 0.8 / len(vintages)
    at = np.arange(len(places))
    for place, (name, values) in enumerate(vintages.items()):
        table = np.array(values, float).reshape(-1, 3)
        middle, low, high = np.where(np.isfinite(table), table, np.nan).T
        ends = np.nan_to_num(np.vstack([middle - low, high - middle])).clip(min=0)
        offset = (place - (len(vintages) - 1) / 2) * width
        axes.bar(
            at + offset, np.nan_to_num(middle), width * 0.92, label=name, color=_COLORS[place % len(_COLORS)],
            hatch=_HATCHES[place // len(_COLORS) % len(_HATCHES)], edgecolor="white", linewidth=0,
        )  # fmt: skip
        shown = ends.max(axis=0) > 0
        axes.errorbar(
            (at + offset)[shown], middle[shown], yerr=ends[:, shown], fmt="none", ecolor="#333333",
            elinewidth=0.8, capsize=1.5,
        )  # fmt: skip
        if len(vintages) * len(places) <= _LABELED:
            for x, value, top in zip(at + offset, middle, np.fmax(middle, high), strict=True):
                if np.isfinite(value):
                    text = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
                    axes.annotate(
                        text,
                        (x, max(top, 0.0)),
                        (0, 2),
                        textcoords="offset points",
                        fontsize=6.5,
                        ha="center",
                    )
    heights = np.array([value for values in vintages.values() for value, _, _ in values], float)
    heights = heights[np.isfinite(heights)]
    if len(heights) and heights.min() > 0 and heights.max() > _LINEAR * heights.min():
        axes.set_yscale("log")
        axes.set_ylabel("logarithmic", fontsize=8)
        axes.set_ylim(heights.min() / 2)
        plain_log(axes.yaxis)
    else:
        axes.axhline(0, color="#555555", linewidth=0.8)
    axes.set_xticks(at, [name.replace("_", " ") for name in places], fontsize=8)
    axes.margins(y=0.12)
    quiet(axes, title=title)
    axes.grid(visible=False, axis="x")


_MEASURES: Final[Mapping[str, str]] = {
    "mean_ae": "mean error, records",
    "rmse": "root mean square error, records",
    "me": "bias, records",
    "pct95_ae": "95th percentile of the error, records",
    "max_ae": "largest error, records",
    "mape": "mean error, percent (MAPE)",
    "epl": "empirical privacy loss",
}
_PLACES: Final = 8  # levels and lists that a figure has room for

Values = Mapping[tuple[str, str, str, str], Triple]


def vintage_exhibits(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    """Errors by characteristic, and every measure of the first characteristic, a bar and a column for each vintage."""
    values = _values(folder)
    words: Mapping[str, str] = document["words"]
    places = [*document["levels"], *document.get("lists", [])]
    vintages: Sequence[str] = document["vintages"]
    errors = [(query, "mean_ae", text) for query, text in words.items()]
    first = next(iter(words))
    measures = [(first, metric, text) for metric, text in _MEASURES.items()]
    files = [name for name in ("metrics_long.csv", "epl.csv", "codebook.csv") if (folder / name).exists()]
    exhibits = (
        _exhibit(
            "vintages", "Which vintage is nearer to the truth?", "Mean absolute error in records", errors,
            values, vintages, places, files,
        ),
        _exhibit(
            "vintage-measures", f"And by other measures? Vintages by the {words[first]}",
            f"Measures of the {words[first]}", measures, values, vintages, places, files,
        ),
    )  # fmt: skip
    return [one for one in exhibits if one is not None]


def _values(folder: Path) -> Values:
    """Values with their intervals by vintage, characteristic, level and measure, of all areas of a level."""
    found: dict[tuple[str, str, str, str], Triple] = {}
    if (folder / "metrics_long.csv").exists():
        rows = read_frame(folder, "metrics_long", ("vintage",)).to_pylist()
        rows = [row for row in rows if row["suite"] == "accuracy" and row["size_class"] == "all"]
        for row in sorted(rows, key=lambda row: row["run_id"] == "pooled"):  # several runs: all together
            found[row["vintage"], row["characteristic"], row["level"], row["metric"]] = interval(row)
    if (folder / "epl.csv").exists():
        for row in read_frame(folder, "epl", ("vintage", "estimator", "statistic")).to_pylist():
            if row["size_class"] == "all" and row["reported"]:
                found[row["vintage"], row["characteristic"], row["level"], "epl"] = interval(row)
    return found


def _exhibit(
    name: str,
    question: str,
    caption: str,
    measures: Sequence[tuple[str, str, str]],
    values: Values,
    vintages: Sequence[str],
    places: Sequence[str],
    files: Sequence[str],
) -> Exhibit | None:
    """One panel of bars and one group of rows for each (characteristic, measure, words)."""
    panels: dict[str, dict[str, list[Triple]]] = {}
    sections = []
    for query, metric, words in measures:
        bars = {
            vintage: [values.get((vintage, query, at, metric), interval(None)) for at in places]
            for vintage in vintages
        }
        known = [
            place
            for place, at in enumerate(places)
            if any((vintage, query, at, metric) in values for vintage in vintages)
        ]
        if known:
            panels[words] = bars
            lines = [
                [places[at].replace("_", " "), *(number_text(own[at][0], 2) for own in bars.values())]
                for at in known
            ]
            sections.append((capital(words), lines))
    if not sections:
        return None
    return exhibit(
        "pair.vintages",
        name=name,
        question=question,
        files=files,
        figure=draw_bars(panels, places) if len(places) <= _PLACES else None,
        caption=caption,
        columns=("Level", *vintages),
        sections=sections,
        vintages=", ".join(vintages),
        main=MAIN,
    )
