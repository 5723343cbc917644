"""The page of ``evaluate phsafe``, from its files alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.confidential import label_rows, legend_below
from censafe.evaluation.outputs import number_text, read_evaluation, read_report_rows
from censafe.evaluation.pages.page import Page, sectioned
from censafe.evaluation.tables.document import (
    bias_doubt,
    coverage_words,
    few_draws,
    percent_text,
    pooled_share,
    share_doubt,
    short_name,
    signed_text,
    table_facts,
    table_settings,
)
from censafe.evaluation.tables.phsafe.accuracy import AccuracyRow, margin_panel, percent_cut, truncation_panel
from censafe.model.bounds import lower
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.publication.pages.exhibits import Exhibit, PageTable
from censafe.publication.pages.markup import count_of

_Rows = Sequence[AccuracyRow]
_PLACES: Final = {"USA": "nation", "STATE": "states"}
_COLORS: Final = {"noise": "#0b5c7a", "total": "#d1762a"}
_WORST: Final = 10
_FILES: Final = ("accuracy.csv",)


def phsafe_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate phsafe`` wrote."""
    document = read_evaluation(folder)
    rows = read_report_rows(folder, "accuracy", AccuracyRow, ("table", "region_type", "iteration", "cell"))
    definitions = phsafe_definitions()
    # numerators are added up from measured tables and share their noise
    own = [row for row in rows if definitions.table(row.table).derived is None]
    coverage = coverage_words(_cells(own), _share(own, "coverage_noise"), _share(own, "coverage_expected"), 1)
    return Page(
        title="Are the margins of PHSafe as promised, and what does truncation cost?",
        kicker=f"Evaluation of PHSafe, {short_name(document)}",
        answer=[f"{coverage} {_cut_words(rows)}"],
        facts=table_facts(document),
        exhibits=[_margins(rows, document), _coverage(rows, document), _truncation(rows), _losses(rows)],
        settings=table_settings(document),
    )


def _groups(rows: _Rows) -> dict[str, list[tuple[str, list[AccuracyRow]]]]:
    """Rows by kind of region, then by table."""
    found: dict[str, list[tuple[str, list[AccuracyRow]]]] = {}
    for place, table in dict.fromkeys((row.region_type, row.table) for row in rows):
        own = [row for row in rows if (row.region_type, row.table) == (place, table)]
        found.setdefault(place, []).append((table, own))
    return found


def _grouped(
    caption: str, headers: Sequence[str], rows: _Rows, line: Callable[[_Rows], Sequence[str]]
) -> PageTable:
    """A table with one line for every table of the release, states below the nation."""
    sections = [
        (_PLACES[place].capitalize(), [[table, *line(own)] for table, own in members])
        for place, members in _groups(rows).items()
    ]
    return sectioned(caption, ("Table", *headers), sections)


def _by_table(rows: _Rows, margin: float) -> tuple[Figure, Axes]:
    """A figure with a row for every table."""
    tables = {row.table for row in rows}
    figure = Figure(figsize=(9, 0.36 * len(tables) + margin), layout="constrained")
    return figure, figure.subplots()


def _cells(rows: _Rows) -> int:
    return sum(row.regions * row.trials for row in rows)


def _share(rows: _Rows, name: str) -> float:
    return pooled_share([row.regions * row.trials for row in rows], [getattr(row, name) for row in rows])


def _percent(share: float) -> str:
    """A coverage, rounded down."""
    return percent_text(lower(share, 3), 1)


def _cut_words(rows: _Rows) -> str:
    shares = {table: percent_cut(own) for members in _groups(rows).values() for table, own in members}
    worst = min(shares, key=lambda table: shares[table])
    if shares[worst] >= 0:
        return "Truncation of large households takes nothing from any table."
    return (
        f"Leaving out persons of large households costs most in {worst}: {-shares[worst]:.2f}% of its count."
    )


_MARGINS_HOW: Final = (
    "The records were counted once. Every noisy answer was then drawn many times with test keys, by the code that a "
    "release runs. The margin found is the smallest error that the promised share of all draws and regions of a cell do not exceed; "
    "the promised one is the margin that a release states.",
    "The band holds nineteen of twenty dots if the noise is right; few draws make it wide, and the margin found a little too small. "
    "The bias of the noise should be near 0; behind it two standard errors, from the promised margins.",
)


def _margins(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    figure, axes = _by_table(rows, 1.9)
    margin_panel(axes, rows)
    legend_below(figure, axes, columns=3)
    known = [row for row in rows if row.expected_moe > 0]
    ratio = float(np.median([row.experimental_moe_noise / row.expected_moe for row in known]))
    right = float(np.median([few_draws(document, row.regions * row.trials) for row in known]))
    return Exhibit(
        name="margins",
        question="Is the noise as large as was promised, no less and no more?",
        answer=(
            f"The typical margin found is {ratio:.2f} times the promised one; with noise of just the right size so many draws would "
            f"typically find {right:.2f}."
        ),
        figure=figure,
        alt=(
            "Margin of error found in the draws over the promised one, a dot for every cell and group, a row for every table; 1 is "
            "as promised. Nineteen of twenty dots belong in the grey band."
        ),
        tables=[
            _grouped(
                "Promised margins of error in persons (denominators: households), their median over cells and groups, and what was found",
                ("Noisy counts", "Smallest", "Largest", "Promised", "Found", "Bias of noise"),
                rows,
                lambda own: _margin_line(own, document),
            )
        ],
        how=_MARGINS_HOW,
        files=_FILES,
    )


def _margin_line(rows: _Rows, document: Mapping[str, Any]) -> list[str]:
    margins = [row.expected_moe for row in rows]
    found = [row.experimental_moe_noise for row in rows]
    doubt = bias_doubt(document, [row.regions * row.trials for row in rows], margins)
    return [
        f"{_cells(rows):,}",
        number_text(min(margins)),
        number_text(max(margins)),
        number_text(float(np.median(margins))),
        number_text(float(np.median(found))),
        signed_text(_share(rows, "bias_noise"), doubt),
    ]


def _coverage(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    missed = [row for row in rows if abs(row.bias_truncation) > row.expected_moe]
    promised = f"{100 * document['confidence']:g}%"
    return Exhibit(
        name="coverage",
        question="How often does a published interval hold the true count?",
        answer=(
            f"Intervals promise {promised}; {_percent(_share(rows, 'coverage_total'))} of those drawn hold the true count. In "
            f"{len(missed) or 'none'} of {count_of(len(rows), 'combination')} of cell, group and kind of region truncation alone takes more than "
            "the margin."
        ),
        figure=_coverage_figure(rows, document),
        alt=(
            f"Share of intervals that hold the count before noise, and the true count, by table, nation left and states right. The line is "
            f"the promised {promised}; bars are two standard errors."
        ),
        tables=[
            _grouped(
                "Share of noisy counts within their margin of error",
                ("Noisy counts", "By the exact law", "Of the noise", "Doubt, points", "Of the truth"),
                rows,
                _coverage_line,
            )
        ],
        how=(
            "Noise is a whole number, so the exact chance of an error within the margin differs a little from the promise; it is computed "
            "from the noise law. Doubt is two standard errors of the share if all draws are independent: they are within a table, but "
            "PH5_num and PH8_num are added up from PH4 and PH7 and share their noise.",
            "Of the truth: the error less what truncation takes away as well. A margin of error says nothing about truncation.",
        ),
        files=_FILES,
    )


def _coverage_line(rows: _Rows) -> list[str]:
    exact = _share(rows, "coverage_expected")
    return [
        f"{_cells(rows):,}",
        _percent(exact),
        _percent(_share(rows, "coverage_noise")),
        number_text(
            100 * share_doubt(_share(rows, "coverage_noise") if math.isnan(exact) else exact, _cells(rows))
        ),
        _percent(_share(rows, "coverage_total")),
    ]


def _coverage_figure(rows: _Rows, document: Mapping[str, Any]) -> Figure:
    groups = _groups(rows)
    tables = list(dict.fromkeys(row.table for row in rows))
    figure = Figure(figsize=(9, 0.36 * len(tables) + 1.9), layout="constrained")
    grid = np.atleast_1d(figure.subplots(1, len(groups), sharey=True, sharex=True))
    for axes, (place, members) in zip(grid, groups.items(), strict=True):
        axes.axvline(document["confidence"], color="#555555", linewidth=1)
        for side, words, offset in (
            ("noise", "noise alone", -0.12), ("total", "noise and truncation", 0.12),
        ):  # fmt: skip
            shares = [_share(own, f"coverage_{side}") for _, own in members]
            axes.errorbar(
                shares, [tables.index(table) + offset for table, _ in members],
                xerr=[share_doubt(share, _cells(own)) for share, (_, own) in zip(shares, members, strict=True)],
                fmt="o", markersize=4, linewidth=1, color=_COLORS[side], label=words,
            )  # fmt: skip
        axes.set_title(_PLACES[place], fontsize=10)
        axes.set_xlabel("share of intervals that hold the count", fontsize=9)
        label_rows(axes, tables)
    legend_below(figure, grid[0], columns=2)
    return figure


def _truncation(rows: _Rows) -> Exhibit:
    figure, axes = _by_table(rows, 1.6)
    truncation_panel(axes, rows)
    legend_below(figure, axes, columns=2)
    return Exhibit(
        name="truncation",
        question="What does leaving out persons of large households cost?",
        answer=_cut_words(rows),
        figure=figure,
        alt="Count before noise less true count, in percent of the true count, a dot for every cell and group, a row for every table.",
        tables=[
            _grouped(
                "What truncation takes from the tables, all cells and groups together",
                ("True counts, added up", "Lost", "Lost, %", "Largest, one count", "Beyond the margin"),
                rows,
                lambda own: [
                    f"{sum(row.true_total for row in own):,}",
                    number_text(-sum(row.bias_truncation * row.regions for row in own) + 0.0, 0),
                    number_text(-percent_cut(own) + 0.0, 2),
                    f"{max(row.largest_truncation for row in own):,}",
                    f"{sum(abs(row.bias_truncation) > row.expected_moe for row in own):,} of {len(own):,}",
                ],
            )
        ],
        how=(
            "A household counts with at most tau persons in a table, so that one household cannot change it by more. What is "
            "lost is not a chance: it is the same in every draw, and no number of draws reveals or cures it. Counts of cells and groups are added "
            "up, so a person counts once for every cell and group it is in.",
            "True counts follow the reference's ground truth, whose universes differ a little from a release's for PH1_num and PH8_num.",
            "Beyond the margin: combinations of cell and group whose mean loss is larger than the promised margin of error.",
        ),
        files=_FILES,
    )


def _losses(rows: _Rows) -> Exhibit:
    worst = sorted(
        (row for row in rows if row.bias_truncation < 0 and row.true_total),
        key=lambda row: row.bias_truncation / row.expected_moe if row.expected_moe > 0 else -math.inf,
    )[:_WORST]
    return Exhibit(
        name="losses",
        question="Who loses most, compared with the noise?",
        answer=(
            "The counts below stay furthest from the truth for a reason that margins of error do not show."
            if any(abs(row.bias_truncation) > row.expected_moe for row in worst)
            else "No count loses more to truncation than its margin of error allows for."
        ),
        tables=[
            PageTable(
                "Counts whose loss by truncation is largest compared with the margin of error",
                ("Count", "Group", "True, mean", "Lost, mean", "Lost, %", "Margin"),
                [_loss_line(row) for row in worst],
                numbers=4,
            )
        ]
        if worst
        else [],
        how=(
            "Rows are ordered by mean loss over margin of error. Where that is above 1, the interval misses the true count more often than not.",
        ),
        files=_FILES,
    )


def _loss_line(row: AccuracyRow) -> list[str]:
    definitions = phsafe_definitions()
    table = definitions.table(row.table)
    groups = {one.code: one.label for one in definitions.iterations(table)}
    cells = {cell.id: cell.label for cell in table.cells}
    return [
        f"{row.table}, {_PLACES[row.region_type]}: {cells[row.cell]}",
        groups.get(row.iteration, "Everyone"),
        number_text(row.true_total / row.regions, 0),
        number_text(-row.bias_truncation),
        number_text(-percent_cut([row]), 2),
        number_text(row.expected_moe),
    ]
