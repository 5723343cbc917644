"""Public. The pages of what the noise laws alone imply and of ``evaluate semantics``, from their files."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from censafe.evaluation.confidential import Confidentiality, legend_below
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
    known,
    lowest_level,
    number,
    quiet,
    settings_text,
    spaced,
)
from censafe.evaluation.pages.sweep import draw_error_by_budget
from censafe.model.bounds import upper
from censafe.planning.prices.meaning import ALARMS
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
        confidentiality=Confidentiality.PUBLIC,
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


_CURVES: Final = (
    ("bound", "no attack on any mechanism of this loss does better", "#d1762a", "-"),
    ("discrete_gaussian_randomized", "best attack on the noise that is drawn", "#0b5c7a", "-"),
    ("gaussian", "the same on continuous Gaussian noise", "#10202e", ":"),
)
_READINGS: Final = (
    ("epsilon_prefactor", "with prefactor", "#6b4c9a", "-."),
    ("epsilon_slide", "as the Bureau states it", "#9aa5b1", "--"),
    ("epsilon_tight", "tight bound on rho", "#0b5c7a", "-"),
    ("epsilon_gaussian", "one Gaussian answer", "#d1762a", ":"),
)


def semantics_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate semantics`` wrote."""
    document = read_evaluation(folder)
    power = read_frame(folder, "power", ("question", "symbol")).to_pylist()
    exhibits = [
        _power(f"power-{place}", question, _of(power, question))
        for place, question in enumerate(document["questions"], 1)
    ]
    if (folder / "epsilon.csv").exists():
        readings = read_frame(folder, "epsilon", ("question", "symbol")).to_pylist()
        exhibits.append(_epsilon(document["questions"], readings))
    return Page(
        title=f"What does the budget mean for one person? {document['configuration']}",
        kicker="Semantics of a privacy loss",
        answer=[
            "An attacker knows everything but one fact about one record, and all published figures. How often does the best "
            "possible test find the fact, if it may be wrong only so often?"
        ],
        facts=[
            (
                f"{SYMBOLS[question['symbol']]} of {question['name']}",
                number_text(upper(question["loss"], 4), 4),
                question["words"],
            )
            for question in document["questions"]
        ],
        exhibits=exhibits,
        settings=[
            ("Product", document["product"]),
            ("Configuration", document["configuration"]),
            ("Settings", settings_text(document["settings"], "as shipped")),
        ],
        confidentiality=Confidentiality.PUBLIC,
    )


def _of(rows: Rows, question: Mapping[str, Any]) -> Rows:
    return [row for row in rows if row["question"] == question["name"]]


_KINDS: Final = ("discrete_gaussian_randomized", "discrete_gaussian", "gaussian", "bound")


def _power(name: str, question: Mapping[str, Any], rows: Rows) -> Exhibit:
    alarms = [float(one) for one in ALARMS]
    stated = [row for row in rows if row["false_alarm"] in alarms]
    column = "discrete_gaussian_randomized" if known(stated[0]["discrete_gaussian"]) else "bound"
    successes = ", ".join(
        f"{number_text(upper(100 * row[column], 1), 1)} with {number_text(100 * row['false_alarm'], 0)}"
        for row in stated
    )
    return exhibit(
        "semantics.power" if column != "bound" else "semantics.bound",
        name=name,
        figure=_power_figure(rows),
        rows=[
            [
                f"{row['false_alarm']:g}",
                *(
                    number_text(upper(row[kind], 4), 4) if known(row[kind]) else "none stated"
                    for kind in _KINDS
                ),
            ]
            for row in stated
        ],
        fact=question["name"],
        fact_words=question["words"],
        successes=successes,
        loss=f"{SYMBOLS[question['symbol']]} = {upper(question['loss'], digits=7):.7g}",
        cells=question["cells"],
    )


def _power_figure(rows: Rows) -> Figure:
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, most in ((left, 1.0), (right, 0.1)):
        axes.plot([0, 1], [0, 1], color="#c3ccd6", linewidth=1.0, label="guessing at random")
        for name, words, color, style in _CURVES:
            curve = [row for row in rows if known(row[name])]
            if curve:
                x = [0.0, *(row["false_alarm"] for row in curve), 1.0]
                y = [0.0, *(row[name] for row in curve), 1.0]
                axes.plot(x, y, color=color, linestyle=style, linewidth=1.6, label=words)
        inside = [row["bound"] for row in rows if row["false_alarm"] <= most]
        axes.set_xlim(0, most)
        axes.set_ylim(0, min(1.0, 1.08 * max(inside)))
        quiet(axes, x="chance of a false alarm")
    left.set_ylabel("chance that the attack finds it", fontsize=9)
    left.set_title("all attacks", fontsize=10)
    right.set_title("cautious attacks", fontsize=10)
    legend_below(figure, left, columns=2)
    return figure


def _epsilon(questions: Rows, rows: Rows) -> Exhibit:
    sections = []
    for question in questions:
        lines = [
            [
                f"{row['delta']:.0e}",
                *(number_text(row[name], 3) for name, *_ in _READINGS),
                f"{row['loss_tail']:.1e}",
            ]
            for row in _of(rows, question)
        ]
        sections.append((capital(question["name"]), lines))
    return exhibit("semantics.epsilon", figure=_epsilon_figure(questions, rows), columns=("Delta", *(words for _, words, *_ in _READINGS), "chance of more than the tight one"), sections=sections)  # fmt: skip


def _epsilon_figure(questions: Rows, rows: Rows) -> Figure:
    figure = Figure(figsize=(max(5.0, 4.5 * len(questions)), 3.8), layout="constrained")
    grid = np.atleast_1d(figure.subplots(1, len(questions)))
    for axes, question in zip(grid, questions, strict=True):
        own = _of(rows, question)
        for name, words, color, style in _READINGS:
            axes.plot(
                [row["delta"] for row in own], [row[name] for row in own], color=color, linestyle=style,
                linewidth=1.6, label=words,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        quiet(axes, title=question["name"], x="delta")
    grid[0].set_ylabel("epsilon", fontsize=9)
    legend_below(figure, grid[0], columns=4)
    return figure
