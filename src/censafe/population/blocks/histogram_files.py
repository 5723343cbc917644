"""Block histograms from files of persons and units, Parquet or CSV: blocks, counts of cells, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.crosswalk import read_crosswalk, with_areas
from censafe.geography.files import require_plausible_size
from censafe.geography.grfc import BLOCK_AREA_COLUMNS
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model.schema import Schema
from censafe.model.sparse import ExactHistograms
from censafe.model.topdown.answers import EngineWorkers
from censafe.population.blocks.areas import area_numbers, areas_from_grfc, in_order
from censafe.population.blocks.columns import (
    batches,
    geocodes,
    integer_column,
    parquet_columns,
    read_ahead,
    unreadable,
)
from censafe.population.blocks.layout import (
    MOST_COUNT,
    BlockData,
    HistogramLayout,
    facility_findings,
    histograms_of,
    no_persons,
    occupancy_of,
    zero_findings,
)
from censafe.population.findings import Finding, merge_findings, raise_if_fatal, stated

_TASK_ROWS = 4_000_000
_BATCH_ROWS = 1_000_000
_ENTRIES = ("code", "cell", "count", "rows")


@dataclass(frozen=True, eq=False)
class CellCounts:
    """CONFIDENTIAL. Counts of a batch of rows.

    Args:
        codes: geocode of every entry, -1 where it is wrong.
        rows: how many rows of the batch every entry stands for.
        records: whether every row is one person, so that rows may be alike.
    """

    codes: _Ints = field(repr=False)
    cells: _Ints = field(repr=False)
    counts: _Ints = field(repr=False)
    rows: _Ints = field(repr=False)
    records: bool
    place_findings: list[Finding]
    cell_findings: list[Finding]


def counts_of_files(
    paths: Sequence[Path], layout: HistogramLayout, schema: Schema, workers: EngineWorkers | None
) -> Iterator[tuple[str, CellCounts]]:
    """Counts of all batches with the name of their file, in the order of the rows."""
    columns = (("geocode", "cell"), ("geocode", *schema.names))
    for path in paths:
        findings: list[Finding] = []
        groups = [] if workers is None or path.suffix.lower() == ".csv" else list(_groups(path))
        if workers is None or len(groups) == 0:
            rows = batches(path, columns, ("count",), findings)
            for part in read_ahead(_counts(batch, path.name, layout, schema) for batch in rows):
                yield path.name, part
        else:
            names = parquet_columns(path, columns, ("count",), findings)
            parcels = [(path, group) for group in groups] if names else []
            for result in workers.results(partial(_encoded, layout, schema, names), parcels):
                yield from ((path.name, part) for part in _decoded(result))
        if findings:
            yield path.name, _nothing(findings)


def _nothing(findings: list[Finding]) -> CellCounts:
    none = np.zeros(0, np.int64)
    return CellCounts(none, none, none, none, False, findings, [])


def _counts(batch: Any, name: str, layout: HistogramLayout, schema: Schema) -> CellCounts:
    places: list[Finding] = []
    findings: list[Finding] = []
    codes = geocodes(batch.column("geocode"), layout, name, places)
    cells = _cells(batch, schema, name, findings)
    records = "count" not in batch.schema.names
    ones = np.ones(len(cells), np.int64)
    counts = ones if records else integer_column(batch.column("count"), name, "count", MOST_COUNT, findings)
    return CellCounts(codes, cells, counts, ones, records, places, findings)


def _groups(path: Path) -> Iterator[list[int]]:
    """Row groups of a Parquet file that are read together; none of a file that this process cannot read, either."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return
    require_plausible_size(path, metadata)
    group: list[int] = []
    rows = 0
    for number in range(metadata.num_row_groups):
        size = metadata.row_group(number).num_rows
        if group and rows + size > _TASK_ROWS:
            yield group
            group, rows = [], 0
        group.append(number)
        rows += size
    if group:
        yield group


def _encoded(
    layout: HistogramLayout, schema: Schema, columns: Sequence[str], parcel: tuple[Path, list[int]]
) -> bytes:
    """What a worker does with some row groups: counts of every batch, rows of one block and cell added up."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, groups = parcel
    sink, entries = pa.BufferOutputStream(), pa.schema([(name, pa.int64()) for name in _ENTRIES])
    with pa.ipc.new_stream(sink, entries) as writer:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=list(columns)):
                    part = _counts(batch, path.name, layout, schema)
                    writer.write_batch(_added(part, entries), {"words": _words(part)})
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            nothing = pa.RecordBatch.from_pylist([], schema=entries)
            writer.write_batch(nothing, {"words": _words(_nothing(unreadable(path)))})
    return bytes(sink.getvalue())


def _words(part: CellCounts) -> str:
    places, cells = (
        [asdict(one) for one in findings] for findings in (part.place_findings, part.cell_findings)
    )
    return json.dumps({"records": part.records, "places": places, "cells": cells})


def _added(part: CellCounts, entries: Any) -> Any:
    """Entries with the rows of one block and cell added up."""
    import pyarrow as pa

    columns = (part.codes, part.cells, part.counts, part.rows)
    rows = pa.table([pa.array(column) for column in columns], schema=entries)
    sums = rows.group_by(["code", "cell"], use_threads=False).aggregate([("count", "sum"), ("rows", "sum")])
    names = ("code", "cell", "count_sum", "rows_sum")
    return pa.RecordBatch.from_arrays([sums[name].combine_chunks() for name in names], schema=entries)


def _decoded(result: bytes) -> Iterator[CellCounts]:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.BufferReader(result)) as reader:
        while True:
            try:
                batch, metadata = reader.read_next_batch_with_custom_metadata()
            except StopIteration:
                return
            words = json.loads(metadata["words"])
            places, cells = ([Finding(**one) for one in words[name]] for name in ("places", "cells"))
            codes, flat, counts, rows = (batch[name].to_numpy() for name in _ENTRIES)
            yield CellCounts(codes, flat, counts, rows, words["records"], places, cells)


def _cells(batch: Any, schema: Schema, name: str, findings: list[Finding]) -> _Ints:
    if "cell" in batch.schema.names:
        return integer_column(batch.column("cell"), name, "cell", schema.cells - 1, findings)
    cell = np.zeros(batch.num_rows, np.int64)
    for attribute in schema.attributes:
        level = integer_column(
            batch.column(attribute.name), name, attribute.name, attribute.levels - 1, findings
        )
        cell = cell * attribute.levels + level
    return cell


_Ints = NDArray[np.int64]


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


def read_columns(
    records: Mapping[str, tuple[Path, ...]],
    layout: HistogramLayout,
    grfc: tuple[Path, ...],
    crosswalks: tuple[Path, ...],
    workers: EngineWorkers | None = None,
) -> BlockData:
    """Read the histograms of persons and the counts of units of all blocks.

    The unit file has one row a block, blocks without anybody included: ``geocode`` and the unit columns of the layout, and,
    where they are known, ``aiannhce``, ``placefp`` and ``cousubfp`` (text; 9999 and 99999 for none).
    The person file has ``geocode``, either ``cell`` (the flat index) or one column for each attribute (levels from 0),
    and ``count``; a cell that is not there is empty. Without ``count`` every row is one person. Files of other histograms are alike.

    Args:
        records: files by name: ``units``, ``histogram`` of the persons, and other histograms.
        grfc: block files GRF-C with the areas of blocks of 16 digits, for unit files without columns of them.
    """
    persons, units = records.get("histogram", ()), records["units"]
    findings, table = _read_units(units, layout)
    raise_if_fatal(merge_findings(findings), "unit histograms")
    blocks, order = _located(table.codes, layout, crosswalks)
    spine, values = blocks.spine, table.values[order]
    facilities = values[:, : len(layout.unit_columns)].astype(np.int32)
    areas = in_order({kind: column[order] for kind, column in table.areas.items()}, spine.leaf.codes)
    problems: list[Finding] = []
    if grfc and areas is None:
        areas = areas_from_grfc(grfc, spine.leaf.codes, problems)
        raise_if_fatal(merge_findings(problems), "block file GRF-C")
    histograms = None
    if layout.schema is not None:
        histograms = _histograms(persons, blocks, layout, layout.schema, problems, workers=workers)
        problems += no_persons(persons[0].name, int(histograms.count.sum(dtype=np.int64)))
        problems += facility_findings(histograms, facilities, layout, (persons[0].name, units[0].name))
        raise_if_fatal(problems, "histograms of persons")
    others = {}
    for other in layout.others:
        name = records[other.name][0].name
        problems = []
        counts = _histograms(records[other.name], blocks, layout, other.schema, problems, other.name, workers)
        problems += zero_findings(counts, other.empty, name, "records")
        raise_if_fatal(problems, f"histograms of {other.name}")
        others[other.name] = counts
    occupancy = occupancy_of(spine, values[:, 0], values[:, -1]) if layout.occupied else None
    everything = (*persons, *units, *(path for other in layout.others for path in records[other.name]))
    return BlockData(spine, histograms, facilities, occupancy, (), everything, areas, (), others)


def _located(codes: _Ints, layout: HistogramLayout, crosswalks: tuple[Path, ...]) -> tuple[_Blocks, _Ints]:
    """The blocks with the areas of the crosswalk in their geocodes, and the rows of the unit file in the order of the tree."""
    full_codes = codes
    if layout.crosswalk:
        if len(crosswalks) != 1:
            columns = ", ".join(level.column for level in layout.crosswalk)
            raise DataError(
                f"{len(crosswalks)} crosswalks *crosswalk*.csv beside the data; allowed: one, with the columns block, {columns}; "
                "fix: copy it into the folder of the data, or take levels with crosswalk out of the configuration"
            )
        lengths = {level.column: level.length for level in layout.crosswalk}
        areas = read_crosswalk(crosswalks[0], tuple(lengths), codes, layout.form, lengths)
        full_codes = with_areas(codes, layout.crosswalk, areas, layout.form)
    spine, order = build_spine(full_codes, layout.rules), np.argsort(full_codes)
    rising = np.argsort(codes)
    place = np.empty(len(codes), np.int64)
    place[order] = np.arange(len(codes))
    return _Blocks(spine, codes[rising], place[rising]), order


def _read_units(paths: tuple[Path, ...], layout: HistogramLayout) -> tuple[list[Finding], _Units]:
    columns = (*layout.unit_columns, *(("occupied",) if layout.occupied else ()))
    findings: list[Finding] = []
    codes, values = [np.zeros(0, np.int64)], [np.zeros((0, len(columns)), np.int64)]
    areas: dict[str, list[NDArray[np.int32]]] = {kind: [] for kind in BLOCK_AREA_COLUMNS}
    for path in paths:
        for batch in read_ahead(batches(path, (("geocode", *columns),), tuple(BLOCK_AREA_COLUMNS), findings)):
            codes.append(geocodes(batch.column("geocode"), layout, path.name, findings))
            numbers = [
                integer_column(batch.column(name), path.name, name, MOST_COUNT, findings) for name in columns
            ]
            values.append(np.array(numbers, np.int64).reshape(len(columns), batch.num_rows).T)
            for kind in set(BLOCK_AREA_COLUMNS) & set(batch.schema.names):
                areas[kind].append(area_numbers(batch.column(kind), kind, (path.name, kind), findings))
    known = {kind: np.concatenate(parts) for kind, parts in areas.items() if parts}
    units = _Units(np.concatenate(codes), np.concatenate(values), known)
    return findings + ([] if findings else _unit_findings(paths[0].name, units, layout)), units


def _unit_findings(name: str, units: _Units, layout: HistogramLayout) -> list[Finding]:
    blocks, codes = len(units.codes), units.codes
    rising = codes if bool((np.diff(codes) >= 0).all()) else np.sort(codes)
    findings = stated("units.duplicate", name, int((np.diff(rising) == 0).sum()))
    for kind, column in units.areas.items():
        findings += stated("units.header", name, blocks - len(column), column=kind)
    if not blocks:
        findings += stated("units.header-only", name)
    if layout.occupied:
        more = int(np.count_nonzero(units.values[:, -1] > units.values[:, 0]))
        homes = layout.unit_columns[0]
        findings += stated("units.occupied", name, more, column=f"occupied, {homes}", homes=homes)
    return findings


def _histograms(
    paths: tuple[Path, ...],
    blocks: _Blocks,
    layout: HistogramLayout,
    schema: Schema,
    problems: list[Finding],
    what: str = "persons",
    workers: EngineWorkers | None = None,
) -> ExactHistograms:
    """The histograms of a file; `problems` takes what is wrong with them as a whole."""
    findings: list[Finding] = []
    keys, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    added, repeats_allowed = 0, False  # rows of files that may not repeat a key were added up already
    for name, part in counts_of_files(paths, layout, schema, workers):
        block, foreign = blocks.find(part.codes)
        findings += part.place_findings
        findings += stated("histogram.unknown-block", name, int(part.rows[foreign].sum()))
        findings += part.cell_findings
        keys.append(block * schema.cells + part.cells)
        counts.append(part.counts)
        added += int(part.rows.sum()) - len(part.rows)
        repeats_allowed |= part.records
    raise_if_fatal(merge_findings(findings), f"histograms of {what}")
    name = paths[0].name
    histograms, repeated, large = histograms_of(
        blocks.spine, np.concatenate(keys), np.concatenate(counts), schema.cells
    )
    if not repeats_allowed:
        problems += stated("histogram.duplicate", name, repeated + added)
    problems += stated("histogram.too-large", name, large, most=MOST_COUNT)
    return histograms
