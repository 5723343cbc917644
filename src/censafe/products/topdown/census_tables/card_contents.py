"""What stands on the card of an area: its tables by section, and what their first lines count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from censafe.model.cells.lines import CensusTable
from censafe.products.topdown.census_tables.definitions import CARD_TABLES, census_tables


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
