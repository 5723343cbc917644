"""CONFIDENTIAL. PHSafe's true counts and tables, and repeated noise draws against them: experimental against expected margins of error, noise and truncation apart, as CSV and figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from censafe.evaluation.confidential import label_rows, legend_below, save_figure
from censafe.evaluation.tables.document import chance_within
from censafe.model import ExactCounts, PublishedQuery, ReleasePlan
from censafe.model.bounds import lower
from censafe.model.observer import work_done
from censafe.privacy.keys import TestKey, plan_part_key
from censafe.privacy.loss.margins import MarginRule, paper_margin
from censafe.privacy.measure.mechanisms import measure
from censafe.products.phsafe.config import PhsafeConfig, TruthConfig, load_phsafe_config, load_truth_config
from censafe.products.phsafe.definitions import phsafe_definitions, published_queries, sum_cells
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels, plan_release
from censafe.products.run.options import ReadOptions
from censafe.tabulation.tables.counting import ITERATION_AXIS, REGION_AXIS, CountAccumulator
from censafe.tabulation.tables.definitions import EVERYONE

if TYPE_CHECKING:
    from censafe.evaluation.tables.flow import DrawFindings, Drawing, Trials, TrueTables


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
            tables = {}
            for name, rows in truth_tables(counts).items():
                table = phsafe_definitions().table(name)
                tables[name] = [_header(table.cell_column, iterated=table.iterated)]
                order = sorted(
                    rows, key=lambda row: (row.region_type, row.region_id, row.iteration, int(row.cell))
                )
                for row in order:
                    iteration = (row.iteration,) if table.iterated else ()
                    tables[name].append(
                        (row.region_id, row.region_type, *iteration, row.cell, str(row.count))
                    )
    for name, lines in tables.items():
        (folder / name).mkdir()
        text = "".join("|".join(line) + "\n" for line in lines)
        (folder / name / f"{name}.csv").write_text(text, encoding="utf-8")
    return [f"{name}/{name}.csv" for name in tables]


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


_Counts = np.ndarray[tuple[int], np.dtype[np.int64]]


def phsafe_trials(config: str, settings: Mapping[str, str]) -> Trials:
    """Read and plan a configuration."""
    chosen = load_phsafe_config(config, settings)
    plan = plan_release(chosen)
    return chosen, plan, partial(_draw, chosen, plan)


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
        rows = _drawn_rows(plan, private.finish(levels), truth_tables(truth), drawing, reading)
    return {"accuracy": (AccuracyRow, rows)}, partial(draw_accuracy, rows), _lines(rows)


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


def _drawn_rows(
    plan: ReleasePlan,
    exact: Mapping[tuple[str, str], ExactCounts],
    truth: Mapping[str, Sequence[TruthRow]],
    drawing: Drawing,
    reading: ReadOptions,
) -> list[AccuracyRow]:
    """Draw the noise of every published table and level many times, and compare with exact and true counts."""
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
    rows: list[AccuracyRow] = []
    for position, published in enumerate(drawn[0]):
        noisy = np.stack([queries[position].values for queries in drawn])
        table = phsafe_definitions().table(published.table)
        if table.derived is None:
            counts = exact[published.table, published.level].values
        else:
            source = exact[table.derived.source, published.level]
            counts = sum_cells(table, source.domain, source.values)[1]
        true = _true_counts(published, truth)
        rows += accuracy_rows(published, true, counts, noisy, drawing.confidence)
    return rows


def _true_counts(query: PublishedQuery, truth: Mapping[str, Sequence[TruthRow]]) -> _Counts:
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


# Two standard errors of the 90% quantile of the absolute value of n Gaussian draws, relative to that quantile,
# are 2 sqrt(0.9 * 0.1) / (1.645 * 2 phi(1.645)) / sqrt(n).
_SPREAD = 1.768
_COLORS = {"USA": "#1b6ca8", "STATE": "#d1762a"}


def draw_accuracy(rows: Sequence[AccuracyRow], path: Path, title: str) -> None:
    """Draw experimental against expected margins, and what truncation does, as SVG or PNG."""
    tables = list(dict.fromkeys(row.table for row in rows))
    figure = Figure(figsize=(12, 0.42 * len(tables) + 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    margin_panel(left, rows)
    left.set_title("Does the noise have the size that was promised?", fontsize=10)
    legend_below(figure, left, columns=3)
    truncation_panel(right, rows)
    right.set_title("What does truncating large households cost?", fontsize=10)
    save_figure(path, figure, title)


def margin_panel(axes: Axes, rows: Sequence[AccuracyRow]) -> None:
    """Experimental against expected margins, a dot for every row of the evaluation."""
    known = [row for row in rows if row.expected_moe > 0]
    _dots(axes, rows, known, [row.experimental_moe_noise / row.expected_moe for row in known])
    spread = _SPREAD / np.sqrt(min(row.regions * row.trials for row in rows))
    label = f"where 95% of dots belong ({rows[0].trials} draws a dot)"
    axes.axvspan(1.0 - spread, 1.0 + spread, color="#e8e8e8", zorder=0, label=label)
    axes.axvline(1.0, color="#555555", linewidth=1)
    axes.set_xlabel("noise: experimental / expected margin of error")


def truncation_panel(axes: Axes, rows: Sequence[AccuracyRow]) -> None:
    """Bias of truncation in percent of the true count, a dot for every row of the evaluation."""
    _dots(axes, rows, rows, [percent_cut([row]) for row in rows])
    axes.axvline(0.0, color="#555555", linewidth=1)
    axes.set_xlabel("(count before noise - true count) in % of the true count")


def percent_cut(rows: Sequence[AccuracyRow]) -> float:
    """Truncation bias summed over regions in percent of the true total; 0 where that is 0."""
    true_total = sum(row.true_total for row in rows)
    bias = sum(row.bias_truncation * row.regions for row in rows)
    return 100.0 * bias / true_total if true_total else 0.0


def _dots(
    axes: Axes, rows: Sequence[AccuracyRow], dotted: Sequence[AccuracyRow], values: Sequence[float]
) -> None:
    """A dot for every shown row: the nation above, states below, a line for every table of all rows."""
    tables = list(dict.fromkeys(row.table for row in rows))
    for region_type, name, offset in (("USA", "nation", -0.16), ("STATE", "states", 0.16)):
        chosen = [place for place, row in enumerate(dotted) if row.region_type == region_type]
        if chosen:
            # a small spread by cell, so that dots do not hide each other
            spread = np.linspace(-0.1, 0.1, 9)
            heights = [
                tables.index(dotted[place].table) + offset + spread[number % 9]
                for number, place in enumerate(chosen)
            ]
            axes.plot(
                [values[place] for place in chosen], heights, "o", color=_COLORS[region_type], alpha=0.45,
                markersize=4.5, label=name,
            )  # fmt: skip
    label_rows(axes, tables)


_REGION_TYPE = {"usa": "USA", "state": "STATE"}


@dataclass(frozen=True)
class AccuracyRow:
    """One (table, region type, iteration, cell), pooled over regions and trials.

    Margins and biases are in persons (households for the denominators); ``bias_truncation`` is the
    mean over regions of (count after truncation - true count), which no number of trials changes.
    ``coverage_*`` is the share of errors within ``expected_moe``: of the noise alone, of noise and truncation, and by the
    exact law of the noise (NaN where a sum of draws has no law of its kind).
    """

    table: str
    region_type: str
    iteration: str
    cell: str
    regions: int
    trials: int
    true_total: int
    expected_moe: float
    expected_moe_reference: float
    experimental_moe_noise: float
    experimental_moe_total: float
    coverage_noise: float
    coverage_total: float
    coverage_expected: float
    bias_noise: float
    bias_truncation: float
    largest_truncation: int

    @property
    def drawn(self) -> int:
        """How many noisy cells it is about."""
        return self.regions * self.trials


def accuracy_rows(
    query: PublishedQuery, truth: _Counts, exact: _Counts, noisy: NDArray[np.int64], confidence: Fraction
) -> Iterator[AccuracyRow]:
    """Summarize errors of one table at one level by region type, iteration and cell.

    Args:
        truth: true counts, no truncation, shape (size,).
        exact: counts after truncation, before noise, shape (size,).
        noisy: shape (trials, size).

    Source: PHSafe specification, section 9.3.
    """
    regions, *middle, cells = query.domain.axes
    iterations = middle[0].values if middle else ("*",)
    trials = noisy.shape[0]
    shape = (len(regions.values), len(iterations), len(cells.values))
    true, counts, terms = (vector.reshape(shape) for vector in (truth, exact, query.terms))
    drawn = noisy.reshape((trials, *shape))
    for i, iteration in enumerate(iterations):
        for c, cell in enumerate(cells.values):
            t, k, y = true[:, i, c], counts[:, i, c], drawn[:, :, i, c]
            factor = float(np.sqrt(terms[0, i, c]))
            expected = factor * paper_margin(query.law, confidence)
            noise, error = np.abs(y - k), np.abs(y - t)
            noise_moe, error_moe = (
                float(np.quantile(errors, float(confidence), method="inverted_cdf"))
                for errors in (noise, error)
            )
            yield AccuracyRow(
                table=query.table,
                region_type=_REGION_TYPE[query.level.split("_", 1)[0]],
                iteration=iteration,
                cell=cell,
                regions=len(regions.values),
                trials=trials,
                true_total=int(t.sum()),
                expected_moe=expected,
                expected_moe_reference=factor * paper_margin(query.law, confidence, MarginRule.REFERENCE),
                experimental_moe_noise=noise_moe,
                experimental_moe_total=error_moe,
                coverage_noise=float(np.mean(noise <= expected)),
                coverage_total=float(np.mean(error <= expected)),
                coverage_expected=chance_within(query.law, int(terms[0, i, c]), int(expected)),
                bias_noise=float(np.mean(y - k)),
                bias_truncation=float(np.mean(k - t)),
                largest_truncation=int(np.max(np.abs(k - t))),
            )
