"""Published results as a source of tables, whoever made them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.area_names import AreaNames
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import SCHEMAS
from censafe.products.topdown.census_tables.source import LEVELS, HistogramSource, TableSource
from censafe.products.topdown.census_tables.tabulate import AreaBlocks
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.results.microdata import MicrodataRows
from censafe.results.source import PublishedSource, resolve

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
    published = resolve(path, layouts, state=state)
    return HistogramSource(path) if published.is_run else MicrodataSource(published)


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
    def held(self) -> tuple[str, ...]:
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
        if rows.layout.beside is None:
            return rows.histograms(geounits)
        households, units = rows.joined_histograms(geounits)
        return households if SCHEMAS[self.product][histogram] == rows.layout.schema.name else units


def _schemas(rows: MicrodataRows) -> tuple[str, ...]:
    """Schemas of the histograms that rows are of."""
    layout = rows.layout
    return (layout.schema.name, *(() if layout.beside is None else (layout.beside.schema.name,)))
