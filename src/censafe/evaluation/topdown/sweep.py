"""CONFIDENTIAL. TopDown at several budgets, beside simple random samples: every table of Petti & Flaxman, on any population."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from censafe.evaluation.areas.areas import ComparedAreas, level_areas
from censafe.evaluation.counts.accuracy import POOLED, accuracy
from censafe.evaluation.counts.bias import bias_by_homogeneity, residuals_by_homogeneity
from censafe.evaluation.counts.cells import MatchedCells, match_runs
from censafe.evaluation.counts.comparators import matching_rates
from censafe.evaluation.counts.frames import LossMode, stacked
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.loss.epl import epl_curve, epl_summary
from censafe.evaluation.loss.residuals import ZeroCells, pooled_residuals
from censafe.evaluation.topdown.noise_alone import DELTA, noise_of_level
from censafe.evaluation.topdown.population import EvaluatedPopulation, characteristics
from censafe.model import Definition
from censafe.privacy.loss.conversions import tight_epsilon

RATES: Final = (5, 10, 15, 20, 30, 40, 50, 60, 75, 85, 90, 95)
_MODES: Final[tuple[tuple[LossMode, ZeroCells], ...]] = (("as_published", "either"), ("corrected", "all"))
_METRICS: Final = (
    "count_median", "count_pct95", "median_ae", "mean_ae", "pct95_ae", "max_ae", "rmse", "me", "n_cells", "n_zero_zero",
)  # fmt: skip
_GROUPS: Final = 50


@dataclass(frozen=True)
class Setting:
    """One budget, or one sampling rate."""

    method: str
    value: float
    loss: Fraction | None = None


@dataclass(eq=False)
class SweepFrames:
    """Frames of a sweep that grow setting by setting."""

    errors: list[dict[str, Any]] = field(default_factory=list)
    curves: list[pa.Table] = field(default_factory=list)
    bias: list[pa.Table] = field(default_factory=list)
    violins: list[pa.Table] = field(default_factory=list)

    def tables(self) -> dict[str, pa.Table]:
        """The frames by the names of their files."""
        found = {"full_table": pa.Table.from_pylist(self.errors)}
        for name, parts in (("epl_curves", self.curves), ("bias", self.bias), ("violins", self.violins)):
            if parts:
                found[name] = stacked(parts)
        return found


def loss_of_epsilon(definition: Definition, epsilon: Fraction) -> Fraction:
    """The loss that a configuration of a definition takes for an epsilon.

    Under zCDP the largest rho, in units of a millionth part of itself, of which the tight conversion gives at most this epsilon
    at delta 1e-10.

    Example:
        >>> loss_of_epsilon(Definition.PURE, Fraction(1, 4)), float(round(loss_of_epsilon(Definition.ZCDP, Fraction(1)), 5))
        (Fraction(1, 4), 0.01324)
    """
    if definition is Definition.PURE:
        return epsilon
    low, high = Fraction(0), Fraction(1)
    while tight_epsilon(high, DELTA) <= epsilon:
        high *= 2
    while high - low > high / 10**6:
        middle = (low + high) / 2
        low, high = (middle, high) if tight_epsilon(middle, DELTA) <= epsilon else (low, middle)
    return low.limit_denominator(10**9)


def measure_setting(
    frames: SweepFrames,
    population: EvaluatedPopulation,
    setting: Setting,
    runs: Sequence[PublishedRun],
    *,
    detail: bool,
    seed: int,
) -> None:
    """Add the rows of one setting to the frames."""
    histogram = population.main
    pair = population.pairs[histogram.name].with_runs(runs)
    named = characteristics(histogram.schema)
    stats = {"TC": "total", "SC": named[-1].query}
    for level in population.levels:
        areas = level_areas(pair.spine, level)
        for stat, query in stats.items():
            cells = match_runs(pair, areas, query)
            for mode, zeros in _MODES:
                row = _row(setting, stat, level, cells, mode, zeros, seed)
                frames.errors.append(row | _noise(population, setting, level, query, row))
    if setting.method == "topdown":
        _bias(frames, population, pair, setting, detail=detail)
    if detail or setting.method == "srs":
        cells = match_runs(pair, level_areas(pair.spine, population.levels[-1]), stats["SC"])
        curve = epl_curve(pooled_residuals(cells, zeros="either"))
        frames.curves.append(_labelled(curve, setting))


def _row(
    setting: Setting,
    stat: str,
    level: str,
    cells: Sequence[MatchedCells],
    mode: LossMode,
    zeros: ZeroCells,
    seed: int,
) -> dict[str, Any]:
    long = accuracy(cells, mode=mode).to_pylist()
    several = len(cells) > 1
    found = {row["metric"]: row for row in long if not several or row["run_id"] == POOLED}
    row: dict[str, Any] = {
        "method": setting.method,
        "stat": stat,
        "level": level,
        "mode": mode,
        "epsilon": setting.value if setting.method == "topdown" else None,
        "sample_pct": setting.value if setting.method == "srs" else None,
        "loss": None if setting.loss is None else float(setting.loss),
        "n_areas": len(cells[0].areas),
        "n_runs": len(cells),
        **{name: float(found[name]["value"]) for name in _METRICS},
        "lo": found["mean_ae"]["lo"],
        "hi": found["mean_ae"]["hi"],
    }
    summary = epl_summary(
        pooled_residuals(cells, zeros=zeros, groups=_GROUPS, seed=seed),
        mode=mode,
        replicates=50,
        seed=seed,
    ).to_pylist()
    own = next(one for one in summary if one["reported"])
    return row | {
        "epl": own["value"],
        "epl_estimator": f"{own['estimator']} {own['statistic']}",
        "epl_lo": own["lo"],
        "epl_hi": own["hi"],
        "epl_reason": own["reason"],
    }


def _noise(
    population: EvaluatedPopulation, setting: Setting, level: str, query: str, row: dict[str, Any]
) -> dict[str, float | None]:
    """What the row's estimator of empirical loss says of the level's own noise, before anything is fitted."""
    found: Mapping[tuple[str, str], Mapping[str, float]] = {}
    if setting.loss is not None and not math.isinf(row["epl"]):
        found = noise_of_level(population.config, setting.loss, level, query, int(row["n_cells"]))
    estimator, statistic = str(row["epl_estimator"]).split(" ")
    own = found.get((estimator, statistic), {})
    return {"noise_loss": own.get("truth"), "noise_epl": own.get("mean")}


def _bias(
    frames: SweepFrames, population: EvaluatedPopulation, pair: Pair, setting: Setting, *, detail: bool
) -> None:
    attributes = stratifying(population)
    if not attributes:
        return
    for level in population.levels[1:]:
        areas: ComparedAreas = level_areas(pair.spine, level)
        for mode, _ in _MODES:
            frames.bias.append(_labelled(bias_by_homogeneity(pair, areas, attributes, mode=mode), setting))
        if detail:
            shown = residuals_by_homogeneity(pair, areas, attributes, mode="as_published")
            frames.violins.append(_labelled(shown, setting))


def stratifying(population: EvaluatedPopulation) -> tuple[str, ...]:
    """Attributes whose empty cells the homogeneity index counts; none where there is only one."""
    names = characteristics(population.main.schema)[-1].query.split(" * ")
    return tuple(names) if len(names) > 1 else ()


def _labelled(frame: pa.Table, setting: Setting) -> pa.Table:
    size = frame.num_rows
    frame = frame.append_column("method", pa.array([setting.method] * size, pa.string()))
    return frame.append_column("setting", pa.array([setting.value] * size, pa.float64()))


def table_one(full: pa.Table, level: str) -> pa.Table:
    """The sampling rate that is most like each budget, by the stratified counts of a level; columns as in the study."""
    rows = [
        row
        for row in full.to_pylist()
        if (row["stat"], row["level"], row["mode"]) == ("SC", level, "as_published")
    ]
    frames = []
    for method, name in (("topdown", "epsilon"), ("srs", "sample_pct")):
        chosen = [row for row in rows if row["method"] == method]
        frames.append(
            pa.table(
                {
                    name: [row[name] for row in chosen],
                    # the printed figure is a whole number of persons; half of one stands for 0
                    "median_ae": [max(row["median_ae"], 0.5) for row in chosen],
                    "epl": [row["epl"] for row in chosen],
                }
            )
        )
    return matching_rates(*frames)
