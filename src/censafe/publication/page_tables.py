"""The tables of the certificate: shares of the privacy loss, and accuracy of the counts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from censafe.publication.markup import (
    Cell,
    count_of,
    fixed,
    grouped_table,
    integer,
    number,
    paragraphs,
    section,
    table,
)
from censafe.publication.page_groups import group_accuracy

__all__ = ["SYMBOLS", "Document", "accuracy_section", "shares_section"]

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
        return (Cell(name), "derived", integer(entry["rows"]), "0", "0.0%")
    return (
        Cell(name),
        Cell(bar),
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


def _table_name(entry: Document) -> Cell:
    words = ". ".join(dict.fromkeys(text for text in (entry["title"], entry["universe"]) if text))
    return Cell(f"{escape(entry['table'])} <span>{escape(words)}</span>")


def _level_row(entry: Document, level: Document) -> tuple[str, ...]:
    name = escape(level["words"])
    if level["cells"]:
        cells = f"cell{'' if len(level['cells']) == 1 else 's'} {', '.join(level['cells'])}"
        name += f", {escape(cells)}"
    draws = f" · {level['noise_draws']} draws added" if level["noise_draws"] > 1 else ""
    small = f"{escape(level['level'])} · {count_of(level['regions'], 'region')}{draws}"
    return (
        Cell(f"{name}<small>{small}</small>"),
        integer(level["rows"]),
        "derived" if entry["derived"] else _budget(level["budget_decimal"]),
        fixed(level["variance"], 2),
        fixed(level["margin_of_error"], 1),
        integer(level["margin_of_error_exact"]),
    )


def _budget(value: float) -> str:
    """Six places as in the published budgets, or the number in full where that would read as zero."""
    return fixed(value, 6) if value == 0 or value >= 1e-5 else number(value)
