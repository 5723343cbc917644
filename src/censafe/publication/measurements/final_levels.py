"""Final histograms of one level as what remains of a part whose noisy answers were not stored.

Everything in such a file is public: it follows from noisy answers and published figures. A run that was stopped resumes below
the last level that has its file.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.geography.files import MOST_PER_BYTE_OF_RUN, open_parquet
from censafe.model.measurements import run_result
from censafe.model.plan import NoiseSource
from censafe.model.sparse import SparseLevel
from censafe.publication.atomic import atomic_write, sha256_file
from censafe.publication.measurements.sealed import (
    DAMAGE,
    changed_after_measuring,
    header_of,
    header_text,
    require_plan,
    source_written,
)
from censafe.publication.stamps import Stamp, require_publishable

_FORMAT = "censafe finished level 1"
_CHUNK = 1 << 22
_COLUMNS = ("geounit", "cell", "count")
_STATE = "state"
_NO_COUNT = -1
_SCHEMA = pa.schema([(name, pa.int32()) for name in _COLUMNS])


@run_result
@dataclass(frozen=True, eq=False)
class FinishedLevel:
    """Final histograms of one part.

    Args:
        source: ``system`` for a release; ``seeded`` for a test key, which is never private.
        states: numbers from which tables are estimated, float64, shape (geounits with any, numbers); None without.
        split: of records whose kind of facility is open, by block, which the next level starts from; int64, two axes; None without.
    """

    part: str
    geounits: str
    node_ptr: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)
    count: NDArray[np.int32] = field(repr=False)
    report: Mapping[str, Any]
    source: NoiseSource
    states: NDArray[np.float64] | None = field(default=None, repr=False)
    split: NDArray[np.int64] | None = field(default=None, repr=False)

    @staticmethod
    def of(
        part: str,
        level: SparseLevel,
        report: Mapping[str, Any],
        source: NoiseSource,
        states: NDArray[np.float64] | None = None,
        split: NDArray[np.int64] | None = None,
    ) -> FinishedLevel:
        """What is stored of a level that was estimated."""
        digest = geounits_digest(level.geounits)
        return FinishedLevel(
            part, digest, level.node_ptr, level.cell, level.count, report, source, states, split
        )

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"

    def level(self, geounits: NDArray[np.str_]) -> SparseLevel:
        """The histograms of these geounits."""
        if len(geounits) + 1 != len(self.node_ptr) or geounits_digest(geounits) != self.geounits:
            raise CheckError(
                f"the finished level of {self.part} is of other geounits; restore the file that was written under this name, "
                "or name a new folder"
            )
        return SparseLevel(geounits, self.node_ptr, self.cell, self.count)


def geounits_digest(geounits: NDArray[np.str_]) -> str:
    """SHA-256 of the codes of a level in their order, hexadecimal.

    Example:
        >>> geounits_digest(np.array(["44", "50"]))[:8]
        'bcc65c96'
    """
    digest = hashlib.sha256(f"{geounits.dtype.itemsize // 4}\n".encode())
    digest.update(np.ascontiguousarray(geounits).view(np.uint32).astype("<u4", copy=False).data)
    return digest.hexdigest()


def write_finished_level(
    path: Path, finished: FinishedLevel, *, plan_digest: str, stamp: Stamp | None = None
) -> str:
    """Write the final histograms of a part, a row for each cell that is not empty, in the order of the level."""
    require_publishable([finished], stamp)
    header = header_text(
        {
            "format": _FORMAT,
            "plan_digest": plan_digest,
            "part": finished.part,
            "nodes": len(finished.node_ptr) - 1,
            "geounits": finished.geounits,
            "source": finished.source,
            **({} if finished.states is None else {"states": list(finished.states.shape)}),
            **({} if finished.split is None else {"split": _packed(finished.split)}),
            "report": dict(finished.report),
        }
    )
    metadata = {
        "censafe": header,
        "private": "true" if stamp is None else "false",
        "content_digest": _content_digest(header, finished),
        **({"stamp": stamp} if stamp else {}),
    }
    with atomic_write(path) as temporary:
        schema = (
            _SCHEMA if finished.states is None else _SCHEMA.append(pa.field(_STATE, pa.float64()))
        ).with_metadata(metadata)
        with pq.ParquetWriter(
            temporary, schema, compression="zstd", compression_level=1, use_dictionary=False,
            column_encoding={"geounit": "DELTA_BINARY_PACKED", "cell": "PLAIN", "count": "PLAIN"},
        ) as writer:  # fmt: skip
            for columns in _pieces(finished):
                writer.write_table(pa.table(columns[: len(schema)], schema=schema))
        temporary.chmod(0o444)
    return sha256_file(path)


def read_finished_level(path: Path, *, plan_digest: str | None = None) -> FinishedLevel:
    """Read one part back and check that nothing in it changed since it was written."""
    if not path.is_file():
        raise StorageError(f"{path} is missing; restore it from a copy")
    try:
        with open_parquet(path, per_byte=MOST_PER_BYTE_OF_RUN) as file:
            metadata = {
                key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()
            }
            document = header_of(path, metadata, _FORMAT)
            written_digest, own_plan = metadata["content_digest"], document["plan_digest"]
            finished = _rebuilt(document, file.read())
    except DAMAGE as error:
        raise CheckError(f"{path} is not the file of a finished level, or it was changed") from error
    require_plan(path, own_plan, plan_digest)
    if _content_digest(metadata["censafe"], finished) != written_digest:
        raise changed_after_measuring(path)
    return finished


_MOST_NODES = 1 << 27  # a damaged number must not ask for all memory


def _rebuilt(document: Mapping[str, Any], table: Any) -> FinishedLevel:
    node, cell, count = (table.column(name).combine_chunks().to_numpy() for name in _COLUMNS)
    states = None
    if "states" in document:
        shape = document["states"]
        rows = len(node) - int(shape[0]) * int(shape[1])
        states = table.column(_STATE).slice(rows).to_numpy().reshape(shape)
        node, cell, count = node[:rows], cell[:rows], count[:rows]
    nodes = int(document["nodes"])
    if not 0 <= nodes <= _MOST_NODES:
        raise ValueError("more geounits than any level has")
    if any(values.dtype != np.int32 for values in (node, cell, count)) or (
        states is not None and states.dtype != np.float64
    ):
        raise ValueError("other types than those that are written")
    if len(node) and not 0 <= node.min() <= node.max() < nodes:
        raise ValueError("rows of no geounit")
    pointer = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(node, minlength=len(pointer) - 1), out=pointer[1:])
    return FinishedLevel(
        document["part"],
        document["geounits"],
        pointer,
        cell,
        count,
        document["report"],
        source_written(document),
        states,
        _unpacked(document["split"]) if "split" in document else None,
    )


def _packed(split: NDArray[np.int64]) -> Mapping[str, Any]:
    """Whole numbers as JSON values; the header, and with it these, are part of what the digest of the file covers."""
    values = zlib.compress(np.ascontiguousarray(split).astype("<i8").tobytes(), 6)
    return {"shape": list(split.shape), "values": base64.b64encode(values).decode()}


def _unpacked(split: Mapping[str, Any]) -> NDArray[np.int64]:
    rows, columns = (int(one) for one in split["shape"])
    size = 8 * rows * columns
    values = zlib.decompressobj().decompress(base64.b64decode(split["values"]), size + 1)
    if len(values) != size:
        raise ValueError("a split of another size than it says")
    return np.frombuffer(values, "<i8").astype(np.int64).reshape(rows, columns)


def _pieces(finished: FinishedLevel) -> Iterator[list[Any]]:
    """Geounit, cell, count and no number of ranges of entries; then for the numbers behind tables which row and number, no count, and the number."""
    pointer = finished.node_ptr
    for first in range(0, len(finished.cell), _CHUNK):
        last = min(first + _CHUNK, len(finished.cell))
        low, high = (int(node) for node in np.searchsorted(pointer, [first, last - 1], side="right") - 1)
        bounds = np.clip(pointer[low : high + 2], first, last)
        node = np.repeat(np.arange(low, high + 1, dtype=np.int32), bounds[1:] - bounds[:-1])
        none = pa.nulls(len(node), pa.float64())
        yield [node, finished.cell[first:last], finished.count[first:last], none]
    if finished.states is None:
        return
    rows, width = finished.states.shape
    step = max(1, _CHUNK // max(width, 1))
    for first in range(0, rows, step):
        part = finished.states[first : first + step]
        row = np.repeat(np.arange(first, first + len(part), dtype=np.int32), width)
        number = np.tile(np.arange(width, dtype=np.int32), len(part))
        yield [row, number, np.full(len(row), _NO_COUNT, np.int32), part.reshape(-1)]


def _content_digest(header: str, finished: FinishedLevel) -> str:
    digest = hashlib.sha256(header.encode())
    more = () if finished.states is None else (finished.states,)
    for values in (finished.node_ptr, finished.cell, finished.count, *more):
        digest.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()
