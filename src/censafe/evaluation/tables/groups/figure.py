"""Figure of a SafeTab evaluation: size of the noise, and which tables groups get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.confidential import label_rows, legend_below, save_figure
from censafe.evaluation.pages.page import one_panel
from censafe.evaluation.tables.groups.accuracy import ALL_SIZES, NO_TABLE, ErrorRow, ShareRow, level_of

# Two standard errors of the 95% quantile of the absolute value of n Gaussian draws, relative to that quantile,
# are 2 sqrt(0.95 * 0.05) / (1.96 * 2 phi(1.96)) / sqrt(n).
SPREAD: Final = 1.903
_FEWEST: Final = 200
_PLACES: Final = {"detailed": "nation, state", "coarse": "below states"}


def draw_report(rows: Sequence[ErrorRow], shares: Sequence[ShareRow], path: Path, title: str) -> None:
    """Draw experimental against expected margins by level, and the tables that groups get by true size."""
    chosen = frequent_rows(rows)
    bars = _bars(shares)
    height = 0.24 * max(len({level_of(row).label for row in chosen}) * 1.25, len(bars)) + 2.4
    figure = Figure(figsize=(13, height), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_margins(left, chosen)
    _draw_shares(right, bars)
    save_figure(path, figure, title)


def frequent_rows(rows: Sequence[ErrorRow]) -> list[ErrorRow]:
    """Rows of all sizes with enough cells for a quantile."""
    return [row for row in rows if row.size == ALL_SIZES and row.noise_cells >= _FEWEST]


def shares_figure(shares: Sequence[ShareRow]) -> Figure:
    """The tables that groups get, by place and true size."""
    bars = _bars(shares)
    figure, axes = one_panel(9, 0.24 * len(bars) + 1.6)
    _draw_shares(axes, bars)
    axes.set_title("")
    legend_below(figure, axes, columns=5)
    return figure


def draw_margins(axes: Axes, rows: Sequence[ErrorRow]) -> None:
    """Experimental against exact margins by level, a dot for every kind of cells."""
    labels = list(dict.fromkeys(level_of(row).label for row in rows))
    tables = sorted({_family(row) for row in rows})
    for number, family in enumerate(tables):
        members = [row for row in rows if _family(row) == family]
        offset = (number - (len(tables) - 1) / 2) * 0.7 / max(1, len(tables))
        axes.errorbar(
            [row.noise_moe / row.expected_moe_exact for row in members],
            [labels.index(level_of(row).label) + offset for row in members],
            # a margin is a whole number, so half a person belongs to its uncertainty
            xerr=[SPREAD / np.sqrt(row.noise_cells) + 0.5 / row.expected_moe_exact for row in members],
            fmt="o",
            markersize=3.5,
            linewidth=0.8,
            alpha=0.7,
            color=colormaps["Dark2"](number % 8),
            label=family,
        )
    axes.axvline(1.0, color="#555555", linewidth=1)
    axes.set_xlabel("noise: experimental / exact margin of error (bars: two standard errors and rounding)")
    axes.set_title("Does the noise have the size that was promised?", fontsize=10)
    label_rows(axes, labels)
    if tables:
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=4)


def _family(row: ErrorRow) -> str:
    return f"{row.table}, detailed only" if row.detailed_only and row.table == "T01001" else row.table


def _bars(shares: Sequence[ShareRow]) -> dict[str, dict[str, float]]:
    """Number of groups by table, for every class of tables, granularity and true size."""
    groups_of: dict[str, dict[str, float]] = {}
    ordered = sorted(
        shares,
        key=lambda row: (
            row.measured,
            level_of(row).granularity != "detailed",
            len(row.size),
            row.size,
        ),
    )
    classes = {row.measured for row in shares}
    for row in ordered:
        place = _PLACES[level_of(row).granularity]
        size = " to ".join(f"{int(number):,}" for number in row.size.rstrip("+").split("-"))
        name = f"{row.measured}, {place}, {size}" if len(classes) > 1 else f"{place}, {size}"
        bar = groups_of.setdefault(name, {})
        bar[row.table] = bar.get(row.table, 0.0) + row.share * row.groups
    return groups_of


def _draw_shares(axes: Axes, bars: dict[str, dict[str, float]]) -> None:
    tables = sorted(
        {table for bar in bars.values() for table in bar}, key=lambda name: (name != NO_TABLE, name)
    )
    totals = np.array([sum(bar.values()) for bar in bars.values()])
    reached = np.zeros(len(bars))
    for number, table in enumerate(tables):
        parts = np.array([bar.get(table, 0.0) for bar in bars.values()]) / np.maximum(totals, 1)
        color = "#dddddd" if table == NO_TABLE else colormaps["viridis"](0.85 - 0.85 * number / len(tables))
        axes.barh(range(len(bars)), parts, left=reached, color=color, height=0.75, label=table)
        reached += parts
    for place, total in enumerate(totals.tolist()):
        axes.text(1.01, place, f"{total:,.0f}", va="center", fontsize=7)
    axes.set_xlim(0, 1.22)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel("share of groups; on the right their number")
    axes.set_axisbelow(True)
    axes.set_title("The most detailed table of groups, by place and true size", fontsize=10)
    label_rows(axes, list(bars))
    if tables:
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=5)
