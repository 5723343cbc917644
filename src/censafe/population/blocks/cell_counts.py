"""Counts of cells by block from batches of rows, in this process or on the workers of an engine, where cells travel and not rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.geography.parquet_tables import require_plausible_size
from censafe.model.schema import Schema
from censafe.model.topdown.workers import EngineWorkers
from censafe.population.blocks.columns import (
    batches,
    geocodes,
    parquet_columns,
    read_ahead,
    unreadable,
    whole_column,
)
from censafe.population.blocks.layout import MOST_COUNT, HistogramLayout
from censafe.population.findings import Finding

_TASK_ROWS = 4_000_000
_BATCH_ROWS = 1_000_000
_ENTRIES = ("code", "cell", "count", "rows")
_Ints = NDArray[np.int64]


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
        found: list[Finding] = []
        groups = [] if workers is None or path.suffix.lower() == ".csv" else list(_groups(path))
        if workers is None or len(groups) == 0:
            rows = batches(path, columns, ("count",), found)
            for part in read_ahead(_counts(batch, path.name, layout, schema) for batch in rows):
                yield path.name, part
        else:
            wanted = parquet_columns(path, columns, ("count",), found)
            parcels = [(path, group) for group in groups] if wanted else []
            for result in workers.each(partial(_encoded, layout, schema, wanted), parcels):
                yield from ((path.name, part) for part in _decoded(result))
        if found:
            yield path.name, _nothing(found)


def _nothing(found: list[Finding]) -> CellCounts:
    none = np.zeros(0, np.int64)
    return CellCounts(none, none, none, none, False, found, [])


def _counts(batch: Any, name: str, layout: HistogramLayout, schema: Schema) -> CellCounts:
    places: list[Finding] = []
    found: list[Finding] = []
    codes = geocodes(batch.column("geocode"), layout, name, places)
    cells = _cells(batch, schema, name, found)
    records = "count" not in batch.schema.names
    ones = np.ones(len(cells), np.int64)
    counts = ones if records else whole_column(batch.column("count"), name, "count", MOST_COUNT, found)
    return CellCounts(codes, cells, counts, ones, records, places, found)


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
            writer.write_batch(nothing, {"words": _words(_nothing([unreadable(path)]))})
    return bytes(sink.getvalue())


def _words(part: CellCounts) -> str:
    places, cells = ([asdict(one) for one in found] for found in (part.place_findings, part.cell_findings))
    return json.dumps({"records": part.records, "places": places, "cells": cells})


def _added(part: CellCounts, entries: Any) -> Any:
    """Entries with the rows of one block and cell added up."""
    import pyarrow as pa

    columns = (part.codes, part.cells, part.counts, part.rows)
    rows = pa.table([pa.array(column) for column in columns], schema=entries)
    found = rows.group_by(["code", "cell"], use_threads=False).aggregate([("count", "sum"), ("rows", "sum")])
    names = ("code", "cell", "count_sum", "rows_sum")
    return pa.RecordBatch.from_arrays([found[name].combine_chunks() for name in names], schema=entries)


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


def _cells(batch: Any, schema: Schema, name: str, found: list[Finding]) -> _Ints:
    if "cell" in batch.schema.names:
        return whole_column(batch.column("cell"), name, "cell", schema.cells - 1, found)
    cell = np.zeros(batch.num_rows, np.int64)
    for attribute in schema.attributes:
        level = whole_column(batch.column(attribute.name), name, attribute.name, attribute.levels - 1, found)
        cell = cell * attribute.levels + level
    return cell
