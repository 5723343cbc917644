"""Noisy measurements of one level written in the Bureau's public layout, sealed and read-only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.model.parsing import exact_text
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.publication.atomic import atomic_folder, sha256_path
from censafe.publication.measurements.layout import (
    CONSTRAINT,
    CONSTRAINT_SUFFIX,
    DPQUERY,
    QUERY_SUFFIX,
    Constraint,
    NmfLayout,
    Slice,
    nmf_schema,
    slices,
    writer_options,
)
from censafe.publication.measurements.sealed import (
    header_text,
    query_document,
    seal_of,
    source_in,
)
from censafe.publication.stamps import Stamp, require_publishable

FORMAT: Final = "censafe noisy measurements 1"
_GROUP_ANSWERS: Final = 1 << 22
_THREADS: Final = 2


def write_noisy_measurements(
    path: Path,
    measurements: LevelMeasurements,
    *,
    constraints: Sequence[Constraint],
    layout: NmfLayout,
    plan_digest: str,
    stamp: Stamp | None = None,
) -> str:
    """Write the noisy answers of one part with the exact figures of its geounits.

    Every file's metadata hold the digest of the plan, the part, the source of the noise, laws and exact costs, and a
    digest of the file's content.
    """
    require_publishable([measurements], stamp)
    if not constraints or any(len(constraint.values) != measurements.nodes for constraint in constraints):
        raise ValueError("constraints must have one row for every geounit of the measurements")
    if any(constraint.values.shape[1] != prod(constraint.shape) for constraint in constraints):
        raise ValueError("constraints must have as many figures as their shape says")
    if not len(measurements.queries) == len(layout.queries) == len(layout.recodes):
        raise ValueError("the layout must name every query")
    parts = slices(measurements.geounits, layout.partition, sum(map(prod, measurements.shapes)))
    seal = _seal(measurements, len(parts), plan_digest, stamp)
    part = _Part(measurements, tuple(constraints), layout, seal)
    with atomic_folder(path) as folder, ThreadPoolExecutor(_THREADS) as pool:
        writing = []
        for section in parts:
            for table in (DPQUERY, CONSTRAINT):
                file = section.path(folder, table)
                file.parent.mkdir(parents=True, exist_ok=True)
                writing.append(pool.submit(_write, file, table, section, part))
        for written in writing:
            written.result()
    return sha256_path(path)


def content_digest(header: str, geounits: NDArray[np.str_], kinds: NDArray[np.int32]) -> Any:
    """The running digest of a file: of its header, its geounits and their kinds; values follow in order."""
    digest = hashlib.sha256(header.encode())
    digest.update("\n".join(geounits.tolist()).encode())
    digest.update(kinds.astype("<i4").data)
    return digest


@dataclass(frozen=True, eq=False)
class _Part:
    measurements: LevelMeasurements
    constraints: tuple[Constraint, ...]
    layout: NmfLayout
    seal: dict[str, str]


def _seal(
    measurements: LevelMeasurements, files: int, plan_digest: str, stamp: Stamp | None
) -> dict[str, str]:
    """Metadata that all files of a part share."""
    budgets = measurements.budgets
    document = {
        "format": FORMAT,
        "plan_digest": plan_digest,
        "source": source_in(stamp),
        "part": measurements.part,
        "geounits": measurements.nodes,
        "files": files,
        "queries": [
            {
                **query_document(query),
                "shape": list(shape),
                "bits": values.dtype.itemsize * 8,
            }
            for query, shape, values in zip(
                measurements.queries, measurements.shapes, measurements.values, strict=True
            )
        ],
        "kinds": [
            [
                law and {"law": law.kind, "parameter": exact_text(law.parameter), "cost": exact_text(cost)}
                for law, cost in zip(laws, costs, strict=True)
            ]
            for laws, costs in zip(budgets.laws, budgets.costs, strict=True)
        ],
        "variances": [[variance.hex() for variance in row] for row in measurements.variances],
    }
    header = header_text(document)
    own = {"censafe": header, "plan_digest": plan_digest, "part": measurements.part}
    return own | seal_of(header, plan_digest, stamp)


def _write(path: Path, table: str, section: Slice, part: _Part) -> None:
    measured = part.measurements
    kinds = measured.kinds[section.first : section.last]
    place = {"table": table, "first": section.first, "last": section.last, "kinds": _runs(kinds)}
    header = f"{part.seal['censafe']}\n{json.dumps(place, sort_keys=True)}"
    digest = content_digest(header, measured.geounits[section.first : section.last], kinds)
    arrays = measured.values if table == DPQUERY else tuple(item.values for item in part.constraints)
    wide = table == DPQUERY and any(values.dtype == np.int64 for values in arrays)
    wide = wide or (table == CONSTRAINT and any(_large(item.values) for item in part.constraints))
    schema = nmf_schema(part.layout.attributes, wide=wide).with_metadata(
        {**part.seal, "place": json.dumps(place, sort_keys=True)}
    )
    rows = _measured_rows(section, part) if table == DPQUERY else _exact_rows(section, part)
    with pq.ParquetWriter(path, schema, **writer_options(schema)) as writer:
        for group in rows:
            digest.update(group.values.astype(group.values.dtype.newbyteorder("<"), copy=False).data)
            writer.write_table(_arrow(group, schema))
        writer.add_key_value_metadata({"content_digest": digest.hexdigest()})
    path.chmod(0o444)


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows of one query or constraint, one row group."""

    geocodes: pa.Array
    name: str
    shape: tuple[int, ...]
    values: NDArray[Any]
    variance: NDArray[np.float64]
    sign: str
    plb: NDArray[np.float64]
    recodes: tuple[str, ...]


def _measured_rows(section: Slice, part: _Part) -> Iterator[_Group]:
    measured = part.measurements
    kinds = measured.kinds[section.first : section.last]
    codes = pa.array(measured.geounits[section.first : section.last].tolist(), pa.string())
    for ordinal, (name, shape) in enumerate(zip(part.layout.queries, measured.shapes, strict=True)):
        has_law = np.array([laws[ordinal] is not None for laws in measured.budgets.laws])
        variance = np.array([row[ordinal] for row in measured.variances])
        plb = np.array([float(row[ordinal]) for row in measured.budgets.costs])
        values = measured.values[ordinal]
        there = None if has_law.all() else np.flatnonzero(has_law[kinds])
        count = len(kinds) if there is None else len(there)
        step = max(1, _GROUP_ANSWERS // values.shape[1])
        for first in range(0, count, step):
            last = min(first + step, count)
            rows = np.arange(first, last) if there is None else there[first:last]
            place = slice(section.first + first, section.first + last)
            some = values[place] if there is None else values[section.first + rows]
            names = codes.slice(first, last - first) if there is None else codes.take(pa.array(rows))
            yield _Group(
                names, f"{name}{QUERY_SUFFIX}", shape, np.ascontiguousarray(some), variance[kinds[rows]], "=",
                plb[kinds[rows]], part.layout.recodes[ordinal],
            )  # fmt: skip


def _exact_rows(section: Slice, part: _Part) -> Iterator[_Group]:
    codes = pa.array(part.measurements.geounits[section.first : section.last].tolist(), pa.string())
    zero = np.zeros(section.last - section.first)
    for item in part.constraints:
        values = np.ascontiguousarray(item.values[section.first : section.last])
        name = f"{item.name}{CONSTRAINT_SUFFIX}"
        yield _Group(codes, name, item.shape, values, zero, item.sign, zero, item.recodes)


def _arrow(group: _Group, schema: pa.Schema) -> pa.Table:
    rows, width = group.values.shape
    shape = np.tile(np.array(group.shape, np.int32), rows)
    columns = [
        group.geocodes,
        _repeated(group.name, rows),
        _lists(shape, len(group.shape), rows, schema.field("query_shape").type),
        _lists(group.values.reshape(-1), width, rows, schema.field("value").type),
        pa.array(group.variance),
        _repeated(group.sign, rows),
        pa.array(group.plb),
        *(_repeated(recode, rows) for recode in group.recodes),
    ]
    return pa.table(columns, schema=schema)


def _lists(flat: NDArray[Any], width: int, rows: int, kind: pa.DataType) -> pa.Array:
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat).cast(kind.value_type), type=kind)


def _repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def _large(values: NDArray[np.int64]) -> bool:
    limits = np.iinfo(np.int32)
    return bool(values.size) and (int(values.min()) < limits.min or int(values.max()) > limits.max)


def _runs(kinds: NDArray[np.int32]) -> list[list[int]]:
    """Kinds of consecutive geounits as runs: kind, how many."""
    starts = np.flatnonzero(np.diff(kinds, prepend=-1))
    lengths = np.diff(starts, append=len(kinds))
    return [[int(kinds[start]), int(length)] for start, length in zip(starts, lengths, strict=True)]
