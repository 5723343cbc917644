"""Intervals of table cells from replicates, by the rule that the Census Bureau recommends for its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.files import packed_files
from censafe.model.cells.counting import AreaBlocks
from censafe.model.cells.lines import CensusTable
from censafe.products.topdown.census_tables.linear import (
    EstimatedSource,
    LinearIntervals,
    ways_to_replicates,
)
from censafe.products.topdown.census_tables.microdata_source import MicrodataSource, open_source
from censafe.products.topdown.census_tables.source import Geography, SourceWithIntervals, TableSource

LEAST_REPLICATES: Final = 10
"""Fewer give no intervals."""
_DEGREES: Final = 5
_ABOVE: Final = 5  # counts up to it are not corrected
_UPWARD: Final = 25  # from which a bias above 0 is corrected, too
_SHARE: Final = 0.5  # of the standard deviation, from which a bias is corrected
_Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellIntervals:
    """Intervals of values; all arrays have the shape of the values."""

    low: _Values = field(repr=False)
    high: _Values = field(repr=False)
    bias: _Values = field(repr=False)
    rmse: _Values = field(repr=False)

    @property
    def statistics(self) -> Mapping[str, _Values]:
        """What is published besides the ends: bias and root mean square error."""
        return {"bias": self.bias, "rmse": self.rmse}


class ReplicateErrors:
    """Differences of replicates from published values, added up one replicate after another."""

    def __init__(self, values: _Values) -> None:
        self._values = values
        self._sum = np.zeros(values.shape)
        self._squares = np.zeros(values.shape)
        self._number = 0

    def add(self, replicate: _Values) -> None:
        """Take the same values of one more replicate."""
        errors = replicate - self._values
        self._sum += errors
        self._squares += errors * errors
        self._number += 1

    def intervals(self, confidence: float, *, outward: bool = True) -> CellIntervals:
        """Intervals by the Bureau's rule.

        The half-width is a quantile of Student's t with 5 degrees of freedom times the root mean square error. The middle is the published value,
        less the bias where the value is above 5, the bias is at least half a standard deviation of the replicates, and is below 0 or
        the value at least 25. Ends of counts are rounded outward, and none is below 0.

        Source: dhc.md 10; Ashmead, Kifer and others, arXiv 2503.19714.

        Example:
            Ten replicates off by 1 to 5: their mean square is 11, and 2.015 times its root is 6.7.

            >>> errors = ReplicateErrors(np.array([100.0]))
            >>> for error in (1, -1, 2, -2, 3, -3, 4, -4, 5, -5):
            ...     errors.add(np.array([100.0 + error]))
            >>> result = errors.intervals(0.9)
            >>> result.low.tolist(), result.high.tolist()
            ([93.0], [107.0])
        """
        from scipy.stats import t

        if self._number < LEAST_REPLICATES:
            raise ValueError(f"intervals need {LEAST_REPLICATES} replicates at least")
        bias = self._sum / self._number
        rmse = np.sqrt(self._squares / self._number)
        half = float(t.ppf((1 + confidence) / 2, _DEGREES)) * rmse
        if not outward:
            return CellIntervals(np.maximum(self._values - half, 0), self._values + half, bias, rmse)
        variance = (self._squares - self._number * bias * bias) / (self._number - 1)
        large = np.abs(bias) >= _SHARE * np.sqrt(np.maximum(variance, 0))
        chosen = (self._values > _ABOVE) & large & ((bias < 0) | (self._values >= _UPWARD))
        middle = self._values - np.where(chosen, bias, 0.0)
        low, high = np.floor(np.maximum(middle - half, 0)), np.ceil(np.maximum(middle + half, 0))
        return CellIntervals(low, high, bias, rmse)


class ReplicatedSource(SourceWithIntervals):
    """Published histograms with their replicates: areas are those in which anything was counted in any of them."""

    def __init__(
        self, source: TableSource, replicates: Sequence[TableSource], remarks: Sequence[str] = ()
    ) -> None:
        super().__init__(source)
        self.replicates = tuple(replicates)
        self.remarks = tuple(remarks)

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms that there are in all of them."""
        return tuple(
            kind
            for kind in self._source.histogram_names
            if all(kind in replicate.histogram_names for replicate in self.replicates)
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """Words for the levels that there are in all of them, the widest first."""
        return tuple(
            level for level in self._source.levels if all(level in other.levels for other in self.replicates)
        )

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """Areas of a level of all of them."""
        levels = [source.level(word) for source in (self._source, *self.replicates)]
        geounits, first = np.unique(np.concatenate([codes for _, codes, _ in levels]), return_index=True)
        labels = np.concatenate([areas.names[areas.area] for _, _, areas in levels])[first]
        inside = np.concatenate([areas.area >= 0 for _, _, areas in levels])[first]
        names, number = np.unique(labels[inside], return_inverse=True)
        area = np.full(len(geounits), -1, np.int64)
        area[inside] = number.reshape(-1)
        return levels[0][0], geounits, AreaBlocks(names, area)


def replicates_of(run: Path) -> Path:
    """Where replicates of a run are looked for, unless said otherwise.

    Example:
        >>> replicates_of(Path("/runs/dhc")).as_posix()
        '/runs/dhc-replicates'
    """
    absolute = run.absolute()
    return absolute.with_name(f"{absolute.name}-replicates")


def open_replicates(source: TableSource, folder: Path) -> ReplicatedSource:
    """Replicates of a published source: every folder below `folder` that holds the same product in the same form; unfinished ones are left out."""
    places = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    microdata = isinstance(source, MicrodataSource)
    done = [
        path for path in places if (path / "manifest.json").is_file() or (microdata and packed_files(path))
    ]
    same = [
        replicate
        for replicate in map(open_source, done)
        if replicate.product == source.product and isinstance(replicate, MicrodataSource) == microdata
    ]
    unfinished = [path.name for path in places if path not in done]
    if len(same) < LEAST_REPLICATES:
        more = f" ({', '.join(unfinished)}: not finished)" if unfinished else ""
        raise UsageError(
            f"{folder} has {len(same)} replicates of {source.place}{more}; intervals need at least {LEAST_REPLICATES}, each in its own folder and in the "
            f"layout of what was published; fix: {ways_to_replicates(source.place)}"
        )
    remarks = (
        [
            f"{folder}: {', '.join(unfinished)} {'is' if len(unfinished) == 1 else 'are'} not finished and left out; intervals are those of {len(same)} replicates"
        ]
        if unfinished
        else []
    )
    return ReplicatedSource(source, same, remarks)


def valued(
    source: TableSource, table: CensusTable, geography: Geography, confidence: float
) -> Iterator[tuple[slice, _Values, CellIntervals | LinearIntervals | None]]:
    """Values of a table, some areas at a time, with their intervals where there are replicates or linear estimates.

    Returns:
        Ranges of areas, values of shape (areas of the range, lines), and their intervals; None without any.
    """
    replicates = source.replicates if isinstance(source, ReplicatedSource) else ()
    own, *others = (member.values(table, geography) for member in (source, *replicates))
    for areas, values in own:
        if not others:
            linear = (
                source.intervals(table, geography, areas, confidence)
                if isinstance(source, EstimatedSource)
                else None
            )
            yield areas, values, linear
            continue
        errors = ReplicateErrors(values)
        for other in others:
            errors.add(next(other)[1])
        yield areas, values, errors.intervals(confidence, outward=not table.median)
