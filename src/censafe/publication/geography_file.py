"""The blocks of a run on disk: counts of units and areas, all of them published exactly."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.block_areas import BlockAreas
from censafe.geography.spine import pack_geocodes, unpack_geocodes
from censafe.publication.atomic import atomic_write
from censafe.publication.stamps import Stamp

__all__ = ["Blocks", "read_geography", "write_geography"]

_FORMAT: Final = "censafe geography 1"
_AREAS: Final = ("aiannh", "place", "cousub")


@dataclass(frozen=True, eq=False)
class Blocks:
    """Public facts of all blocks, in the order of their geocodes.

    Args:
        codes: geocodes as numbers, int64, shape (blocks,).
        digits: of a geocode.
        units: counts by kind, int32, shape (blocks, kinds); no kinds where nothing bounds the persons of a block.
        areas: None where none were needed.
        imputed: in words, what in the input was made up by a rule.
    """

    codes: NDArray[np.int64] = field(repr=False)
    digits: int
    units: NDArray[np.int32] = field(repr=False)
    areas: BlockAreas | None
    imputed: tuple[str, ...] = ()


def write_geography(path: Path, blocks: Blocks, *, stamp: Stamp | None = None) -> None:
    """Write one row a block: ``geocode``, ``units_0``, ``units_1`` and so on, and the areas where there are any.

    Args:
        path: final name; the file appears there complete or not at all.
        blocks: of the run.
        stamp: ``"NOT PRIVATE"`` beside measurements drawn with a test key.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    columns: dict[str, pa.Array] = {
        "geocode": pa.array(unpack_geocodes(blocks.codes, blocks.digits).tolist(), pa.string())
    }
    for kind, counts in enumerate(blocks.units.T):
        columns[f"units_{kind}"] = pa.array(np.ascontiguousarray(counts))
    if blocks.areas is not None:
        columns |= {name: pa.array(getattr(blocks.areas, name)) for name in _AREAS}
    metadata = {
        "format": _FORMAT,
        "imputed": json.dumps(blocks.imputed),
        "private": "true" if stamp is None else "false",
    }
    if stamp is not None:
        metadata["stamp"] = stamp
    with atomic_write(path) as temporary:
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), temporary, compression="zstd")
        temporary.chmod(0o444)


def read_geography(path: Path) -> Blocks:
    """Read the blocks of a run back.

    Args:
        path: a file written by :func:`write_geography`.

    Raises:
        CheckError: it is missing, damaged or no such file.
    """
    try:
        table = pq.read_table(path, partitioning=None)
        metadata = table.schema.metadata or {}
        if metadata[b"format"] != _FORMAT.encode():
            raise CheckError(
                f"{path}: format {metadata[b'format'].decode()!r}, this version reads {_FORMAT!r}"
            )
        names = table["geocode"].to_numpy()
        digits = len(names[0])
        codes = pack_geocodes(np.array(names.tolist(), np.str_), digits)
        kinds = sum(name.startswith("units_") for name in table.schema.names)
        units = np.empty((len(codes), kinds), np.int32)
        for kind in range(kinds):
            units[:, kind] = table[f"units_{kind}"].to_numpy()
        imputed = tuple(json.loads(metadata[b"imputed"]))
        areas = None
        if _AREAS[0] in table.schema.names:
            areas = BlockAreas(codes, *(table[name].to_numpy() for name in _AREAS))
    except (KeyError, ValueError, IndexError, OSError, pa.ArrowException) as error:
        raise CheckError(
            f"{path} is missing, damaged or no file of blocks; restore it from a copy"
        ) from error
    return Blocks(codes, digits, units, areas, imputed)
