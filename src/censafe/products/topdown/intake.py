"""The confidential side of a TopDown run: open the block histograms, check them, add them up to every level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spine import Spine
from censafe.geography.spine_sums import sum_histograms
from censafe.model import ExactHistograms, ProtectedUnit
from censafe.population.histograms import BlockData, block_files, read_blocks
from censafe.products.options import ReadOptions
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.invariants import LevelLimits, level_limits
from censafe.products.topdown.layout import histogram_layout
from censafe.products.topdown.plan import exact_levels

__all__ = ["Intake", "Loaded", "PublicFacts"]


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """What is known about a run without its measurements: all of it is published exactly.

    Args:
        spine: the tree over the blocks.
        facilities: counts of units by kind in every block, shape (blocks, unit columns).
        limits: by name of the histogram, what the histograms of every level must obey, root first.
        imputed: in words, what in the input was made up by a rule.
    """

    spine: Spine
    facilities: NDArray[np.int32]
    limits: Mapping[str, tuple[LevelLimits, ...]]
    imputed: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Loaded:
    """CONFIDENTIAL. Checked blocks, their sums at every level, and what is published about them exactly.

    Args:
        exact: by name of the histogram, exact histograms of every level, root first.
        facts: what is published exactly.
    """

    exact: Mapping[str, tuple[ExactHistograms, ...]] = field(repr=False)
    facts: PublicFacts


class Intake:
    """CONFIDENTIAL. One opened data folder; a context manager.

    Args:
        data: folder with the block histograms or the P.L. 94-171 files.
        config: whose histograms are read.
        options: who is told of stages.

    Raises:
        DataError: files are missing, or are not those that the configuration's reader reads.
        ConfigError: the configuration measures histograms that no input can have.
    """

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        self._data = data
        self._config = config
        self._observer = options.observer
        self._layout = histogram_layout(config)
        found = block_files(data)
        if bool(found.legacy) != (config.reader == "pl94"):
            kind, reader = ("P.L. 94-171 files", "pl94") if found.legacy else ("histograms", "histogram")
            raise DataError(f"{data}: the folder holds {kind}; fix: --set reader={reader}")
        self._files = found.all

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with records."""
        return self._files

    @property
    def public_files(self) -> tuple[Path, ...]:
        """None; the geography stands in the files with records."""
        return ()

    def load(self) -> Loaded:
        """Read and check everything, and add it up.

        Raises:
            DataError: all that is wrong with the files, or published counts that contradict each other.
        """
        with self._observer.stage("read and validate"):
            blocks = read_blocks(self._data, self._layout)
        for words in blocks.imputed:
            self._observer.remark(f"Made up, not read: {words}")
        with self._observer.stage("add up"):
            exact = {one.name: self._levels(one, blocks) for one in self._config.histograms}
            limits = {one.name: self._limits(one, blocks, exact[one.name]) for one in self._config.histograms}
        facts = PublicFacts(blocks.spine, blocks.facilities, limits, blocks.imputed)
        return Loaded(exact, facts)

    def _levels(self, histogram: MeasuredHistogram, blocks: BlockData) -> tuple[ExactHistograms, ...]:
        exact = blocks.units if histogram.schema.record is ProtectedUnit.HOUSEHOLD else blocks.persons
        if exact is None:
            raise DataError(f"{self._data}: there is no occupancy of housing units for {histogram.name}")
        return sum_histograms(blocks.spine, exact, histogram.schema.schema.cells)

    def _limits(
        self, histogram: MeasuredHistogram, blocks: BlockData, exact: tuple[ExactHistograms, ...]
    ) -> tuple[LevelLimits, ...]:
        """Limits from declared invariants; totals leave here for the levels that the configuration declares, and no others."""
        declared = exact_levels(histogram)
        totals = {
            level.name: _totals(one)
            for level, one in zip(blocks.spine.levels, exact, strict=True)
            if level.name in declared
        }
        rule = histogram.schema.facilities
        kinds = 0 if rule is None else len(rule.minimum)
        units = blocks.facilities[:, :kinds].astype(np.int64)
        return level_limits(blocks.spine, histogram.schema, units, totals)


def _totals(exact: ExactHistograms) -> NDArray[np.int64]:
    """CONFIDENTIAL unless declared. Records of every geounit."""
    sums = np.zeros(len(exact.count) + 1, np.int64)
    np.cumsum(exact.count, out=sums[1:])
    return sums[exact.node_ptr[1:]] - sums[exact.node_ptr[:-1]]
