"""Population groups on the page of a SafeTab evaluation: bias by size, tables, and empty groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from censafe.evaluation.confidential import label_rows, legend_below
from censafe.evaluation.outputs import number_text
from censafe.evaluation.pages.page import exhibit, one_panel, quiet
from censafe.evaluation.tables.groups.accuracy import ALL_SIZES, ErrorRow, ShareRow, ZeroRow
from censafe.evaluation.tables.groups.cells import SIZES
from censafe.evaluation.tables.groups.figure import shares_figure
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from censafe.publication.pages.exhibits import Exhibit

_Errors = Sequence[ErrorRow]
UNITS: Final = {"safetab-p": "persons", "safetab-h": "households"}
"""What a product counts."""


_ENOUGH: Final = 30  # published totals whose mean is more than a hint


def level_words(row: ErrorRow | ShareRow | ZeroRow) -> str:
    """The population group level of a row in words."""
    return PopulationGroupLevel(row.region_type, row.iteration_level).label


def zero_words(zeros: Sequence[ZeroRow]) -> str:
    """Published empty groups beside their exact number, in a sentence."""
    found, expected = sum(row.published for row in zeros), sum(row.expected for row in zeros)
    deviation = math.sqrt(sum(row.deviation**2 for row in zeros))
    verdict = (
        "as it should be" if abs(found - expected) <= 2 * deviation else "further off than chance explains"
    )
    return (
        f"Groups without a single record were published below the states {found:,} times in all draws; by the exact law it should be "
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
    groups: dict[str, list[ShareRow]] = {}
    for row in shares:
        groups.setdefault(f"{level_words(row)}{f', {row.measured}' if several else ''}", []).append(row)
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
    """Published groups without a record beside the exact tail of the noise law."""
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
