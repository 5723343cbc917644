"""The pages of ``evaluate phsafe``, ``safetab-p`` and ``safetab-h``, from their files alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from censafe.evaluation.confidential import label_rows, legend_below
from censafe.evaluation.outputs import number_text, read_evaluation, read_report_rows
from censafe.evaluation.pages.page import Page, exhibit, grouped, one_panel, quiet
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
from censafe.evaluation.tables.group_accuracy import (
    ALL_SIZES,
    SPREAD,
    ErrorRow,
    ShareRow,
    ZeroRow,
    draw_margins,
    frequent_rows,
    level_of,
    shares_figure,
)
from censafe.evaluation.tables.groups import SIZES
from censafe.evaluation.tables.phsafe import AccuracyRow, margin_panel, percent_cut, truncation_panel
from censafe.model.bounds import lower
from censafe.products.phsafe.definitions import phsafe_definitions
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
    exhibits = [_group_margins(errors, document), _group_coverage(errors), _sums(errors, document)]
    exhibits += [bias_exhibit(errors, document), shares_exhibit(shares, document)]
    if zeros:
        exhibits.append(zeros_exhibit(zeros))
    single, name = _single(errors), _PRODUCTS[document["kind"]]
    coverage = coverage_words(
        _cells(single),
        _share(single, "noise_coverage"),
        _share(single, "expected_coverage"),
        2,
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


def _cells(rows: Sequence[ErrorRow | AccuracyRow]) -> int:
    """How many noisy cells rows are about."""
    return sum(row.drawn for row in rows)


def _share(rows: Sequence[ErrorRow | AccuracyRow], name: str) -> float:
    """A share or mean of all noisy cells together."""
    return pooled_share([row.drawn for row in rows], [getattr(row, name) for row in rows])


def _by_level(rows: _Errors) -> dict[str, list[ErrorRow]]:
    """Rows by their level in words."""
    return grouped(rows, level_words)


def _group_margins(errors: _Errors, document: Mapping[str, Any]) -> Exhibit:
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
    lines = {
        row: [
            f"{row.table}{', detailed only' if row.detailed_only else ''}: {row.cell}",
            f"{row.noise_cells:,}",
            f"{row.expected_moe_exact:,}",
            number_text(row.noise_moe, 0),
            signed_text(row.noise_bias, bias_doubt(document, [row.noise_cells], [row.expected_moe]), 2),
            number_text(row.expected_moe_zcdp),
            number_text(row.expected_moe_puredp),
        ]
        for row in rows
    }
    return exhibit(
        "groups.margins",
        figure=figure,
        sections=[(label, [lines[row] for row in own]) for label, own in _by_level(rows).items()],
        close=close,
        number=len(rows),
        unit=UNITS[document["kind"]],
    )


def _group_coverage(errors: _Errors) -> Exhibit:
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


def _sums(errors: _Errors, document: Mapping[str, Any]) -> Exhibit:
    rows = [row for row in errors if row.size == ALL_SIZES and row.noise_cells]
    kinds = grouped(
        sorted(rows, key=lambda row: (row.table, row.draws_a_cell)), lambda row: (row.table, row.draws_a_cell)
    )
    most = max(rows, key=lambda row: row.draws_a_cell)
    return exhibit(
        "groups.sums",
        answer=f"A {most.table} {most.cell.lower()} of a group whose table has more detail is the sum of {most.draws_a_cell} noisy counts: its margin is "
        f"about {math.sqrt(most.draws_a_cell):.1f} times that of one count."
        if most.draws_a_cell > 1
        else "No count of this release is a sum of others.",
        rows=[
            [
                f"{table}: {', '.join(dict.fromkeys(row.cell for row in own))}",
                f"{draws:,}",
                *(f"{end([row.expected_moe_exact for row in own]):,}" for end in (min, max)),
                f"{_cells(own):,}",
                percent_text(_share(own, "noise_coverage"), 2),
            ]
            for (table, draws), own in kinds.items()
        ],
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
        lines = []
        for size in SIZES:
            rows = [row for row in own if row.size == size]
            number = sum({row.detailed_only: row.groups for row in rows}.values())
            parts = (sum(row.share * row.groups for row in rows if row.table == table) for table in tables)
            texts = (number_text(100 * part / number) if number else "n/a" for part in parts)
            if rows:
                lines.append([_size_words(size), f"{number:,}", *texts])
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
        exhibits=[
            _table_margins(rows, document),
            _table_coverage(rows, document),
            _truncation(rows),
            _losses(rows),
        ],
        settings=table_settings(document),
    )


def _groups(rows: _Rows) -> dict[str, dict[str, list[AccuracyRow]]]:
    """Rows by kind of region, then by table."""
    places = grouped(rows, lambda row: row.region_type)
    return {place: grouped(own, lambda row: row.table) for place, own in places.items()}


def _sections(rows: _Rows, line: Callable[[_Rows], Sequence[str]]) -> list[tuple[str, list[list[str]]]]:
    """A line for every table of the release, states below the nation."""
    return [
        (_PLACES[place].capitalize(), [[table, *line(own)] for table, own in members.items()])
        for place, members in _groups(rows).items()
    ]


def _tables(rows: _Rows) -> list[str]:
    return list(dict.fromkeys(row.table for row in rows))


def _percent(share: float) -> str:
    """A coverage, rounded down."""
    return percent_text(lower(share, 3), 1)


def _cut_words(rows: _Rows) -> str:
    shares = {table: percent_cut(own) for members in _groups(rows).values() for table, own in members.items()}
    worst = min(shares, key=lambda table: shares[table])
    if shares[worst] >= 0:
        return "Truncation of large households takes nothing from any table."
    return (
        f"Leaving out persons of large households costs most in {worst}: {-shares[worst]:.2f}% of its count."
    )


def _table_margins(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
    figure, axes = one_panel(9, 0.36 * len(_tables(rows)) + 1.9)
    margin_panel(axes, rows)
    legend_below(figure, axes, columns=3)
    known = [row for row in rows if row.expected_moe > 0]
    ratio = float(np.median([row.experimental_moe_noise / row.expected_moe for row in known]))
    right = float(np.median([few_draws(document, row.drawn) for row in known]))

    def line(own: _Rows) -> list[str]:
        margins = [row.expected_moe for row in own]
        medians = (np.median(margins), np.median([row.experimental_moe_noise for row in own]))
        doubt = bias_doubt(document, [row.drawn for row in own], margins)
        return [
            f"{_cells(own):,}",
            *(number_text(float(margin)) for margin in (min(margins), max(margins), *medians)),
            signed_text(_share(own, "bias_noise"), doubt),
        ]

    return exhibit(
        "phsafe.margins",
        figure=figure,
        sections=_sections(rows, line),
        ratio=ratio,
        right=right,
    )


def _table_coverage(rows: _Rows, document: Mapping[str, Any]) -> Exhibit:
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
            shares = [_share(own, f"coverage_{side}") for own in members.values()]
            axes.errorbar(
                shares, [tables.index(table) + offset for table in members],
                xerr=[share_doubt(share, _cells(own)) for share, own in zip(shares, members.values(), strict=True)],
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
    cells = {cell: line.label for cell, line in table.cells.items()}
    return [
        f"{row.table}, {_PLACES[row.region_type]}: {cells[row.cell]}",
        groups.get(row.iteration, "Everyone"),
        number_text(row.true_total / row.regions, 0),
        number_text(-row.bias_truncation),
        number_text(-percent_cut([row]), 2),
        number_text(row.expected_moe),
    ]
