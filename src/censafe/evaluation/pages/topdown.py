"""The page of ``evaluate topdown``, from its files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from censafe.evaluation.outputs import number_text, read_evaluation, read_frame, standing_of
from censafe.evaluation.pages.consistency import consistency_exhibits
from censafe.evaluation.pages.page import (
    NAN,
    Page,
    Triple,
    capital,
    draw_growth,
    draw_levels,
    interval,
    loss_fact,
    run_settings,
    sectioned,
)
from censafe.evaluation.summary.filling import SUITE
from censafe.evaluation.topdown.accuracy import METHODS, SHORT
from censafe.publication.pages.exhibits import Exhibit, PageTable

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


def metric_values(folder: Path, metric: str) -> dict[_Key, dict[str, Estimate]]:
    """One metric of the long frame by histogram, characteristic and level, then by method; all runs together."""
    rows = read_frame(folder, "metrics_long").to_pylist()
    rows = [row for row in rows if row["metric"] == metric and row["suite"] != SUITE]
    found: dict[_Key, dict[str, Estimate]] = {}
    for row in sorted(rows, key=lambda row: row["run_id"] == "pooled"):  # a single run has no pooled row
        histogram, method = row["suite"].split("/")
        place = found.setdefault((histogram, row["characteristic"], row["level"]), {})
        place[method] = Estimate(*interval(row), row["n_units"])
    return found


def topdown_page(folder: Path) -> Page:
    """The page of a folder that ``evaluate topdown`` wrote."""
    document = read_evaluation(folder)
    errors = metric_values(folder, "mean_ae")
    exhibits = [_accuracy(folder, document, errors, name) for name in document["histograms"]]
    exhibits += _growth(folder, document)
    exhibits += consistency_exhibits(folder, document)
    return Page(
        title=f"How accurate is TopDown with {document['configuration']}?",
        kicker="Evaluation of TopDown",
        answer=_answer(document, errors),
        facts=[
            loss_fact(document, "of the whole run"),
            (
                "Lowest level",
                f"{list(document['geounits'].values())[-1]:,}",
                f"{document['levels'][-1]} geounits",
            ),
            ("Noise draws", str(document["runs"]), "independent runs with test keys"),
        ],
        exhibits=exhibits,
        settings=run_settings(document, "Seed of the test keys"),
        standing=standing_of(document),
    )


def _answer(document: Mapping[str, Any], errors: Mapping[_Key, Mapping[str, Estimate]]) -> list[str]:
    histogram = next(iter(document["histograms"]))
    words = document["histograms"][histogram]
    found = []
    for query, name in words.items():
        parts = []
        for level in document["levels"]:
            values = errors.get((histogram, query, level), {})
            if "topdown" in values and values["topdown"].value > 0:
                parts.append(f"{number_text(values['topdown'].value)} ({level.replace('_', ' ')})")
        if parts:
            found.append(f"{name}: {', '.join(parts)}")
    if not found:
        return ["Every figure compared here is published exactly."]
    return [f"Mean absolute error of TopDown in records. {capital('; '.join(found[:2]))}."]


def _accuracy(
    folder: Path, document: Mapping[str, Any], errors: Mapping[_Key, Mapping[str, Estimate]], histogram: str
) -> Exhibit:
    levels = document["levels"]
    words: Mapping[str, str] = document["histograms"][histogram]
    missing = Estimate(NAN)
    panels: dict[str, dict[str, list[Triple]]] = {}
    for query, name in words.items():
        found = [errors.get((histogram, query, level), {}) for level in levels]
        if any(one.value > 0 for values in found for one in values.values()):
            panels[f"{histogram}: {name}"] = {
                method: [
                    (one.value, one.lo, one.hi) for one in (values.get(method, missing) for values in found)
                ]
                for method in METHODS
            }
    return Exhibit(
        name=f"accuracy-{histogram}",
        question=f"How wrong are the {histogram}, level by level?",
        answer=_compare_words(errors, histogram, words, levels),
        figure=draw_levels(panels, levels, METHODS) if panels else None,
        alt=(
            "Mean absolute error by level of the geography, one panel a characteristic, one line a method, logarithmic scale; "
            "bars are 90% intervals. Figures that are published exactly have no error and no mark."
        ),
        tables=[_accuracy_table(folder, errors, histogram, words, [*levels, *document.get("lists", [])])],
        how=_HOW,
        files=[
            "metrics_long.csv",
            "metrics_wide.csv",
            "expected.csv",
            "side_by_side_long.csv",
            "codebook.csv",
        ],
    )


_HOW = (
    "TopDown was run several times on the same records, each time with new noise from a test key. Every published count was "
    "compared with the true one; the error of a count is published less true. The table gives the mean of the absolute "
    "errors over all areas of a level and all cells of a characteristic, cells that are truly empty included, with a 90% "
    "interval that takes areas as independent.",
    "Noisy counts of the level are what TopDown starts from: the measured query that gives the characteristic with the least "
    "noise, its answers added up, negative numbers and all. Blocks one by one means that each block gets the whole budget, is "
    "fitted to whole numbers of zero or more, and areas are sums of their blocks. Noisy blocks added up is the same without "
    "fitting.",
    "Totals that are published exactly have error 0 under TopDown and among the noisy counts; blocks one by one make no use of "
    "them, and are left out where they would be fits of too many cells. Where the totals of all blocks are exact, totals are not compared.",
)


def _compare_words(
    errors: Mapping[_Key, Mapping[str, Estimate]],
    histogram: str,
    words: Mapping[str, str],
    levels: Sequence[str],
) -> str:
    """Where TopDown is better than the best of the others, and where not."""
    better, worse = 0, 0
    for query in words:
        for level in levels:
            values = errors.get((histogram, query, level), {})
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


def _accuracy_table(
    folder: Path,
    errors: Mapping[_Key, Mapping[str, Estimate]],
    histogram: str,
    words: Mapping[str, str],
    levels: Sequence[str],
) -> PageTable:
    bias, high = metric_values(folder, "me"), metric_values(folder, "pct95_ae")
    mean = metric_values(folder, "count_mean")
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
                    level.replace("_", " "),
                    f"{own.units:,}",
                    number_text(mean[key]["topdown"].value),
                    number_text(own.value, 2) + ("" if half != half else f" ±{number_text(half, 2)}"),
                    *(number_text(other.value, 2) for other in others),
                    number_text(bias[key]["topdown"].value, 2),
                    number_text(high[key]["topdown"].value),
                ]
            )
        sections.append((capital(name), lines))
    return sectioned(
        f"Mean absolute error of the {histogram} in records (with half of the 90% interval), and more about TopDown",
        ("Level", "Areas", "Mean count", *SHORT.values(), "Bias", "95th pct."),
        sections,
    )


def _growth(folder: Path, document: Mapping[str, Any]) -> list[Exhibit]:
    rows = read_frame(folder, "topdown_vs_blocks", ("histogram", "method")).to_pylist()
    rows = [row for row in rows if document["geounits"][row["level"]] >= _FEWEST]
    slopes = read_frame(folder, "slopes", ("histogram", "method")).to_pylist()
    exhibits = []
    for histogram in dict.fromkeys(row["histogram"] for row in rows):
        own = [row for row in rows if row["histogram"] == histogram]
        steep = [
            row
            for row in slopes
            if row["histogram"] == histogram and row["slope"] is not None and row["slope"] == row["slope"]
        ]
        if any(row["rmse"] > 0 for row in own):
            exhibits.append(_growth_exhibit(histogram, own, steep))
    return exhibits


def _growth_exhibit(
    histogram: str, rows: Sequence[Mapping[str, Any]], slopes: Sequence[Mapping[str, Any]]
) -> Exhibit:
    areas = {row["level"]: row["n_areas"] for row in reversed(slopes)}
    levels = list(dict.fromkeys(row["level"] for row in slopes))
    texts = {(row["level"], row["method"]): number_text(row["slope"], 2) for row in slopes}
    known = [texts[level, "topdown"] for level in levels if (level, "topdown") in texts]
    table = PageTable(
        "Slope of the logarithm of the squared error on the logarithm of the number of blocks",
        ("Level", "Areas", *SHORT.values()),
        [
            [level.replace("_", " "), f"{areas[level]:,}"]
            + [texts.get((level, method), "n/a") for method in METHODS]
            for level in levels
        ],
        numbers=1 + len(METHODS),
    )
    return Exhibit(
        name=f"growth-{histogram}",
        question=f"Do errors of {histogram} grow with the number of blocks below an area?",
        answer=f"With TopDown the slope is {', '.join(known)}; adding up protected blocks has slope 1: twice the blocks, twice the squared "
        "error."
        if known
        else "Too few areas for a slope; the figure shows the errors by number of blocks.",
        figure=draw_growth(rows, METHODS),
        alt="Root mean square error of the total by number of blocks of an area, one panel a level, both axes logarithmic.",
        tables=[table] if levels else [],
        how=(
            "Areas are put into classes of which each has twice as many blocks as the one before. The slope is fitted to the squared "
            "errors of all areas of a level; 0 means that the error does not depend on the number of blocks, 1 that the squared "
            "error grows like it. Levels of fewer than ten areas, or with exact totals, have no slope.",
            "An area of few blocks is closer to the truth than its own noisy count, because the noisy counts of its blocks say as "
            "much; with more blocks the error of TopDown rises to that of the area's own noisy count and stays there.",
        ),
        files=["topdown_vs_blocks.csv", "slopes.csv"],
    )
