"""Noisy measurements on disk: how a part is sealed and found unchanged, and the one Parquet file of a part of vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.model import Axis, KeyDomain, Measurements, NoiseLaw, QueryPlan
from censafe.model.plan import NoiseSource
from censafe.publication.atomic import atomic_write, sha256_file
from censafe.publication.stamps import STAMP, Stamp, require_publishable

__all__ = [
    "changed_after_measuring",
    "exact_text",
    "header_of",
    "header_text",
    "metadata_of",
    "open_part",
    "read_measurements",
    "require_plan",
    "source_in",
    "write_measurements",
    "write_part",
]


Source = NoiseSource


def write_part(
    path: Path,
    table: pa.Table,
    header: str,
    content_digest: str,
    *,
    plan_digest: str,
    stamp: Stamp | None,
    compression_level: int | None = None,
) -> str:
    """Write a sealed, read-only Parquet file.

    Args:
        path: final name; the file appears there complete or not at all.
        table: the content.
        header: everything that is not in the rows, as JSON.
        content_digest: of header and values.
        plan_digest: of the plan that was measured.
        stamp: of a test key or of published data; None for any other release.
        compression_level: of zstd; None for its own choice.

    Returns:
        SHA-256 of the file's bytes, hexadecimal, for the ledger.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    metadata = {
        "censafe": header,
        "plan_digest": plan_digest,
        "source": source_in(stamp),
        "private": "true" if stamp is None else "false",
        "content_digest": content_digest,
    }
    if stamp is not None:
        metadata["stamp"] = stamp
    with atomic_write(path) as temporary:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            temporary,
            compression="zstd",
            compression_level=compression_level,
        )
        temporary.chmod(0o444)
    return sha256_file(path)


def source_in(stamp: Stamp | None) -> Source:
    """Source of the noise of a file with or without the stamp of a test key."""
    return "seeded" if stamp == STAMP else "system"


def open_part(path: Path, dictionaries: Sequence[str] = ()) -> pa.Table:
    """Read a measurement file as it is.

    Args:
        path: the file.
        dictionaries: columns of text that stay codes into their different values.

    Raises:
        StorageError: there is no such file.
        CheckError: not a Parquet file.
    """
    if not path.is_file():
        raise StorageError(f"measurement file {path} is missing; restore it from a copy")
    try:
        return pq.read_table(path, partitioning=None, read_dictionary=list(dictionaries))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, KeyError) as error:
        raise CheckError(f"{path} is damaged or not a Parquet file; restore it from a copy") from error


def metadata_of(table: pa.Table) -> dict[str, str]:
    """Metadata of a file as text."""
    return {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}


def header_text(document: dict[str, Any]) -> str:
    """A header in the one form that its digest is taken of."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def header_of(path: Path, metadata: dict[str, str], wanted: str) -> dict[str, Any]:
    """The header in a file's metadata.

    Args:
        path: the file.
        metadata: of the file.
        wanted: the format that this version reads.

    Raises:
        CheckError: a file of another format.
        KeyError, TypeError, ValueError: no header.
    """
    header: dict[str, Any] = json.loads(metadata["censafe"])
    if header["format"] != wanted:
        raise CheckError(f"{path}: format {header['format']!r}, this version reads {wanted!r}")
    return header


def require_plan(path: Path, written: str, wanted: str | None) -> None:
    """Check that a measurement file belongs to the plan of the run, where that is known.

    Raises:
        CheckError: it belongs to another one.
    """
    if wanted is not None and wanted != written:
        raise CheckError(
            f"{path} belongs to plan {written[:12]}..., this run has plan {wanted[:12]}...; "
            "use the configuration it was measured with, or another output folder"
        )


def changed_after_measuring(path: Path) -> CheckError:
    """The error for a measurement file whose content is not what its digest says."""
    return CheckError(
        f"{path}: the content does not match the digest inside it; the file was changed after it "
        "was measured. Restore it from a copy; it cannot be measured again without new budget"
    )


def exact_text(number: Fraction) -> str:
    """A fraction as ``num/den``, whole numbers too."""
    return f"{number.numerator}/{number.denominator}"


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
    header = _header(measurements, plan_digest, source_in(stamp))
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
            "parameter": exact_text(m.query.law.parameter),
            "cost": exact_text(m.query.cost),
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
            "parameter": exact_text(m.query.law.parameter),
            "cost": exact_text(m.query.cost),
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
