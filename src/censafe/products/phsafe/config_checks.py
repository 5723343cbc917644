"""The rules of a PHSafe configuration, checked one by one and reported together.

A check takes a raw value and the path of its key, adds every breach to ``Problems`` and returns what could be
read. Numbers arrive as Fractions, so nothing here sees a float.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Final

from censafe.model.entries import nearest
from censafe.products.configuration.source import (
    PUERTO_RICO,
    STATES,
    Budget,
    Problems,
    check_budget,
    check_state_codes,
    listed,
    shown,
)
from censafe.products.phsafe.definitions import phsafe_definitions

LARGEST_TAU: Final = 99_999
"""More persons than any household has; the ranks of records must fit the integers of the engine."""


def measured_tables() -> tuple[str, ...]:
    """Tables that noise is added to, in their fixed order."""
    return tuple(table.name for table in phsafe_definitions().measured)


def truncated_tables() -> tuple[str, ...]:
    """Measured tables of persons, each with a tau."""
    return tuple(table.name for table in phsafe_definitions().measured if table.truncated)


def level_labels() -> dict[str, str]:
    """Every population group level in the words and the order of the PHSafe paper's Table 10."""
    return phsafe_definitions().level_labels


def levels_of(table: str) -> tuple[str, ...]:
    """Population group levels of a measured table, in their fixed order.

    Example:
        >>> levels_of("PH2")
        ('usa_*', 'state_*')
    """
    definitions = phsafe_definitions()
    return tuple(definitions.levels(definitions.table(table)))


def check_states(value: object, key: str, problems: Problems) -> tuple[str, ...] | None:
    """A list of two-digit state codes: states and DC, or Puerto Rico alone."""
    words = "01 to 56 without 03, 07, 14, 43, 52, or 72 alone"
    codes = check_state_codes(value, key, problems, (*STATES, PUERTO_RICO), words)
    if isinstance(value, list) and PUERTO_RICO in value and any(code != PUERTO_RICO for code in value):
        problems.add(key, "72 (Puerto Rico) is mixed with other states; give it a run of its own")
        return None
    return codes


def check_tau(value: object, key: str, problems: Problems, needed: Collection[str]) -> dict[str, int]:
    """A whole number from 1 to the largest that the engine counts with, for the needed tables of persons at least."""
    found: dict[str, int] = {}
    for table, item in _entries(value, key, truncated_tables(), "table", problems, needed):
        path = f"{key}.{table}"
        if not isinstance(item, Fraction) or item.denominator != 1:
            problems.add(path, f"{shown(item)} is not an integer; give 1 or more persons a household")
        elif item <= 0:
            problems.add(path, f"{item} is too small; give 1 or more persons a household")
        elif item > LARGEST_TAU:
            problems.add(path, f"the number is too large; give at most {LARGEST_TAU:,} persons a household")
        else:
            found[table] = int(item)
    return found


def check_budgets(
    value: object, key: str, problems: Problems, *, infinite: bool, text: bool
) -> dict[tuple[str, str], Budget]:
    """A budget of 0 or more for every measured table and level.

    A table that is not named has budget 0, and so has a level that no table names: a configuration stays as it is when
    definitions are added. A level that other tables name must be named.
    """
    found: dict[tuple[str, str], Budget] = {
        (table, level): Fraction(0) for table in measured_tables() for level in levels_of(table)
    }
    named = _entries(value, key, measured_tables(), "table", problems, ())
    used = {level for _, levels in named if isinstance(levels, Mapping) for level in levels}
    for table, levels in named:
        allowed = levels_of(table)
        needed = [level for level in allowed if level in used]
        for level, item in _entries(levels, f"{key}.{table}", allowed, "level", problems, needed):
            number = check_budget(item, f"{key}.{table}.{level}", problems, infinite=infinite, text=text)
            if number is not None:
                found[table, level] = number
    return found


def check_levels_of_numbers(value: object, key: str, problems: Problems) -> dict[tuple[str, str], Fraction]:
    """Positive numbers for some tables and levels, all of them optional."""
    found: dict[tuple[str, str], Fraction] = {}
    for table, levels in _entries(value, key, measured_tables(), "table", problems, ()):
        path = f"{key}.{table}"
        for level, item in _entries(levels, path, levels_of(table), "level", problems, ()):
            number = check_budget(item, f"{path}.{level}", problems, infinite=False, text=True)
            if isinstance(number, Fraction) and number > 0:
                found[table, level] = number
            elif number is not None:
                problems.add(f"{path}.{level}", f"{number} is too small; give a number above 0")
    return found


def _entries(
    value: object, key: str, wanted: Sequence[str], noun: str, problems: Problems, needed: Collection[str]
) -> list[tuple[str, object]]:
    """Known entries of a mapping in fixed order; extra ones are problems, and so are needed ones that are missing."""
    if not isinstance(value, Mapping):
        problems.add(
            key, f"{shown(value)} is not a mapping; give one entry for every {noun}: {listed(wanted)}"
        )
        return []
    missing = [name for name in needed if name not in value]
    if missing:
        problems.add(key, f"missing {noun} {listed(missing)}; all of {listed(needed)} are needed")
    for name in value:
        if name not in wanted:
            problems.add(key, _stranger(str(name), wanted, noun))
    return [(name, value[name]) for name in wanted if name in value]


def _stranger(name: str, wanted: Sequence[str], noun: str) -> str:
    derived = {table.name: table.derived.source for table in phsafe_definitions().tables if table.derived}
    if name in derived and noun == "table":
        return f"extra table {name!r}; it is computed from {derived[name]} and has no entry of its own. Remove it"
    if name in measured_tables() and noun == "table":
        return f"extra table {name!r}; it counts units, not persons. Allowed are {listed(wanted)}"
    if name in level_labels() and noun == "level":
        return f"extra level {name!r}; this table is not repeated by race. Allowed are {listed(wanted)}"
    return f"extra {noun} {name!r}; allowed are {listed(wanted)}.{nearest(name, wanted)}"
