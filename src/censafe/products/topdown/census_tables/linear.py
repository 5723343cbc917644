"""Intervals of table cells from the linear estimates that a run made of its noisy answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.files import MOST_PER_BYTE_OF_RUN, read_rows
from censafe.model.cells.lines import CensusTable
from censafe.products.topdown.census_tables.source import (
    Geography,
    SourceWithIntervals,
    TableSource,
)
from censafe.products.topdown.folder import ESTIMATES
from censafe.products.topdown.plan import CONFIGURATION
from censafe.publication.intervals import PARQUET_FILE
from censafe.publication.manifest import read_manifest

_ROUNDING: Final = 1e-6  # of linear estimates, far below a count
_Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearIntervals:
    """Linear estimates with their intervals; all arrays have the shape of the values, and are NaN where there is no estimate."""

    low: _Values = field(repr=False)
    high: _Values = field(repr=False)
    estimate: _Values = field(repr=False)
    sd: _Values = field(repr=False)

    @property
    def statistics(self) -> Mapping[str, _Values]:
        """What is published besides the ends: estimate and standard deviation."""
        return {"estimate": self.estimate, "sd": self.sd}

    def rounded(self, values: _Values) -> tuple[_Values, _Values]:
        """Ends as whole numbers, outward, not below 0, and around what was published: none of it leaves out a count inside of the interval.

        A number is never shown as exact that is not: an interval below 0 reaches from 0 to 1.
        """
        low, high = np.floor(self.low + _ROUNDING), np.ceil(self.high - _ROUNDING)
        least = np.where(self.sd > 0, np.maximum(values, 1), values)
        return np.minimum(np.maximum(low, 0), values), np.maximum(high, least)


class EstimatedSource(SourceWithIntervals):
    """What was published, with linear estimates of the same tables.

    Args:
        folder: that has the estimates: the run, or one in which they were made of the noisy answers of the same release.
    """

    file = ESTIMATES
    """Of a run folder, with the estimates."""

    def __init__(self, source: TableSource, folder: Path) -> None:
        super().__init__(source)
        path = folder / self.file
        if not path.is_file():
            raise UsageError(
                f"{folder} has no linear estimates ({self.file}); fix: {self.ways(folder)}; or {ways_to_replicates(source.place)}"
            )
        if (b"stamp" in (pq.read_schema(path).metadata or {})) != (source.stamp is not None):
            raise UsageError(
                f"{folder}, {source.place}: one of them was made with a test key or of published data, and the other was not; fix: give "
                "`estimates` of the release"
            )
        self._path = path
        self._last_rows: tuple[tuple[str, str], dict[str, NDArray[np.generic]]] | None = None

    @staticmethod
    def ways(folder: Path) -> str:
        """How to come by the estimates."""
        return ways_to_linear(folder)

    def intervals(
        self, table: CensusTable, geography: Geography, areas: slice, confidence: float
    ) -> LinearIntervals:
        """Intervals of a table in some areas, under the normal law."""
        rows = self._rows(table, geography)
        codes = geography.areas.names[areas]
        values = np.full((len(codes), len(table.lines), 2), np.nan)
        order = np.argsort(codes)
        place = np.minimum(np.searchsorted(codes[order], rows["area"]), max(len(codes) - 1, 0))
        known = codes[order][place] == rows["area"] if len(codes) else np.zeros(len(place), np.bool_)
        number = {variable: line for line, variable in enumerate(table.variables)}
        lines = np.array([number[one] for one in rows["variable"][known].tolist()], np.int64)
        for column, name in enumerate(("estimate", "sd")):
            values[order[place[known]], lines, column] = rows[name][known]
        estimate, spread = values[..., 0], values[..., 1]
        reach = NormalDist().inv_cdf(0.5 + confidence / 2) * spread
        return LinearIntervals(estimate - reach, estimate + reach, estimate, spread)

    def covers(self, table: CensusTable, geography: Geography) -> bool:
        """Whether there are estimates of a table for every one of these areas."""
        rows = self._rows(table, geography)
        return set(rows["variable"].tolist()) == set(table.variables) and bool(
            np.isin(geography.areas.names, rows["area"]).all()
        )

    def has(self, table: CensusTable, geography: Geography) -> bool:
        """Whether there are estimates of a table for areas of a kind."""
        return (geography.name, table.name) in self._known

    def require_estimates(self, table: CensusTable, geography: Geography) -> None:
        """Refuse a table that was not estimated, or not for areas of the kind."""
        if not self.has(table, geography):
            raise UsageError(f"table {table.name}, {geography.name}: {self._missing(table, geography)}")
        rows = self._rows(table, geography)
        same = set(rows["variable"].tolist()) == set(table.variables)
        if not same or not np.isin(rows["area"], geography.areas.names).any():
            raise UsageError(
                f"table {table.name}, {geography.name}: {self._path.parent} has linear estimates of other {'areas' if same else 'cells'} than "
                f"{self.place}; fix: give `estimates` of the same release"
            )

    def _missing(self, table: CensusTable, geography: Geography) -> str:
        """What there is instead of the estimates of a table, and how to come by these."""
        if table.median:
            return f"medians have no linear estimates; fix: {ways_to_replicates(self.place)}"
        kinds, tables = (list(dict.fromkeys(column)) for column in zip(*self._known, strict=True))
        names = list(dict.fromkeys([*tables, table.name]))
        fix = ways_to_linear(self._path.parent, names, listed=geography.name not in kinds)
        return (
            f"{self._path.parent} has no linear estimates of it, but of {', '.join(tables)} for {', '.join(kinds)}; fix: {fix}; or "
            f"{ways_to_replicates(self.place)}"
        )

    @cached_property
    def _known(self) -> tuple[tuple[str, str], ...]:
        """Kinds of areas and tables of which there are estimates."""
        names = ["geography", "table"]
        there = read_rows(self._path, per_byte=MOST_PER_BYTE_OF_RUN, columns=names)
        words = pa.table({name: there.column(name).cast(pa.string()) for name in names})
        pairs = words.group_by(names, use_threads=False).aggregate([])
        return tuple((str(one["geography"]), str(one["table"])) for one in pairs.to_pylist())

    def _rows(self, table: CensusTable, geography: Geography) -> dict[str, NDArray[np.generic]]:
        """Area, variable, estimate and standard deviation of a table for one kind of areas; those of the last call are at hand."""
        key = (table.name, geography.name)
        if self._last_rows is None or self._last_rows[0] != key:
            rows = self._stored(table, geography)
            texts = {name: np.array(rows.column(name).to_pylist(), np.str_) for name in ("area", "variable")}
            numbers = {name: rows.column(name).to_numpy() for name in ("estimate", "sd")}
            self._last_rows = (key, {**texts, **numbers})
        return self._last_rows[1]

    def _stored(self, table: CensusTable, geography: Geography) -> pa.Table:
        return read_rows(
            self._path,
            per_byte=MOST_PER_BYTE_OF_RUN,
            columns=["area", "variable", "estimate", "sd"],
            filters=[("geography", "=", geography.name), ("table", "=", table.name)],
        )


class QueryEstimates(EstimatedSource):
    """What was published, with linear estimates of queries: those of runs with schemas of their own."""

    file = PARQUET_FILE

    @staticmethod
    def ways(folder: Path) -> str:
        """How to come by the estimates."""
        return ways_to_linear(folder, ())

    def has(self, table: CensusTable, geography: Geography) -> bool:
        """Whether there are estimates of the query of a table for areas of a kind."""
        return bool(len(self._rows(table, geography)["area"]))

    def _missing(self, table: CensusTable, geography: Geography) -> str:
        listed = ways_to_linear(self._path.parent, (), listed=geography.listed)
        return (
            f"{self._path.parent} has no linear estimates of it, which queries without a condition have that its intervals name; fix: {listed} "
            f"--query QUERY; or {ways_to_replicates(self.place)}"
        )

    def _stored(self, table: CensusTable, geography: Geography) -> pa.Table:
        query = self.card.queries.get(table.name, table.title)
        kind = geography.name if geography.listed else self.level_words(geography)
        rows = read_rows(
            self._path,
            per_byte=MOST_PER_BYTE_OF_RUN,
            columns=["geocode", "cell", "estimate", "sd"],
            filters=[("histogram", "=", table.histogram), ("kind", "=", kind), ("query", "=", query)],
        )
        cells = rows.column("cell").to_pylist()
        variables = pa.array([table.variables[cell] for cell in cells], pa.string())
        return rows.rename_columns(["area", *rows.column_names[1:]]).append_column("variable", variables)


def ways_to_linear(folder: Path, tables: Sequence[str] = ("TABLE",), *, listed: bool = False) -> str:
    """How to come by linear estimates of tables, or of the queries of a run where there are none."""
    chosen, of = (f"--tables {','.join(tables)}", "blocks") if tables else ("--intervals", "areas")
    words = f"{chosen}{f' --areas FILE, a list of {of} with the area of each' * listed}"
    if not (folder / "manifest.json").exists():
        return (
            "name as `estimates` a folder that 'censafe estimate topdown CONFIG FOLDER --measurements FILES --tables TABLE' wrote from the public "
            "noisy measurements of the same release"
        )
    manifest = read_manifest(folder / "manifest.json")
    if not (folder / CONFIGURATION).exists():
        return f"censafe estimate topdown CONFIG FOLDER --measurements FILES {words}"
    if manifest.config.settings.get("noisy_measurements") == "lazy":
        return f"none can be made of this run, which stored no noisy answers; a new run makes them with {words if tables else '--set noisy_measurements=stored'}"
    return f"censafe estimate {folder} {words}"


def ways_to_replicates(place: Path) -> str:
    """How to come by intervals of replicates."""
    if (place / "manifest.json").exists():
        return f"for intervals of replicates censafe replicate {place}"
    return "for intervals of replicates name a folder with a folder of microdata for each of them as `replicates`"
