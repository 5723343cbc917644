"""The private file of offending records, written only when the operator asks for it."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path

from censafe.model.spreadsheets import csv_cell
from censafe.population.examples import examples_error

__all__ = ["EXAMPLES", "write_records"]

EXAMPLES = 1000  # records a rule
_HEADER = ("FILE", "COLUMN", "RULE", "RECORD")


def write_records(
    path: Path, label: str, rules: Mapping[int, tuple[str, str]], examples: Mapping[int, list[str]]
) -> None:
    """CONFIDENTIAL. Write offending records to a file that only its owner can read.

    Args:
        path: the file; made with mode 0600, and never written over another.
        label: how messages call the input.
        rules: column and rule by fault bit.
        examples: records by fault bit.

    Raises:
        StorageError: the file is there already or cannot be written.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            os.fchmod(stream.fileno(), 0o600)
            writer = csv.writer(stream)
            writer.writerow(_HEADER)
            for bit, records in examples.items():
                writer.writerows((label, *rules[bit], csv_cell(record)) for record in records)
    except OSError as error:
        raise examples_error(path, error) from None
