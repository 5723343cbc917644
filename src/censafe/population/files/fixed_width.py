"""Fixed-width records: their layouts as data, and the one reader of their lines, as numbers for kernels or as text for the engine."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.files.lines import line_chunks
from censafe.population.findings import Finding

LayoutName = Literal["cef_unit", "cef_per", "ipums_household", "ipums_person"]
_LINE_FEED: Final = 10
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]
_kernel = compiled()


class Place(NamedTuple):
    """Where a field stands in a record, for kernels; `blank` as in :class:`FixedField`."""

    start: int
    width: int
    blank: int


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

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.start, self.width, self.blank)

    @property
    def level_of(self) -> NDArray[np.int8]:
        """Level of every number, -1 for numbers that are not allowed; shape (10 ** width,)."""
        levels = np.full(10**self.width, -1, np.int8)
        for level, ranges in enumerate(self.levels):
            for low, high in ranges:
                levels[low : high + 1] = level
        return levels


@dataclass(frozen=True)
class RecordLayout:
    """One kind of record."""

    width: int
    record: str
    fields: Mapping[str, FixedField]


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
    return RecordLayout(own["width"], own.get("record", ""), fields)


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


Words = tuple[str, str, str, str]
"""Column, rule, problem and what is allowed."""


def field_words(layout: RecordLayout) -> dict[str, Words]:
    """What findings say of every field that is checked, by field."""
    return {name: (name, *field.words) for name, field in layout.fields.items() if field.words[0]}


@_kernel
def _digits(text: _Bytes, place: int, digits: int) -> int:
    """A field of decimal digits, with leading blanks or zeros; -1 for anything else or only blanks."""
    value = 0
    seen = False
    for i in range(place, place + digits):
        character = int(text[i])
        if character == 32 and not seen:
            continue
        if character < 48 or character > 57:
            return -1
        seen = True
        value = value * 10 + character - 48
    return value if seen else -1


@_kernel
def _blank(text: _Bytes, place: int, characters: int) -> bool:
    """Whether a field holds blanks only."""
    stop = place + characters
    while place < stop and text[place] == 32:
        place += 1
    return place == stop


@_kernel
def number_at(text: _Bytes, at: int, place: Place) -> int:
    """Number of a field of the record at `at`; -1 where it holds none."""
    start = at + place.start
    if place.blank >= 0 and _blank(text, start, place.width):
        return place.blank
    return _digits(text, start, place.width)


@_kernel
def outside(levels: NDArray[np.int8], number: int) -> bool:
    """Whether a number is missing or not allowed; `levels` is that of :meth:`FixedField.level_of`."""
    return number < 0 or levels[number] < 0


class FixedFile:
    """The lines of one file."""

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._width = width
        self.cut = False

    def chunks(self) -> Iterator[_Bytes]:
        """Chunks of lines as :func:`line_chunks` gives them.

        A last line without a line feed that is shorter than a record is `cut` and left out.
        """
        for chunk in line_chunks(self._path):
            self.cut = chunk[-1] != _LINE_FEED and len(chunk) < self._width
            if not self.cut:
                yield chunk

    def findings(self, rules: Sequence[str], words: Mapping[str, Words], count: _Ints) -> list[Finding]:
        """What is wrong with the lines, once all were read.

        Args:
            count: records that break each rule, shape (rules,).
        """
        allowed = f"{self._width} characters in every line"
        length = ("", "record-length", "records of another length", allowed, "write the file again in its layout")  # fmt: skip
        cut = ("", "truncated", "the last record is cut off", allowed, "a file that was cut short must be copied again")  # fmt: skip
        entries = [(length, int(count[0])), (cut, int(self.cut))]
        entries += [
            ((*words[rule], "correct the file"), rows)
            for rule, rows in zip(rules[1:], count[1:].tolist(), strict=True)
            if rule in words
        ]
        return [
            Finding(self._path.name, column, rule, "stop", rows, problem, allowed, fix)
            for (column, rule, problem, allowed, fix), rows in entries
            if rows
        ]
