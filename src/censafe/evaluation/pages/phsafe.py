"""The page of ``evaluate phsafe``, from its files alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from censafe.evaluation.confidential import label_rows, legend_below
from censafe.evaluation.outputs import number_text, read_evaluation, read_report_rows
from censafe.evaluation.pages.page import Page, exhibit, one_panel
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
from censafe.publication.pages import Exhibit, count_of

_Rows = Sequence[AccuracyRow]
_PLACES: Final = {"USA": "nation", "STATE": "states"}
_COLORS: Final = {"noise": "#0b5c7a", "total": "#d1762a"}
_WORST: Final = 10


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
    groups: dict[str, list[tuple[str, list[AccuracyRow]]]] = {}
    for place, table in dict.fromkeys((row.region_type, row.table) for row in rows):
        own = [row for row in rows if (row.region_type, row.table) == (place, table)]
        groups.setdefault(place, []).append((table, own))
    return groups


def _sections(rows: _Rows, line: Callable[[_Rows], Sequence[str]]) -> list[tuple[str, list[list[str]]]]:
    """A line for every table of the release, states below the nation."""
    return [
        (_PLACES[place].capitalize(), [[table, *line(own)] for table, own in members])
        for place, members in _groups(rows).items()
    ]


def _tables(rows: _Rows) -> list[str]:
    return list(dict.fromkeys(row.table for row in rows))


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


def _margins(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    figure, axes = one_panel(9, 0.36 * len(_tables(rows)) + 1.9)
    margin_panel(axes, rows)
    legend_below(figure, axes, columns=3)
    known = [row for row in rows if row.expected_moe > 0]
    ratio = float(np.median([row.experimental_moe_noise / row.expected_moe for row in known]))
    right = float(np.median([few_draws(document, row.regions * row.trials) for row in known]))
    return exhibit(
        "phsafe.margins",
        figure=figure,
        sections=_sections(rows, lambda own: _margin_line(own, document)),
        ratio=ratio,
        right=right,
    )


def _margin_line(rows: _Rows, document: Mapping[str, Any]) -> list[str]:
    margins = [row.expected_moe for row in rows]
    medians = (np.median(margins), np.median([row.experimental_moe_noise for row in rows]))
    doubt = bias_doubt(document, [row.regions * row.trials for row in rows], margins)
    return [
        f"{_cells(rows):,}",
        *(number_text(float(margin)) for margin in (min(margins), max(margins), *medians)),
        signed_text(_share(rows, "bias_noise"), doubt),
    ]


def _coverage(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    missed = [row for row in rows if abs(row.bias_truncation) > row.expected_moe]
    return exhibit(
        "phsafe.coverage",
        figure=_coverage_figure(rows, document),
        sections=_sections(rows, _coverage_line),
        promised=f"{100 * document['confidence']:g}%",
        share=_percent(_share(rows, "coverage_total")),
        missed=len(missed) or "none",
        combinations=count_of(len(rows), "combination"),
    )


def _coverage_line(rows: _Rows) -> list[str]:
    exact, noise, total = (_share(rows, f"coverage_{side}") for side in ("expected", "noise", "total"))
    doubt = share_doubt(noise if math.isnan(exact) else exact, _cells(rows))
    return [
        f"{_cells(rows):,}",
        _percent(exact),
        _percent(noise),
        number_text(100 * doubt),
        _percent(total),
    ]


def _coverage_figure(rows: _Rows, document: Mapping[str, Any]) -> Figure:
    groups = _groups(rows)
    tables = _tables(rows)
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
    figure, axes = one_panel(9, 0.36 * len(_tables(rows)) + 1.6)
    truncation_panel(axes, rows)
    legend_below(figure, axes, columns=2)
    sections = _sections(
        rows,
        lambda own: [
            f"{sum(row.true_total for row in own):,}",
            number_text(-sum(row.bias_truncation * row.regions for row in own) + 0.0, 0),
            number_text(-percent_cut(own) + 0.0, 2),
            f"{max(row.largest_truncation for row in own):,}",
            f"{sum(abs(row.bias_truncation) > row.expected_moe for row in own):,} of {len(own):,}",
        ],
    )
    return exhibit("phsafe.truncation", figure=figure, sections=sections, answer=_cut_words(rows))


def _losses(rows: _Rows) -> Exhibit:
    worst = sorted(
        (row for row in rows if row.bias_truncation < 0 and row.true_total),
        key=lambda row: row.bias_truncation / row.expected_moe if row.expected_moe > 0 else -math.inf,
    )[:_WORST]
    return exhibit(
        "phsafe.losses",
        answer="The counts below stay furthest from the truth for a reason that margins of error do not show."
        if any(abs(row.bias_truncation) > row.expected_moe for row in worst)
        else "No count loses more to truncation than its margin of error allows for.",
        rows=[_loss_line(row) for row in worst] or None,
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
