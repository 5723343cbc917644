"""Estimated histograms on disk: geocode, flat cell and count, cells that are empty left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.geography.files import MOST_PER_BYTE_OF_RUN, read_validated
from censafe.geography.identifiers import AreaNames
from censafe.model.sparse import SparseLevel
from censafe.publication.atomic import HashedStream, atomic_write
from censafe.publication.stamps import Stamp, stamp_metadata

_CHUNK = 1 << 20
_ASCII = 127
_MOST_BYTES = 2**31 - 1
_SCHEMA = pa.schema(
    [("geocode", pa.dictionary(pa.int32(), pa.string())), ("cell", pa.int32()), ("count", pa.int32())]
)


def write_histograms(
    path: Path,
    level: SparseLevel,
    *,
    schema: str,
    stamp: Stamp | None = None,
    areas: AreaNames | None = None,
) -> str:
    """Write the histograms of one level, a row for each cell that is not empty."""
    known = areas or AreaNames(census=False)
    arrow_schema = pa.schema(_fields(known), {"schema": schema, **stamp_metadata(stamp)})
    with atomic_write(path) as temporary:
        with temporary.open("wb") as file, HashedStream(file) as stream:
            # texts repeat those of the row before: they pack smaller, and sooner, as they are than as codes of many different ones
            with pq.ParquetWriter(
                stream,
                arrow_schema,
                compression="zstd",
                use_dictionary=["cell", "count"],
                write_statistics=["geocode", *known.columns],
            ) as writer:
                for rows in histogram_rows(level, known):
                    writer.write_table(pa.Table.from_batches([rows.cast(arrow_schema)]))
            digest = stream.sha256
        temporary.chmod(0o444)
    return digest


def _fields(areas: AreaNames) -> list[pa.Field]:
    return [
        _SCHEMA.field(0),
        *(_SCHEMA.field(0).with_name(name) for name in areas.columns),
        *list(_SCHEMA)[1:],
    ]


def histogram_rows(level: SparseLevel, areas: AreaNames) -> Iterator[pa.RecordBatch]:
    """Rows of a file of histograms, a million at a time, texts as codes."""
    schema = pa.schema(_fields(areas))
    for first in range(0, len(level.cell), _CHUNK):
        last = min(first + _CHUNK, len(level.cell))
        yield pa.RecordBatch.from_arrays(_columns(level, first, last, areas), schema=schema)


def _columns(level: SparseLevel, first: int, last: int, areas: AreaNames) -> list[pa.Array]:
    """Columns of a range of entries."""
    low, high = np.searchsorted(level.node_ptr, [first, last - 1], side="right") - 1
    bounds = np.clip(level.node_ptr[low : high + 2], first, last)
    index = np.repeat(np.arange(high - low + 1, dtype=np.int32), np.diff(bounds))
    geounits = level.geounits[low : high + 1]
    return [
        *(_coded(index, one) for one in (geounits, *areas.codes_and_names(geounits).values())),
        pa.array(level.cell[first:last]),
        pa.array(level.count[first:last]),
    ]


def _coded(index: NDArray[np.int32], texts: NDArray[np.str_]) -> pa.DictionaryArray:
    """Texts by their places, each text once in the dictionary; those of a spine mostly rise already."""
    codes, once = index, texts
    if not bool((texts[1:] > texts[:-1]).all()):
        once, place = np.unique(texts, return_inverse=True)
        codes = place.reshape(-1).astype(np.int32)[index]
    return pa.DictionaryArray.from_arrays(pa.array(codes), arrow_texts(once))


def arrow_texts(texts: NDArray[np.str_]) -> pa.Array:
    """Texts as an Arrow array; codes of one length are copied without looking at each of them.

    Args:
        texts: shape (n,).

    Example:
        >>> [arrow_texts(np.array(some)).to_pylist() for some in (["44", "50"], ["44", ""], ["", ""], ["É", "Ō"])]
        [['44', '50'], ['44', ''], ['', ''], ['É', 'Ō']]
    """
    rows, width = len(texts), texts.dtype.itemsize // 4
    characters = np.ascontiguousarray(texts).view(np.uint32).reshape(rows, -1)
    last = characters.max(initial=0)
    full_width = bool(characters.all())
    if not rows or rows * width > _MOST_BYTES or last > _ASCII or not (full_width or last == 0):
        return pa.array(texts, pa.string())
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width if full_width else 0)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(characters.astype(np.uint8)))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None
    except (pa.ArrowException, UnicodeDecodeError):  # the latter of names of columns
        raise CheckError(
            f"{path.name}: not a file of histograms; fix: restore the file that was written"
        ) from None


def histogram_schema(path: Path) -> str:
    """Name of the schema whose flat cells a file of histograms has; empty where the file names none."""
    with _reading(path):
        metadata = pq.read_schema(path).metadata or {}
        return bytes(metadata.get(b"schema", b"")).decode()


def histogram_geounits(path: Path) -> NDArray[np.str_]:
    """Geocodes of a file of histograms, sorted."""
    column = _read(path, pa.schema([_SCHEMA.field(0)])).column(0).unify_dictionaries().combine_chunks()
    return np.unique(np.array(column.dictionary.to_pylist(), np.str_))


def read_histograms(path: Path, geounits: np.ndarray[tuple[int], np.dtype[np.str_]]) -> SparseLevel:
    """Read histograms back.

    Args:
        geounits: of the level, sorted; the file does not hold those that are empty.
    """
    table = _read(path, _SCHEMA)
    column = table.column("geocode").unify_dictionaries().combine_chunks()
    names = np.array(column.dictionary.to_pylist(), geounits.dtype)
    place = np.minimum(np.searchsorted(geounits, names), len(geounits) - 1)
    if (geounits[place] != names).any():
        raise CheckError(f"{path.name}: geounits of another level; fix: restore the file that was written")
    node = place[column.indices.to_numpy()]
    if (np.diff(node) < 0).any():
        raise CheckError(f"{path.name}: rows out of order; fix: restore the file that was written")
    pointer = np.searchsorted(node, np.arange(len(geounits) + 1)).astype(np.int64)
    return SparseLevel(geounits, pointer, table.column("cell").to_numpy(), table.column("count").to_numpy())


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """Columns of a file of histograms."""
    with _reading(path):
        return read_validated(path, per_byte=MOST_PER_BYTE_OF_RUN, schema=schema)
