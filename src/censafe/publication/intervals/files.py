"""Estimates with intervals beside published counts: one tidy table as Parquet and CSV, with a codebook."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.geography.identifiers import geoids, gisjoins
from censafe.model.arrays import Floats
from censafe.model.safe_text import csv_table, csv_text
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.columns import coded_words, tidy_columns
from censafe.publication.stamps import STAMP_REASONS, Stamp, stamp_metadata

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
