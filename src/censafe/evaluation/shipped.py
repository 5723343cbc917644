"""Data files that ship with evaluations."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final


def shipped_rows(name: str) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    return list(csv.DictReader(_text(name).splitlines()))


def shipped_document(name: str) -> dict[str, Any]:
    """A TOML file."""
    return tomllib.loads(_text(name))


def _text(name: str) -> str:
    return resources.files("censafe.evaluation").joinpath("data", name).read_text(encoding="utf-8")


CODEBOOK: Final[Mapping[str, tuple[str, str]]] = {
    row["column"]: (row["meaning"], row["unit"]) for row in shipped_rows("codebook.csv")
}
"""Meaning and unit by column."""
