"""Comma-separated copies of published Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from censafe.model.safe_text import csv_table
from censafe.publication.atomic import atomic_write

__all__ = ["write_csv_copy"]

_ROWS = 1 << 17


def write_csv_copy(source: Path, path: Path, *, labels: Sequence[str] = ()) -> None:
    """Write the rows of a Parquet file as CSV, with the same columns and, where cells have labels, a column ``label``.

    Args:
        source: a Parquet file of texts and whole numbers.
        path: final name; the file appears there complete or not at all.
        labels: of the numbers in the column ``cell``; none without.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    with pq.ParquetFile(source) as opened, atomic_write(path) as temporary:
        fields = [
            pa.field(one.name, pa.string()) if pa.types.is_dictionary(one.type) else one
            for one in opened.schema_arrow
        ]
        schema = pa.schema([*fields, *([pa.field("label", pa.string())] if labels else [])])
        words = pa.array(labels, pa.string())
        options = pa_csv.WriteOptions(quoting_style="needed")
        with pa_csv.CSVWriter(temporary, schema, write_options=options) as writer:
            for batch in opened.iter_batches(_ROWS):
                columns = list(batch.columns)
                if labels:
                    columns.append(words.take(batch.column("cell")))
                plain = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
                writer.write_table(csv_table(pa.table(plain, schema=schema)))
