"""CONFIDENTIAL. Repeated noise draws of PHSafe against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from censafe.evaluation.confidential import confidential_run
from censafe.evaluation.outputs import write_document
from censafe.evaluation.pages.registry import write_report
from censafe.evaluation.tables.document import table_document
from censafe.evaluation.tables.phsafe_accuracy import (
    AccuracyRow,
    TableErrors,
    accuracy_rows,
    align_truth,
    draw_accuracy,
    write_accuracy_csv,
)
from censafe.model import ExactCounts, PublishedQuery, ReleasePlan
from censafe.privacy.keys.keys import TestKey, plan_part_key
from censafe.privacy.measure.mechanisms import measure
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries, sum_cells
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels, plan_release
from censafe.products.phsafe.truth import TruthTable, truth_tables
from censafe.products.run.options import ReadOptions
from censafe.products.run.scratch import private_scratch
from censafe.publication.sums import require_confidence
from censafe.tabulation.tables.counting import CountAccumulator

__all__ = ["PhsafeEvaluation", "evaluate_phsafe", "run_trials"]

Key = tuple[str, str]


@dataclass(frozen=True)
class PhsafeEvaluation:
    """CONFIDENTIAL. What an evaluation found and where it was written."""

    rows: tuple[AccuracyRow, ...]
    trials: int
    files: tuple[Path, ...]

    def text(self) -> str:
        """A short summary: one line a table and region type."""
        lines = [
            f"CONFIDENTIAL. {self.trials} noise draws against the truth.",
            f"{'table':<11}{'regions':<9}{'expected moe':>14}{'experimental':>14}"
            f"{'coverage':>10}{'truncation':>12}",
        ]
        groups = dict.fromkeys((row.table, row.region_type) for row in self.rows)
        for table, region_type in groups:
            rows = [row for row in self.rows if (row.table, row.region_type) == (table, region_type)]
            true_total = sum(row.true_total for row in rows)
            cut = sum(row.bias_truncation * row.regions for row in rows)
            share = f"{100 * cut / true_total:+.2f} %" if true_total else "-"
            lines.append(
                f"{table:<11}{region_type:<9}{_median(rows, 'expected_moe'):>14.1f}"
                f"{_median(rows, 'experimental_moe_noise'):>14.1f}"
                f"{np.mean([row.coverage_noise for row in rows]):>10.3f}{share:>12}"
            )
        lines.append("Margins are medians over iterations and cells. Files:")
        return "\n".join([*lines, *(f"  {path}" for path in self.files)])


def evaluate_phsafe(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    trials: int,
    seed: int,
    confidence: Fraction,
) -> PhsafeEvaluation:
    """Count once, draw noise ``trials`` times with test keys, and compare with the truth.

    Args:
        config: a path or a shipped name.
        data: folder (or .ini file) with the records.
        out: a new or empty folder; gets ``report.html``, ``accuracy.csv``, ``accuracy.svg`` and ``accuracy.png``.
        settings: overrides of configuration keys.
        reading: how the records are read and checked.
        trials: number of independent draws of every noisy answer.
        seed: of the test key.
        confidence: level of the margins, 9/10 or 19/20.

    Raises:
        UsageError: the folder holds something else.
        InputError: the configuration or the records break a rule.
    """
    require_confidence(confidence)
    chosen = load_phsafe_config(config, settings)
    plan = plan_release(chosen)
    levels = measured_table_levels(chosen)
    definitions = phsafe_definitions()
    with confidential_run(out, "evaluation"):
        private = CountAccumulator(definitions, tables=list(levels), tau=chosen.tau)
        truth = CountAccumulator(definitions, mode="truth")
        with (
            private_scratch(data, reading.scratch, out=out) as scratch,
            HouseholdIntake(data, chosen.reader, chosen.states, scratch, reading) as intake,
        ):
            intake.count(private, truth)
        with reading.observer.stage(f"{trials} noise draws"):
            samples = run_trials(plan, private.finish(levels), truth_tables(truth), trials=trials, seed=seed)
        rows = accuracy_rows(samples, confidence)
        files = tuple(out / f"accuracy.{kind}" for kind in ("csv", "svg", "png"))
        write_accuracy_csv(files[0], rows)
        write_document(
            out, table_document("phsafe", chosen, plan, trials=trials, seed=seed, confidence=confidence)
        )
        title = f"PHSafe, {chosen.origin}: {trials} noise draws against the truth"
        for picture in files[1:]:
            draw_accuracy(picture, rows, title=title)
        files += tuple(out / name for name in write_report(out))
    return PhsafeEvaluation(tuple(rows), trials, files)


def run_trials(
    plan: ReleasePlan,
    exact: Mapping[Key, ExactCounts],
    truth: Mapping[str, TruthTable],
    *,
    trials: int,
    seed: int,
) -> list[TableErrors]:
    """Noisy answers of every published table and level, ``trials`` times, beside exact and true counts.

    Args:
        plan: what is measured.
        exact: counts after truncation, by table and level, for all of the plan.
        truth: true counts by table.
        trials: number of draws.
        seed: of the test key.
    """
    drawn = [_published(plan, exact, trial, seed) for trial in range(trials)]
    samples = []
    for position, query in enumerate(drawn[0]):
        noisy = np.stack([published[position].values for published in drawn])
        samples.append(TableErrors(query, _true_counts(query, truth), _exact_counts(query, exact), noisy))
    return samples


def _published(
    plan: ReleasePlan, exact: Mapping[Key, ExactCounts], trial: int, seed: int
) -> Sequence[PublishedQuery]:
    measured = []
    with TestKey(seed) as run_key:
        for part in plan.parts:
            key = plan_part_key(run_key, plan, b"trial %d" % trial, part.name, None)
            for ordinal, query in enumerate(part.queries):
                measured.append(measure(exact[query.table, query.level], query, ordinal, key))
    return published_queries(measured)


def _exact_counts(
    query: PublishedQuery, exact: Mapping[Key, ExactCounts]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    table = phsafe_definitions().table(query.table)
    if table.derived is None:
        return exact[query.table, query.level].values
    source = exact[table.derived.source, query.level]
    return sum_cells(table, source.domain, source.values)[1]


def _true_counts(
    query: PublishedQuery, truth: Mapping[str, TruthTable]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    geography, _ = phsafe_definitions().levels(phsafe_definitions().table(query.table))[query.level]
    rows = {
        (row.region_id, row.iteration, row.cell): row.count
        for row in truth[query.table].rows
        if row.region_type == geography.region_type
    }
    return align_truth(rows, query.domain)


def _median(rows: Sequence[AccuracyRow], name: str) -> float:
    return float(np.median([getattr(row, name) for row in rows]))
