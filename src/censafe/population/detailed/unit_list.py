"""Public list of areas without housing units, which get no statistics of households."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import numpy as np

from censafe.errors import DataError, StorageError
from censafe.geography.areas import Areas

__all__ = ["LIST_NAME", "without_listed"]

LIST_NAME: Final = "areas-without-units.csv"
_COLUMN: Final = "GEOID"
_BLOCK: Final = 15
_LENGTHS: Final = {2: "state", 5: "county", 11: "tract", 12: "block group", _BLOCK: "block"}


def without_listed(areas: Areas, path: Path) -> Areas:
    """The areas without the blocks that a list names, alone or by an area that holds them.

    Args:
        areas: of the run.
        path: comma-separated, with a column ``GEOID`` of states, counties, tracts, block groups or blocks, leading zeros included.
            Areas outside the run are passed over.

    Raises:
        DataError: no such column, or codes of another form.
        StorageError: the file cannot be read.
    """
    included = np.ones(areas.blocks, bool)
    codes = _codes(path)
    for length in _LENGTHS:
        listed = [int(code) for code in codes if len(code) == length]
        if listed:
            included &= ~np.isin(areas.keys // 10 ** (_BLOCK - length), np.array(listed, np.int64))
    return areas.restrict(included)


def _codes(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if _COLUMN not in (reader.fieldnames or ()):
                raise DataError(
                    f"{path.name}: no column {_COLUMN}; allowed: comma-separated, with a header; fix: name the column {_COLUMN}"
                )
            codes = [(row[_COLUMN] or "").strip() for row in reader]
    except OSError as problem:
        raise StorageError(f"{path}: cannot be read ({problem.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{path.name}: not a comma-separated file in UTF-8; fix: write it again") from None
    wrong = sum(not (code.isascii() and code.isdecimal() and len(code) in _LENGTHS) for code in codes)
    if wrong:
        allowed = ", ".join(f"{length} digits ({name})" for length, name in _LENGTHS.items())
        raise DataError(
            f"{path.name}: {_COLUMN}: {wrong} rows with codes of another form; allowed: {allowed}; fix: give leading zeros"
        )
    return codes
