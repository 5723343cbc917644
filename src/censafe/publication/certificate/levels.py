"""The part of the certificate about estimates from measurements of every level."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any, Final, NamedTuple

from censafe.errors import CheckError
from censafe.model import NoiseLaw, ReleasePlan
from censafe.model.measurements import run_result
from censafe.model.plan import NoiseSource
from censafe.publication.certificate.anonymity import anonymity_section, read_sentences
from censafe.publication.certificate.tables import (
    ESTIMATED,
    NOISE,
    SYMBOLS,
    Document,
    budget_entries,
    noise_entries,
)
from censafe.publication.pages import (
    HtmlCell,
    breakable,
    count_of,
    fixed,
    grouped_table,
    integer,
    number,
    paragraphs,
    section,
    table,
)


class AreaWords(NamedTuple):
    """Words for an area of any level, for one of the lowest level, and for the areas whose names are used."""

    unit: str
    lowest: str
    kind: str


_CENSUS: Final = AreaWords("geounit", "block", "standard census areas")


def _readings(readings: Sequence[Document], symbol: str, areas: AreaWords) -> str:
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
        "What the loss means for a single question",
        paragraphs(
            "An attacker who knows everything about a person except one answer, or who knows the area of a person but not the "
            f"{areas.lowest}, learns less than the total loss allows: only queries that distinguish the possible answers count. Questions of all "
            "histograms are about a person or a household, with the records that follow; those of one histogram are by rows, about "
            "one record of it. Where the "
            f"budget of a {areas.lowest} depends on the spine, the largest value of any {areas.lowest} is shown. Where {areas.lowest} totals are published "
            f"exactly, a record cannot be in another {areas.lowest} by itself; two records then exchange places, and both are counted. "
            f"Areas are {areas.kind}."
        ),
        grouped_table(
            "Loss by question", ("Question", symbol, "\N{GREEK SMALL LETTER EPSILON}"), groups, numbers=2
        ),
    )


def _noise(document: Document, symbol: str, areas: AreaWords) -> str:
    percent = number(100 * document["confidence"])
    entries = [(entry["table"], level) for entry in document["tables"] for level in entry["levels"]]
    laws = sorted({level["law"] for _, level in entries})
    by_rows = sum(level["budget_decimal"] for _, level in entries)  # which is not the loss of a person
    groups = []
    for name in dict.fromkeys((query.partition(".")[0], level["level"]) for query, level in entries):
        histogram, level_name = name
        own = [
            (query.partition(".")[2], level)
            for query, level in entries
            if query.startswith(f"{histogram}.") and level["level"] == level_name
        ]
        spent = sum(level["budget_decimal"] for _, level in own)
        facts = f"{count_of(own[0][1]['regions'], areas.unit)}; {symbol} = {number(spent)}, {100 * spent / by_rows:.1f}%"
        head = HtmlCell(f"{escape(histogram)}, {escape(level_name)} <span>{escape(facts)}</span>")
        rows = [
            (
                breakable(query),
                integer(level["answers"]),
                number(level["budget_decimal"]),
                fixed(level["standard_deviation"], 2),
                integer(level["margin_of_error_exact"]),
            )
            for query, level in own
        ]
        groups.append((head, rows))
    headers = ("Query", "Answers", symbol, "Standard deviation", "Exact margin")
    return section(
        "shares",
        "Budget and noise by level and query",
        paragraphs(
            f"Every query was measured in every {areas.unit} of its level, including those without population. The table shows the "
            f"noise of one noisy measurement: in {percent} of 100 cases it is within the margin of error. Published counts are "
            "estimates from all noisy measurements together. Because no count may be negative, small counts tend to be biased "
            "upward and large counts downward. Noise is not the only source of error: the census itself has errors."
        ),
        grouped_table(
            f"Noise of a noisy measurement. Distribution: {', '.join(laws)}.", headers, groups, numbers=4
        ),
    )


def _solves(estimated: Document, areas: AreaWords) -> str:
    rows = []
    for histogram, levels in estimated["solves"].items():
        for level in levels:
            solved, uncertified = sum(level["solved"].values()), level["solved"].get("approximate", 0)
            rows.append(
                (
                    HtmlCell(f"{escape(histogram)}, {escape(level['level'])}"),
                    integer(level["geounits"]),
                    integer(solved),
                    integer(solved - uncertified),
                    integer(uncertified),
                    f"{level['gap_most']:.1e}",
                )
            )
    headers = (
        "Level",
        f"{areas.unit.capitalize()}s",
        "Problems solved",
        "Certified",
        "Not certified",
        "Largest gap",
    )
    return section(
        "estimates",
        "How the counts were estimated",
        paragraphs(
            f"From the top level down, the counts of all children of {'an' if areas.unit[0] in 'aeiou' else 'a'} {areas.unit} were estimated together by weighted least squares: "
            "nonnegative, adding up to the parent in every cell, consistent with everything that is published exactly, and "
            "otherwise as close to the noisy measurements as possible. They were then rounded to whole numbers that satisfy the "
            "same constraints, and checked. The gap bounds the distance of a solution from the optimum, in half chi-square units; "
            "a certified solution has at most 1e-4, or at the US and state levels at most one millionth of its objective.",
            *estimated["remarks"],
        ),
        table("Solutions by level", headers, rows, numbers=5),
    )


@run_result
@dataclass(frozen=True)
class LevelFacts:
    """One measured query of one level."""

    table: str
    level: str
    law: NoiseLaw
    cost: Fraction
    geounits: int
    answers: int
    source: NoiseSource


@dataclass(frozen=True)
class LevelEstimates:
    """Estimates that were made from the measurements of every level.

    Args:
        readings: losses that answer one question about a record whose other values are known: histogram, kind, name, which
            records change, exact loss, and ``epsilon`` (by the tight bound where the loss is rho).
        anonymity: numbers of the section for legal readers, and the areas' own levels; None for schemas of the U.S. census.
    """

    facts: Sequence[LevelFacts]
    records: Mapping[str, int]
    exact: Sequence[str] = ()
    remarks: Sequence[str] = ()
    solves: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    readings: Sequence[Mapping[str, Any]] = ()
    exact_records: Sequence[str] = ()
    anonymity: Mapping[str, Any] | None = None

    @property
    def stamped(self) -> Sequence[LevelFacts]:
        """The measured queries."""
        return self.facts

    def check_costs(self, plan: ReleasePlan) -> None:
        """Compare law and loss of every measured query with the plan's."""
        planned = {(q.table, q.level, q.law, q.cost) for part in plan.parts for q in part.queries}
        if planned != {(fact.table, fact.level, fact.law, fact.cost) for fact in self.facts}:
            raise CheckError(
                "laws or budgets of the measurements differ from the plan; do not publish the estimates"
            )

    def noise_words(self) -> list[str]:
        """The laws, in words, and that no published count is a noisy one."""
        words = {NOISE[fact.law.kind].partition(" The number may be")[0] for fact in self.facts}
        estimated = ESTIMATED if self.anonymity is None else ESTIMATED.replace("geounit", "area")
        return [*sorted(words), estimated]

    def tables(self, total: Fraction, confidence: Fraction) -> Iterator[Mapping[str, Any]]:
        """One entry for each query, with its levels and its share of the loss by rows."""
        by_rows = sum((fact.cost for fact in self.facts), Fraction(0))
        for name in dict.fromkeys(fact.table for fact in self.facts):
            own = [fact for fact in self.facts if fact.table == name]
            yield {
                "table": name,
                "title": "",
                "universe": "",
                **budget_entries((fact.cost for fact in own), by_rows),
                "rows": sum(fact.geounits * fact.answers for fact in own),
                "levels": [_level(fact, confidence) for fact in own],
            }

    def more(self) -> Mapping[str, Any]:
        """Records, exact figures and solves."""
        return {
            **({} if self.anonymity is None else {"anonymity": dict(self.anonymity)}),
            "estimated": {
                "records": dict(self.records),
                "exact": list(self.exact),
                "exact_records": list(self.exact_records),
                "remarks": list(self.remarks),
                "readings": [dict(reading) for reading in self.readings],
                "solves": {name: [dict(level) for level in levels] for name, levels in self.solves.items()},
            },
        }

    def published(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """The records, and which of them are exact."""
        counts = document["estimated"]["records"].items()
        records = ", ".join(f"{integer(count)} {name}" for name, count in counts)
        exact = document["estimated"]["exact_records"]
        words = "; ".join(["estimated from noisy counts", *(f"{name} exactly as counted" for name in exact)])
        return records or "histograms", words

    def sections(self, document: Mapping[str, Any]) -> str:
        """What is exact, the noise of every query by level, and how the estimates were found."""
        symbol, estimated = SYMBOLS[document["loss"]["kind"]], document["estimated"]
        exact, values = estimated["exact"], document.get("anonymity")
        areas, legal = _CENSUS, ""
        if values is not None:
            areas = AreaWords(
                "area", values["levels"][-1], f"those of the levels {', '.join(values['levels'])}"
            )
            legal = anonymity_section(values, list(estimated["records"]), read_sentences()) + "\n"
        return legal + "\n".join(
            (
                section("exact", "What is published exactly", paragraphs(*exact)) if exact else "",
                _readings(estimated["readings"], symbol, areas),
                _noise(document, symbol, areas),
                _solves(estimated, areas),
            )
        )


def _level(fact: LevelFacts, confidence: Fraction) -> dict[str, Any]:
    noise = noise_entries(fact.law, 1, fact.cost, confidence)
    return {
        "level": fact.level,
        "words": fact.level,
        "regions": fact.geounits,
        "answers": fact.answers,
        "rows": fact.geounits * fact.answers,
        **noise,
        "standard_deviation": math.sqrt(noise["variance"]),
    }
