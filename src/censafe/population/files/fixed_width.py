"""Fixed-width records: their layouts as data, and the one reader of their lines, as numbers for kernels or as text for the engine."""

from __future__ import annotations

import gzip
import io
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.model.compiled import compiled
from censafe.model.work_ahead import worked_ahead
from censafe.population.findings import Finding, finding

_Bytes = NDArray[np.uint8]
_kernel = compiled()


@_kernel
def next_line(text: _Bytes, place: int, width: int) -> tuple[int, int]:
    """Characters of the line at `place`, without its line end, and where the next line starts.

    A line of the right length is recognized by the byte behind it; others are searched.
    """
    size = len(text)
    end = place + width
    if end < size and text[end] == 10:
        return width, end + 1
    if end + 1 < size and text[end] == 13 and text[end + 1] == 10:
        return width, end + 2
    stop = place
    while stop < size and text[stop] != 10:
        stop += 1
    length = stop - place
    if length and stop < size and text[stop - 1] == 13:
        length -= 1
    return length, stop + 1


CHUNK_BYTES = 1 << 22
_FRONT = 1 << 12  # room for what is left of the chunk before, longer than any record
_AT_ONCE = 1 << 20
_LONGEST = 1 << 26
_LINE_FEED = 10
_GZIP = b"\x1f\x8b"


def line_chunks(path: Path) -> Iterator[_Bytes]:
    """The lines of a file, some megabytes of whole lines at a time; gzip is recognized by its first bytes."""
    carry = np.zeros(0, np.uint8)
    size = CHUNK_BYTES
    buffers = [np.empty(_FRONT + size, np.uint8) for _ in range(2)]
    try:
        with _opened(path) as stream, ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(_read, stream, buffers[0][_FRONT:])
            turn = 0
            while read := coming.result():
                block = _behind(carry, buffers[turn], read)
                turn = 1 - turn
                coming = ahead.submit(_read, stream, buffers[turn][_FRONT:])
                stop = _complete_bytes(block)
                carry = block[stop:].copy()
                _require_lines(path, len(carry))
                if stop:
                    yield block[:stop]
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(
            f"{path.name}: the compressed file is cut short or damaged; allowed: a whole gzip file; fix: copy the file again"
        ) from None
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None
    if len(carry):
        yield carry


def _behind(carry: _Bytes, buffer: _Bytes, read: int) -> _Bytes:
    """What was left over, and behind it what was read; without copying what was read when the rest is short."""
    if len(carry) > _FRONT:
        return np.concatenate([carry, buffer[_FRONT : _FRONT + read]])
    buffer[_FRONT - len(carry) : _FRONT] = carry
    return buffer[_FRONT - len(carry) : _FRONT + read]


def _require_lines(path: Path, left: int) -> None:
    if left > _LONGEST:
        raise DataError(
            f"{path.name}: more than {_LONGEST:,} characters without a line feed; allowed: one record a line; fix: write the "
            "file again in its layout"
        )


def _complete_bytes(block: _Bytes) -> int:
    """Bytes up to and with the last line feed."""
    step = 4096
    for stop in range(len(block), 0, -step):
        feeds = np.flatnonzero(block[max(0, stop - step) : stop] == _LINE_FEED)
        if len(feeds):
            return max(0, stop - step) + int(feeds[-1]) + 1
    return 0


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as stream:
        packed = stream.read(2) == _GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _read(stream: BinaryIO, target: _Bytes) -> int:
    """Fill `target`; how many bytes there were."""
    view, done = target.data, 0
    while done < len(target) and (
        read := cast(io.BufferedIOBase, stream).readinto(view[done : done + _AT_ONCE])
    ):
        done += read
    return done


LayoutName = Literal["cef_unit", "cef_per", "ipums_household", "ipums_person"]
RECORD: Final = "RECORD"
"""The first character of a record, among its fields as numbers."""
_AHEAD: Final = 5  # pieces of a file that are held at once
Numbers = NDArray[np.int32]
_Piece = TypeVar("_Piece")
_Ints = NDArray[np.int64]


Words = tuple[str, str, str, str]
"""Column, rule, problem and what is allowed."""


@dataclass(frozen=True)
class FixedField:
    """One field of a record (see fixed_width.toml).

    Args:
        levels: inclusive ranges of the allowed numbers, by level of hhgq for kinds of quarters, otherwise one entry; empty where
            every number is allowed.
        blank: number of a field of blanks, -1 where it holds none.
    """

    name: str
    start: int
    width: int
    kind: Literal["number", "code"]
    levels: tuple[tuple[tuple[int, int], ...], ...]
    blank: int
    words: tuple[str, str, str]
    meaning: str

    @cached_property
    def level_of(self) -> NDArray[np.int8]:
        """Level of every number, -1 for numbers that are not allowed; shape (10 ** width,)."""
        levels = np.full(10**self.width, -1, np.int8)
        for level, ranges in enumerate(self.levels):
            for low, high in ranges:
                levels[low : high + 1] = level
        return levels

    def levels_at(self, numbers: Numbers) -> NDArray[np.int8]:
        """Level of each number, -1 for those that are missing or not allowed."""
        return np.where(numbers < 0, np.int8(-1), self.level_of[numbers])


@dataclass(frozen=True)
class RecordLayout:
    """One kind of record."""

    width: int
    record: str
    fields: Mapping[str, FixedField]
    words: Mapping[str, Words]
    """By rule: a field that is checked, or one of `rules`."""


def layouts_document() -> dict[str, Any]:
    """The layouts as they are shipped."""
    return tomllib.loads(files("censafe.population.files").joinpath("fixed_width.toml").read_text("utf-8"))


@cache
def fixed_layout(name: LayoutName) -> RecordLayout:
    """Layout of one kind of record.

    Example:
        >>> age = fixed_layout("cef_per").fields["QAGE"]
        >>> age.start, age.width, age.words[2]
        (23, 3, '0 to 115')
    """
    document = layouts_document()
    own = document[name]
    fields = {}
    for field, entry in own["fields"].items():
        shared = document[entry["as"]]["fields"][field] if "as" in entry else {}
        fields[field] = _field(field, {**shared, **entry})
    words: dict[str, Words] = {name: (name, *one.words) for name, one in fields.items() if one.words[0]}
    words |= {rule: tuple(texts) for rule, texts in own.get("rules", {}).items()}
    return RecordLayout(own["width"], own.get("record", ""), fields, words)


def rule_findings(file: str, words: Mapping[str, Words], rows: Mapping[str, int]) -> list[Finding]:
    """What records break.

    Args:
        rows: records that break each rule.
    """
    return [
        Finding(file, column, name, "stop", number, problem, allowed, "correct the file")
        for (column, name, problem, allowed), number in ((words[rule], count) for rule, count in rows.items())
        if number
    ]


def _field(name: str, entry: Mapping[str, Any]) -> FixedField:
    texts = entry.get("levels") or ([entry["allowed"]] if "allowed" in entry else [])
    levels = tuple(
        tuple((int(pair[0]), int(pair[-1])) for pair in (part.split("-") for part in text.split(",")))
        for text in texts
    )
    words = (entry.get("rule", ""), entry.get("problem", ""), entry.get("words", ""))
    start, width = entry["place"]
    return FixedField(
        name, start, width, entry["kind"], levels, entry.get("blank", -1), words, entry["meaning"]
    )


@_kernel
def _number(text: _Bytes, place: int, width: int, blank: int) -> int:
    """A field of decimal digits, with leading blanks or zeros; -1 for anything else, and `blank` for only blanks."""
    value = 0
    seen = False
    for i in range(place, place + width):
        character = int(text[i])
        if character == 32 and not seen:
            continue
        if character < 48 or character > 57:
            return -1
        seen = True
        value = value * 10 + character - 48
    return value if seen else blank


@_kernel
def _parse(text: _Bytes, width: int, places: _Ints, out: Numbers) -> tuple[int, int]:
    at, row, other = 0, 0, 0
    while at < len(text):
        length, after = next_line(text, at, width)
        if length == width:
            for item in range(len(places)):
                out[item, row] = _number(text, at + places[item, 0], places[item, 1], places[item, 2])
            out[len(places), row] = text[at]
            row += 1
        else:
            other += 1
        at = after
    return row, other


def line_numbers(
    text: _Bytes, width: int, fields: Mapping[str, FixedField]
) -> tuple[dict[str, Numbers], int]:
    """Fields of whole lines as numbers, -1 where a field holds none.

    Returns:
        By name, one value a record of the right length, and as RECORD its first character; and how many lines have another length.
    """
    places = np.array([(field.start, field.width, field.blank) for field in fields.values()], np.int64)
    out = np.empty((len(fields) + 1, int(np.count_nonzero(text == _LINE_FEED)) + 1), np.int32)
    records, other = _parse(text, width, places, out)
    return {name: out[row, :records] for row, name in enumerate((*fields, RECORD))}, other


class FixedFile:
    """The lines of one file."""

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._width = width
        self._cut = False
        self._other = 0

    @property
    def complete(self) -> bool:
        """Whether all lines that were read have the right length."""
        return not self._cut and not self._other

    def pieces(
        self,
        fields: Mapping[str, FixedField],
        work: Callable[[dict[str, Numbers], _Bytes], _Piece],
        workers: int,
    ) -> Iterator[_Piece]:
        """What several threads make of the pieces of the file, in their order.

        A last line without a line feed that is shorter than a record is left out, and so are lines of another length; :meth:`findings` names them.

        Args:
            work: takes the fields of a piece as :func:`line_numbers` gives them, and its text.
        """

        def piece(text: _Bytes) -> tuple[int, _Piece]:
            numbers, other = line_numbers(text, self._width, fields)
            return other, work(numbers, text)

        for other, result in worked_ahead(piece, self._chunks(), workers, ahead=_AHEAD):
            self._other += other
            yield result

    def _chunks(self) -> Iterator[_Bytes]:
        for chunk in line_chunks(self._path):
            self._cut = chunk[-1] != _LINE_FEED and len(chunk) < self._width
            if not self._cut:
                yield chunk.copy()  # of a buffer that is filled again

    def findings(self, words: Mapping[str, Words], rows: Mapping[str, int]) -> list[Finding]:
        """What is wrong with the lines, once all were read.

        Args:
            rows: records that break each rule.
        """
        allowed = f"{self._width} characters in every line"
        return [
            *finding(self._path.name, "", "record-length", self._other, "records of another length", allowed, "write the file again in its layout"),
            *finding(self._path.name, "", "truncated", int(self._cut), "the last record is cut off", allowed, "a file that was cut short must be copied again"),
            *rule_findings(self._path.name, words, rows),
        ]  # fmt: skip
