"""The page of an evaluation, one self-contained HTML file, and figures of errors by level and number of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator

from censafe.evaluation.confidential import COMPARED, Confidentiality
from censafe.publication.pages.exhibits import Exhibit, ExhibitSheet, sheet_html

_FOOTERS: Final = {
    Confidentiality.COMPARED: COMPARED,
    Confidentiality.PUBLISHED: "Public, by the word of its operator: what stands for the truth on this page was published before.",
    Confidentiality.PUBLIC: "Public: everything on this page follows from published figures and the published noise laws; no true count was used.",
}


@dataclass(frozen=True, eq=False)
class Page:
    """A whole evaluation."""

    title: str
    kicker: str
    answer: Sequence[str]
    facts: Sequence[tuple[str, str, str]]
    exhibits: Sequence[Exhibit]
    settings: Sequence[tuple[str, str]] = field(default_factory=tuple)
    standing: Confidentiality = Confidentiality.COMPARED


def page_html(page: Page) -> str:
    """The page as HTML; nothing on it is loaded from elsewhere and nothing is a script."""
    sheet = ExhibitSheet(
        page.title,
        page.kicker,
        page.answer,
        page.facts,
        page.exhibits,
        page.settings,
        footer=_FOOTERS[page.standing],
        banner=_banner(page),
    )
    mark = "CONFIDENTIAL: " if page.standing.confidential else ""
    return sheet_html(sheet, mark, "How this evaluation was made")


def _banner(page: Page) -> str:
    if not page.standing.confidential:
        return ""
    return (
        '<div class="banner" role="alert"><strong>CONFIDENTIAL: compares with the truth</strong>'
        "<p>Errors reveal true counts: anyone who has the published files can subtract. Do not publish or copy.</p></div>"
    )


COLORS: Final = {
    "topdown": "#0b5c7a",
    "noisy": "#d1762a",
    "blocks": "#6b4c9a",
    "blocks_noise": "#9aa5b1",
    "srs": "#4d7c2f",
}
MARKERS: Final = {"topdown": "o", "noisy": "s", "blocks": "^", "blocks_noise": "v", "srs": "s"}


PANEL_ROOM: Final = 0.12
"""Inches above and below a panel, so that a title stands apart from the words under the panel above it."""


def draw_levels(
    errors: Mapping[str, Mapping[str, Sequence[tuple[float, float, float]]]],
    levels: Sequence[str],
    words: Mapping[str, str],
) -> Figure:
    """Mean absolute error at every level, a panel for each characteristic and a line for each method."""
    panels = len(errors)
    columns = min(2, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(10, 3.3 * rows + 0.6), layout=ConstrainedLayoutEngine(h_pad=PANEL_ROOM))
    grid = np.atleast_1d(figure.subplots(rows, columns)).reshape(-1)
    for axes, (title, methods) in zip(grid, errors.items(), strict=False):
        _level_panel(axes, title, methods, levels)
    for axes in grid[panels:]:
        axes.set_visible(False)
    lines: dict[str, Any] = {}
    for axes in grid[:panels]:
        lines.update(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    seen = [name for name in words if name in lines]
    figure.legend(
        [lines[name] for name in seen], [words[name] for name in seen], loc="outside lower center", ncols=4,
        frameon=False, fontsize=9,
    )  # fmt: skip
    return figure


def _level_panel(
    axes: Axes,
    title: str,
    methods: Mapping[str, Sequence[tuple[float, float, float]]],
    levels: Sequence[str],
) -> None:
    for method, values in methods.items():
        table = np.array(values, float).reshape(-1, 3)
        shown = np.isfinite(table[:, 0]) & (table[:, 0] > 0)
        if not shown.any():
            continue
        places = np.arange(len(levels))[shown]
        middle, low, high = table[shown].T
        bars = np.nan_to_num(np.vstack([middle - low, high - middle])).clip(min=0)
        bars[0] = np.minimum(bars[0], middle * 0.999)
        axes.errorbar(
            places, middle, yerr=bars, color=COLORS[method], marker=MARKERS[method], markersize=5,
            linewidth=1.4, capsize=2, label=method,
        )  # fmt: skip
    axes.set_yscale("log")
    plain_log(axes.yaxis)
    axes.set_xticks(range(len(levels)), [name.replace("_", " ") for name in levels], fontsize=8)
    axes.set_xlim(-0.4, len(levels) - 0.6)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel("mean absolute error, records", fontsize=9)
    quiet(axes)


def draw_growth(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> Figure:
    """Root mean square error of totals against the number of blocks, a panel for each level."""
    levels = list(dict.fromkeys(row["level"] for row in rows))
    figure = Figure(figsize=(max(3.6 * len(levels), 6), 3.9), layout="constrained")
    grid = np.atleast_1d(figure.subplots(1, len(levels), sharey=True))
    seen: dict[str, Any] = {}
    for axes, level in zip(grid, levels, strict=True):
        for method in words:
            chosen = [
                row for row in rows if row["level"] == level and row["method"] == method and row["rmse"] > 0
            ]
            if chosen:
                line = axes.plot(
                    [row["blocks_mean"] for row in chosen], [row["rmse"] for row in chosen],
                    color=COLORS[method], marker=MARKERS[method], markersize=5, linewidth=1.2,
                )  # fmt: skip
                seen[method] = line[0]
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log(axes.xaxis)
        plain_log(axes.yaxis)
        axes.set_title(level.replace("_", " "), fontsize=10)
        axes.set_xlabel("blocks in the area", fontsize=9)
        quiet(axes)
    grid[0].set_ylabel("RMSE of the total, records", fontsize=9)
    figure.legend(
        list(seen.values()), [words[name] for name in seen], loc="outside lower center", ncols=2 if len(levels) < 3 else 4,
        frameon=False, fontsize=9,
    )  # fmt: skip
    return figure


def plain_log(axis: Any) -> None:
    """Ticks of a logarithmic axis at 1, 2, 5 times powers of ten, as plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))


def quiet(axes: Axes) -> None:
    """A grid behind what is drawn, no frame above and at the right, small labels."""
    axes.grid(color="#e3e7ec", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
