"""Comma-separated text of our own loop is that of Arrow's writer, byte by byte."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from censafe.model.safe_text import csv_table
from censafe.publication.tables.csv_rows import write_csv

_TEXTS = ["", "a", 'say "so"', "one, two", "two\nlines", "=1+1", "-1.5e3", "-x", "\uff1dwide", "Ōkāto", None]


def _written(path: Path, batch: pa.RecordBatch) -> bytes:
    write_csv(path, batch.schema.names, [batch])
    return path.read_bytes()


def _arrow(batch: pa.RecordBatch) -> bytes:
    stream = io.BytesIO()
    plain = [one.cast(pa.string()) if pa.types.is_dictionary(one.type) else one for one in batch.columns]
    table = csv_table(pa.table(plain, names=batch.schema.names))
    pa_csv.write_csv(table, stream, pa_csv.WriteOptions(quoting_style="needed"))
    return stream.getvalue()


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 1000])
def test_texts_codes_and_numbers_are_those_of_arrow(tmp_path: Path, rows: int) -> None:
    rng = np.random.default_rng(rows)
    edges = np.array([0, 9, 10, -1, -10, 99, 100, 2**62, -(2**62)])
    codes = pa.DictionaryArray.from_arrays(
        pa.array(rng.integers(0, len(_TEXTS) - 1, rows).astype(np.int32)), pa.array(_TEXTS[:-1])
    )
    columns = [
        pa.array([_TEXTS[at] for at in rng.integers(0, len(_TEXTS), rows)], pa.string()),
        pa.array(rng.integers(-20, 2000, rows).astype(np.int32)),
        codes,
        pa.array(rng.choice(edges, rows)),
    ]
    batch = pa.RecordBatch.from_arrays(columns, ["geocode", "cell", "label", "=count"])
    for part in (batch, batch.slice(min(7, rows))):
        assert _arrow(part) == _written(tmp_path / "rows.csv", part)


def test_a_number_that_is_null_is_refused(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["a", None]), pa.array([None, 3])], ["one", "two"])
    with pytest.raises(ValueError, match="never null"):
        _written(tmp_path / "rows.csv", batch)
