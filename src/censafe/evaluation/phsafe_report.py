"""CSV and figure of a PHSafe accuracy evaluation; every file says that it is confidential."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.phsafe_accuracy import AccuracyRow
from censafe.evaluation.reports import label_rows, save_figure, write_rows

__all__ = ["draw_accuracy", "margin_panel", "percent_cut", "truncation_panel", "write_accuracy_csv"]

# Two standard errors of the 90% quantile of the absolute value of n Gaussian draws, relative to that quantile,
# are 2 sqrt(0.9 * 0.1) / (1.645 * 2 phi(1.645)) / sqrt(n).
_SPREAD = 1.768
_COLOURS = {"USA": "#1b6ca8", "STATE": "#d1762a"}


def write_accuracy_csv(path: Path, rows: Sequence[AccuracyRow]) -> None:
    """Write one line a row, the stamp in the last column.

    Args:
        path: the file to write.
        rows: what ``accuracy_rows`` returned.
    """
    write_rows(path, AccuracyRow, rows)


def draw_accuracy(path: Path, rows: Sequence[AccuracyRow], *, title: str) -> None:
    """Draw experimental against expected margins, and what truncation does, as SVG or PNG.

    Args:
        path: the file to write; its ending names the format.
        rows: what ``accuracy_rows`` returned, not empty.
        title: the question that the figure answers.
    """
    tables = list(dict.fromkeys(row.table for row in rows))
    figure = Figure(figsize=(12, 0.42 * len(tables) + 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    margin_panel(left, rows)
    left.set_title("Does the noise have the size that was promised?", fontsize=10)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    truncation_panel(right, rows)
    right.set_title("What does truncating large households cost?", fontsize=10)
    save_figure(path, figure, title)


def margin_panel(axes: Axes, rows: Sequence[AccuracyRow]) -> None:
    """Experimental against expected margins, a dot for every row of the evaluation.

    Args:
        axes: to draw on.
        rows: what ``accuracy_rows`` returned, not empty.
    """
    known = [row for row in rows if row.expected_moe > 0]
    _dots(axes, rows, known, [row.experimental_moe_noise / row.expected_moe for row in known])
    spread = _SPREAD / np.sqrt(min(row.regions * row.trials for row in rows))
    label = f"where 95% of dots belong ({rows[0].trials} draws a dot)"
    axes.axvspan(1.0 - spread, 1.0 + spread, color="#e8e8e8", zorder=0, label=label)
    axes.axvline(1.0, color="#555555", linewidth=1)
    axes.set_xlabel("noise: experimental / expected margin of error")


def truncation_panel(axes: Axes, rows: Sequence[AccuracyRow]) -> None:
    """Bias of truncation in percent of the true count, a dot for every row of the evaluation.

    Args:
        axes: to draw on.
        rows: what ``accuracy_rows`` returned, not empty.
    """
    _dots(axes, rows, rows, [percent_cut([row]) for row in rows])
    axes.axvline(0.0, color="#555555", linewidth=1)
    axes.set_xlabel("(count before noise - true count) in % of the true count")


def percent_cut(rows: Sequence[AccuracyRow]) -> float:
    """Truncation bias summed over regions in percent of the true total; 0 where that is 0.

    Args:
        rows: of one or several cells.
    """
    true_total = sum(row.true_total for row in rows)
    bias = sum(row.bias_truncation * row.regions for row in rows)
    return 100.0 * bias / true_total if true_total else 0.0


def _dots(
    axes: Axes, rows: Sequence[AccuracyRow], shown: Sequence[AccuracyRow], values: Sequence[float]
) -> None:
    """A dot for every shown row: the nation above, states below, a line for every table of all rows."""
    tables = list(dict.fromkeys(row.table for row in rows))
    for region_type, name, offset in (("USA", "nation", -0.16), ("STATE", "states", 0.16)):
        chosen = [place for place, row in enumerate(shown) if row.region_type == region_type]
        if chosen:
            heights = _heights([shown[place] for place in chosen], tables, offset)
            axes.plot(
                [values[place] for place in chosen], heights, "o", color=_COLOURS[region_type], alpha=0.45,
                markersize=4.5, label=name,
            )  # fmt: skip
    label_rows(axes, tables)


def _heights(rows: Sequence[AccuracyRow], tables: Sequence[str], offset: float) -> list[float]:
    """Vertical position of every dot: its table, its region type, and a small spread by cell."""
    spread = np.linspace(-0.1, 0.1, 9)
    return [tables.index(row.table) + offset + spread[place % 9] for place, row in enumerate(rows)]
