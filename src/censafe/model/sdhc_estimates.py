"""Estimates of the S-DHC: non-negative counts and bounded ratios with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from censafe.model.sdhc_cells import Key

__all__ = ["CountEstimates", "EstimateFinding", "Estimated", "EstimatedFile", "RatioEstimates"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CountEstimates:
    """Estimates of one table, one row a population group and one column a cell: sums first, then basis cells.

    Args:
        table: name of the table.
        keys: of the rows.
        cells: of the columns.
        noisy: int64, shape (groups, cells).
        variance: float64, shape (groups, cells).
        geometric: bool, shape (groups, cells); whether a cell's noise is two-sided geometric.
        factor: margin of error in standard deviations.
        mean: posterior means before rounding, shape (groups, cells).
        pred: estimates, whole numbers, shape (groups, cells).
        low: lower ends, whole numbers, shape (groups, cells).
        high: upper ends, whole numbers, shape (groups, cells).
        sums: how many of the columns, from the first, are sums.
    """

    table: str
    keys: tuple[Key, ...]
    cells: tuple[int, ...]
    noisy: NDArray[np.int64] = field(repr=False)
    variance: Floats = field(repr=False)
    geometric: NDArray[np.bool_] = field(repr=False)
    factor: float
    mean: Floats = field(repr=False)
    pred: NDArray[np.int64] = field(repr=False)
    low: NDArray[np.int64] = field(repr=False)
    high: NDArray[np.int64] = field(repr=False)
    sums: int = 0


@dataclass(frozen=True, eq=False)
class RatioEstimates:
    """Estimates of one table, one row a population group and one column a cell: parts first, then the total.

    Args:
        table: name of the table.
        keys: of the rows.
        cells: of the columns.
        lowest: least ratio of every cell, shape (cells,).
        num: noisy numerators, int64, shape (groups, cells).
        num_variance: shape (groups, cells).
        den: noisy denominators, int64, shape (groups, cells).
        den_variance: shape (groups, cells).
        geometric: whether any noise of a group is two-sided geometric, shape (groups,).
        factor: margin of error in standard deviations.
        ratio: posterior means of the ratios, shape (groups, cells).
        low: lower quantiles.
        high: upper quantiles.
        num_mean: posterior means of the numerators.
        den_mean: posterior means of the denominators.
    """

    table: str
    keys: tuple[Key, ...]
    cells: tuple[int, ...]
    lowest: tuple[float, ...]
    num: NDArray[np.int64] = field(repr=False)
    num_variance: Floats = field(repr=False)
    den: NDArray[np.int64] = field(repr=False)
    den_variance: Floats = field(repr=False)
    geometric: NDArray[np.bool_] = field(repr=False)
    factor: float
    ratio: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    num_mean: Floats = field(repr=False)
    den_mean: Floats = field(repr=False)

    @property
    def noisy(self) -> Floats:
        """Noisy numerators over noisy denominators; not a number where the latter is 0."""
        return np.divide(self.num, self.den, out=np.full(self.num.shape, np.nan), where=self.den != 0)


@dataclass(frozen=True)
class EstimateFinding:
    """Something about one estimate that a reader should know.

    Args:
        table: name of the table.
        key: type of region, region and iteration.
        cell: number of the data cell.
        text: what it is.
    """

    table: str
    key: Key
    cell: int
    text: str

    def document(self) -> dict[str, str | int]:
        """The finding as JSON values."""
        kind, region, iteration = self.key
        return {
            "table": self.table,
            "region_type": kind,
            "region_id": region,
            "iteration": iteration,
            "cell": self.cell,
            "finding": self.text,
        }


@dataclass(frozen=True, eq=False)
class EstimatedFile:
    """Estimates of one table and one type of region.

    Args:
        region_type: ``USA``, ``STATE``, ...
        estimates: of counts or ratios.
        findings: what the check of the estimates reports.
    """

    region_type: str
    estimates: CountEstimates | RatioEstimates
    findings: tuple[EstimateFinding, ...]


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimates of all tables.

    Args:
        files: in the order of tables and types of regions.
        remarks: what a reader should know of whole tables.
    """

    files: tuple[EstimatedFile, ...] = field(repr=False)
    remarks: tuple[str, ...]

    @property
    def findings(self) -> tuple[EstimateFinding, ...]:
        """Of all files."""
        return tuple(finding for file in self.files for finding in file.findings)
