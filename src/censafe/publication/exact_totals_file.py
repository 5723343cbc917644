"""Exact totals of areas that the noisy measurement files cannot hold, such as those of states parted in two."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from censafe.errors import DataError, StorageError
from censafe.model.spreadsheets import csv_text
from censafe.publication.atomic import atomic_text

__all__ = ["ExactTotal", "read_exact_totals", "write_exact_totals"]

_COLUMNS: Final = ("histogram", "level", "geocode", "name", "value")
_NEEDED: Final = ("geocode", "value")
_NAMED: Final = 5


@dataclass(frozen=True)
class ExactTotal:
    """The total of one standard geounit.

    Args:
        geocode: of the geounit.
        value: records in it.
        histogram: that counts them; empty for any.
        level: of the geounit; empty for any.
        name: of the geounit, for people.
    """

    geocode: str
    value: int
    histogram: str = ""
    level: str = ""
    name: str = ""


def write_exact_totals(path: Path, totals: Sequence[ExactTotal]) -> None:
    """Write totals as CSV with the columns histogram, level, geocode, name and value.

    Args:
        path: final name.
        totals: in the order of the rows.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    rows = [[getattr(one, name) for name in _COLUMNS] for one in totals]
    atomic_text(path, csv_text([_COLUMNS, *rows]))


def read_exact_totals(path: Path) -> tuple[ExactTotal, ...]:
    """Read totals from CSV with a header.

    Args:
        path: a file with the columns ``geocode`` and ``value``; ``name``, ``histogram`` and ``level`` may be there, too.

    Raises:
        DataError: a column is missing, a value is no whole number of 0 or more, or a geounit is there twice.
        StorageError: the file cannot be opened.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            rows, header = list(reader), set(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: the table of totals cannot be read as text") from error
    if not set(_NEEDED) <= header:
        raise DataError(
            f"{path}: a table of totals has a header with geocode and value (and name), and a row a geounit"
        )
    wrong = [row["geocode"] for row in rows if not (row["value"] or "").strip().isdecimal()]
    keys = [(row.get("histogram"), row.get("level"), row["geocode"]) for row in rows]
    twice = sorted({key[2] for key in keys if keys.count(key) > 1})
    for what, codes in (
        ("values that are no whole numbers of 0 or more", wrong),
        ("geounits there twice", twice),
    ):
        if codes:
            raise DataError(
                f"{path}: {what} ({len(codes)}), such as {', '.join(codes[:_NAMED])}; fix: correct the table"
            )
    return tuple(
        ExactTotal(
            row["geocode"].strip(),
            int(row["value"]),
            (row.get("histogram") or "").strip(),
            (row.get("level") or "").strip(),
            (row.get("name") or "").strip(),
        )
        for row in rows
    )
