"""Accuracy of PHSafe tables: experimental against expected margins of error, noise and truncation apart, as CSV and figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from censafe.evaluation.confidential import label_rows, legend_below, save_figure
from censafe.evaluation.tables.document import chance_within
from censafe.model import PublishedQuery
from censafe.privacy.loss.margins import MarginRule, paper_margin

# Two standard errors of the 90% quantile of the absolute value of n Gaussian draws, relative to that quantile,
# are 2 sqrt(0.9 * 0.1) / (1.645 * 2 phi(1.645)) / sqrt(n).
_SPREAD = 1.768
_COLORS = {"USA": "#1b6ca8", "STATE": "#d1762a"}


def draw_accuracy(rows: Sequence[AccuracyRow], path: Path, title: str) -> None:
    """Draw experimental against expected margins, and what truncation does, as SVG or PNG."""
    tables = list(dict.fromkeys(row.table for row in rows))
    figure = Figure(figsize=(12, 0.42 * len(tables) + 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    margin_panel(left, rows)
    left.set_title("Does the noise have the size that was promised?", fontsize=10)
    legend_below(figure, left, columns=3)
    truncation_panel(right, rows)
    right.set_title("What does truncating large households cost?", fontsize=10)
    save_figure(path, figure, title)


def margin_panel(axes: Axes, rows: Sequence[AccuracyRow]) -> None:
    """Experimental against expected margins, a dot for every row of the evaluation."""
    known = [row for row in rows if row.expected_moe > 0]
    _dots(axes, rows, known, [row.experimental_moe_noise / row.expected_moe for row in known])
    spread = _SPREAD / np.sqrt(min(row.regions * row.trials for row in rows))
    label = f"where 95% of dots belong ({rows[0].trials} draws a dot)"
    axes.axvspan(1.0 - spread, 1.0 + spread, color="#e8e8e8", zorder=0, label=label)
    axes.axvline(1.0, color="#555555", linewidth=1)
    axes.set_xlabel("noise: experimental / expected margin of error")


def truncation_panel(axes: Axes, rows: Sequence[AccuracyRow]) -> None:
    """Bias of truncation in percent of the true count, a dot for every row of the evaluation."""
    _dots(axes, rows, rows, [percent_cut([row]) for row in rows])
    axes.axvline(0.0, color="#555555", linewidth=1)
    axes.set_xlabel("(count before noise - true count) in % of the true count")


def percent_cut(rows: Sequence[AccuracyRow]) -> float:
    """Truncation bias summed over regions in percent of the true total; 0 where that is 0."""
    true_total = sum(row.true_total for row in rows)
    bias = sum(row.bias_truncation * row.regions for row in rows)
    return 100.0 * bias / true_total if true_total else 0.0


def _dots(
    axes: Axes, rows: Sequence[AccuracyRow], dotted: Sequence[AccuracyRow], values: Sequence[float]
) -> None:
    """A dot for every shown row: the nation above, states below, a line for every table of all rows."""
    tables = list(dict.fromkeys(row.table for row in rows))
    for region_type, name, offset in (("USA", "nation", -0.16), ("STATE", "states", 0.16)):
        chosen = [place for place, row in enumerate(dotted) if row.region_type == region_type]
        if chosen:
            # a small spread by cell, so that dots do not hide each other
            spread = np.linspace(-0.1, 0.1, 9)
            heights = [
                tables.index(dotted[place].table) + offset + spread[number % 9]
                for number, place in enumerate(chosen)
            ]
            axes.plot(
                [values[place] for place in chosen], heights, "o", color=_COLORS[region_type], alpha=0.45,
                markersize=4.5, label=name,
            )  # fmt: skip
    label_rows(axes, tables)


_REGION_TYPE = {"usa": "USA", "state": "STATE"}


@dataclass(frozen=True)
class AccuracyRow:
    """One (table, region type, iteration, cell), pooled over regions and trials.

    Margins and biases are in persons (households for the denominators); ``bias_truncation`` is the
    mean over regions of (count after truncation - true count), which no number of trials changes.
    ``coverage_*`` is the share of errors within ``expected_moe``: of the noise alone, of noise and truncation, and by the
    exact law of the noise (NaN where a sum of draws has no law of its kind).
    """

    table: str
    region_type: str
    iteration: str
    cell: str
    regions: int
    trials: int
    true_total: int
    expected_moe: float
    expected_moe_reference: float
    experimental_moe_noise: float
    experimental_moe_total: float
    coverage_noise: float
    coverage_total: float
    coverage_expected: float
    bias_noise: float
    bias_truncation: float
    largest_truncation: int


@dataclass(frozen=True, eq=False)
class TableErrors:
    """Answers of one table at one level: true, after truncation without noise, and noisy.

    Args:
        truth: int64, shape (size,); true counts, no truncation.
        exact: int64, shape (size,); counts after truncation, before noise.
        noisy: int64, shape (trials, size).
    """

    query: PublishedQuery
    truth: NDArray[np.int64]
    exact: NDArray[np.int64]
    noisy: NDArray[np.int64]


def accuracy_rows(samples: Sequence[TableErrors], confidence: Fraction) -> list[AccuracyRow]:
    """Summarize errors per table, region type, iteration and cell.

    Source: PHSafe specification, section 9.3.
    """
    return [row for sample in samples for row in _rows(sample, confidence)]


def _rows(sample: TableErrors, confidence: Fraction) -> Iterator[AccuracyRow]:
    query = sample.query
    regions, *middle, cells = query.domain.axes
    iterations = middle[0].values if middle else ("*",)
    trials = sample.noisy.shape[0]
    shape = (len(regions.values), len(iterations), len(cells.values))
    truth, exact, terms = (vector.reshape(shape) for vector in (sample.truth, sample.exact, query.terms))
    noisy = sample.noisy.reshape((trials, *shape))
    for i, iteration in enumerate(iterations):
        for c, cell in enumerate(cells.values):
            t, k, y = truth[:, i, c], exact[:, i, c], noisy[:, :, i, c]
            factor = float(np.sqrt(terms[0, i, c]))
            expected = factor * paper_margin(query.law, confidence)
            noise, error = np.abs(y - k), np.abs(y - t)
            noise_moe, error_moe = (
                float(np.quantile(errors, float(confidence), method="inverted_cdf"))
                for errors in (noise, error)
            )
            yield AccuracyRow(
                table=query.table,
                region_type=_REGION_TYPE[query.level.split("_", 1)[0]],
                iteration=iteration,
                cell=cell,
                regions=len(regions.values),
                trials=trials,
                true_total=int(t.sum()),
                expected_moe=expected,
                expected_moe_reference=factor * paper_margin(query.law, confidence, MarginRule.REFERENCE),
                experimental_moe_noise=noise_moe,
                experimental_moe_total=error_moe,
                coverage_noise=float(np.mean(noise <= expected)),
                coverage_total=float(np.mean(error <= expected)),
                coverage_expected=chance_within(query.law, int(terms[0, i, c]), int(expected)),
                bias_noise=float(np.mean(y - k)),
                bias_truncation=float(np.mean(k - t)),
                largest_truncation=int(np.max(np.abs(k - t))),
            )
