"""The finished run that tables are made of: its published histograms, and the areas that its blocks lie in. All of it is public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.estimation.topdown.intervals.areas import read_block_areas
from censafe.geography.area_names import NAMES, AreaNames, read_area_names
from censafe.geography.geocodes import GeocodeForm
from censafe.model.entries import nearest
from censafe.model.schema import Schema
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import SCHEMAS, CensusTable
from censafe.products.topdown.census_tables.tabulate import AreaBlocks
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.manifest import read_manifest
from censafe.publication.microdata.histograms import histogram_geounits, histogram_schema, read_histograms
from censafe.publication.stamps import stamp_of

__all__ = ["Geography", "TableSource", "is_published", "require_published"]

_LEVELS: Final[Mapping[str, str]] = {
    "us": "US", "state": "State", "county": "County", "tract": "Tract", "block_group": "Block_Group", "block": "Block",
}  # fmt: skip
_RANK: Final = tuple(_LEVELS)
_STATE: Final = 2


@dataclass(frozen=True, eq=False)
class Geography:
    """Areas that a table is made for.

    Args:
        name: of their kind: a level, or a column of a list of areas.
        level: whose histograms are read: that of the areas, or ``block``.
        geounits: of that level, sorted, shape (geounits,).
        areas: of them.
    """

    name: str
    level: str
    geounits: NDArray[np.str_] = field(repr=False)
    areas: AreaBlocks


class TableSource:
    """The published histograms of a finished run of the DHC.

    Args:
        run: its folder.

    Raises:
        UsageError: a run of another product, or that holds no histogram of the DHC.
        StorageError: there is no finished run.
    """

    def __init__(self, run: Path) -> None:
        manifest = read_manifest(run / "manifest.json")
        if manifest.plan.product != "topdown":
            raise UsageError(
                f"{run} is a run of {manifest.plan.product}, whose tables stand in its folder; tables are made of runs of "
                "topdown dhc-us or dhc-pr"
            )
        self._files = {
            (kind, word): path
            for word, level in _LEVELS.items()
            for path in sorted((run / "histograms").glob(f"*_{level}.parquet"))
            for kind, schema in SCHEMAS.items()
            if histogram_schema(path) == schema
        }
        if not self._files:
            raise UsageError(
                f"{run} holds no histogram of the DHC ({', '.join(SCHEMAS.values())}); the tables of the redistricting data stand in its "
                "folder tables. Fix: give the folder of a run of topdown dhc-us or dhc-pr"
            )
        self._last: tuple[tuple[str, str], SparseLevel] | None = None
        names = run / NAMES
        self.names = AreaNames(read_area_names(names) if names.exists() else {}, census=True)
        self.stamp = stamp_of(test_key=manifest.test_key, published_data=manifest.published_data)

    @property
    def levels(self) -> tuple[str, ...]:
        """Words for the levels that the run publishes, the widest first."""
        return tuple(word for word in _LEVELS if any(level == word for _, level in self._files))

    def holds(self, table: CensusTable) -> bool:
        """Whether the run counts what the table counts."""
        return any(kind == table.histogram for kind, _ in self._files)

    def require(self, table: CensusTable) -> None:
        """Refuse a table that the run cannot fill.

        Raises:
            UsageError: says what is missing.
        """
        if table.needs:
            raise UsageError(f"table {table.name} cannot be made: the records do not tell {table.needs}")
        if not self.holds(table):
            raise UsageError(
                f"table {table.name} counts {table.histogram}, which the run did not measure; give a run with measure = {table.histogram}"
            )

    def schema(self, table: CensusTable) -> Schema:
        """Schema of the histogram of a table."""
        return shipped_schemas()[SCHEMAS[table.histogram]].schema

    def histograms(self, table: CensusTable, geography: Geography) -> SparseLevel:
        """Histograms of the geounits of a geography; those of the last call are at hand."""
        wanted = (table.histogram, geography.level)
        if self._last is None or self._last[0] != wanted:
            self._last = None  # let go before the next are read
            self._last = (wanted, read_histograms(self._files[wanted], geography.geounits))
        return self._last[1]

    def geographies(
        self, words: Sequence[str], lists: Sequence[Path], state: str | None
    ) -> tuple[Geography, ...]:
        """The levels and lists that were asked for.

        Args:
            words: names of levels, such as ``county``.
            lists: tables of blocks with a column for each kind of areas.
            state: two-digit code of the only state wanted; None for all.

        Raises:
            UsageError: a level that there is not, or nothing was asked for.
            DataError: a list breaks a rule, or the state has no geounit.
        """
        found = []
        for word in words:
            if word not in self.levels:
                raise UsageError(
                    f"geography {word!r}: the run does not publish it.{nearest(word, self.levels)} Allowed: {', '.join(self.levels)}, or a "
                    "list of areas"
                )
            geounits = self._geounits(word)
            inside = self._inside(geounits, state)
            area = np.where(inside, np.cumsum(inside) - 1, -1)
            found.append(Geography(word, word, geounits, AreaBlocks(geounits[inside], area)))
        for path in lists:
            found += self._listed(path, state)
        if not found:
            raise UsageError("name a geography, such as county, or a list of areas")
        return tuple(found)

    def _listed(self, path: Path, state: str | None) -> list[Geography]:
        geounits = self._geounits("block")
        form = GeocodeForm(len(geounits[0]))
        kinds, _ = read_block_areas(path, form.pack(geounits), form)
        inside = self._inside(geounits, state)
        return [
            Geography(
                kind.name, "block", geounits, AreaBlocks(kind.codes, np.where(inside, kind.area_of, -1))
            )
            for kind in kinds
        ]

    def _inside(self, geounits: NDArray[np.str_], state: str | None) -> NDArray[np.bool_]:
        if state is None:
            return np.ones(len(geounits), np.bool_)
        inside = np.array(geounits.astype(f"U{_STATE}") == state)
        if not inside.any():
            raise UsageError(
                f"state {state!r}: the run has no geounit of it at this level; give its two-digit code"
            )
        return inside

    def _geounits(self, word: str) -> NDArray[np.str_]:
        """Geounits of a level in which anything was counted."""
        return np.unique(
            np.concatenate(
                [histogram_geounits(path) for (_, level), path in self._files.items() if level == word]
            )
        )


def is_published(table: CensusTable, geography: Geography) -> bool:
    """Whether a table is published for the areas; lists of areas are made of blocks, and may be of any size."""
    return geography.name not in _RANK or _RANK.index(geography.name) <= _RANK.index(table.lowest)


def require_published(table: CensusTable, geography: Geography) -> None:
    """Refuse a table below the lowest areas for which it is published.

    Raises:
        UsageError: names the table and its lowest areas.
    """
    if not is_published(table, geography):
        raise UsageError(
            f"table {table.name}: the lowest areas for which it is published are those of the level {table.lowest}, not {geography.name}; "
            f"allowed: {', '.join(_RANK[: _RANK.index(table.lowest) + 1])}"
        )
