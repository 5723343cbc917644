"""CONFIDENTIAL. Repeated noise draws of SafeTab's levels against the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.tables.groups.cells import (
    SIZES,
    CellKind,
    ErrorTally,
    add_errors,
    cell_kinds,
    group_size_class,
)
from censafe.evaluation.tables.groups.truth import SortedRecords
from censafe.model import GroupMeasurements, PartPlan, ReleasePlan, TableVariant
from censafe.model.groups.cells import GroupTable
from censafe.privacy.keys.part_keys import TestPartKey, plan_part_key
from censafe.privacy.keys.run_keys import TestKey
from censafe.privacy.measure.adaptive import STAGE2, AdaptiveTables, count_adaptive
from censafe.privacy.measure.groups import ListedGroups, count_listed_groups
from censafe.privacy.measure.rows import GroupRows
from censafe.privacy.noise.sampler import draw_cells
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from censafe.products.detailed.config import SafetabConfig, SafetabPConfig
from censafe.products.detailed.plan import part_name, stabilities
from censafe.products.detailed.recipe import PartTask, measure_households, measure_persons
from censafe.products.detailed.release import configured_classes, process
from censafe.products.detailed.tables import household_tables, table_variants, tables_of
from censafe.publication.groups.tables import Groups

_OUTCOMES: Final = 5  # no table, then the stat levels
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class LevelTrials:
    """CONFIDENTIAL. One level and class of tables, drawn many times.

    Args:
        records: sorted records.
        stable: largest number of groups of the level that a record may be in.
        noise: noisy minus true cells, whether or not the group was published: of every group of levels that publish all,
            of groups with a record elsewhere.
        groups: int64[2, sizes], number of groups by detailed-only flag and true size. SafeTab-P: all; SafeTab-H: those with
            a household or a published total.
        outcomes: int64[2, sizes, 5], groups summed over draws: without a table, then by stat level.
    """

    records: SortedRecords = field(repr=False)
    config: SafetabConfig
    level: PopulationGroupLevel
    table_class: str
    table: GroupTable
    part: PartPlan
    stable: int
    census: GroupRows = field(repr=False)
    noise: ErrorTally = field(default_factory=ErrorTally, repr=False)
    published: ErrorTally = field(default_factory=ErrorTally, repr=False)
    groups: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, len(SIZES)), np.int64), repr=False)
    outcomes: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((2, len(SIZES), _OUTCOMES), np.int64), repr=False
    )

    @property
    def suppressed(self) -> bool:
        """Whether small totals of the level are left out."""
        config = self.config
        return (
            isinstance(config, SafetabPConfig)
            and self.level.granularity == "coarse"
            and config.zero_suppression_chance > 0
        )

    @cached_property
    def kinds(self) -> tuple[CellKind, ...]:
        """Kinds of cells of the class."""
        return cell_kinds(self.table)

    @property
    def variants(self) -> tuple[TableVariant, ...]:
        """Tables by stat level."""
        return _variants(self.table_class)

    def measure(self, key: TestPartKey) -> GroupMeasurements:
        """The level measured as in a release."""
        records = self.records
        task = PartTask(
            self.config,
            records.counter,
            records.data.totals,
            self.level,
            self.part,
            self.stable,
            records.threads,
        )
        person = isinstance(self.config, SafetabPConfig)
        return measure_persons(task, key) if person else measure_households(task, key)

    def truth_of(self, groups: Groups) -> GroupRows:
        """True cells of groups with the tables that they have."""
        listed = ListedGroups(groups.region, groups.iteration, groups.stat_level, self.variants)
        source = self.records.counter.groups(self.level, None)
        return count_listed_groups(source, listed, threads=self.records.threads)

    def add(self, measured: GroupMeasurements, estimates: Groups, key: TestPartKey) -> None:
        """Compare one draw with the truth."""
        truth = self.truth_of(measured)
        sizes = group_size_class(_sums(truth))
        only = measured.level.detailed_only[measured.iteration]
        np.add.at(self.outcomes, (only.astype(int), sizes, 1 + measured.stat_level), 1)
        self._add_noise(measured, truth, sizes, key)
        same = estimates.region is measured.region and estimates.stat_level is measured.stat_level
        if not same:
            truth = self.truth_of(estimates)
            sizes = group_size_class(_sums(truth))
            only = estimates.level.detailed_only[estimates.iteration]
        changed = estimates.values - truth.values
        add_errors(self.published, self.kinds, truth.stat_level, truth.indptr, changed, only, sizes)

    def hidden(self, measured: GroupMeasurements) -> NDArray[np.int64]:
        """Positions in the census of groups that got no table."""
        width = max(1, len(measured.level.iterations))
        return np.flatnonzero(~np.isin(_ids(self.census, width), _ids(measured, width)))

    def hidden_noise(
        self, measured: GroupMeasurements, hidden: NDArray[np.int64], key: TestPartKey
    ) -> NDArray[np.int64]:
        """Noise that the totals of left-out groups of SafeTab-P got."""
        answers = self.census.iteration[hidden].astype(np.int64) * len(self.variants[0].slots)
        regions = self.census.region[hidden].astype(np.uint64)
        return draw_cells(self.part.queries[STAGE2].law, key, query=STAGE2, geounits=regions, answers=answers)

    def _add_noise(
        self, measured: GroupMeasurements, truth: GroupRows, sizes: NDArray[np.int64], key: TestPartKey
    ) -> None:
        only = measured.level.detailed_only[measured.iteration]
        errors = measured.values - truth.values
        tally = self.noise
        if not self.suppressed:
            add_errors(tally, self.kinds, truth.stat_level, truth.indptr, errors, only, sizes)
            return
        # Below the states only noisy totals above a limit are seen. Of groups with a record all noise is taken, that of
        # groups that were left out from its addresses: otherwise it would be conditional on publication.
        occupied = np.flatnonzero(sizes > 0)
        width = np.diff(truth.indptr)[occupied]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(width)])
        cells = np.repeat(truth.indptr[occupied] - starts[:-1], width) + np.arange(starts[-1])
        add_errors(
            tally,
            self.kinds,
            truth.stat_level[occupied],
            starts,
            errors[cells],
            only[occupied],
            sizes[occupied],
        )
        hidden = self.hidden(measured)
        add_errors(
            tally,
            self.kinds,
            np.zeros(len(hidden), np.int8),
            np.arange(len(hidden) + 1),
            self.hidden_noise(measured, hidden, key),
            np.zeros(len(hidden), np.bool_),
            group_size_class(_sums(self.census)[hidden]),
        )


def level_trials(records: SortedRecords, config: SafetabConfig, plan: ReleasePlan) -> list[LevelTrials]:
    """All levels and classes of a plan in its order, counted once.

    Args:
        records: sorted records.
    """
    stable = stabilities(config, records.universe)
    tables = dict(zip(config.classes, tables_of(config.product).tables, strict=True))
    names = {
        part_name(config, table_class, level): (level, table_class)
        for level in config.levels
        for table_class in config.classes
    }
    drawn_levels = []
    for part in plan.parts:
        level, table_class = names[part.name]
        census = _census(records, level, table_class)
        table = tables[table_class]
        drawn_levels.append(
            LevelTrials(records, config, level, table_class, table, part, stable[level], census)
        )
    return drawn_levels


def run_group_trials(
    levels: Sequence[LevelTrials],
    plan: ReleasePlan,
    *,
    trials: int,
    seed: int,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Draw every level ``trials`` times with test keys and compare with the truth."""
    records, config = levels[0].records, levels[0].config
    config = replace(config, respect_granularity=True)  # what no level tabulates has no truth
    classes = configured_classes(config, records.data.areas) if config.coterminous != "off" else None
    with TestKey(seed) as run_key:

        def key_of(part: PartPlan, trial: int) -> TestPartKey:
            key = plan_part_key(run_key, plan, b"trial %d" % trial, part.name, None)
            if not isinstance(key, TestPartKey):
                raise TypeError("an evaluation draws with test keys only")
            return key

        for trial in range(trials):
            measured = [one.measure(key_of(one.part, trial)) for one in levels]
            estimates, _ = process(config, plan, classes, measured)
            for level, noisy, published in zip(levels, measured, estimates, strict=True):
                if trial == 0:
                    _count_groups(level, noisy)
                level.add(noisy, published, key_of(level.part, trial))
            done(trial + 1)
    for level in levels:
        tabled = level.outcomes[:, :, 1:].sum(axis=2)
        level.outcomes[:, :, 0] = trials * level.groups - tabled


def _count_groups(drawn: LevelTrials, measured: GroupMeasurements) -> None:
    """Number of groups by flag and true size."""
    level, groups = measured.level, drawn.groups
    only = level.detailed_only[drawn.census.iteration].astype(int)
    np.add.at(groups, (only, group_size_class(_sums(drawn.census))), 1)
    if drawn.table_class == "p":
        every = len(level.regions) * np.bincount(level.detailed_only, minlength=2)
        groups[:, 0] += every - groups.sum(axis=1)
        return
    empty = ~np.isin(_ids(measured, len(level.iterations)), _ids(drawn.census, len(level.iterations)))
    groups[:, 0] += np.bincount(level.detailed_only[measured.iteration[empty]], minlength=2)


def _variants(table_class: str) -> tuple[TableVariant, ...]:
    if table_class == "p":
        return table_variants()
    return household_tables("t3" if table_class == "t3" else "t4")


def _census(records: SortedRecords, level: PopulationGroupLevel, table_class: str) -> GroupRows:
    """The totals of all groups with a record."""
    one, two, three, four = _variants("p" if table_class == "p" else "t3")
    totals = AdaptiveTables((_NEVER, _NEVER, _NEVER), (one, two, three, four), Fraction(1, 2))
    return count_adaptive(records.counter.groups(level, None), totals, threads=records.threads)


def _sums(rows: GroupRows) -> NDArray[np.int64]:
    if not len(rows.region):
        return np.zeros(0, np.int64)
    return np.add.reduceat(rows.values, rows.indptr[:-1])


def _ids(rows: GroupRows | GroupMeasurements, iterations: int) -> NDArray[np.int64]:
    return rows.region.astype(np.int64) * iterations + rows.iteration
