"""CSV and figure of a PHSafe accuracy evaluation; every file says that it is confidential."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from censafe.evaluation.phsafe_accuracy import AccuracyRow
from censafe.evaluation.reports import label_rows, save_figure, write_rows

__all__ = ["draw_accuracy", "write_accuracy_csv"]

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
    for region_type, offset in (("USA", -0.16), ("STATE", 0.16)):
        chosen = [row for row in rows if row.region_type == region_type]
        if not chosen:
            continue
        heights = _heights(chosen, tables, offset)
        colour = _COLOURS[region_type]
        name = "nation" if region_type == "USA" else "states"
        ratios = [row.experimental_moe_noise / row.expected_moe for row in chosen]
        left.plot(ratios, heights, "o", color=colour, alpha=0.45, markersize=4.5, label=name)
        shares = [_percent_cut(row) for row in chosen]
        right.plot(shares, heights, "o", color=colour, alpha=0.45, markersize=4.5, label=name)
    label_rows(left, tables)
    spread = _SPREAD / np.sqrt(min(row.regions * row.trials for row in rows))
    label = f"where 95% of dots belong ({rows[0].trials} draws a dot)"
    left.axvspan(1.0 - spread, 1.0 + spread, color="#e8e8e8", zorder=0, label=label)
    left.axvline(1.0, color="#555555", linewidth=1)
    left.set_xlabel("noise: experimental / expected margin of error")
    left.set_title("Does the noise have the size that was promised?", fontsize=10)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    right.axvline(0.0, color="#555555", linewidth=1)
    right.set_xlabel("(count before noise - true count) in % of the true count")
    right.set_title("What does truncating large households cost?", fontsize=10)
    label_rows(right, tables)
    save_figure(path, figure, title)


def _heights(rows: Sequence[AccuracyRow], tables: Sequence[str], offset: float) -> list[float]:
    """Vertical position of every dot: its table, its region type, and a small spread by cell."""
    spread = np.linspace(-0.1, 0.1, 9)
    return [tables.index(row.table) + offset + spread[place % 9] for place, row in enumerate(rows)]


def _percent_cut(row: AccuracyRow) -> float:
    """Truncation bias summed over regions in percent of the true total; 0 where both are 0."""
    bias = row.bias_truncation * row.regions
    return 100.0 * bias / row.true_total if row.true_total else 0.0
