"""Fixed-width records as columns of text for the engine, written once as Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CensafeError
from censafe.model.compiled import compiled
from censafe.population.files.fixed_width import (
    FixedField,
    fixed_layout,
    layouts_document,
    line_chunks,
    next_line,
)
from censafe.population.files.relation import engine_errors, quote_text
from censafe.population.findings import Finding, stated

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


TextName = Literal["phsafe_per", "phsafe_unit", "safetab_per", "safetab_unit"]
_MOST_LINES = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # byte order mark
_ASCII = 127
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_kernel = compiled()


def stage_lines(con: duckdb.DuckDBPyConnection, path: Path, name: TextName, target: Path) -> list[Finding]:
    """Write the columns of the lines of right length as Parquet; count the other lines."""
    import pyarrow as pa

    own = layouts_document()[name]
    layout = fixed_layout(own["layout"])
    fields = [layout.fields[one] for one in own["columns"]]
    lines = _TextLines(path, layout.width, fields)
    schema = pa.schema([(one.name, pa.string()) for one in fields])
    columns = ", ".join(_column_sql(one, own.get("blank", {})) for one in fields)
    view = f"lines_{uuid4().hex[:8]}"
    with engine_errors(path.name):
        con.register(view, pa.RecordBatchReader.from_batches(schema, lines.batches(schema)))
        con.execute(f"COPY (SELECT {columns} FROM {view}) TO {quote_text(str(target))} (FORMAT parquet)")
        con.unregister(view)
    if lines.error is not None:
        raise lines.error
    return lines.findings()


def _column_sql(field: FixedField, blank: Mapping[str, str]) -> str:
    """A column as the engine writes it: numbers without blanks and leading zeros, blanks by their meaning."""
    name = field.name
    if name in blank:
        return f"CASE WHEN trim({name}) = '' THEN {quote_text(blank[name])} ELSE {name} END AS {name}"
    if field.kind == "number":
        digits = f"coalesce(nullif(ltrim(trim({name}), '0'), ''), '0')"
        return f"CASE WHEN trim({name}) <> '' THEN {digits} END AS {name}"
    return name


@_kernel
def find_lines(text: _Bytes, width: int, at: _Ints, others: _Ints) -> tuple[int, int, int]:
    """Find the lines of right length."""
    place, good, wrong, row = 0, 0, 0, 0
    while place < len(text):
        length, after = next_line(text, place, width)
        if length == width:
            at[good] = place
            good += 1
        elif length > 0:
            if wrong < len(others):
                others[wrong] = row
            wrong += 1
        row += 1
        place = after
    return good, wrong, row


@_kernel
def copy_fields(text: _Bytes, at: _Ints, places: _Ints, out: _Bytes) -> None:
    """Copy fields of lines, one field after the other.

    Args:
        places: start and width of every field, shape (fields, 2).
    """
    first = 0
    for item in range(len(places)):
        start, width = places[item, 0], places[item, 1]
        for row in range(len(at)):
            for i in range(width):
                out[first + row * width + i] = text[at[row] + start + i]
        first += len(at) * width


class _TextLines:
    """The lines of one file as batches of text."""

    def __init__(self, path: Path, width: int, fields: Sequence[FixedField]) -> None:
        self._path = path
        self._width = width
        self._places = np.array([(one.start, one.width) for one in fields], np.int64)
        self._wrong, self._unreadable = 0, 0  # lines that are left out
        self._first_wrong: list[int] = []
        self._first_unreadable: list[int] = []
        self.error: CensafeError | None = None

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Columns of the lines of right length; ends early at an `error`, which the engine would not hand on."""
        import pyarrow as pa

        done = 0
        try:
            for chunk in line_chunks(self._path):
                text = chunk[3:] if not done and chunk[:3].tobytes() == _BYTE_ORDER_MARK else chunk
                plain = not len(text) or int(text.max()) <= _ASCII
                arrays, lines = self._plain(text, done) if plain else self._decoded(text, done)
                done += lines
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except CensafeError as error:
            self.error = error

    def findings(self) -> list[Finding]:
        """What was left out."""
        first_unreadable, first_wrong = (
            ", ".join(map(str, first[:_MOST_LINES])) for first in (self._first_unreadable, self._first_wrong)
        )
        return [
            *stated(
                "lines.rows", self._path.name, self._unreadable, first=first_unreadable, width=self._width
            ),
            *stated("line-lengths.rows", self._path.name, self._wrong, first=first_wrong, width=self._width),
        ]

    def _plain(self, text: _Bytes, done: int) -> tuple[list[pa.Array], int]:
        """Columns of a chunk whose characters are bytes, and its lines."""
        import pyarrow as pa

        at = np.empty(len(text) // (self._width + 1) + 1, np.int64)
        others = np.zeros(_MOST_LINES, np.int64)
        good, wrong, lines = find_lines(text, self._width, at, others)
        self._wrong += wrong
        self._first_wrong += (others[:wrong] + done + 1).tolist()
        out = np.empty(good * int(self._places[:, 1].sum()), np.uint8)
        copy_fields(text, at[:good], self._places, out)
        stops = np.cumsum(good * self._places[:, 1])
        arrays = []
        for width, stop in zip(self._places[:, 1].tolist(), stops.tolist(), strict=True):
            offsets = np.arange(good + 1, dtype=np.int32) * np.int32(width)
            characters = pa.py_buffer(out[stop - good * width : stop])
            arrays.append(pa.StringArray.from_buffers(good, pa.py_buffer(offsets), characters))
        return arrays, lines

    def _decoded(self, text: _Bytes, done: int) -> tuple[list[pa.Array], int]:
        """The same of a chunk with characters of several bytes, or with bytes that are not characters."""
        import pyarrow as pa

        raw = text.tobytes().removesuffix(b"\n").split(b"\n")
        records = []
        for number, line in enumerate(raw, done + 1):
            try:
                record = line.removesuffix(b"\r").decode()
            except UnicodeDecodeError:
                self._unreadable += 1
                self._first_unreadable.append(number)
                continue
            if len(record) == self._width:
                records.append(record)
            elif record:
                self._wrong += 1
                self._first_wrong.append(number)
        places = [slice(start, start + width) for start, width in self._places.tolist()]
        return [pa.array([record[place] for record in records], pa.string()) for place in places], len(raw)
