"""Cells of the tables of population groups: what is measured at each stat level, and what is written from it.

Source: specification of SafeTab-P, section 5, and of SafeTab-H, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["AGE_CUTS", "GROUP_LAYOUTS", "GroupLayout", "Shell", "ShellCell", "basis_sizes"]

AGE_CUTS: Mapping[int, tuple[int, ...]] = {
    1: (18, 45, 65),
    2: (5, 18, 25, 35, 45, 55, 65, 75),
    3: (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
}
_OLDEST = 115
_SEXES = (("1", "Male"), ("2", "Female"))


@dataclass(frozen=True)
class ShellCell:
    """One written cell of a table.

    Args:
        code: unique in its table.
        label: in words.
        fields: what stands in the cell columns of the Bureau's layout.
        members: positions of the measured cells that it is the sum of.
        ages: first and last age; None where the cell is of all ages.
        sex: ``1``, ``2``, or empty where the cell is of both.
    """

    code: str
    label: str
    fields: tuple[str, ...]
    members: tuple[int, ...]
    ages: tuple[int, int] | None = None
    sex: str = ""


@dataclass(frozen=True)
class Shell:
    """The cells of a group at one stat level.

    Args:
        table: the published table, for example ``T02001``.
        title: what it counts.
        basis: how many cells are measured.
        cells: what is written, in the order of the file.
    """

    table: str
    title: str
    basis: int
    cells: tuple[ShellCell, ...]


@dataclass(frozen=True)
class GroupLayout:
    """One file of the Bureau's layout.

    Args:
        name: of the file, without ``.csv``.
        folder: relative to the folder of the tables.
        cell_columns: headers between ITERATION_CODE and COUNT.
        shells: by stat level; groups of other stat levels have no rows in the file.
    """

    name: str
    folder: str
    cell_columns: tuple[str, ...]
    shells: Mapping[int, Shell]

    @property
    def path(self) -> str:
        """The file, relative to the folder of the tables."""
        return f"{self.folder}/{self.name}.csv"

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in the order of the file."""
        return ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", *self.cell_columns, "COUNT")


def basis_sizes(table: str) -> tuple[int, ...]:
    """Number of measured cells of a group, by stat level.

    Args:
        table: ``t1t2``, ``t3`` or ``t4``.

    Example:
        >>> basis_sizes("t1t2"), basis_sizes("t3"), basis_sizes("t4")
        ((1, 8, 18, 46), (1, 2, 4, 5), (1, 3))
    """
    shells = {level: shell for layout in GROUP_LAYOUTS[table] for level, shell in layout.shells.items()}
    return tuple(shells[level].basis for level in sorted(shells))


def _ages(level: int) -> list[tuple[int, int]]:
    return [(low, high - 1) for low, high in pairwise((0, *AGE_CUTS[level], _OLDEST + 1))]


def _age_words(low: int, high: int) -> str:
    if low == 0:
        return f"under {high + 1} years"
    if high == _OLDEST:
        return f"{low} years and over"
    return f"{low} years" if low == high else f"{low} to {high} years"


def _t1_shell(level: int) -> Shell:
    size = 2 * (len(AGE_CUTS[level]) + 1) if level else 1
    total = ShellCell("*", "Total", (), tuple(range(size)))
    return Shell("T01001", "Total population", size, (total,))


def _t2_shell(level: int) -> Shell:
    ages = _ages(level)
    cells: list[ShellCell] = []
    for position, (sex, words) in enumerate(_SEXES):
        first = position * len(ages)
        cells.append(
            ShellCell(f"{sex}:*", words, ("*", "*", sex), tuple(range(first, first + len(ages))), None, sex)
        )
        cells += [
            ShellCell(
                f"{sex}:{low}-{high}",
                f"{words}, {_age_words(low, high)}",
                (str(low), str(high), sex),
                (first + bin_,),
                (low, high),
                sex,
            )
            for bin_, (low, high) in enumerate(ages)
        ]
    return Shell(f"T0200{level}", f"Sex by age ({len(ages)} age groups)", 2 * len(ages), tuple(cells))


_T3_LABELS = (
    "Total households",
    "Family households",
    "Married couple family",
    "Other family",
    "Male householder, no spouse present",
    "Female householder, no spouse present",
    "Nonfamily households",
    "Householder living alone",
    "Householder not living alone",
)
_T4_LABELS = (
    "Occupied housing units",
    "Owned with a mortgage or a loan",
    "Owned free and clear",
    "Renter occupied",
)
# By stat level: number of measured cells, then written cell -> positions of the measured cells in it.
_T3: Mapping[int, tuple[int, Mapping[int, tuple[int, ...]]]] = {
    0: (1, {0: (0,)}),
    1: (2, {0: (0, 1), 1: (0,), 6: (1,)}),
    2: (4, {0: (0, 1, 2, 3), 1: (0, 1), 2: (0,), 3: (1,), 6: (2, 3), 7: (2,), 8: (3,)}),
    3: (
        5,
        {
            0: (0, 1, 2, 3, 4),
            1: (0, 1, 2),
            2: (0,),
            3: (1, 2),
            4: (1,),
            5: (2,),
            6: (3, 4),
            7: (3,),
            8: (4,),
        },
    ),
}
_T4: Mapping[int, tuple[int, Mapping[int, tuple[int, ...]]]] = {
    0: (1, {0: (0,)}),
    1: (3, {0: (0, 1, 2), 1: (0,), 2: (1,), 3: (2,)}),
}


def _household_layouts(
    family: str,
    title: str,
    labels: tuple[str, ...],
    shells: Mapping[int, tuple[int, Mapping[int, tuple[int, ...]]]],
) -> tuple[GroupLayout, ...]:
    layouts = []
    for level, (basis, written) in shells.items():
        name = f"T0{family}00{level + 1}"
        cells = tuple(
            ShellCell(str(code), labels[code], (str(code),), members) for code, members in written.items()
        )
        shell = Shell(name, f"{title} ({len(cells)} cells)", basis, cells)
        layouts.append(GroupLayout(name, f"t{family}/{name}", (f"T{family}_DATA_CELL",), {level: shell}))
    return tuple(layouts)


GROUP_LAYOUTS: Mapping[str, tuple[GroupLayout, ...]] = {
    "t1t2": (
        GroupLayout("t1", "t1", (), {level: _t1_shell(level) for level in range(4)}),
        GroupLayout("t2", "t2", ("AGESTART", "AGEEND", "SEX"), {level: _t2_shell(level) for level in (1, 2, 3)}),
    ),
    "t3": _household_layouts("3", "Household type", _T3_LABELS, _T3),
    "t4": _household_layouts("4", "Tenure", _T4_LABELS, _T4),
}  # fmt: skip
