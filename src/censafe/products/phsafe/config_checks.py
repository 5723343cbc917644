"""The rules of a PHSafe configuration, checked one by one and reported together.

A check takes a raw value and the path of its key, adds every breach to ``Problems`` and returns what could be
read. Numbers arrive as Fractions, so nothing here sees a float.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Final, Literal

from censafe.errors import ConfigError
from censafe.planning.numbers import decimal_text
from censafe.privacy.budget import NotFinite, parse_fraction

__all__ = [
    "INFINITE",
    "LEVELS",
    "MEASURED_TABLES",
    "PAPER_LABELS",
    "PUERTO_RICO",
    "STAR_LEVELS",
    "STATES",
    "TAU_TABLES",
    "Budget",
    "Problems",
    "check_budgets",
    "check_choice",
    "check_levels_of_numbers",
    "check_states",
    "check_tau",
    "levels_of",
    "nearest",
]

MEASURED_TABLES: Final = (
    "PH1_num",
    "PH1_denom",
    "PH2",
    "PH3",
    "PH4",
    "PH5_denom",
    "PH6",
    "PH7",
    "PH8_denom",
)
TAU_TABLES: Final = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")
LEVELS: Final = ("usa_A-G", "usa_H,I", "usa_*", "state_A-G", "state_H,I", "state_*")
PAPER_LABELS: Final = {
    "usa_*": "Nation, Unattributed",
    "usa_A-G": "Nation, A-G",
    "usa_H,I": "Nation, H-I",
    "state_*": "State, Unattributed",
    "state_A-G": "State, A-G",
    "state_H,I": "State, H-I",
}
"""The levels in the words and the order of the PHSafe paper's Table 10."""
STAR_LEVELS: Final = ("usa_*", "state_*")
STATES: Final = tuple(f"{code:02d}" for code in range(1, 57) if code not in (3, 7, 14, 43, 52))
PUERTO_RICO: Final = "72"

Infinite = Literal[NotFinite.INFINITY]
INFINITE: Final[Infinite] = NotFinite.INFINITY
Budget = Fraction | Infinite

_DERIVED: Final = {"PH5_num": "PH4", "PH8_num": "PH7"}


@dataclass
class Problems:
    """What is wrong with one configuration, gathered before anything is raised."""

    messages: list[str] = field(default_factory=list)

    def add(self, key: str, message: str) -> None:
        """Note one breach at a key path."""
        self.messages.append(f"{key}: {message}")

    def raise_if_any(self, origin: str) -> None:
        """Raise one ConfigError with every breach; do nothing when there is none."""
        if self.messages:
            count = len(self.messages)
            head = f"{origin}: {count} problem{'s' if count > 1 else ''} in the configuration"
            raise ConfigError("\n".join([head, *(f"  {message}" for message in self.messages)]))


def levels_of(table: str) -> tuple[str, ...]:
    """Population group levels of a measured table, in their fixed order.

    Example:
        >>> levels_of("PH2")
        ('usa_*', 'state_*')
    """
    return STAR_LEVELS if table in ("PH2", "PH6") else LEVELS


def nearest(word: str, words: Iterable[str]) -> str:
    """A question that names the nearest of ``words``, or nothing."""
    near = difflib.get_close_matches(word, list(words), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_choice(value: object, key: str, allowed: Sequence[str], problems: Problems) -> str | None:
    """One of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    hint = nearest(value, allowed) if isinstance(value, str) else ""
    problems.add(key, f"{shown(value)} is not allowed; give one of {listed(allowed)}.{hint}")
    return None


def check_states(value: object, key: str, problems: Problems) -> tuple[str, ...] | None:
    """A list of two-digit state codes: states and DC, or Puerto Rico alone."""
    if not isinstance(value, list):
        problems.add(key, f'{shown(value)} is not a list; give state codes as text, such as ["44", "50"]')
        return None
    before = len(problems.messages)
    if not value:
        problems.add(key, "the list is empty; name at least one state")
    strangers = [item for item in value if not isinstance(item, str)]
    if strangers:
        problems.add(key, f'{listed(strangers)} must be text in quotes, such as "01"')
    codes = [item for item in value if isinstance(item, str)]
    repeated = [code for code, count in Counter(codes).items() if count > 1]
    if repeated:
        problems.add(key, f"{listed(repeated)} named more than once; name every state once")
    invalid = [code for code in dict.fromkeys(codes) if code not in STATES and code != PUERTO_RICO]
    if invalid:
        problems.add(
            key,
            f"{listed(invalid)} not a state code; allowed are 01 to 56 without 03, 07, 14, 43, 52, or 72 alone",
        )
    if PUERTO_RICO in codes and len(set(codes)) > 1:
        problems.add(key, "72 (Puerto Rico) is mixed with other states; give it a run of its own")
    return tuple(sorted(codes)) if len(problems.messages) == before else None


def check_tau(value: object, key: str, problems: Problems) -> dict[str, int]:
    """A positive integer for every person table."""
    found: dict[str, int] = {}
    for table, item in _entries(value, key, TAU_TABLES, "table", problems):
        path = f"{key}.{table}"
        if not isinstance(item, Fraction) or item.denominator != 1:
            problems.add(path, f"{shown(item)} is not an integer; give 1 or more persons a household")
        elif item <= 0:
            problems.add(path, f"{item} is too small; give 1 or more persons a household")
        else:
            found[table] = int(item)
    return found


def check_budgets(
    value: object, key: str, problems: Problems, *, infinite: bool, text: bool
) -> dict[tuple[str, str], Budget]:
    """A budget of 0 or more for every measured table and level.

    Args:
        value: the raw mapping.
        key: its key path.
        problems: takes the breaches.
        infinite: whether Infinity (no noise) may stand for a budget.
        text: whether a budget may be text such as ``"1/200"``.
    """
    found: dict[tuple[str, str], Budget] = {}
    for table, levels in _entries(value, key, MEASURED_TABLES, "table", problems):
        for level, item in _entries(levels, f"{key}.{table}", levels_of(table), "level", problems):
            number = _budget(item, f"{key}.{table}.{level}", problems, infinite=infinite, text=text)
            if number is not None:
                found[table, level] = number
    return found


def check_levels_of_numbers(value: object, key: str, problems: Problems) -> dict[tuple[str, str], Fraction]:
    """Positive numbers for some tables and levels, all of them optional."""
    found: dict[tuple[str, str], Fraction] = {}
    for table, levels in _entries(value, key, MEASURED_TABLES, "table", problems, optional=True):
        path = f"{key}.{table}"
        for level, item in _entries(levels, path, levels_of(table), "level", problems, optional=True):
            number = _budget(item, f"{path}.{level}", problems, infinite=False, text=True)
            if isinstance(number, Fraction) and number > 0:
                found[table, level] = number
            elif number is not None:
                problems.add(f"{path}.{level}", f"{number} is too small; give a number above 0")
    return found


def _entries(
    value: object, key: str, wanted: Sequence[str], noun: str, problems: Problems, *, optional: bool = False
) -> list[tuple[str, object]]:
    """Known entries of a mapping in fixed order; missing and extra ones are problems."""
    if not isinstance(value, Mapping):
        problems.add(
            key, f"{shown(value)} is not a mapping; give one entry for every {noun}: {listed(wanted)}"
        )
        return []
    missing = [name for name in wanted if name not in value]
    if missing and not optional:
        problems.add(key, f"missing {noun} {listed(missing)}; all of {listed(wanted)} are needed")
    for name in value:
        if name not in wanted:
            problems.add(key, _stranger(str(name), wanted, noun))
    return [(name, value[name]) for name in wanted if name in value]


def _stranger(name: str, wanted: Sequence[str], noun: str) -> str:
    if name in _DERIVED and noun == "table":
        return f"extra table {name!r}; it is computed from {_DERIVED[name]} and has no entry of its own. Remove it"
    if name in MEASURED_TABLES and noun == "table":
        return f"extra table {name!r}; it counts units, not persons. Allowed are {listed(wanted)}"
    if name in LEVELS and noun == "level":
        return f"extra level {name!r}; this table is not repeated by race. Allowed are {listed(wanted)}"
    return f"extra {noun} {name!r}; allowed are {listed(wanted)}.{nearest(name, wanted)}"


def _budget(item: object, key: str, problems: Problems, *, infinite: bool, text: bool) -> Budget | None:
    if item is NotFinite.INFINITY:
        if infinite:
            return INFINITE
        problems.add(
            key,
            "Infinity means no noise and protects nobody; only 'truth --private-path' takes it. "
            "Give a number of 0 or more",
        )
        return None
    if isinstance(item, str) and text:
        try:
            item = parse_fraction(item, key)
        except ConfigError as error:
            problems.messages.append(str(error))
            return None
    if not isinstance(item, Fraction):
        form = 'a number or text such as "1/200"' if text else "a number without quotes"
        problems.add(key, f"{shown(item)} is not a number; give {form}, 0 or more")
        return None
    if item < 0:
        problems.add(key, f"{shown(item)} is negative; give 0 (level not measured) or more")
        return None
    return item


def listed(values: Iterable[object]) -> str:
    """Values in a row, as they would be written."""
    return ", ".join(item if isinstance(item, str) else shown(item) for item in values)


def shown(value: Any) -> str:
    """A raw configuration value in a few words."""
    if isinstance(value, NotFinite):
        return value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    if isinstance(value, PurePath):
        return str(value)
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, Mapping) else "a value"
