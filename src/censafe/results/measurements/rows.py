"""Rows of public noisy measurement files as they come: any files, any order, any width of integers, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import boolean, float64, int8, int16, int32, int64, types, uint8, void
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.files import open_parquet
from censafe.model.compiled import compiled

TAKEN, REPEATED, FAULTY = 1, 2, 3  # what became of a row

_Letters = types.Array(uint8, 2, "C", readonly=True)
_Starts = types.Array(int64, 1, "C", readonly=True)
ANSWERS: Final = tuple(types.Array(number, 1, "C", readonly=True) for number in (int16, int32, int64))
"""Types of the answers of a batch, for kernels."""


@compiled(void(_Letters, _Letters, int64[::1]))
def locate_rows(known, codes, out):  # type: ignore[no-untyped-def]
    """Where codes stand among sorted ones of the same length: rows of files mostly follow one another.

    Args:
        known: letters of the sorted codes, shape (n, width).
        codes: letters of the codes to be found, shape (m, width).
        out: receives their positions, -1 for those that are not there, shape (m,).
    """
    nodes, width = known.shape
    last = -1
    for row in range(codes.shape[0]):
        first, end, at = 0, nodes, -1
        for guess in (last, last + 1):
            if at < 0 and 0 <= guess < nodes:
                place = 0
                while place < width and known[guess, place] == codes[row, place]:
                    place += 1
                if place == width:
                    at = guess
        while at < 0 and first < end:
            middle, place = (first + end) // 2, 0
            while place < width and known[middle, place] == codes[row, place]:
                place += 1
            if place == width:
                at = middle
            elif known[middle, place] < codes[row, place]:
                first = middle + 1
            else:
                end = middle
        out[row] = at
        last = at if at >= 0 else last


@compiled(void(int64[::1], int64[::1], _Starts, int64, float64[::1], float64[:, ::1], int64, int8[::1]))
def take_places(rows, nodes, starts, width, variance, variances, query, state):  # type: ignore[no-untyped-def]
    """Claim the place of every row by its variance; a place is given away once.

    Args:
        rows: of one query, shape (k,).
        nodes: geounit of every row of the batch.
        starts: where the answers of every row of the batch start, and their end.
        variance: of every row of the batch.
        state: receives what became of each of the rows, shape (k,).
    """
    for position in range(rows.shape[0]):
        row = rows[position]
        if starts[row + 1] - starts[row] != width:
            state[position] = FAULTY
        elif np.isinf(variances[nodes[row], query]):
            variances[nodes[row], query] = variance[row]
            state[position] = TAKEN
        else:
            state[position] = REPEATED


@compiled(
    [boolean(answers, int64[::1], int64[::1], _Starts, int8[::1], int16[:, ::1]) for answers in ANSWERS]
)
def put_rows(values, rows, nodes, starts, state, out):  # type: ignore[no-untyped-def]
    """Copy the answers of rows to their geounits; whether all of them fit 16 bits.

    Args:
        values: answers of the batch, of 16, 32 or 64 bits.
        rows: as of :func:`take_places`.
        nodes: as there.
        starts: as there.
        state: of the rows; only those that were taken are copied.
        out: receives them, shape (geounits, answers).
    """
    fit = True
    for position in range(rows.shape[0]):
        if state[position] == TAKEN:
            row = rows[position]
            target, first = out[nodes[row]], starts[row]
            for answer in range(target.shape[0]):
                value = values[first + answer]
                target[answer] = value
                fit = fit and target[answer] == value
    return fit


_NAMED: Final = 5
_BATCH: Final = 4096
_ANSWERS: Final = 1 << 24  # of one batch, by the mean of its file
_COLUMNS: Final = ("geocode", "query_name", "query_shape", "value", "variance", "sign")
_ALLOWED: Final = "allowed: files in the layout of the Bureau's noisy measurement files"


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of one file.

    Args:
        geocodes: text, shape (rows,).
        name: which of them each row has, shape (rows,).
        shapes: groups of each attribute, int64, shape (rows, attributes).
        starts: int64, shape (rows + 1,): row i has values[starts[i]:starts[i + 1]].
        variance: shape (rows,); NaN where it is missing.
        sign: which of them each row has, shape (rows,).
    """

    geocodes: pa.Array
    names: tuple[str, ...]
    name: NDArray[np.int64]
    shapes: NDArray[np.int64]
    values: NDArray[Any]
    starts: NDArray[np.int64]
    variance: NDArray[np.float64]
    signs: tuple[str, ...]
    sign: NDArray[np.int64]

    def matrix(self, rows: NDArray[np.int64], width: int) -> NDArray[Any]:
        """Answers of some rows that have `width` of them each, shape (len(rows), width)."""
        first = self.starts[rows]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return self.values[first[0] : first[0] + len(rows) * width].reshape(len(rows), width)
        return np.asarray(self.values[first[:, None] + np.arange(width)])

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.str_]:
        """Geocodes of some rows."""
        return np.array(self.geocodes.take(pa.array(rows)).to_pylist(), np.str_)

    def places(self, geounits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Positions of the rows' geocodes among sorted ones, -1 for those that are not there.

        Args:
            geounits: letters of the sorted codes, shape (n, width), as :func:`letters` gives them.
        """
        width = geounits.shape[1]
        places = np.full(len(self.geocodes), -1, np.int64)
        lengths = pc.binary_length(self.geocodes).to_numpy(zero_copy_only=False)
        fitting = np.flatnonzero(lengths == width)
        column = self.geocodes if len(fitting) == len(places) else self.geocodes.take(pa.array(fitting))
        some = np.zeros(len(fitting), np.int64)
        if width and len(fitting):
            locate_rows(geounits, letters(column, width), some)
        places[fitting] = some
        return places

    def groups(self) -> list[NDArray[np.int64]]:
        """Rows of one name and shape."""
        key = self.name.copy()
        for column in self.shapes.T:
            key = key * (int(column.max(initial=0)) + 1) + column
        group = np.unique(key, return_inverse=True)[1].reshape(-1)
        return [np.flatnonzero(group == one) for one in range(int(group.max(initial=-1)) + 1)]


def letters(codes: pa.Array, width: int) -> NDArray[np.uint8]:
    """Letters of codes that all have the same length in bytes, shape (len(codes), width)."""
    plain = codes.cast(pa.large_string())
    first = np.frombuffer(plain.buffers()[1], np.int64)[plain.offset]
    return np.frombuffer(plain.buffers()[2], np.uint8, len(plain) * width, first).reshape(len(plain), width)


@dataclass
class Faults:
    """What is wrong with the rows of one level, counted by kind."""

    level: str
    folder: Path
    _faults: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, what: str, geounits: NDArray[np.str_], fix: str) -> None:
        """Note rows that break a rule."""
        if len(geounits):
            self._faults.setdefault((what, fix), []).extend(geounits.tolist())

    def raise_if_any(self) -> None:
        """Raise with every kind of fault, how many rows have it and up to five geounits."""
        if not self._faults:
            return
        lines = [
            f"  - {what} ({len(names)} rows), geounits {', '.join(sorted(set(names))[:_NAMED])}; fix: {fix}"
            for (what, fix), names in self._faults.items()
        ]
        raise DataError(f"level {self.level}, {self.folder}:\n" + "\n".join(lines))


def data_files(folder: Path) -> tuple[Path, ...]:
    """Files with rows in a folder and its partitions; names that begin with ``_`` or ``.`` are markers, not data."""
    if not folder.is_dir():
        return ()
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return tuple(
        path for path in files if not any(name[0] in "_." for name in path.relative_to(folder).parts)
    )


def read_answer_rows(
    path: Path, groups: Sequence[int] | None = None, *, answers: bool = True
) -> Iterator[Rows]:
    """The rows of a file, a few thousand at a time, and fewer where they have very many answers."""
    file = opened(path)
    columns = [name for name in _COLUMNS if answers or name != "value"]
    size = _batch_rows(file.metadata) if answers else _BATCH
    batches = file.iter_batches(batch_size=size, row_groups=groups, columns=columns)
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            rows = _decoded(batch)
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise _unreadable(path) from error
        yield rows


def _batch_rows(metadata: Any) -> int:
    """Rows of a batch, so that their answers are few enough where they are as many as the mean."""
    place = next(
        (
            at
            for at in range(metadata.num_columns)
            if metadata.schema.column(at).path.split(".")[0] == "value"
        ),
        None,
    )
    if place is None or not metadata.num_rows:
        return _BATCH
    values = sum(metadata.row_group(at).column(place).num_values for at in range(metadata.num_row_groups))
    return max(1, min(_BATCH, _ANSWERS * metadata.num_rows // max(1, values)))


def opened(path: Path) -> Any:
    """A file of rows, none of them read."""
    try:
        file = open_parquet(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the latter of names of columns
        raise _unreadable(path) from error
    names = file.schema_arrow.names
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise DataError(f"{path}: columns missing: {', '.join(missing)}; {_ALLOWED}")
    repeated = [name for name in _COLUMNS if names.count(name) > 1]
    if repeated:
        raise DataError(f"{path}: columns repeated: {', '.join(repeated)}; {_ALLOWED}")
    return file


def _unreadable(path: Path) -> DataError:
    return DataError(
        f"{path}: no Parquet file of noisy measurements, or it was cut short or damaged; {_ALLOWED}; fix: get the file again"
    )


def _decoded(batch: pa.RecordBatch) -> Rows:
    shape = batch.column("query_shape")
    if shape.null_count:
        raise ValueError("rows without shape")
    starts, values = _answers(batch)
    sizes = pc.list_flatten(shape).to_numpy(zero_copy_only=False).astype(np.int64)
    variance = batch.column("variance").cast(pa.float64()).fill_null(float("nan"))
    names, name = _coded(batch.column("query_name"))
    signs, sign = _coded(batch.column("sign"))
    return Rows(
        batch.column("geocode").cast(pa.string()).fill_null(""),
        names,
        name,
        sizes.reshape(batch.num_rows, -1),
        values,
        starts,
        variance.to_numpy(zero_copy_only=False),
        signs,
        sign,
    )


def _answers(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Where the answers of every row start, with their end, and all answers; none where the column was not read."""
    starts = np.zeros(batch.num_rows + 1, np.int64)
    if "value" not in batch.schema.names:
        return starts, np.zeros(0, np.int32)
    value = batch.column("value")
    flat = pc.list_flatten(value)
    if value.null_count or flat.null_count or not pa.types.is_integer(flat.type):
        raise ValueError("rows without answers, or answers that are not integers")
    np.cumsum(pc.list_value_length(value).to_numpy(zero_copy_only=False), out=starts[1:])
    return starts, flat.to_numpy(zero_copy_only=False)


def _coded(column: pa.Array) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The words of a column, and which one each row has; a missing one is empty."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    kind = encoded.dictionary.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise ValueError("words that are not text")
    words = (*encoded.dictionary.to_pylist(), "")
    place = encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return words, place.astype(np.int64)
