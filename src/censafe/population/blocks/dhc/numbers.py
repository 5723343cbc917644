"""Fields of records as numbers: columns of Parquet, text or whole numbers, and lines of fixed width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import StorageError
from censafe.geography.parquet_tables import open_parquet
from censafe.model.compiled import compiled
from censafe.population.blocks.cef_kernels import BlockTable, block_of, find_block
from censafe.population.files.fixed_width import Place, RecordLayout, number_at
from censafe.population.files.lines import next_line
from censafe.population.files.parquet import readable_texts
from censafe.population.findings import Finding

_BATCH_ROWS: Final = 500_000
_MOST: Final = 2**31 - 1
_NONE: Final = -1
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_Numbers = NDArray[np.int32]
_kernel = compiled()


def batches_of(
    path: Path, columns: Sequence[str], found: list[Finding], optional: Sequence[str] = ()
) -> Iterator[Any]:
    """Record batches of a Parquet file; none, and a finding, where columns are missing or it is no such file."""
    import pyarrow as pa

    try:
        with open_parquet(path) as file:
            schema = file.schema_arrow
        columns = (*columns, *(name for name in optional if name in schema.names))
        problem = _schema_problem(path, schema, columns)
        if problem is not None:
            found.append(problem)
            return
        texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        with open_parquet(path, read_dictionary=texts) as file:
            yield from file.iter_batches(_BATCH_ROWS, columns=list(columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        found.append(
            Finding(path.name, "", "header", "stop", 0, "the content cannot be read", "Parquet", "write the file again")
        )  # fmt: skip
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None


def _schema_problem(path: Path, schema: Any, columns: Sequence[str]) -> Finding | None:
    import pyarrow as pa

    allowed = "the columns " + ", ".join(columns)
    missing = [name for name in columns if schema.names.count(name) != 1]
    if missing:
        return Finding(path.name, ", ".join(missing), "header", "stop", 0, "columns missing or repeated", allowed,
                       "write the file again")  # fmt: skip
    wrong = []
    for name in columns:
        kind = schema.field(name).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_integer(value) or pa.types.is_string(value) or pa.types.is_large_string(value)):
            wrong.append(name)
    if not wrong:
        return None
    return Finding(path.name, ", ".join(wrong), "type", "stop", 0, "columns that are neither text nor whole numbers", allowed,
                   "write the file again")  # fmt: skip


def column_numbers(column: Any, blank: int) -> _Numbers:
    """A column of text or whole numbers as numbers, -1 where a value is neither.

    Example:
        >>> import pyarrow as pa
        >>> column_numbers(pa.array(["07", None, "x", " "]), 0).tolist(), column_numbers(pa.array([7, -7, None]), -1).tolist()
        ([7, 0, -1, 0], [7, -1, -1])
    """
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if not pa.types.is_dictionary(column.type):
        return _whole(column, blank)
    values = column.dictionary
    if pa.types.is_integer(values.type):
        used = _whole(values, blank)
    else:
        used = np.array([_number(text, blank) for text in readable_texts(values)], np.int32)
    numbers = np.append(used, [blank, _NONE]).astype(np.int32)
    return numbers[_places(column, len(used), len(used) + 1)]


def _places(column: Any, null: int, outside: int) -> Any:
    """Places of the words of a column; those of nulls, and of words that a damaged file does not have, are given."""
    places = column.indices.fill_null(null).to_numpy(zero_copy_only=False)
    return np.where((places >= 0) & (places <= null), places, outside)


def _whole(column: Any, blank: int) -> _Numbers:
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    numbers = np.where((values >= 0) & (values <= _MOST), values, _NONE).astype(np.int32)
    if column.null_count:
        numbers[column.is_null().to_numpy(zero_copy_only=False)] = blank
    return numbers


def _number(text: str | None, blank: int) -> int:
    stripped = (text or "").strip()
    if not stripped:
        return blank
    known = stripped.isascii() and stripped.isdecimal()
    return min(int(stripped), _MOST) if known else _NONE


def column_blocks(column: Any, table: BlockTable) -> _Numbers:
    """Positions of blocks by a column of their identifiers, -1 where there is none."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    texts = column.dictionary.cast(pa.string()).fill_null("")
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.zeros(1, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    known = np.full(len(texts) + 1, _NONE, np.int32)
    _find_texts(table, letters, ends, known)
    return known[_places(column, len(texts), len(texts))]


@_kernel
def _find_texts(table: BlockTable, letters: _Bytes, ends: _Numbers, found: _Numbers) -> None:
    for row in range(len(ends) - 1):
        found[row] = find_block(table, letters, ends[row], ends[row + 1])


@_kernel
def _parse(text: _Bytes, start: int, width: int, places: _Ints, out: _Numbers) -> tuple[int, int]:
    at, row, other = start, 0, 0
    while at < len(text):
        length, after = next_line(text, at, width)
        if length == width:
            for field in range(len(places)):
                place = Place(places[field, 0], places[field, 1], places[field, 2])
                out[field, row] = number_at(text, at, place)
            row += 1
        else:
            other += 1
        at = after
    return row, other


def line_numbers(
    text: _Bytes, layout: RecordLayout, columns: Mapping[str, str]
) -> tuple[dict[str, _Numbers], int]:
    """Fields of whole lines as numbers, -1 where a field holds none.

    Returns:
        By name, one value a record of the right length; and how many lines have another length.
    """
    fields = [layout.fields[name] for name in columns.values()]
    places = np.array([(field.start, field.width, field.blank) for field in fields], np.int64)
    rows = int(np.count_nonzero(text == ord("\n"))) + 1
    out = np.empty((len(fields), rows), np.int32)
    held, other = _parse(text, 0, layout.width, places, out)
    return {name: out[row, :held].copy() for row, name in enumerate(columns)}, other


@_kernel
def _parse_blocks(text: _Bytes, start: int, width: int, table: BlockTable, out: _Numbers) -> None:
    at, before, row, block = start, start, 0, -1
    while at < len(text):
        length, after = next_line(text, at, width)
        if length == width:
            block = block_of(table, text, at, before, block)
            out[row] = block
            before = at
            row += 1
        at = after


def line_blocks(text: _Bytes, layout: RecordLayout, table: BlockTable, rows: int) -> _Numbers:
    """Positions of the blocks of units, -1 where there is none."""
    out = np.empty(rows, np.int32)
    _parse_blocks(text, 0, layout.width, table, out)
    return out
