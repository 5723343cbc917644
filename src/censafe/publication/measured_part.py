"""What all measurement files have in common: how they are stamped, sealed and told to be unchanged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from censafe.errors import CheckError, StorageError
from censafe.model.terms import NoiseSource
from censafe.publication.atomic import atomic_write, sha256_file
from censafe.publication.stamps import STAMP, Stamp

__all__ = [
    "changed_after_measuring",
    "fraction_text",
    "header_of",
    "header_text",
    "metadata_of",
    "open_part",
    "require_plan",
    "source_of",
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
        "source": source_of(stamp),
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


def source_of(stamp: Stamp | None) -> Source:
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


def fraction_text(number: Fraction) -> str:
    """A fraction as ``num/den``, whole numbers too."""
    return f"{number.numerator}/{number.denominator}"
