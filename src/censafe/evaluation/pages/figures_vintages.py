"""Figures of several vintages beside each other: a bar for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from censafe.evaluation.pages.page import PANEL_ROOM, plain_log, quiet

__all__ = ["draw_bars"]

Triple = tuple[float, float, float]
_COLOURS: Final = ("#0b5c7a", "#d1762a", "#6b4c9a", "#4d7c2f", "#b0413e", "#9aa5b1")
_HATCHES: Final = ("", "//", "..", "xx")
_LINEAR: Final = 20  # ratio of the tallest bar to the lowest one beyond which heights are logarithmic
_LABELLED: Final = 18  # bars of a panel that have room for their value


def draw_bars(panels: Mapping[str, Mapping[str, Sequence[Triple]]], places: Sequence[str]) -> Figure:
    """A panel for each measure, at each place one bar for each vintage.

    Args:
        panels: by measure and vintage, for every place value, lower and upper end (NaN without).
        places: levels and lists of areas, the widest first.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(10, 2.9 * rows + 0.6), layout=ConstrainedLayoutEngine(h_pad=PANEL_ROOM))
    grid = np.atleast_1d(figure.subplots(rows, columns)).reshape(-1)
    for axes, (title, vintages) in zip(grid, panels.items(), strict=False):
        _panel(axes, title, vintages, places)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
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
            at + offset, np.nan_to_num(middle), width * 0.92, label=name, color=_COLOURS[place % len(_COLOURS)],
            hatch=_HATCHES[place // len(_COLOURS) % len(_HATCHES)], edgecolor="white", linewidth=0,
        )  # fmt: skip
        shown = ends.max(axis=0) > 0
        axes.errorbar(
            (at + offset)[shown], middle[shown], yerr=ends[:, shown], fmt="none", ecolor="#333333",
            elinewidth=0.8, capsize=1.5,
        )  # fmt: skip
        if len(vintages) * len(places) <= _LABELLED:
            for x, value, top in zip(at + offset, middle, np.fmax(middle, high), strict=True):
                text = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
                if np.isfinite(value):
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
    axes.set_title(title, fontsize=10)
    quiet(axes)
    axes.grid(visible=False, axis="x")
