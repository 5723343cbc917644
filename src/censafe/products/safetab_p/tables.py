"""PUBLIC FACTS. The table variants of SafeTab-P: the total, and sex by 4, 9 or 23 ages."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from itertools import pairwise, product
from typing import Any

import numpy as np

from censafe.model import TableVariant

__all__ = ["AGE_COLUMNS", "TOTAL", "most_detailed_cells", "table_variants"]

AGE_COLUMNS = ("SEX", "AGESTART", "AGEEND")
TOTAL = "*|*|*"
"""Label of the total; other labels are SEX, AGESTART and AGEEND joined by bars."""


@cache
def table_variants() -> tuple[TableVariant, TableVariant, TableVariant, TableVariant]:
    """The variants of stat level 0 to 3, over the 46 most detailed cells.

    Example:
        >>> [(variant.name, len(variant.cells)) for variant in table_variants()]
        [('total', 1), ('sex_age4', 8), ('sex_age9', 18), ('sex_age23', 46)]
        >>> table_variants()[1].cells[:4]
        ('1|0|17', '1|18|44', '1|45|64', '1|65|115')
    """
    total, few, some, all_ages = (_variant(entry) for entry in _definitions()["variant"])
    return total, few, some, all_ages


@cache
def most_detailed_cells() -> int:
    """Number of most detailed cells of a group: sex by 23 ages.

    Example:
        >>> most_detailed_cells()
        46
    """
    definitions = _definitions()
    return len(definitions["sexes"]) * (len(definitions["most_detailed"]) + 1)


@cache
def _definitions() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text(encoding="utf-8"))


def _variant(entry: dict[str, Any]) -> TableVariant:
    definitions, cuts = _definitions(), entry["cuts"]
    starts = [0, *definitions["most_detailed"]]
    if not cuts:
        return TableVariant(entry["name"], (TOTAL,), np.zeros(most_detailed_cells(), dtype=np.int16))
    if not set(cuts) <= set(starts):
        raise ValueError(f"tables.toml: the bins of {entry['name']} must be unions of the most detailed ones")
    bins = list(pairwise([0, *cuts, definitions["last_age"] + 1]))
    cells = tuple(f"{sex}|{start}|{stop - 1}" for sex, (start, stop) in product(definitions["sexes"], bins))
    of_age = np.searchsorted(np.array(cuts), starts, side="right")
    slots = np.concatenate([sex * len(bins) + of_age for sex in range(len(definitions["sexes"]))])
    return TableVariant(entry["name"], cells, slots.astype(np.int16))
