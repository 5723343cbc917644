"""Definitions of census tables: a cell is a line with a condition on the attributes of a histogram. They are data, beside this file."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model.entries import nearest
from censafe.model.topdown.constraints import CellGroups
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.configuration.source import Problems
from censafe.products.topdown.configuration.level_sets import LevelSets
from censafe.products.topdown.configuration.shipped import shipped_schemas

Condition = Mapping[str, frozenset[int]]
"""Levels by attribute; attributes that are not there are free."""

LOWEST: Final = ("block", "tract", "county")
"""Lowest areas for which a table can be published."""
_DATA: Final = resources.files("censafe.products.topdown.census_tables").joinpath("data")
_FILES: Final = {"dhc": ("population", "quarters", "households", "units"), "pl94": ("redistricting",)}
_NAME: Final = re.compile("([A-Z]+)([0-9]+)([A-Z]*)")
_KINDS: Final = ("P", "PCT", "PCO", "H", "HCT")
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
        "iterations",
        "repeated_as",
        "repeated_lowest",
        "median",
        "needs",
        "lines",
    )
)
_WORDS: Final = {"dhc": "DHC", "pl94": "redistricting data"}
_EXAMPLES: Final = {"dhc": ("P12", "PCT12A", "H4"), "pl94": ("P1", "P5", "H1")}
_NEEDED: Final = ("title", "universe", "histogram", "lines")
SCHEMAS: Final = {
    "dhc": {"persons": "dhc-persons", "households": "dhc-households", "units": "dhc-units"},
    "pl94": {"persons": "pl94-persons", "units": "pl94-units"},
}
"""Schema of each histogram that tables count, by product: the DHC, and the redistricting data."""

CARD_TABLES: Final = {
    "dhc": ("P1", "P5", "P12", "P13", "H1", "H3", "H4", "H9", "P16"),
    "pl94": ("P1", "P2", "P3", "P5", "H1"),
}
"""The tables of a card, by product."""


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
        return tuple(f"{self.name}_{number:03d}N" for number in range(1, len(self.lines) + 1))


@cache
def census_tables(product: str) -> Mapping[str, CensusTable]:
    """The tables of a product by name, each base table before its repetitions by race and origin.

    Example:
        >>> tables = census_tables("dhc")
        >>> len(tables), tables["P12A"].variables[1], tables["P12A"].lines[1].label
        (249, 'P12A_002N', 'Male:')
        >>> list(census_tables("pl94"))
        ['P1', 'P2', 'P3', 'P4', 'P5', 'H1']
    """
    iterations = _entries("iterations")
    tables: dict[str, CensusTable] = {}
    for file in _FILES[product]:
        for name, entry in _entries(file).items():
            schema = shipped_schemas()[SCHEMAS[product][entry["histogram"]]]
            base = parse_table(name, entry, schema)
            tables[name] = base
            own = replace(
                base,
                name=entry.get("repeated_as", name),
                lowest=entry.get("repeated_lowest", base.lowest),
            )
            suffixes = list(iterations)
            first, _, last = entry.get("iterations", "").partition("-")
            for suffix in suffixes[suffixes.index(first) : suffixes.index(last) + 1] if first else ():
                tables[own.name + suffix] = _repeated(own, suffix, iterations[suffix], schema)
    return {name: tables[name] for name in sorted(tables, key=_place)}


def _place(name: str) -> tuple[int, int, int, str]:
    """Where a table stands among the others: people before housing, base tables before their repetitions."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"table {name}: the name of a table is letters, a number and the letters of its iteration"
        )
    kind, number, suffix = match.groups()
    return _KINDS.index(kind), int(number), len(suffix), suffix


def table_named(name: str, product: str = "dhc") -> CensusTable:
    """One table."""
    tables = census_tables(product)
    if name.upper() not in tables:
        raise ConfigError(
            f"table {name!r}: there is no such table of the {_WORDS[product]}.{nearest(name.upper(), tuple(tables))} Allowed: names such "
            f"as {', '.join(_EXAMPLES[product])}"
        )
    return tables[name.upper()]


def parse_table(name: str, entry: Mapping[str, Any], schema: HistogramSchema) -> CensusTable:
    """A table from an entry of a TOML file."""
    if missing := [noun for noun in _NEEDED if not isinstance(entry.get(noun), str)]:
        raise ConfigError(f"table {name}: give {', '.join(missing)}, as text")
    unknown = sorted(set(entry) - _KEYS)
    lowest = entry.get("lowest", LOWEST[0])
    if unknown or lowest not in LOWEST:
        wrong = f"unknown key {unknown[0]}" if unknown else f"lowest is one of {', '.join(LOWEST)}"
        raise ConfigError(f"table {name}: {wrong}; allowed: {', '.join(sorted(_KEYS))}")
    conditions = ConditionReader(name, schema)
    where = conditions.read(entry.get("where", ""), {})
    return CensusTable(
        name,
        entry["title"],
        entry["universe"],
        entry["histogram"],
        lowest,
        _lines(name, entry["lines"], where, conditions),
        entry.get("median", ""),
        entry.get("needs", ""),
    )


_MOST_LINES: Final = 16_384  # columns that a spreadsheet has


def query_table(
    name: str, query: str, histogram: str, schema: HistogramSchema, where: str = ""
) -> CensusTable:
    """A table with a line for each answer of a query: attributes and recodes joined by ``*``, ``total`` or ``detailed``.

    Args:
        name: of the table, from which its cells are named.
        histogram: that it counts, of this schema.
        where: condition on records, such as ``sex=female & age=1-4``.

    Raises:
        ConfigError: an attribute, recode, level or label that the schema does not have, or too many lines.

    Example:
        >>> table = query_table("Q1", "hispanic", "persons", shipped_schemas()["pl94-persons"], "votingage=1")
        >>> [(line.label, sorted(line.when)) for line in table.lines]
        [('hispanic 0', ['hispanic', 'votingage']), ('hispanic 1', ['hispanic', 'votingage'])]
    """
    condition = ConditionReader(name, schema).read(where, {})
    try:
        answers = schema.grouped(CellGroups(query))
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


def _entries(file: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(_DATA.joinpath(f"{file}.toml").read_text(encoding="utf-8"))


def _lines(name: str, text: str, where: Condition, conditions: ConditionReader) -> tuple[TableLine, ...]:
    lines: list[TableLine] = []
    above: list[Condition] = [where]
    sums = []
    for row in text.splitlines():
        body = row.lstrip(_STEP)
        depth = (len(row) - len(body)) // len(_STEP)
        label, _, condition = body.partition(" | ")
        if not label or depth >= len(above):
            raise ConfigError(
                f"table {name}: line {len(lines) + 1} ({label}) stands below no line; give its depth in points"
            )
        own = condition.split(" & ") if condition else []
        when = conditions.read(" & ".join(part for part in own if part != _SUM), above[depth])
        above[depth + 1 :] = [when]
        sums += [len(lines)] if _SUM in own else []
        lines.append(TableLine(label, depth, when))
    for place in sums:
        lines[place] = replace(lines[place], summed=_below(lines, place))
    return tuple(lines)


def _below(lines: list[TableLine], place: int) -> tuple[int, ...]:
    """Lines one step below a line."""
    lines_below = []
    for number in range(place + 1, len(lines)):
        if lines[number].depth <= lines[place].depth:
            break
        if lines[number].depth == lines[place].depth + 1:
            lines_below.append(number)
    return tuple(lines_below)


class ConditionReader:
    """Reads conditions on the attributes of a schema, or on columns of their tables."""

    def __init__(self, table: str, schema: HistogramSchema) -> None:
        self._table = table
        self._sizes = dict(zip(schema.schema.names, schema.schema.shape, strict=True))
        self._columns = {
            column: attribute
            for attribute, columns in schema.tables.items()
            for column in columns
            if column not in self._sizes
        }
        self._tables = schema.tables
        self._labels = schema.labels
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

    def _part(self, part: str) -> tuple[str, frozenset[int]]:
        """An attribute and its levels."""
        name, mark, values = part.partition("=")
        attribute = name if name in self._sizes else self._columns.get(name)
        if not mark or attribute is None:
            known = ", ".join((*self._sizes, *self._columns))
            raise ConfigError(
                f"table {self._table}: condition {part!r}: give one of {known}, = and its levels"
            )
        values = self._numbered(attribute, values) if name == attribute else values
        problems = Problems()
        sets = LevelSets(self._sizes[attribute], self._tables.get(attribute, {}))
        raw: Any = values if name == attribute else {name: values.split(",")}
        levels = frozenset(sets.read(raw, name, problems))
        problems.raise_if_any(f"table {self._table}")
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
                    f"table {self._table}: condition {attribute}={values}: {part!r} is no level.{nearest(part, known)} Allowed: {', '.join(known)}, "
                    f"or numbers from 0 to {len(known) - 1}"
                )
        return ",".join(labels.get(part.casefold(), part) for part in parts)


def _repeated(
    base: CensusTable, suffix: str, iteration: Mapping[str, str], schema: HistogramSchema
) -> CensusTable:
    """A base table for one race or origin."""
    households = base.histogram == "households"
    condition = iteration.get(base.histogram)
    if condition is None:
        raise ConfigError(
            f"table {base.name}{suffix}: the iteration {suffix} does not exist for {base.histogram}"
        )
    conditions = ConditionReader(base.name + suffix, schema)
    words = iteration["words"]
    of = f" with a householder who is {words}" if households else f": people who are {words}"
    return replace(
        base,
        name=base.name + suffix,
        title=f"{base.title} ({words.upper()}{' HOUSEHOLDER' if households else ''})",
        universe=base.universe + of,
        lines=tuple(replace(line, when=conditions.read(condition, line.when)) for line in base.lines),
    )
