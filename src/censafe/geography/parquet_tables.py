"""Parquet files that somebody else wrote, or that were damaged since.

A few bytes of Parquet can stand for any number of rows. Every reader opens its files here, where their size is judged before a column is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from censafe.errors import DataError
from censafe.model.parsing import TRUST_SIZE, sizes_are_trusted

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_CELLS: Final = 20_000_000
"""Values that a file may always have."""
MOST_PER_BYTE: Final = 20
"""Values for each byte, above which a larger file is refused; the densest records and histograms of the Bureau have about 5."""
MOST_PER_BYTE_OF_RUN: Final = 100
"""The same of the files of a run folder, where long columns of zeros are common."""


def require_plausible_size(
    path: Path | str, metadata: pq.FileMetaData, *, size: int | None = None, per_byte: int = MOST_PER_BYTE
) -> None:
    """Refuse a file that stands for far more values than its bytes make plausible; no column is read.

    Args:
        size: in bytes, where it is not that of the path.
    """
    cells = metadata.num_rows * metadata.num_columns
    if any(metadata.schema.column(place).max_repetition_level for place in range(metadata.num_columns)):
        groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
        values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
        cells = max(cells, values)
    if cells <= MOST_CELLS or sizes_are_trusted():
        return
    if cells > per_byte * (Path(path).stat().st_size if size is None else size):
        raise DataError(
            f"{path}: the Parquet file unpacks to more values than its size makes plausible; allowed: {MOST_CELLS:,} values, or at most {per_byte} "
            f"for each byte of the file; {TRUST_SIZE}"
        )


def open_parquet(path: Path | str, *, per_byte: int = MOST_PER_BYTE, **options: Any) -> pq.ParquetFile:
    """A file of plausible size, none of its rows read."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, **options)
    try:
        require_plausible_size(path, file.metadata, per_byte=per_byte)
    except DataError:
        file.close()
        raise
    return file


def read_rows(path: Path, *, per_byte: int = MOST_PER_BYTE, **options: Any) -> pa.Table:
    """Rows of a file of plausible size."""
    import pyarrow.parquet as pq

    require_plausible_size(path, pq.read_metadata(path), per_byte=per_byte)
    return pq.read_table(path, **options)


def read_validated(
    path: Path, data: bytes | None = None, *, per_byte: int = MOST_PER_BYTE, **options: Any
) -> pa.Table:
    """All rows of a file; every text and every place in a dictionary is looked at, which Arrow itself leaves to whoever uses them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if data is None:
            table = read_rows(path, per_byte=per_byte, **options)
        else:
            source = pa.BufferReader(data)
            require_plausible_size(path, pq.read_metadata(source), size=len(data), per_byte=per_byte)
            table = pq.read_table(pa.BufferReader(data), **options)
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid("names of columns that are not text") from error
    table.validate(full=True)
    return table
