"""Files that name areas: gazetteers, tables of the Census Bureau or of NHGIS, or lists of one's own."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from censafe.errors import DataError, StorageError
from censafe.geography.identifiers import BLOCK_COLUMNS, block_column
from censafe.model.safe_text import csv_text, text_of_cell

__all__ = ["NAMES", "names_text", "read_area_names"]

NAMES: Final = "names.csv"
"""File of a run folder with the names that were given to its areas."""

_CODES: Final = (*BLOCK_COLUMNS, "geo_id")
_WORDS: Final = ("namelsad", "namelsad20", "name", "name20")
_LONG: Final = re.compile("[0-9]{3}[0-9A-Z]{4}US")  # before the GEOID in tables of data.census.gov
_GISJOIN: Final = re.compile("G([0-9]{2})0(?:([0-9]{3})0([0-9]{6}[0-9]{0,4})?|([0-9]{5}))?")
_GEOCODE: Final = 16
_BLOCK_GROUP: Final = 11  # position of the digit that a geocode of a block has beside those of its GEOID
_NAMED: Final = 5


def read_area_names(path: Path, *, census: bool = True) -> dict[str, str]:
    """Names of areas by their codes, from text with a header whose values are separated by tabs, bars or commas.

    A column ``geocode``, ``GEOID20``, ``GEOID``, ``GISJOIN`` or ``GEO_ID`` has the codes and one of ``NAMELSAD``, ``NAMELSAD20``, ``NAME`` and
    ``NAME20`` the names; the first of each that is there counts. Areas of several levels may stand in one file.

    Args:
        path: the file.
        census: whether codes are those of census geography; names are then found by GEOID, otherwise by geocode.

    Returns:
        Names by code, those that are empty left out.

    Raises:
        DataError: a column is missing, nothing is named, or an area has two names.
        StorageError: the file cannot be read.
    """
    rows = _rows(path)
    header = next(rows, [])
    code, name = block_column(header, _CODES), block_column(header, _WORDS)
    if code is None or name is None:
        raise DataError(
            f"{path}: a file of names has a header with GEOID (or GEOID20, GISJOIN, GEO_ID or geocode) and NAME (or NAMELSAD), "
            "separated by tabs, bars or commas, and a row an area"
        )
    key, word = header.index(code), header.index(name)
    found: dict[str, str] = {}
    twice: dict[str, None] = {}
    for row in rows:
        if len(row) > max(key, word) and row[key] and row[word]:
            area = _area(row[key]) if census else row[key]
            if found.setdefault(area, row[word]) != row[word]:
                twice[area] = None
    if twice:
        some = ", ".join(list(twice)[:_NAMED])
        raise DataError(
            f"{path}: {len(twice)} areas have two names, such as {some}; fix: name every area once"
        )
    if not found:
        raise DataError(f"{path}: no area is named; allowed: a row an area, with its code and its name")
    return found


def names_text(names: Mapping[str, str], *, census: bool = True) -> str:
    r"""The same as comma-separated text, which :func:`read_area_names` reads.

    Example:
        >>> names_text({"44001": "Bristol County"})
        'GEOID,NAME\n44001,Bristol County\n'
    """
    return csv_text([("GEOID" if census else "geocode", "NAME"), *sorted(names.items())])


def _rows(path: Path) -> Iterator[list[str]]:
    """Rows of a file, blanks around values taken away."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StorageError(f"{path}: the file of names cannot be read; check that it exists") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the file of names is not UTF-8 text; fix: save it as UTF-8") from error
    lines = text.splitlines()
    mark = next((one for one in "\t|" if lines and one in lines[0]), ",")
    return ([text_of_cell(cell.strip()) for cell in row] for row in csv.reader(lines, delimiter=mark))


def _area(code: str) -> str:
    """The GEOID of an area, from a code of any form."""
    gisjoin = _GISJOIN.fullmatch(code)
    if gisjoin:
        return "".join(part for part in gisjoin.groups() if part)
    plain = _LONG.sub("", code, count=1)
    return plain[:_BLOCK_GROUP] + plain[_BLOCK_GROUP + 1 :] if len(plain) == _GEOCODE else plain
