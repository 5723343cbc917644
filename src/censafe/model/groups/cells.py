"""Tables of population groups as values: what is measured at each stat level, and what is written from it.

The tables themselves are data of the products, which build these values and hand them to estimation and publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class ShellCell:
    """One written cell of a table.

    Args:
        ages: first and last age; None where the cell is of all ages.
    """

    code: str
    label: str
    fields: tuple[str, ...]
    members: tuple[int, ...]
    ages: tuple[int, int] | None = None
    sex: str = ""


@dataclass(frozen=True)
class Shell:
    """The cells of a group at one stat level."""

    table: str
    title: str
    basis: int
    cells: tuple[ShellCell, ...]


@dataclass(frozen=True)
class GroupLayout:
    """One file of the Bureau's layout.

    Args:
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


@dataclass(frozen=True)
class GroupTable:
    """Tables that are measured together: a group gets the cells of its stat level, measured once."""

    key: str
    names: str
    title: str
    universe: str
    layouts: tuple[GroupLayout, ...]

    @cached_property
    def shells(self) -> Mapping[int, Shell]:
        """The most detailed cells of every stat level, in order."""
        shells = {level: shell for layout in self.layouts for level, shell in layout.shells.items()}
        return dict(sorted(shells.items()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of measured cells of a group, by stat level."""
        return tuple(shell.basis for shell in self.shells.values())

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of rows that a group has in all files together, by stat level."""
        return tuple(
            sum(len(layout.shells[level].cells) for layout in self.layouts if level in layout.shells)
            for level in self.shells
        )


@dataclass(frozen=True)
class ProductTables:
    """All tables of population groups of one product."""

    product: str
    tables: tuple[GroupTable, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the tables, in order."""
        return tuple(table.key for table in self.tables)

    @property
    def layouts(self) -> tuple[GroupLayout, ...]:
        """Of all files, in order."""
        return tuple(layout for table in self.tables for layout in table.layouts)

    def table(self, key: str) -> GroupTable:
        """The table with a key; KeyError where there is none."""
        return {table.key: table for table in self.tables}[key]

    def measured_by(self, query: str) -> str:
        """Key of the table that a query of a plan measures: the one of its name, or the only one."""
        return query if query in self.keys else self.tables[0].key
