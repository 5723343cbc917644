"""Estimates with intervals beside published counts: one tidy table as Parquet and CSV with its codebook, and a page of where both differ most for each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.geography.identifiers import geoids, gisjoins
from censafe.model.arrays import Floats
from censafe.model.safe_text import csv_table, csv_text, file_name
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.columns import coded_words, tidy_columns
from censafe.publication.pages import Exhibit, ExhibitSheet, PageTable, sheet_html
from censafe.publication.stamps import STAMP_REASONS, Stamp, stamp_metadata

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARQUET_FILE: Final = "intervals.parquet"
CSV_FILE: Final = "intervals.csv"
PAGES: Final = "intervals"
INTERVAL_FILES: Final = (PAGES, CSV_FILE, PARQUET_FILE)
"""What intervals add to a run folder."""

_TEXTS: Final = ("histogram", "kind", "geocode", "GEOID", "GISJOIN", "NAME", "query", "label")
_DECIMALS: Final = 4
_CHUNK: Final = 1 << 19


@dataclass(frozen=True, eq=False)
class IntervalRows:
    """Estimates of all answers of some queries at the areas of one kind.

    Args:
        codes: of the areas, shape (n,).
        names: of the areas, shape (n,).
        queries: name of the query of every answer, shape (F,).
        cells: position of every answer in its query, shape (F,).
        labels: of every answer, shape (F,).
        values: estimates, shape (n, F).
        variances: shape (n, F).
        published: published counts, shape (n, F).
        simulated: for every level of confidence, ends of the intervals of the published counts, each of shape (n, F); empty
            where there are none.
    """

    histogram: str
    kind: str
    codes: NDArray[np.str_] = field(repr=False)
    names: NDArray[np.str_] = field(repr=False)
    queries: Sequence[str]
    cells: Sequence[int]
    labels: Sequence[str]
    values: Floats = field(repr=False)
    variances: Floats = field(repr=False)
    published: NDArray[np.int64] = field(repr=False)
    simulated: Sequence[tuple[Floats, Floats]] = field(default=(), repr=False)
    census: bool = False


def percent(confidence: Fraction) -> str:
    """A level of confidence in percent, as it stands in the names of columns.

    Example:
        >>> percent(Fraction(9, 10)), percent(Fraction(995, 1000))
        ('90', '99.5')
    """
    return f"{float(100 * confidence):g}"


def _schema(confidences: Sequence[Fraction], *, simulated: bool, stamp: Stamp | None) -> pa.Schema:
    known = tidy_columns("intervals")
    texts = [(name, known[name].type) for name in _TEXTS]
    ends = [f"{end}{percent(one)}" for one in confidences for end in ("lo", "hi")]
    of_published = [f"published_{end}" for end in ends] if simulated else []
    names = ["cell", "estimate", "sd", *ends, "published", *of_published, "difference"]
    numbers = [(name, known[name].type if name in known else pa.float64()) for name in names]
    return pa.schema([*texts[:-1], numbers[0], texts[-1], *numbers[1:]]).with_metadata(stamp_metadata(stamp))


class IntervalWriter:
    """Writes the table piece by piece; a context manager."""

    def __init__(
        self, folder: Path, confidences: Sequence[Fraction], *, simulated: bool, stamp: Stamp | None
    ) -> None:
        self._confidences = tuple(confidences)
        self._schema = _schema(confidences, simulated=simulated, stamp=stamp)
        plain = [
            pa.field(column.name, pa.string()) if pa.types.is_dictionary(column.type) else column
            for column in self._schema
        ]
        self._plain = pa.schema(plain)
        self._folder = folder
        self._open = ExitStack()
        self.rows = 0

    def __enter__(self) -> Self:
        floats = [one.name for one in self._schema if pa.types.is_floating(one.type) and one.name != "sd"]
        parquet, text = (
            self._open.enter_context(atomic_write(self._folder / name)) for name in (PARQUET_FILE, CSV_FILE)
        )
        self._parquet = pq.ParquetWriter(
            parquet, self._schema, compression="zstd", compression_level=1,
            use_dictionary=[*_TEXTS, "cell", "sd"], use_byte_stream_split=floats,
        )  # fmt: skip
        self._open.callback(self._parquet.close)
        self._csv = pa_csv.CSVWriter(
            text, self._plain, write_options=pa_csv.WriteOptions(quoting_style="needed")
        )
        self._open.callback(self._csv.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def add(self, rows: IntervalRows) -> None:
        """Write the areas of one kind."""
        answers = max(1, rows.values.shape[1])
        step = max(1, _CHUNK // answers)
        for first in range(0, len(rows.codes), step):
            table = self._table(rows, slice(first, first + step))
            self.rows += table.num_rows
            self._parquet.write_table(table)
            self._csv.write_table(csv_table(table).cast(self._plain))

    def _table(self, rows: IntervalRows, part: slice) -> pa.Table:
        codes, names = rows.codes[part], rows.names[part]
        areas, answers = len(codes), rows.values.shape[1]
        area, answer = np.divmod(np.arange(areas * answers, dtype=np.int32), max(1, answers))
        zero, none = np.zeros(len(area), np.int32), np.full(areas, "")
        columns: dict[str, pa.Array] = {
            "histogram": coded_words(zero, [rows.histogram]),
            "kind": coded_words(zero, [rows.kind]),
            "geocode": coded_words(area, codes.tolist()),
            "GEOID": coded_words(area, (geoids(codes) if rows.census else none).tolist()),
            "GISJOIN": coded_words(area, (gisjoins(codes) if rows.census else none).tolist()),
            "NAME": coded_words(area, names.tolist()),
            "query": coded_words(answer, list(rows.queries)),
            "cell": pa.array(np.array(rows.cells, np.int32)[answer]),
            "label": coded_words(answer, list(rows.labels)),
            "published": pa.array(np.ascontiguousarray(rows.published[part]).reshape(-1)),
        }
        values, spread = rows.values[part], np.sqrt(rows.variances[part])
        numbers = {"estimate": values, "sd": spread, "difference": rows.published[part] - values}
        for place, confidence in enumerate(self._confidences):
            reach = NormalDist().inv_cdf(0.5 + float(confidence) / 2) * spread
            numbers |= {
                f"lo{percent(confidence)}": values - reach,
                f"hi{percent(confidence)}": values + reach,
            }
            if rows.simulated:
                low, high = rows.simulated[place]
                numbers |= {
                    f"published_lo{percent(confidence)}": low[part],
                    f"published_hi{percent(confidence)}": high[part],
                }
        # 0.0 is added so that no -0 is written
        columns |= {
            name: pa.array(np.round(array, _DECIMALS).reshape(-1) + 0.0) for name, array in numbers.items()
        }
        return pa.table([columns[column.name] for column in self._schema], schema=self._schema)


def write_interval_codebook(
    path: Path, confidences: Sequence[Fraction], *, simulations: int, stamp: Stamp | None
) -> None:
    """Write what every column means, as CSV with the columns column, meaning and unit."""
    meanings = {name: column.meaning for name, column in tidy_columns("intervals").items()}
    for confidence in confidences:
        words = f"the interval that holds the true count with {percent(confidence)}% confidence"
        source = f"by simulation from {simulations} further runs on the published counts"
        for end, side in (("lo", "lower"), ("hi", "upper")):
            meanings[f"{end}{percent(confidence)}"] = (
                f"{side} end of {words}, around the estimate, under the normal law"
            )
            meanings[f"published_{end}{percent(confidence)}"] = (
                f"{side} end of {words}, around the published count, {source}"
            )
    names = _schema(confidences, simulated=simulations > 0, stamp=stamp).names
    rows = [("column", "meaning", "unit")]
    if stamp:
        rows.append(("", f"{stamp}: {STAMP_REASONS[stamp]}", ""))
    rows += [(name, meanings[name], "" if name in (*_TEXTS, "cell") else "records") for name in names]
    atomic_text(path, csv_text(rows))


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
    from matplotlib.figure import Figure

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
