"""Block histograms from columns, as Parquet or CSV, persons and units apart: batches, geocodes and whole numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import StorageError
from censafe.geography.geocodes import pack_geocodes
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model.schema import Schema
from censafe.model.sparse import ExactHistograms
from censafe.population.blocks.areas import AREA_COLUMNS, area_numbers, areas_from_grfc, in_order
from censafe.population.blocks.layout import (
    MOST_COUNT,
    BlockData,
    HistogramLayout,
    facility_findings,
    finding,
    histograms_of,
    no_persons,
    occupancy_of,
)
from censafe.population.files.delimited import DELIMITER_NAMES
from censafe.population.files.parquet import readable_texts
from censafe.population.findings import Finding, merge_findings, raise_if_fatal

__all__ = ["batches", "geocodes", "read_columns", "whole_column"]


_BATCH_ROWS = 1_000_000
_CSV_BYTES = 1 << 24
_DIGITS_15 = 15
_TEXTS = ("geocode", *AREA_COLUMNS)
_Ints = NDArray[np.int64]
_Names = tuple[str, ...]


def batches(path: Path, choices: tuple[_Names, ...], optional: _Names, found: list[Finding]) -> Iterator[Any]:
    """Record batches of a file that has the columns of one of the choices; otherwise a finding and none.

    Args:
        path: Parquet, or comma-delimited text with a header where the name ends in ``.csv``.
        choices: sets of columns; the first one that the file has is read.
        optional: columns that are read as well where the file has them.
        found: takes the findings.

    Raises:
        StorageError: the file cannot be read.
    """
    import pyarrow as pa

    try:
        if path.suffix == ".csv":
            yield from _scan_csv(path, choices, optional, found)
        else:
            yield from _scan_parquet(path, choices, optional, found)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        allowed = "rows of numbers under a header" if path.suffix == ".csv" else "Parquet"
        found.append(
            Finding(path.name, "", "header", "stop", 0, "the content cannot be read", allowed,
                    "write the file again")
        )  # fmt: skip
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None


def _scan_parquet(
    path: Path, choices: tuple[_Names, ...], optional: _Names, found: list[Finding]
) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        wanted = _chosen(path, file.schema_arrow.names, choices, optional, found)
        if wanted:
            yield from file.iter_batches(_BATCH_ROWS, columns=wanted)


def _scan_csv(
    path: Path, choices: tuple[_Names, ...], optional: _Names, found: list[Finding]
) -> Iterator[Any]:
    """Numbers are read as doubles, so that those that are not whole can be told."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with path.open("rb") as stream:
        line = stream.readline().decode("utf-8-sig", "replace").strip()
    other = [words for mark, words in DELIMITER_NAMES.items() if mark in line and "," not in line]
    if other:
        found.append(
            Finding(path.name, "", "delimiter", "stop", 0, f"the file is {other[0]}-delimited", "comma-delimited text",
                    "write the file again")
        )  # fmt: skip
        return
    names = next(csv.reader([line]), [])
    wanted = _chosen(path, names, choices, optional, found)
    if wanted:
        kinds = {name: pa.string() if name in _TEXTS else pa.float64() for name in wanted}
        options = arrow_csv.ConvertOptions(column_types=kinds, include_columns=wanted, null_values=[""])
        block = arrow_csv.ReadOptions(block_size=_CSV_BYTES)
        with arrow_csv.open_csv(path, read_options=block, convert_options=options) as reader:
            yield from reader


def _chosen(
    path: Path, names: list[str], choices: tuple[_Names, ...], optional: _Names, found: list[Finding]
) -> list[str]:
    """The columns to read: those of the first choice that the file has, and the optional ones that it has."""
    for columns in choices:
        if set(columns) <= set(names):
            wanted = [*columns, *(name for name in optional if name in names)]
            repeated = [name for name in wanted if names.count(name) > 1]
            if not repeated:
                return wanted
            found.append(
                Finding(path.name, ", ".join(repeated), "header", "stop", 0, "columns repeated", "each column once",
                        "write the file again")
            )  # fmt: skip
            return []
    missing = [name for name in choices[-1] if name not in names]
    allowed = " or ".join(", ".join(columns) for columns in choices)
    found.append(
        Finding(path.name, ", ".join(missing), "header", "stop", 0, "columns missing",
                f"the columns {allowed}", "write the file again")
    )  # fmt: skip
    return []


def geocodes(column: Any, layout: HistogramLayout, name: str, found: list[Finding]) -> _Ints:
    """Geocodes as numbers, -1 where they are wrong."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        found += finding(
            name, "geocode", "type", len(column), "geocodes that are not text", layout.form.words
        )
        return np.full(len(column), -1, np.int64)
    encoded = column.fill_null("").dictionary_encode()
    texts = np.array(readable_texts(encoded.dictionary), np.str_)
    codes = layout.form.pack(texts)
    allowed = layout.form.words
    if layout.census_blocks:
        short = pack_geocodes(texts, _DIGITS_15)
        block = short % 10**4
        codes = np.where(short >= 0, short // 10**4 * 10**5 + block // 10**3 * 10**4 + block, codes)
        allowed += " (state, county, tract, block group, block), or 15 without the block group"
    rows = encoded.indices.to_numpy()
    found += finding(
        name, "geocode", "form", int((codes < 0)[rows].sum()), "geocodes of another form", allowed
    )
    if layout.census_blocks:
        apart = (codes >= 0) & (codes // 10**4 % 10 != codes // 10**3 % 10)
        found += finding(
            name, "geocode", "nesting", int(apart[rows].sum()), "blocks outside their block group",
            "a block group that is the first digit of the block",
        )  # fmt: skip
    return codes[rows]


def whole_column(column: Any, name: str, label: str, highest: int, found: list[Finding]) -> _Ints:
    """Whole numbers from 0 to `highest`; 0 where they are not, with findings."""
    import pyarrow as pa

    allowed = f"whole numbers from 0 to {highest:,}"
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        found += finding(name, label, "type", max(len(column), 1), "values that are not numbers", allowed)
        return np.zeros(len(column), np.int64)
    missing = column.null_count
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        fractional = (
            values != np.floor(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
        )
        negative = (values < 0) & ~fractional
        outside = (values > highest) & ~fractional
    found += finding(name, label, "missing", missing, "values missing", allowed)
    found += finding(name, label, "fractional", int(fractional.sum()), "values that are not whole", allowed)
    found += finding(name, label, "negative", int(negative.sum()), "negative values", allowed)
    found += finding(name, label, "domain", int(outside.sum()), "values outside the allowed range", allowed)
    return np.where(fractional | negative | outside, 0, values).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Units:
    codes: _Ints
    values: _Ints
    areas: dict[str, NDArray[np.int32]]


def read_columns(
    persons: tuple[Path, ...],
    units: tuple[Path, ...],
    layout: HistogramLayout,
    grfc: tuple[Path, ...] = (),
) -> BlockData:
    """Read the histograms of persons and the counts of units of all blocks.

    The unit file has one row a block, blocks without anybody included: ``geocode`` and the unit columns of the layout, and,
    where they are known, ``aiannhce``, ``placefp`` and ``cousubfp`` (text; 9999 and 99999 for none).
    The person file has ``geocode``, either ``cell`` (the flat index) or one column for each attribute (levels from 0),
    and ``count``; a cell that is not there is empty. Without ``count`` every row is one person.

    Args:
        persons: files of the persons, Parquet or comma-delimited CSV with a header; none where the layout reads none.
        units: files of the units.
        layout: of the product.
        grfc: block files GRF-C with the areas of blocks of 16 digits, for unit files without columns of them.

    Returns:
        The blocks.

    Raises:
        DataError: everything that is wrong with the files, at once.
        StorageError: a file cannot be opened.
    """
    found, given = _read_units(units, layout)
    raise_if_fatal(merge_findings(found), "unit histograms")
    spine = build_spine(given.codes, layout.rules)
    order = np.argsort(given.codes)
    values = given.values[order]
    facilities = values[:, : len(layout.unit_columns)].astype(np.int32)
    areas = in_order({kind: column[order] for kind, column in given.areas.items()}, spine.leaf.codes)
    problems: list[Finding] = []
    if grfc and areas is None:
        areas = areas_from_grfc(grfc, spine.leaf.codes, problems)
        raise_if_fatal(merge_findings(problems), "block file GRF-C")
    histograms = None
    if layout.schema is not None:
        histograms = _histograms(persons, spine, layout, layout.schema, problems)
        problems += no_persons(persons[0].name, int(histograms.count.sum(dtype=np.int64)))
        problems += facility_findings(histograms, facilities, layout, (persons[0].name, units[0].name))
        raise_if_fatal(problems, "histograms of persons")
    occupancy = occupancy_of(spine, values[:, 0], values[:, -1]) if layout.occupied else None
    return BlockData(spine, histograms, facilities, occupancy, (), (*persons, *units), areas)


def _read_units(paths: tuple[Path, ...], layout: HistogramLayout) -> tuple[list[Finding], _Units]:
    columns = (*layout.unit_columns, *(("occupied",) if layout.occupied else ()))
    found: list[Finding] = []
    codes, values = [np.zeros(0, np.int64)], [np.zeros((0, len(columns)), np.int64)]
    areas: dict[str, list[NDArray[np.int32]]] = {kind: [] for kind in AREA_COLUMNS}
    for path in paths:
        for batch in batches(path, (("geocode", *columns),), tuple(AREA_COLUMNS), found):
            codes.append(geocodes(batch.column("geocode"), layout, path.name, found))
            numbers = [
                whole_column(batch.column(name), path.name, name, MOST_COUNT, found) for name in columns
            ]
            values.append(np.array(numbers, np.int64).reshape(len(columns), batch.num_rows).T)
            for kind in set(AREA_COLUMNS) & set(batch.schema.names):
                areas[kind].append(area_numbers(batch.column(kind), kind, (path.name, kind), found))
    known = {kind: np.concatenate(parts) for kind, parts in areas.items() if parts}
    units = _Units(np.concatenate(codes), np.concatenate(values), known)
    return found + ([] if found else _unit_findings(paths[0].name, units, layout)), units


def _unit_findings(name: str, units: _Units, layout: HistogramLayout) -> list[Finding]:
    blocks = len(units.codes)
    found = finding(name, "geocode", "duplicate", blocks - len(np.unique(units.codes)), "blocks given twice",
                    "one row a block")  # fmt: skip
    for kind, column in units.areas.items():
        found += finding(name, kind, "header", blocks - len(column), "blocks of files that lack a column others have",
                         "the same columns in all files of units")  # fmt: skip
    if not blocks:
        found.append(Finding(name, "", "header-only", "stop", 0, "there are no blocks", "one row a block",
                             "write the file again"))  # fmt: skip
    if layout.occupied:
        more = int(np.count_nonzero(units.values[:, -1] > units.values[:, 0]))
        homes = layout.unit_columns[0]
        found += finding(
            name, f"occupied, {homes}", "occupied", more, "more occupied housing units than housing units",
            f"occupied at most {homes}",
        )  # fmt: skip
    return found


def _histograms(
    paths: tuple[Path, ...], spine: Spine, layout: HistogramLayout, schema: Schema, problems: list[Finding]
) -> ExactHistograms:
    """The histograms of persons; `problems` takes what is wrong with them as a whole."""
    keys, counts, repeats_allowed, found = _read_persons(paths, spine, layout, schema)
    name = paths[0].name
    raise_if_fatal(merge_findings(found), "histograms of persons")
    histograms, repeated, large = histograms_of(spine, keys, counts, schema.cells)
    if repeated and not repeats_allowed:
        problems += finding(
            name, "geocode, cell", "duplicate", repeated, "rows with the block and cell of another row",
            "one row for each block and cell",
        )  # fmt: skip
    problems += finding(
        name, "count", "too-large", large, "counts that do not fit", f"at most {MOST_COUNT:,}"
    )
    return histograms


def _read_persons(
    paths: tuple[Path, ...], spine: Spine, layout: HistogramLayout, schema: Schema
) -> tuple[_Ints, _Ints, bool, list[Finding]]:
    """Keys and counts of all rows, whether rows may repeat a key, and the findings."""
    found: list[Finding] = []
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    records = False
    for path in paths:
        for batch in batches(path, (("geocode", "cell"), ("geocode", *schema.names)), ("count",), found):
            names = batch.schema.names
            codes = geocodes(batch.column("geocode"), layout, path.name, found)
            block = np.minimum(np.searchsorted(spine.leaf.codes, codes), spine.leaf.nodes - 1)
            foreign = (spine.leaf.codes[block] != codes) & (codes >= 0)
            found += finding(
                path.name, "geocode", "unknown-block", int(foreign.sum()), "blocks that the unit file does not have",
                "blocks of the unit file", "add the block to the unit file, or correct the geocode",
            )  # fmt: skip
            cell = _cells(batch, schema, path.name, found)
            keys.append(block * schema.cells + cell)
            if "count" in names:
                counts.append(whole_column(batch.column("count"), path.name, "count", MOST_COUNT, found))
            else:
                records = True
                counts.append(np.ones(len(cell), np.int64))
    return np.concatenate(keys), np.concatenate(counts), records, found


def _cells(batch: Any, schema: Schema, name: str, found: list[Finding]) -> _Ints:
    if "cell" in batch.schema.names:
        return whole_column(batch.column("cell"), name, "cell", schema.cells - 1, found)
    cell = np.zeros(batch.num_rows, np.int64)
    for attribute in schema.attributes:
        level = whole_column(batch.column(attribute.name), name, attribute.name, attribute.levels - 1, found)
        cell = cell * attribute.levels + level
    return cell
