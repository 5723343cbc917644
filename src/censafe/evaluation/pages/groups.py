"""The page of ``evaluate safetab-p`` and ``evaluate safetab-h``, from its files alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from censafe.evaluation.confidential import label_rows, legend_below
from censafe.evaluation.outputs import number_text, read_evaluation, read_report_rows
from censafe.evaluation.pages.groups_bias import (
    UNITS,
    bias_exhibit,
    level_words,
    shares_exhibit,
    zero_words,
    zeros_exhibit,
)
from censafe.evaluation.pages.page import Page, exhibit, one_panel
from censafe.evaluation.tables.document import (
    bias_doubt,
    coverage_words,
    percent_text,
    pooled_share,
    share_doubt,
    short_name,
    signed_text,
    table_facts,
    table_settings,
)
from censafe.evaluation.tables.groups.accuracy import ALL_SIZES, ErrorRow, ShareRow, ZeroRow
from censafe.evaluation.tables.groups.figure import draw_margins, frequent_rows
from censafe.publication.pages.exhibits import Exhibit
from censafe.publication.pages.markup import count_of

_Errors = Sequence[ErrorRow]
_PRODUCTS: Final = {"safetab-p": "SafeTab-P", "safetab-h": "SafeTab-H"}
_TEXTS: Final = ("table", "cell", "region_type", "size", "measured")


def safetab_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate safetab-p`` or ``evaluate safetab-h`` wrote."""
    document = read_evaluation(folder)
    errors = read_report_rows(folder, "accuracy", ErrorRow, _TEXTS)
    shares = read_report_rows(folder, "tables", ShareRow, _TEXTS)
    zeros = read_report_rows(folder, "zeros", ZeroRow, _TEXTS) if (folder / "zeros.csv").exists() else []
    exhibits = [_margins(errors, document), _coverage(errors), _sums(errors, document)]
    exhibits += [bias_exhibit(errors, document), shares_exhibit(shares, document)]
    if zeros:
        exhibits.append(zeros_exhibit(zeros))
    single, name = _single(errors), _PRODUCTS[document["kind"]]
    coverage = coverage_words(
        _cells(single), _share(single, "noise_coverage"), _share(single, "expected_coverage"), 2
    )
    return Page(
        title=f"Are the margins of {name} as promised, and which groups get which tables?",
        kicker=f"Evaluation of {name}, {short_name(document)}",
        answer=[coverage, *([zero_words(zeros)] if zeros else [])],
        facts=table_facts(document),
        exhibits=exhibits,
        settings=table_settings(document),
    )


def _single(errors: _Errors) -> list[ErrorRow]:
    """Cells of all sizes that hold one draw of noise: no two share it."""
    return [row for row in errors if row.size == ALL_SIZES and row.draws_a_cell == 1 and row.noise_cells]


def _cells(rows: _Errors) -> int:
    return sum(row.noise_cells for row in rows)


def _share(rows: _Errors, name: str) -> float:
    return pooled_share([row.noise_cells for row in rows], [getattr(row, name) for row in rows])


def _by_level(rows: _Errors) -> dict[str, list[ErrorRow]]:
    """Rows by their level in words."""
    levels: dict[str, list[ErrorRow]] = {}
    for row in rows:
        levels.setdefault(level_words(row), []).append(row)
    return levels


def _margins(errors: _Errors, document: Mapping[str, Any]) -> Exhibit:
    rows, shown = _single(errors), frequent_rows(errors)
    # two standard errors of a margin found in independent Gaussian draws, and a whole number of rounding
    close = sum(
        abs(row.noise_moe - row.expected_moe_exact)
        <= 1.0 + 1.903 / math.sqrt(row.noise_cells) * row.expected_moe_exact
        for row in rows
    )
    figure = None
    if shown:
        figure, axes = one_panel(9, 0.42 * len(_by_level(shown)) + 1.9)
        draw_margins(axes, shown)
        axes.set_title("")
        legend_below(figure, axes, columns=4)
    return exhibit(
        "groups.margins",
        figure=figure,
        sections=[
            (label, [_margin_line(row, document) for row in own]) for label, own in _by_level(rows).items()
        ],
        close=close,
        number=len(rows),
        unit=UNITS[document["kind"]],
    )


def _margin_line(row: ErrorRow, document: Mapping[str, Any]) -> list[str]:
    return [
        f"{row.table}{', detailed only' if row.detailed_only else ''}: {row.cell}",
        f"{row.noise_cells:,}",
        f"{row.expected_moe_exact:,}",
        number_text(row.noise_moe, 0),
        signed_text(row.noise_bias, bias_doubt(document, [row.noise_cells], [row.expected_moe]), 2),
        number_text(row.expected_moe_zcdp),
        number_text(row.expected_moe_puredp),
    ]


def _coverage(errors: _Errors) -> Exhibit:
    levels = _by_level(_single(errors))
    labels = list(levels)
    found = [_share(own, "noise_coverage") for own in levels.values()]
    exact = [_share(own, "expected_coverage") for own in levels.values()]
    doubt = [share_doubt(share, _cells(own)) for share, own in zip(exact, levels.values(), strict=True)]
    inside = sum(abs(a - b) <= c for a, b, c in zip(found, exact, doubt, strict=True))
    figure, axes = one_panel(9, 0.3 * len(labels) + 1.7)
    axes.plot(exact, range(len(labels)), "|", color="#555555", markersize=14, label="by the exact law")
    axes.errorbar(
        found, range(len(labels)), xerr=doubt, fmt="o", markersize=4, linewidth=1, color="#0b5c7a",
        label="found, two standard errors",
    )  # fmt: skip
    axes.set_xlabel("share of noisy counts within their margin of error", fontsize=9)
    label_rows(axes, labels)
    legend_below(figure, axes, columns=2)
    return exhibit(
        "groups.coverage",
        figure=figure,
        rows=[
            [
                label,
                f"{_cells(own):,}",
                percent_text(b, 2),
                percent_text(a, 2),
                number_text(100 * c, 2),
            ]
            for (label, own), a, b, c in zip(levels.items(), found, exact, doubt, strict=True)
        ],
        inside=inside,
        levels=count_of(len(labels), "level"),
    )


def _sum_line(rows: _Errors) -> list[str]:
    """Counts of one table that are sums of the same number of draws."""
    margins = [row.expected_moe_exact for row in rows]
    return [
        f"{rows[0].table}: {', '.join(dict.fromkeys(row.cell for row in rows))}",
        f"{rows[0].draws_a_cell:,}",
        f"{min(margins):,}",
        f"{max(margins):,}",
        f"{_cells(rows):,}",
        percent_text(_share(rows, "noise_coverage"), 2),
    ]


def _sums(errors: _Errors, document: Mapping[str, Any]) -> Exhibit:
    rows = [row for row in errors if row.size == ALL_SIZES and row.noise_cells]
    kinds = sorted({(row.table, row.draws_a_cell) for row in rows})
    most = max(rows, key=lambda row: row.draws_a_cell)
    return exhibit(
        "groups.sums",
        answer=f"A {most.table} {most.cell.lower()} of a group whose table has more detail is the sum of {most.draws_a_cell} noisy counts: its margin is "
        f"about {math.sqrt(most.draws_a_cell):.1f} times that of one count."
        if most.draws_a_cell > 1
        else "No count of this release is a sum of others.",
        rows=[_sum_line([row for row in rows if (row.table, row.draws_a_cell) == kind]) for kind in kinds],
        unit=UNITS[document["kind"]],
    )
