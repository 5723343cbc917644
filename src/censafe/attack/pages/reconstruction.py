"""The page of ``attack reconstruct``: what the tables gave away, of whom, and what guessing would have given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from censafe.attack.matching.guessers import GUESSER
from censafe.attack.people import SIZE_CLASSES
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import COLORS, Page, Rows, exhibit, one_panel, quiet
from censafe.publication.pages import Exhibit

NATION_BLOCKS = 6_207_027
"""Populated blocks of the 2010 Census."""
_WORDS = {
    "all": "everybody", "modal": "of the most frequent race and origin of their block", "nonmodal": "of another race or origin",
    "unique": "alone with their sex and class of age", "nonmodal unique": "of another race or origin, and alone",
    "zero variability": "in blocks with one solution",
    "nonmodal unique, zero variability": "of another race or origin, alone, and in blocks with one solution",
}  # fmt: skip


def reconstruction_page(folder: Path) -> Page:
    """The page of a folder that ``attack reconstruct`` wrote."""
    document = read_evaluation(folder)
    texts = ("block_size", "data", "population_attacked", "attacker")
    answer, exhibits = [_answer(document)], []
    if document["records_known"]:
        rates = read_frame(folder, "reidentification", texts).to_pylist()
        agreement = read_frame(folder, "agreement", texts).to_pylist()
        uniques = read_frame(folder, "uniques", texts).to_pylist()
        exhibits = [_precision(rates), _sizes(agreement, rates), _uniques(uniques), _noisy(rates)]
        answer = _answer_from_records(document, agreement, rates)
    if (folder / "variability_percentiles.csv").exists():
        known = read_frame(folder, "variability_percentiles").to_pylist()
        exhibits.insert(2, _variability(known, document))
    return Page(
        title="What do the tables disclose?",
        kicker="Reconstruction and re-identification",
        answer=answer,
        facts=_facts(document),
        exhibits=exhibits,
        settings=[
            ("Records" if document["records_known"] else "Tables of", document["data"]),
            ("Tables", ", ".join(document["tables"])), ("Seed", str(document["seed"])),
            ("Seconds of all blocks", number_text(document["seconds"])),
        ],
    )  # fmt: skip


def _answer(document: Mapping[str, Any]) -> str:
    words = f"From {len(document['tables'])} tables, {document['persons']:,} persons of {document['blocks']:,} blocks were reconstructed without any record."
    if document["conflict"] is not None:
        number = document["infeasible"] + document["nearest"]
        words += (
            f" {number:,} blocks have tables that no records have; the first conflict is {document['conflict']}."
            + (
                " The records whose tables differ least, in the sum of absolute differences, stand for them; they are not an exact reconstruction."
                if document["nearest"]
                else ""
            )
        )
    return words


def _answer_from_records(document: Mapping[str, Any], agreement: Rows, rates: Rows) -> list[str]:
    own, guess = rates_by(rates, "exact", "reconstruction"), rates_by(rates, "exact", GUESSER)
    return [
        f"From {len(document['tables'])} tables of {document['blocks']:,} blocks{' and their tracts' if document['tracts_met'] else ''}, "
        f"{number_text(agreement[0]['binned_percent'])}% of {document['persons']:,} persons were reconstructed with their sex, class of age, race and origin.",
        f"An attacker who knows block, sex and age of every person is right about race and origin of {number_text(own['nonmodal unique']['precision'])}% "
        "of those whom "
        f"guessing misses most; without their records {number_text(guess['nonmodal unique']['precision'])}% would be.",
    ]


def _facts(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    facts = [("Persons", f"{document['persons']:,}", f"in {document['blocks']:,} blocks")]
    if document["variability"]:
        facts.append(
            (
                "Blocks with one solution",
                f"{document['certain_blocks']:,}",
                f"{document['certain_persons']:,} persons",
            )
        )
    if document["tracts_met"] is not None:
        met, tracts = document["tracts_met"]
        facts.append(("Tracts whose tables are met", f"{met:,}", f"of {tracts:,}"))
    facts.append(("Not solved in time", f"{document['unknown']:,}", "blocks; never counted as certain"))
    if document["populated"]:
        hours = document["seconds"] / document["populated"] * NATION_BLOCKS / 3600
        facts.append(
            ("The nation, by blocks", f"{number_text(hours / document['workers'])} hours",
             f"extrapolated to {NATION_BLOCKS:,} populated blocks on {document['workers']} processor{'s' if document['workers'] > 1 else ''}, not run; the Bureau's archive "
             "reports 90 and 350 node-days of 96 processors")
        )  # fmt: skip
    return facts


def rates_by(rows: Rows, attacker: str, data: str, size: str = "all") -> Mapping[str, Mapping[str, Any]]:
    """Rows of an attacker and of what is attacked, by population."""
    key = (attacker, data, size)
    return {
        row["population_attacked"]: row
        for row in rows
        if (row["attacker"], row["data"], row["block_size"]) == key
    }


def _precision(rates: Rows) -> Exhibit:
    own, guess = rates_by(rates, "exact", "reconstruction"), rates_by(rates, "exact", GUESSER)
    modal = rates_by(rates, "exact", "modal guesser")
    series = {
        "reconstruction": [own[name]["precision"] for name in own],
        "guess in proportion to the others": [guess[name]["precision"] for name in own],
        "guess the most frequent": [modal[name]["precision"] for name in own],
    }
    lines = [
        [_WORDS[name], f"{own[name]['records']:,}", *(number_text(own[name][one]) for one in ("putative_percent", "confirmed_percent", "precision")),
         number_text(guess[name]["precision"]), number_text(modal[name]["precision"])]
        for name in own
    ]  # fmt: skip
    figure = attack_bars([_WORDS[name] for name in own], series, "right among the matched, percent")
    return exhibit("reconstruction.precision", figure=figure, rows=lines)


def _sizes(agreement: Rows, rates: Rows) -> Exhibit:
    by_size = {row["block_size"]: row for row in agreement}
    sizes = [size for size in SIZE_CLASSES if by_size[size]["persons"]]
    nonmodal = {
        size: rates_by(rates, "exact", "reconstruction", size)["nonmodal unique"]["precision"]
        for size in sizes
    }
    series = {
        "in the reconstruction, class of age": [by_size[size]["binned_percent"] for size in sizes],
        "precision, nonmodal and unique": [nonmodal[size] for size in sizes],
    }
    lines = [[size, f"{by_size[size]['persons']:,}", number_text(by_size[size]["exact_percent"]), number_text(by_size[size]["binned_percent"]), number_text(nonmodal[size])]
             for size in sizes]  # fmt: skip
    return exhibit("reconstruction.sizes", figure=attack_lines(sizes, series, "percent"), rows=lines)


def _variability(rows: Rows, document: Mapping[str, Any]) -> Exhibit:
    figure, axes = one_panel(8, 3.4)
    known = [row for row in rows if row["variability"] is not None]
    axes.plot(
        [row["percentile"] for row in known],
        [row["variability"] for row in known],
        color=COLORS["topdown"],
        linewidth=1.6,
    )
    quiet(axes, x="blocks, percent, from the most certain", y="records that can differ, percent")
    certain = {name: document[name] for name in ("certain_blocks", "certain_persons")}
    return exhibit("reconstruction.variability", figure=figure, **certain)


def _uniques(rows: Rows) -> Exhibit:
    by_size = {row["block_size"]: row for row in rows if row["persons"]}
    sizes = [size for size in SIZE_CLASSES if size in by_size]
    series = {
        "single years of age": [by_size[size]["unique_percent"] for size in sizes],
        "38 classes of age": [by_size[size]["unique_in_class_percent"] for size in sizes],
    }
    lines = [
        [
            size,
            f"{by_size[size]['persons']:,}",
            number_text(by_size[size]["unique_percent"]),
            number_text(by_size[size]["unique_in_class_percent"]),
        ]
        for size in ("all", *sizes)
    ]
    figure = attack_lines(sizes, series, "persons who are alone, percent")
    return exhibit("reconstruction.uniques", figure=figure, rows=lines)


def _noisy(rates: Rows) -> Exhibit:
    sections = []
    for attacker in dict.fromkeys(row["attacker"] for row in rates):
        own = rates_by(rates, attacker, "reconstruction")
        guess = rates_by(rates, attacker, GUESSER)
        lines = [[*_attack_line(name, own), number_text(guess[name]["precision"])] for name in own]
        sections.append((f"{attacker} attacker", lines))
    return exhibit("reconstruction.attackers", sections=sections)


def _attack_line(population: str, rates: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A population in words, its records, and what the attack reaches of them."""
    row = rates[population]
    shares = (number_text(row[name]) for name in ("putative_percent", "confirmed_percent", "precision"))
    return [_WORDS[population], f"{row['records']:,}", *shares]


_PALETTE = (
    *(COLORS[name] for name in ("topdown", "noisy", "blocks", "srs", "blocks_noise")),
    "#a33b3b",
)


def attack_bars(names: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str) -> Figure:
    """Bars side by side, a group for each name.

    Args:
        unit: of the values.
    """
    figure, axes = one_panel(9, 0.55 * len(names) * max(1, len(series) / 2.5) + 1.2)
    height = 0.8 / len(series)
    for place, (words, values) in enumerate(series.items()):
        at = np.arange(len(names)) + (place - (len(series) - 1) / 2) * height
        axes.barh(
            at, [value or 0 for value in values], height, color=_PALETTE[place % len(_PALETTE)], label=words
        )
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(unit, fontsize=9)
    figure.legend(loc="outside lower center", ncols=min(3, len(series)), frameon=False, fontsize=9)
    quiet(axes)
    return figure


def attack_lines(
    names: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    unit: str,
    along: str = "persons in the block",
) -> Figure:
    """Lines over names in an order.

    Args:
        unit: of the values.
    """
    figure, axes = one_panel(8, 3.4 + 0.24 * -(-len(series) // 3))
    for place, (words, values) in enumerate(series.items()):
        own = [np.nan if value is None else value for value in values]
        axes.plot(
            range(len(names)),
            own,
            color=_PALETTE[place % len(_PALETTE)],
            marker="os^DvP"[place % 6],
            markersize=5,
            linewidth=1.4,
            label=words,
        )
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel(along, fontsize=9)
    axes.set_ylabel(unit, fontsize=9)
    figure.legend(loc="outside lower center", ncols=min(3, len(series)), frameon=False, fontsize=9)
    quiet(axes)
    return figure
