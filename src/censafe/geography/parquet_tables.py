"""Parquet files that somebody else wrote, or that were damaged since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["read_whole"]


def read_whole(path: Path | pa.BufferReader, **options: Any) -> pa.Table:
    """All rows of a file; every text and every place in a dictionary is looked at, which Arrow itself leaves to whoever uses them.

    Args:
        path: of the file.
        options: of ``pyarrow.parquet.read_table``.

    Raises:
        OSError: it cannot be read.
        ArrowException: it is no Parquet, or damaged.
    """
    try:
        found = pq.read_table(path, **options)
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid("names of columns that are no text") from error
    found.validate(full=True)
    return found
