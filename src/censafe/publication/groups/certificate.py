"""What a certificate states of the tables of population groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import ReleasePlan
from censafe.model.groups import GroupEstimates, GroupNoise, GroupTable, ProductTables
from censafe.model.parsing import exact_text
from censafe.publication.certificate.tables import (
    NOISE,
    SYMBOLS,
    Document,
    budget_entries,
    counts_published,
    shares_section,
)
from censafe.publication.groups.tables import WEIGHTED, accuracy_of_cells
from censafe.publication.pages import (
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


def _accuracy_section(document: Document) -> str:
    """Variance and margins of error by level and by how much detail a group has."""
    percent, symbol = number(100 * document["confidence"]), SYMBOLS[document["loss"]["kind"]]
    entries = document["tables"]
    details = [detail for entry in entries for level in entry["groups"] for detail in level["details"]]
    laws = sorted({detail["cell"]["law"].removeprefix(WEIGHTED) for detail in details})
    parts = [
        paragraphs(
            "How much detail a group of people in an area gets depends on a noisy total. A cell is one of the counts that "
            "were measured, such as men aged 18 to 44; a total adds up all cells of a group and with them their noise. The "
            f"margin is the smallest whole number that the noise stays within in at least {percent} of 100 cases; with "
            "≈ it is computed from the variance, because the count is a weighted mean.",
            *document.get("notes", ()),
        )
    ]
    for entry in entries:
        caption = f"{entry['title']} ({entry['table']}), noise by level. Law: {', '.join(laws)}."
        levels = [(_level_name(level, symbol), _rows(level)) for level in entry["groups"]]
        parts.append(grouped_table(caption, _HEADERS, levels, numbers=5))
    return section(
        "accuracy",
        "How accurate the counts are",
        "\n".join(parts),
        paragraphs(
            "Every count has its own variance and margin of error in tables.parquet. Noise is not the only error: the "
            "census itself has errors."
        ),
    )


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
            HtmlCell(
                f"{escape(_title(detail))}<small>{escape(detail['table'])} · {count_of(detail['measured_cells'], 'measured cell')}</small>"
            ),
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


def _margin(accuracy: Mapping[str, Any]) -> str:
    exact = accuracy["margin_of_error_exact"]
    return integer(exact) if exact is not None else f"≈ {fixed(accuracy['margin_of_error'], 1)}"


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
        planned = {
            (self.product_tables.measured_by(part.queries[0].table), part.queries[0].level): part.cost
            for part in plan.parts
        }
        for estimates in self.groups:
            if planned.get((estimates.table, estimates.level.name)) != estimates.cost:
                raise CheckError(
                    f"level {estimates.level.name} of {estimates.table}: the budget differs from the plan; do not publish the tables"
                )

    def noise_words(self) -> list[str]:
        """The laws, in words."""
        return sorted({NOISE[noise.law.kind] for estimates in self.groups for noise in estimates.noises})

    def tables(self, total: Fraction, confidence: Fraction) -> Iterator[Mapping[str, Any]]:
        """One entry for each set of tables that are measured together."""
        for table in self.product_tables.tables:
            levels = [estimates for estimates in self.groups if estimates.table == table.key]
            if levels:
                yield {
                    "table": table.names,
                    "title": table.title,
                    "universe": table.universe,
                    **budget_entries((estimates.cost for estimates in levels), total),
                    "rows": sum(_written(estimates, table) for estimates in levels),
                    "levels": [],
                    "groups": [_level(estimates, table, confidence, self.words) for estimates in levels],
                }

    def more(self) -> Mapping[str, Any]:
        """The notes."""
        return {"notes": list(self.notes)} if self.notes else {}

    def published(self, document: Document) -> tuple[str, str]:
        """The number of counts, and of tables."""
        return counts_published(document)

    def sections(self, document: Document) -> str:
        """Shares of the loss, and accuracy by detail of a group."""
        return f"{shares_section(document)}\n{_accuracy_section(document)}"


def _level(
    estimates: GroupEstimates, table: GroupTable, confidence: Fraction, words: Mapping[str, str]
) -> dict[str, Any]:
    kind = estimates.level.region_type
    plain = f"{kind}, {'regional' if estimates.level.iteration_level == 1 else 'detailed'} groups"
    return {
        "level": estimates.level.name,
        "words": words.get(estimates.level.name, plain),
        "region_type": kind,
        "iteration_level": estimates.level.iteration_level,
        "regions": len(estimates.level.regions),
        "candidates": len(estimates.level.iterations),
        "groups": estimates.rows,
        "rows": _written(estimates, table),
        "budget": exact_text(estimates.cost),
        "budget_decimal": float(estimates.cost),
        "equal_areas": int(np.count_nonzero(estimates.shared)),
        "near_threshold": int(np.count_nonzero(estimates.near)),
        "conditional": int(np.count_nonzero(estimates.conditional)),
        "details": list(_details(estimates, table, confidence)),
    }


def _details(estimates: GroupEstimates, table: GroupTable, confidence: Fraction) -> Iterator[dict[str, Any]]:
    """One entry a stat level, and one for groups that get a total only wherever they are."""
    only = estimates.level.detailed_only[estimates.iteration]
    for stat_level, shell in table.shells.items():
        for detailed_only in (False, True):
            inside = (estimates.stat_level == stat_level) & (only == detailed_only)
            own = inside & ~estimates.shared  # those made equal to other areas have noise of their own
            counts = np.bincount(estimates.noise[own if own.any() else inside], minlength=1)
            if not counts.any():
                continue
            noise = estimates.noises[int(np.argmax(counts))]  # that most groups have
            yield {
                "stat_level": stat_level,
                "detailed_only": detailed_only,
                "table": shell.table,
                "title": shell.title,
                "groups": int(np.count_nonzero(inside)),
                "rows": _written(estimates, table, inside),
                "measured_cells": shell.basis,
                "cell": _accuracy(noise, 1, confidence),
                "total": _accuracy(noise, noise.cells, confidence),
            }


def _accuracy(noise: GroupNoise, count: int, confidence: Fraction) -> dict[str, Any]:
    accuracy = accuracy_of_cells(noise, count, confidence)
    return {
        "law": accuracy.law,
        "parameter": accuracy.parameter,
        "noise_draws": accuracy.draws,
        "variance": accuracy.variance,
        "margin_of_error": accuracy.margin,
        "margin_of_error_exact": accuracy.margin_exact,
    }


def _written(estimates: GroupEstimates, table: GroupTable, inside: NDArray[np.bool_] | None = None) -> int:
    stat_level = estimates.stat_level if inside is None else estimates.stat_level[inside]
    return int(np.array(table.widths, np.int64)[stat_level].sum())
