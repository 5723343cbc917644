"""CONFIDENTIAL. Repeated noise draws of PHSafe against the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from censafe.evaluation.tables.flow import Drawing
from censafe.evaluation.tables.phsafe.accuracy import (
    AccuracyRow,
    TableErrors,
    accuracy_rows,
    align_truth,
    draw_accuracy,
    percent_cut,
)
from censafe.evaluation.tables.phsafe.truth import TruthTable, truth_tables
from censafe.model import ExactCounts, PublishedQuery, ReleasePlan
from censafe.model.bounds import lower
from censafe.model.observer import work_done
from censafe.privacy.keys.part_keys import plan_part_key
from censafe.privacy.keys.run_keys import TestKey
from censafe.privacy.measure.mechanisms import measure
from censafe.products.phsafe.config import PhsafeConfig, load_phsafe_config
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries, sum_cells
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels, plan_release
from censafe.products.run.options import ReadOptions
from censafe.tabulation.tables.counting import CountAccumulator

Key = tuple[str, str]


@dataclass(frozen=True)
class PhsafeFindings:
    """CONFIDENTIAL. Margins and biases of PHSafe's tables."""

    rows: tuple[AccuracyRow, ...]

    def frames(self) -> Mapping[str, tuple[type[AccuracyRow], Sequence[AccuracyRow]]]:
        """The rows as ``accuracy.csv``."""
        return {"accuracy": (AccuracyRow, self.rows)}

    def draw(self, path: Path, title: str) -> None:
        """Experimental against expected margins, and what truncation does."""
        draw_accuracy(path, self.rows, title=title)

    def lines(self) -> list[str]:
        """One line a table and region type."""
        lines = [
            f"{'table':<11}{'regions':<9}{'expected moe':>14}{'experimental':>14}{'coverage':>10}{'truncation':>12}"
        ]
        groups = dict.fromkeys((row.table, row.region_type) for row in self.rows)
        for table, region_type in groups:
            rows = [row for row in self.rows if (row.table, row.region_type) == (table, region_type)]
            share = f"{percent_cut(rows):+.2f} %" if any(row.true_total for row in rows) else "-"
            lines.append(
                f"{table:<11}{region_type:<9}{_median(rows, 'expected_moe'):>14.1f}"
                f"{_median(rows, 'experimental_moe_noise'):>14.1f}"
                f"{lower(float(np.mean([row.coverage_noise for row in rows])), 3):>10.3f}{share:>12}"
            )
        return [*lines, "Margins are medians over iterations and cells."]


@dataclass(frozen=True)
class PhsafeTrials:
    """A configuration of PHSafe and its plan, ready to be drawn."""

    config: PhsafeConfig
    plan: ReleasePlan

    @staticmethod
    def of(config: str, settings: Mapping[str, str]) -> PhsafeTrials:
        """Read and plan a configuration."""
        chosen = load_phsafe_config(config, settings)
        return PhsafeTrials(chosen, plan_release(chosen))

    def run(self, data: Path, scratch: Path, reading: ReadOptions, drawing: Drawing) -> PhsafeFindings:
        """CONFIDENTIAL. Count the records once, draw their noise with test keys, and compare with the truth."""
        levels = measured_table_levels(self.config)
        definitions = phsafe_definitions()
        private = CountAccumulator(definitions, tables=list(levels), tau=self.config.tau)
        truth = CountAccumulator(definitions, mode="truth")
        with HouseholdIntake(data, self.config.reader, self.config.states, scratch, reading) as intake:
            intake.count(private, truth)
        with reading.observer.stage(f"{drawing.trials} noise draws"):
            samples = draw_tables(
                self.plan,
                private.finish(levels),
                truth_tables(truth),
                trials=drawing.trials,
                seed=drawing.seed,
                done=work_done(reading.observer, drawing.trials, "draws"),
            )
        return PhsafeFindings(tuple(accuracy_rows(samples, drawing.confidence)))


def draw_tables(
    plan: ReleasePlan,
    exact: Mapping[Key, ExactCounts],
    truth: Mapping[str, TruthTable],
    *,
    trials: int,
    seed: int,
    done: Callable[[int], None] = lambda _: None,
) -> list[TableErrors]:
    """Noisy answers of every published table and level, ``trials`` times, beside exact and true counts."""
    drawn = []
    for trial in range(trials):
        drawn.append(_published(plan, exact, trial, seed))
        done(trial + 1)
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
