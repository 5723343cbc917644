"""The text of microdata rows: what every geounit and every cell gives to a row, and where its columns are taken from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.publication.microdata.layouts import MicrodataColumn, MicrodataLayout
from censafe.publication.microdata.rows import CELL, GEOUNIT, NUMBER

_PIPE, _NEWLINE = 124, 10
_PIECE = 1 << 14  # cells whose text is turned round at once
_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]


def _sources(layout: MicrodataLayout) -> list[int]:
    """Where the text of each column lies; a constant lies beside what comes before it, or else after it."""
    found = [
        GEOUNIT if column.geocode else CELL if column.codes else NUMBER if column.number else -1
        for column in layout.columns
    ]
    for here in range(1, len(found)):
        if found[here] < 0 and found[here - 1] != NUMBER:
            found[here] = found[here - 1]
    for here in range(len(found) - 1, -1, -1):
        if found[here] < 0:
            after = found[here + 1] if here + 1 < len(found) else NUMBER
            found[here] = GEOUNIT if after == NUMBER else after
    return found


def _ends(layout: MicrodataLayout) -> list[int]:
    return [_PIPE] * (len(layout.columns) - 1) + [_NEWLINE]


def column_parts(layout: MicrodataLayout) -> tuple[_Ints, _Ints, _Ints]:
    """Runs of columns whose text lies in one place: where that is, its first byte or number, and where it ends, as in :class:`RowTexts`."""
    found: list[list[int]] = []
    used = {GEOUNIT: 0, CELL: 0}
    numbers = 0
    for column, source, end in zip(layout.columns, _sources(layout), _ends(layout), strict=True):
        if source == NUMBER:
            found.append([NUMBER, numbers, end])
            numbers += 1
            continue
        if not found or found[-1][0] != source:
            found.append([source, used[source], used[source]])
        used[source] += _width(column) + 1
        found[-1][2] = used[source]
    source, first, stop = np.array(found, np.int64).T.copy()
    return source, first, stop


def _width(column: MicrodataColumn) -> int:
    """Characters of a column that is not a number."""
    if column.constant is not None:
        return len(column.constant)
    return column.geocode or len(column.codes[0])


def geounit_text(layout: MicrodataLayout, geounits: NDArray[np.str_]) -> _Bytes:
    """The text of every geounit: the parts of its geocode, and constants."""
    if geounits.dtype.itemsize != 4 * layout.digits:
        raise ValueError(f"geocodes must have {layout.digits} characters")
    characters = np.ascontiguousarray(geounits).view(np.uint32).reshape(-1, layout.digits).astype(np.uint8)
    parts, start = [np.zeros((len(geounits), 0), np.uint8)], 0
    for column, source, end in zip(layout.columns, _sources(layout), _ends(layout), strict=True):
        if source == GEOUNIT:
            parts.append(
                _repeated(column.constant, len(geounits))
                if column.constant is not None
                else characters[:, start : start + column.geocode]
            )
            parts.append(np.full((len(geounits), 1), end, np.uint8))
            start += column.geocode
    return np.concatenate(parts, axis=1)


def cell_text(layout: MicrodataLayout) -> _Bytes:
    """The text of every cell of a row: its codes, and constants.

    It is made character by character, which reads the cells in a row, and turned round piece by piece, which stays in the cache.
    """
    lines: list[_Bytes] = []
    for column, source, end in zip(layout.columns, _sources(layout), _ends(layout), strict=True):
        if source != CELL:
            continue
        texts = column.codes if column.constant is None else (column.constant,)
        codes = np.frombuffer("".join(texts).encode("ascii"), np.uint8).reshape(len(texts), -1)
        answers = layout.answers(column) if column.constant is None else np.zeros(layout.cells, np.int32)
        lines += [np.ascontiguousarray(one)[answers] for one in codes.T]
        lines.append(np.full(layout.cells, end, np.uint8))
    text = np.empty((layout.cells, len(lines)), np.uint8)
    for first in range(0, layout.cells, _PIECE):
        for place, line in enumerate(lines):
            text[first : first + _PIECE, place] = line[first : first + _PIECE]
    return text


def _repeated(text: str, rows: int) -> _Bytes:
    return np.tile(np.frombuffer(text.encode("ascii"), np.uint8), (rows, 1))
