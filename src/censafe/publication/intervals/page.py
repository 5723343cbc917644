"""Where published counts and unbiased estimates differ most: a page and a figure for each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from censafe.model.safe_text import file_name
from censafe.publication.atomic import atomic_text
from censafe.publication.intervals.files import IntervalRows
from censafe.publication.pages.exhibits import Exhibit, ExhibitSheet, PageTable, sheet_html
from censafe.publication.stamps import STAMP_REASONS, Stamp

_LARGEST: Final = 20
_LEVEL: Final = 0.9
_WIDEST: Final = 46
_FOOTER: Final = "Public: everything on this page follows from noisy measurements, published figures and the published noise laws."
_HOW: Final = (
    "An estimate is the best linear unbiased combination of all noisy measurements of the whole tree of areas, given what is published "
    "exactly; its standard deviation follows from the noise laws alone. The published count comes from the same measurements, made "
    "whole, not negative, and additive.",
    "Counts are in the order of the difference in standard deviations of the estimate. Published counts are fixed level by level from the "
    "top: those of the level above were fixed first, and the areas within share them out in whole numbers that are not negative. The "
    "estimate uses the measurements of all levels at once. A published count far outside of the bar is therefore not an error of the "
    "measurements: what was fixed above, or the limit at 0, holds it away from what was measured for this area. Where the truth is "
    "small the limit at 0 brings the published count nearer to it than the estimate is.",
    "There is no map: the run holds codes of areas, not their shapes.",
)


@dataclass(frozen=True, eq=False)
class _Most:
    """Answers in the order of their differences in standard deviations, the largest first."""

    words: list[str]
    estimate: NDArray[np.float64]
    published: NDArray[np.int64]
    spread: NDArray[np.float64]

    @property
    def difference(self) -> NDArray[np.float64]:
        return self.published - self.estimate


def write_interval_page(
    folder: Path,
    name: str,
    code: str,
    rows: Sequence[IntervalRows],
    *,
    settings: Mapping[str, str],
    stamp: Stamp | None,
) -> tuple[str, ...]:
    """Write ``CODE.html`` of a state and the figures beside it, one for each kind of area that is shown, from the widest."""
    by_kind = {kind: [one for one in rows if one.kind == kind] for kind in (row.kind for row in rows)}
    exhibits = [_exhibit(name, kind, own, stamp) for kind, own in by_kind.items()]
    compared = sum(one.values.size for one in rows)
    outside = sum(int(_outside(one).sum()) for one in rows)
    reason = f"{stamp}: {STAMP_REASONS[stamp]}. " if stamp else ""
    sheet = ExhibitSheet(
        title=f"Estimates and published counts: {name}",
        kicker="Intervals",
        answer=[
            f"{reason}Of {compared:,} published counts, {outside:,} lie outside of the 90% interval of their unbiased estimate."
        ],
        facts=[
            (kind, f"{sum(len(one.codes) for one in own):,}", "areas and histograms")
            for kind, own in by_kind.items()
        ],
        exhibits=exhibits,
        settings=list(settings.items()),
        footer=_FOOTER,
    )
    stem = file_name(code)
    atomic_text(folder / f"{stem}.html", sheet_html(sheet, f"{stamp}: " if stamp else ""))
    files = [f"{stem}.html"]
    for exhibit in exhibits:
        if exhibit.figure is not None:
            files.append(f"{stem}_{exhibit.name}.svg")
            atomic_text(folder / files[-1], exhibit.svg)
    return tuple(files)


def _outside(rows: IntervalRows) -> NDArray[np.bool_]:
    reach = NormalDist().inv_cdf(0.5 + _LEVEL / 2) * np.sqrt(rows.variances)
    return np.asarray(np.abs(rows.published - rows.values) > np.maximum(reach, 1e-6))


def _exhibit(state: str, kind: str, rows: Sequence[IntervalRows], stamp: Stamp | None) -> Exhibit:
    most = _most(rows)
    words = kind.replace("_", " ").lower()
    answer = (
        f"No count of this level has an estimate with any spread; levels of {words} are published exactly."
    )
    if len(most.words):
        answer = (
            f"Most of all: {most.words[0]}, published as {most.published[0]:,}, estimated as {most.estimate[0]:,.1f} with a standard "
            f"deviation of {most.spread[0]:,.1f}."
        )
    return Exhibit(
        name=file_name(kind.replace("_", "-").replace(" ", "-").lower()),
        question=f"Where do published counts and estimates differ most, by {words}?",
        answer=answer,
        figure=_figure(most, f"{state}, by {words}", stamp) if len(most.words) else None,
        alt=(
            f"Published count less estimate of the {len(most.words)} counts by {words} with the largest differences in standard "
            "deviations, with the 90% interval of the truth less the estimate as a bar around 0."
        ),
        tables=[_largest(most, words), _shares(rows, words)],
        how=_HOW,
        files=["intervals.parquet", "intervals.csv"],
    )


def _most(rows: Sequence[IntervalRows]) -> _Most:
    answers: list[tuple[str, float, float, int, float]] = []
    for intervals in rows:
        spread = np.sqrt(intervals.variances)
        ratio = np.abs(intervals.published - intervals.values) / np.where(spread > 0, spread, np.inf)
        for place in np.argsort(-ratio, axis=None, kind="stable")[:_LARGEST].tolist():
            area, answer = divmod(place, intervals.values.shape[1])
            if ratio[area, answer] > 0:
                name = intervals.names[area] or intervals.codes[area]
                answers.append(
                    (
                        f"{name}: {intervals.labels[answer] if intervals.labels[answer] != 'total' else intervals.histogram}",
                        ratio[area, answer],
                        intervals.values[area, answer],
                        int(intervals.published[area, answer]),
                        spread[area, answer],
                    )
                )
    answers = sorted(answers, key=lambda answer: -answer[1])[:_LARGEST]
    _, estimate, published, spread = np.array([answer[1:] for answer in answers], float).reshape(-1, 4).T
    return _Most([answer[0] for answer in answers], estimate, published.astype(np.int64), spread)


def _figure(most: _Most, title: str, stamp: Stamp | None) -> Figure:
    rows = len(most.words)
    figure = Figure(figsize=(8.5, 0.28 * rows + 1.3), layout="constrained")
    axes = figure.subplots()
    place = np.arange(rows)[::-1]
    reach = NormalDist().inv_cdf(0.5 + _LEVEL / 2) * most.spread
    axes.hlines(
        place, -reach, reach, color="#9aa5b1", linewidth=5, alpha=0.7, label="90% interval of the truth"
    )
    axes.plot(most.difference, place, "o", color="#0b5c7a", markersize=5, label="published count")
    axes.axvline(0, color="#4a5868", linewidth=0.8)
    short = [word if len(word) <= _WIDEST else f"{word[: _WIDEST - 1]}…" for word in most.words]
    axes.set_yticks(place, short)
    axes.set_xlabel("records above or below the unbiased estimate", fontsize=9)
    axes.set_title(f"{f'{stamp}. ' if stamp else ''}{title}", fontsize=10, loc="left")
    axes.grid(color="#e3e7ec", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _largest(most: _Most, words: str) -> PageTable:
    rows = [
        [
            word,
            f"{published:,}",
            f"{estimate:,.1f}",
            f"{spread:,.1f}",
            f"{published - estimate:+,.1f}",
            f"{(published - estimate) / spread:+.1f}",
        ]
        for word, published, estimate, spread in zip(
            most.words, most.published.tolist(), most.estimate.tolist(), most.spread.tolist(), strict=True
        )
    ]
    headers = ("Count", "Published", "Estimate", "SD", "Difference", "In SD")
    return PageTable(
        f"Largest differences by {words}, in standard deviations of the estimate", headers, rows, 5
    )


def _shares(rows: Sequence[IntervalRows], words: str) -> PageTable:
    """By query, how large differences are and how many published counts lie outside of the interval."""
    lines = []
    for intervals in rows:
        outside = _outside(intervals)
        difference = np.abs(intervals.published - intervals.values)
        for query in dict.fromkeys(intervals.queries):
            chosen = np.array([name == query for name in intervals.queries])
            uncertain = intervals.variances[:, chosen] > 0
            share = f"{100 * outside[:, chosen][uncertain].mean():.1f}%" if uncertain.any() else "exact"
            lines.append(
                [
                    f"{intervals.histogram}: {query}",
                    f"{chosen.sum() * len(intervals.codes):,}",
                    f"{difference[:, chosen].mean():,.2f}",
                    f"{np.sqrt(intervals.variances[:, chosen]).mean():,.2f}",
                    share,
                ]
            )
    headers = ("Query", "Counts", "Mean difference", "Mean SD", "Outside 90%")
    return PageTable(f"Differences between published counts and estimates by {words}", headers, lines, 4)
