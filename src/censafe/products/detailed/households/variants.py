"""PUBLIC FACTS. The tables of SafeTab-H, and which one a group gets from its published total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.model import TableVariant
from censafe.model.entries import require_keys
from censafe.model.groups.cells import GroupLayout, GroupTable, ProductTables, Shell, ShellCell
from censafe.products.detailed.table_files import FILE, check_table, parse_tables, table_text

TableClass = Literal["t3", "t4"]
TABLE_CLASSES: Final[tuple[TableClass, ...]] = ("t3", "t4")


@dataclass(frozen=True, eq=False)
class HouseholdTables:
    """Everything that SafeTab-H's file defines.

    Args:
        columns: codes of HOUSEHOLD_TYPE and TEN, in the order of the joint cells.
        measured: tables by class and stat level, each with its measured cells over the joint cells; labels are the numbers of
            the data cells.
    """

    columns: Mapping[str, tuple[int, ...]]
    measured: Mapping[str, tuple[TableVariant, ...]]
    published: ProductTables


def household_tables(table_class: TableClass) -> tuple[TableVariant, ...]:
    """The tables of a class by stat level.

    Example:
        >>> [(table.name, table.cells) for table in household_tables("t4")]
        [('T04001', ('0',)), ('T04002', ('1', '2', '3'))]
    """
    return _shipped().measured[table_class]


def joint_cells() -> int:
    """Number of joint cells of HOUSEHOLD_TYPE and TEN, tenure fastest: the most detailed counts of a group.

    Example:
        >>> joint_cells()
        20
    """
    types, tenures = _shipped().columns.values()
    return len(types) * len(tenures)


def joint_cell(household_type: Any, tenure: Any) -> Any:
    """Joint cell of a household, for numbers, arrays or columns of the engine.

    Example:
        >>> joint_cell(1, 1), joint_cell(5, 4)
        (0, 19)
    """
    types, tenures = _shipped().columns.values()
    return (household_type - types[0]) * len(tenures) + tenure - tenures[0]


def stat_levels(
    totals: NDArray[np.int64], thresholds: Sequence[int], table_class: TableClass
) -> NDArray[np.int8]:
    """Stat level of groups by their published totals: the number of thresholds that a total reaches.

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


def published_tables() -> ProductTables:
    """The files of SafeTab-H, and the measured cells that every written cell sums.

    Example:
        >>> [(table.key, table.sizes, table.layouts[-1].path) for table in published_tables().tables]
        [('t3', (1, 2, 4, 5), 't3/T03004/T03004.csv'), ('t4', (1, 3), 't4/T04002/T04002.csv')]
    """
    return _shipped().published


def parse_household_tables(text: str, place: str = FILE) -> HouseholdTables:
    """Build and check tables of one column."""
    return parse_tables(text, place, _built)


@cache
def _shipped() -> HouseholdTables:
    return parse_household_tables(table_text(__package__))


def _built(document: Mapping[str, Any]) -> HouseholdTables:
    require_keys(document, "the file", ("product", "column", "class", "table"))
    for column in document["column"]:
        require_keys(column, "column", ("name", "codes"))
        if column["codes"] != list(range(column["codes"][0], column["codes"][0] + len(column["codes"]))):
            raise ConfigError(f"column {column['name']}: codes must be consecutive numbers")
    columns = {column["name"]: tuple(column["codes"]) for column in document["column"]}
    for entry in document["table"]:
        where = f"table {entry.get('name', '?')}"
        keys = ("name", "folder", "title", "class", "stat_level", "measured", "written")
        require_keys(entry, where, keys)
        if entry["class"] not in TABLE_CLASSES:
            raise ConfigError(f"{where}: class must be one of {', '.join(TABLE_CLASSES)}")
    measured, published = {}, []
    for family in document["class"]:
        table, variants = _class(family, document["table"], columns)
        check_table(table, variants)
        measured[table.key] = variants
        published.append(table)
    if tuple(table.key for table in published) != TABLE_CLASSES:
        raise ConfigError(f"class: the classes must be {', '.join(TABLE_CLASSES)}, in this order")
    return HouseholdTables(columns, measured, ProductTables(document["product"], tuple(published)))


def _class(
    family: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], columns: Mapping[str, tuple[int, ...]]
) -> tuple[GroupTable, tuple[TableVariant, ...]]:
    where = f"class {family.get('key', '?')}"
    require_keys(family, where, ("key", "names", "title", "universe", "column", "cell_column", "labels"))
    if family["column"] not in columns:
        raise ConfigError(f"{where}: column must be one of {', '.join(columns)}")
    own = sorted(
        (entry for entry in entries if entry["class"] == family["key"]), key=lambda entry: entry["stat_level"]
    )
    layouts = tuple(_layout(entry, family["cell_column"], family["labels"]) for entry in own)
    table = GroupTable(family["key"], family["names"], family["title"], family["universe"], layouts)
    return table, tuple(_variant(entry, family["column"], columns) for entry in own)


def _layout(entry: Mapping[str, Any], cell_column: str, labels: Sequence[str]) -> GroupLayout:
    where = f"table {entry['name']}"
    positions = {cell["cell"]: position for position, cell in enumerate(entry["measured"])}
    cells = []
    for cell in entry["written"]:
        require_keys(cell, f"{where}, written", ("cell", "sum"))
        number, summed = cell["cell"], cell["sum"]
        if not 0 <= number < len(labels):
            raise ConfigError(
                f"{where}: written cell {number} has no label; labels are 0 to {len(labels) - 1}"
            )
        unknown = [one for one in summed if one not in positions]
        if unknown:
            raise ConfigError(
                f"{where}: written cell {number} sums {unknown}; measured are {list(positions)}"
            )
        members = tuple(positions[one] for one in summed)
        cells.append(ShellCell(str(number), labels[number], (str(number),), members))
    shell = Shell(entry["name"], entry["title"], len(positions), tuple(cells))
    return GroupLayout(entry["name"], entry["folder"], (cell_column,), {entry["stat_level"]: shell})


def _variant(entry: Mapping[str, Any], column: str, columns: Mapping[str, tuple[int, ...]]) -> TableVariant:
    where = f"table {entry['name']}"
    for cell in entry["measured"]:
        require_keys(cell, f"{where}, measured", ("cell", "codes"))
    numbers = [cell["cell"] for cell in entry["measured"]]
    gathered = [code for cell in entry["measured"] for code in cell["codes"]]
    if len(set(numbers)) < len(numbers) or sorted(gathered) != sorted(columns[column]):
        raise ConfigError(
            f"{where}: every code of {column} must be in exactly one measured cell, each named once"
        )
    slot_of = {code: slot for slot, cell in enumerate(entry["measured"]) for code in cell["codes"]}
    position = list(columns).index(column)
    slots = np.array([slot_of[codes[position]] for codes in product(*columns.values())], dtype=np.int16)
    return TableVariant(entry["name"], tuple(map(str, numbers)), slots)
