"""Noisy measurements of histograms on disk: one Parquet file a part, verified whenever read.

The first columns are those of the Census Bureau's published noisy measurement files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.model import NoiseLaw, QueryPlan
from censafe.model.level_measurements import Answers, LevelBudgets, LevelMeasurements
from censafe.publication.atomic import atomic_write, sha256_file
from censafe.publication.measured_part import changed_after_measuring, require_plan
from censafe.publication.stamps import Stamp, require_publishable

__all__ = ["read_level_measurements", "write_level_measurements"]

_FORMAT = "censafe level measurements 2"
_GROUP_ANSWERS = 1 << 22
_NAME = pa.dictionary(pa.int32(), pa.string())


def write_level_measurements(
    path: Path, measurements: LevelMeasurements, *, plan_digest: str, stamp: Stamp | None = None
) -> str:
    """Write the noisy answers of one part, with everything needed to rebuild them exactly.

    One row a query and geounit, queries one after another: geocode, ``query_name`` (with the suffix ``_dpq``),
    ``query_shape``, the list of answers in C order of the shape, the variance of an answer, the loss of the query as
    a fraction (``plb``) and the law. The file's metadata hold the plan's digest, the source and a digest of the content.

    Args:
        path: final name; the file appears there complete or not at all, and read-only.
        measurements: of one part.
        plan_digest: :meth:`ReleasePlan.digest` of the plan they were drawn for.
        stamp: ``"NOT PRIVATE"`` for measurements drawn with a test key.

    Returns:
        SHA-256 of the file's bytes, hexadecimal, for the ledger.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        StorageError: the disk is full or the folder not writable.
    """
    require_publishable([measurements], stamp)
    header = _header(measurements, plan_digest)
    metadata = {
        "censafe": header,
        "plan_digest": plan_digest,
        "source": measurements.source,
        "private": "true" if stamp is None else "false",
        "content_digest": _content_digest(header, measurements),
    }
    if stamp is not None:
        metadata["stamp"] = stamp
    schema = _schema(measurements).with_metadata(metadata)
    with atomic_write(path) as temporary:
        with pq.ParquetWriter(temporary, schema, compression="zstd", compression_level=1) as writer:
            for table in _tables(measurements, schema):
                writer.write_table(table)
        temporary.chmod(0o444)
    return sha256_file(path)


def read_level_measurements(path: Path, *, plan_digest: str | None = None) -> LevelMeasurements:
    """Read one part back and check that nothing in it changed since it was written.

    Args:
        path: a file written by :func:`write_level_measurements`.
        plan_digest: when given, the plan the file must belong to.

    Raises:
        StorageError: there is no such file.
        CheckError: not a measurement file of histograms, another plan's, or changed after it was written.
    """
    if not path.is_file():
        raise StorageError(f"measurement file {path} is missing; restore it from a copy")
    try:
        with pq.ParquetFile(path) as file:
            pairs = (file.schema_arrow.metadata or {}).items()
            metadata = {key.decode(): value.decode() for key, value in pairs}
            header = json.loads(metadata["censafe"])
            if header["format"] != _FORMAT:
                raise CheckError(f"{path}: format {header['format']!r}, this version reads {_FORMAT!r}")
            found = _rebuilt(header, file)
            written_plan, written_digest = header["plan_digest"], metadata["content_digest"]
    except (KeyError, TypeError, ValueError, IndexError, OSError) as error:
        raise CheckError(
            f"{path} is not a measurement file of histograms, or it was changed after it was measured"
        ) from error
    require_plan(path, written_plan, plan_digest)
    agree = metadata.get("plan_digest") == written_plan and metadata.get("source") == found.source
    if not agree or _content_digest(metadata["censafe"], found) != written_digest:
        raise changed_after_measuring(path)
    return found


def _header(measurements: LevelMeasurements, plan_digest: str) -> str:
    queries = [
        {
            "table": query.table,
            "level": query.level,
            "law": query.law.kind,
            "parameter": _text(query.law.parameter),
            "cost": _text(query.cost),
            "shape": list(shape),
            "bits": values.dtype.itemsize * 8,
        }
        for query, shape, values in zip(
            measurements.queries, measurements.shapes, measurements.values, strict=True
        )
    ]
    budgets = measurements.budgets
    kinds = [
        [
            None if law is None else {"law": law.kind, "parameter": _text(law.parameter), "cost": _text(cost)}
            for law, cost in zip(laws, costs, strict=True)
        ]
        for laws, costs in zip(budgets.laws, budgets.costs, strict=True)
    ]
    document = {
        "format": _FORMAT,
        "plan_digest": plan_digest,
        "source": measurements.source,
        "part": measurements.part,
        "geounits": measurements.nodes,
        "queries": queries,
        "kinds": kinds,
        "variances": [[variance.hex() for variance in row] for row in measurements.variances],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _content_digest(header: str, measurements: LevelMeasurements) -> str:
    digest = hashlib.sha256(header.encode())
    digest.update("\n".join(measurements.geounits.tolist()).encode())
    digest.update(measurements.kinds.astype("<i4").data)
    for values in measurements.values:
        digest.update(b"\n")
        digest.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()


def _schema(measurements: LevelMeasurements) -> pa.Schema:
    """Columns; answers have 32 bits where all of the part fit."""
    narrow = all(values.dtype == np.int32 for values in measurements.values)
    return pa.schema(
        [
            ("geocode", pa.string()),
            ("kind", pa.int32()),
            ("query_name", _NAME),
            ("query_shape", pa.list_(pa.int32())),
            ("value", pa.large_list(pa.int32() if narrow else pa.int64())),
            ("variance", pa.float64()),
            ("plb", _NAME),
            ("law", _NAME),
        ]
    )


def _tables(measurements: LevelMeasurements, schema: pa.Schema) -> Iterator[pa.Table]:
    answer = schema.field("value").type.value_type
    variances = np.array(measurements.variances).reshape(len(measurements.variances), -1)
    for ordinal, (query, shape, values) in enumerate(
        zip(measurements.queries, measurements.shapes, measurements.values, strict=True)
    ):
        step = max(1, _GROUP_ANSWERS // values.shape[1])
        for first in range(0, len(values), step):
            some = values[first : first + step]
            rows = len(some)
            offsets = np.arange(rows + 1, dtype=np.int64) * values.shape[1]
            kinds = measurements.kinds[first : first + rows]
            name = f"{query.table.partition('.')[2]}_dpq"
            columns = [
                pa.array(measurements.geounits[first : first + rows].tolist(), pa.string()),
                pa.array(kinds),
                _repeated(name, rows),
                pa.array([list(shape)] * rows, pa.list_(pa.int32())),
                pa.LargeListArray.from_arrays(offsets, pa.array(some.reshape(-1)).cast(answer)),
                pa.array(variances[kinds, ordinal]),
                _of_kinds([_text(costs[ordinal]) for costs in measurements.budgets.costs], kinds),
                _of_kinds([query.law.bureau_name] * len(variances), kinds),
            ]
            yield pa.table(columns, schema=schema)


def _repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def _of_kinds(texts: list[str], kinds: NDArray[np.int32]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(texts))


def _rebuilt(header: dict[str, Any], file: Any) -> LevelMeasurements:
    nodes = int(header["geounits"])
    plans, shapes = [], []
    values: list[Answers] = []
    for entry in header["queries"]:
        law = NoiseLaw(entry["law"], Fraction(entry["parameter"]))
        plans.append(QueryPlan(entry["table"], entry["level"], law, Fraction(entry["cost"])))
        shapes.append(tuple(int(size) for size in entry["shape"]))
        size = (nodes, int(np.prod(shapes[-1])))
        values.append(np.empty(size, np.int32) if entry["bits"] == 32 else np.empty(size, np.int64))
    geounits, kinds = _fill(values, file, nodes)
    laws = tuple(
        tuple(None if one is None else NoiseLaw(one["law"], Fraction(one["parameter"])) for one in row)
        for row in header["kinds"]
    )
    costs = tuple(
        tuple(Fraction(0) if one is None else Fraction(one["cost"]) for one in row) for row in header["kinds"]
    )
    budgets = LevelBudgets(kinds, laws, costs)
    variances = tuple(tuple(float.fromhex(text) for text in row) for row in header["variances"])
    source: Literal["system", "seeded"] = "system" if header["source"] == "system" else "seeded"
    return LevelMeasurements(
        header["part"], geounits, tuple(plans), tuple(shapes), budgets, variances, tuple(values), source
    )


def _fill(values: list[Answers], file: Any, nodes: int) -> tuple[NDArray[np.str_], NDArray[np.int32]]:
    """Read the answers into their places; geounits and their kinds; ValueError where the rows are not those expected."""
    geocodes: list[str] = []
    kinds: list[int] = []
    query, node = 0, 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=["geocode", "kind", "value"])
        names = table["geocode"].to_pylist()
        flat = table["value"].combine_chunks().flatten().to_numpy()
        place = values[query]
        wide = flat.reshape(len(names), place.shape[1])
        if len(wide) and (wide.min() < np.iinfo(place.dtype).min or wide.max() > np.iinfo(place.dtype).max):
            raise ValueError("an answer is too large")
        place[node : node + len(names)] = wide
        if query == 0:
            geocodes += names
            kinds += table["kind"].to_pylist()
        elif geocodes[node : node + len(names)] != names:
            raise ValueError("the queries are of different geounits")
        node += len(names)
        if node == nodes:
            query, node = query + 1, 0
    if query != len(values) or node:
        raise ValueError("rows are missing")
    return np.array(geocodes, np.str_), np.array(kinds, np.int32)


def _text(number: Fraction) -> str:
    return f"{number.numerator}/{number.denominator}"
