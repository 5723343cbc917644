"""What a certificate states of the tables of population groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any

from censafe.model import ReleasePlan
from censafe.model.groups.cells import ProductTables
from censafe.model.groups.estimates import GroupEstimates
from censafe.publication.certificate.tables import SYMBOLS, Document, counts_published, shares_section
from censafe.publication.certificate.words import NOISE
from censafe.publication.groups.statement import WEIGHTED, check_group_costs, group_tables, noise_kinds
from censafe.publication.pages.markup import (
    HtmlCell,
    count_of,
    fixed,
    grouped_table,
    integer,
    number,
    paragraphs,
    section,
)

_HEADERS = ("Detail of a group", "Groups", "Variance, cell", "Margin", "Variance, total", "Margin")


def _accuracy(
    entries: Sequence[Mapping[str, Any]], symbol: str, percent: str, notes: Sequence[str] = ()
) -> str:
    """Variance and margins of error by level and by how much detail a group has."""
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


def _group_section(document: Document, symbol: str, percent: str) -> str:
    return section(
        "accuracy",
        "How accurate the counts are",
        _accuracy(document["tables"], symbol, percent, document.get("notes", ())),
        paragraphs(
            "Every count has its own variance and margin of error in tables.parquet. Noise is not the only error: the "
            "census itself has errors."
        ),
    )


@dataclass(frozen=True)
class GroupContents:
    """Tables of population groups.

    Args:
        words: for levels, by name; without words the type of region and the level of iterations are shown.
    """

    groups: Sequence[GroupEstimates]
    product_tables: ProductTables
    words: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def stamped(self) -> Sequence[GroupEstimates]:
        """The published groups."""
        return self.groups

    def check_costs(self, plan: ReleasePlan) -> None:
        """Compare the loss of every level with the plan's; CheckError where they differ."""
        check_group_costs(self.groups, plan, self.product_tables)

    def noise_words(self) -> list[str]:
        """The laws, in words."""
        return sorted(NOISE[kind] for kind in noise_kinds(self.groups))

    def tables(self, total: Fraction, confidence: Fraction) -> Iterator[Mapping[str, Any]]:
        """One entry for each set of tables that are measured together."""
        return group_tables(self.groups, self.product_tables, total, confidence, self.words)

    def more(self) -> Mapping[str, Any]:
        """The notes."""
        return {"notes": list(self.notes)} if self.notes else {}

    def published(self, document: Document) -> tuple[str, str]:
        """The number of counts, and of tables."""
        return counts_published(document)

    def sections(self, document: Document) -> str:
        """Shares of the loss, and accuracy by detail of a group."""
        percent = number(100 * document["confidence"])
        symbol = SYMBOLS[document["loss"]["kind"]]
        return f"{shares_section(document)}\n{_group_section(document, symbol, percent)}"
