"""Figures 1 to 3 of Petti & Flaxman, on any population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from censafe.evaluation.pages.page import COLORS, Rows, number, one_panel, plain_log, quiet, shade, spaced


def draw_curves(curves: Mapping[float, Rows], symbol: str) -> Figure:
    """Figure 1: residuals of stratified counts on the unit grid, and their empirical privacy loss."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for place, (budget, rows) in enumerate(curves.items()):
        color = shade(place, len(curves), 0.1)
        label = f"{symbol} = {budget:g}"
        x = [row["x"] for row in rows]
        left.step(x, [row["hist"] for row in rows], where="mid", color=color, linewidth=1.3, label=label)
        right.plot(x, [number(row["smooth_epl"]) for row in rows], color=color, linewidth=1.3, label=label)
    for axes, title, words in (
        (left, "(a) residuals", "counts with this residual"),
        (right, "(b) empirical privacy loss", "log ratio of neighboring densities"),
    ):
        axes.set_xlim(-50, 50)
        quiet(axes, title=title, x="published less true count, records", y=words)
    right.axhline(0, color="#555555", linewidth=0.8)
    left.legend(frameon=False, fontsize=9)
    return figure


def draw_trade(topdown: Rows, srs: Rows, symbol: str) -> Figure:
    """Figure 2: error against empirical privacy loss, TopDown by budget and samples by rate."""
    figure, axes = one_panel(8, 5)
    named: list[tuple[float, float, str, str]] = []
    for rows, method, words, key, unit in (
        (topdown, "topdown", "TopDown", "epsilon", ""),
        (srs, "srs", "simple random sample (not differentially private)", "sample_pct", "%"),
    ):
        known = [row for row in rows if np.isfinite(number(row["epl"])) and number(row["epl"]) > 0]
        if not known:
            continue
        x, y = [row["epl"] for row in known], [row["median_ae"] for row in known]
        form = "o-" if method == "topdown" else "s"
        axes.plot(x, y, form, color=COLORS[method], markersize=6, linewidth=1.3, label=words)
        for row, left, up in zip(known, x, y, strict=True):
            text = f"{symbol} {row[key]:g}" if not unit else f"{row[key]:g}{unit}"
            named.append((left, up, text, COLORS[method]))
    axes.set_xscale("log")
    plain_log(axes.xaxis)
    axes.set_ylim(bottom=0)
    _name_points(axes, named)
    axes.legend(frameon=False, fontsize=9)
    quiet(
        axes,
        x="empirical privacy loss (to the left: more private)",
        y="median absolute error of stratified counts, records",
    )
    return figure


_SIZE = 7.0  # of a name, in points
_ROOM = 5.0  # between a point and its name


def _name_points(axes: Axes, named: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names beside points, each on the first side where it covers no point and no name before it."""
    dots = 72 / axes.figure.dpi
    points = axes.transData.transform([(x, y) for x, y, _, _ in named]).reshape(-1, 2) * dots
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points.tolist()]
    for place, (x, y, text, color) in enumerate(named):
        width = 0.6 * _SIZE * len(text)
        middle = taken[place][0] + 4, taken[place][1] + 4
        sides = [
            (right * _ROOM - (width if right < 0 else 0), up * _ROOM - (0 if up > 0 else _SIZE))
            for right, up in ((1, 1), (1, -1), (-1, -1), (-1, 1))
        ]
        sides += [(_ROOM + 2, -_SIZE / 2), (-_ROOM - 2 - width, -_SIZE / 2)]
        boxes = [
            (middle[0] + left, middle[1] + low, middle[0] + left + width, middle[1] + low + _SIZE)
            for left, low in sides
        ]
        covered = [
            sum(
                left < box[2] and box[0] < right and low < box[3] and box[1] < high
                for box in taken[:place] + taken[place + 1 :]
            )
            for left, low, right, high in boxes
        ]
        chosen = covered.index(min(covered))
        taken.append(boxes[chosen])
        axes.annotate(text, (x, y), sides[chosen], textcoords="offset points", fontsize=_SIZE, color=color)


def draw_bias(violins: Rows, symbol: str, largest: float) -> Figure:
    """Figure 3: distribution of the residual of the total by homogeneity index, three budgets beside each other."""
    settings = sorted({row["setting"] for row in violins})
    indices = sorted({row["index"] for row in violins})
    figure, axes = one_panel(max(8.0, 0.62 * len(indices) + 2), 4.6)
    for place, setting in enumerate(settings):
        color = shade(place, len(settings), 0.1)
        offset = (place - (len(settings) - 1) / 2) * 0.27
        for at, index in enumerate(indices):
            own = [row for row in violins if (row["setting"], row["index"]) == (setting, index)]
            if not own:
                continue
            values = np.repeat([row["residual"] for row in own], [row["n"] for row in own]).astype(float)
            inside = values[np.abs(values) <= largest]
            if len(np.unique(inside)) > 1:
                parts = axes.violinplot(inside, [at + offset], widths=0.25, showextrema=False)
                bodies: Any = parts["bodies"]
                for body in bodies:
                    body.set(facecolor=color, alpha=0.45, linewidth=0)
            axes.plot(at + offset, float(values.mean()), marker="D", color=color, markersize=4)
        axes.plot(
            [], [], marker="D", color=color, linestyle="", markersize=5, label=f"{symbol} = {setting:g}"
        )
    axes.axhline(0, color="#555555", linewidth=0.8)
    axes.set_xticks(range(len(indices)), [str(index) for index in indices], fontsize=8)
    axes.set_ylim(-largest, largest)
    axes.legend(frameon=False, fontsize=9, title="diamonds: means", title_fontsize=8)
    quiet(
        axes,
        x="homogeneity index: left diverse areas, right homogeneous ones",
        y="published less true total, records",
    )
    return figure


def draw_error_by_budget(rows: Rows, levels: Sequence[str], symbol: str) -> Figure:
    """Mean absolute error of totals and of stratified counts against the budget, a line for each level."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    grid = figure.subplots(1, 2)
    for axes, stat, title in zip(grid, ("TC", "SC"), ("total", "stratified counts"), strict=True):
        for place, level in enumerate(levels):
            own = [row for row in rows if (row["stat"], row["level"]) == (stat, level) and row["mean_ae"] > 0]
            if own:
                color = shade(place, len(levels))
                axes.plot(
                    [row["epsilon"] for row in own], [row["mean_ae"] for row in own],
                    marker="o", color=color, markersize=4, linewidth=1.3, label=spaced(level),
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log(axes.yaxis)
        budgets = sorted({row["epsilon"] for row in rows})
        axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(symbol, fontsize=9)
        if axes.lines:
            axes.legend(frameon=False, fontsize=8)
        quiet(axes)
    grid[0].set_ylabel("mean absolute error, records", fontsize=9)
    return figure
