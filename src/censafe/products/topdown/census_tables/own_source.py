"""Published histograms of a run whose schemas are those of its configuration, as a source of tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, UsageError
from censafe.geography.area_names import NAMES, AreaNames, read_area_names
from censafe.geography.own_codes import AreaCodes
from censafe.model.cells.counting import AreaBlocks
from censafe.model.cells.lines import CensusTable
from censafe.model.entries import nearest
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.source import Geography, TableSource
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.plan import configuration_of_run
from censafe.publication.manifest import Manifest
from censafe.publication.microdata.histograms import histogram_geounits, read_histograms

OWN: Final = "own"
"""Stands for the product of such a run."""


class OwnSource(TableSource):
    """Histograms and tables of a finished run by the names of its configuration; levels are named without regard to case."""

    def __init__(self, run: Path, manifest: Manifest) -> None:
        super().__init__(OWN, run)
        self._config = configuration_of_run(run, manifest)
        self._levels = {name.lower(): name for name in published_levels(self._config)}
        self.lowest = list(self._levels)[-1]
        path = run / NAMES
        self.names = AreaNames(read_area_names(path) if path.exists() else {}, census=False)
        self.own = AreaCodes.of_run(run)
        self.stamp = manifest.stamp

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms of the configuration."""
        return tuple(one.name for one in self._config.histograms)

    @property
    def levels(self) -> tuple[str, ...]:
        """The published levels, the widest first."""
        return tuple(self._levels)

    @property
    def tables(self) -> Mapping[str, CensusTable]:
        """The tables of the configuration by name."""
        return self._config.tables

    def named(self, name: str) -> CensusTable:
        """One of the tables of the configuration."""
        if name not in self.tables:
            known = ", ".join(self.tables) or "none, since the configuration has no tables; give a query"
            raise ConfigError(
                f"table {name!r}: there is no such table of the run.{nearest(name, list(self.tables))} Allowed: {known}"
            )
        return self.tables[name]

    def lowest_of(self, table: CensusTable) -> str:
        """The lowest level; the configuration bounds no table."""
        return self.lowest

    def histogram(self, name: str) -> HistogramSchema:
        """Schema of a histogram of the configuration."""
        return self._config.histogram(name).schema

    def geography(self, word: str, state: str | None) -> Geography:
        """The areas of a level."""
        if state is not None:
            raise UsageError(
                f"state {state!r}: the areas of this run are not those of U.S. states; leave it out"
            )
        return super().geography(word.lower(), None)

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """The areas of a level in which anything was counted."""
        codes = [histogram_geounits(self._file(name, word)) for name in self.histogram_names]
        geounits = np.unique(np.concatenate(codes))
        return word, geounits, AreaBlocks(geounits, np.arange(len(geounits)))

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of geounits."""
        return read_histograms(self._file(histogram, level), geounits)

    def _file(self, histogram: str, level: str) -> Path:
        return self.place / "histograms" / f"{histogram}_{self._levels[level]}.parquet"
