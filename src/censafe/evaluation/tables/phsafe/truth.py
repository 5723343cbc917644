"""CONFIDENTIAL. PHSafe's true counts and tables, with margins and without truncation or noise, and the cells that a release adds noise to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from censafe.evaluation.tables.flow import TrueTables
from censafe.products.phsafe.config import (
    PhsafeConfig,
    TruthConfig,
    load_phsafe_config,
    load_truth_config,
)
from censafe.products.phsafe.definitions import phsafe_definitions, sum_cells
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels
from censafe.products.run.options import ReadOptions
from censafe.tabulation.tables.counting import ITERATION_AXIS, REGION_AXIS, CountAccumulator
from censafe.tabulation.tables.definitions import EVERYONE


@dataclass(frozen=True, order=True)
class TruthRow:
    """CONFIDENTIAL. One true count that is not zero."""

    region_type: str
    region_id: str
    iteration: str
    cell: str
    count: int = field(repr=False)


def truth_tables(accumulator: CountAccumulator) -> dict[str, list[TruthRow]]:
    """CONFIDENTIAL. The true counts of every table that are not zero, from an accumulator of mode ``truth``: all cells, margins included.

    The universes are those of the reference's ground truth, which differ from a release's for PH1_num and
    PH8_num; a record that meets no detailed cell still counts in the margins that it meets.
    """
    definitions = phsafe_definitions()
    counts = accumulator.finish()
    truth = {}
    for name in dict.fromkeys(table for table, _ in counts):
        table = definitions.table(name)
        rows: list[TruthRow] = []
        for level, (geography, _) in definitions.levels(table).items():
            exact = counts[name, level]
            keys = [exact.domain.column(axis) for axis in (REGION_AXIS, table.cell_column)]
            codes = (
                exact.domain.column(ITERATION_AXIS)
                if table.iterated
                else np.full(exact.domain.size, EVERYONE)
            )
            for row in np.flatnonzero(exact.values).tolist():
                region, cell = (str(column[row]) for column in keys)
                rows.append(
                    TruthRow(geography.region_type, region, str(codes[row]), cell, int(exact.values[row]))
                )
        truth[name] = rows
    return truth


Line = tuple[str, ...]


def phsafe_truth(config: str, settings: Mapping[str, str], private_path: bool) -> TrueTables:
    """Read a configuration.

    On the private path a whole configuration, for the basis cells after truncation over the full key domain, zeros included;
    otherwise states and reader, for the true counts with margins, no truncation, cells that are not zero.
    """
    if private_path:
        return partial(_write, load_phsafe_config(config, settings, allow_infinite=True))
    return partial(_write, load_truth_config(config, settings))


def _write(
    config: TruthConfig | PhsafeConfig, data: Path, scratch: Path, reading: ReadOptions, folder: Path
) -> list[str]:
    """CONFIDENTIAL. Count the records and write the tables; returns the paths of the files below the folder."""
    with HouseholdIntake(data, config.reader, config.states, scratch, reading) as intake:
        if isinstance(config, PhsafeConfig):
            tables = _basis_cells(config, intake)
        else:
            counts = CountAccumulator(phsafe_definitions(), mode="truth")
            intake.count(counts)
            tables = {name: _truth_lines(name, rows) for name, rows in truth_tables(counts).items()}
    for name, lines in tables.items():
        (folder / name).mkdir()
        text = "".join("|".join(line) + "\n" for line in lines)
        (folder / name / f"{name}.csv").write_text(text, encoding="utf-8")
    return [f"{name}/{name}.csv" for name in tables]


def _truth_lines(name: str, rows: Sequence[TruthRow]) -> list[Line]:
    table = phsafe_definitions().table(name)
    lines: list[Line] = [_header(table.cell_column, iterated=table.iterated)]
    for row in sorted(rows, key=lambda row: (row.region_type, row.region_id, row.iteration, int(row.cell))):
        iteration = (row.iteration,) if table.iterated else ()
        lines.append((row.region_id, row.region_type, *iteration, row.cell, str(row.count)))
    return lines


def _basis_cells(config: PhsafeConfig, intake: HouseholdIntake) -> dict[str, list[Line]]:
    definitions = phsafe_definitions()
    levels = measured_table_levels(config)
    counts = CountAccumulator(definitions, tables=list(levels), tau=config.tau)
    intake.count(counts)
    exact = counts.finish(levels)
    lines: dict[str, list[Line]] = {}
    for table in definitions.tables:
        source = table.derived.source if table.derived else table.name
        for level in levels.get(source, ()):
            domain, values = exact[source, level].domain, exact[source, level].values
            if table.derived:
                domain, values, _ = sum_cells(table, domain, values)
            block = lines.setdefault(table.name, [_header(table.cell_column, iterated=table.iterated)])
            geography, _ = definitions.levels(table)[level]
            columns = zip(*(domain.column(name).tolist() for name in domain.names), strict=True)
            for (region, *rest), value in zip(columns, values.tolist(), strict=True):
                block.append((region, geography.region_type, *rest, str(value)))
    return lines


def _header(cell_column: str, *, iterated: bool) -> Line:
    return ("REGION_ID", "REGION_TYPE", *(("ITERATION_CODE",) if iterated else ()), cell_column, "COUNT")
