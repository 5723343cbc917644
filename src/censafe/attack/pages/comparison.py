"""The page of ``attack compare``: what each defense costs in error, and what it still gives away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from censafe.attack.matching.guessers import GUESSER
from censafe.attack.pages.frontier import DISTRICT_KEYS, districts_exhibit, efficient, frontier_exhibit
from censafe.attack.pages.reconstruction import attack_bars, attack_lines
from censafe.attack.people import SIZE_CLASSES
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import Page, quiet
from censafe.publication.pages.exhibits import Exhibit, PageTable

_Rows = Sequence[Mapping[str, Any]]
_TEXTS: Final = (
    "block_size", "data", "population_attacked", "attacker", "defense", "does", "keeps", "claim", "family", "matched_by", "folder",
)  # fmt: skip
_EXACT: Final = "exact tables"
_MOST_LINES: Final = 8
_MOST_NAMED: Final = 4
_ERRORS: Final = ("error_block", "error_tract")
_POPULATIONS: Final = {
    "all": "everybody",
    "nonmodal": "of another race or origin than the block's most frequent",
    "nonmodal unique": "of another, and alone with sex and class of age",
}


def comparison_page(folder: Path) -> Page:
    """The page of a folder that ``attack compare`` wrote."""
    document = read_evaluation(folder)
    frames = {
        name: read_frame(folder, name, _TEXTS).to_pylist()
        for name in ("defenses", "agreement", "reidentification", "uniques")
    }
    defenses, rates = frames["defenses"], frames["reidentification"]
    districts = (
        [districts_exhibit(defenses)] if any(row["matched_by"] == DISTRICT_KEYS for row in defenses) else []
    )
    exhibits = [
        frontier_exhibit(defenses),
        *districts,
        _who(rates, defenses),
        _sizes(frames["agreement"], defenses),
    ]
    if (folder / "variability.csv").exists():
        exhibits.append(_certainty(read_frame(folder, "variability", _TEXTS).to_pylist(), defenses))
    return Page(
        title="Which defense hides whom, and at what price?",
        kicker="Defenses compared",
        answer=_answer(defenses),
        facts=[
            ("Persons", f"{document['persons']:,}", f"in {document['blocks']:,} blocks"),
            ("Most at risk", f"{defenses[0]['persons_at_risk']:,}", "persons alone with sex and class of age who differ from their block"),
            ("Defenses", str(document["defenses"]), "and exact tables beside them"),
        ],
        exhibits=[*exhibits, _alone(frames["uniques"]), _promises(defenses)],
        settings=[("Records", document["data"]), ("Seed", str(document["seed"])), ("Tables attacked", ", ".join(document["tables"]))],
    )  # fmt: skip


def _answer(defenses: _Rows) -> list[str]:
    """The finding in plain sentences: the attack without a defense, what takes half of it away at the least price, and what takes away most."""
    exact = defenses[0]
    found = [
        f"From exact tables an attacker who knows block, sex and age is right about race and origin in {number_text(exact['precision'])}% of the matches with persons who are alone with these "
        f"and differ from their block; guessing from their neighbors is right in {number_text(exact['guesser_precision'])}%.",
    ]
    known = [
        row for row in defenses[1:] if row["beyond_guessing"] is not None and row["does"] and row["folder"]
    ]
    if exact["beyond_guessing"] is None or not known:
        return [
            *found,
            "No person among these can be matched by an attacker under the defenses on this page.",
        ]
    if exact["beyond_guessing"] <= 0:
        found.append(
            f"The attack on exact tables does not beat guessing ({number_text(exact['beyond_guessing'])} percentage points), so there is no lead for a defense to "
            "take away, and this page does not say which defense protects best."
        )
        return found
    half = [row for row in known if row["beyond_guessing"] <= exact["beyond_guessing"] / 2]
    cheap = sorted(efficient(half, _ERRORS), key=lambda row: row["error_tract"])[:_MOST_NAMED]
    if half:
        named = "; ".join(f"{row['defense']} ({_price(row)})" for row in cheap)
        found.append(
            f"{len(half)} of the {len(known)} defenses take away at least half of the attacker's lead over guessing. The most accurate of these: {named}."
        )
    else:
        found.append(
            f"None of the {len(known)} defenses takes away half of the attacker's lead over guessing."
        )
    best = min(known, key=lambda row: row["beyond_guessing"])
    found.append(
        f"{best['defense']} leaves the least: {number_text(max(best['beyond_guessing'], 0.0))} of {number_text(exact['beyond_guessing'])} percentage points beyond guessing ({_price(best)})."
    )
    return found


def _price(row: Mapping[str, Any]) -> str:
    """The error of a defense in words."""
    kind, counts = (
        ("race_error", "race, origin and voting age, which is all it publishes")
        if row["matched_by"] == DISTRICT_KEYS
        else ("error", "")
    )
    errors = f"mean error {number_text(row[f'{kind}_block'], 2)} persons in a count of a block, {number_text(row[f'{kind}_tract'], 2)} in one of a tract"
    return f"{errors}; counts of {counts}" if counts else errors


def _who(rates: _Rows, defenses: _Rows) -> Exhibit:
    found = {
        (row["data"], row["population_attacked"]): row
        for row in rates
        if row["attacker"] == "exact" and row["block_size"] == "all"
    }
    names = [*(row["defense"] for row in defenses), GUESSER]
    series = {words: [found[name, one]["precision"] for name in names] for one, words in _POPULATIONS.items()}
    lines = [
        [
            name,
            *(
                number_text(found[name, one][column])
                for one in _POPULATIONS
                for column in ("confirmed_percent", "precision")
            ),
        ]
        for name in names
    ]
    short = ("everybody", "differ", "differ, alone")
    return Exhibit(
        "who",
        "Who is at risk?",
        "Most people have the same race and origin as most of their neighbors, so that anyone guesses them correctly: no defense "
        "can prevent that. At risk are those who differ, above all where no one else in the block has their sex and age. Defenses are for them.",
        attack_bars(names, series, "right among the matched, percent"),
        alt="Bars of precision by defense for three populations.",
        tables=[
            PageTable(
                "An attacker who knows block, sex and age of every person: right race and origin, percent of these (found) and of the matches (right).",
                ("data", *(f"{one}: {column}" for one in short for column in ("found", "right"))), lines, numbers=6,
            )
        ],
        how=[
            "; ".join(f"{words}: {found[_EXACT, one]['records']:,} persons" for one, words in _POPULATIONS.items()).capitalize() + ".",
            "An attacker whose file has errors (37.1% of the records agree with the truth, as the Bureau found of commercial files) stands in the file, with blocks by size.",
        ],
        files=["reidentification.csv"],
    )  # fmt: skip


def _sizes(agreement: _Rows, defenses: _Rows) -> Exhibit:
    found = {(row["data"], row["block_size"]): row for row in agreement}
    sizes = [size for size in SIZE_CLASSES if found[_EXACT, size]["persons"]]
    names = [row["defense"] for row in defenses]
    series = {name: [found[name, size]["binned_percent"] for size in sizes] for name in names[:_MOST_LINES]}
    lines = [
        [name, *(number_text(found[name, size]["binned_percent"]) for size in ("all", *sizes))]
        for name in names
    ]
    return Exhibit(
        "agreement",
        "How many records are true, by size of the block?",
        "With exact tables large blocks hide a little; under noise small blocks hide most, because there the noise is largest beside the counts.",
        attack_lines(sizes, series, "persons with a true record, percent"),
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


def _certainty(variability: _Rows, defenses: _Rows) -> Exhibit:
    known = {row["defense"]: row["certain_percent"] for row in defenses if row["certain_percent"] is not None}
    curves = {
        name: {row["percentile"]: row["variability"] for row in variability if row["data"] == name}
        for name in known
    }
    steps = (25, 50, 75, 90, 95, 100)
    lines = [
        [name, number_text(known[name]), *(number_text(curve[step]) for step in steps)]
        for name, curve in curves.items()
    ]
    return Exhibit(
        "variability",
        "Does the attacker know what is right?",
        "Where only one set of records has the published tables of a block, its variability is 0 and the attacker is sure of every record. The higher the line, the more of them another set of records with the "
        "same tables would change. After swapping an attacker is as sure as before, of records that may have been moved.",
        _curves(curves),
        alt="Variability of blocks by defense, from the most certain block to the least.",
        tables=[
            PageTable(
                "Blocks with one solution, percent; and the variability at shares of the populated blocks, percent of the records.",
                ("defense", "one solution", *(f"{step}%" for step in steps)), lines, numbers=7,
            )
        ],
        how=[
            "Of the published values as they are. For defenses that are not in the table it is not known: microdata need no reconstruction, and where a value stands for several counts, or ages and races are "
            "grouped, it was not computed.",
        ],
        files=["variability.csv", "defenses.csv"],
    )  # fmt: skip


def _curves(curves: Mapping[str, Mapping[int, float | None]]) -> Figure:
    """Variability over shares of the blocks."""
    figure = Figure(figsize=(8, 3.4 + 0.24 * -(-min(len(curves), _MOST_LINES) // 3)), layout="constrained")
    axes = figure.subplots()
    for place, (name, curve) in enumerate(list(curves.items())[:_MOST_LINES]):
        axes.plot(
            list(curve),
            [float("nan") if value is None else value for value in curve.values()],
            color=f"C{place}",
            linewidth=1.5,
            label=name,
        )
    axes.set_xlabel("populated blocks, percent", fontsize=9)
    axes.set_ylabel("exchangeable records, percent", fontsize=9)
    axes.set_ylim(0, 102)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    quiet(axes)
    return figure


def _alone(uniques: _Rows) -> Exhibit:
    lines = [
        [
            row["block_size"],
            f"{row['persons']:,}",
            number_text(row["unique_percent"]),
            number_text(row["unique_in_class_percent"]),
        ]
        for row in uniques
        if row["persons"]
    ]
    return Exhibit(
        "alone",
        "Where do people stand alone?",
        "A person who is the only one of a sex and age in a block can be looked up by anyone who knows these. In small blocks, "
        "that is nearly every person.",
        tables=[
            PageTable(
                "Persons who are alone with their sex and age in their block, by persons in the block; percent.",
                ("block", "persons", "by year of age", "by class of age"), lines, numbers=3,
            )
        ],
        files=["uniques.csv"],
    )  # fmt: skip


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
