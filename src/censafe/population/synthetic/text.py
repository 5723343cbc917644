"""Columns as lines of delimited text."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.synthetic.layouts import Coded, Column

__all__ = ["csv_lines"]

_NEWLINE, _ZERO = 10, 48


@compiled()
def _write_rows(
    values: NDArray[np.int32],
    texts: NDArray[np.uint8],
    widths: NDArray[np.int64],
    delimiter: int,
    out: NDArray[np.uint8],
) -> int:
    at = 0
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            value = values[row, column]
            width = 0
            if widths[column, 0] > 0:
                width = widths[column, value]
                for k in range(width):
                    out[at + k] = texts[column, value, k]
            else:
                width = 1
                rest = value
                while rest >= 10:
                    rest //= 10
                    width += 1
                for k in range(width - 1, -1, -1):
                    out[at + k] = _ZERO + value % 10
                    value //= 10
            at += width
            out[at] = delimiter if column + 1 < columns else _NEWLINE
            at += 1
    return at


def csv_lines(columns: Mapping[str, Column], delimiter: str = ",") -> NDArray[np.uint8]:
    r"""The rows of a table as bytes of CSV, without a header.

    Args:
        columns: the columns in order, all of one length; codes are not empty, numbers are not negative.
        delimiter: one ASCII character.

    Returns:
        The bytes, every line ended by a line feed.

    Example:
        >>> lines = csv_lines({"TEN": Coded(("1", "2"), np.array([1, 0])), "QAGE": np.array([7, 110])})
        >>> lines.tobytes()
        b'2,7\n1,110\n'
    """
    coded = [column for column in columns.values() if isinstance(column, Coded)]
    widest = max((len(code) for column in coded for code in column.codes), default=1)
    most = max((len(column.codes) for column in coded), default=1)
    texts = np.zeros((len(columns), most, widest), np.uint8)
    widths = np.zeros((len(columns), most), np.int64)
    values = []
    bytes_per_row = 0
    for index, column in enumerate(columns.values()):
        if isinstance(column, Coded):
            for position, code in enumerate(column.codes):
                texts[index, position, : len(code)] = np.frombuffer(code.encode("ascii"), np.uint8)
                widths[index, position] = len(code)
            width = int(widths[index].max())
            values.append(column.positions)
        else:
            width = int(math.log10(max(1, int(column.max(initial=1))))) + 1
            values.append(column)
        bytes_per_row += width + 1
    rows = np.column_stack(values).astype(np.int32)
    out = np.empty(len(rows) * bytes_per_row, np.uint8)
    return out[: _write_rows(rows, texts, widths, ord(delimiter), out)]
