"""The page of ``attack compare``: what each defense costs in error, and what it still gives away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from censafe.attack.pages.reconstruction import SIZES, attack_bars, attack_lines
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import COLOURS, Exhibit, Page, PageTable, quiet

__all__ = ["comparison_page"]

_Rows = Sequence[Mapping[str, Any]]
_TEXTS = (
    "block_size", "data", "population_attacked", "attacker", "defense", "does", "keeps", "claim", "family", "matched_by", "folder",
)  # fmt: skip
_EXACT = "exact tables"


def comparison_page(folder: Path) -> Page:
    """The page of a folder that ``attack compare`` wrote.

    Raises:
        UsageError: a file is missing.
    """
    document = read_evaluation(folder)
    defenses = read_frame(folder, "defenses", _TEXTS).to_pylist()
    agreement = read_frame(folder, "agreement", _TEXTS).to_pylist()
    rates = read_frame(folder, "reidentification", _TEXTS).to_pylist()
    exact = defenses[0]
    best = min(defenses[1:], key=lambda row: _number(row["beyond_guessing"]))
    return Page(
        title="Which defense hides whom, and at what price?",
        kicker="Defenses compared",
        answer=[
            f"From exact tables an attacker who knows block, sex and age is right about race and origin in {number_text(exact['precision'])}% of the matches with persons who are alone with these "
            f"and differ from their block; guessing from their neighbors is right in {number_text(exact['guesser_precision'])}%.",
            f"Of the defenses on this page {best['defense']} leaves the least of that: {number_text(best['precision'])}%, at a mean error of {number_text(best['error_tract'], 2)} persons in a count of "
            "a tract.",
        ],
        facts=[
            ("Persons", f"{document['persons']:,}", f"in {document['blocks']:,} blocks"),
            ("Defenses", str(len(defenses) - 1), "and exact tables beside them"),
        ],
        exhibits=[
            _frontier(defenses),
            _who(rates, defenses),
            _sizes(agreement, defenses),
            _certainty(defenses),
            _promises(defenses),
        ],
        settings=[("Records", document["data"]), ("Seed", str(document["seed"]))],
    )


def _number(value: float | None) -> float:
    return float("inf") if value is None else value


def _frontier(defenses: _Rows) -> Exhibit:
    lines = [
        [row["defense"], *(number_text(row[f"error_{level}"], 2) for level in ("block", "tract", "county")), number_text(row["withheld_block_percent"]),
         number_text(row["putative_percent"]), number_text(row["precision"]), number_text(row["beyond_guessing"])]
        for row in defenses
    ]  # fmt: skip
    return Exhibit(
        "frontier",
        "What does each defense cost, and what does it hide?",
        "A good defense lies low and left: few matches are right beyond what neighbors give away, and counts are close to the truth. At the dashed line the attack finds no more than guessing does.",
        _scatter(defenses),
        alt="Scatter of error of tract counts against precision beyond the guesser, a point for each defense.",
        tables=[PageTable("Persons alone with sex and class of age in their block who differ from its most frequent race and origin.", (
            "defense", "error, block", "tract", "county", "withheld in blocks, %", "matched, %", "right of these, %", "beyond guessing"), lines, numbers=7)],
        how=[
            "Errors are those of all lines of the tables that are not 0 in truth; what is withheld is read as 0. Of swapped, merged and recoded records the exact tables are published and reconstructed; rounded, "
            "suppressed and perturbed tables are reconstructed from what their values allow, a published 0 read as 0 first, and where no records fit from the nearest; microdata are matched as they are.",
            "Tables of tracts and counties are not used in the attack. An agency that publishes them as well gives more away than is shown here.",
        ],
        files=["defenses.csv"],
    )  # fmt: skip


def _scatter(defenses: _Rows) -> Figure:
    """Error of counts of tracts against precision beyond the guesser."""
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    shown = [row for row in defenses if row["beyond_guessing"] is not None]
    axes.scatter(
        [row["error_tract"] for row in shown],
        [row["beyond_guessing"] for row in shown],
        color=COLOURS["topdown"],
        s=36,
        zorder=3,
    )
    for place, row in enumerate(shown):
        axes.annotate(
            row["defense"],
            (row["error_tract"], row["beyond_guessing"]),
            xytext=(6, 5 if place % 2 else -11),
            textcoords="offset points",
            fontsize=8,
        )
    axes.axhline(0, color="#9aa5b1", linewidth=1, linestyle="--")
    axes.set_xlabel("mean absolute error of a count of a tract, persons", fontsize=9)
    axes.set_ylabel("right beyond guessing, percentage points", fontsize=9)
    axes.margins(0.14)
    quiet(axes)
    return figure


def _who(rates: _Rows, defenses: _Rows) -> Exhibit:
    populations = ("all", "nonmodal", "nonmodal unique")
    words = {
        "all": "everybody",
        "nonmodal": "of another race or origin than the block's most frequent",
        "nonmodal unique": "of another, and alone with sex and class of age",
    }
    found = {
        (row["data"], row["population_attacked"]): row
        for row in rates
        if row["attacker"] == "exact" and row["block_size"] == "all"
    }
    names = [*(row["defense"] for row in defenses), "proportional guesser, target left out"]
    series = {words[one]: [found[name, one]["precision"] for name in names] for one in populations}
    lines = [
        [
            name,
            *(
                number_text(found[name, one][column])
                for one in populations
                for column in ("confirmed_percent", "precision")
            ),
        ]
        for name in names
    ]
    headers = ("data", *(f"{one}: {column}" for one in populations for column in ("found", "precision")))
    return Exhibit(
        "who",
        "Who is at risk?",
        "Most people have the race and origin of their neighbors and are guessed right by anybody. A defense is for the others.",
        attack_bars(names, series, "right among the matched, percent"),
        alt="Bars of precision by defense for three populations.",
        tables=[
            PageTable(
                "An attacker who knows block, sex and age of everybody; percent.", headers, lines, numbers=6
            )
        ],
        files=["reidentification.csv"],
    )


def _sizes(agreement: _Rows, defenses: _Rows) -> Exhibit:
    found = {(row["data"], row["block_size"]): row for row in agreement}
    sizes = [size for size in SIZES if found[_EXACT, size]["persons"]]
    names = [row["defense"] for row in defenses]
    series = {name: [found[name, size]["binned_percent"] for size in sizes] for name in names[:8]}
    lines = [
        [name, *(number_text(found[name, size]["binned_percent"]) for size in ("all", *sizes))]
        for name in names
    ]
    return Exhibit(
        "agreement",
        "How many records are true, by size of the block?",
        "With exact tables large blocks hide a little; under noise small blocks hide most, because there the noise is largest beside the counts.",
        attack_lines(sizes, series, "persons with a record that agrees, percent"),
        alt="Agreement by size of the block, a line for each defense.",
        tables=[
            PageTable(
                "Persons whose block, sex, class of age, race and origin are in the attacked records, percent.",
                ("defense", "all", *sizes),
                lines,
                numbers=len(sizes) + 1,
            )
        ],
        files=["agreement.csv"],
    )


def _certainty(defenses: _Rows) -> Exhibit:
    known = [row for row in defenses if row["certain_percent"] is not None]
    lines = [[row["defense"], number_text(row["certain_percent"])] for row in known]
    return Exhibit(
        "certainty",
        "Does the attacker know what is right?",
        "Where one set of records has the published tables, the attacker is sure of them; after swapping, sure of records that may have been moved.",
        attack_bars(
            [row["defense"] for row in known],
            {"blocks with one solution": [row["certain_percent"] for row in known]},
            "populated blocks, percent",
        ),
        alt="Share of blocks with one solution by defense.",
        tables=[
            PageTable(
                "Percent of the populated blocks; defenses for which it is not known are left out.",
                ("defense", "one solution"),
                lines,
                numbers=1,
            )
        ],
        files=["defenses.csv"],
    )


def _promises(defenses: _Rows) -> Exhibit:
    lines = [[row["defense"], row["does"], row["keeps"], row["claim"] or "none"] for row in defenses]
    return Exhibit(
        "promises",
        "What does each defense keep, and what does it promise?",
        "Only two kinds promise anything about attackers who know more than this one: noise with a budget, and permutation swapping, whose loss does not cover what it keeps. Their epsilons cannot be compared "
        "with each other, since they protect different things.",
        tables=[
            PageTable("As they were applied here.", ("defense", "does", "keeps exactly", "promises"), lines)
        ],
        files=["defenses.csv"],
    )
