"""CONFIDENTIAL. What noise draws of a SafeTab product showed: experimental against expected margins, tables that groups get, suppression, and their figure; every number compares with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.confidential import label_rows, legend_below, save_figure
from censafe.evaluation.pages.page import one_panel
from censafe.evaluation.tables.document import chance_within
from censafe.evaluation.tables.groups import (
    LOADERS,
    SIZES,
    LevelTrials,
    level_trials,
    run_group_trials,
    sorted_input,
    split_key,
)
from censafe.model import Definition, NoiseLaw, ReleasePlan
from censafe.model.bounds import lower
from censafe.model.observer import work_done
from censafe.privacy.loss.margins import exact_coverage
from censafe.privacy.measure.adaptive import suppression_threshold
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import PopulationGroupLevel, group_noise_law
from censafe.products.detailed.config import Product, SafetabConfig, SafetabPConfig
from censafe.products.detailed.plan import P_QUERIES, plan_release
from censafe.products.run.options import ReadOptions
from censafe.publication.sums import accuracy_of_sum

if TYPE_CHECKING:
    from censafe.evaluation.tables.flow import DrawFindings, Drawing, Trials


ALL_SIZES = "all"
NO_TABLE = "none"


@dataclass(frozen=True)
class ErrorRow:
    """Errors of one kind of cells, pooled over cells, regions, iterations and draws.

    Margins and biases are in persons (SafeTab-P) or households (SafeTab-H). ``noise_*`` is of the noise alone;
    ``published_*`` of what is published less the truth, conditional on publication and after everything that was done to it.
    ``expected_moe`` is in the papers' form, ``expected_moe_exact`` the smallest integer that covers at least the confidence;
    ``noise_coverage`` is the share of noise within the latter,
    ``expected_coverage`` the exact chance of it (NaN where a sum of draws has no law of its kind). The margins by definition take the same budget as rho
    and as epsilon.
    """

    table: str
    cell: str
    region_type: str
    iteration_level: int
    detailed_only: bool
    stat_level: int
    size: str
    draws_a_cell: int
    stability: int
    expected_moe: float
    expected_moe_exact: int
    expected_moe_zcdp: float
    expected_moe_puredp: float
    noise_cells: int
    noise_moe: float
    noise_coverage: float
    expected_coverage: float
    noise_bias: float
    published_cells: int
    published_moe: float
    published_bias: float

    @property
    def drawn(self) -> int:
        """How many noisy cells it is about."""
        return self.noise_cells


@dataclass(frozen=True)
class ShareRow:
    """Share of the groups of one true size that get a table, over all draws; ``measured`` names the class of tables."""

    measured: str
    region_type: str
    iteration_level: int
    detailed_only: bool
    size: str
    groups: int
    table: str
    share: float


@dataclass(frozen=True)
class ZeroRow:
    """Groups without a record that are published below the states, and the exact chance.

    ``published`` and ``expected`` are sums over all draws; ``deviation`` is the standard deviation of the former.
    """

    region_type: str
    iteration_level: int
    groups: int
    trials: int
    published: int
    expected: float
    deviation: float
    share: float
    expected_share: float


def level_of(row: ErrorRow | ShareRow | ZeroRow) -> PopulationGroupLevel:
    """The population group level of a row."""
    return PopulationGroupLevel(row.region_type, row.iteration_level)


def error_rows(levels: Sequence[LevelTrials], confidence: Fraction) -> list[ErrorRow]:
    """Summarize errors by kind of cell, level, detailed-only flag, stat level and true size.

    For every kind first the row of all sizes, then those of each size.

    Source: specification of SafeTab, section 9.3.
    """
    rows = []
    for level in levels:
        groups: dict[tuple[int, bool], list[int]] = {}
        for key in sorted({*level.noise.keys, *level.published.keys}):
            groups.setdefault(split_key(key)[:2], []).append(key)
        for (kind, only), members in groups.items():
            rows.append(_error_row(level, kind, members, confidence, only=only, size=ALL_SIZES))
            for key in members:
                size = SIZES[split_key(key)[2]]
                rows.append(_error_row(level, kind, [key], confidence, only=only, size=size))
    return rows


def share_rows(levels: Sequence[LevelTrials], trials: int) -> list[ShareRow]:
    """Which table groups get, by true size; without a table first, then by stat level."""
    rows = []
    for level in levels:
        names = [NO_TABLE, *(shell.table for shell in level.table.shells.values())]
        place = level.level
        for only, size in np.argwhere(level.groups).tolist():
            groups = int(level.groups[only, size])
            about = level.table.key, place.region_type, place.level, bool(only), SIZES[size], groups
            for outcome, name in enumerate(names):
                share = int(level.outcomes[only, size, outcome]) / (groups * trials)
                rows.append(ShareRow(*about, name, share))
    return rows


def zero_rows(levels: Sequence[LevelTrials], trials: int) -> list[ZeroRow]:
    """Published empty groups of the levels that leave out small totals."""
    rows = []
    for level in levels:
        if not level.suppressed or not isinstance(level.config, SafetabPConfig):  # others leave out none
            continue
        _, first, second = (query.law for query in level.part.queries)
        threshold = level.config.thresholds["p", level.level.key][0]
        longer = chance_above(first, threshold - 1)
        bound = suppression_threshold(second, level.config.zero_suppression_chance)
        chance = longer + (1.0 - longer) * chance_above(second, bound)
        groups, published = int(level.groups[0, 0]), int(level.outcomes[0, 0, 1:].sum())
        number = groups * trials
        deviation = float(np.sqrt(number * chance * (1.0 - chance)))
        share = published / number if number else float("nan")
        place = level.level.region_type, level.level.level
        rows.append(ZeroRow(*place, groups, trials, published, number * chance, deviation, share, chance))
    return rows


def chance_above(law: NoiseLaw, bound: int) -> float:
    """P(noise > bound).

    Example:
        >>> round(chance_above(NoiseLaw.gaussian(Fraction(625)), 93), 7)
        9.19e-05
    """
    if bound < 0:
        return 1.0 - chance_above(law, -bound - 1)
    return (1.0 - exact_coverage(law, bound)) / 2.0


def _error_row(
    level: LevelTrials, kind: int, keys: Sequence[int], confidence: Fraction, *, only: bool, size: str
) -> ErrorRow:
    cells = level.kinds[kind]
    names = [query.table for query in level.part.queries]
    query = level.part.queries[names.index(P_QUERIES[0 if only else 2]) if len(names) > 1 else 0]
    expected = accuracy_of_sum(query.law, cells.draws, confidence)
    zcdp, pure = (
        accuracy_of_sum(group_noise_law(definition, level.stable, query.cost), cells.draws, confidence).margin
        for definition in (Definition.ZCDP, Definition.PURE)
    )
    noise, published = level.noise.of(keys), level.published.of(keys)
    return ErrorRow(
        table=cells.table,
        cell=cells.cell,
        region_type=level.level.region_type,
        iteration_level=level.level.level,
        detailed_only=only,
        stat_level=cells.stat_level,
        size=size,
        draws_a_cell=cells.draws,
        stability=level.stable,
        expected_moe=expected.margin,
        expected_moe_exact=expected.margin_exact,
        expected_moe_zcdp=zcdp,
        expected_moe_puredp=pure,
        noise_cells=noise.number,
        noise_moe=noise.margin(confidence),
        noise_coverage=noise.share_within(expected.margin_exact),
        expected_coverage=chance_within(query.law, cells.draws, expected.margin_exact),
        noise_bias=noise.mean,
        published_cells=published.number,
        published_moe=published.margin(confidence),
        published_bias=published.mean,
    )


# Two standard errors of the 95% quantile of the absolute value of n Gaussian draws, relative to that quantile,
# are 2 sqrt(0.95 * 0.05) / (1.96 * 2 phi(1.96)) / sqrt(n).
SPREAD: Final = 1.903
_FEWEST: Final = 200
_PLACES: Final = {"detailed": "nation, state", "coarse": "below states"}


def draw_report(rows: Sequence[ErrorRow], shares: Sequence[ShareRow], path: Path, title: str) -> None:
    """Draw experimental against expected margins by level, and the tables that groups get by true size."""
    chosen = frequent_rows(rows)
    bars = _bars(shares)
    height = 0.24 * max(len({level_of(row).label for row in chosen}) * 1.25, len(bars)) + 2.4
    figure = Figure(figsize=(13, height), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_margins(left, chosen)
    _draw_shares(right, bars)
    save_figure(path, figure, title)


def frequent_rows(rows: Sequence[ErrorRow]) -> list[ErrorRow]:
    """Rows of all sizes with enough cells for a quantile."""
    return [row for row in rows if row.size == ALL_SIZES and row.noise_cells >= _FEWEST]


def shares_figure(shares: Sequence[ShareRow]) -> Figure:
    """The tables that groups get, by place and true size."""
    bars = _bars(shares)
    figure, axes = one_panel(9, 0.24 * len(bars) + 1.6)
    _draw_shares(axes, bars)
    axes.set_title("")
    legend_below(figure, axes, columns=5)
    return figure


def draw_margins(axes: Axes, rows: Sequence[ErrorRow]) -> None:
    """Experimental against exact margins by level, a dot for every kind of cells."""
    labels = list(dict.fromkeys(level_of(row).label for row in rows))
    tables = sorted({_family(row) for row in rows})
    for number, family in enumerate(tables):
        members = [row for row in rows if _family(row) == family]
        offset = (number - (len(tables) - 1) / 2) * 0.7 / max(1, len(tables))
        axes.errorbar(
            [row.noise_moe / row.expected_moe_exact for row in members],
            [labels.index(level_of(row).label) + offset for row in members],
            # a margin is a whole number, so half a person belongs to its uncertainty
            xerr=[SPREAD / np.sqrt(row.noise_cells) + 0.5 / row.expected_moe_exact for row in members],
            fmt="o",
            markersize=3.5,
            linewidth=0.8,
            alpha=0.7,
            color=colormaps["Dark2"](number % 8),
            label=family,
        )
    axes.axvline(1.0, color="#555555", linewidth=1)
    axes.set_xlabel("noise: experimental / exact margin of error (bars: two standard errors and rounding)")
    axes.set_title("Does the noise have the size that was promised?", fontsize=10)
    label_rows(axes, labels)
    if tables:
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=4)


def _family(row: ErrorRow) -> str:
    return f"{row.table}, detailed only" if row.detailed_only and row.table == "T01001" else row.table


def _bars(shares: Sequence[ShareRow]) -> dict[str, dict[str, float]]:
    """Number of groups by table, for every class of tables, granularity and true size."""
    groups_of: dict[str, dict[str, float]] = {}
    ordered = sorted(
        shares,
        key=lambda row: (
            row.measured,
            level_of(row).granularity != "detailed",
            len(row.size),
            row.size,
        ),
    )
    classes = {row.measured for row in shares}
    for row in ordered:
        place = _PLACES[level_of(row).granularity]
        size = " to ".join(f"{int(number):,}" for number in row.size.rstrip("+").split("-"))
        name = f"{row.measured}, {place}, {size}" if len(classes) > 1 else f"{place}, {size}"
        bar = groups_of.setdefault(name, {})
        bar[row.table] = bar.get(row.table, 0.0) + row.share * row.groups
    return groups_of


def _draw_shares(axes: Axes, bars: dict[str, dict[str, float]]) -> None:
    tables = sorted(
        {table for bar in bars.values() for table in bar}, key=lambda name: (name != NO_TABLE, name)
    )
    totals = np.array([sum(bar.values()) for bar in bars.values()])
    reached = np.zeros(len(bars))
    for number, table in enumerate(tables):
        parts = np.array([bar.get(table, 0.0) for bar in bars.values()]) / np.maximum(totals, 1)
        color = "#dddddd" if table == NO_TABLE else colormaps["viridis"](0.85 - 0.85 * number / len(tables))
        axes.barh(range(len(bars)), parts, left=reached, color=color, height=0.75, label=table)
        reached += parts
    for place, total in enumerate(totals.tolist()):
        axes.text(1.01, place, f"{total:,.0f}", va="center", fontsize=7)
    axes.set_xlim(0, 1.22)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel("share of groups; on the right their number")
    axes.set_axisbelow(True)
    axes.set_title("The most detailed table of groups, by place and true size", fontsize=10)
    label_rows(axes, list(bars))
    if tables:
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=5)


def group_trials(product: Product, config: str, settings: Mapping[str, str]) -> Trials:
    """Read and plan a configuration."""
    chosen = LOADERS[product](config, settings)
    plan = plan_release(chosen, read_universe(chosen.universe))
    return chosen, plan, partial(_draw, chosen, plan)


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
    return frames, partial(draw_report, errors, shares), _lines(errors, zeros)


def _lines(errors: Sequence[ErrorRow], zeros: Sequence[ZeroRow]) -> list[str]:
    """One line a level and class of tables, for its most frequent measured cells."""
    lines = [
        f"{'level':<32}{'table':<8}{'cells':<20}{'number':>10}{'expected moe':>13}{'experimental':>13}"
        f"{'coverage':>9}{'bias':>7}"
    ]
    best: dict[tuple[str, int, str, bool], ErrorRow] = {}  # the kind of one-draw cells with the most errors
    for row in errors:
        only = row.detailed_only and row.table == "T01001"
        key = row.region_type, row.iteration_level, row.table[:3], only
        single = row.size == ALL_SIZES and row.draws_a_cell == 1
        if single and (key not in best or row.noise_cells > best[key].noise_cells):
            best[key] = row
    for row in best.values():
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
