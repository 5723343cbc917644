"""The private files of offending keys and records, written only when the operator asks for them."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from censafe.errors import StorageError
from censafe.model.engine import fetch
from censafe.model.safe_text import csv_cell
from censafe.population.files.relation import engine_errors

if TYPE_CHECKING:
    from censafe.population.households.validation import Check

EXAMPLES = 1000  # of a rule
_HEADER = ("FILE", "COLUMN", "RULE", "MAFID")


def write_examples(path: Path, checks: Iterable[Check], *, first: bool) -> None:
    """CONFIDENTIAL. Write MAFIDs of offending rows to a file that only its owner can read."""
    with _private_file(path, new=first) as stream:
        counts = Counter(tuple(row[:3]) for row in csv.reader(stream))
        writer = csv.writer(stream)
        if not counts:
            writer.writerow(_HEADER)
        for check in checks:
            writer.writerows(_offenders(check, counts))


@contextmanager
def _private_file(path: Path, *, new: bool) -> Iterator[TextIO]:
    """A file that only its owner can read, which may be there already unless it must be new."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_EXCL if new else 0)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "r+", encoding="utf-8", newline="") as stream:
            os.fchmod(stream.fileno(), 0o600)
            yield stream
    except FileExistsError:
        raise StorageError(
            f"{path}: the file of examples already exists and will not be overwritten; name a new file, or remove this one"
        ) from None
    except OSError:
        raise StorageError(
            f"{path}: the file of examples cannot be written; name a file in a folder that you can write to"
        ) from None


def _offenders(check: Check, counts: Counter[tuple[str, ...]]) -> list[tuple[str, ...]]:
    finding = check.finding
    key = (finding.file, finding.column, finding.rule)
    room = EXAMPLES - counts[key]
    if check.offenders is None or room <= 0:
        return []
    table = check.offenders
    with engine_errors("examples"):
        keys = fetch(table.filter(table.MAFID.notnull()).select("MAFID").distinct().limit(room))
    return [(*key, csv_cell(str(mafid))) for mafid in keys["MAFID"].to_pylist()]


def write_rows(path: Path, what: str, rows: Iterable[tuple[str, str, str, str | int]]) -> None:
    """CONFIDENTIAL. Write offending records, or their numbers from 1 below the header, to a file that only its owner can read.

    Args:
        what: name of the last column.
        rows: file, column, rule, and the record or its number.
    """
    with _private_file(path, new=True) as stream:
        writer = csv.writer(stream)
        if what == "ROW":
            writer.writerow(("CONFIDENTIAL: rows of records that break a rule",))
        writer.writerow((*_HEADER[:-1], what))
        writer.writerows(rows)
