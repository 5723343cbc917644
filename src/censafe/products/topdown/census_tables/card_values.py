"""The numbers of a card: tables of one area with their intervals, and a few of the areas beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model.cells.counting import AreaBlocks
from censafe.model.cells.lines import CensusTable
from censafe.model.entries import nearest
from censafe.products.topdown.census_tables.definitions import CardContents
from censafe.products.topdown.census_tables.intervals import (
    ReplicatedSource,
    open_replicates,
    replicates_of,
    valued,
)
from censafe.products.topdown.census_tables.linear import (
    EstimatedSource,
    LinearIntervals,
    QueryEstimates,
    ways_to_linear,
    ways_to_replicates,
)
from censafe.products.topdown.census_tables.source import Geography, TableSource
from censafe.publication.stamps import Stamp

Use = Literal["exact", "did not change", "yes", "with care", "no"]
"""Whether a number can be used."""
_SURE: Final = 0.1
_USABLE: Final = 0.5
_Values = NDArray[np.float64]


def use_of(value: float, low: float, high: float, *, exact: bool = False) -> Use:
    """Whether a number can be used: by how far its interval reaches from it, as a share of it.

    At most a tenth: yes. At most half: with care. Further: no. Only what is published as it was counted is exact; any other number without
    width did not change in the replicates.

    Example:
        >>> use_of(100, 92, 108), use_of(100, 70, 120), use_of(3, 0, 9), use_of(3, 3, 3)
        ('yes', 'with care', 'no', 'did not change')
        >>> use_of(100, 100, 100, exact=True)
        'exact'
    """
    reach = max(high - value, value - low)
    if reach == 0:
        return "exact" if exact else "did not change"
    share = reach / value if value > 0 else np.inf
    return "yes" if share <= _SURE else "with care" if share <= _USABLE else "no"


@dataclass(frozen=True, eq=False)
class CardTable:
    """A table for some areas; the arrays have the shape (areas, lines).

    Args:
        exact: whether the number is published as it was counted, or follows from such numbers.
    """

    definition: CensusTable
    values: _Values = field(repr=False)
    low: _Values = field(repr=False)
    high: _Values = field(repr=False)
    exact: NDArray[np.bool_] = field(repr=False)
    linear: bool = False


@dataclass(frozen=True, eq=False)
class CardValues:
    """The tables of the areas of one kind.

    Args:
        kind: one of the areas in words.
        parent: of each area, the code of the area that holds it; areas of one parent are compared.
        stamp: of a test key or of published data; None for any other release.
    """

    kind: str
    contents: CardContents
    codes: tuple[str, ...]
    names: tuple[str, ...]
    parent: tuple[str, ...]
    tables: Mapping[str, CardTable]
    replicates: int
    confidence: float
    stamp: Stamp | None
    remarks: tuple[str, ...] = ()

    @property
    def level(self) -> str:
        """The confidence in words."""
        return f"{100 * self.confidence:g}%"

    def neighbors(self, code: str) -> tuple[int, ...]:
        """Places of the areas of the same parent, the area itself included."""
        own = self.parent[self.codes.index(code)]
        return tuple(place for place, parent in enumerate(self.parent) if parent == own)


def card_values(
    sources: Sequence[EstimatedSource | ReplicatedSource],
    places: Sequence[Geography],
    chosen: Sequence[str],
    confidence: float,
) -> CardValues:
    """Tables of the chosen areas and of their neighbors."""
    source = sources[0]
    if len(places) > 1:
        raise UsageError(
            f"the list has {len(places)} kinds of areas ({', '.join(one.name for one in places)}); give one column"
        )
    (place,) = places
    names, codes = place.areas.names, source.codes_of(place)
    missing = [code for code in chosen if code not in set(codes.tolist())]
    if missing:
        raise UsageError(
            f"{missing[0]!r}: there is no such area of the kind {place.name} in which anything was counted."
            f"{nearest(missing[0], codes.tolist())}"
        )
    parents = source.parents_of(place)
    inside = np.isin(parents, parents[np.isin(codes, chosen)]) if chosen else np.ones(len(codes), np.bool_)
    number = np.where(inside, np.cumsum(inside) - 1, -1)
    area = np.where(place.areas.area >= 0, number[place.areas.area], -1)
    geography = replace(place, areas=AreaBlocks(names[inside], area), remarks=())
    tables = _tables(sources, geography, confidence)
    replicated = [one for one in sources if isinstance(one, ReplicatedSource)]
    titles = source.names.names_by_code(codes) if place.listed else source.names.names(names)
    titles = np.where(
        titles == codes, "", titles
    )  # what stands in the place of names of areas with codes of their own
    return CardValues(
        source.level_words(place),
        source.card,
        tuple(codes[inside].tolist()),
        tuple(titles[inside].tolist()),
        tuple(parents[inside].tolist()),
        tables,
        sum(len(one.replicates) for one in replicated),
        confidence,
        source.stamp,
        tuple(text for one in replicated for text in one.remarks),
    )


def interval_sources(
    published: TableSource, run: Path, replicates: Path | None, estimates: Path | None = None
) -> tuple[EstimatedSource | ReplicatedSource, ...]:
    """What a run was published with that gives intervals, in the order in which it is used."""
    if estimates is not None and replicates is not None:
        raise UsageError("`estimates` and `replicates` give two kinds of intervals; name one of them")
    own = estimates or run
    kind = QueryEstimates if published.card.queries else EstimatedSource
    linear = replicates is None and (estimates is not None or (own / kind.file).is_file())
    folder = replicates or replicates_of(run)
    if not linear and replicates is None and not folder.is_dir():
        raise UsageError(
            f"{run} has neither linear estimates of {'queries' if published.card.queries else 'tables'} nor replicates ({folder}); fix: {ways_to_linear(run, _estimable(published))}; or "
            f"{ways_to_replicates(run)}"
        )
    return (
        *([kind(published, own)] if linear else []),
        *([open_replicates(published, folder)] if not linear or folder.is_dir() else []),
    )


def _estimable(source: TableSource) -> list[str]:
    """Tables of a card that have linear estimates."""
    own = source.card.queries
    return [] if own else [table.name for table in source.card.tables if not table.median]


def _tables(
    sources: Sequence[EstimatedSource | ReplicatedSource], geography: Geography, confidence: float
) -> dict[str, CardTable]:
    """The tables of a card, each with the intervals of the first source that has them."""
    source = sources[0]
    tables = {}
    source.expect(source.card.tables)
    for table in source.card.tables:
        covering = (
            candidate
            for candidate in sources
            if isinstance(candidate, ReplicatedSource) or candidate.covers(table, geography)
        )
        own = next(covering, None) if source.holds(table) else None
        if own is None:
            continue
        parts = []
        for _, values, intervals in valued(own, table, geography, confidence):
            known = np.broadcast_to(own.exact(table, geography), values.shape)
            if isinstance(intervals, LinearIntervals):
                parts.append((values, *intervals.rounded(values), known | (intervals.sd == 0)))
            elif intervals is not None:
                parts.append((values, intervals.low, intervals.high, known))
        values, low, high, exact = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        linear = isinstance(own, EstimatedSource)
        tables[table.name] = CardTable(table, values, low, high, exact.astype(np.bool_), linear)
    if not tables:
        raise UsageError(
            f"{source.place}: no linear estimates of the tables of a card for every {geography.name} here; fix: "
            f"{ways_to_linear(source.place, _estimable(source), listed=True)}; or {ways_to_replicates(source.place)}"
        )
    return tables
