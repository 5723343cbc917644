"""Parquet files that a byte has damaged where no reader looks by itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 8


def write_places_outside(path: Path, columns: Mapping[str, Any], name: str, word: str) -> None:
    """Write eight rows whose column ``name`` has a word at a place where its dictionary has none.

    Args:
        path: of the file.
        columns: the other columns, eight values each.
        name: of the column.
        word: of the column before it was damaged.
    """
    words = pa.DictionaryArray.from_arrays(pa.array([1] * ROWS, pa.int32()), pa.array(["", word]))
    arrays = {key: pa.array(values) for key, values in columns.items()} | {name: words}
    schema = pa.schema([pa.field(key, one.type, nullable=False) for key, one in arrays.items()])
    table = pa.table(list(arrays.values()), schema=schema)
    pq.write_table(table, path, compression="none", write_statistics=False, use_dictionary=[name])
    page = bytes([1, ROWS << 1, 1])  # one bit a place; eight times; the second word
    content = path.read_bytes()
    if content.count(page) != 1:
        raise ValueError("the page of the places is not found")
    path.write_bytes(content.replace(page, bytes([1, ROWS << 1, 7])))
