"""What a certificate states of tables of counts, shares of the privacy loss and accuracy, and its plain-language sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

from censafe.errors import CheckError
from censafe.model import Definition, Neighbors, NoiseLaw, ProtectedUnit, PublishedQuery, ReleasePlan
from censafe.model.parsing import exact_text
from censafe.publication.pages import (
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
from censafe.publication.sums import accuracy_of_sum
from censafe.publication.tables.bureau import key_columns, region_type_of
from censafe.publication.tables.tidy import CodebookInput, TableLabel

UNITS: Mapping[ProtectedUnit, str] = {
    ProtectedUnit.PERSON: "every single person's record",
    ProtectedUnit.HOUSEHOLD: "every single household's record, with all its members",
}

NEIGHBORS: Mapping[Neighbors, str] = {
    Neighbors.ADD_REMOVE: "one {unit}'s record is present or absent",
    Neighbors.REPLACE: "one {unit}'s record has other values, the number of records being the same",
}

NOISE: Mapping[str, str] = {
    "gaussian": (
        "A random whole number was added to every count before it was used any further. It was drawn from the discrete Gaussian "
        "distribution, a bell curve on the whole numbers, so that small changes are likely and large ones are rare. The number "
        "may be negative, and so may the noisy count."
    ),
    "laplace": (
        "A random whole number was added to every count before it was used any further. It was drawn from the two-sided geometric "
        "distribution, in which each further step away from zero is less likely by a fixed factor. The number may be negative, "
        "and so may the noisy count."
    ),
}

ESTIMATED = (
    "Noisy counts were drawn in this way for every geounit of every level. Apart from what is published exactly, all published "
    "counts are nonnegative whole numbers that are estimated from the noisy counts of all levels and add up."
)

CONVERSIONS: Mapping[str, tuple[str, str]] = {
    "tight": (
        "Tight bound",
        "Canonne, Kamath and Steinke (2020), Corollary 13. Valid for every mechanism; the recommended value to quote.",
    ),
    "slide": (
        "Simple bound",
        "rho + 2 sqrt(rho ln(1/delta)), Bun and Steinke (2016). Valid but looser; the form in which the Census Bureau published "
        "its 2020 values.",
    ),
    "prefactor": (
        "Simple bound with prefactor",
        "rho + 2 sqrt(rho ln(sqrt(pi rho)/delta)), Bun and Steinke (2016). Valid; tighter than the simple bound only for small rho.",
    ),
    "gaussian": (
        "Single Gaussian query",
        "The value for a single query with continuous Gaussian noise and this rho. For information only; it is not a bound for this release.",
    ),
}

CALIBRATIONS: Mapping[str, str] = {
    "bureau": (
        "The noise is scaled by the rule of the Census Bureau's PHSafe: when at most tau persons of a "
        "household are counted in a table, one person can change a person table by at most 2 tau + 2 and a "
        "table of households by at most 2. The Census Bureau's own 2020 tables were protected by this rule."
    ),
    "household-local": (
        "The noise is scaled by what one person can change when the change stays inside that person's own "
        "household: at most sqrt(2) tau in a person table and sqrt(2) in a table of households under rho "
        "(2 tau and 2 under epsilon). This needs less noise than the Census Bureau's rule for the same loss. "
        "Where a person may instead move between two households, the loss is the larger one stated here "
        "for the other relation."
    ),
    "household-local-bounded": (
        "The noise is scaled for the relation in which one person's record is changed and may move between two "
        "households: at most 2 sqrt(2) tau in a person table and 2 sqrt(2) in a table of households under rho. "
        "The losses under both relations are stated here."
    ),
}

NOT_PROMISED: tuple[tuple[str, str], ...] = (
    (
        "Facts about groups",
        "The tables are meant to teach something about the population. What they show about all people of a kind may be inferred "
        "about each of them, whether or not that person's record was used.",
    ),
    (
        "The curator",
        "The agency that runs the software holds the records. The guarantee covers what is published, not the people and "
        "computers that handle the input.",
    ),
    (
        "Running time and side channels",
        "The running time, the memory use, and what another program on the same processor could observe during the run are not "
        "covered. Publish results together after the run.",
    ),
    (
        "Unlimited computing power",
        "The noise is made with AES-256 from a key of the operating system. No method is known that distinguishes it from true "
        "randomness; it is not secure against an adversary who breaks AES-256 or the operating system's generator.",
    ),
    (
        "What is treated as public",
        "The list of regions, the tables, the population groups, the budgets and the noise distributions are treated as public. "
        "This certificate also reveals that the run passed its input checks.",
    ),
    (
        "Other releases",
        "Losses of releases from the same records add up. The ledger adds the losses of all runs recorded in it; it does not know "
        "of releases made elsewhere.",
    ),
)


def group_words(definition: Definition) -> str:
    """How the loss grows for several people at once."""
    if definition is Definition.ZCDP:
        return "For k records together the loss is at most k times k times as large: 4 times for two, 9 times for three."
    return "For k records together the loss is at most k times as large."


Document = Mapping[str, Any]
SYMBOLS = {"rho": "\N{GREEK SMALL LETTER RHO}", "epsilon": "\N{GREEK SMALL LETTER EPSILON}"}


@dataclass(frozen=True)
class TableContents:
    """Tables of noisy counts over complete key domains."""

    queries: Sequence[PublishedQuery]
    codebook: CodebookInput

    @property
    def stamped(self) -> Sequence[PublishedQuery]:
        """The published queries."""
        return self.queries

    def check_costs(self, plan: ReleasePlan) -> None:
        """Compare law and loss of every measured query with the plan's."""
        planned = {(q.table, q.level): (q.law, q.cost) for part in plan.parts for q in part.queries}
        for query in self.queries:
            if query.cost and planned.get((query.table, query.level)) != (query.law, query.cost):
                raise CheckError(
                    f"table {query.table}, level {query.level}: noise law or budget differ from the plan; "
                    "do not publish the tables"
                )

    def noise_words(self) -> list[str]:
        """The laws, in words."""
        return sorted(NOISE[kind] for kind in {query.law.kind for query in self.queries})

    def tables(self, total: Fraction, confidence: Fraction) -> Iterator[Mapping[str, Any]]:
        """One entry for each table."""
        for table_name in dict.fromkeys(query.table for query in self.queries):
            queries = [query for query in self.queries if query.table == table_name]
            label = self.codebook.tables.get(table_name, TableLabel("", "", {}))
            yield {
                "table": table_name,
                "title": label.title,
                "universe": label.universe,
                **budget_entries((query.cost for query in queries), total),
                "rows": sum(query.domain.size for query in queries),
                "levels": [level for query in queries for level in self._levels(query, confidence)],
            }

    def _levels(self, query: PublishedQuery, confidence: Fraction) -> Iterator[dict[str, Any]]:
        """One entry a level, or one for each number of noise draws where cells differ in it."""
        cells = key_columns(query).cell
        draws = list(dict.fromkeys(query.terms.tolist()))
        for terms in draws:
            chosen = query.terms == terms
            yield {
                "level": query.level,
                "words": self.codebook.levels.get(query.level, query.level),
                "region_type": region_type_of(query.level),
                "regions": len(query.domain.axes[0].values),
                "rows": int(chosen.sum()),
                "cells": sorted(set(cells[chosen].tolist()), key=lambda cell: (len(cell), cell))
                if len(draws) > 1
                else [],
                **noise_entries(query.law, terms, query.cost, confidence),
            }

    def more(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}

    def published(self, document: Document) -> tuple[str, str]:
        """The number of counts, and of tables."""
        return counts_published(document)

    def sections(self, document: Document) -> str:
        """Shares of the loss, and accuracy."""
        return f"{shares_section(document)}\n{accuracy_section(document)}"


def budget_entries(costs: Iterable[Fraction], total: Fraction) -> dict[str, Any]:
    """What the queries of a table use of the total together; a table that uses nothing is derived from others."""
    cost = sum(costs, Fraction(0))
    return {
        "derived": cost == 0,
        "budget": exact_text(cost),
        "budget_decimal": float(cost),
        "share": float(cost / total) if total else 0.0,
    }


def noise_entries(law: NoiseLaw, draws: int, cost: Fraction, confidence: Fraction) -> dict[str, Any]:
    """The noise of one answer that adds up some draws, and how accurate the answer is."""
    accuracy = accuracy_of_sum(law, draws, confidence)
    return {
        "law": law.bureau_name,
        "parameter": exact_text(law.parameter),
        "noise_draws": draws,
        "budget": exact_text(cost),
        "budget_decimal": float(cost),
        "variance": accuracy.variance,
        "variance_reference": accuracy.variance_reference,
        "margin_of_error": accuracy.margin,
        "margin_of_error_exact": accuracy.margin_exact,
    }


def counts_published(document: Document) -> tuple[str, str]:
    """How many counts a certificate speaks of, and of how many tables."""
    tables = document["tables"]
    return (
        f"{integer(sum(entry['rows'] for entry in tables))} counts",
        f"in {len(tables)} tables, all with noise",
    )


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
        "Budget of each table",
        table(
            "Share of the privacy loss, by table",
            ("Table", "Share", "Counts", symbol, "Percent"),
            rows,
            numbers=3,
            total=True,
        ),
        paragraphs(
            "Tables marked as derived are computed from the noisy counts of other tables. They use no budget.",
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
    laws = sorted({level["law"] for entry in document["tables"] for level in entry["levels"]})
    groups = []
    for entry in document["tables"]:
        words = ". ".join(dict.fromkeys(text for text in (entry["title"], entry["universe"]) if text))
        name = HtmlCell(f"{escape(entry['table'])} <span>{escape(words)}</span>")
        groups.append((name, [_level_row(entry, level) for level in entry["levels"]]))
    return section(
        "accuracy",
        "How accurate the counts are",
        paragraphs(
            f"In {percent} of 100 cases the noise changed a count by no more than the margin of error. The "
            "first margin is computed as in the Census Bureau's papers; the exact margin is the smallest whole number "
            f"that the noise stays within in at least {percent} of 100 cases. Noise is not the only error: households "
            "with more persons than the limit of a table are counted up to the limit, and the census itself has errors."
        ),
        grouped_table(
            f"Noise of one count, by table and level. Distribution: {', '.join(laws)}.",
            headers,
            groups,
            numbers=5,
        ),
    )


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
