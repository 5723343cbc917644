"""The numbers of a card: tables of one area with their intervals, and a few of the areas beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.identifiers import geoids
from censafe.model.entries import nearest
from censafe.products.topdown.census_tables.definitions import CensusTable
from censafe.products.topdown.census_tables.intervals import ReplicatedSource, valued
from censafe.products.topdown.census_tables.source import Geography
from censafe.products.topdown.census_tables.tabulate import AreaBlocks

__all__ = ["CARD_TABLES", "KINDS", "CardTable", "CardValues", "Use", "card_values", "use_of"]

Use = Literal["exact", "yes", "with care", "no"]
"""Whether a number can be used."""
KINDS: Final = {
    2: "state",
    5: "county",
    7: "place",
    10: "cousub",
    11: "tract",
    12: "block_group",
    15: "block",
}
"""Level of an area by the number of digits of its GEOID."""
_PARENTS: Final = {2: 0, 5: 2, 7: 2, 10: 5, 11: 5, 12: 11, 15: 12}
CARD_TABLES: Final = {
    "dhc": ("P1", "P5", "P12", "P13", "H1", "H3", "H4", "H9", "P16"),
    "pl94": ("P1", "P2", "P3", "P5", "H1"),
}
"""The tables of a card, by product."""
_SURE: Final = 0.1
_USABLE: Final = 0.5
_Values = NDArray[np.float64]


def use_of(value: float, low: float, high: float) -> Use:
    """Whether a number can be used: by how far its interval reaches from it, as a share of it.

    At most a tenth: yes. At most half: with care. Further: no. Without width: exact.

    Example:
        >>> use_of(100, 100, 100), use_of(100, 92, 108), use_of(100, 70, 120), use_of(3, 0, 9)
        ('exact', 'yes', 'with care', 'no')
    """
    reach = max(high - value, value - low)
    if reach == 0:
        return "exact"
    share = reach / value if value > 0 else np.inf
    return "yes" if share <= _SURE else "with care" if share <= _USABLE else "no"


@dataclass(frozen=True, eq=False)
class CardTable:
    """A table for some areas; the arrays have the shape (areas, lines).

    Args:
        table: its definition.
        values: published.
        low: lower ends of the intervals.
        high: upper ends.
    """

    table: CensusTable
    values: _Values = field(repr=False)
    low: _Values = field(repr=False)
    high: _Values = field(repr=False)


@dataclass(frozen=True, eq=False)
class CardValues:
    """The tables of the areas of one kind.

    Args:
        kind: level, or column of a list of areas.
        codes: of the areas: GEOIDs, or codes of a list.
        names: of the areas; empty where not known.
        parent: of each area, the code of the area that holds it; areas of one parent are compared.
        tables: by name.
    """

    kind: str
    codes: tuple[str, ...]
    names: tuple[str, ...]
    parent: tuple[str, ...]
    tables: Mapping[str, CardTable]

    def beside(self, code: str) -> tuple[int, ...]:
        """Places of the areas of the same parent, the area itself included."""
        own = self.parent[self.codes.index(code)]
        return tuple(place for place, parent in enumerate(self.parent) if parent == own)


def card_values(
    source: ReplicatedSource, places: Sequence[Geography], wanted: Sequence[str], confidence: float
) -> CardValues:
    """Tables of the wanted areas and of those beside them.

    Args:
        source: what was published, with its replicates.
        places: the geography of the areas, or a list of areas with one kind.
        wanted: codes of the areas; none for all.
        confidence: of the intervals.

    Raises:
        UsageError: several kinds of areas, or an area that is not there.
    """
    if len(places) > 1:
        raise UsageError(
            f"the list has {len(places)} kinds of areas ({', '.join(one.name for one in places)}); give one column"
        )
    (place,) = places
    names = place.areas.names
    codes = names if place.listed else geoids(names)
    missing = [code for code in wanted if code not in set(codes.tolist())]
    if missing:
        raise UsageError(
            f"{missing[0]!r}: there is no such area of the kind {place.name} in which anything was counted."
            f"{nearest(missing[0], codes.tolist())}"
        )
    digits = 0 if place.listed else _PARENTS.get(len(codes[0]), 0)
    parents = np.array([code[:digits] for code in codes.tolist()])
    shown = np.isin(parents, [code[:digits] for code in wanted]) if wanted else np.ones(len(codes), np.bool_)
    geography = _only(place, shown)
    tables = {
        name: _gathered(source, source.tables[name], geography, confidence)
        for name in CARD_TABLES[source.product]
        if source.holds(source.tables[name])
    }
    titles = source.names.given(codes) if place.listed else source.names.names(names)
    return CardValues(
        place.name,
        tuple(codes[shown].tolist()),
        tuple(titles[shown].tolist()),
        tuple(parents[shown].tolist()),
        tables,
    )


def _only(place: Geography, shown: NDArray[np.bool_]) -> Geography:
    number = np.where(shown, np.cumsum(shown) - 1, -1)
    area = np.where(place.areas.area >= 0, number[place.areas.area], -1)
    areas = AreaBlocks(place.areas.names[shown], area)
    return Geography(place.name, place.level, place.geounits, areas, listed=place.listed)


def _gathered(
    source: ReplicatedSource, table: CensusTable, geography: Geography, confidence: float
) -> CardTable:
    parts = [
        (values, intervals.low, intervals.high)
        for _, values, intervals in valued(source, table, geography, confidence)
        if intervals is not None
    ]
    values, low, high = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return CardTable(table, values, low, high)
