"""The pages of ``attack reconstruct`` and ``attack compare``: what the tables gave away, of whom, what guessing gives, the error of each defense, and what can still be inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.attack.matching import GUESSER
from censafe.attack.people import SIZE_CLASSES
from censafe.attack.results import CENSUS_WORDS, ComparisonWords
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import COLORS, Page, Rows, exhibit, one_panel, quiet
from censafe.publication.pages import Exhibit

RECONSTRUCTION: Final = "reconstruction"
"""What records from tables are called in frames."""
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
    words, exhibits = _words(document), list[Exhibit]()
    answer = [_reconstruction_answer(document, words)]
    if document["records_known"]:
        names = ("reidentification", "agreement", "uniques")
        rates, agreement, uniques = (read_frame(folder, name, _TEXTS).to_pylist() for name in names)
        answer = _answer_from_records(document, agreement, rates, words)
        exhibits = [
            _precision(rates, words),
            _reconstruction_sizes(agreement, rates, words),
            *(
                [_uniques(uniques), _noisy(rates)]
                if words.census
                else [_alone(uniques, words, RECONSTRUCTION)]
            ),
        ]
    if document["variability"]:
        known = read_frame(folder, "variability_percentiles").to_pylist()
        exhibits.insert(2, _variability(known, document, words))
    return Page(
        title="What do the tables disclose?",
        kicker="Reconstruction and re-identification",
        answer=answer,
        facts=_facts(document, words),
        exhibits=exhibits,
        settings=[
            ("Records" if document["records_known"] else "Tables of", document["data"]),
            ("Tables", ", ".join(document["tables"])), ("Seed", str(document["seed"])),
            ("Seconds of all blocks" if words.census else "Seconds of all areas", number_text(document["seconds"])),
        ],
    )  # fmt: skip


def _tables_text(document: Mapping[str, Any]) -> str:
    number = len(document["tables"])
    return f"{number} table{'s' if number > 1 else ''}"


def _reconstruction_answer(document: Mapping[str, Any], words: ComparisonWords) -> str:
    text = f"From {_tables_text(document)}, {document['persons']:,} persons of {document[words.areas_key]:,} {words.areas} were reconstructed without any record."
    if document["conflict"] is not None:
        number = document["infeasible"] + document["nearest"]
        text += (
            f" {number:,} {words.areas} have tables that no records have; the first conflict is {document['conflict']}."
            + (
                " The records whose tables differ least, in the sum of absolute differences, stand for them; they are not an exact reconstruction."
                if document["nearest"]
                else ""
            )
        )
    return text


def _answer_from_records(
    document: Mapping[str, Any], agreement: Rows, rates: Rows, words: ComparisonWords
) -> list[str]:
    own, guess = (rates_by(rates, "exact", name, words)[words.risk] for name in (RECONSTRUCTION, GUESSER))
    return [
        f"From {_tables_text(document)} of {document[words.areas_key]:,} {words.areas}{' and their tracts' if document['tracts_met'] else ''}, "
        f"{number_text(agreement[0][words.agreement])}% of {document['persons']:,} persons were reconstructed with their {words.record}.",
        f"An attacker who knows {words.known} of every person is right about {words.target} of {number_text(own['precision'])}% of those whom "
        f"guessing misses most; without their records {number_text(guess['precision'])}% would be.",
    ]


def _facts(document: Mapping[str, Any], words: ComparisonWords) -> list[tuple[str, str, str]]:
    name = words.areas_key
    facts = [("Persons", f"{document['persons']:,}", f"in {document[words.areas_key]:,} {words.areas}")]
    if document["variability"]:
        facts.append(
            (
                f"{name.capitalize()} with one solution",
                f"{document[f'certain_{name}']:,}",
                f"{document['certain_persons']:,} persons",
            )
        )
    if document["tracts_met"] is not None:
        met, tracts = document["tracts_met"]
        facts.append(("Tracts whose tables are met", f"{met:,}", f"of {tracts:,}"))
    facts.append(("Not solved in time", f"{document['unknown']:,}", f"{name}; never counted as certain"))
    if document["populated"] and words.census:
        hours = document["seconds"] / document["populated"] * NATION_BLOCKS / 3600
        facts.append(
            ("The nation, by blocks", f"{number_text(hours / document['workers'])} hours",
             f"extrapolated to {NATION_BLOCKS:,} populated blocks on {document['workers']} processor{'s' if document['workers'] > 1 else ''}, not run; the Bureau's archive "
             "reports 90 and 350 node-days of 96 processors")
        )  # fmt: skip
    return facts


def rates_by(
    rows: Rows, attacker: str, data: str, words: ComparisonWords = CENSUS_WORDS, size: str = "all"
) -> Mapping[str, Mapping[str, Any]]:
    """Rows of an attacker and of what is attacked, by population."""
    key = (attacker, data, size)
    return {
        row["population_attacked"]: row
        for row in rows
        if (row["attacker"], row["data"], row[words.size]) == key
    }


def _precision(rates: Rows, words: ComparisonWords) -> Exhibit:
    own, guess, modal = (
        rates_by(rates, "exact", name, words) for name in (RECONSTRUCTION, GUESSER, "modal guesser")
    )
    texts = {
        name: text for name, text in (_WORDS if words.census else _populations(words)).items() if name in own
    }
    series = {
        "reconstruction": [own[name]["precision"] for name in texts],
        "guess in proportion to the others": [guess[name]["precision"] for name in texts],
        "guess the most frequent": [modal[name]["precision"] for name in texts],
    }
    lines = [
        [*_attack_line(text, own[name]), *(number_text(one[name]["precision"]) for one in (guess, modal))]
        for name, text in texts.items()
    ]
    figure = attack_bars(list(texts.values()), series, "right among the matched, percent")
    return exhibit(f"{words.prefix}reconstruction.precision", figure=figure, rows=lines, **_texts(words))


def _reconstruction_sizes(agreement: Rows, rates: Rows, words: ComparisonWords) -> Exhibit:
    by_size = {row[words.size]: row for row in agreement}
    sizes = [size for size in SIZE_CLASSES if by_size[size]["persons"]]
    at_risk = {
        size: rates_by(rates, "exact", RECONSTRUCTION, words, size)[words.risk]["precision"] for size in sizes
    }
    census = words.census
    series = {
        f"in the reconstruction{', class of age' if census else ''}": [
            by_size[size][words.agreement] for size in sizes
        ],
        f"precision, {words.risk.replace(' ', ' and ')}": [at_risk[size] for size in sizes],
    }
    columns = ("exact_percent", words.agreement) if census else (words.agreement,)
    lines = [
        [size, f"{by_size[size]['persons']:,}", *(number_text(by_size[size][one]) for one in columns), number_text(at_risk[size])]
        for size in sizes
    ]  # fmt: skip
    figure = attack_lines(sizes, series, "percent", f"persons in the {words.areas_key[:-1]}")
    return exhibit(f"{words.prefix}reconstruction.sizes", figure=figure, rows=lines, **_texts(words))


def _variability(rows: Rows, document: Mapping[str, Any], words: ComparisonWords) -> Exhibit:
    figure, axes = one_panel(8, 3.4)
    known = [row for row in rows if row["variability"] is not None]
    axes.plot(
        [row["percentile"] for row in known],
        [row["variability"] for row in known],
        color=COLORS["topdown"],
        linewidth=1.6,
    )
    quiet(
        axes,
        x=f"{words.areas_key}, percent, from the most certain",
        y="records that can differ, percent",
    )
    certain = {name: document[name] for name in (f"certain_{words.areas_key}", "certain_persons")}
    return exhibit(f"{words.prefix}reconstruction.variability", figure=figure, **certain)


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
        own = rates_by(rates, attacker, RECONSTRUCTION)
        guess = rates_by(rates, attacker, GUESSER)
        lines = [
            [*_attack_line(_WORDS[name], own[name]), number_text(guess[name]["precision"])] for name in own
        ]
        sections.append((f"{attacker} attacker", lines))
    return exhibit("reconstruction.attackers", sections=sections)


def _attack_line(population: str, row: Mapping[str, Any]) -> list[str]:
    """A population in words, its records, and what the attack reaches of them."""
    shares = (number_text(row[name]) for name in ("putative_percent", "confirmed_percent", "precision"))
    return [population, f"{row['records']:,}", *shares]


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


_Row = Mapping[str, Any]
_COLORS: Final = (
    "#0b5c7a", "#d1762a", "#6b4c9a", "#4d7c2f", "#b3365b", "#8a6d1d", "#2f6fb0", "#5f6b76", "#a0522d", "#1d8a7a", "#7a3e9d", "#94603a",
)  # fmt: skip
DISTRICT_KEYS: Final = "block, voting age"
_PARTIAL: Final = "†"
"""Stands behind the names of defenses whose errors are those of other counts."""
_MARKERS: Final = "os^Dvph<>X"
_LABEL_HEIGHT: Final = 0.034
_BLANK: Final = 0.03
_MARK: Final = 0.012
"""Half of the width of a mark, as a share of the panel's."""
_LEFT_HALF: Final = 0.6


def efficient(rows: Sequence[_Row], errors: Sequence[str]) -> list[_Row]:
    """Rows of which no other is better: nowhere worse, in its errors and in what can be inferred, and somewhere better.

    Example:
        >>> rows = [{"e": 0, "beyond_guessing": 9}, {"e": 1, "beyond_guessing": 2}, {"e": 2, "beyond_guessing": 3}]
        >>> [row["e"] for row in efficient(rows, ["e"])]
        [0, 1]
    """
    known = [row for row in rows if row["beyond_guessing"] is not None]
    values = [[row[name] for name in (*errors, "beyond_guessing")] for row in known]
    return [
        row
        for row, own in zip(known, values, strict=True)
        if not any(other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in values)
    ]


def frontier_exhibit(defenses: Sequence[_Row], words: ComparisonWords = CENSUS_WORDS) -> Exhibit:
    """The first figure of the page, and the numbers behind it.

    Args:
        defenses: rows of ``defenses.csv``, exact tables first.
    """
    full = [row for row in defenses if row["matched_by"] != DISTRICT_KEYS]
    partial = [_by_races(row) for row in defenses if row["matched_by"] == DISTRICT_KEYS]
    rows = [*full, *partial]
    lines = [
        [row["defense"], *(number_text(row[f"error_{level}"], 2) for level in words.levels),
         number_text(row[f"withheld_{words.area}_percent"]), number_text(row["putative_percent"]), number_text(row["precision"]), number_text(row["beyond_guessing"])]
        for row in rows
    ]  # fmt: skip
    partly = f" {_PARTIAL}: publishes race, origin and voting age only; its error is that of these counts, and it is not compared with the others."
    titles = "Counts of {}s" if words.census else "Counts of the level {}"
    panels = {titles.format(level): f"error_{level}" for level in words.levels[1::-1]}
    columns = (
        "defense",
        f"error, {words.area}",
        *words.levels[1:],
        "withheld, %",
        "matched, %",
        "right, %",
        "beyond, points",
    )
    return exhibit(
        f"{words.prefix}attack.frontier", figure=_figure(rows, panels), columns=columns, rows=lines, partial=partly if partial else "", **_texts(words)
    )  # fmt: skip


def _texts(words: ComparisonWords) -> dict[str, Any]:
    """What stands for words in braces in the texts of exhibits."""
    names = ("area", "areas", "known", "target", "alone", "record")
    return {name: getattr(words, name) for name in names} | {"above": ", ".join(words.levels[1:])}


def districts_exhibit(defenses: Sequence[_Row]) -> Exhibit:
    """The same for the counts that redistricting data publish; for pages that compare such data.

    Args:
        defenses: rows of ``defenses.csv``, exact tables first.
    """
    lines = [
        [row["defense"], row["matched_by"], *(number_text(row[f"race_error_{level}"], 2) for level in ("block", "tract", "county")),
         number_text(row["putative_percent"]), number_text(row["precision"]), number_text(row["beyond_guessing"])]
        for row in defenses
    ]  # fmt: skip
    figure = _figure(defenses, {"Counts of race, origin and voting age, tracts": "race_error_tract"})
    return exhibit("attack.districts", figure=figure, rows=lines)


def _by_races(row: _Row) -> _Row:
    """A defense that publishes race, origin and voting age only, with the errors of these counts."""
    errors = {f"error_{level}": row[f"race_error_{level}"] for level in ("block", "tract", "county")}
    return {
        **row,
        **errors,
        "defense": f"{row['defense']} {_PARTIAL}",
        "family": row["family"] and f"{row['family']} {_PARTIAL}",
        "withheld_block_percent": None,
    }


def _figure(rows: Sequence[_Row], panels: Mapping[str, str]) -> Figure:
    """A panel for each error, by its title."""
    figure = Figure(figsize=(8, 4.6 * len(panels)), layout="constrained")
    styles = _styles(rows)
    for axes, (title, error) in zip(
        figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True
    ):
        _panel(axes, rows, error, styles)
        axes.set_title(title, fontsize=10, loc="left")
    return figure


def _styles(defenses: Sequence[_Row]) -> dict[str, tuple[str, str]]:
    """Color and mark of every family; a defense without one stands for itself."""
    names = list(dict.fromkeys(_family(row) for row in defenses))
    return {
        name: (_COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)])
        for place, name in enumerate(names)
    }


def _family(row: _Row) -> str:
    return row["family"] or row["defense"]


def _panel(axes: Axes, rows: Sequence[_Row], error: str, styles: Mapping[str, tuple[str, str]]) -> None:
    known = [row for row in rows if row["beyond_guessing"] is not None]
    compared = [row for row in known if not row["defense"].endswith(_PARTIAL)]
    best = {row["defense"] for row in efficient(compared, [error])}
    for family in dict.fromkeys(map(_family, known)):
        color, mark = styles[family]
        own = sorted((row for row in known if _family(row) == family), key=lambda row: row["strength"] or 0)
        axes.plot(
            [row[error] for row in own],
            [row["beyond_guessing"] for row in own],
            color=color,
            linewidth=1.3,
            alpha=0.7,
            zorder=2,
        )
        for row in own:
            fill = color if row["defense"] in best else "white"
            axes.plot(
                row[error],
                row["beyond_guessing"],
                mark,
                markersize=6.5,
                markerfacecolor=fill,
                markeredgecolor=color,
                markeredgewidth=1.4,
                zorder=5,
            )
    axes.axhline(0, color="#9aa5b1", linewidth=1, linestyle="--")
    axes.set_xscale("symlog", linthresh=1, linscale=0.7)
    axes.set_xlim(-0.08, max((row[error] for row in known), default=1) * 1.9 + 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    low, high = (pick([0.0, *(row["beyond_guessing"] for row in known)]) for pick in (min, max))
    axes.set_ylim(low - 0.08 * (high - low + 1), high + 0.08 * (high - low + 1))
    quiet(
        axes,
        x="mean absolute error of a count, persons (logarithmic above 1)",
        y="right beyond guessing, percentage points",
    )
    _label(axes, known, error, styles)


def _label(axes: Axes, rows: Sequence[_Row], error: str, styles: Mapping[str, tuple[str, str]]) -> None:
    """Names beside the marks, moved up or down where they would lie on each other or on a mark."""
    to_axes = axes.transData + axes.transAxes.inverted()
    marks = [to_axes.transform((row[error], row["beyond_guessing"])) for row in rows]
    taken = [(x - _MARK, x + _MARK, y) for x, y in marks]  # left, right, middle
    for row in sorted(rows, key=lambda row: -row["beyond_guessing"]):
        x, y = to_axes.transform((row[error], row["beyond_guessing"]))
        width = 0.0115 * len(row["defense"])
        left = x + _BLANK if x < _LEFT_HALF or x + width < 1 else x - _BLANK - width
        places = (
            place for step in range(60) for place in (y - step * 0.5 * _LABEL_HEIGHT, y + step * 0.5 * _LABEL_HEIGHT)
            if all(abs(place - other) >= _LABEL_HEIGHT or left > end or left + width < begin for begin, end, other in taken)
        )  # fmt: skip
        at = next(places, y)
        taken.append((left, left + width, at))
        axes.annotate(
            row["defense"], (row[error], row["beyond_guessing"]), xytext=(left, at), textcoords="axes fraction", fontsize=7.5, va="center", zorder=4,
            color=styles[_family(row)][0],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6}, arrowprops={"arrowstyle": "-", "color": "#b8c0c8", "linewidth": 0.6, "shrinkB": 4} if abs(at - y) > _LABEL_HEIGHT else None,
        )  # fmt: skip


_TEXTS: Final = (
    "block_size", "area_size", "data", "population_attacked", "attacker", "defense", "does", "keeps", "claim", "family", "matched_by", "folder",
)  # fmt: skip
_EXACT: Final = "exact tables"
_MOST_LINES: Final = 8
_MOST_NAMED: Final = 4


def _populations(words: ComparisonWords) -> dict[str, str]:
    """Whom the attack looks for, in words."""
    target = "race or origin" if words.census else words.target
    return {
        "all": "everybody",
        "nonmodal": f"of another {target} than the {words.area}'s most frequent",
        "nonmodal unique": f"of another, and alone with {words.alone}",
    }


def comparison_page(folder: Path) -> Page:
    """The page of a folder that ``attack compare`` wrote."""
    document = read_evaluation(folder)
    words = _words(document)
    frames = {
        name: read_frame(folder, name, _TEXTS).to_pylist()
        for name in ("defenses", "agreement", "reidentification", "uniques")
    }
    defenses, rates = frames["defenses"], frames["reidentification"]
    districts = (
        [districts_exhibit(defenses)] if any(row["matched_by"] == DISTRICT_KEYS for row in defenses) else []
    )
    exhibits = [
        frontier_exhibit(defenses, words),
        *districts,
        _who(rates, defenses, words),
        _comparison_sizes(frames["agreement"], defenses, words),
    ]
    if (folder / "variability.csv").exists():
        exhibits.append(_certainty(read_frame(folder, "variability", _TEXTS).to_pylist(), defenses, words))
    promises = [[row["defense"], row["does"], row["keeps"], row["claim"] or "none"] for row in defenses]
    return Page(
        title="Which defense hides whom, and at what price?",
        kicker="Defenses compared",
        answer=_comparison_answer(defenses, words),
        facts=[
            ("Persons", f"{document['persons']:,}", f"in {document[words.areas_key]:,} {words.areas}"),
            ("Most at risk", f"{defenses[0]['persons_at_risk']:,}", _at_risk(words)),
            ("Defenses", str(document["defenses"]), "and exact tables beside them"),
        ],
        exhibits=[
            *exhibits,
            _alone(frames["uniques"], words),
            exhibit(f"{words.prefix}attack.promises", rows=promises, **_texts(words)),
        ],
        settings=[("Records", document["data"]), ("Seed", str(document["seed"])), ("Tables attacked", ", ".join(document["tables"]))],
    )  # fmt: skip


def _at_risk(words: ComparisonWords) -> str:
    """Whom the attack looks for, under their number."""
    if words.census:
        return "persons alone with sex and class of age who differ from their block"
    return f"persons who {words.at_risk}"


def _words(document: Mapping[str, Any]) -> ComparisonWords:
    """Words of a comparison, as it was written."""
    if "words" not in document:
        return CENSUS_WORDS
    own = document["words"]
    return ComparisonWords(**{**own, "levels": tuple(own["levels"]), "unique": tuple(own["unique"])})


def _comparison_answer(defenses: Rows, words: ComparisonWords = CENSUS_WORDS) -> list[str]:
    """The finding in plain sentences: the attack without a defense, what takes half of it away at the least price, and what takes away most."""
    exact = defenses[0]
    sentences = [
        f"From exact tables an attacker who knows {words.known} is right about {words.target} in {number_text(exact['precision'])}% of the matches with persons who {words.at_risk}; "
        f"guessing from their neighbors is right in {number_text(exact['guesser_precision'])}%.",
    ]
    known = [
        row for row in defenses[1:] if row["beyond_guessing"] is not None and row["does"] and row["folder"]
    ]
    if exact["beyond_guessing"] is None or not known:
        return [
            *sentences,
            "No person among these can be matched by an attacker under the defenses on this page.",
        ]
    if exact["beyond_guessing"] <= 0:
        sentences.append(
            f"The attack on exact tables does not beat guessing ({number_text(exact['beyond_guessing'])} percentage points), so there is no lead for a defense to "
            "take away, and this page does not say which defense protects best."
        )
        return sentences
    half = [row for row in known if row["beyond_guessing"] <= exact["beyond_guessing"] / 2]
    errors = [f"error_{level}" for level in words.levels[:2]]
    cheap = sorted(efficient(half, errors), key=lambda row: row[errors[-1]])[:_MOST_NAMED]
    if half:
        named = "; ".join(f"{row['defense']} ({_price(row, words)})" for row in cheap)
        sentences.append(
            f"{len(half)} of the {len(known)} defenses take away at least half of the attacker's lead over guessing. The most accurate of these: {named}."
        )
    else:
        sentences.append(
            f"None of the {len(known)} defenses takes away half of the attacker's lead over guessing."
        )
    best = min(known, key=lambda row: row["beyond_guessing"])
    sentences.append(
        f"{best['defense']} leaves the least: {number_text(max(best['beyond_guessing'], 0.0))} of {number_text(exact['beyond_guessing'])} percentage points beyond guessing ({_price(best, words)})."
    )
    return sentences


def _price(row: Mapping[str, Any], words: ComparisonWords) -> str:
    """The error of a defense in words."""
    kind, counts = (
        ("race_error", "race, origin and voting age, which is all it publishes")
        if row["matched_by"] == DISTRICT_KEYS
        else ("error", "")
    )
    first, *others = (
        f"{number_text(row[f'{kind}_{level}'], 2)}{{}} of {_one(level, words)}" for level in words.levels[:2]
    )
    errors = ", ".join(
        [f"mean error {first.format(' persons in a count')}", *(one.format(" in one") for one in others)]
    )
    return f"{errors}; counts of {counts}" if counts else errors


def _one(level: str, words: ComparisonWords) -> str:
    """An area of a level in a sentence."""
    return f"a {level}" if words.census else f"the level {level}"


def _who(rates: Rows, defenses: Rows, words: ComparisonWords) -> Exhibit:
    populations = _populations(words)
    own = {
        (row["data"], row["population_attacked"]): row
        for row in rates
        if row["attacker"] == "exact" and row[words.size] == "all"
    }
    names = [*(row["defense"] for row in defenses), GUESSER]
    series = {text: [own[name, one]["precision"] for name in names] for one, text in populations.items()}
    lines = [
        [
            name,
            *(
                number_text(own[name, population][column])
                for population in populations
                for column in ("confirmed_percent", "precision")
            ),
        ]
        for name in names
    ]
    short = ("everybody", "differ", "differ, alone")
    text = "; ".join(f"{text}: {own[_EXACT, one]['records']:,} persons" for one, text in populations.items())
    return exhibit(
        f"{words.prefix}attack.who",
        figure=attack_bars(names, series, "right among the matched, percent"),
        columns=("data", *(f"{one}: {column}" for one in short for column in ("found", "right"))),
        rows=lines,
        populations=text[:1].upper() + text[1:],  # names within it stay as they are
        **_texts(words),
    )


def _comparison_sizes(agreement: Rows, defenses: Rows, words: ComparisonWords) -> Exhibit:
    by_size = {(row["data"], row[words.size]): row for row in agreement}
    sizes = [size for size in SIZE_CLASSES if by_size[_EXACT, size]["persons"]]
    names = [row["defense"] for row in defenses]
    series = {name: [by_size[name, size][words.agreement] for size in sizes] for name in names[:_MOST_LINES]}
    lines = [
        [name, *(number_text(by_size[name, size][words.agreement]) for size in ("all", *sizes))]
        for name in names
    ]
    figure = attack_lines(
        sizes, series, "persons with a true record, percent", f"persons in the {words.areas_key[:-1]}"
    )
    columns = ("defense", "all", *sizes)
    return exhibit(
        f"{words.prefix}attack.agreement", figure=figure, columns=columns, rows=lines, **_texts(words)
    )


def _certainty(variability: Rows, defenses: Rows, words: ComparisonWords) -> Exhibit:
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
    columns = ("defense", "one solution", *(f"{step}%" for step in steps))
    figure = _curves(curves, words)
    return exhibit(
        f"{words.prefix}attack.variability", figure=figure, columns=columns, rows=lines, **_texts(words)
    )


def _curves(curves: Mapping[str, Mapping[int, float | None]], words: ComparisonWords) -> Figure:
    """Variability over shares of the areas."""
    figure, axes = one_panel(8, 3.4 + 0.24 * -(-min(len(curves), _MOST_LINES) // 3))
    for place, (name, curve) in enumerate(list(curves.items())[:_MOST_LINES]):
        axes.plot(
            list(curve),
            [float("nan") if value is None else value for value in curve.values()],
            color=f"C{place}",
            linewidth=1.5,
            label=name,
        )
    axes.set_xlabel(f"populated {words.areas}, percent", fontsize=9)
    axes.set_ylabel("exchangeable records, percent", fontsize=9)
    axes.set_ylim(0, 102)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    quiet(axes)
    return figure


def _alone(uniques: Rows, words: ComparisonWords, page: str = "attack") -> Exhibit:
    lines = [
        [
            row[words.size],
            f"{row['persons']:,}",
            *(number_text(row[column]) for column in words.unique),
        ]
        for row in uniques
        if row["persons"]
    ]
    return exhibit(f"{words.prefix}{page}.alone", rows=lines, **_texts(words))
