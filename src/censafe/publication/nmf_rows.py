"""Rows of public noisy measurement files as they come: any files, any order, any width of integers, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError

__all__ = ["Faults", "Rows", "data_files", "read_rows", "stamped"]

_NAMED: Final = 5
_BATCH: Final = 4096
_COLUMNS: Final = ("geocode", "query_name", "query_shape", "value", "variance", "sign")
_ALLOWED: Final = "allowed: files in the layout of the Bureau's noisy measurement files"


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of one file.

    Args:
        geocodes: text, shape (rows,).
        names: of the queries or constraints with their suffix, shape (rows,).
        shapes: groups of each attribute, int64, shape (rows, attributes).
        values: all answers one after another.
        starts: int64, shape (rows + 1,): row i has values[starts[i]:starts[i + 1]].
        variance: shape (rows,); NaN where it is missing.
        signs: shape (rows,).
    """

    geocodes: NDArray[np.str_]
    names: NDArray[np.str_]
    shapes: NDArray[np.int64]
    values: NDArray[Any]
    starts: NDArray[np.int64]
    variance: NDArray[np.float64]
    signs: NDArray[np.str_]

    def matrix(self, rows: NDArray[np.int64], width: int) -> NDArray[Any]:
        """Answers of some rows that have `width` of them each, shape (len(rows), width)."""
        first = self.starts[rows]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return self.values[first[0] : first[0] + len(rows) * width].reshape(len(rows), width)
        return np.asarray(self.values[first[:, None] + np.arange(width)])


@dataclass
class Faults:
    """What is wrong with the rows of one level, counted by kind.

    Args:
        level: of the geography.
        folder: where the rows are.
    """

    level: str
    folder: Path
    _found: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, what: str, geounits: NDArray[np.str_], fix: str) -> None:
        """Note rows that break a rule."""
        if len(geounits):
            self._found.setdefault((what, fix), []).extend(geounits.tolist())

    def raise_if_any(self) -> None:
        """Raise with every kind of fault, how many rows have it and up to five geounits.

        Raises:
            DataError: something is wrong.
        """
        if not self._found:
            return
        lines = [
            f"  - {what} ({len(names)} rows), geounits {', '.join(sorted(set(names))[:_NAMED])}; fix: {fix}"
            for (what, fix), names in self._found.items()
        ]
        raise DataError(f"level {self.level}, {self.folder}:\n" + "\n".join(lines))


def data_files(folder: Path) -> tuple[Path, ...]:
    """Files with rows in a folder and its partitions; names that begin with ``_`` or ``.`` are markers, not data."""
    if not folder.is_dir():
        return ()
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return tuple(
        path for path in found if not any(name[0] in "_." for name in path.relative_to(folder).parts)
    )


def stamped(path: Path) -> bool:
    """Whether a file says of itself that its noise came from a test key."""
    metadata = _opened(path).schema_arrow.metadata or {}
    return metadata.get(b"private") == b"false"


def read_rows(path: Path) -> Iterator[Rows]:
    """The rows of a file, a few thousand at a time.

    Args:
        path: a Parquet file.

    Raises:
        DataError: it is no Parquet file, was cut short, or lacks a column.
    """
    file = _opened(path)
    missing = [name for name in _COLUMNS if name not in file.schema_arrow.names]
    if missing:
        raise DataError(f"{path}: columns missing: {', '.join(missing)}; {_ALLOWED}")
    batches = file.iter_batches(batch_size=_BATCH, columns=list(_COLUMNS))
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            rows = _decoded(batch)
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise _unreadable(path) from error
        yield rows


def _opened(path: Path) -> Any:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path) from error


def _unreadable(path: Path) -> DataError:
    return DataError(
        f"{path}: no Parquet file of noisy measurements, or it was cut short or damaged; {_ALLOWED}; fix: get the file again"
    )


def _decoded(batch: pa.RecordBatch) -> Rows:
    value, shape = batch.column("value"), batch.column("query_shape")
    if value.null_count or shape.null_count:
        raise ValueError("rows without answers or shape")
    flat = pc.list_flatten(value)
    if flat.null_count or not pa.types.is_integer(flat.type):
        raise ValueError("answers that are no integers")
    starts = np.zeros(batch.num_rows + 1, np.int64)
    np.cumsum(pc.list_value_length(value).to_numpy(zero_copy_only=False), out=starts[1:])
    sizes = pc.list_flatten(shape).to_numpy(zero_copy_only=False).astype(np.int64)
    variance = batch.column("variance").cast(pa.float64()).fill_null(float("nan"))
    return Rows(
        _texts(batch.column("geocode")),
        _texts(batch.column("query_name")),
        sizes.reshape(batch.num_rows, -1),
        flat.to_numpy(zero_copy_only=False),
        starts,
        variance.to_numpy(zero_copy_only=False),
        _texts(batch.column("sign")),
    )


def _texts(column: pa.Array) -> NDArray[np.str_]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = np.array([*encoded.dictionary.to_pylist(), ""], np.str_)
    return words[encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
