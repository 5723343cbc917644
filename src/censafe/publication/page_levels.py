"""The part of the certificate about estimates from measurements of every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

__all__ = ["levels_sections"]

Document = Mapping[str, Any]


def levels_sections(document: Document, symbol: str) -> str:
    """What is exact, the noise of every query by level, and how the estimates were found."""
    percent = number(100 * document["confidence"])
    return "\n".join(
        (
            section("exact", "What is published exactly", paragraphs(*document["estimated"]["exact"]))
            if document["estimated"]["exact"]
            else "",
            _readings(document["estimated"]["readings"], symbol),
            section("shares", "What each level and query used", *_noise(document, symbol, percent)),
            section("estimates", "How the counts were estimated", *_solves(document["estimated"])),
        )
    )


def _readings(readings: Sequence[Document], symbol: str) -> str:
    if not readings:
        return ""
    groups = []
    for group in dict.fromkeys((one["histogram"], one["kind"], one["change"]) for one in readings):
        histogram, kind, change = group
        own = [one for one in readings if (one["histogram"], one["kind"], one["change"]) == group]
        whose = "all histograms" if histogram == "all" else histogram
        rows = [(one["name"], number(one["decimal"]), fixed(one["epsilon"], 2)) for one in own]
        groups.append((f"{whose}, {kind}{f': {change}' if change else ''}", rows))
    return section(
        "readings",
        "What the loss means for one question",
        paragraphs(
            "Somebody who knows everything about a record but one attribute, or who knows the area in which it lies but not where "
            "inside it, learns less than the total loss allows: only the queries that tell the answers apart count. Where budget "
            "moves along the spine, this is the largest value of any block. Where the totals of the blocks are published exactly, "
            "no record can be in another block alone; two records then change places, and both are counted. Areas are the standard ones."
        ),
        grouped_table(
            "Loss by question", ("Question", symbol, "\N{GREEK SMALL LETTER EPSILON}"), groups, numbers=2
        ),
    )


def _noise(document: Document, symbol: str, percent: str) -> list[str]:
    total = document["loss"]["decimal"]
    entries = [(entry["table"], level) for entry in document["tables"] for level in entry["levels"]]
    laws = sorted({level["law"] for _, level in entries})
    groups = []
    for name in dict.fromkeys((query.partition(".")[0], level["level"]) for query, level in entries):
        histogram, level_name = name
        own = [
            (query.partition(".")[2], level)
            for query, level in entries
            if query.startswith(f"{histogram}.") and level["level"] == level_name
        ]
        spent = sum(level["budget_decimal"] for _, level in own)
        facts = f"{count_of(own[0][1]['regions'], 'geounit')}; {symbol} = {number(spent)}, {100 * spent / total:.1f}%"
        head = Cell(f"{escape(histogram)}, {escape(level_name)} <span>{escape(facts)}</span>")
        groups.append((head, [_noise_row(query, level) for query, level in own]))
    headers = ("Query", "Answers", symbol, "Standard deviation", "Exact margin")
    return [
        paragraphs(
            "Every query was measured in every geounit of its level, also where nobody lives. The noise is that of one "
            f"measured answer: in {percent} of 100 cases it is no larger than the margin, up or down. Published counts "
            "are estimates from all these answers together. Because none may be negative, small counts tend to come out too "
            "high, and large ones too low. Noise is not the only error: the census itself has errors."
        ),
        grouped_table(f"Noise of a measured answer. Law: {', '.join(laws)}.", headers, groups, numbers=4),
    ]


def _noise_row(query: str, level: Document) -> tuple[str, ...]:
    return (
        query,
        integer(level["answers"]),
        number(level["budget_decimal"]),
        fixed(level["standard_deviation"], 2),
        integer(level["margin_of_error_exact"]),
    )


def _solves(estimated: Document) -> list[str]:
    rows = [
        _solve_row(histogram, level) for histogram, levels in estimated["solves"].items() for level in levels
    ]
    headers = ("Level", "Geounits", "Problems solved", "With certificate", "Without", "Largest gap")
    return [
        paragraphs(
            "From the widest level down, the counts of the children of every geounit were found together: none negative, "
            "adding up to the geounit in every cell, meeting everything that is published exactly, and otherwise as close "
            "to the measurements as possible by weighted squares. Then they were rounded to whole numbers that keep all of "
            "this, and checked. The gap bounds how far a solution is from the best one, in half chi-square units.",
            *estimated["remarks"],
        ),
        table("Solutions by level", headers, rows, numbers=5),
    ]


def _solve_row(histogram: str, level: Document) -> Sequence[str]:
    solved: Mapping[str, int] = level["solved"]
    every = sum(solved.values())
    without = solved.get("approximate", 0)
    return (
        Cell(f"{escape(histogram)}, {escape(level['level'])}"),
        integer(level["geounits"]),
        integer(every),
        integer(every - without),
        integer(without),
        f"{level['gap_most']:.1e}",
    )
