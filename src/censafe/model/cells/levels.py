"""Sets of levels of an attribute as text: numbers, ranges, and the values of columns of its table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

from censafe.model.entries import Problems, nearest

_ENTRY: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_EACH: Final = "each "

LevelTable = Mapping[str, tuple[str, ...]]
"""Columns of a table with one row for every level, by name."""


def integer(value: object) -> int | None:
    """A whole number of 0 or more, or None."""
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        return None
    return int(value) if value.denominator == 1 and value >= 0 else None


@dataclass(frozen=True)
class LevelSets:
    """Reads sets of levels of one attribute."""

    levels: int
    table: LevelTable

    def read(self, raw: object, key: str, problems: Problems) -> tuple[int, ...]:
        """Distinct levels in the order in which they stand; empty when they break a rule.

        Example:
            >>> LevelSets(9, {"size": tuple("112233445")}).read("0-2, 7", "when", Problems())
            (0, 1, 2, 7)
            >>> LevelSets(9, {"size": tuple("112233445")}).read({"size": ["1", "5"]}, "when", Problems())
            (0, 1, 8)
        """
        if isinstance(raw, Mapping):
            return self._of_columns(raw, key, problems)
        items = raw if isinstance(raw, list) else [raw]
        parts = (part for item in items for part in (item.split(",") if isinstance(item, str) else [item]))
        entries = [_span(part) for part in parts]
        known = range(self.levels)
        spans = [span for span in entries if span is not None]
        chosen = tuple(level for span in spans for level in span[: self.levels] if level in known)
        expected = sum(len(span) for span in spans)
        if not entries or None in entries or not chosen or len(set(chosen)) < expected:
            problems.add(
                key,
                f'give distinct levels, whole numbers from 0 to {self.levels - 1}, or ranges such as "0-1"',
            )
            return ()
        return chosen

    def read_groups(self, raw: object, key: str, problems: Problems) -> tuple[tuple[int, ...], ...]:
        """Groups of levels; ``each 0-14`` stands for one group for every level.

        Example:
            >>> LevelSets(9, {}).read_groups(["each 0-1", "2-6, 8", ["7"]], "groups", Problems())
            ((0,), (1,), (2, 3, 4, 5, 6, 8), (7,))
        """
        lists = isinstance(raw, list) and all(isinstance(group, list | str) and group for group in raw)
        if not raw or not isinstance(raw, list) or not lists:
            problems.add(key, "give a list of groups, each a list of levels, such as [[0], [1, 2]]")
            return ()
        groups: list[tuple[int, ...]] = []
        for group in raw:
            apart = isinstance(group, str) and group.startswith(_EACH)
            own = self.read(group.removeprefix(_EACH) if apart else group, key, problems)
            groups += [(level,) for level in own] if apart else [own]
        return tuple(groups) if all(groups) else ()

    def read_by(self, raw: object, key: str, problems: Problems) -> tuple[tuple[int, ...], ...]:
        """One group for each combination of the values of some columns that a level has, the last column fastest.

        Example:
            >>> LevelSets(4, {"sex": tuple("mfmf"), "old": tuple("nnny")}).read_by({"old": ["n", "y"], "sex": ["f", "m"]}, "by", Problems())
            ((1,), (0, 2), (3,))
        """
        if not isinstance(raw, Mapping) or not raw:
            problems.add(
                key,
                'give the values of columns of the table, such as by = { size = [1, 2], couple = ["none"] }',
            )
            return ()
        values = [self._values(column, raw[column], f"{key}.{column}", problems) for column in raw]
        if not all(values):
            return ()
        places: dict[tuple[str, ...], list[int]] = {one: [] for one in product(*values)}
        for level, combination in enumerate(zip(*(self.table[column] for column in raw), strict=True)):
            if combination in places:
                places[combination].append(level)
        return tuple(tuple(group) for group in places.values() if group)

    def _of_columns(self, raw: Mapping[str, Any], key: str, problems: Problems) -> tuple[int, ...]:
        values = {column: self._values(column, raw[column], f"{key}.{column}", problems) for column in raw}
        if not values or not all(values.values()):
            return ()
        chosen = tuple(
            level
            for level in range(self.levels)
            if all(self.table[column][level] in own for column, own in values.items())
        )
        if not chosen:
            problems.add(key, "no level has these values")
        return chosen

    def _values(self, column: str, raw: object, key: str, problems: Problems) -> tuple[str, ...]:
        if not self.table:
            problems.add(key, "the attribute has no table; name one, such as table = { size = [1, 2] }")
            return ()
        if column not in self.table:
            problems.add(
                key,
                f"{column!r} is not allowed; give one of {', '.join(self.table)}.{nearest(column, self.table)}",
            )
            return ()
        texts = column_values(raw)
        there = set(self.table[column])
        if not texts or len(set(texts)) < len(texts) or not there.issuperset(texts):
            problems.add(
                key, f"give distinct values of the column {column}, which are {', '.join(sorted(there))}"
            )
            return ()
        return texts


def _span(item: object) -> range | None:
    """The levels from one to another; None for what is neither a number nor a range."""
    number = integer(item)
    if number is not None:
        return range(number, number + 1)
    match = _ENTRY.fullmatch(item.strip()) if isinstance(item, str) else None
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return range(first, last + 1) if first <= last else None


def column_values(raw: object) -> tuple[str, ...]:
    """Values of a column as text, one or a list."""
    items = raw if isinstance(raw, list) else [raw]
    return tuple(item if isinstance(item, str) else str(integer(item)) for item in items)
