"""CONFIDENTIAL. Evaluation of a SafeTab product: noise draws with test keys against the truth, and their report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from censafe.evaluation.confidential import confidential_run, write_report_rows
from censafe.evaluation.outputs import write_document
from censafe.evaluation.pages.registry import write_report
from censafe.evaluation.tables.document import table_document
from censafe.evaluation.tables.groups_accuracy import (
    ALL_SIZES,
    ErrorRow,
    ShareRow,
    ZeroRow,
    error_rows,
    share_rows,
    zero_rows,
)
from censafe.evaluation.tables.groups_figure import draw_report
from censafe.evaluation.tables.groups_trials import level_trials, run_group_trials
from censafe.evaluation.tables.groups_truth import sorted_input
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import PopulationGroupLevel
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.detailed.keys import Product
from censafe.products.detailed.plan import plan_release
from censafe.products.run.options import ReadOptions
from censafe.products.run.scratch import private_scratch
from censafe.publication.sums import require_confidence

__all__ = ["SafetabEvaluation", "evaluate_safetab"]


@dataclass(frozen=True)
class SafetabEvaluation:
    """CONFIDENTIAL. What an evaluation found and where it was written."""

    errors: tuple[ErrorRow, ...]
    shares: tuple[ShareRow, ...]
    zeros: tuple[ZeroRow, ...]
    trials: int
    files: tuple[Path, ...]

    def text(self) -> str:
        """A short summary: one line a level and class of tables, for its most frequent measured cells."""
        lines = [
            f"CONFIDENTIAL. {self.trials} noise draws against the truth.",
            f"{'level':<32}{'table':<8}{'cells':<20}{'number':>10}{'expected moe':>13}{'experimental':>13}"
            f"{'coverage':>9}{'bias':>7}",
        ]
        for row in _frequent(self.errors):
            label = PopulationGroupLevel(row.region_type, row.iteration_level).label
            cell = "Detailed-only total" if row.detailed_only else row.cell
            lines.append(
                f"{label:<32}{row.table:<8}{cell[:19]:<20}{row.noise_cells:>10,}{row.expected_moe_exact:>13,}"
                f"{row.noise_moe:>13,.0f}{row.noise_coverage:>9.3f}{row.noise_bias:>7.2f}"
            )
        lines.append(f"Margins are the smallest whole numbers that cover the level; {_ALONE}.")
        if self.zeros:
            published = sum(row.published for row in self.zeros)
            expected = sum(row.expected for row in self.zeros)
            deviation = sum(row.deviation**2 for row in self.zeros) ** 0.5
            lines.append(
                f"Empty groups published below the states, all draws: {published:,}; by the exact tail "
                f"{expected:,.1f} with a standard deviation of {deviation:,.1f}."
            )
        return "\n".join([*lines, "Files:", *(f"  {path}" for path in self.files)])


_ALONE = "cells are those of one noise draw each"


def evaluate_safetab(
    product: Product,
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    trials: int,
    seed: int,
    confidence: Fraction,
) -> SafetabEvaluation:
    """Sort the records once, release them ``trials`` times with test keys in memory, and compare with the truth.

    Args:
        product: whose tables.
        config: a parameter folder, a file or a shipped name.
        data: folder (or .ini file) with the records.
        out: a new or empty folder; gets ``report.html``, ``accuracy.csv``, ``tables.csv``, ``accuracy.svg``, ``accuracy.png``, and for
            SafeTab-P ``zeros.csv``.
        settings: overrides of configuration keys.
        reading: how the records are read and checked, and where T1 is.
        trials: number of independent draws of every noisy answer.
        seed: of the test key.
        confidence: level of the margins, 9/10 or 19/20.

    Raises:
        UsageError: the folder holds something else.
        InputError: the configuration or the records break a rule.
    """
    require_confidence(confidence)
    chosen = (load_p_config if product == "safetab-p" else load_h_config)(config, settings)
    plan = plan_release(chosen, read_universe(chosen.universe))
    with (
        confidential_run(out, "evaluation"),
        private_scratch(data, reading.scratch, out=out) as scratch,
        sorted_input(chosen, data, scratch, reading) as records,
    ):
        with reading.observer.stage(f"{trials} noise draws"):
            levels = level_trials(records, chosen, plan)
            run_group_trials(levels, plan, trials=trials, seed=seed)
        errors, shares = error_rows(levels, confidence), share_rows(levels, trials)
        zeros = zero_rows(levels, trials)
        with reading.observer.stage("report"):
            title = f"{product}, {chosen.origin}: {trials} noise draws against the truth"
            files = _write(out, errors, shares, zeros, title)
            write_document(
                out, table_document(product, chosen, plan, trials=trials, seed=seed, confidence=confidence)
            )
            files += tuple(out / name for name in write_report(out))
    return SafetabEvaluation(tuple(errors), tuple(shares), tuple(zeros), trials, files)


def _write(
    out: Path, errors: list[ErrorRow], shares: list[ShareRow], zeros: list[ZeroRow], title: str
) -> tuple[Path, ...]:
    files = [out / "accuracy.csv", out / "tables.csv"]
    write_report_rows(files[0], ErrorRow, errors)
    write_report_rows(files[1], ShareRow, shares)
    if zeros:
        files.append(out / "zeros.csv")
        write_report_rows(files[2], ZeroRow, zeros)
    for ending in ("svg", "png"):
        files.append(out / f"accuracy.{ending}")
        draw_report(files[-1], errors, shares, title=title)
    return tuple(files)


def _frequent(rows: tuple[ErrorRow, ...]) -> list[ErrorRow]:
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
