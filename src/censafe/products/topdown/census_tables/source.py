"""What tables are made of: published histograms, and the areas that blocks lie in. All of it is public."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.geography.area_lists import ListedBlocks, kinds_of_blocks
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.grfc import NO_AIANNH, NO_PLACE
from censafe.geography.identifiers import GEOID_LEVELS, NAMES, AreaNames, geoids, read_area_names
from censafe.geography.own_codes import AreaCodes
from censafe.model.cells.counting import AreaBlocks, tabulated
from censafe.model.cells.lines import CensusTable
from censafe.model.entries import nearest
from censafe.model.schema import Schema
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.definitions import (
    SCHEMAS,
    CardContents,
    census_contents,
    census_tables,
    table_named,
)
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.folder import ESTIMATES, GEOGRAPHY
from censafe.publication.manifest import read_manifest
from censafe.publication.measurements.geography import Blocks, read_geography
from censafe.publication.microdata.histograms import histogram_geounits, histogram_schema, read_histograms
from censafe.publication.stamps import Stamp

LEVELS: Final[Mapping[str, str]] = {
    "us": "US", "state": "State", "county": "County", "tract": "Tract", "block_group": "Block_Group", "block": "Block",
}  # fmt: skip
"""Levels of census geography as they are asked for, and as a run calls them, the widest first."""
OFF_SPINE: Final = {"place": 2, "cousub": 5, "aiannh": 0}
"""Kinds of areas that a run knows of its blocks: places, county subdivisions, and American Indian, Alaska Native and Hawaiian areas; with the
first digits of a block's geocode that their codes begin with."""
_RANK: Final = tuple(LEVELS)
_PARENTS: Final = {2: 0, 5: 2, 7: 2, 10: 5, 11: 5, 12: 11, 15: 12}
_LEVEL_WORDS: Final = {
    "us": "nation", "block_group": "block group", "cousub": "county subdivision", "aiannh": "American Indian, Alaska Native or Hawaiian area",
}  # fmt: skip
_ALL_PERSONS: Final = {"dhc": ("P1", "P5", "P12"), "pl94": ("P1", "P2")}
_ALL_UNITS: Final = ("H1", "H3")
"""Tables whose first line counts all persons, by product, or all housing units."""
_STATE: Final = 2
_NAMED: Final = 5


@dataclass(frozen=True, eq=False)
class Geography:
    """Areas that a table is made for.

    Args:
        name: of their kind: a level, or a column of a list of areas.
        geounits: of that level, sorted, shape (geounits,).
        listed: whether they come from a list; its columns may have any name.
    """

    name: str
    level: str
    geounits: NDArray[np.str_] = field(repr=False)
    areas: AreaBlocks
    listed: bool = False
    remarks: tuple[str, ...] = ()


class TableSource(ABC):
    """Published histograms of one product: those of a finished run, or microdata."""

    def __init__(self, product: str, place: Path) -> None:
        self.product = product
        self.place = place
        self._last: tuple[tuple[str, str], SparseLevel] | None = None
        self._expected: frozenset[str] = frozenset()

    names: AreaNames
    """What stands beside geocodes."""
    own: AreaCodes | None = None
    """Codes of areas of a run with codes of its own."""
    stamp: Stamp | None
    """Of a test key or of published data; None for any other release."""
    recognized: str = ""
    """What was recognized, in one line; empty for a run folder."""

    @property
    @abstractmethod
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms that there are: persons, households, units."""

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """Words for the levels that there are, the widest first."""

    @abstractmethod
    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """Areas of a level: the level whose histograms are read, its geounits, sorted, and the areas of these."""

    @abstractmethod
    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of geounits."""

    @property
    def tables(self) -> Mapping[str, CensusTable]:
        """The tables of the product by name."""
        return census_tables(self.product)

    def named(self, name: str) -> CensusTable:
        """One of the tables; ConfigError where there is none of this name."""
        return table_named(name, self.product)

    def lowest_of(self, table: CensusTable) -> str:
        """The lowest level for which a table is published."""
        return table.lowest

    def histogram(self, name: str) -> HistogramSchema:
        """What is public of the cells of one of the histograms."""
        return shipped_schemas()[SCHEMAS[self.product][name]]

    def holds(self, table: CensusTable) -> bool:
        """Whether there are counts of what the table counts."""
        return table.histogram in self.histogram_names

    def require(self, table: CensusTable) -> None:
        """Refuse a table that the run cannot fill."""
        if table.needs:
            raise UsageError(f"table {table.name} cannot be made: the records do not tell {table.needs}")
        if not self.holds(table):
            raise UsageError(
                f"table {table.name} counts {table.histogram}, which {self.place} does not hold; allowed: tables of "
                f"{', '.join(self.histogram_names)}; fix: give a run that measures them"
            )

    def schema(self, table: CensusTable) -> Schema:
        """Schema of the histogram of a table."""
        return self.histogram(table.histogram).schema

    def expect(self, tables: Iterable[CensusTable]) -> None:
        """Note which tables are needed; where a file has several, they are read together."""
        self._expected = frozenset(table.name for table in tables)

    def values(self, table: CensusTable, geography: Geography) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Values of a table, some areas at a time: a range of areas and their values, shape (areas of the range, lines)."""
        yield from tabulated(table, self.schema(table), self.histograms(table, geography), geography.areas)

    def histograms(self, table: CensusTable, geography: Geography) -> SparseLevel:
        """Histograms of the geounits of a geography; those of the last call are at hand."""
        key = (table.histogram, geography.level)
        if self._last is None or self._last[0] != key:
            self._last = None  # let go before the next are read
            self._last = (key, self.read(*key, geography.geounits))
        return self._last[1]

    @property
    def card(self) -> CardContents:
        """What stands on the card of an area."""
        return census_contents(self.product)

    def areas_named(self, codes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The word for the level of some areas, and their codes as :meth:`codes_of` has them."""
        kinds = {GEOID_LEVELS.get(len(code), "") for code in codes}
        if len(kinds) != 1 or "" in kinds:
            raise UsageError(
                "name areas of one kind by their GEOIDs, of 2, 5, 7, 10, 11, 12 or 15 digits; or give a list of areas"
            )
        return kinds.pop(), tuple(codes)

    def codes_of(self, geography: Geography) -> NDArray[np.str_]:
        """The codes by which areas are named on cards and maps, shape (areas,)."""
        return geography.areas.names if geography.listed else geoids(geography.areas.names)

    def parents_of(self, geography: Geography) -> NDArray[np.str_]:
        """The area above each area, empty where all have the same, shape (areas,)."""
        codes = self.codes_of(geography)
        digits = 0 if geography.listed or not len(codes) else _PARENTS.get(len(codes[0]), 0)
        return np.array([code[:digits] for code in codes.tolist()], np.str_)

    def level_words(self, geography: Geography) -> str:
        """One area of the kind in words."""
        return _LEVEL_WORDS.get(geography.name, geography.name)

    def exact(self, table: CensusTable, geography: Geography) -> NDArray[np.bool_]:
        """Lines of a table that are published as they were counted: all housing units everywhere, all persons of states and the nation."""
        exact = np.zeros(len(table.lines), np.bool_)
        persons = table.name in _ALL_PERSONS[self.product] and geography.name in ("us", "state")
        exact[0] = persons or table.name in _ALL_UNITS
        return exact

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        """Geocodes of all blocks as numbers, rising, those without records included; None where they are not known."""
        return None

    def geography(self, word: str, state: str | None) -> Geography:
        """The areas of a level."""
        if word not in self.levels:
            raise UsageError(
                f"geography {word!r}: the run does not publish it.{nearest(word, self.levels)} Allowed: {', '.join(self.levels)}, or a "
                "list of areas"
            )
        level, geounits, areas = self.level(word)
        return Geography(word, level, geounits, _of_state(areas, geounits, state))

    lowest: str = "block"
    """The level of which areas of a list are made."""

    def listed(self, read: Callable[[GeocodeForm], ListedBlocks], state: str | None) -> tuple[Geography, ...]:
        """The areas of a list, by kind."""
        if self.lowest not in self.levels:
            raise UsageError(
                f"{self.place}: areas of a list are made of blocks, and there are numbers of {', '.join(self.levels)} alone; fix: name results that are published for blocks"
            )
        level, geounits, _ = self.level(self.lowest)
        form = GeocodeForm(len(geounits[0]))
        own, every = form.pack(geounits), self.blocks
        blocks = own if every is None else every
        kinds, remarks = kinds_of_blocks(read(form), blocks, form, counted=every is None)
        geographies = []
        for kind in kinds:
            # areas of the kind with any of the blocks
            used, number = np.unique(kind.area_of[np.searchsorted(blocks, own)], return_inverse=True)
            none = int(used[0] < 0)
            if len(used) == none:
                raise DataError(f"{kind.name}: nothing was counted in any area of the list")
            counted = AreaBlocks(kind.codes[used[none:]], number.reshape(-1) - none)
            empty = np.setdiff1d(kind.codes, counted.names).tolist()
            if empty:
                some = ", ".join(empty[:_NAMED])
                remarks += (
                    f"{len(empty):,} of {len(kind.codes):,} areas of {kind.name} have no records and no row, such as {some}.",
                )
            geographies.append(
                Geography(kind.name, level, geounits, _of_state(counted, geounits, state), listed=True)
            )
        return tuple(replace(one, remarks=remarks) for one in geographies)


def _of_state(areas: AreaBlocks, geounits: NDArray[np.str_], state: str | None) -> AreaBlocks:
    """The areas of one state alone."""
    if state is None:
        return areas
    inside = (geounits.astype(f"U{_STATE}") == state) & (areas.area >= 0)
    if not inside.any():
        raise UsageError(f"state {state!r}: there is no area of it; give its two-digit code")
    chosen = np.unique(areas.area[inside])
    number = np.full(len(areas.names), -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    return AreaBlocks(areas.names[chosen], np.where(inside, number[areas.area], -1))


class SourceWithIntervals(TableSource):
    """What was published, with something that gives intervals of its tables."""

    def __init__(self, source: TableSource) -> None:
        super().__init__(source.product, source.place)
        self._source = source
        self.names = source.names
        self.own = source.own
        self.stamp = source.stamp
        self.recognized = source.recognized
        self.lowest = source.lowest

    @property
    def tables(self) -> Mapping[str, CensusTable]:
        """The tables of the product by name."""
        return self._source.tables

    def named(self, name: str) -> CensusTable:
        """One of the tables."""
        return self._source.named(name)

    def histogram(self, name: str) -> HistogramSchema:
        """What is public of the cells of one of the histograms."""
        return self._source.histogram(name)

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms that there are."""
        return self._source.histogram_names

    @property
    def levels(self) -> tuple[str, ...]:
        """Words for the levels that there are, the widest first."""
        return self._source.levels

    @property
    def card(self) -> CardContents:
        """What stands on the card of an area."""
        return self._source.card

    def codes_of(self, geography: Geography) -> NDArray[np.str_]:
        """The codes by which areas are named on cards and maps."""
        return self._source.codes_of(geography)

    def parents_of(self, geography: Geography) -> NDArray[np.str_]:
        """The area above each area."""
        return self._source.parents_of(geography)

    def level_words(self, geography: Geography) -> str:
        """One area of the kind in words."""
        return self._source.level_words(geography)

    def exact(self, table: CensusTable, geography: Geography) -> NDArray[np.bool_]:
        """Lines of a table that are published as they were counted."""
        return self._source.exact(table, geography)

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        """Geocodes of all blocks as numbers."""
        return self._source.blocks

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """Areas of a level."""
        return self._source.level(word)

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Published histograms of geounits."""
        return self._source.read(histogram, level, geounits)

    def holds(self, table: CensusTable) -> bool:
        """Whether there are counts of what the table counts."""
        return super().holds(table) and self._source.holds(table)

    def expect(self, tables: Iterable[CensusTable]) -> None:
        """Note which tables are needed."""
        self._source.expect(tables)

    def values(self, table: CensusTable, geography: Geography) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Values of a table, some areas at a time."""
        yield from self._source.values(table, geography)


class HistogramSource(TableSource):
    """The published histograms of a finished run."""

    def __init__(self, run: Path) -> None:
        manifest = read_manifest(run / "manifest.json")
        if manifest.plan.product != "topdown":
            raise UsageError(
                f"{run} is a run of {manifest.plan.product}, whose tables are in {run / 'tables'}; this command takes runs of "
                "topdown dhc-us, dhc-pr, pl94-us or pl94-pr"
            )
        paths = {
            (word, histogram_schema(path)): path
            for word, level in LEVELS.items()
            for path in sorted((run / "histograms").glob(f"*_{level}.parquet"))
        }
        known = {schema for _, schema in paths}
        product = next((one for one, schemas in SCHEMAS.items() if known & set(schemas.values())), None)
        if product is None and (run / ESTIMATES).is_file():
            raise UsageError(
                f"{run} holds linear estimates of tables alone, no published counts; fix: read its file {ESTIMATES}, or give the run or the "
                "microdata with the published counts, `intervals` linear, and this folder as `estimates`"
            )
        if product is None:
            raise UsageError(
                f"{run} holds no histogram of the DHC or the redistricting data; fix: give the folder of a run of topdown dhc-us, dhc-pr, "
                "pl94-us or pl94-pr"
            )
        super().__init__(product, run)
        self._files = {
            (kind, word): paths[word, schema]
            for kind, schema in SCHEMAS[product].items()
            for word in LEVELS
            if (word, schema) in paths
        }
        self._geography = run / GEOGRAPHY
        names = run / NAMES
        self.names = AreaNames(read_area_names(names) if names.exists() else {}, census=True)
        self.stamp = manifest.stamp

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms that there are."""
        return tuple(dict.fromkeys(kind for kind, _ in self._files))

    @property
    def levels(self) -> tuple[str, ...]:
        """Words for the levels that the run publishes, the widest first, and for the areas of its blocks."""
        words = [word for word in LEVELS if any(level == word for _, level in self._files)]
        return (*words, *(self._off_spine if "block" in words else ()))

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        """Geocodes of all blocks as numbers."""
        return None if self._facts is None else self._facts.codes

    @cached_property
    def _facts(self) -> Blocks | None:
        return read_geography(self._geography) if self._geography.exists() else None

    @cached_property
    def _off_spine(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.str_]]]:
        """By kind, geocodes of the blocks that lie in an area of it, as numbers, and the codes of these areas."""
        blocks = self._facts
        if blocks is None or blocks.areas is None:
            return {}
        areas = {}
        for kind, digits in OFF_SPINE.items():
            number = getattr(blocks.areas, kind)
            none = NO_AIANNH if kind == "aiannh" else NO_PLACE
            inside = np.flatnonzero(number != none)
            if len(inside):
                prefix = blocks.form.unpack(blocks.codes[inside]).astype(f"U{max(digits, 1)}")
                own = np.char.zfill(number[inside].astype(np.str_), len(str(none)))
                areas[kind] = blocks.codes[inside], np.char.add(prefix, own) if digits else own
        return areas

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """The geounits of a level in which anything was counted."""
        if word in OFF_SPINE:
            return self._areas_of_blocks(word)
        codes = [histogram_geounits(path) for (_, level), path in self._files.items() if level == word]
        geounits = np.unique(np.concatenate(codes))
        return word, geounits, AreaBlocks(geounits, np.arange(len(geounits)))

    def _areas_of_blocks(self, kind: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        level, geounits, _ = self.level("block")
        codes, areas = self._off_spine[kind]
        packed = GeocodeForm(len(geounits[0])).pack(geounits)
        place = np.minimum(np.searchsorted(codes, packed), len(codes) - 1)
        inside = codes[place] == packed
        names, number = np.unique(areas[place[inside]], return_inverse=True)
        area = np.full(len(geounits), -1, np.int64)
        area[inside] = number.reshape(-1)
        return level, geounits, AreaBlocks(names, area)

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of geounits."""
        return read_histograms(self._files[histogram, level], geounits)


def is_published(table: CensusTable, geography: Geography) -> bool:
    """Whether a table is published for the areas; lists of areas are made of blocks, and may be of any size."""
    if geography.listed or geography.name not in (*_RANK, *OFF_SPINE):
        return True
    if geography.name in OFF_SPINE:
        return table.lowest != "county"
    return _RANK.index(geography.name) <= _RANK.index(table.lowest)


def require_published(table: CensusTable, geography: Geography) -> None:
    """Refuse a table below the lowest areas for which it is published."""
    if not is_published(table, geography):
        raise UsageError(
            f"table {table.name}: the lowest areas for which it is published are those of the level {table.lowest}, not {geography.name}; "
            f"allowed: {', '.join(_RANK[: _RANK.index(table.lowest) + 1])}"
        )
