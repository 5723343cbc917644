"""CONFIDENTIAL. The records of a SafeTab product, opened, checked and sorted, for whoever sees the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model import GroupLevel as PublicLevel
from censafe.population.safetab.source import SafetabInput
from censafe.population.safetab.totals import PopGroupTotals
from censafe.privacy.group_rows import GroupRows
from censafe.products.options import ReadOptions
from censafe.products.safetab.config import SafetabScope
from censafe.products.safetab.counting import GroupCounter, public_level
from censafe.products.safetab.intake import Intake
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab.parameters import read_universe
from censafe.products.safetab.recipe import CountRecords
from censafe.products.safetab.universe import Universe
from censafe.products.safetab_h.counting import count_households
from censafe.products.safetab_p.counting import count_persons

__all__ = ["SortedRecords", "TrueGroups", "sorted_input"]

_COUNT: Final[Mapping[str, CountRecords]] = {"safetab-p": count_persons, "safetab-h": count_households}


@dataclass(frozen=True, eq=False)
class TrueGroups:
    """CONFIDENTIAL. True cells of groups of one level; fields as in ``GroupMeasurements``."""

    level: PublicLevel
    region: NDArray[np.int32] = field(repr=False)
    iteration: NDArray[np.int32] = field(repr=False)
    stat_level: NDArray[np.int8] = field(repr=False)
    indptr: NDArray[np.int64] = field(repr=False)
    values: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def of(level: PublicLevel, rows: GroupRows) -> TrueGroups:
        """The rows of a level without noise."""
        return TrueGroups(level, rows.region, rows.iteration, rows.stat_level, rows.indptr, rows.values)


@dataclass(frozen=True, eq=False)
class SortedRecords:
    """CONFIDENTIAL. The records of a run, ready to be counted at any level.

    Args:
        data: the loaded input.
        universe: codes and iterations.
        counter: the sorted records.
        threads: number of threads.
    """

    data: SafetabInput
    universe: Universe
    counter: GroupCounter
    threads: int

    @property
    def totals(self) -> PopGroupTotals:
        """The totals of population groups that SafeTab-H needs.

        Raises:
            DataError: there are none.
        """
        if self.data.totals is None:
            raise DataError("SafeTab-H needs totals of population groups (T1). Name them with --t1.")
        return self.data.totals

    def public(self, level: GroupLevel) -> PublicLevel:
        """Regions and candidate iterations of a level."""
        return public_level(self.data.areas, self.universe, level)


@contextmanager
def sorted_input(
    scope: SafetabScope, data: Path, scratch: Path, reading: ReadOptions
) -> Iterator[SortedRecords]:
    """Open, check and sort the records of a product.

    Args:
        scope: whose records are read.
        data: folder with the records, or the .ini file of the fixed-width reader.
        scratch: private folder for files with records.
        reading: how the records are read and checked.

    Raises:
        InputError: parameter files or records break a rule.
    """
    for warning in scope.warnings:
        reading.observer.remark(f"Warning: {warning}")
    universe = read_universe(scope.universe)
    with Intake(data, scope, universe, scratch, reading) as intake:
        loaded = intake.load()
        with reading.observer.stage("sort by block"):
            counter = _COUNT[scope.product](loaded, universe)
        yield SortedRecords(loaded, universe, counter, reading.threads or 2)
