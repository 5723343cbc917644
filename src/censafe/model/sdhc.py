"""The S-DHC: what can be chosen about its estimates, the noisy counts that enter, the estimates that leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.model.arrays import Floats

Interval = Literal["equal-tailed", "shortest"]
Model = Literal["continuous", "discrete"]
Marginals = Literal["sum-of-rounded", "exact", "largest-remainder"]
Tenure = Literal["separate", "joint"]
Method = Literal["exact", "sample"]
Conventions = Literal["censafe", "reference"]
Quoting = Literal["names-and-text", "none"]


@dataclass(frozen=True)
class EstimateSettings:
    """How estimates and intervals are made.

    Args:
        model: normal noise about any number of 0 or more, or the exact law about whole numbers.
        marginals: estimate of a sum of cells: the sum of their rounded estimates, or its own rounded mean; or cells rounded
            by largest remainder, so that they add up to the rounded mean of their sum.
        ph8: total of owners and renters from a fit of its own, or implied by those of the two.
        conventions: ``reference`` for those of the Bureau's programs, which leave no other choice.
    """

    alpha: float = 0.05
    trun: float = 10.0
    exclude_levels: tuple[str, ...] = ("TRACT", "PLACE", "BLOCK_GROUP", "AIANNH")
    interval: Interval = "equal-tailed"
    model: Model = "continuous"
    marginals: Marginals = "sum-of-rounded"
    ph8: Tenure = "separate"
    method: Method = "exact"
    conventions: Conventions = "censafe"
    quoting: Quoting = "names-and-text"
    iteration_num: int = 1_000_000
    seed: int = 777

    def document(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {**asdict(self), "exclude_levels": list(self.exclude_levels)}


Texts = NDArray[np.str_]
Key = tuple[str, str, str]
"""Type of region, region, iteration."""


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Noisy counts of one table, one entry a published row.

    Args:
        count: int64, may be negative.
        variance: float64, the published VARIANCE.
    """

    table: str
    region_type: Texts
    region: Texts
    iteration: Texts
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    variance: Floats
    geometric: NDArray[np.bool_]

    def selected(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> NoisyCells:
        """Some of the rows, by mask or by number."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


_COLUMNS = ("region_type", "region", "iteration", "cell", "count", "variance", "geometric")


def concatenated(tables: Sequence[NoisyCells]) -> NoisyCells:
    """Rows of several levels of one table, one after another."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS
    }
    return replace(tables[0], **joined)


def key_text(table: str, key: Key, cell: int | None = None) -> str:
    """A population group, and a cell, for messages.

    Example:
        >>> key_text("PH3", ("STATE", "44", "A"), 4)
        'PH3, STATE 44, iteration A, cell 4'
    """
    kind, region, iteration = key
    return f"{table}, {kind} {region}, iteration {iteration}" + ("" if cell is None else f", cell {cell}")


@dataclass(frozen=True, eq=False)
class CountEstimates:
    """Estimates of one table, one row a population group and one column a cell: sums first, then basis cells.

    Args:
        noisy: int64, shape (groups, cells).
        variance: float64, shape (groups, cells).
        geometric: bool, shape (groups, cells); whether a cell's noise is two-sided geometric.
        mean: posterior means before rounding, shape (groups, cells).
        pred: estimates, whole numbers, shape (groups, cells).
        low: lower ends, whole numbers, shape (groups, cells).
        high: upper ends, whole numbers, shape (groups, cells).
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
        lowest: least ratio of every cell, shape (cells,).
        num: noisy numerators, int64, shape (groups, cells).
        num_variance: shape (groups, cells).
        den: noisy denominators, int64, shape (groups, cells).
        den_variance: shape (groups, cells).
        geometric: whether any noise of a group is two-sided geometric, shape (groups,).
        ratio: posterior means of the ratios, shape (groups, cells).
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
    """A remark on one estimate."""

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
    """Estimates of one table and one type of region."""

    region_type: str
    estimates: CountEstimates | RatioEstimates
    findings: tuple[EstimateFinding, ...]


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimates of all tables."""

    files: tuple[EstimatedFile, ...] = field(repr=False)
    remarks: tuple[str, ...]

    @property
    def findings(self) -> tuple[EstimateFinding, ...]:
        """Of all files."""
        return tuple(finding for file in self.files for finding in file.findings)
