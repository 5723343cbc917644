"""Tables of the levels of an attribute, in a configuration or shipped as CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

from censafe.model.cells.levels import LevelTable, column_values
from censafe.model.entries import Problems
from censafe.products.configuration.source import value_text

DATA: Final = resources.files("censafe.products.topdown.configuration").joinpath("data")
_FILE: Final = re.compile(r"[A-Za-z0-9_-]+\.csv", re.ASCII)


def schema_text(name: str) -> str:
    """Text of a shipped file of schemas or levels; raises OSError where there is none."""
    return DATA.joinpath(name).read_text(encoding="utf-8")


def read_level_table(raw: object, key: str, levels: int, problems: Problems) -> LevelTable:
    """The table of an attribute: columns with one value for every level, or a shipped CSV file with one row for every level."""
    if isinstance(raw, Mapping):
        columns = {title: column_values(values) for title, values in raw.items()}
    else:
        columns = _file_columns(raw, key, problems)
    counted = tuple(map(str, range(levels)))
    for title, values in columns.items():
        if len(values) != levels:
            problems.add(f"{key}.{title}", f"give {levels} values, one for each level")
        elif title == "level" and values != counted:
            problems.add(f"{key}.{title}", f"the column level must count from 0 to {levels - 1}")
    return columns


def _file_columns(name: object, key: str, problems: Problems) -> dict[str, tuple[str, ...]]:
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        problems.add(
            key,
            f"{value_text(name)} is neither columns, such as {{ size = [1, 2] }}, nor the name of a shipped table",
        )
        return {}
    try:
        titles, *rows = csv.reader(schema_text(name).splitlines())
    except OSError:
        problems.add(key, f"there is no shipped table {name}; give columns, such as {{ size = [1, 2] }}")
        return {}
    return {title: tuple(row[place] for row in rows) for place, title in enumerate(titles)}
