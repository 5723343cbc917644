"""CONFIDENTIAL. PHSafe's true counts and tables, with margins and without truncation or noise, and repeated noise draws against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from censafe.evaluation.tables.flow import DrawFindings, Drawing, Trials, TrueTables
from censafe.evaluation.tables.phsafe_accuracy import (
    AccuracyRow,
    TableErrors,
    accuracy_rows,
    draw_accuracy,
    percent_cut,
)
from censafe.model import ExactCounts, PublishedQuery, ReleasePlan
from censafe.model.bounds import lower
from censafe.model.observer import work_done
from censafe.privacy.keys.part_keys import plan_part_key
from censafe.privacy.keys.run_keys import TestKey
from censafe.privacy.measure.mechanisms import measure
from censafe.products.phsafe.config import PhsafeConfig, TruthConfig, load_phsafe_config, load_truth_config
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries, sum_cells
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels, plan_release
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


Key = tuple[str, str]


def phsafe_trials(config: str, settings: Mapping[str, str]) -> Trials:
    """Read and plan a configuration."""
    chosen = load_phsafe_config(config, settings)
    plan = plan_release(chosen)
    return Trials(chosen, plan, partial(_draw, chosen, plan))


def _draw(
    config: PhsafeConfig, plan: ReleasePlan, data: Path, scratch: Path, reading: ReadOptions, drawing: Drawing
) -> DrawFindings:
    """CONFIDENTIAL. Count the records once, draw their noise with test keys, and compare with the truth."""
    levels = measured_table_levels(config)
    definitions = phsafe_definitions()
    private = CountAccumulator(definitions, tables=list(levels), tau=config.tau)
    truth = CountAccumulator(definitions, mode="truth")
    with HouseholdIntake(data, config.reader, config.states, scratch, reading) as intake:
        intake.count(private, truth)
    with reading.observer.stage(f"{drawing.trials} noise draws"):
        samples = draw_tables(plan, private.finish(levels), truth_tables(truth), drawing, reading)
    rows = accuracy_rows(samples, drawing.confidence)
    return DrawFindings({"accuracy": (AccuracyRow, rows)}, partial(draw_accuracy, rows), _lines(rows))


def _lines(rows: Sequence[AccuracyRow]) -> list[str]:
    """One line a table and region type."""
    lines = [
        f"{'table':<11}{'regions':<9}{'expected moe':>14}{'experimental':>14}{'coverage':>10}{'truncation':>12}"
    ]
    for table, region_type in dict.fromkeys((row.table, row.region_type) for row in rows):
        own = [row for row in rows if (row.table, row.region_type) == (table, region_type)]
        expected, experimental = (
            float(np.median([getattr(row, name) for row in own]))
            for name in ("expected_moe", "experimental_moe_noise")
        )
        coverage = lower(float(np.mean([row.coverage_noise for row in own])), 3)
        cut = f"{percent_cut(own):+.2f} %" if any(row.true_total for row in own) else "-"
        lines.append(
            f"{table:<11}{region_type:<9}{expected:>14.1f}{experimental:>14.1f}{coverage:>10.3f}{cut:>12}"
        )
    return [*lines, "Margins are medians over iterations and cells."]


def draw_tables(
    plan: ReleasePlan,
    exact: Mapping[Key, ExactCounts],
    truth: Mapping[str, Sequence[TruthRow]],
    drawing: Drawing,
    reading: ReadOptions,
) -> list[TableErrors]:
    """Noisy answers of every published table and level, many times, with exact and true counts."""
    done = work_done(reading.observer, drawing.trials, "draws")
    drawn: list[Sequence[PublishedQuery]] = []
    for trial in range(drawing.trials):
        measured = []
        with TestKey(drawing.seed) as run_key:
            for part in plan.parts:
                key = plan_part_key(run_key, plan, b"trial %d" % trial, part.name, None)
                for ordinal, query in enumerate(part.queries):
                    measured.append(measure(exact[query.table, query.level], query, ordinal, key))
        drawn.append(published_queries(measured))
        done(trial + 1)
    samples = []
    for position, published in enumerate(drawn[0]):
        noisy = np.stack([queries[position].values for queries in drawn])
        true = _true_counts(published, truth)
        samples.append(TableErrors(published, true, _exact_counts(published, exact), noisy))
    return samples


def _exact_counts(
    query: PublishedQuery, exact: Mapping[Key, ExactCounts]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    table = phsafe_definitions().table(query.table)
    if table.derived is None:
        return exact[query.table, query.level].values
    source = exact[table.derived.source, query.level]
    return sum_cells(table, source.domain, source.values)[1]


def _true_counts(
    query: PublishedQuery, truth: Mapping[str, Sequence[TruthRow]]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    geography, _ = phsafe_definitions().levels(phsafe_definitions().table(query.table))[query.level]
    rows = {
        (row.region_id, row.iteration, row.cell): row.count
        for row in truth[query.table]
        if row.region_type == geography.region_type
    }
    columns = [query.domain.column(name).tolist() for name in query.domain.names]
    if len(columns) == 2:
        columns.insert(1, ["*"] * query.domain.size)
    keys = zip(*columns, strict=True)
    return np.fromiter((rows.get(key, 0) for key in keys), np.int64, query.domain.size)
