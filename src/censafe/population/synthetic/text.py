"""Columns as lines of comma-delimited text."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numba
import numpy as np
from numpy.typing import NDArray

from censafe.population.synthetic.layouts import Coded, Column

__all__ = ["csv_lines"]

_COMMA, _NEWLINE, _ZERO = 44, 10, 48


@numba.njit(cache=True, nogil=True)
def _write_rows(
    values: NDArray[np.int32], texts: NDArray[np.uint8], digits: NDArray[np.int64], out: NDArray[np.uint8]
) -> int:
    at = 0
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            value = values[row, column]
            width = digits[column]
            if width > 0:
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
            out[at] = _COMMA if column + 1 < columns else _NEWLINE
            at += 1
    return at


def csv_lines(columns: Mapping[str, Column]) -> NDArray[np.uint8]:
    r"""The rows of a table as bytes of CSV, without a header.

    Args:
        columns: the columns in order, all of one length; codes of one column have one width, numbers are not negative.

    Returns:
        The bytes, every line ended by a line feed.

    Example:
        >>> lines = csv_lines({"TEN": Coded(("1", "2"), np.array([1, 0])), "QAGE": np.array([7, 110])})
        >>> lines.tobytes()
        b'2,7\n1,110\n'
    """
    coded = [column for column in columns.values() if isinstance(column, Coded)]
    widest = max((len(column.codes[0]) for column in coded), default=1)
    most = max((len(column.codes) for column in coded), default=1)
    texts = np.zeros((len(columns), most, widest), np.uint8)
    digits = np.zeros(len(columns), np.int64)
    values = []
    bytes_per_row = 0
    for index, column in enumerate(columns.values()):
        if isinstance(column, Coded):
            digits[index] = width = len(column.codes[0])
            table = np.frombuffer("".join(column.codes).encode("ascii"), np.uint8)
            texts[index, : len(column.codes), :width] = table.reshape(-1, width)
            values.append(column.positions)
        else:
            width = int(math.log10(max(1, int(column.max(initial=1))))) + 1
            values.append(column)
        bytes_per_row += width + 1
    rows = np.column_stack(values).astype(np.int32)
    out = np.empty(len(rows) * bytes_per_row, np.uint8)
    return out[: _write_rows(rows, texts, digits, out)]
