"""PUBLIC FACTS. The tables of SafeTab-P: the total, and sex by 4, 9 or 23 ages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from censafe.errors import ConfigError
from censafe.model import TableVariant
from censafe.model.entries import require_keys
from censafe.model.groups.cells import GroupLayout, GroupTable, ProductTables, Shell, ShellCell
from censafe.products.detailed.table_files import FILE, check_table, parse_tables, table_text

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
    total, few, some, all_ages = _shipped().variants
    return total, few, some, all_ages


def most_detailed_cells() -> int:
    """Number of most detailed cells of a group: sex by 23 ages.

    Example:
        >>> most_detailed_cells()
        46
    """
    return len(_shipped().variants[0].slots)


def person_tables() -> ProductTables:
    """The files of SafeTab-P, and the measured cells that every written cell sums.

    Example:
        >>> (table,) = person_tables().tables
        >>> table.sizes, [layout.path for layout in table.layouts]
        ((1, 8, 18, 46), ['t1/t1.csv', 't2/t2.csv'])
    """
    return _shipped().published


def parse_person_tables(text: str, place: str = FILE) -> PersonTables:
    """Build and check tables of sex by age."""
    return parse_tables(text, place, _built)


@cache
def _shipped() -> PersonTables:
    return parse_person_tables(table_text(__package__))


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


def _built(document: Mapping[str, Any]) -> PersonTables:
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
        _variant(level, cells, sexes, starts) for level, cells in zip(levels, measured, strict=True)
    )
    layouts = tuple(_layout(entry, levels, measured, sexes, ages) for entry in entries)
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


def _variant(
    level: Mapping[str, Any], cells: list[_Measured], sexes: Mapping[int, str], starts: list[int]
) -> TableVariant:
    slots = [
        next(slot for slot, cell in enumerate(cells) if cell.holds(sex, start))
        for sex in sexes
        for start in starts
    ]
    return TableVariant(level["name"], tuple(cell.label for cell in cells), np.array(slots, dtype=np.int16))


def _layout(
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
