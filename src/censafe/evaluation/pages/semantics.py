"""The page of ``evaluate semantics``, from its files alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from censafe.evaluation.confidential import Confidentiality, legend_below
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import Page, Rows, capital, exhibit, known, quiet, settings_text
from censafe.model.bounds import upper
from censafe.planning.prices.meaning import ALARMS
from censafe.publication.certificate.tables import SYMBOLS
from censafe.publication.pages import Exhibit

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
        standing=Confidentiality.PUBLIC,
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
