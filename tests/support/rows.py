"""Rows of the text tables that the program writes."""

import csv
from pathlib import Path


def csv_rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def piped_rows(path: Path) -> list[dict[str, str]]:
    return csv_rows(path, "|")


def replace_text(path: Path, old: str, new: str) -> None:
    """Change the first place of a text file that has these words; without one the test is wrong."""
    text = path.read_text()
    if old not in text:
        raise LookupError(old)
    path.write_text(text.replace(old, new, 1))
