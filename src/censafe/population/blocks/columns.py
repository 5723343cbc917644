"""Block histograms from columns, as Parquet or CSV, persons and units apart: batches, geocodes and whole numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.crosswalk import read_crosswalk, with_areas
from censafe.geography.geocodes import pack_geocodes
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model.schema import Schema
from censafe.model.sparse import ExactHistograms
from censafe.population.blocks.areas import AREA_COLUMNS, area_numbers, areas_from_grfc, in_order
from censafe.population.blocks.layout import (
    MOST_COUNT,
    BlockData,
    HistogramLayout,
    OtherHistogram,
    facility_findings,
    finding,
    histograms_of,
    no_persons,
    occupancy_of,
    zero_findings,
)
from censafe.population.files.delimited import DELIMITER_NAMES
from censafe.population.files.parquet import readable_texts
from censafe.population.findings import Finding, merge_findings, raise_if_fatal

__all__ = ["ColumnFiles", "batches", "geocodes", "read_columns", "whole_column"]


_BATCH_ROWS = 1_000_000
_CSV_BYTES = 1 << 24
_DIGITS_15 = 15
_FIX = "write the file again"
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
        found.append(Finding(path.name, "", "header", "stop", 0, "the content cannot be read", allowed, _FIX))
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
            Finding(path.name, "", "delimiter", "stop", 0, f"the file is {other[0]}-delimited", "comma-delimited text", _FIX)
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
                Finding(path.name, ", ".join(repeated), "header", "stop", 0, "columns repeated", "each column once", _FIX)
            )  # fmt: skip
            return []
    missing = [name for name in choices[-1] if name not in names]
    allowed = " or ".join(", ".join(columns) for columns in choices)
    found.append(
        Finding(path.name, ", ".join(missing), "header", "stop", 0, "columns missing",
                f"the columns {allowed}", _FIX)
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


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The blocks of the unit file: the tree over them, their geocodes as the files have them, rising, and their places on the tree."""

    spine: Spine
    codes: _Ints
    place: _Ints

    def find(self, codes: _Ints) -> tuple[_Ints, NDArray[np.bool_]]:
        """Place of the blocks of some geocodes, and which geocodes are those of none; wrong ones are negative."""
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return self.place[at], (self.codes[at] != codes) & (codes >= 0)


@dataclass(frozen=True)
class ColumnFiles:
    """The files of block histograms.

    Args:
        persons: none where the layout reads none.
        units: of the blocks and their units.
        grfc: block files GRF-C with the areas of blocks of 16 digits, for unit files without columns of them.
        crosswalks: of which the levels of the layout need one.
        others: of the other histograms of the layout, by name.
    """

    persons: tuple[Path, ...]
    units: tuple[Path, ...]
    grfc: tuple[Path, ...] = ()
    crosswalks: tuple[Path, ...] = ()
    others: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)


def read_columns(files: ColumnFiles, layout: HistogramLayout) -> BlockData:
    """Read the histograms of persons and the counts of units of all blocks.

    The unit file has one row a block, blocks without anybody included: ``geocode`` and the unit columns of the layout, and,
    where they are known, ``aiannhce``, ``placefp`` and ``cousubfp`` (text; 9999 and 99999 for none).
    The person file has ``geocode``, either ``cell`` (the flat index) or one column for each attribute (levels from 0),
    and ``count``; a cell that is not there is empty. Without ``count`` every row is one person. Files of other histograms are alike.

    Args:
        files: Parquet or comma-delimited CSV with a header.
        layout: of the product.

    Returns:
        The blocks.

    Raises:
        DataError: everything that is wrong with the files, at once.
        StorageError: a file cannot be opened.
    """
    persons, units = files.persons, files.units
    found, given = _read_units(units, layout)
    raise_if_fatal(merge_findings(found), "unit histograms")
    blocks, order = _located(given.codes, layout, files.crosswalks)
    spine, values = blocks.spine, given.values[order]
    facilities = values[:, : len(layout.unit_columns)].astype(np.int32)
    areas = in_order({kind: column[order] for kind, column in given.areas.items()}, spine.leaf.codes)
    problems: list[Finding] = []
    if files.grfc and areas is None:
        areas = areas_from_grfc(files.grfc, spine.leaf.codes, problems)
        raise_if_fatal(merge_findings(problems), "block file GRF-C")
    histograms = None
    if layout.schema is not None:
        histograms = _histograms(persons, blocks, layout, layout.schema, problems)
        problems += no_persons(persons[0].name, int(histograms.count.sum(dtype=np.int64)))
        problems += facility_findings(histograms, facilities, layout, (persons[0].name, units[0].name))
        raise_if_fatal(problems, "histograms of persons")
    others = {one.name: _other(files.others[one.name], blocks, layout, one) for one in layout.others}
    occupancy = occupancy_of(spine, values[:, 0], values[:, -1]) if layout.occupied else None
    everything = (*persons, *units, *(path for paths in files.others.values() for path in paths))
    return BlockData(spine, histograms, facilities, occupancy, (), everything, areas, (), others)


def _located(codes: _Ints, layout: HistogramLayout, crosswalks: tuple[Path, ...]) -> tuple[_Blocks, _Ints]:
    """The blocks with the areas of the crosswalk in their geocodes, and the rows of the unit file in the order of the tree."""
    whole = codes
    if layout.crosswalk:
        if len(crosswalks) != 1:
            columns = ", ".join(level.column for level in layout.crosswalk)
            raise DataError(
                f"{len(crosswalks)} crosswalks *crosswalk*.csv beside the data; allowed: one, with the columns block, {columns}; "
                "fix: copy it into the folder of the data, or take levels with crosswalk out of the configuration"
            )
        lengths = {level.column: level.length for level in layout.crosswalk}
        areas = read_crosswalk(crosswalks[0], tuple(lengths), codes, layout.form, lengths)
        whole = with_areas(codes, layout.crosswalk, areas, layout.form)
    spine, order = build_spine(whole, layout.rules), np.argsort(whole)
    rising = np.argsort(codes)
    place = np.empty(len(codes), np.int64)
    place[order] = np.arange(len(codes))
    return _Blocks(spine, codes[rising], place[rising]), order


def _other(
    paths: tuple[Path, ...], blocks: _Blocks, layout: HistogramLayout, one: OtherHistogram
) -> ExactHistograms:
    problems: list[Finding] = []
    counts = _histograms(paths, blocks, layout, one.schema, problems, one.name)
    problems += zero_findings(counts, one.empty, paths[0].name, "records")
    raise_if_fatal(problems, f"histograms of {one.name}")
    return counts


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
                             _FIX))  # fmt: skip
    if layout.occupied:
        more = int(np.count_nonzero(units.values[:, -1] > units.values[:, 0]))
        homes = layout.unit_columns[0]
        found += finding(
            name, f"occupied, {homes}", "occupied", more, "more occupied housing units than housing units",
            f"occupied at most {homes}",
        )  # fmt: skip
    return found


def _histograms(
    paths: tuple[Path, ...],
    blocks: _Blocks,
    layout: HistogramLayout,
    schema: Schema,
    problems: list[Finding],
    what: str = "persons",
) -> ExactHistograms:
    """The histograms of a file; `problems` takes what is wrong with them as a whole."""
    keys, counts, repeats_allowed, found = _read_counts(paths, blocks, layout, schema)
    name = paths[0].name
    raise_if_fatal(merge_findings(found), f"histograms of {what}")
    histograms, repeated, large = histograms_of(blocks.spine, keys, counts, schema.cells)
    if repeated and not repeats_allowed:
        problems += finding(
            name, "geocode, cell", "duplicate", repeated, "rows with the block and cell of another row",
            "one row for each block and cell",
        )  # fmt: skip
    problems += finding(
        name, "count", "too-large", large, "counts that do not fit", f"at most {MOST_COUNT:,}"
    )
    return histograms


def _read_counts(
    paths: tuple[Path, ...], blocks: _Blocks, layout: HistogramLayout, schema: Schema
) -> tuple[_Ints, _Ints, bool, list[Finding]]:
    """Keys and counts of all rows, whether rows may repeat a key, and the findings."""
    found: list[Finding] = []
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    records = False
    for path in paths:
        for batch in batches(path, (("geocode", "cell"), ("geocode", *schema.names)), ("count",), found):
            names = batch.schema.names
            codes = geocodes(batch.column("geocode"), layout, path.name, found)
            block, foreign = blocks.find(codes)
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
