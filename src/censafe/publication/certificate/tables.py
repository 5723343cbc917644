"""The tables of the certificate: shares of the privacy loss, accuracy of the counts and of population groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from censafe.publication.groups.statement import WEIGHTED
from censafe.publication.pages.markup import (
    HtmlCell,
    count_of,
    fixed,
    grouped_table,
    integer,
    number,
    paragraphs,
    section,
    table,
)

__all__ = ["SYMBOLS", "Document", "accuracy_section", "group_accuracy", "shares_section"]


_HEADERS = ("Detail of a group", "Groups", "Variance, cell", "Margin", "Variance, total", "Margin")


def group_accuracy(
    entries: Sequence[Mapping[str, Any]], symbol: str, percent: str, notes: Sequence[str] = ()
) -> str:
    """Variance and margins of error by level and by how much detail a group has.

    Args:
        entries: tables with the key ``groups``, from :func:`censafe.publication.groups.statement.group_tables`.
        symbol: of the budget.
        percent: confidence of the margins.
        notes: what was done after the measurements, in words.
    """
    details = [detail for entry in entries for level in entry["groups"] for detail in level["details"]]
    laws = sorted({detail["cell"]["law"].removeprefix(WEIGHTED) for detail in details})
    parts = [
        paragraphs(
            "How much detail a group of people in an area gets depends on a noisy total. A cell is one of the counts that "
            "were measured, such as men aged 18 to 44; a total adds up all cells of a group and with them their noise. The "
            f"margin is the smallest whole number that the noise stays within in at least {percent} of 100 cases; with "
            "≈ it is computed from the variance, because the count is a weighted mean.",
            *notes,
        )
    ]
    for entry in entries:
        caption = f"{entry['title']} ({entry['table']}), noise by level. Law: {', '.join(laws)}."
        levels = [(_level_name(level, symbol), _rows(level)) for level in entry["groups"]]
        parts.append(grouped_table(caption, _HEADERS, levels, numbers=5))
    return "\n".join(parts)


def _level_name(level: Mapping[str, Any], symbol: str) -> HtmlCell:
    facts = [
        f"{symbol} = {number(level['budget_decimal'])}",
        count_of(level["regions"], "region"),
        f"{count_of(level['candidates'], 'candidate')} each",
        f"{count_of(level['groups'], 'group')} published",
    ]
    if level["conditional"]:
        facts.append(f"{integer(level['conditional'])} only because their noisy total was above a limit")
    if level["equal_areas"]:
        facts.append(f"{integer(level['equal_areas'])} made equal to other areas")
    if level["near_threshold"]:
        facts.append(f"{integer(level['near_threshold'])} near a threshold")
    return HtmlCell(f"{escape(level['words'])} <span>{escape('; '.join(facts))}</span>")


def _rows(level: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            HtmlCell(f"{escape(_title(detail))}<small>{escape(_small(detail))}</small>"),
            integer(detail["groups"]),
            fixed(detail["cell"]["variance"], 2),
            _margin(detail["cell"]),
            fixed(detail["total"]["variance"], 2),
            _margin(detail["total"]),
        )
        for detail in level["details"]
    ]


def _title(detail: Mapping[str, Any]) -> str:
    if detail["detailed_only"]:
        return "Total only, for nation and states"
    if detail["stat_level"] == 0:
        return "Total only"
    title: str = detail["title"]
    return title if detail["table"] != "T01001" else "Total"


def _small(detail: Mapping[str, Any]) -> str:
    return f"{detail['table']} · {count_of(detail['measured_cells'], 'measured cell')}"


def _margin(accuracy: Mapping[str, Any]) -> str:
    exact = accuracy["margin_of_error_exact"]
    return integer(exact) if exact is not None else f"≈ {fixed(accuracy['margin_of_error'], 1)}"


Document = Mapping[str, Any]
SYMBOLS = {"rho": "\N{GREEK SMALL LETTER RHO}", "epsilon": "\N{GREEK SMALL LETTER EPSILON}"}


def shares_section(document: Document) -> str:
    """What every table used of the privacy loss."""
    symbol = SYMBOLS[document["loss"]["kind"]]
    rows = [_share_row(entry) for entry in document["tables"]]
    total = document["loss"]["decimal"]
    rows.append(
        ("All tables", "", integer(sum(e["rows"] for e in document["tables"])), _budget(total), "100.0%")
    )
    return section(
        "shares",
        "What each table used",
        table(
            "Share of the privacy loss, by table",
            ("Table", "Share", "Counts", symbol, "Percent"),
            rows,
            numbers=3,
            total=True,
        ),
        paragraphs(
            "Tables marked as derived are computed from the noisy counts of other tables. They use nothing.",
            kind="note",
        )
        if any(entry["derived"] for entry in document["tables"])
        else "",
    )


def _share_row(entry: Document) -> tuple[str, ...]:
    percent = 100 * entry["share"]
    bar = f'<div class="bar" aria-hidden="true"><span style="width:{percent:.2f}%"></span></div>'
    name = f"{escape(entry['table'])}<small>{escape(entry['title'])}</small>"
    if entry["derived"]:
        return (HtmlCell(name), "derived", integer(entry["rows"]), "0", "0.0%")
    return (
        HtmlCell(name),
        HtmlCell(bar),
        integer(entry["rows"]),
        _budget(entry["budget_decimal"]),
        f"{percent:.1f}%" if percent >= 0.05 else "under 0.1%",
    )


def accuracy_section(document: Document) -> str:
    """Variance and margins of error of every table and level."""
    percent = number(100 * document["confidence"])
    symbol = SYMBOLS[document["loss"]["kind"]]
    headers = ("Table and level", "Counts", symbol, "Variance", "Margin of error", "Exact margin")
    plain = [entry for entry in document["tables"] if "groups" not in entry]
    if not plain:
        return _group_section(document, symbol, percent)
    laws = sorted({level["law"] for entry in plain for level in entry["levels"]})
    groups = [
        (_table_name(entry), [_level_row(entry, level) for level in entry["levels"]]) for entry in plain
    ]
    return section(
        "accuracy",
        "How accurate the counts are",
        paragraphs(
            f"In {percent} of 100 cases the noise moved a count by no more than the margin of error, up or down. The "
            "first margin is computed as in the Census Bureau's papers; the exact margin is the smallest whole number "
            f"that the noise stays within in at least {percent} of 100 cases. Noise is not the only error: households "
            "with more persons than the limit of a table are counted up to the limit, and the census itself has errors."
        ),
        grouped_table(
            f"Noise of one count, by table and level. Law: {', '.join(laws)}.", headers, groups, numbers=5
        ),
    )


def _group_section(document: Document, symbol: str, percent: str) -> str:
    return section(
        "accuracy",
        "How accurate the counts are",
        group_accuracy(document["tables"], symbol, percent, document.get("notes", ())),
        paragraphs(
            "Every count has its own variance and margin of error in tables.parquet. Noise is not the only error: the "
            "census itself has errors."
        ),
    )


def _table_name(entry: Document) -> HtmlCell:
    words = ". ".join(dict.fromkeys(text for text in (entry["title"], entry["universe"]) if text))
    return HtmlCell(f"{escape(entry['table'])} <span>{escape(words)}</span>")


def _level_row(entry: Document, level: Document) -> tuple[str, ...]:
    name = escape(level["words"])
    if level["cells"]:
        cells = f"cell{'' if len(level['cells']) == 1 else 's'} {', '.join(level['cells'])}"
        name += f", {escape(cells)}"
    draws = f" · {level['noise_draws']} draws added" if level["noise_draws"] > 1 else ""
    small = f"{escape(level['level'])} · {count_of(level['regions'], 'region')}{draws}"
    return (
        HtmlCell(f"{name}<small>{small}</small>"),
        integer(level["rows"]),
        "derived" if entry["derived"] else _budget(level["budget_decimal"]),
        fixed(level["variance"], 2),
        fixed(level["margin_of_error"], 1),
        integer(level["margin_of_error_exact"]),
    )


def _budget(value: float) -> str:
    """Six places as in the published budgets, or the number in full where that would read as zero."""
    return fixed(value, 6) if value == 0 or value >= 1e-5 else number(value)
