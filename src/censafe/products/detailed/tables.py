"""PUBLIC FACTS. The tables of population groups: SafeTab-P's totals and sex by 4, 9 or 23 ages, SafeTab-H's by household type and tenure, read and checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.model import TableVariant
from censafe.model.cells.levels import LevelSets
from censafe.model.cells.lines import ConditionReader, lines_below, read_lines
from censafe.model.entries import Problems, require_keys
from censafe.model.groups import GroupLayout, GroupTable, ProductTables, Shell, ShellCell
from censafe.model.parsing import parse_toml
from censafe.model.schema import Attribute, Schema
from censafe.products.configuration.source import ShippedConfig
from censafe.products.detailed.config import CLASSES, Product

TableClass = Literal["t3", "t4"]
TABLE_CLASSES: Final[tuple[TableClass, ...]] = ("t3", "t4")
_AGES: Final = ("AGESTART", "AGEEND", "SEX")
_Groups = Mapping[str, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True, eq=False)
class DetailedTables:
    """Everything that a product's file of tables defines.

    Args:
        groups: by column, the groups of codes that the most detailed cells tell apart; the last column is fastest.
        variants: measured cells over the most detailed ones, by table and stat level.
        published: the files, and the measured cells that every written cell sums.
    """

    groups: _Groups
    variants: Mapping[str, tuple[TableVariant, ...]]
    published: ProductTables


def variants_of(key: str) -> tuple[TableVariant, ...]:
    """The measured cells of tables by stat level.

    Example:
        >>> [(variant.name, len(variant.cells)) for variant in variants_of("t1t2")]
        [('T01001', 1), ('T02001', 8), ('T02002', 18), ('T02003', 46)]
        >>> variants_of("t4")[1].cells
        ('Owned with a mortgage or a loan', 'Owned free and clear', 'Renter occupied')
    """
    return _shipped("safetab-p" if key == "t1t2" else "safetab-h").variants[key]


def most_detailed_cells(product: Product) -> int:
    """Number of most detailed cells of a group: sex by 23 ages, or household type by tenure.

    Example:
        >>> most_detailed_cells("safetab-p"), most_detailed_cells("safetab-h")
        (46, 20)
    """
    return int(np.prod([len(groups) for groups in _shipped(product).groups.values()]))


def joint_cell(household_type: Any, tenure: Any) -> Any:
    """Most detailed cell of a household, for numbers, arrays or columns of the engine.

    Example:
        >>> joint_cell(1, 1), joint_cell(5, 4)
        (0, 19)
    """
    types, tenures = _shipped("safetab-h").groups.values()
    return (household_type - types[0][0]) * len(tenures) + tenure - tenures[0][0]


def stat_levels(
    totals: NDArray[np.int64], thresholds: Sequence[int], table_class: TableClass
) -> NDArray[np.int8]:
    """Stat level of groups by their published totals: the number of thresholds that a total reaches.

    Source: SafeTab-H code 3.0.0 (``>=``; the paper writes ``>``).

    Example:
        >>> stat_levels(np.array([-1, 5, 6]), (0, 6, 9), "t3").tolist()
        [0, 1, 2]
    """
    most = len(variants_of(table_class)) - 1
    used = list(thresholds[:most])
    if len(used) < most or used != sorted(used):
        raise ValueError(f"{table_class} needs {most} thresholds, none below the one before")
    return np.searchsorted(np.array(used, dtype=np.int64), totals, side="right").astype(np.int8)


def tables_of(product: Product) -> ProductTables:
    """Files and cells of a product's tables.

    Example:
        >>> [(table.key, table.sizes, table.layouts[-1].path) for table in tables_of("safetab-h").tables]
        [('t3', (1, 2, 4, 5), 't3/T03004/T03004.csv'), ('t4', (1, 3), 't4/T04002/T04002.csv')]
    """
    return _shipped(product).published


def measured_table(key: str) -> GroupTable:
    """The tables of either product that are measured under a key; KeyError where there are none.

    Example:
        >>> measured_table("t4").title
        'Tenure'
    """
    return {table.key: table for product in CLASSES for table in tables_of(product).tables}[key]


def outline(shipped: ShippedConfig) -> tuple[str, ...]:
    """Every table with its universe, and the measured cells of a population group by its stat level.

    Example:
        >>> from censafe.products.configuration.source import get_shipped
        >>> outline(get_shipped("ddhca"))[1]
        '  measured cells of a population group, by its stat level: 0: 1, 1: 8, 2: 18, 3: 46'
    """
    lines = []
    for table in tables_of(cast(Product, shipped.product)).tables:
        sizes = ", ".join(f"{level}: {size}" for level, size in zip(table.shells, table.sizes, strict=True))
        lines += [
            f"Tables {table.key}: {table.title}. Universe: {table.universe}",
            f"  measured cells of a population group, by its stat level: {sizes}",
        ]
    return tuple(lines)


@cache
def _shipped(product: Product) -> DetailedTables:
    return parse_tables(table_text(product))


def table_text(product: Product) -> str:
    """The tables of a product as they ship in its folder."""
    folder = "persons" if product == "safetab-p" else "households"
    return files("censafe.products.detailed").joinpath(folder, "tables.toml").read_text(encoding="utf-8")


def parse_tables(text: str, place: str = "tables.toml") -> DetailedTables:
    """Build and check what a file of tables defines."""
    document = parse_toml(text, place)
    try:
        return _built(document)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{place}: a value is not of the kind that its key needs: {error}") from error


def _built(document: Mapping[str, Any]) -> DetailedTables:
    require_keys(document, "the file", ("product", "columns", "tables"))
    groups: dict[str, tuple[tuple[int, ...], ...]] = {}
    for name, column in document["columns"].items():
        require_keys(column, f"column {name}", ("codes", "cells"))
        problems = Problems()
        groups[name] = LevelSets(column["codes"], {}).read_groups(column["cells"], "cells", problems)
        problems.raise_if_any(f"column {name}")
        codes = [code for own in groups[name] for code in own]
        if codes != list(range(codes[0], codes[0] + len(codes))):
            raise ConfigError(f"column {name}: cells must be consecutive codes, in ascending order")
    schema = Schema(
        "records", tuple(Attribute(name, column["codes"]) for name, column in document["columns"].items())
    )
    families = [_Family(entry, groups, schema) for entry in document["tables"]]
    tables = ProductTables(document["product"], tuple(family.table for family in families))
    if tables.product == "safetab-h" and tables.keys != TABLE_CLASSES:
        raise ConfigError(f"tables: the keys must be {', '.join(TABLE_CLASSES)}, in this order")
    return DetailedTables(groups, {family.table.key: family.variants for family in families}, tables)


class _Family:
    """Tables that are measured together: reads their lines and files, and which lines are measured at every stat level.

    Attributes:
        table: the files, with the measured cells that every written line sums.
        variants: the measured cells, by stat level.
    """

    def __init__(self, entry: Mapping[str, Any], groups: _Groups, schema: Schema) -> None:
        self._where = f"table {entry.get('key', '?')}"
        require_keys(entry, self._where, ("key", "names", "title", "universe", "lines", "files"))
        self._lines = read_lines(self._where, entry["lines"], {}, ConditionReader(self._where, schema))
        first_codes = np.ix_(*([own[0] for own in groups[name]] for name in schema.names))
        cells = np.arange(schema.cells).reshape(schema.shape)[first_codes].reshape(-1)
        self._inside = np.array([schema.cells_in(line.when)[cells] for line in self._lines])
        for number, line in enumerate(self._lines):
            parted = any(
                not codes.isdisjoint(own) and not codes.issuperset(own)
                for column, codes in line.when.items()
                for own in groups[column]
            )
            if parted or not self._inside[number].any():
                raise ConfigError(
                    f"{self._where}: line {number} ({line.label}) must hold most detailed cells, and no part of one"
                )
        self._finest = self._finest_lines(entry["files"])
        layouts = tuple(self._layout(file, f"{entry['key'].upper()}_DATA_CELL") for file in entry["files"])
        if len({layout.path for layout in layouts}) < len(layouts):
            raise ConfigError(f"{self._where}: two files have the same name")
        self.table = GroupTable(entry["key"], entry["names"], entry["title"], entry["universe"], layouts)
        self.variants = tuple(
            TableVariant(
                self.table.shells[level].table,
                tuple(self._lines[number].label for number in finest),
                self._inside[finest].argmax(axis=0).astype(np.int16),
            )
            for level, finest in enumerate(self._finest)
        )

    def _finest_lines(self, entries: Sequence[Mapping[str, Any]]) -> list[list[int]]:
        """Numbers of the measured lines by stat level: those that its files write, with none written below them."""
        written: dict[int, set[int]] = defaultdict(set)
        for file in entries:
            where = f"{self._where}, file {file.get('name', '?')}"
            require_keys(file, where, ("name", "folder", "columns", "shells"))
            for shell in file["shells"]:
                require_keys(shell, where, ("level", "table", "title", "lines"))
                written[shell["level"]].update(self._numbers(shell))
        if sorted(written) != list(range(len(written))):
            raise ConfigError(
                f"{self._where}: the files must have tables for the stat levels 0 to {len(written) - 1}, not {sorted(written)}"
            )
        finest = []
        for level in range(len(written)):
            numbers = sorted(written[level])
            chosen = [self._lines[number] for number in numbers]
            finest.append([numbers[place] for place in range(len(chosen)) if not lines_below(chosen, place)])
            if (self._inside[finest[level]].sum(axis=0) != 1).any():
                raise ConfigError(
                    f"{self._where}: at stat level {level} the lines with none below them, {finest[level]}, must hold every most detailed "
                    "cell once"
                )
        return finest

    def _numbers(self, shell: Mapping[str, Any]) -> tuple[int, ...]:
        """Of the lines that a table writes."""
        problems = Problems()
        numbers = LevelSets(len(self._lines), {}).read(shell["lines"], "lines", problems)
        problems.raise_if_any(f"{self._where}, {shell['table']}")
        return numbers

    def _layout(self, file: Mapping[str, Any], numbered: str) -> GroupLayout:
        columns = tuple(file["columns"])
        if not {*columns} <= {*_AGES, numbered}:
            raise ConfigError(
                f"{self._where}, file {file['name']}: columns must be among {', '.join((*_AGES, numbered))}"
            )
        shells: dict[int, Shell] = {}
        for entry in file["shells"]:
            finest, where = self._finest[entry["level"]], f"{entry['table']} at stat level {entry['level']}"
            cells = tuple(self._cell(number, finest, columns, where) for number in self._numbers(entry))
            if {member for cell in cells for member in cell.members} != {*range(len(finest))}:
                raise ConfigError(f"{where} must write sums of all the measured lines {finest}")
            if len({cell.fields for cell in cells}) < len(cells):
                raise ConfigError(f"{where} has two cells with the same entries in the file")
            shells[entry["level"]] = Shell(entry["table"], entry["title"], len(finest), cells)
        if len(shells) < len(file["shells"]):
            raise ConfigError(f"{self._where}, file {file['name']}: two tables of one stat level")
        return GroupLayout(file["name"], file["folder"], columns, shells)

    def _cell(self, number: int, finest: list[int], columns: tuple[str, ...], where: str) -> ShellCell:
        line, measured = self._lines[number], self._inside[finest]
        members = np.flatnonzero((measured <= self._inside[number]).all(axis=1))
        if not np.array_equal(measured[members].any(axis=0), self._inside[number]):
            raise ConfigError(
                f"{where}: line {number} ({line.label}) is no sum of the measured lines {finest}"
            )
        sexes, ages = (sorted(line.when.get(column, ())) for column in ("SEX", "QAGE"))
        if len(sexes) > 1 or (ages and ages[-1] - ages[0] >= len(ages)):
            raise ConfigError(
                f"{where}: line {number} ({line.label}) must be of one sex or all, and of ages without a gap"
            )
        sex = str(sexes[0]) if sexes else "*"
        start, stop = (str(ages[0]), str(ages[-1])) if ages else ("*", "*")
        entries = dict(zip(_AGES, (start, stop, sex), strict=True))
        code = f"{sex}:{start}-{stop}" if ages else f"{sex}:*" if sexes else "*"
        return ShellCell(
            code=code if entries.keys() >= set(columns) else str(number),
            label=line.label,
            fields=tuple(entries.get(column, str(number)) for column in columns),
            members=tuple(members.tolist()),
            ages=(ages[0], ages[-1]) if ages else None,
            sex="" if sex == "*" else sex,
        )
