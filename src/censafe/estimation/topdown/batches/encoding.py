"""Estimates of a part of a level as bytes: what workers send back. They are read as numbers and text, and nothing of them is executed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from censafe.errors import CheckError, ReleaseError
from censafe.estimation.topdown.batches.batch import EstimatedBatch, ParentLevel, families_of
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status
from censafe.estimation.topdown.levels.parents import BatchFound
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.repair import CellChange
from censafe.model.arrays import Integers
from censafe.model.topdown.workers import DrawingEffort

_FIELDS = ("done", "iterations", "violation", "gap", "cost", "sizes", "starts", "cell", "count")
_WORDS = "words"
_FAILURE = {error.__name__: error for error in (CheckError, ReleaseError)}


def encoded_batches(batches: Sequence[EstimatedBatch], effort: DrawingEffort) -> bytes:
    """The estimates of some batches."""
    return encoded_rows([_row(batch) for batch in batches], effort)


def encoded_rows(rows: Sequence[Mapping[str, Any]], effort: DrawingEffort) -> bytes:
    """Rows of arrays, and of one text."""
    return _written(rows, {"effort": list(effort)})


def encoded_failure(error: CheckError | ReleaseError) -> bytes:
    """An error that stops the run, in the place of estimates."""
    return _written([], {"failure": type(error).__name__, "message": str(error)})


def decoded_batches(
    level: ParentLevel, spans: Sequence[Integers], found: bytes
) -> tuple[list[EstimatedBatch], DrawingEffort]:
    """The estimates of some batches of parents."""
    rows, effort = decoded_rows(found)
    return [_batch(level, span, row) for span, row in zip(spans, rows, strict=True)], effort


def decoded_rows(found: bytes) -> tuple[list[dict[str, Any]], DrawingEffort]:
    """Rows as :func:`encoded_rows` took them, with arrays that may be written to."""
    table = pa.ipc.open_stream(pa.BufferReader(found)).read_all()
    words = json.loads(table.schema.metadata[b"censafe"])
    if "failure" in words:
        raise _FAILURE[words["failure"]](words["message"])
    return list(_rows(table)), DrawingEffort(*words["effort"])


def _row(batch: EstimatedBatch) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(batch.found, name) for name in _FIELDS}
    words = [
        {
            "place": place,
            "shape": made.counts.shape,
            "solves": [[one.status.value, one.gap, one.violation, one.iterations] for one in made.solves],
            "roundings": made.roundings,
            "changes": [[one.cell, one.before, one.after] for one in made.changes],
        }
        for place, made in batch.general
    ]
    counts = [made.counts.reshape(-1).astype(np.int64) for _, made in batch.general]
    found["general"] = np.concatenate([np.zeros(0, np.int64), *counts])
    return found | {"words": json.dumps(words)}


def _written(rows: Sequence[Mapping[str, Any]], words: dict[str, Any]) -> bytes:
    columns: dict[str, Any] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        kind = pa.string() if name == _WORDS else pa.list_(pa.from_numpy_dtype(values[0].dtype))
        columns[name] = pa.array(values, kind)
    table = pa.table(columns).replace_schema_metadata({"censafe": json.dumps(words)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    vectors = [name for name in table.column_names if name != _WORDS]
    for place in range(table.num_rows):
        row: dict[str, Any] = {name: np.array(table[name][place].values) for name in vectors}
        yield row | {_WORDS: json.loads(table[_WORDS][place].as_py())}


def _batch(level: ParentLevel, parents: Integers, row: dict[str, Any]) -> EstimatedBatch:
    families, _ = families_of(level, parents)
    counts, general, at = row["general"], [], 0
    for one in row["words"]:
        size = int(np.prod(one["shape"]))
        general.append((int(one["place"]), _estimate(one, counts[at : at + size])))
        at += size
    return EstimatedBatch(
        parents, families, BatchFound(**{name: row[name] for name in _FIELDS}), tuple(general)
    )


def _estimate(words: dict[str, Any], counts: Integers) -> ParentEstimate:
    """A parent of the general way, without the fractional points, which only its rounding uses."""
    nothing = np.zeros((0, 0))
    solves = tuple(
        L2Result(nothing, L2Status(status), gap, violation, iterations, nothing)
        for status, gap, violation, iterations in words["solves"]
    )
    changes = tuple(CellChange(*change) for change in words["changes"])
    return ParentEstimate(counts.reshape(words["shape"]), solves, tuple(words["roundings"]), changes)
