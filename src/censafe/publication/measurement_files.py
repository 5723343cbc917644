"""Noisy measurements on disk: one Parquet file a part, written once, verified whenever read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import Axis, KeyDomain, Measurements, NoiseLaw, QueryPlan
from censafe.model.terms import NoiseSource
from censafe.publication.measured_part import (
    changed_after_measuring,
    fraction_text,
    header_of,
    header_text,
    metadata_of,
    open_part,
    require_plan,
    source_of,
    write_part,
)
from censafe.publication.stamps import Stamp, require_publishable

__all__ = ["read_measurements", "write_measurements"]

_FORMAT = "censafe measurements 1"
_FIXED = ("table", "level", "value", "law", "parameter", "cost", "source")


def write_measurements(
    path: Path, measurements: Sequence[Measurements], *, plan_digest: str, stamp: Stamp | None = None
) -> str:
    """Write the noisy answers of one part, with everything needed to rebuild them exactly.

    One row an answer: table, level, the key axes as text (null where a query has no such axis),
    value, law, the law's parameter and the query's cost as ``num/den``, and the source of the noise.
    The file's metadata hold the plan's digest, the source, the key domains and a digest of the
    content.

    Args:
        path: final name; the file appears there complete or not at all, and read-only.
        measurements: of one part, all from the same kind of key.
        plan_digest: :meth:`ReleasePlan.digest` of the plan they were drawn for.
        stamp: ``"NOT PRIVATE"`` for measurements drawn with a test key.

    Returns:
        SHA-256 of the file's bytes, hexadecimal, for the ledger.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        StorageError: the disk is full or the folder not writable.
    """
    require_publishable(measurements, stamp)
    header = _header(measurements, plan_digest, source_of(stamp))
    digest = _content_digest(header, [m.values for m in measurements])
    return write_part(path, _to_arrow(measurements), header, digest, plan_digest=plan_digest, stamp=stamp)


def read_measurements(path: Path, *, plan_digest: str | None = None) -> list[Measurements]:
    """Read one part back and check that nothing in it changed since it was written.

    Args:
        path: a file written by :func:`write_measurements`.
        plan_digest: when given, the plan the file must belong to.

    Returns:
        the measurements in the order in which they were written.

    Raises:
        StorageError: there is no such file.
        CheckError: not a measurement file, another plan's, or changed after it was written.
    """
    table = _open(path)
    metadata = metadata_of(table)
    try:
        header = header_of(path, metadata, _FORMAT)
        blocks = [_block(entry) for entry in header["queries"]]
        source: NoiseSource = "system" if header["source"] == "system" else "seeded"
        written_plan, written_digest = header["plan_digest"], metadata["content_digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise CheckError(f"{path} is not a measurement file of censafe") from error
    require_plan(path, written_plan, plan_digest)
    values = np.asarray(table.column("value").to_numpy(), dtype=np.int64)
    edges = np.cumsum([0, *(domain.size for _, domain in blocks)])
    if edges[-1] != len(values):
        raise CheckError(
            f"{path}: {len(values)} rows, its key domains have {edges[-1]}; the file was changed"
        )
    parts = [values[start:stop].copy() for start, stop in pairwise(edges)]
    measurements = [
        Measurements(query, domain, part, source) for (query, domain), part in zip(blocks, parts, strict=True)
    ]
    metadata_agree = metadata.get("plan_digest") == written_plan and metadata.get("source") == source
    if (
        _content_digest(metadata["censafe"], parts) != written_digest
        or not metadata_agree
        or not _to_arrow(measurements).equals(table.replace_schema_metadata(None))
    ):
        raise changed_after_measuring(path)
    return measurements


def _open(path: Path) -> pa.Table:
    table = open_part(path)
    if not set(_FIXED) <= set(table.column_names) or table.schema.field("value").type != pa.int64():
        raise CheckError(f"{path} is not a measurement file of censafe")
    return table


def _header(measurements: Sequence[Measurements], plan_digest: str, source: str) -> str:
    queries = [
        {
            "table": m.query.table,
            "level": m.query.level,
            "law": m.query.law.kind,
            "parameter": fraction_text(m.query.law.parameter),
            "cost": fraction_text(m.query.cost),
            "axes": [[axis.name, list(axis.values)] for axis in m.domain.axes],
        }
        for m in measurements
    ]
    document = {"format": _FORMAT, "plan_digest": plan_digest, "source": source, "queries": queries}
    return header_text(document)


def _block(entry: dict[str, Any]) -> tuple[QueryPlan, KeyDomain]:
    law = NoiseLaw(entry["law"], Fraction(entry["parameter"]))
    domain = KeyDomain(tuple(Axis(name, tuple(values)) for name, values in entry["axes"]))
    return QueryPlan(entry["table"], entry["level"], law, Fraction(entry["cost"])), domain


def _content_digest(header: str, values: Sequence[NDArray[np.int64]]) -> str:
    digest = hashlib.sha256(header.encode())
    for part in values:
        digest.update(b"\n")
        digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()


def _to_arrow(measurements: Sequence[Measurements]) -> pa.Table:
    axes = list(dict.fromkeys(name for m in measurements for name in m.domain.names))
    if set(axes) & set(_FIXED):
        raise ValueError(f"a key axis must not be called {sorted(set(axes) & set(_FIXED))[0]}")
    names = ("table", "level", *axes, "value", "law", "parameter", "cost", "source")
    columns: dict[str, list[pa.Array]] = {name: [] for name in names}
    for m in measurements:
        size = m.domain.size
        for name in axes:
            columns[name].append(_axis_column(m.domain, name))
        columns["value"].append(pa.array(m.values, pa.int64()))
        texts = {
            "table": m.query.table,
            "level": m.query.level,
            "law": m.query.law.kind,
            "parameter": fraction_text(m.query.law.parameter),
            "cost": fraction_text(m.query.cost),
            "source": m.source,
        }
        for name, text in texts.items():
            columns[name].append(pa.repeat(pa.scalar(text, pa.string()), size))
    types = {"value": pa.int64()}
    return pa.table(
        {
            name: pa.chunked_array(chunks, types.get(name, pa.string())).combine_chunks()
            for name, chunks in columns.items()
        }
    )


def _axis_column(domain: KeyDomain, name: str) -> pa.Array:
    if name not in domain.names:
        return pa.nulls(domain.size, pa.string())
    return pa.array(domain.column(name).tolist(), pa.string())
