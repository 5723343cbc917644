"""Microdata read into the histograms that they stand for, by the layout that they were written in.

Files are read as their header and pieces of text with columns as whole numbers. Every row has the cell whose codes it shows. Which
columns the file has beside those of its geocode and its cell plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.model.arrays import Integers
from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.layouts import MicrodataColumn, MicrodataLayout

__all__ = [
    "coded",
    "file_header",
    "histograms_of_rows",
    "number_batches",
    "row_geounits",
    "shows_cells",
    "shows_layout",
]


_PIECE_BYTES: Final = 1 << 24


def file_header(path: Path) -> tuple[list[str], int]:
    """Columns of a file, and how many comment lines, which start with ``#``, stand before them.

    Raises:
        StorageError: the file cannot be read as text.
    """
    try:
        with path.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream):
                if not line.startswith("#"):
                    return line.rstrip("\r\n").split("|"), number
    except (OSError, UnicodeDecodeError):
        raise StorageError(
            f"{path.name}: the file cannot be read as text; check that it is complete"
        ) from None
    return [], 0


def number_batches(path: Path, columns: Sequence[str], layout: str) -> Iterator[Any]:
    """Pieces of a file with some of its columns as whole numbers.

    Args:
        path: the file.
        columns: those wanted, which it must have.
        layout: what it must be, for messages.

    Raises:
        DataError: rows that do not have the columns of the header, or codes that are not digits.
        StorageError: the file cannot be read.
    """
    try:
        with pa_csv.open_csv(
            path,
            pa_csv.ReadOptions(skip_rows=file_header(path)[1], block_size=_PIECE_BYTES),
            pa_csv.ParseOptions(delimiter="|"),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.int64()), include_columns=list(columns)
            ),
        ) as reader:
            yield from reader
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path.name}: rows that do not have the columns of the header, or codes that are not digits; allowed: the layout "
            f"of {layout}"
        ) from None


def coded(path: Path, batch: Any, name: str, first: int, levels: int) -> NDArray[np.int64]:
    """Codes of a column less the first one, so that they count from 0.

    Args:
        path: of the file, for messages.
        batch: of :func:`number_batches`.
        name: of the column.
        first: code of the first level.
        levels: how many there are.

    Raises:
        DataError: a code is missing or out of range.
    """
    column = batch.column(name)
    values: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False) - first
    wrong = int(((values < 0) | (values >= levels)).sum())
    if wrong:
        raise DataError(
            f"{path.name}, {name}: {wrong} codes are out of range; allowed: {first} to {first + levels - 1}"
        )
    return values


_NAMED = 3


def shows_layout(path: Path, layout: MicrodataLayout) -> bool:
    """Whether a text file has the columns of a layout that tell geocodes and cells.

    Args:
        path: a file.
        layout: of microdata.

    Raises:
        StorageError: the file cannot be read as text.
    """
    return {column.name for column in layout.columns if column.geocode or column.codes} <= set(
        file_header(path)[0]
    )


def shows_cells(layout: MicrodataLayout) -> bool:
    """Whether the rows of a layout show their cells whole, so that they can be counted back."""
    try:
        _row_codes(layout)
    except ValueError:
        return False
    return True


def row_geounits(path: Path, layout: MicrodataLayout) -> NDArray[np.str_]:
    """Geocodes of the rows of a file, each once, sorted.

    Args:
        path: see :func:`histograms_of_rows`.
        layout: of the file.

    Raises:
        DataError: codes of another form.
        StorageError: the file cannot be read.
    """
    place = [column for column in layout.columns if column.geocode]
    known = np.zeros(0, np.int64)
    for batch in number_batches(path, [column.name for column in place], f"the microdata {layout.name}"):
        known = np.union1d(known, _geocodes(path, batch, place))
    return np.array([f"{one:0{layout.digits}d}" for one in known.tolist()], np.str_)


def _geocodes(path: Path, batch: Any, place: Sequence[MicrodataColumn]) -> Integers:
    found = np.zeros(batch.num_rows, np.int64)
    for column in place:
        found = found * 10**column.geocode + coded(path, batch, column.name, 0, 10**column.geocode)
    return found


def histograms_of_rows(path: Path, layout: MicrodataLayout, geounits: NDArray[np.str_]) -> SparseLevel:
    """Count the rows of a file by geounit and cell; rows of units that were added beside the records are passed over.

    Args:
        path: pipe-delimited text with a header, which may follow lines that start with ``#``.
        layout: of the file, whose rows show their cells whole: no units that records are dealt to, no records of two histograms.
        geounits: geocodes, sorted, shape (n,).

    Returns:
        The histograms of these geounits over the schema of the layout.

    Raises:
        DataError: columns are missing, codes are those of no cell, or rows are of other geounits.
        StorageError: the file cannot be read.
        ValueError: a layout whose rows do not show their cells whole.
    """
    code = _row_codes(layout)
    if not shows_layout(path, layout):
        raise DataError(
            f"{path}: columns are missing; allowed: those of {layout.name}; fix: name such a file"
        )
    place = [column for column in layout.columns if column.geocode]
    known, cells = geounits.astype(np.int64), layout.schema.schema.cells
    keys, rows = np.zeros(0, np.int64), np.zeros(0, np.int64)
    strange: list[Integers] = []
    names = [column.name for column in (*place, *code.columns)]
    for batch in number_batches(path, names, f"the microdata {layout.name}"):
        found = _geocodes(path, batch, place)
        node = np.minimum(np.searchsorted(known, found), len(known) - 1)
        strange.append(np.unique(found[known[node] != found]))
        cell = code.cells(path, batch)
        mine = (cell < cells) & (known[node] == found)
        more, number = np.unique(node[mine] * cells + cell[mine], return_counts=True)
        keys, at = np.unique(np.concatenate([keys, more]), return_inverse=True)
        rows = np.bincount(at, np.concatenate([rows, number]), len(keys)).astype(np.int64)
    others = np.unique(np.concatenate([*strange, keys[:0]]))
    if len(others):
        named = ", ".join(f"{one:0{layout.digits}d}" for one in others[:_NAMED].tolist())
        raise DataError(
            f"{path}: the file has rows of {len(others)} blocks that the block files of the records do not have, such as {named}; allowed: "
            "microdata of the same records; fix: give those that were published of them"
        )
    pointer = np.searchsorted(keys // cells, np.arange(len(known) + 1)).astype(np.int64)
    return SparseLevel(geounits, pointer, (keys % cells).astype(np.int32), rows.astype(np.int32))


class _RowCodes(NamedTuple):
    """How codes tell cells."""

    columns: tuple[MicrodataColumn, ...]
    sizes: tuple[int, ...]  # codes of each column are below
    keys: Integers  # of the cells, rising: their codes as one number
    order: Integers  # cell of each key

    def cells(self, path: Path, batch: Any) -> Integers:
        """The cell of every row."""
        key = np.zeros(batch.num_rows, np.int64)
        for column, size in zip(self.columns, self.sizes, strict=True):
            key = key * size + coded(path, batch, column.name, 0, size)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        wrong = int((self.keys[place] != key).sum())
        if wrong:
            names = ", ".join(column.name for column in self.columns)
            raise DataError(
                f"{path}, {names}: {wrong} rows have codes that no cell has together; allowed: those of the layout; fix: write the file again"
            )
        return self.order[place]


def _row_codes(layout: MicrodataLayout) -> _RowCodes:
    columns = tuple(column for column in layout.columns if column.codes)
    sizes = tuple(max(map(int, column.codes)) + 1 for column in columns)
    key = np.zeros(layout.cells, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + np.array([int(code) for code in column.codes])[layout.answers(column)]
    order = np.argsort(key, kind="stable")
    if layout.beside is not None or layout.dealt or layout.kinds or (np.diff(key[order]) == 0).any():
        raise ValueError(f"the rows of {layout.name} do not show their cells whole")
    return _RowCodes(columns, sizes, key[order], order)
