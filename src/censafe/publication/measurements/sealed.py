"""The sealed store of noisy measurements: how a part is written once, and proven to be what was written whenever it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.geography.files import MOST_PER_BYTE_OF_RUN, read_rows
from censafe.model import NoiseLaw, QueryPlan
from censafe.model.parsing import exact_text, parse_fraction, parse_stored
from censafe.model.plan import NoiseSource
from censafe.publication.atomic import atomic_write, sha256_file
from censafe.publication.stamps import STAMP, Stamp

DAMAGE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    OSError,
    pa.ArrowException,
)
"""What reading a file raises that is not as it was written: other values, other types, fractions of 0, brackets without end."""

Part = TypeVar("Part")


@dataclass(frozen=True)
class PartFormat(Generic[Part]):
    """How one kind of part is stored: a Parquet file whose metadata hold a header and a digest of header and content.

    Args:
        arrays: what the digest is taken of, in order; None stands for a column that is not there.
        rebuilt: the part from header and rows; raises what DAMAGE names where they are not as they were written.
        dictionaries: columns of text that are read as codes into their different values.
    """

    name: str
    otherwise: str
    header: Callable[[Part], dict[str, Any]]
    table: Callable[[Part], pa.Table]
    arrays: Callable[[Part], Iterable[NDArray[Any] | None]]
    rebuilt: Callable[[Mapping[str, Any], pa.Table], Part]
    dictionaries: tuple[str, ...] = ()
    compression_level: int | None = None

    def content_digest(self, header: str, part: Part) -> str:
        """SHA-256 of header and content, hexadecimal."""
        digest = hashlib.sha256(header.encode())
        for column in self.arrays(part):
            digest.update(b"\n")
            if column is not None:
                digest.update(np.ascontiguousarray(column.astype("<i8")).data)
        return digest.hexdigest()


def write_part(
    path: Path, part: Part, kind: PartFormat[Part], *, plan_digest: str, stamp: Stamp | None
) -> str:
    """Write a sealed, read-only Parquet file."""
    document = {"format": kind.name, "plan_digest": plan_digest, "source": source_in(stamp)}
    header = header_text({**document, **kind.header(part)})
    own = {"content_digest": kind.content_digest(header, part)}
    metadata = seal_of(header, plan_digest, stamp, own)
    with atomic_write(path) as temporary:
        pq.write_table(
            kind.table(part).replace_schema_metadata(metadata),
            temporary,
            compression="zstd",
            compression_level=kind.compression_level,
        )
        temporary.chmod(0o444)
    return sha256_file(path)


def read_part(path: Path, kind: PartFormat[Part], plan_digest: str | None) -> Part:
    """Read one part back and check that nothing in it changed since it was written."""
    if not path.is_file():
        raise StorageError(f"measurement file {path} is missing; restore it from a copy")
    try:
        table = read_rows(
            path, per_byte=MOST_PER_BYTE_OF_RUN, partitioning=None, read_dictionary=list(kind.dictionaries)
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, KeyError, UnicodeDecodeError) as error:
        raise CheckError(f"{path} is damaged or not a Parquet file; restore it from a copy") from error
    try:
        metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        header = header_of(path, metadata, kind.name)
        written_plan, written_digest = header["plan_digest"], metadata["content_digest"]
        source = source_written(header)
        part = kind.rebuilt(header, table)
    except DAMAGE as error:
        raise CheckError(f"{path} is {kind.otherwise}") from error
    require_plan(path, written_plan, plan_digest)
    if (
        kind.content_digest(metadata["censafe"], part) != written_digest
        or metadata.get("plan_digest") != written_plan
        or metadata.get("source") != source
        or not _plain(kind.table(part)).equals(_plain(table))
    ):
        raise changed_after_measuring(path)
    return part


def _plain(table: pa.Table) -> pa.Table:
    """The same without metadata, dictionaries and chunks, so that equal content compares as equal."""
    fields = [
        pa.field(column.name, column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
        for column in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


def seal_of(
    header: str, plan_digest: str, stamp: Stamp | None, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Metadata of a sealed file."""
    return {
        "censafe": header,
        "plan_digest": plan_digest,
        "source": source_in(stamp),
        "private": "true" if stamp is None else "false",
        **(own or {}),
        **({"stamp": stamp} if stamp else {}),
    }


def source_in(stamp: Stamp | None) -> NoiseSource:
    """Source of the noise of a file with or without the stamp of a test key."""
    return "seeded" if stamp == STAMP else "system"


def source_written(header: Mapping[str, Any]) -> NoiseSource:
    """Source of the noise that a header names."""
    return "system" if header["source"] == "system" else "seeded"


def header_text(document: dict[str, Any]) -> str:
    """A header in the one form that its digest is taken of."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def header_of(path: Path, metadata: Mapping[str, str], expected: str) -> dict[str, Any]:
    """The header in a file's metadata."""
    header: dict[str, Any] = parse_stored(metadata["censafe"])
    if header["format"] != expected:
        raise CheckError(f"{path}: format {header['format']!r}, this version reads {expected!r}")
    return header


def require_plan(path: Path, written: str, expected: str | None) -> None:
    """Check that a measurement file belongs to the plan of the run, where that is known."""
    if expected is not None and expected != written:
        raise CheckError(
            f"{path} belongs to plan {written[:12]}..., this run has plan {expected[:12]}...; "
            "use the configuration it was measured with, or another output folder"
        )


def changed_after_measuring(path: Path) -> CheckError:
    """The error for a measurement file whose content is not what its digest says."""
    return CheckError(
        f"{path}: the content does not match the digest inside it; the file was changed after it "
        "was measured. Restore it from a copy; it cannot be measured again without new budget"
    )


def query_document(query: QueryPlan) -> dict[str, Any]:
    """A query with its law and exact cost, as JSON values."""
    return {
        "table": query.table,
        "level": query.level,
        "law": query.law.kind,
        "parameter": exact_text(query.law.parameter),
        "cost": exact_text(query.cost),
    }


def query_in(entry: Mapping[str, Any]) -> QueryPlan:
    """The query that :func:`query_document` wrote."""
    law = NoiseLaw(entry["law"], parse_fraction(entry["parameter"]))
    return QueryPlan(entry["table"], entry["level"], law, parse_fraction(entry["cost"]))
