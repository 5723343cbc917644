"""Intervals of table cells from the linear estimates that a run made of its noisy answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import CensusTable
from censafe.products.topdown.census_tables.source import Geography, TableSource
from censafe.products.topdown.census_tables.tabulate import AreaBlocks

__all__ = ["ESTIMATES", "EstimatedSource", "LinearIntervals"]

ESTIMATES: Final = "table_estimates.parquet"
"""Linear estimates of tables in the folder of a run."""
_Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearIntervals:
    """Linear estimates with their intervals; all arrays have the shape of the values, and are NaN where there is no estimate.

    Args:
        low: lower ends.
        high: upper ends.
        estimate: unbiased, neither whole nor above 0 by force.
        sd: its standard deviation.
    """

    low: _Values = field(repr=False)
    high: _Values = field(repr=False)
    estimate: _Values = field(repr=False)
    sd: _Values = field(repr=False)

    @property
    def beside(self) -> Mapping[str, _Values]:
        """What stands beside the ends."""
        return {"estimate": self.estimate, "sd": self.sd}


class EstimatedSource(TableSource):
    """What a run published, with the linear estimates that it made.

    Args:
        source: what was published.
        run: its folder.

    Raises:
        UsageError: the run made no linear estimates.
    """

    def __init__(self, source: TableSource, run: Path) -> None:
        super().__init__(source.product, source.place)
        path = run / ESTIMATES
        if not path.is_file():
            raise UsageError(
                f"{run} has no linear estimates of tables; fix: give 'censafe estimate {run} --tables TABLE,TABLE' (if the run stored its "
                "measurements), or give --tables at the run, or take intervals from replicates (censafe replicate)"
            )
        self._source = source
        self._path = path
        self.names = source.names
        self.stamp = source.stamp

    @property
    def held(self) -> tuple[str, ...]:
        """The histograms that there are."""
        return self._source.held

    @property
    def levels(self) -> tuple[str, ...]:
        """Words for the levels that there are, the widest first."""
        return self._source.levels

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """Areas of a level."""
        return self._source.level(word)

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Published histograms of geounits."""
        return self._source.read(histogram, level, geounits)

    def intervals(
        self, table: CensusTable, geography: Geography, areas: slice, confidence: float
    ) -> LinearIntervals:
        """Intervals of a table in some areas, under the normal law.

        Args:
            table: its definition.
            geography: the areas.
            areas: which of them.
            confidence: of the intervals.

        Raises:
            UsageError: the run did not estimate the table, or not for these areas.
        """
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
        """Whether the run estimated a table for every one of these areas."""
        found = self._read(table, geography)
        known = np.array(found.column("area").to_pylist(), np.str_)
        return bool(found.num_rows) and bool(np.isin(geography.areas.names, known).all())

    def _read(self, table: CensusTable, geography: Geography) -> pa.Table:
        return pq.read_table(
            self._path,
            columns=["area", "variable", "estimate", "sd"],
            filters=[("geography", "=", geography.name), ("table", "=", table.name)],
        )

    def _rows(self, table: CensusTable, geography: Geography) -> dict[str, NDArray[np.generic]]:
        """Area, variable, estimate and standard deviation of a table for one kind of areas."""
        found = self._read(table, geography)
        if not found.num_rows:
            there = pq.read_table(self._path, columns=["geography", "table"])
            tables, kinds = (_different(there, name) for name in ("table", "geography"))
            raise UsageError(
                f"table {table.name}, {geography.name}: the run made no linear estimates of it; it has {', '.join(tables)} for {', '.join(kinds)}; "
                "fix: name them in `tables` and `areas` of the run, or ask for intervals of replicates"
            )
        texts = {name: np.array(found.column(name).to_pylist(), np.str_) for name in ("area", "variable")}
        numbers = {name: found.column(name).to_numpy() for name in ("estimate", "sd")}
        return {**texts, **numbers}


def _different(table: pa.Table, name: str) -> list[str]:
    return [str(one) for one in pc.unique(table.column(name).cast(pa.string())).to_pylist()]
