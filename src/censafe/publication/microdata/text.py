"""Microdata as text: the header of a file, and pieces of it with columns as whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError

__all__ = ["coded", "file_header", "number_batches"]

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
