"""CONFIDENTIAL. The records of a SafeTab product and the true tables of its population groups, repeated noise draws against them, and errors by kind of cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.evaluation.counts.error_metrics import Tally
from censafe.model import GroupLevel as PublicLevel
from censafe.model import GroupMeasurements, PartPlan, ReleasePlan, TableVariant
from censafe.model.groups import GroupLayout, GroupTable, ShellCell
from censafe.population.detailed.source import SafetabInput
from censafe.privacy.keys import TestKey, TestPartKey, plan_part_key
from censafe.privacy.measure.adaptive import STAGE2, AdaptiveTables, count_adaptive
from censafe.privacy.measure.groups import ListedGroups, count_listed_groups
from censafe.privacy.measure.rows import GroupRows
from censafe.privacy.noise.sampler import draw_cells
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import (
    CLASSES,
    Product,
    SafetabConfig,
    SafetabPConfig,
    SafetabScope,
    load_h_config,
    load_p_config,
    load_scope,
)
from censafe.products.detailed.intake import DetailedIntake, GroupCounter, public_level
from censafe.products.detailed.plan import part_name, stabilities
from censafe.products.detailed.recipe import (
    CountRecords,
    PartTask,
    count_households,
    count_persons,
    measure_households,
    measure_persons,
    true_households,
    true_persons,
)
from censafe.products.detailed.recipe import private_path as private_path_of_persons
from censafe.products.detailed.release import configured_classes, process
from censafe.products.detailed.tables import tables_of, variants_of
from censafe.products.run.options import ReadOptions
from censafe.publication.groups.tables import (
    Groups,
    group_orders,
    write_header,
    write_order,
)

if TYPE_CHECKING:
    from censafe.evaluation.tables.flow import TrueTables


LOADERS: Final = {"safetab-p": load_p_config, "safetab-h": load_h_config}
"""How the configuration of a product is read and checked."""
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


@dataclass(frozen=True, eq=False)
class SortedRecords:
    """CONFIDENTIAL. The records of a run, ready to be counted at any level.

    Args:
        counter: the sorted records.
    """

    data: SafetabInput
    universe: Universe
    counter: GroupCounter
    threads: int


@contextmanager
def sorted_input(
    scope: SafetabScope, data: Path, scratch: Path, reading: ReadOptions
) -> Iterator[SortedRecords]:
    """Open, check and sort the records of a product."""
    for warning in scope.warnings:
        reading.observer.remark(f"Warning: {warning}")
    universe = read_universe(scope.universe)
    with DetailedIntake(data, scope, universe, scratch, reading) as intake:
        loaded = intake.load()
        with reading.observer.stage("sort by block"):
            counter = _COUNT[scope.product](loaded, universe)
        yield SortedRecords(loaded, universe, counter, reading.threads or 2)


def group_truth(product: Product, config: str, settings: Mapping[str, str], private_path: bool) -> TrueTables:
    """Read a configuration.

    On the private path a whole configuration, for the tables of infinite budgets: levels with a budget, tables chosen by the true
    totals, and below the states no total of 0 where small totals are suppressed. Otherwise a scope, for the most detailed table
    of every group with a record (SafeTab-P) or with a published total (SafeTab-H).
    """
    if private_path:
        return partial(_write, LOADERS[product](config, settings, allow_infinite=True))
    return partial(_write, load_scope(product, config, settings))


def _groups(scope: SafetabScope, records: SortedRecords) -> Iterator[tuple[str, TrueGroups]]:
    """All levels for a scope; levels with a budget for a configuration."""
    for table, table_class in zip(tables_of(scope.product).keys, CLASSES[scope.product], strict=True):
        levels = scope.measured(table_class) if isinstance(scope, SafetabConfig) else scope.levels
        for level in levels:
            rows = _rows(scope, records, table_class, level)
            yield (
                table,
                TrueGroups(
                    public_level(records.data.areas, records.universe, level),
                    rows.region,
                    rows.iteration,
                    rows.stat_level,
                    rows.indptr,
                    rows.values,
                ),
            )


def _rows(
    scope: SafetabScope, records: SortedRecords, table_class: str, level: PopulationGroupLevel
) -> GroupRows:
    if isinstance(scope, SafetabPConfig):
        return private_path_of_persons(records.counter, scope, level, threads=records.threads)
    if scope.product == "safetab-p":
        return true_persons(records.counter, level, threads=records.threads)
    if records.data.totals is None:
        raise DataError("SafeTab-H needs totals of population groups (T1). Name them with `t1`.")
    return true_households(
        records.counter,
        scope.thresholds[table_class, level.key] if isinstance(scope, SafetabConfig) else None,
        records.data.totals,
        level,
        "t3" if table_class == "t3" else "t4",
        threads=records.threads,
    )


def _write(scope: SafetabScope, data: Path, scratch: Path, reading: ReadOptions, folder: Path) -> list[str]:
    """CONFIDENTIAL. Count and write level after level, with the groups of one region type in memory at a time; paths of the files."""
    tables = tables_of(scope.product)
    with (
        sorted_input(scope, data, scratch, reading) as records,
        reading.observer.stage("count groups and write tables"),
        ExitStack() as files,
    ):
        streams: dict[str, BinaryIO] = {}
        for layout in tables.layouts:
            path = folder / layout.path
            path.parent.mkdir(parents=True)
            streams[layout.name] = files.enter_context(path.open("xb"))
            write_header(streams[layout.name], layout)
        by_place = groupby(_groups(scope, records), lambda one: (one[0], one[1].level.region_type))
        for (table, _), levels in by_place:
            for order in group_orders([groups for _, groups in levels]):
                for layout in tables.table(table).layouts:
                    write_order(streams[layout.name], layout, order, lambda _, rows: pa.array(rows.count))
        for stream in streams.values():
            stream.write(b"\n")
    return [layout.path for layout in tables.layouts]


_HALF = 1 << 40


class ErrorTally:
    """Collects errors under small whole numbers as keys."""

    def __init__(self) -> None:
        self._codes = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)

    def add(self, keys: NDArray[np.int64], errors: NDArray[np.int64]) -> None:
        """Count errors.

        Args:
            keys: shape (n,), from 0 to about four million.
            errors: shape (n,), below 2^40 in size.
        """
        if len(errors) and (np.abs(errors).max() >= _HALF or keys.max() >= 1 << 22 or keys.min() < 0):
            raise OverflowError("an error or a key is too large to be counted")
        codes, counts = np.unique(keys * (2 * _HALF) + (errors + _HALF), return_counts=True)
        merged, place = np.unique(np.concatenate([self._codes, codes]), return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, place, np.concatenate([self._counts, counts]))
        self._codes, self._counts = merged, total

    @property
    def keys(self) -> list[int]:
        """Keys that have errors, ascending."""
        return np.unique(self._codes // (2 * _HALF)).tolist()

    def of(self, keys: Iterable[int]) -> Tally:
        """The errors of some keys together.

        Example:
            >>> tally = ErrorTally()
            >>> tally.add(np.zeros(10, np.int64), np.arange(-4, 6))
            >>> tally.of([0]).margin(Fraction(9, 10))
            4.0
        """
        inside = np.isin(self._codes // (2 * _HALF), np.array(list(keys), np.int64))
        values, place = np.unique(self._codes[inside] % (2 * _HALF) - _HALF, return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, self._counts[inside])
        return Tally(values, counts)


_SIZE_STARTS: Final = np.array([1, *(10**power for power in range(1, 9))], np.int64)
SIZES: Final = (
    "0",
    *(f"{low}-{10 * low - 1}" for low in _SIZE_STARTS[:-1].tolist()),
    f"{_SIZE_STARTS[-1]}+",
)
"""Classes of the true number of records of a group."""


@dataclass(frozen=True, eq=False)
class CellKind:
    """Written cells of one table whose noise is a sum of equally many draws.

    Args:
        members: shape (cells, draws), positions of the measured cells that each is the sum of.
    """

    table: str
    cell: str
    stat_level: int
    members: NDArray[np.int64]

    @property
    def draws(self) -> int:
        """Number of independent draws in one cell."""
        return self.members.shape[1]


def cell_kinds(table: GroupTable) -> tuple[CellKind, ...]:
    """The kinds of cells of tables that are measured together.

    Example:
        >>> kinds = cell_kinds(tables_of("safetab-p").table("t1t2"))
        >>> [(kind.table, kind.cell, kind.stat_level, kind.draws) for kind in kinds][3:6]
        [('T01001', 'Total', 3, 46), ('T02001', 'Sex', 1, 4), ('T02001', 'Sex by age', 1, 1)]
    """
    kinds = []
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            named = sorted(((_words(layout, cell), cell) for cell in shell.cells), key=lambda pair: pair[0])
            for words, cells in groupby(named, key=lambda pair: pair[0]):
                members = np.array([cell.members for _, cell in cells], np.int64)
                kinds.append(CellKind(shell.table, words, level, members))
    return tuple(kinds)


def _words(layout: GroupLayout, cell: ShellCell) -> str:
    if layout.name != "t2":
        return cell.label
    return "Sex" if cell.ages is None else "Sex by age"


def group_size_class(totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in :data:`SIZES` of true totals.

    Example:
        >>> [SIZES[position] for position in group_size_class(np.array([0, 9, 10, 12345])).tolist()]
        ['0', '1-9', '10-99', '10000-99999']
    """
    return np.searchsorted(_SIZE_STARTS, totals, side="right")


def key_of(kind: int, detailed_only: NDArray[np.bool_], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys of a tally."""
    return (2 * kind + detailed_only) * len(SIZES) + size


def split_key(key: int) -> tuple[int, bool, int]:
    """What a key of a tally stands for: kind of cell, detailed-only groups, and class of the true size.

    Example:
        >>> split_key(int(key_of(5, np.array([True]), np.array([2]))[0]))
        (5, True, 2)
    """
    rest, size = divmod(key, len(SIZES))
    return rest // 2, bool(rest % 2), size


def add_errors(
    tally: ErrorTally,
    kinds: Sequence[CellKind],
    stat_level: NDArray[np.int8],
    indptr: NDArray[np.int64],
    errors: NDArray[np.int64],
    detailed_only: NDArray[np.bool_],
    size: NDArray[np.int64],
) -> None:
    """Count the errors of all written cells of some groups.

    Args:
        stat_level: int8[rows].
        indptr: int64[rows + 1], where the measured cells of a row begin.
        size: int64[rows], positions in :data:`SIZES`.
    """
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(stat_level == kind.stat_level)
        if len(rows):
            places = indptr[rows][:, None, None] + kind.members
            sums = errors[places].sum(axis=2)
            keys = np.repeat(key_of(number, detailed_only[rows], size[rows]), sums.shape[1])
            tally.add(keys, sums.reshape(-1))


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
        return variants_of(self.table.key)

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


def _census(records: SortedRecords, level: PopulationGroupLevel, table_class: str) -> GroupRows:
    """The totals of all groups with a record."""
    variants = variants_of("t1t2" if table_class == "p" else "t3")
    totals = AdaptiveTables((_NEVER, _NEVER, _NEVER), variants, Fraction(1, 2))
    return count_adaptive(records.counter.groups(level, None), totals, threads=records.threads)


def _sums(rows: GroupRows) -> NDArray[np.int64]:
    if not len(rows.region):
        return np.zeros(0, np.int64)
    return np.add.reduceat(rows.values, rows.indptr[:-1])


def _ids(rows: GroupRows | GroupMeasurements, iterations: int) -> NDArray[np.int64]:
    return rows.region.astype(np.int64) * iterations + rows.iteration
