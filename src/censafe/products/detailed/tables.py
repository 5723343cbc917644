"""PUBLIC FACTS. The tables of population groups: SafeTab-P's totals and sex by 4, 9 or 23 ages, SafeTab-H's by household type and tenure, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise, product
from typing import Any, Final, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.model import TableVariant
from censafe.model.entries import require_keys
from censafe.model.groups import GroupLayout, GroupTable, ProductTables, Shell, ShellCell
from censafe.model.parsing import parse_toml
from censafe.products.configuration.source import ShippedConfig
from censafe.products.detailed.config import CLASSES, Product

FILE = "tables.toml"
_T = TypeVar("_T")


def table_text(folder: str) -> str:
    """The tables of a product as they ship in its folder."""
    return files("censafe.products.detailed").joinpath(folder, FILE).read_text(encoding="utf-8")


def parse_tables(text: str, place: str, build: Callable[[dict[str, Any]], _T]) -> _T:
    """Parse definitions and build values from them."""
    document = parse_toml(text, place)
    try:
        return build(document)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{place}: a value is not of the kind that its key needs: {error}") from error


def check_table(table: GroupTable, variants: Sequence[TableVariant]) -> None:
    """Compare what is written with what is measured."""
    problems = list(_problems(table, variants))
    if problems:
        raise ConfigError(f"{table.key}: {'; '.join(problems)}")


def _problems(table: GroupTable, variants: Sequence[TableVariant]) -> Iterator[str]:
    paths = [layout.path for layout in table.layouts]
    if len(set(paths)) < len(paths):
        yield "two files have the same name"
    if list(table.shells) != list(range(len(variants))):
        yield f"the files must have tables for the stat levels 0 to {len(variants) - 1}, not {list(table.shells)}"
        return
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            for problem in _shell_problems(layout, shell, len(variants[level].cells)):
                yield f"{shell.table} at stat level {level} {problem}"


def _shell_problems(layout: GroupLayout, shell: Shell, measured: int) -> Iterator[str]:
    if shell.basis != measured:
        yield f"must sum {measured} measured cells, not {shell.basis}"
    members = [member for cell in shell.cells for member in cell.members]
    if any(not 0 <= member < measured for member in members):
        yield f"has a member outside 0 to {measured - 1}"
    left_out = sorted(set(range(measured)) - set(members))
    if left_out:
        yield f"writes no cell with the measured cells {left_out}"
    if any(not cell.members or len(set(cell.members)) < len(cell.members) for cell in shell.cells):
        yield "has a cell that sums nothing, or a measured cell twice"
    if len({cell.code for cell in shell.cells}) < len(shell.cells):
        yield "has two cells with the same code"
    if len({cell.fields for cell in shell.cells}) < len(shell.cells):
        yield "has two cells with the same entries in the file"
    if any(len(cell.fields) != len(layout.cell_columns) for cell in shell.cells):
        yield f"must have entries for the columns {', '.join(layout.cell_columns) or '(none)'}"


TOTAL = "*|*|*"
"""Label of the total; other labels are SEX, AGESTART and AGEEND joined by bars."""
_COLUMNS = ("SEX", "AGESTART", "AGEEND")
_MARGINS: Final[tuple[list[str], ...]] = ([], ["SEX"], ["SEX", "AGE"])
_KEYS = ("product", "key", "names", "title", "universe", "sex", "age", "file", "stat_level")

_Ages = tuple[int, int]


@dataclass(frozen=True, eq=False)
class PersonTables:
    """Everything that SafeTab-P's file defines."""

    variants: tuple[TableVariant, ...]
    published: ProductTables


def table_variants() -> tuple[TableVariant, TableVariant, TableVariant, TableVariant]:
    """The variants of stat level 0 to 3, over the 46 most detailed cells.

    Example:
        >>> [(variant.name, len(variant.cells)) for variant in table_variants()]
        [('total', 1), ('sex_age4', 8), ('sex_age9', 18), ('sex_age23', 46)]
        >>> table_variants()[1].cells[:4]
        ('1|0|17', '1|18|44', '1|45|64', '1|65|115')
    """
    total, few, some, all_ages = _shipped_persons().variants
    return total, few, some, all_ages


def most_detailed_cells() -> int:
    """Number of most detailed cells of a group: sex by 23 ages.

    Example:
        >>> most_detailed_cells()
        46
    """
    return len(_shipped_persons().variants[0].slots)


def person_tables() -> ProductTables:
    """The files of SafeTab-P, and the measured cells that every written cell sums.

    Example:
        >>> (table,) = person_tables().tables
        >>> table.sizes, [layout.path for layout in table.layouts]
        ((1, 8, 18, 46), ['t1/t1.csv', 't2/t2.csv'])
    """
    return _shipped_persons().published


def parse_person_tables(text: str, place: str = FILE) -> PersonTables:
    """Build and check tables of sex by age."""
    return parse_tables(text, place, _built_persons)


@cache
def _shipped_persons() -> PersonTables:
    return parse_person_tables(table_text("persons"))


@dataclass(frozen=True)
class _Measured:
    """One measured cell; None stands for both sexes, or all ages."""

    sex: int | None
    ages: _Ages | None

    @property
    def label(self) -> str:
        start, stop = self.ages or ("*", "*")
        return f"{'*' if self.sex is None else self.sex}|{start}|{stop}"

    def within(self, sex: int | None, ages: _Ages | None) -> bool:
        return sex in (None, self.sex) and ages in (None, self.ages)

    def holds(self, sex: int, age: int) -> bool:
        return self.sex in (None, sex) and (self.ages is None or self.ages[0] <= age <= self.ages[1])


def _built_persons(document: Mapping[str, Any]) -> PersonTables:
    require_keys(document, "the file", _KEYS)
    sexes = _sexes(document["sex"])
    ages = document["age"]
    require_keys(ages, "age", ("last", "first_label", "single_label", "label", "last_label"))
    levels, entries = document["stat_level"], document["file"]
    for number, level in enumerate(levels):
        require_keys(level, f"stat_level {number}", ("name", "cuts", "tables"))
        cuts, last = level["cuts"], ages["last"]
        if any(high <= low for low, high in pairwise([0, *cuts, last + 1])):
            raise ConfigError(
                f"stat_level {number}: cuts must ascend and be ages from 1 to {last}, not {cuts}"
            )
    starts = sorted({0}.union(*(level["cuts"] for level in levels)))
    measured = [_measured(level["cuts"], sexes, ages["last"]) for level in levels]
    variants = tuple(
        _person_variant(level, cells, sexes, starts) for level, cells in zip(levels, measured, strict=True)
    )
    layouts = tuple(_person_layout(entry, levels, measured, sexes, ages) for entry in entries)
    named = {entry["name"] for entry in entries}
    unknown = sorted({name for level in levels for name in level["tables"]} - named)
    if unknown:
        raise ConfigError(f"stat_level: tables of files {unknown}, which are not defined")
    table = GroupTable(document["key"], document["names"], document["title"], document["universe"], layouts)
    check_table(table, variants)
    return PersonTables(variants, ProductTables(document["product"], (table,)))


def _sexes(entries: list[dict[str, Any]]) -> dict[int, str]:
    for entry in entries:
        require_keys(entry, "sex", ("code", "label"))
    sexes = {entry["code"]: entry["label"] for entry in entries}
    if len(sexes) < len(entries):
        raise ConfigError("sex: two entries have the same code")
    return sexes


def _measured(cuts: list[int], sexes: Mapping[int, str], last: int) -> list[_Measured]:
    if not cuts:
        return [_Measured(None, None)]
    bins = [(low, high - 1) for low, high in pairwise([0, *cuts, last + 1])]
    return [_Measured(sex, ages) for sex in sexes for ages in bins]


def _person_variant(
    level: Mapping[str, Any], cells: list[_Measured], sexes: Mapping[int, str], starts: list[int]
) -> TableVariant:
    slots = [
        next(slot for slot, cell in enumerate(cells) if cell.holds(sex, start))
        for sex in sexes
        for start in starts
    ]
    return TableVariant(level["name"], tuple(cell.label for cell in cells), np.array(slots, dtype=np.int16))


def _person_layout(
    entry: Mapping[str, Any],
    levels: list[dict[str, Any]],
    measured: list[list[_Measured]],
    sexes: Mapping[int, str],
    ages: Mapping[str, Any],
) -> GroupLayout:
    where = f"file {entry.get('name', '?')}"
    require_keys(entry, where, ("name", "folder", "columns", "margins"))
    if any(margin not in _MARGINS for margin in entry["margins"]):
        raise ConfigError(f"{where}: margins must be among {', '.join(map(str, _MARGINS))}")
    if not set(entry["columns"]) <= set(_COLUMNS):
        raise ConfigError(f"{where}: columns must be among {', '.join(_COLUMNS)}")
    shells = {}
    for number, (level, cells) in enumerate(zip(levels, measured, strict=True)):
        if entry["name"] in level["tables"]:
            table = level["tables"][entry["name"]]
            require_keys(table, f"stat_level {number}, {where}", ("name", "title"))
            written = tuple(_written(entry, cells, sexes, ages))
            shells[number] = Shell(table["name"], table["title"], len(cells), written)
    return GroupLayout(entry["name"], entry["folder"], tuple(entry["columns"]), shells)


def _written(
    entry: Mapping[str, Any], measured: list[_Measured], sexes: Mapping[int, str], words: Mapping[str, Any]
) -> Iterator[ShellCell]:
    bins = list(dict.fromkeys(cell.ages for cell in measured))
    for sex in (None, *sexes):
        for margin in entry["margins"]:
            if ("SEX" in margin) == (sex is not None):
                for ages in bins if "AGE" in margin else [None]:
                    yield _cell(entry["columns"], measured, sex, ages, sexes, words)


def _cell(
    columns: list[str],
    measured: list[_Measured],
    sex: int | None,
    ages: _Ages | None,
    sexes: Mapping[int, str],
    words: Mapping[str, Any],
) -> ShellCell:
    start, stop = ("*", "*") if ages is None else map(str, ages)
    field = {"SEX": "*" if sex is None else str(sex), "AGESTART": start, "AGEEND": stop}
    if sex is None:
        code, label = "*", "Total"
    elif ages is None:
        code, label = f"{sex}:*", sexes[sex]
    else:
        code, label = f"{sex}:{start}-{stop}", f"{sexes[sex]}, {_age_words(ages, words)}"
    return ShellCell(
        code=code,
        label=label,
        fields=tuple(field[column] for column in columns),
        members=tuple(slot for slot, cell in enumerate(measured) if cell.within(sex, ages)),
        ages=ages,
        sex="" if sex is None else str(sex),
    )


def _age_words(ages: _Ages, words: Mapping[str, Any]) -> str:
    start, stop = ages
    if start == 0:
        pattern = words["first_label"]
    elif stop == words["last"]:
        pattern = words["last_label"]
    else:
        pattern = words["single_label"] if start == stop else words["label"]
    return str(pattern.format(start=start, stop=stop, next=stop + 1))


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
    return _shipped_households().measured[table_class]


def joint_cells() -> int:
    """Number of joint cells of HOUSEHOLD_TYPE and TEN, tenure fastest: the most detailed counts of a group.

    Example:
        >>> joint_cells()
        20
    """
    types, tenures = _shipped_households().columns.values()
    return len(types) * len(tenures)


def joint_cell(household_type: Any, tenure: Any) -> Any:
    """Joint cell of a household, for numbers, arrays or columns of the engine.

    Example:
        >>> joint_cell(1, 1), joint_cell(5, 4)
        (0, 19)
    """
    types, tenures = _shipped_households().columns.values()
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
    return _shipped_households().published


def parse_household_tables(text: str, place: str = FILE) -> HouseholdTables:
    """Build and check tables of one column."""
    return parse_tables(text, place, _built_households)


@cache
def _shipped_households() -> HouseholdTables:
    return parse_household_tables(table_text("households"))


def _built_households(document: Mapping[str, Any]) -> HouseholdTables:
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
    layouts = tuple(_household_layout(entry, family["cell_column"], family["labels"]) for entry in own)
    table = GroupTable(family["key"], family["names"], family["title"], family["universe"], layouts)
    return table, tuple(_household_variant(entry, family["column"], columns) for entry in own)


def _household_layout(entry: Mapping[str, Any], cell_column: str, labels: Sequence[str]) -> GroupLayout:
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


def _household_variant(
    entry: Mapping[str, Any], column: str, columns: Mapping[str, tuple[int, ...]]
) -> TableVariant:
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


def tables_of(product: Product) -> ProductTables:
    """Files and cells of a product's tables.

    Example:
        >>> tables_of("safetab-p").keys, tables_of("safetab-h").keys
        (('t1t2',), ('t3', 't4'))
    """
    return person_tables() if product == "safetab-p" else published_tables()


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
