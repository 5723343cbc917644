"""The page of ``evaluate safetab-p`` and ``evaluate safetab-h``, from its files alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from censafe.evaluation.confidential import label_rows, legend_below
from censafe.evaluation.outputs import number_text, read_evaluation, read_report_rows
from censafe.evaluation.pages.page import Page, exhibit, grouped, one_panel, quiet
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
from censafe.evaluation.tables.groups.accuracy import ALL_SIZES, ErrorRow, ShareRow, ZeroRow, level_of
from censafe.evaluation.tables.groups.cells import SIZES
from censafe.evaluation.tables.groups.figure import SPREAD, draw_margins, frequent_rows, shares_figure
from censafe.publication.pages import Exhibit, count_of

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
    return grouped(rows, level_words)


def _margins(errors: _Errors, document: Mapping[str, Any]) -> Exhibit:
    rows, frequent = _single(errors), frequent_rows(errors)
    # two standard errors of a margin found in independent Gaussian draws, and a whole number of rounding
    close = sum(
        abs(row.noise_moe - row.expected_moe_exact)
        <= 1.0 + SPREAD / math.sqrt(row.noise_cells) * row.expected_moe_exact
        for row in rows
    )
    figure = None
    if frequent:
        figure, axes = one_panel(9, 0.42 * len(_by_level(frequent)) + 1.9)
        draw_margins(axes, frequent)
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
    measured = [_share(own, "noise_coverage") for own in levels.values()]
    exact = [_share(own, "expected_coverage") for own in levels.values()]
    doubt = [share_doubt(share, _cells(own)) for share, own in zip(exact, levels.values(), strict=True)]
    inside = sum(abs(a - b) <= c for a, b, c in zip(measured, exact, doubt, strict=True))
    figure, axes = one_panel(9, 0.3 * len(labels) + 1.7)
    axes.plot(exact, range(len(labels)), "|", color="#555555", markersize=14, label="by the exact law")
    axes.errorbar(
        measured, range(len(labels)), xerr=doubt, fmt="o", markersize=4, linewidth=1, color="#0b5c7a",
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
            for (label, own), a, b, c in zip(levels.items(), measured, exact, doubt, strict=True)
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


UNITS: Final = {"safetab-p": "persons", "safetab-h": "households"}
"""What a product counts."""


_ENOUGH: Final = 30  # published totals whose mean is more than a hint


def level_words(row: ErrorRow | ShareRow | ZeroRow) -> str:
    """The population group level of a row in words."""
    return level_of(row).label


def zero_words(zeros: Sequence[ZeroRow]) -> str:
    """Published empty groups and their exact number, in a sentence."""
    published, expected = sum(row.published for row in zeros), sum(row.expected for row in zeros)
    deviation = math.sqrt(sum(row.deviation**2 for row in zeros))
    verdict = (
        "as it should be"
        if abs(published - expected) <= 2 * deviation
        else "further off than chance explains"
    )
    return (
        f"Groups without a single record were published below the states {published:,} times in all draws; by the exact law it should be "
        f"{expected:,.1f} give or take {2 * deviation:,.1f}: {verdict}."
    )


def bias_exhibit(errors: _Errors, document: Mapping[str, Any]) -> Exhibit:
    """Bias of the published totals of groups that get nothing but a total, by true size."""
    first = min((row.table for row in errors), default="")
    rows = [
        row
        for row in errors
        if row.table == first and row.stat_level == 0 and not row.detailed_only and row.size != ALL_SIZES
        and row.published_cells
    ]  # fmt: skip
    sizes = [size for size in SIZES if any(row.size == size for row in rows)]
    labels = list(dict.fromkeys(level_words(row) for row in rows))
    cells = {(level_words(row), row.size): row for row in rows}
    texts = {
        key: f"{number_text(round(row.published_bias, 1) + 0.0)} ({row.published_cells:,})"
        for key, row in cells.items()
    }
    enough = [row for row in rows if row.published_cells >= _ENOUGH]
    lines = [[label, *(texts.get((label, size), "") for size in sizes)] for label in labels]
    worst = max(enough, key=lambda row: abs(row.published_bias), default=None)
    return exhibit(
        "groups.bias",
        answer=f"No size of groups has {_ENOUGH} published totals or more; the numbers below are hints."
        if worst is None
        else f"Where at least {_ENOUGH} were drawn, totals of groups with {_size_words(worst.size)} {UNITS[document['kind']]} are off most: "
        f"{worst.published_bias:+,.1f} on average ({level_words(worst)}, {worst.published_cells:,} published totals).",
        figure=_bias_figure(cells, labels, sizes) if len(sizes) > 1 else None,
        columns=("Level", *(_size_words(size) for size in sizes)),
        rows=lines if rows else None,
        unit=UNITS[document["kind"]],
    )


def _size_words(size: str) -> str:
    low, dash, high = size.rstrip("+").partition("-")
    more = " or more" if size.endswith("+") else ""
    return f"{int(low):,} to {int(high):,}" if dash else f"{int(low):,}{more}"


def _bias_figure(
    cells: Mapping[tuple[str, str], ErrorRow], labels: Sequence[str], sizes: Sequence[str]
) -> Figure:
    figure, axes = one_panel(9, 4.2)
    for number, label in enumerate(labels):
        known = [(place, cells[label, size]) for place, size in enumerate(sizes) if (label, size) in cells]
        axes.plot(
            [place for place, _ in known], [row.published_bias for _, row in known], marker="o", markersize=4,
            linewidth=1.2, color=colormaps["tab20"](number % 20), label=label,
        )  # fmt: skip
    axes.axhline(0.0, color="#555555", linewidth=1)
    axes.set_yscale("symlog", linthresh=10)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xticks(range(len(sizes)), [_size_words(size) for size in sizes])
    quiet(axes, x="true size of the group", y="mean of published less true total")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    return figure


def shares_exhibit(shares: Sequence[ShareRow], document: Mapping[str, Any]) -> Exhibit:
    """The tables that groups get, by level and true size."""
    recorded = [row for row in shares if row.size != "0"]
    total = sum(row.share * row.groups for row in recorded)
    none = sum(row.share * row.groups for row in recorded if row.table == "none")
    tables = list(dict.fromkeys(row.table for row in shares))
    several = len({row.measured for row in shares}) > 1
    groups = grouped(shares, lambda row: f"{level_words(row)}{f', {row.measured}' if several else ''}")
    sections = []
    for label, own in groups.items():
        by_size = {size: [row for row in own if row.size == size] for size in SIZES}
        lines = [[_size_words(size), *_share_line(rows, tables)] for size, rows in by_size.items() if rows]
        sections.append((label, lines))
    return exhibit(
        "groups.tables",
        answer=f"Of groups with at least one record {100 * none / total:.1f}% get no table at all, all levels together."
        if total
        else "There is no group with a record.",
        figure=shares_figure(shares) if shares else None,
        columns=("True size", "Groups", *("no table" if one == "none" else one for one in tables)),
        sections=sections,
        unit=UNITS[document["kind"]],
    )


def _share_line(rows: Sequence[ShareRow], tables: Sequence[str]) -> list[str]:
    total = sum({row.detailed_only: row.groups for row in rows}.values())
    sums = {table: sum(row.share * row.groups for row in rows if row.table == table) for table in tables}
    return [f"{total:,}", *(number_text(100 * sums[table] / total) if total else "n/a" for table in tables)]


def zeros_exhibit(zeros: Sequence[ZeroRow]) -> Exhibit:
    """Published groups without a record and the exact tail of the noise law."""
    rows = [row for row in zeros if row.groups]
    return exhibit(
        "groups.zeros",
        answer=zero_words(zeros),
        figure=_zeros_figure(rows) if rows else None,
        rows=[
            [
                level_words(row),
                *(f"{count:,}" for count in (row.groups, row.published)),
                *(number_text(value) for value in (row.expected, row.deviation)),
                *(number_text(1e6 * share) for share in (row.share, row.expected_share)),
            ]
            for row in rows
        ],
    )


def _zeros_figure(rows: Sequence[ZeroRow]) -> Figure:
    figure, axes = one_panel(9, 0.34 * len(rows) + 1.7)
    axes.errorbar(
        [row.expected for row in rows], range(len(rows)), xerr=[2 * row.deviation for row in rows], fmt="|",
        markersize=14, color="#9aa5b1", linewidth=5, label="by the exact law, two standard deviations",
    )  # fmt: skip
    axes.plot([row.published for row in rows], range(len(rows)), "o", color="#0b5c7a", label="published")
    axes.set_xlabel("empty groups published, all draws together", fontsize=9)
    label_rows(axes, [level_words(row) for row in rows])
    legend_below(figure, axes, columns=2)
    return figure
