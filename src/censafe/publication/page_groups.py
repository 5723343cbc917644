"""The part of the certificate about the accuracy of counts of population groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from censafe.publication.group_accuracy import WEIGHTED
from censafe.publication.markup import Cell, count_of, fixed, grouped_table, integer, number, paragraphs

__all__ = ["group_accuracy"]

_HEADERS = ("Detail of a group", "Groups", "Variance, cell", "Margin", "Variance, total", "Margin")


def group_accuracy(
    entries: Sequence[Mapping[str, Any]], symbol: str, percent: str, notes: Sequence[str] = ()
) -> str:
    """Variance and margins of error by level and by how much detail a group has.

    Args:
        entries: tables with the key ``groups``, from :func:`censafe.publication.group_statement.group_tables`.
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


def _level_name(level: Mapping[str, Any], symbol: str) -> Cell:
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
    return Cell(f"{escape(level['words'])} <span>{escape('; '.join(facts))}</span>")


def _rows(level: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            Cell(f"{escape(_title(detail))}<small>{escape(_small(detail))}</small>"),
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
