"""Definitions of census tables: a cell is a line with a condition on the attributes of a histogram. They are data, beside this file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model.cells.lines import CensusTable, ConditionReader, parse_table
from censafe.model.entries import nearest
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.configuration.shipped import shipped_schemas

_DATA: Final = resources.files("censafe.products.topdown.census_tables").joinpath("data")
_FILES: Final = {"dhc": ("population", "quarters", "households", "units"), "pl94": ("redistricting",)}
_NAME: Final = re.compile("([A-Z]+)([0-9]+)([A-Z]*)")
_KINDS: Final = ("P", "PCT", "PCO", "H", "HCT")
_WORDS: Final = {"dhc": "DHC", "pl94": "redistricting data"}
_EXAMPLES: Final = {"dhc": ("P12", "PCT12A", "H4"), "pl94": ("P1", "P5", "H1")}
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


_OF_REPETITIONS: Final = ("iterations", "repeated_as", "repeated_lowest")


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
            base = parse_table(name, {key: entry[key] for key in entry if key not in _OF_REPETITIONS}, schema)
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


def _entries(file: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(_DATA.joinpath(f"{file}.toml").read_text(encoding="utf-8"))


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
    conditions = ConditionReader(f"table {base.name}{suffix}", schema.schema, schema.tables, schema.labels)
    words = iteration["words"]
    of = f" with a householder who is {words}" if households else f": people who are {words}"
    return replace(
        base,
        name=base.name + suffix,
        title=f"{base.title} ({words.upper()}{' HOUSEHOLDER' if households else ''})",
        universe=base.universe + of,
        lines=tuple(replace(line, when=conditions.read(condition, line.when)) for line in base.lines),
    )


@dataclass(frozen=True)
class CardSection:
    """Tables that stand together.

    Args:
        leading: table whose largest line is named first; of all in the section where it is not there.
        ages: table of which the section has a pyramid of ages.
    """

    key: str
    title: str
    tables: tuple[str, ...]
    leading: str = ""
    ages: str = ""


@dataclass(frozen=True)
class CardContents:
    """The tables of a card.

    Args:
        nouns: what the first line of a table counts, by name of the table; these are the facts above the sections.
        totals: tables of which the first is the size of an area.
        compared: tables by whose first lines areas are compared.
        queries: query of a histogram that a table shows, by name of the table; linear estimates of a run go by these.
        census: whether areas are those of census geography.
    """

    tables: tuple[CensusTable, ...]
    sections: tuple[CardSection, ...]
    nouns: Mapping[str, str]
    totals: tuple[str, ...]
    compared: tuple[str, ...]
    queries: Mapping[str, str] = field(default_factory=dict)
    census: bool = True


_SECTIONS: Final = (
    CardSection("people", "Who lives here?", ("P1", "P2", "P3", "P5", "P13"), ages="P12"),
    CardSection("homes", "How do they live?", ("H1", "H3", "H4", "P16", "H9"), leading="P16"),
)
_NOUNS: Final = {"P1": "people", "P13": "median age", "H1": "housing units", "P16": "households"}


@cache
def census_contents(product: str) -> CardContents:
    """Those of a product of the census.

    Example:
        >>> [table.name for table in census_contents("pl94").tables]
        ['P1', 'P2', 'P3', 'P5', 'H1']
    """
    known = census_tables(product)
    tables = tuple(known[name] for name in CARD_TABLES[product])
    return CardContents(tables, _SECTIONS, _NOUNS, ("P1", "H1"), ("P1", "P13", "H1"))
