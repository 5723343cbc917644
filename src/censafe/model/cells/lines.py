"""The notation of cells: conditions on the attributes of a histogram, and tables of lines that each count the records of a condition."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Protocol

from censafe.errors import ConfigError
from censafe.model.cells.levels import LevelSets, LevelTable
from censafe.model.entries import Problems, nearest
from censafe.model.schema import Recode, Schema, make_query

Condition = Mapping[str, frozenset[int]]
"""Levels by attribute; attributes that are not there are free."""

LOWEST: Final = ("block", "tract", "county")
"""Lowest areas for which a table can be published."""
_NUMBERS: Final = re.compile("[0-9]+(-[0-9]+)?")
_STEP: Final = ". "
_SUM: Final = "sum"
_KEYS: Final = frozenset(
    (
        "title",
        "universe",
        "histogram",
        "lowest",
        "where",
        "median",
        "needs",
        "lines",
    )
)
_NEEDED: Final = ("title", "universe", "histogram", "lines")
_NAME: Final = re.compile("[A-Za-z][A-Za-z0-9_-]{0,63}")


class DescribedSchema(Protocol):
    """A schema with what its levels are called."""

    @property
    def schema(self) -> Schema:
        """Attributes and their levels."""

    @property
    def recodes(self) -> Mapping[str, Recode]:
        """Groups of levels."""

    @property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """Words for levels and groups."""

    @property
    def tables(self) -> Mapping[str, LevelTable]:
        """Columns with a value for every level, by attribute."""


@dataclass(frozen=True)
class TableLine:
    """One cell of a table.

    Args:
        when: the condition of its records, that of the lines above it included.
        summed: numbers of the lines (from 0) whose values it sums; empty where it counts records.
    """

    label: str
    depth: int
    when: Condition
    summed: tuple[int, ...] = ()


@dataclass(frozen=True)
class CensusTable:
    """A table of counts, or of medians of one attribute.

    Args:
        lowest: ``block``, ``tract`` or ``county``: the lowest areas for which it is published.
    """

    name: str
    title: str
    universe: str
    histogram: str
    lowest: str
    lines: tuple[TableLine, ...]
    median: str = ""
    needs: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the cells, such as ``P12A_002N``."""
        return tuple(f"{item}N" for item in self.items)

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the cells in tables of the redistricting data, such as ``P1_002``."""
        return tuple(f"{self.name}_{number:03d}" for number in range(1, len(self.lines) + 1))


def parse_table(name: str, entry: Mapping[str, Any], schema: DescribedSchema) -> CensusTable:
    """A table from an entry of a TOML file."""
    if wrong := [
        key
        for key in dict.fromkeys([*_NEEDED, *entry])
        if key in _KEYS and not isinstance(entry.get(key), str)
    ]:
        raise ConfigError(f"table {name}: give {', '.join(wrong)}, as text")
    unknown = sorted(set(entry) - _KEYS)
    lowest = entry.get("lowest", LOWEST[0])
    if unknown or lowest not in LOWEST:
        broken = f"unknown key {unknown[0]}" if unknown else f"lowest is one of {', '.join(LOWEST)}"
        raise ConfigError(f"table {name}: {broken}; allowed: {', '.join(sorted(_KEYS))}")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"table {name!r}: files and columns are named after it; allowed: a letter, then letters, digits, - and _, at most 64"
        )
    median = entry.get("median", "")
    if median and median not in schema.schema.names:
        raise ConfigError(
            f"table {name}: median {median!r} is no attribute; allowed: {', '.join(schema.schema.names)}"
        )
    if not entry["lines"].strip() and not entry.get("needs"):
        raise ConfigError(f"table {name}: there is no line; give one for each number")
    conditions = ConditionReader(f"table {name}", schema.schema, schema.tables, schema.labels)
    where = conditions.read(entry.get("where", ""), {})
    return CensusTable(
        name,
        entry["title"],
        entry["universe"],
        entry["histogram"],
        lowest,
        read_lines(f"table {name}", entry["lines"], where, conditions),
        median,
        entry.get("needs", ""),
    )


_MOST_LINES: Final = 16_384  # columns that a spreadsheet has


def query_table(
    name: str, query: str, histogram: str, schema: DescribedSchema, where: str = ""
) -> CensusTable:
    """A table with a line for each answer of a query: attributes and recodes joined by ``*``, ``total`` or ``detailed``.

    Args:
        name: of the table, from which its cells are named.
        histogram: that it counts, of this schema.
        where: condition on records, such as ``sex=female & age=1-4``.

    Raises:
        ConfigError: an attribute, recode, level or label that the schema does not have, or too many lines.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> table = query_table("Q1", "hispanic", "persons", shipped_schemas()["pl94-persons"], "votingage=1")
        >>> [(line.label, sorted(line.when)) for line in table.lines]
        [('hispanic 0', ['hispanic', 'votingage']), ('hispanic 1', ['hispanic', 'votingage'])]
    """
    reader = ConditionReader(f"table {name}", schema.schema, schema.tables, schema.labels)
    condition = reader.read(where, {})
    try:
        answers = make_query(schema.schema, query, schema.recodes, measured=False)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    parts = [part.strip() for part in query.split("*")]
    axes: list[list[tuple[str, str, frozenset[int]]]] = []
    for attribute, factor in zip(schema.schema.attributes, answers.factors, strict=True):
        groups = [
            frozenset((factor.of_level == group).nonzero()[0].tolist()) for group in range(factor.groups)
        ]
        if len(groups) == 1 and len(groups[0]) == attribute.levels:
            continue
        of = [
            part
            for part in parts
            if part in schema.recodes and schema.recodes[part].attribute == attribute.name
        ]
        noun = of[0] if of else attribute.name
        labels = schema.labels.get(noun, ())
        words = labels if len(labels) == len(groups) else [f"{noun} {group}" for group in range(len(groups))]
        axes.append([(word, attribute.name, levels) for word, levels in zip(words, groups, strict=True)])
    if math.prod(map(len, axes)) > _MOST_LINES:
        raise ConfigError(
            f"query {query!r}: {answers.answers:,} lines; allowed: at most {_MOST_LINES:,}; fix: a recode, or fewer attributes"
        )
    lines = tuple(
        TableLine(
            ", ".join(word for word, _, _ in chosen) or "Total",
            0,
            {**condition, **{axis: levels & condition.get(axis, levels) for _, axis, levels in chosen}},
        )
        for chosen in itertools.product(*axes)
    )
    title = f"{query}{f', {where}' if where else ''}"
    return CensusTable(name, title, histogram, histogram, LOWEST[0], lines)


def read_lines(place: str, text: str, where: Condition, conditions: ConditionReader) -> tuple[TableLine, ...]:
    """Lines written one below another, each with its depth in points, its label and its own condition."""
    lines: list[TableLine] = []
    above: list[Condition] = [where]
    sums = []
    for row in text.splitlines():
        body = row.lstrip(_STEP)
        depth = (len(row) - len(body)) // len(_STEP)
        label, _, condition = body.partition(" | ")
        if not label or depth >= len(above):
            raise ConfigError(
                f"{place}: line {len(lines) + 1} ({label}) stands below no line; give its depth in points"
            )
        own = condition.split(" & ") if condition else []
        when = conditions.read(" & ".join(part for part in own if part != _SUM), above[depth])
        above[depth + 1 :] = [when]
        sums += [len(lines)] if _SUM in own else []
        lines.append(TableLine(label, depth, when))
    for number in sums:
        lines[number] = replace(lines[number], summed=lines_below(lines, number))
    return tuple(lines)


def lines_below(lines: Sequence[TableLine], place: int) -> tuple[int, ...]:
    """Numbers of the lines one step below a line."""
    numbers = []
    for number in range(place + 1, len(lines)):
        if lines[number].depth <= lines[place].depth:
            break
        if lines[number].depth == lines[place].depth + 1:
            numbers.append(number)
    return tuple(numbers)


class ConditionReader:
    """Reads conditions on the attributes of a schema, or on columns of their tables."""

    def __init__(
        self,
        place: str,
        schema: Schema,
        tables: Mapping[str, LevelTable] = MappingProxyType({}),
        labels: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._place = place
        self._sizes = dict(zip(schema.names, schema.shape, strict=True))
        self._columns = {
            column: attribute
            for attribute, columns in tables.items()
            for column in columns
            if column not in self._sizes
        }
        self._tables = tables
        self._labels = labels
        self._parts: dict[str, tuple[str, frozenset[int]]] = {}

    def read(self, text: str, above: Condition) -> Condition:
        """A condition that narrows another one."""
        condition = dict(above)
        for part in text.split(" & ") if text else ():
            if part not in self._parts:
                self._parts[part] = self._part(part)
            attribute, levels = self._parts[part]
            condition[attribute] = condition.get(attribute, levels) & levels
        return condition

    def attribute(self, name: str) -> str | None:
        """The attribute of that name, or with such a column; None where there is none."""
        return name if name in self._sizes else self._columns.get(name)

    def _part(self, part: str) -> tuple[str, frozenset[int]]:
        """An attribute and its levels."""
        name, mark, values = part.partition("=")
        attribute = self.attribute(name)
        if not mark or attribute is None:
            known = ", ".join((*self._sizes, *self._columns))
            raise ConfigError(f"{self._place}: condition {part!r}: give one of {known}, = and its levels")
        values = self._numbered(attribute, values) if name == attribute else values
        problems = Problems()
        sets = LevelSets(self._sizes[attribute], self._tables.get(attribute, {}))
        raw: Any = values if name == attribute else {name: values.split(",")}
        levels = frozenset(sets.read(raw, name, problems))
        problems.raise_if_any(f"{self._place}")
        return attribute, levels

    def _numbered(self, attribute: str, values: str) -> str:
        """Levels by number, where labels stand for them: one label, or several with commas between."""
        labels = {label.casefold(): str(level) for level, label in enumerate(self._labels.get(attribute, ()))}
        if values.strip().casefold() in labels:
            return labels[values.strip().casefold()]
        parts = [part.strip() for part in values.split(",")]
        for part in parts if labels else ():
            if part.casefold() not in labels and not _NUMBERS.fullmatch(part):
                known = self._labels[attribute]
                raise ConfigError(
                    f"{self._place}: condition {attribute}={values}: {part!r} is no level.{nearest(part, known)} Allowed: {', '.join(known)}, "
                    f"or numbers from 0 to {len(known) - 1}"
                )
        return ",".join(labels.get(part.casefold(), part) for part in parts)
