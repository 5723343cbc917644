"""Public. The page of what the noise laws alone imply, from its files."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import (
    EPSILON,
    NAN,
    Page,
    Rows,
    capital,
    draw_levels,
    exhibit,
    geounits_text,
    lowest_level,
    number,
    settings_text,
    spaced,
)
from censafe.evaluation.pages.sweep import draw_error_by_budget
from censafe.model.bounds import upper
from censafe.publication.certificate.tables import SYMBOLS
from censafe.publication.pages import Exhibit

_METHODS: Final = {"noisy": "noisy counts of the level", "blocks_noise": "noisy blocks, added up"}
_TEXTS: Final = ("histogram", "method", "law", "estimator", "statistic", "question", "words")


def noise_page(folder: Path) -> Page:
    """The page of a folder that an evaluation wrote with ``--public``."""
    document = read_evaluation(folder)
    expected = read_frame(folder, "expected", _TEXTS).to_pylist()
    losses = read_frame(folder, "noise_loss", _TEXTS).to_pylist()
    attacks = read_frame(folder, "attack", _TEXTS).to_pylist()
    exhibits = [
        _expected(document, histogram, [row for row in expected if row["histogram"] == histogram])
        for histogram in document["histograms"]
    ]
    several = len(document["budgets"]) > 1
    exhibits += [_hidden(document, losses), _attack(attacks, several=several)]
    ends = dict.fromkeys((0, len(document["budgets"]) - 1))
    loss = " to ".join(number_text(upper(document["budgets"][at]["loss"], 4), 4) for at in ends)
    return Page(
        title=f"What the noise laws of {document['configuration']} imply",
        kicker="Public evaluation of TopDown",
        answer=[
            "How far noisy counts are from the truth, and how well the noise hides one person, as far as this is known without "
            "looking at any data. What becomes of the noise when counts are fitted and rounded depends on the data and is not here."
        ],
        facts=[
            (
                f"Privacy loss {SYMBOLS[document['symbol']]}",
                loss,
                "budgets of whole runs" if several else "of the whole run",
            ),
            lowest_level(document),
        ],
        exhibits=exhibits,
        settings=[
            ("Configuration", document["configuration"]),
            ("Changed settings", settings_text(document["overrides"])),
            ("Geounits", geounits_text(document)),
        ],
        standing=Confidentiality.PUBLIC,
    )


def _place(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """The level of a row, and its budget where there are several."""
    level: str = spaced(row["level"])
    return f"{level}, {EPSILON} {row['epsilon']:g}" if len(document["budgets"]) > 1 else level


def _expected(document: Mapping[str, Any], histogram: str, rows: Rows) -> Exhibit:
    """The errors of every characteristic, noisy counts of a level and noisy blocks that are added up."""
    words: Mapping[str, str] = document["histograms"][histogram]
    levels = list(document["geounits"])
    if len(document["budgets"]) > 1:
        alt = "Error that the noise laws imply, by budget, one line a level; exact totals have no line."
        first, last = next(iter(words)), list(words)[-1]
        budget_rows = [
            {**row, "stat": stat, "mean_ae": row["expected_mean_ae"]}
            for stat, query in (("TC", first), ("SC", last))
            for row in rows
            if (row["method"], row["characteristic"]) == ("noisy", query)
        ]
        figure = draw_error_by_budget(budget_rows, levels, EPSILON)
        for axes, query in zip(figure.axes, (first, last), strict=True):
            axes.set_title(words[query], fontsize=10)
    else:
        alt = "Root mean square error that the noise laws imply, by level, for both kinds of noisy counts."
        values = {(row["characteristic"], row["method"], row["level"]): row["expected_rmse"] for row in rows}
        panels = {
            f"{histogram}: {name}": {
                method: [(values.get((query, method, level), NAN), NAN, NAN) for level in levels]
                for method in _METHODS
            }
            for query, name in words.items()
        }
        figure = draw_levels(panels, levels, _METHODS)
        for axes in figure.axes:
            axes.set_ylabel("RMSE, records", fontsize=9)
    place = itemgetter("characteristic", "loss", "level")
    added = {place(row): row["expected_rmse"] for row in reversed(rows) if row["method"] == "blocks_noise"}
    sections = [
        (
            capital(name),
            [
                [
                    _place(document, row),
                    f"{row['n_units']:,}",
                    *(number_text(row[key], 2) for key in ("expected_mean_ae", "expected_rmse")),
                    number_text(row["within_95"], 0),
                    number_text(added.get(place(row), NAN), 2),
                ]
                for row in rows
                if (row["method"], row["characteristic"]) == ("noisy", query)
            ],
        )
        for query, name in words.items()
    ]
    return exhibit(
        "noise.errors",
        name=f"noise-{histogram}",
        alt=alt,
        figure=figure,
        sections=sections,
        histogram=histogram,
    )


def _hidden(document: Mapping[str, Any], rows: Rows) -> Exhibit:
    """The three measures of each level and budget, by characteristic."""
    places: dict[tuple[str, str, str, float], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in rows:
        key = row["histogram"], row["characteristic"], row["level"], row["epsilon"]
        places.setdefault(key, {})[row["estimator"], row["statistic"]] = row
    sections: dict[str, list[list[str]]] = {}
    for (histogram, query, _, _), values in places.items():
        largest, middle = values["kernel", "max"], values["kernel", "median"]
        line = [
            _place(document, largest),
            f"{largest['n']:,}",
            number_text(middle["truth"], 3),
            *(number_text(one["mean"], 3) for one in (largest, middle, values["discrete", "median"])),
        ]
        sections.setdefault(f"{histogram}: {document['histograms'][histogram][query]}", []).append(line)
    return exhibit("noise.noise-loss", sections=sections.items())


def _attack(rows: Rows, *, several: bool) -> Exhibit:
    """A line for each question and budget, by question."""
    alarms = sorted({row["false_alarm"] for row in rows})
    by_place = {(row["question"], row["epsilon"], row["false_alarm"]): row for row in rows}
    sections: dict[str, list[list[str]]] = {}
    for question, epsilon in dict.fromkeys((row["question"], row["epsilon"]) for row in rows):
        own = [by_place[question, epsilon, alarm] for alarm in alarms]
        line = [
            f"{EPSILON} {epsilon:g}" if several else "of 100 attacks",
            *(number_text(100 * number(row["best_attack"]), 1) for row in own),
            *(number_text(upper(100 * row["bound"], 1), 1) for row in own),
        ]
        sections.setdefault(capital(question), []).append(line)
    heads = [f"{100 * alarm:g} false" for alarm in alarms]
    return exhibit(
        "noise.attack",
        columns=("Budget" if several else "", *heads, *(f"at most, {head}" for head in heads)),
        sections=sections.items(),
    )
