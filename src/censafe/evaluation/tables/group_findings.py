"""CONFIDENTIAL. What noise draws of a SafeTab product showed: errors by kind of cell, tables that groups get, empty groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from censafe.evaluation.tables.flow import DrawFindings, Drawing, Trials
from censafe.evaluation.tables.group_accuracy import (
    ALL_SIZES,
    ErrorRow,
    ShareRow,
    ZeroRow,
    draw_report,
    error_rows,
    level_of,
    share_rows,
    zero_rows,
)
from censafe.evaluation.tables.groups import LOADERS, level_trials, run_group_trials, sorted_input
from censafe.model import ReleasePlan
from censafe.model.bounds import lower
from censafe.model.observer import work_done
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.config import Product, SafetabConfig
from censafe.products.detailed.plan import plan_release
from censafe.products.run.options import ReadOptions


def group_trials(product: Product, config: str, settings: Mapping[str, str]) -> Trials:
    """Read and plan a configuration."""
    chosen = LOADERS[product](config, settings)
    plan = plan_release(chosen, read_universe(chosen.universe))
    return Trials(chosen, plan, partial(_draw, chosen, plan))


def _draw(
    config: SafetabConfig,
    plan: ReleasePlan,
    data: Path,
    scratch: Path,
    reading: ReadOptions,
    drawing: Drawing,
) -> DrawFindings:
    """CONFIDENTIAL. Sort the records once, draw their noise with test keys, and compare with the truth."""
    trials = drawing.trials
    with sorted_input(config, data, scratch, reading) as records:
        with reading.observer.stage(f"{trials} noise draws"):
            levels = level_trials(records, config, plan)
            done = work_done(reading.observer, trials, "draws")
            run_group_trials(levels, plan, trials=trials, seed=drawing.seed, done=done)
        errors, shares = error_rows(levels, drawing.confidence), share_rows(levels, trials)
        zeros = zero_rows(levels, trials)
    frames: dict[str, tuple[type[Any], Sequence[Any]]] = {
        "accuracy": (ErrorRow, errors),
        "tables": (ShareRow, shares),
    }
    if zeros:
        frames["zeros"] = (ZeroRow, zeros)
    return DrawFindings(frames, partial(draw_report, errors, shares), _lines(errors, zeros))


def _lines(errors: Sequence[ErrorRow], zeros: Sequence[ZeroRow]) -> list[str]:
    """One line a level and class of tables, for its most frequent measured cells."""
    lines = [
        f"{'level':<32}{'table':<8}{'cells':<20}{'number':>10}{'expected moe':>13}{'experimental':>13}"
        f"{'coverage':>9}{'bias':>7}"
    ]
    for row in _frequent(errors):
        label = level_of(row).label
        cell = "Detailed-only total" if row.detailed_only else row.cell
        lines.append(
            f"{label:<32}{row.table:<8}{cell[:19]:<20}{row.noise_cells:>10,}{row.expected_moe_exact:>13,}"
            f"{row.noise_moe:>13,.0f}{lower(row.noise_coverage, 3):>9.3f}{row.noise_bias:>7.2f}"
        )
    lines.append(
        "Margins are the smallest whole numbers that cover the level; cells are those of one noise draw each."
    )
    if zeros:
        published = sum(row.published for row in zeros)
        expected = sum(row.expected for row in zeros)
        deviation = sum(row.deviation**2 for row in zeros) ** 0.5
        lines.append(
            f"Empty groups published below the states, all draws: {published:,}; by the exact tail "
            f"{expected:,.1f} with a standard deviation of {deviation:,.1f}."
        )
    return lines


def _frequent(rows: Sequence[ErrorRow]) -> list[ErrorRow]:
    """Of every level, class of tables and detailed-only flag the kind of one-draw cells with the most errors."""
    best: dict[tuple[str, int, str, bool], ErrorRow] = {}
    for row in rows:
        if row.size != ALL_SIZES or row.draws_a_cell > 1:
            continue
        only = row.detailed_only and row.table == "T01001"
        key = row.region_type, row.iteration_level, row.table[:3], only
        if key not in best or row.noise_cells > best[key].noise_cells:
            best[key] = row
    return list(best.values())
