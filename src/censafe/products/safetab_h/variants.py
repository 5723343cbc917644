"""PUBLIC FACTS. The table variants of SafeTab-H, and which one a group gets from its published total."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.model import TableVariant

__all__ = [
    "TABLE_CLASSES",
    "HouseholdTable",
    "TableClass",
    "household_tables",
    "joint_cell",
    "joint_cells",
    "stat_levels",
]

TableClass = Literal["t3", "t4"]
TABLE_CLASSES: Final[tuple[TableClass, ...]] = ("t3", "t4")


@dataclass(frozen=True, eq=False)
class HouseholdTable:
    """One table of the Detailed DHC-B.

    Args:
        variant: name and measured cells, over the joint cells of HOUSEHOLD_TYPE and TEN; labels are the numbers
            of the data cells.
        table_class: ``t3`` household type, ``t4`` tenure.
        stat_level: which groups get it.
    """

    variant: TableVariant
    table_class: TableClass
    stat_level: int

    @property
    def name(self) -> str:
        """For example ``T03002``."""
        return self.variant.name


@cache
def household_tables(table_class: TableClass) -> tuple[HouseholdTable, ...]:
    """The tables of a class by stat level.

    Example:
        >>> [(table.name, table.variant.cells) for table in household_tables("t4")]
        [('T04001', ('0',)), ('T04002', ('1', '2', '3'))]
    """
    found = [_table(entry) for entry in _definitions()["table"] if entry["class"] == table_class]
    return tuple(sorted(found, key=lambda table: table.stat_level))


@cache
def joint_cells() -> int:
    """Number of joint cells of HOUSEHOLD_TYPE and TEN, tenure fastest: the most detailed counts of a group.

    Example:
        >>> joint_cells()
        20
    """
    return len(_joint())


def joint_cell(household_type: Any, tenure: Any) -> Any:
    """Joint cell of a household, for numbers, arrays or columns of the engine.

    Example:
        >>> joint_cell(1, 1), joint_cell(5, 4)
        (0, 19)
    """
    types, tenures = (column["codes"] for column in _definitions()["column"])
    return (household_type - types[0]) * len(tenures) + tenure - tenures[0]


def stat_levels(
    totals: NDArray[np.int64], thresholds: Sequence[int], table_class: TableClass
) -> NDArray[np.int8]:
    """Stat level of groups by their published totals: the number of thresholds that a total reaches.

    Args:
        totals: T1 counts, noisy and public.
        thresholds: not decreasing; the first three count for ``t3``, the only one for ``t4``.
        table_class: ``t3`` or ``t4``.

    Raises:
        ValueError: too few thresholds, or a decreasing one.

    Source: SafeTab-H code 3.0.0 (``>=``; the paper writes ``>``).

    Example:
        >>> stat_levels(np.array([-1, 5, 6]), (0, 6, 9), "t3").tolist()
        [0, 1, 2]
    """
    most = len(household_tables(table_class)) - 1
    used = list(thresholds[:most])
    if len(used) < most or used != sorted(used):
        raise ValueError(f"{table_class} needs {most} thresholds, none below the one before")
    return np.searchsorted(np.array(used, dtype=np.int64), totals, side="right").astype(np.int8)


@cache
def _definitions() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text(encoding="utf-8"))


@cache
def _joint() -> tuple[dict[str, int], ...]:
    columns = _definitions()["column"]
    names = [column["name"] for column in columns]
    return tuple(
        dict(zip(names, codes, strict=True)) for codes in product(*(column["codes"] for column in columns))
    )


def _table(entry: dict[str, Any]) -> HouseholdTable:
    basis = entry["basis"]
    slot_of = {code: slot for slot, cell in enumerate(basis) for code in cell["codes"]}
    slots = np.array([slot_of[cell[entry["column"]]] for cell in _joint()], dtype=np.int16)
    cells = tuple(str(cell["cell"]) for cell in basis)
    return HouseholdTable(TableVariant(entry["name"], cells, slots), entry["class"], entry["stat_level"])
