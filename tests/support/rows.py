"""Rows of the text tables that the program writes."""

import csv
from pathlib import Path


def csv_rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def piped_rows(path: Path) -> list[dict[str, str]]:
    return csv_rows(path, "|")
