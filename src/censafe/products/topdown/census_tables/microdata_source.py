"""Published results as a source of tables, whoever made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.identifiers import AreaNames
from censafe.model.cells.counting import AreaBlocks
from censafe.model.cells.lines import CensusTable
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables
from censafe.products.topdown.census_tables.own_source import OwnSource
from censafe.products.topdown.census_tables.segments import segment_layout
from censafe.products.topdown.census_tables.source import LEVELS, Geography, HistogramSource, TableSource
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.manifest import read_manifest
from censafe.publication.microdata.histograms import histogram_schema
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.results.microdata import MicrodataRows
from censafe.results.source import KnownForms, PublishedSource, resolve
from censafe.results.summary import AreaRecords, AreaTables, Segments

_PL_SEGMENTS: Final = (("P1", "P2"), ("P3", "P4", "H1"), ("P5",))
_NAMED: Final = 5
_MOST: Final = 12
_DIGITS: Final = {"us": 0, "state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 16}


def open_source(path: Path, state: str | None = None) -> TableSource:
    """A finished run, or published results of any other form from which tables can be made.

    Args:
        state: two-digit code of the only state that is read of microdata; None for all.
    """
    layouts = {
        name: layout
        for name, layout in microdata_layouts().items()
        if layout.schema.name in {schema for schemas in SCHEMAS.values() for schema in schemas.values()}
    }
    published = resolve(path, census_forms(layouts), state=state)
    if published.tables is not None:
        return AreaTableSource(published, published.tables)
    if not published.is_run:
        return MicrodataSource(published)
    manifest = read_manifest(path / "manifest.json")
    schemas = {histogram_schema(one) for one in (path / "histograms").glob("*.parquet")}
    if manifest.plan.product == "topdown" and schemas.isdisjoint(shipped_schemas()) and schemas:
        return OwnSource(path, manifest)
    return HistogramSource(path)


def census_forms(layouts: Mapping[str, MicrodataLayout] | None = None) -> KnownForms:
    """All forms of published results of the census, with microdata of some layouts; of all without."""
    return KnownForms(microdata_layouts() if layouts is None else layouts, _segments(), _cells())


def _segments() -> dict[str, Segments]:
    """Tables of each segment of summary files with their numbers of cells, by the ending of the files."""
    layout, dhc, pl94 = segment_layout(), census_tables("dhc"), census_tables("pl94")
    return {
        "dhc": tuple(
            tuple((name, layout["empty"].get(name, len(dhc[name].lines))) for name in names)
            for names in layout["segments"]
        ),
        "pl": tuple(tuple((name, len(pl94[name].lines)) for name in names) for names in _PL_SEGMENTS),
    }


def _cells() -> dict[str, dict[str, int]]:
    """Number of cells of every table, by product; those that no record tells as they are published."""
    empty = segment_layout()["empty"]
    return {
        product: {
            name: empty[name] if table.needs and name in empty else len(table.lines)
            for name, table in census_tables(product).items()
        }
        for product in ("dhc", "pl94")
    }


class AreaTableSource(TableSource):
    """Published tables of areas, of summary files or files of their own; those of a list are sums of blocks."""

    def __init__(self, published: PublishedSource, files: AreaTables) -> None:
        super().__init__(files.product, published.path)
        self._files = files
        self._areas: dict[str, AreaRecords] = {}
        self.stamp = published.stamp
        self.recognized = published.words
        names = {
            code: name
            for word in self.levels
            if word != "block"
            for areas in [self._records(word)]
            for code, name in zip(areas.codes.tolist(), areas.names.tolist(), strict=True)
        }
        self.names = AreaNames(names, census=True)

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """What the tables count."""
        return tuple(
            dict.fromkeys(one.histogram for one in self.tables.values() if one.name in self._files.tables)
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """Words for the levels of which there are records, the widest first."""
        return self._files.levels

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        """Geocodes of all blocks as numbers, rising."""
        return np.sort(self._records("block").codes.astype(np.int64)) if "block" in self.levels else None

    def holds(self, table: CensusTable) -> bool:
        """Whether a table is there."""
        return table.name in self._files.tables

    def require(self, table: CensusTable) -> None:
        """Refuse a table of which cells are missing."""
        missing = self._files.missing(table.name)
        if missing:
            some = f"{', '.join(missing[:_NAMED])}{', ...' if len(missing) > _NAMED else ''}"
            there = [name for name in self.tables if name in self._files.tables]
            raise UsageError(
                f"table {table.name}: {self.place} lacks {some} ({self.recognized}); there are {', '.join(there[:_MOST]) or 'no complete tables'}"
                f"{', ...' if len(there) > _MOST else ''}; fix: give files with every cell of the table"
            )

    def _records(self, word: str) -> AreaRecords:
        if word not in self._areas:
            self._areas[word] = self._files.areas(word)
        return self._areas[word]

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """The areas of a level."""
        codes = np.sort(self._records(word).codes)
        return word, codes, AreaBlocks(codes, np.arange(len(codes)))

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Refused: tables do not say how many records every cell has."""
        raise UsageError(
            f"{self.place}: {self.recognized} have tables of areas and no histogram of {histogram}; fix: name a run folder or microdata of the same release"
        )

    def values(self, table: CensusTable, geography: Geography) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Values of a table: those of the areas themselves, or sums over blocks."""
        if table.median and geography.listed:
            raise UsageError(
                f"table {table.name}: the median of an area does not follow from those of its blocks; fix: name a run folder or microdata of the same release"
            )
        records = self._records(geography.level)
        own = self._files.values(table.name, records, self._expected)[
            np.argsort(records.codes, kind="stable")
        ]
        if own.shape[1] != len(table.lines):
            raise UsageError(f"table {table.name}: {self.place} has other cells than those defined here")
        empty = int(np.isnan(own).any(axis=1).sum())
        if empty and not table.median:
            raise UsageError(
                f"table {table.name}: {empty:,} areas have empty cells in {self.place}; fix: give files with every cell of the table"
            )
        inside = geography.areas.area >= 0
        values = np.zeros((len(geography.areas.names), own.shape[1]))
        np.add.at(values, geography.areas.area[inside], own[inside])
        yield slice(0, len(values)), values


class MicrodataSource(TableSource):
    """Microdata of the DHC or of the redistricting data, counted by block and cell.

    Files that show both, as those of 2020 do, are read as the DHC.
    """

    def __init__(self, published: PublishedSource) -> None:
        kinds = {
            product: {
                kind: rows
                for kind, schema in schemas.items()
                for rows in published.rows.values()
                if schema in _schemas(rows)
            }
            for product, schemas in SCHEMAS.items()
        }
        files = {part for rows in published.rows.values() for part in rows.parts}
        complete = [
            product
            for product, own in kinds.items()
            if files == {part for rows in own.values() for part in rows.parts}
        ]
        if not complete:
            raise UsageError(
                f"{published.path}: microdata of more than one product ({', '.join(sorted(map(str, files)))}); allowed: one of persons and one of units, of the DHC "
                "or of the redistricting data; fix: give the files of one of them"
            )
        super().__init__(complete[0], published.path)
        self._rows = kinds[complete[0]]
        self.names = AreaNames({}, census=True)
        self.stamp = published.stamp
        self.recognized = published.words

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms that there are."""
        return tuple(self._rows)

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels of census geography."""
        return tuple(LEVELS)

    @cached_property
    def _blocks(self) -> NDArray[np.str_]:
        """Geocodes of all blocks with rows, sorted."""
        return np.unique(np.concatenate([rows.geounits for rows in self._rows.values()]))

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """Areas of a level, made of the blocks with rows."""
        digits = _DIGITS[word]
        if not len(self._blocks):
            raise UsageError(
                f"{self.place}: there are no rows of the state; fix: give its two-digit code, or a file of it"
            )
        if not digits:
            return "block", self._blocks, AreaBlocks(np.array([""]), np.zeros(len(self._blocks), np.int64))
        names, area = np.unique(self._blocks.astype(f"U{digits}"), return_inverse=True)
        return "block", self._blocks, AreaBlocks(names, area.reshape(-1).astype(np.int64))

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of the blocks."""
        rows = self._rows[histogram]
        if rows.layout.companion is None:
            return rows.histograms(geounits)
        households, units = rows.joined_histograms(geounits)
        return households if SCHEMAS[self.product][histogram] == rows.layout.schema.name else units


def _schemas(rows: MicrodataRows) -> tuple[str, ...]:
    """Schemas of the histograms that rows are of."""
    layout = rows.layout
    return (layout.schema.name, *(() if layout.companion is None else (layout.companion.schema.name,)))
