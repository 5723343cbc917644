"""Texts from data made safe: as parts of a path, and as cells of text files and workbooks that no program runs."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa


_OTHER: Final = re.compile(r"[^A-Za-z0-9_ -]")
_MOST: Final = 80
_DIGITS: Final = 8


def file_name(text: str) -> str:
    """A name, without ending, that is one part of a path whatever the text is.

    Letters of ASCII, digits, ``-``, ``_`` and inner blanks stay as they are. Where anything else stood in the text, or it was longer
    than 80 characters, eight hexadecimal digits of its SHA-256 follow, so that different texts have different names.

    Example:
        >>> file_name("School District"), file_name("../../x")
        ('School District', '______x-9cdf6a50')
    """
    plain = _OTHER.sub("_", text).strip()[:_MOST]
    if plain == text and plain:
        return plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{plain}-{digest}" if plain else digest


def stays_inside(name: str) -> bool:
    """Whether a relative path, such as one that a manifest names, leads nowhere outside of its folder.

    Example:
        >>> stays_inside("tables/PH1.csv"), stays_inside("../PH1.csv"), stays_inside("/etc/PH1.csv"), stays_inside("")
        (True, False, False, False)
    """
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


WORKBOOK_OPTIONS: Final = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
"""Options of every workbook: text stays text."""

_MARK: Final = "'"
_STARTS: Final = "^[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]"
_NUMBER: Final = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_START: Final = re.compile(_STARTS)
_WHOLE_NUMBER: Final = re.compile(_NUMBER)
_MARKED: Final = re.compile("^'(?=[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-])")


def csv_cell(value: Any) -> Any:
    """What stands in a cell of a CSV file for a value: text that would be a formula gets an apostrophe before it.

    Example:
        >>> csv_cell("=1+1"), csv_cell("-1.5e3"), csv_cell("-x"), csv_cell("a=b"), csv_cell(-7)
        ("'=1+1", '-1.5e3', "'-x", 'a=b', -7)
    """
    if isinstance(value, str) and _START.search(value) and not _WHOLE_NUMBER.fullmatch(value):
        return _MARK + value
    return value


def text_of_cell(text: str) -> str:
    """The text behind a cell of one of our own CSV files, without the apostrophe of :func:`csv_cell`.

    Example:
        >>> text_of_cell("'=1+1"), text_of_cell("'quoted'")
        ('=1+1', "'quoted'")
    """
    return _MARKED.sub("", text)


def csv_text(rows: Iterable[Iterable[Any]], *, line_end: str = "\n") -> str:
    r"""Rows as comma-separated text in which no cell is a formula.

    Example:
        >>> csv_text([["name", "n"], ["=A1", 2]])
        "name,n\n'=A1,2\n"
    """
    stream = io.StringIO(newline="")
    plain = csv.writer(stream, lineterminator=line_end)
    quoted = csv.writer(stream, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [csv_cell(cell) for cell in row]
        # A carriage return alone ends a row for readers, and the writer does not quote it by itself.
        returned = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoted if returned else plain).writerow(cells)
    return stream.getvalue()


def csv_table(table: pa.Table) -> pa.Table:
    """The same for the texts and names of columns of an Arrow table, which is then written as CSV."""
    columns = [_safe_column(column) for column in table.columns]
    return type(table).from_arrays(columns, names=[csv_cell(name) for name in table.column_names])


def _safe_column(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(chunk.indices, _safe_texts(chunk.dictionary))
                for chunk in column.chunks
            ],
            column.type,
        )
    return _safe_texts(column)


def _safe_texts(values: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    formula = pc.match_substring_regex(values, _STARTS)
    if not pc.any(formula).as_py():
        return values
    number = pc.match_substring_regex(values, rf"^{_NUMBER}\z")
    marked = pc.binary_join_element_wise(pa.scalar(_MARK, values.type), values, pa.scalar("", values.type))
    return pc.if_else(pc.and_not(formula, number), marked, values)
