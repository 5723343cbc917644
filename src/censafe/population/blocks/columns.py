"""Columns of Parquet and CSV files of block histograms: batches, geocodes and whole numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.errors import StorageError
from censafe.geography.files import open_parquet
from censafe.geography.geocodes import pack_geocodes
from censafe.geography.grfc import BLOCK_AREA_COLUMNS
from censafe.geography.identifiers import known_counties
from censafe.population.blocks.areas import doubt_findings
from censafe.population.blocks.layout import HistogramLayout
from censafe.population.files.delimited import DELIMITER_NAMES
from censafe.population.files.parquet import readable_texts
from censafe.population.findings import Finding, stated

_BATCH_ROWS, _CODED_ROWS = 1_000_000, 500_000
_CSV_BYTES = 1 << 24
_DIGITS_15 = 15
_COUNTY = 5
_SHORTEST = 2  # digits of a code that can have lost one
_TEXTS = ("geocode", *BLOCK_AREA_COLUMNS)
_Ints = NDArray[np.int64]
_Names = tuple[str, ...]
_Part = TypeVar("_Part")


def read_ahead(parts: Iterator[_Part]) -> Iterator[_Part]:
    """The same parts; a thread reads the next one while one is used.

    Example:
        >>> list(read_ahead(iter([1, 2, 3])))
        [1, 2, 3]
    """
    end = object()
    with ThreadPoolExecutor(1) as reader:
        following: Future[Any] = reader.submit(next, parts, end)
        while (part := following.result()) is not end:
            following = reader.submit(next, parts, end)
            yield part


def batches(
    path: Path, choices: tuple[_Names, ...], optional: _Names, findings: list[Finding], *, coded: bool = False
) -> Iterator[Any]:
    """Record batches of a file that has the columns of one of the choices; otherwise a finding and none.

    Args:
        coded: whether columns are codes, text or whole numbers, of which text comes as dictionaries.
    """
    import pyarrow as pa

    try:
        if path.suffix.lower() == ".csv":
            yield from _scan_csv(path, choices, optional, findings)
            return
        with open_parquet(path) as file:
            schema = file.schema_arrow
        names = _chosen(path, schema.names, choices, optional, findings)
        if coded:
            names = _require_codes(path, schema, names, findings)
        texts = [name for name in names if coded and pa.types.is_string(schema.field(name).type)]
        if names:
            with open_parquet(path, read_dictionary=texts) as file:
                yield from file.iter_batches(_CODED_ROWS if coded else _BATCH_ROWS, columns=names)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError, csv.Error):
        findings += unreadable(path)  # the last two of names of columns
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None


def _require_codes(path: Path, schema: Any, names: list[str], findings: list[Finding]) -> list[str]:
    """The names, or none, and a finding, where columns are neither text nor whole numbers."""
    import pyarrow as pa

    wrong = []
    for name in names:
        kind = schema.field(name).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_integer(value) or pa.types.is_string(value) or pa.types.is_large_string(value)):
            wrong.append(name)
    if not wrong:
        return names
    findings += stated("table.type", path.name, column=", ".join(wrong), columns=", ".join(names))
    return []


def unreadable(path: Path) -> list[Finding]:
    """What is wrong with a file whose content cannot be read."""
    allowed = "rows of numbers under a header" if path.suffix.lower() == ".csv" else "Parquet"
    return stated("table.header", path.name, problem="the content cannot be read", allowed=allowed)


def parquet_columns(
    path: Path, choices: tuple[_Names, ...], optional: _Names, findings: list[Finding]
) -> list[str]:
    """The columns of a Parquet file that :func:`batches` reads; none, and a finding, where it has not those of any choice."""
    import pyarrow.parquet as pq

    return _chosen(path, pq.read_schema(path).names, choices, optional, findings)


def _scan_csv(
    path: Path, choices: tuple[_Names, ...], optional: _Names, findings: list[Finding]
) -> Iterator[Any]:
    """Numbers are read as doubles, so that those that are not whole can be told."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with path.open("rb") as stream:
        line = stream.readline().decode("utf-8-sig", "replace").strip()
    other = [words for mark, words in DELIMITER_NAMES.items() if mark in line and "," not in line]
    if other:
        findings += stated("table.delimiter", path.name, name=other[0])
        return
    names = next(csv.reader([line]), [])
    columns = _chosen(path, names, choices, optional, findings)
    if columns:
        kinds = {name: pa.string() if name in _TEXTS else pa.float64() for name in columns}
        options = arrow_csv.ConvertOptions(column_types=kinds, include_columns=columns, null_values=[""])
        block = arrow_csv.ReadOptions(block_size=_CSV_BYTES)
        with arrow_csv.open_csv(path, read_options=block, convert_options=options) as reader:
            yield from reader


def _chosen(
    path: Path, names: list[str], choices: tuple[_Names, ...], optional: _Names, findings: list[Finding]
) -> list[str]:
    """The columns to read: those of the first choice that the file has, and the optional ones that it has."""
    for columns in choices:
        if set(columns) <= set(names):
            selection = [*columns, *(name for name in optional if name in names)]
            repeated = [name for name in selection if names.count(name) > 1]
            if not repeated:
                return selection
            findings += stated(
                "table.header",
                path.name,
                column=", ".join(repeated),
                problem="columns repeated",
                allowed="each column once",
            )
            return []
    missing = [name for name in choices[-1] if name not in names]
    allowed = " or ".join(", ".join(columns) for columns in choices)
    findings += stated(
        "table.header",
        path.name,
        column=", ".join(missing),
        problem="columns missing",
        allowed=f"the columns {allowed}",
    )
    return []


def geocodes(column: Any, layout: HistogramLayout, name: str, findings: list[Finding]) -> _Ints:
    """Geocodes as numbers, -1 where they are wrong."""
    import pyarrow as pa

    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        findings += stated("geocode.type", name, len(column), allowed=layout.form.words)
        return np.full(len(column), -1, np.int64)
    if coded and not column.null_count and not column.dictionary.null_count:
        encoded = column
    else:
        encoded = (column.cast(kind) if coded else column).fill_null("").dictionary_encode()
    texts = np.array(readable_texts(encoded.dictionary), np.str_)
    codes = layout.form.pack(texts)
    allowed = layout.form.words
    short = np.full(len(texts), -1)
    if layout.census_blocks:
        short = pack_geocodes(texts, _DIGITS_15)
        block = short % 10**4
        codes = np.where(short >= 0, short // 10**4 * 10**5 + block // 10**3 * 10**4 + block, codes)
        allowed += " (state, county, tract, block group, block), or 15 without the block group"
    rows = encoded.indices.to_numpy()
    lost = (codes < 0) & _one_digit_short(texts, layout)
    findings += stated("geocode.lost-zero", name, int(lost[rows].sum()), allowed=allowed)
    findings += stated("geocode.form", name, int(((codes < 0) & ~lost)[rows].sum()), allowed=allowed)
    used = np.bincount(rows, minlength=len(texts)) > 0
    if layout.census_codes:
        findings += doubt_findings(name, "geocode", np.where(used, codes, -1), short >= 0, rows)
    return codes[rows]


def _one_digit_short(texts: NDArray[np.str_], layout: HistogramLayout) -> NDArray[np.bool_]:
    """Which texts have one digit less than a form of geocodes; of census blocks, those of a county that exists with a zero before them."""
    length = _DIGITS_15 if layout.census_blocks else layout.form.length
    if length < _SHORTEST:
        return np.zeros(len(texts), np.bool_)
    short = pack_geocodes(texts, length - 1)
    if layout.census_codes:
        return (short >= 0) & known_counties(short // 10 ** (length - _COUNTY))
    return short >= 0


def integer_column(column: Any, name: str, label: str, highest: int, findings: list[Finding]) -> _Ints:
    """Whole numbers from 0 to `highest`; 0 where they are not, with findings."""
    import pyarrow as pa

    def count(rule: str, rows: int) -> None:
        findings.extend(stated(f"number.{rule}", name, rows, column=label, highest=highest))

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        count("type", max(len(column), 1))
        return np.zeros(len(column), np.int64)
    missing = column.null_count
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        fractional = (
            values != np.floor(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
        )
        negative = (values < 0) & ~fractional
        outside = (values > highest) & ~fractional
    count("missing", missing)
    count("fractional", int(fractional.sum()))
    count("negative", int(negative.sum()))
    count("domain", int(outside.sum()))
    return np.where(fractional | negative | outside, 0, values).astype(np.int64)
