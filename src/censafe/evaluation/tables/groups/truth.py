"""CONFIDENTIAL. The records of a SafeTab product, opened, checked and sorted, and the true tables of its population groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model import GroupLevel as PublicLevel
from censafe.population.detailed.source import SafetabInput
from censafe.privacy.measure.rows import GroupRows
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
from censafe.products.detailed.recipe import (
    CountRecords,
    count_households,
    count_persons,
    true_households,
    true_persons,
)
from censafe.products.detailed.recipe import private_path as private_path_of_persons
from censafe.products.detailed.tables import tables_of
from censafe.products.run.options import ReadOptions
from censafe.publication.groups.tables import CellRows, GroupOrder, group_orders, write_header, write_order

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
                    write_order(streams[layout.name], layout, order, _counts)
        for stream in streams.values():
            stream.write(b"\n")
    return [layout.path for layout in tables.layouts]


def _counts(_: GroupOrder[TrueGroups], rows: CellRows) -> pa.Array:
    return pa.array(rows.count)
