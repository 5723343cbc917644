"""The pages of ``evaluate topdown`` and ``evaluate uncertainty``, from their files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.outputs import confidentiality_of, number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import (
    NAN,
    Page,
    Rows,
    Triple,
    capital,
    draw_growth,
    draw_levels,
    exhibit,
    geounits_text,
    grouped,
    interval,
    known,
    loss_fact,
    lowest_level,
    one_panel,
    plain_log,
    quiet,
    run_settings,
    settings_text,
    shade,
    spaced,
)
from censafe.evaluation.pages.pair import consistency_exhibits
from censafe.evaluation.summary.filling import SUITE
from censafe.evaluation.topdown.accuracy import METHODS, SHORT
from censafe.publication.pages import Exhibit

_FEWEST = 10  # areas of a level whose growth is shown


@dataclass(frozen=True)
class Estimate:
    """A number of a frame with its interval."""

    value: float
    lo: float = NAN
    hi: float = NAN
    units: int = 0


_Key = tuple[str, str, str]
"""Histogram, characteristic and level."""


def metric_values(long: pa.Table, metric: str) -> dict[_Key, dict[str, Estimate]]:
    """One metric of the long frame by histogram, characteristic and level, then by method; all runs together."""
    rows = long.filter((pc.field("metric") == metric) & (pc.field("suite") != SUITE)).to_pylist()
    estimates: dict[_Key, dict[str, Estimate]] = {}
    for row in sorted(rows, key=lambda row: row["run_id"] == "pooled"):  # a single run has no pooled row
        histogram, method = row["suite"].split("/")
        place = estimates.setdefault((histogram, row["characteristic"], row["level"]), {})
        place[method] = Estimate(*interval(row), row["n_units"])
    return estimates


def topdown_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate topdown`` wrote."""
    document = read_evaluation(folder)
    long = read_frame(folder, "metrics_long")
    errors = metric_values(long, "mean_ae")
    exhibits = [_accuracy(long, document, errors, name) for name in document["histograms"]]
    exhibits += _growth(folder, document)
    exhibits += consistency_exhibits(folder, document)
    return Page(
        title=f"How accurate is TopDown with {document['configuration']}?",
        kicker="Evaluation of TopDown",
        answer=_answer(document, errors),
        facts=[
            loss_fact(document, "of the whole run"),
            lowest_level(document),
            ("Noise draws", str(document["runs"]), "independent runs with test keys"),
        ],
        exhibits=exhibits,
        settings=run_settings(document, "Seed of the test keys"),
        confidentiality=confidentiality_of(document),
    )


def _answer(document: Mapping[str, Any], errors: Mapping[_Key, Mapping[str, Estimate]]) -> list[str]:
    histogram = next(iter(document["histograms"]))
    words = document["histograms"][histogram]
    sentences = []
    for query, name in words.items():
        parts = []
        for level in document["levels"]:
            values = errors.get((histogram, query, level), {})
            if "topdown" in values and values["topdown"].value > 0:
                parts.append(f"{number_text(values['topdown'].value)} ({level.replace('_', ' ')})")
        if parts:
            sentences.append(f"{name}: {', '.join(parts)}")
    if not sentences:
        return ["Every figure compared here is published exactly."]
    return [f"Mean absolute error of TopDown in records. {capital('; '.join(sentences[:2]))}."]


def _accuracy(
    long: pa.Table, document: Mapping[str, Any], errors: Mapping[_Key, Mapping[str, Estimate]], histogram: str
) -> Exhibit:
    levels = document["levels"]
    words: Mapping[str, str] = document["histograms"][histogram]
    missing = Estimate(NAN)
    panels: dict[str, dict[str, list[Triple]]] = {}
    for query, name in words.items():
        by_level = [errors.get((histogram, query, level), {}) for level in levels]
        if any(one.value > 0 for values in by_level for one in values.values()):
            panels[f"{histogram}: {name}"] = {
                method: [
                    (estimate.value, estimate.lo, estimate.hi)
                    for estimate in (values.get(method, missing) for values in by_level)
                ]
                for method in METHODS
            }
    return exhibit(
        "topdown.accuracy",
        name=f"accuracy-{histogram}",
        answer=_compare_words([errors.get((histogram, *place), {}) for place in product(words, levels)]),
        figure=draw_levels(panels, levels, METHODS) if panels else None,
        columns=("Level", "Areas", "Mean count", *SHORT.values(), "Bias", "95th pct."),
        sections=_accuracy_sections(long, errors, histogram, words, [*levels, *document.get("lists", [])]),
        histogram=histogram,
    )


def _compare_words(errors: Sequence[Mapping[str, Estimate]]) -> str:
    """Where TopDown is better than the best of the others, and where not."""
    better, worse = 0, 0
    for values in errors:
        own = values.get("topdown")
        others = [one.value for name, one in values.items() if name != "topdown"]
        if own is None or not others or max(own.value, *others) == 0:
            continue
        better += own.value <= min(others)
        worse += own.value > min(others)
    return (
        f"In {better} of {better + worse} combinations of level and characteristic TopDown is at least as close to the truth as "
        "the best of the other three methods."
    )


def _accuracy_sections(
    long: pa.Table,
    errors: Mapping[_Key, Mapping[str, Estimate]],
    histogram: str,
    words: Mapping[str, str],
    levels: Sequence[str],
) -> list[tuple[str, list[list[str]]]]:
    """The errors of every characteristic, a line for each level."""
    bias, high, mean = (metric_values(long, name) for name in ("me", "pct95_ae", "count_mean"))
    sections = []
    for query, name in words.items():
        lines = []
        for level in levels:
            key = histogram, query, level
            values = errors.get(key, {})
            if "topdown" not in values:
                continue
            own = values["topdown"]
            half = (own.hi - own.lo) / 2
            others = [values.get(method, Estimate(NAN)) for method in METHODS if method != "topdown"]
            lines.append(
                [
                    spaced(level),
                    f"{own.units:,}",
                    number_text(mean[key]["topdown"].value),
                    number_text(own.value, 2) + ("" if half != half else f" ±{number_text(half, 2)}"),
                    *(number_text(other.value, 2) for other in others),
                    number_text(bias[key]["topdown"].value, 2),
                    number_text(high[key]["topdown"].value),
                ]
            )
        sections.append((capital(name), lines))
    return sections


def _growth(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    """Errors by number of blocks, and their slopes, of every histogram that has any error."""
    rows = read_frame(folder, "topdown_vs_blocks", ("histogram", "method")).to_pylist()
    rows = [row for row in rows if document["geounits"][row["level"]] >= _FEWEST]
    slopes = read_frame(folder, "slopes", ("histogram", "method")).to_pylist()
    exhibits = []
    for histogram, own in grouped(rows, lambda row: str(row["histogram"])).items():
        if not any(row["rmse"] > 0 for row in own):
            continue
        steep = [row for row in slopes if row["histogram"] == histogram and known(row["slope"])]
        areas = {row["level"]: row["n_areas"] for row in steep}
        texts = {(row["level"], row["method"]): number_text(row["slope"], 2) for row in steep}
        of_topdown = [texts[level, "topdown"] for level in areas if (level, "topdown") in texts]
        lines = [
            [spaced(level), f"{number:,}"] + [texts.get((level, method), "n/a") for method in METHODS]
            for level, number in areas.items()
        ]
        answer = "Too few areas for a slope; the figure shows the errors by number of blocks."
        if of_topdown:
            answer = f"With TopDown the slope is {', '.join(of_topdown)}; adding up protected blocks has slope 1: twice the blocks, twice the squared error."
        exhibits.append(
            exhibit(
                "topdown.growth",
                name=f"growth-{histogram}",
                answer=answer,
                figure=draw_growth(own, METHODS),
                columns=("Level", "Areas", *SHORT.values()),
                rows=lines or None,
                histogram=histogram,
            )
        )
    return exhibits


def uncertainty_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate uncertainty`` wrote."""
    document = read_evaluation(folder)
    rows = read_frame(folder, "uncertainty", ("histogram", "size_class")).to_pylist()
    exhibits = [
        _exhibit(document, histogram, query, words, rows)
        for histogram, named in document["histograms"].items()
        for query, words in named.items()
    ]
    stamp = "" if document["private"] else "NOT PRIVATE: the run used a test key. "
    return Page(
        title=f"How far may the published counts be from the truth? {document['configuration']}",
        kicker="Uncertainty of a published run",
        answer=[
            f"{stamp}Every published count has an expected error and an interval here, made without looking at any confidential "
            "record."
        ],
        facts=[
            loss_fact(document, "of the published run"),
            ("Further runs", str(document["runs"]), "on the published file"),
            ("Intervals", f"{100 * document['confidence']:g}%", "of the true count"),
        ],
        exhibits=[one for one in exhibits if one is not None],
        settings=[
            ("Configuration", document["configuration"]),
            ("Choices", settings_text(document["choices"], "")),
            ("Geounits", geounits_text(document)),
            ("Seed", str(document["seed"])),
        ],
        confidentiality=Confidentiality.PUBLIC,
    )


def _exhibit(
    document: Mapping[str, Any], histogram: str, query: str, words: str, rows: Rows
) -> Exhibit | None:
    own = [row for row in rows if (row["histogram"], row["characteristic"]) == (histogram, query)]
    if not any(row["rmse"] > 0 for row in own):
        return None
    levels = [level for level in document["levels"] if any(row["level"] == level for row in own)]
    sections = [
        (
            spaced(level),
            [
                [
                    f"{int(row['size_class']):,} or more" if int(row["size_class"]) else "0",
                    f"{row['n_cells'] // document['runs']:,}",
                    *(number_text(row[name], 2) for name in ("rmse", "bias")),
                    f"{number_text(row['lo'], 0)} to {number_text(row['hi'], 0)}",
                ]
                for row in own
                if row["level"] == level
            ],
        )
        for level in levels
    ]
    return exhibit(
        "uncertainty.counts",
        name=f"{histogram}-{query.replace(' * ', '-')}",
        answer=_uncertain_answer(own, levels),
        figure=_figure(own, levels),
        sections=sections,
        histogram=histogram.capitalize(),
        words=words,
    )


def _uncertain_answer(rows: Rows, levels: Sequence[str]) -> str:
    parts = []
    for level in (levels[0], levels[-1]) if len(levels) > 1 else levels:
        own = [row for row in rows if row["level"] == level]
        weights = np.array([row["n_cells"] for row in own], float)
        mean = float((np.array([row["rmse"] for row in own]) ** 2 * weights).sum() / weights.sum()) ** 0.5
        parts.append(f"{number_text(mean, 1)} records at level {level.replace('_', ' ')}")
    return f"Published counts are expected to be off by {' and '.join(parts)} (root mean square)."


def _figure(rows: Rows, levels: Sequence[str]) -> Figure:
    figure, axes = one_panel(8, 4)
    for place, level in enumerate(levels):
        own = [row for row in rows if row["level"] == level and row["rmse"] > 0]
        if own:
            color = shade(place, len(levels))
            x = [max(int(row["size_class"]), 0.5) for row in own]
            axes.plot(
                x, [row["rmse"] for row in own], marker="o", color=color, markersize=5, linewidth=1.3,
                label=spaced(level),
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_log(axes.yaxis)
    axes.set_xticks(
        [0.5, 1, 10, 100, 1000, 10000, 100000], ["0", "1", "10", "100", "1,000", "10,000", "100,000"]
    )
    quiet(axes, x="published count, this or more", y="RMSE, records")
    axes.legend(frameon=False, fontsize=8)
    return figure
