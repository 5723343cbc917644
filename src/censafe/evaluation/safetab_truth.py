"""CONFIDENTIAL. The true tables of population groups, in the Bureau's layouts, with their own stamped writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from censafe.evaluation.confidential import confidential_run, confidential_tables
from censafe.evaluation.safetab_records import SortedRecords, TrueGroups, sorted_input
from censafe.privacy.group_rows import GroupRows
from censafe.products.options import ReadOptions
from censafe.products.safetab.config import (
    SafetabConfig,
    SafetabPConfig,
    SafetabScope,
    load_h_config,
    load_p_config,
    load_scope,
)
from censafe.products.safetab.keys import CLASSES, Product
from censafe.products.safetab.levels import GroupLevel
from censafe.products.safetab.product_tables import tables_of
from censafe.products.safetab_h.truth import true_counts as true_households
from censafe.products.safetab_p.truth import private_path as private_path_of_persons
from censafe.products.safetab_p.truth import true_counts as true_persons
from censafe.products.scratch import private_scratch
from censafe.publication.group_lines import write_header, write_order
from censafe.publication.group_rows import CellRows, GroupOrder, group_orders

__all__ = ["write_safetab_truth"]


def write_safetab_truth(
    product: Product,
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    private_path: bool,
) -> tuple[Path, ...]:
    """Count without noise and write the tables to ``OUT/tables``, every folder stamped CONFIDENTIAL.

    Args:
        product: whose tables.
        config: a parameter folder, a file or a shipped name; budgets and thresholds matter for the private path only.
        data: folder (or .ini file) with the records.
        out: a new or empty folder.
        settings: overrides of configuration keys.
        reading: how the records are read and checked, and where T1 is.
        private_path: False for the most detailed table of every group with a record (SafeTab-P) or with a published total
            (SafeTab-H); True for what infinite budgets give: levels with a budget, tables chosen by the true totals, and
            below the states no total of 0 where small totals are suppressed.

    Returns:
        The files of the tables.

    Raises:
        UsageError: the folder holds something else.
        InputError: the configuration or the records break a rule.
    """
    scope = _scope(product, config, settings, private_path=private_path)
    with (
        confidential_run(out, "truth"),
        private_scratch(data, reading.scratch, out=out) as scratch,
        sorted_input(scope, data, scratch, reading) as records,
        reading.observer.stage("count groups and write tables"),
    ):
        return _write(out / "tables", product, _tables(scope, records))


def _scope(product: Product, source: str, settings: Mapping[str, str], *, private_path: bool) -> SafetabScope:
    if not private_path:
        return load_scope(product, source, settings)
    load = load_p_config if product == "safetab-p" else load_h_config
    return load(source, settings, allow_infinite=True)


def _tables(scope: SafetabScope, records: SortedRecords) -> Iterator[tuple[str, TrueGroups]]:
    """All levels for a scope; levels with a budget for a configuration."""
    for table, table_class in zip(tables_of(scope.product).keys, CLASSES[scope.product], strict=True):
        levels = scope.measured(table_class) if isinstance(scope, SafetabConfig) else scope.levels
        for level in levels:
            yield table, TrueGroups.of(records.public(level), _rows(scope, records, table_class, level))


def _rows(scope: SafetabScope, records: SortedRecords, table_class: str, level: GroupLevel) -> GroupRows:
    if isinstance(scope, SafetabPConfig):
        return private_path_of_persons(records.counter, scope, level, threads=records.threads)
    if scope.product == "safetab-p":
        return true_persons(records.counter, level, threads=records.threads)
    return true_households(
        records.counter,
        scope.thresholds[table_class, level.key] if isinstance(scope, SafetabConfig) else None,
        records.totals,
        level,
        "t3" if table_class == "t3" else "t4",
        threads=records.threads,
    )


def _write(folder: Path, product: Product, found: Iterator[tuple[str, TrueGroups]]) -> tuple[Path, ...]:
    """Write level after level, with the groups of one region type in memory at a time."""
    tables = tables_of(product)
    with confidential_tables(folder) as temporary, ExitStack() as files:
        streams: dict[str, BinaryIO] = {}
        for layout in tables.layouts:
            path = temporary / layout.path
            path.parent.mkdir(parents=True)
            streams[layout.name] = files.enter_context(path.open("xb"))
            write_header(streams[layout.name], layout)
        for (table, _), levels in groupby(found, lambda one: (one[0], one[1].level.region_type)):
            for order in group_orders([groups for _, groups in levels]):
                for layout in tables.table(table).layouts:
                    write_order(streams[layout.name], layout, order, _counts)
        for stream in streams.values():
            stream.write(b"\n")
    return tuple(folder / layout.path for layout in tables.layouts)


def _counts(_: GroupOrder[TrueGroups], rows: CellRows) -> pa.Array:
    return pa.array(rows.count)
