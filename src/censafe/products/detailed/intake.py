"""CONFIDENTIAL. The records of a SafeTab run, opened, checked and sorted, and true counts of the groups of every level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import Areas
from censafe.model import GroupLevel as PublicLevel
from censafe.model.closing import Closing
from censafe.population.blocks.columns import read_ahead
from censafe.population.detailed.source import RecordScope, SafetabInput, SafetabSource, open_safetab
from censafe.population.findings import stated
from censafe.products.detailed.codes.universe import (
    Granularity,
    IterationRows,
    PopulationGroupLevel,
    Universe,
    iteration_rows,
    require_stable,
)
from censafe.products.detailed.config import SafetabScope
from censafe.products.run.options import ReadOptions
from censafe.tabulation.engine import record_batches
from censafe.tabulation.groups.counting import Batch, ExactGroups, GroupedRecords, RegionBlocks, sort_by_block

if TYPE_CHECKING:
    import ibis.expr.types as ir


_BATCH_ROWS = 1 << 20


def public_level(areas: Areas, universe: Universe, level: PopulationGroupLevel) -> PublicLevel:
    """The public groups of a level: all its regions with all its candidate iterations."""
    candidates = universe.candidates(level.level, level.granularity)
    regions = areas.regions(level.region_type)
    return PublicLevel(
        name=level.key,
        region_type=level.region_type,
        iteration_level=level.level,
        regions=np.array(regions, dtype=np.str_),
        iterations=candidates.codes,
        detailed_only=candidates.detailed_only & (level.granularity == "detailed"),
    )


def sorted_records(records: ir.Table, *, blocks: int, combos: int, cells: int) -> GroupedRecords:
    """CONFIDENTIAL. Read typed records from the engine and sort them by block.

    Args:
        records: BLOCK int32, COMBO int32 and CELL uint8 of every record.
    """

    def columns(*names: str) -> Iterator[list[NDArray[Any]]]:
        for batch in read_ahead(record_batches(records.select(*names), _BATCH_ROWS)):
            yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]

    places = (block for (block,) in columns("BLOCK"))
    # Not every engine has integers without a sign.
    batches = (
        Batch(block, combo, cell.astype(np.uint8, copy=False))
        for block, combo, cell in columns("BLOCK", "COMBO", "CELL")
    )
    return sort_by_block(places, batches, blocks=blocks, cells=cells, combos=combos)


class GroupCounter:
    """CONFIDENTIAL. Counts the groups of any level from one sorted copy of the records.

    Args:
        combos: codes of every combination, shape (combinations, m + 1), 0 for Null.
        records: sorted records.
    """

    def __init__(
        self, areas: Areas, universe: Universe, combos: NDArray[np.int16], records: GroupedRecords
    ) -> None:
        self._areas = areas
        self._universe = universe
        self._combos = combos
        self._records = records
        self._memberships: dict[tuple[int, Granularity], IterationRows] = {}
        self._blocks: dict[str, RegionBlocks] = {}
        self._sources: dict[PopulationGroupLevel, ExactGroups] = {}

    def groups(self, level: PopulationGroupLevel, stable: int | None) -> ExactGroups:
        """CONFIDENTIAL. The counts of one level."""
        rows = self._rows(level)
        if stable is not None:
            require_stable(rows.indptr, stable, level)
        if level not in self._sources:
            # One level at a time: its classes of tables follow each other, and counts are large.
            public = public_level(self._areas, self._universe, level)
            blocks = self._regions(level.region_type)
            self._sources = {level: ExactGroups(public, blocks, self._records, rows.indptr, rows.ordinals)}
        return self._sources[level]

    def __reduce__(self) -> NoReturn:
        raise TypeError("records are confidential and cannot be pickled")

    def _rows(self, level: PopulationGroupLevel) -> IterationRows:
        key = level.level, level.granularity
        if key not in self._memberships:
            self._memberships[key] = iteration_rows(self._universe, *key, self._combos)
        return self._memberships[key]

    def _regions(self, region_type: str) -> RegionBlocks:
        if region_type not in self._blocks:
            # One type at a time: the levels of a type follow each other, and lists of blocks are large.
            regions = len(self._areas.regions(region_type))
            self._blocks = {region_type: RegionBlocks.of(self._areas.ordinals(region_type), regions)}
        return self._blocks[region_type]


class DetailedIntake(Closing):
    """CONFIDENTIAL. One opened data folder; a context manager that closes the engine.

    Args:
        data: folder with the records, or the .ini file of the fixed-width reader.
    """

    def __init__(
        self, data: Path, scope: SafetabScope, universe: Universe, scratch: Path, options: ReadOptions
    ) -> None:
        self._options = options
        self._iterations = np.array([int(iteration.code) for iteration in universe.iterations], np.int32)
        self._backend = options.connect(scratch)
        self._source: SafetabSource = open_safetab(
            data,
            RecordScope(
                scope.product,
                scope.reader,
                scope.all_states,
                universe.codes,
                scope.max_race_codes,
                "drop" if scope.missing_blocks == "drop" else "fail",
            ),
            backend=self._backend,
            work=scratch,
            t1=options.t1,
        )
        self.files = self._source.record_files
        # the geography file and the totals of population groups
        self.public_files = tuple(path for path in self._source.files if path not in self.files)

    def close(self) -> None:
        """Drop the records and stop the engine."""
        self._source.close()
        self._backend.disconnect()

    def areas(self) -> Areas:
        """Read the geography alone, when all records have been measured before."""
        with self._options.observer.stage("read the geography"):
            return self._source.areas()

    def load(self) -> SafetabInput:
        """Read and check everything; warnings go to the operator."""
        loaded = self.read()
        for finding in loaded.findings:
            if finding.severity == "warn":
                self._options.observer.remark(f"Warning: {finding.text()}")
        loaded.require_valid()
        return loaded

    def read(self) -> SafetabInput:
        """Everything, with all findings, fatal ones too."""
        with self._options.observer.stage("read and validate"):
            loaded = self._source.load(
                checks=self._options.checks,
                threads=self._options.threads,
                examples=self._options.examples,
            )
        if loaded.totals is None:
            return loaded
        foreign = int(np.count_nonzero(~np.isin(loaded.totals.iteration, self._iterations)))
        findings = stated("totals.unknown-iteration", self._source.labels["totals"], foreign)
        return replace(loaded, findings=(*loaded.findings, *findings))
