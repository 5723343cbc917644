"""CONFIDENTIAL. ``evaluate sweep``: runs at every budget, frames, and a page."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from censafe.evaluation.areas import level_areas
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.accuracy import POOLED, accuracy, bias_by_homogeneity, residuals_by_homogeneity
from censafe.evaluation.counts.cells import match_runs
from censafe.evaluation.counts.comparators import matching_rates, sample_runs
from censafe.evaluation.counts.frames import LossMode, stacked
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.loss import ZeroCells, epl_curve, epl_summary, pooled_residuals
from censafe.evaluation.outputs import Evaluated
from censafe.evaluation.pages.page import Rows
from censafe.evaluation.pages.registry import write_evaluation
from censafe.evaluation.pairs.inputs import read_published
from censafe.evaluation.shipped import shipped_document, shipped_rows
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.sheets import budget_sheet
from censafe.evaluation.topdown.evaluation import described
from censafe.evaluation.topdown.noise_alone import (
    DELTA,
    Budget,
    budget_of,
    evaluate_noise,
    keep_configuration,
    noise_of_level,
)
from censafe.evaluation.topdown.runs import (
    EvaluatedPopulation,
    RunSeries,
    SourceOf,
    characteristics,
    read_runs,
    run_all,
)
from censafe.model import Definition
from censafe.privacy.loss.conversions import tight_epsilon
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import require_free
from censafe.products.topdown.plan import exact_levels

_FAR: Final = 0.6
_KEY: Final = ("method", "stat", "level", "metric", "index")


@dataclass(frozen=True, eq=False)
class Sweep:
    """What the statements are looked for in.

    Args:
        full: rows of the full table.
        bias: rows of the bias by homogeneity.
        children: mean number of lowest geounits in a geounit of that level; NaN where it is not known.
    """

    full: Rows
    bias: Rows
    levels: Sequence[str]
    exact: Sequence[str]
    middle: str
    children: float = math.nan

    def value(self, stat: str, level: str, metric: str, mode: LossMode = "corrected") -> dict[float, float]:
        """A metric of TopDown by epsilon, all answers of the domain counted; as_published by the arithmetic of the study."""
        values = {}
        for row in self.full:
            key = row["method"], row["mode"], row["stat"], row["level"]
            if key == ("topdown", mode, stat, level):
                values[row["epsilon"]] = math.nan if row[metric] is None else float(row[metric])
        return dict(sorted(values.items()))


def findings(sweep: Sweep) -> list[dict[str, str]]:
    """Every statement of the study with the result of this sweep: finding, published, measured, verdict, why."""
    checks: Mapping[str, Callable[[Sweep], _Check]] = {
        "inverse": _inverse, "county-district": _county_district, "alike": _alike, "exact": _exact,
        "far-below": _far_below, "sign": _sign, "shrinking": _shrinking,
    }  # fmt: skip
    texts = shipped_document("findings.toml")
    statements = []
    for name, check in checks.items():
        text = texts[name]
        measured, verdict, numbers = check(sweep)
        published = text["published"].format(**numbers)
        statements.append(
            {"finding": text["finding"], "published": published, "measured": measured, "verdict": verdict, "why": text["why"]}
        )  # fmt: skip
    return statements


_Check = tuple[str, str, Mapping[str, float]]
"""What was measured, the verdict, and numbers of the study to compare it with."""


@functools.cache
def published_values(stat: str, level: str, metric: str) -> dict[float, float]:
    """Published values of the study by epsilon.

    Example:
        >>> published_values("TC", "County", "median_ae")[1.0]
        24.0
    """
    key = ("topdown", stat, level, metric, "")
    return {
        float(row["setting"]): float(row["value"])
        for row in shipped_rows("petti_flaxman.csv")
        if row["setting"] and tuple(row[name] for name in _KEY) == key
    }


def _inverse(sweep: Sweep) -> _Check:
    parts, slopes = [], []
    for stat, level in (("TC", sweep.middle), ("TC", sweep.levels[-1]), ("SC", sweep.levels[-1])):
        slope = _slope({k: v for k, v in sweep.value(stat, level, "mean_ae").items() if k >= 0.5})
        parts.append(f"{stat} {level} {slope:.2f}")
        slopes.append(slope)
    known = [slope for slope in slopes if math.isfinite(slope)]
    good = bool(known) and all(-1.25 <= slope <= -0.75 for slope in known)
    places = {"county": ("TC", "County"), "district": ("TC", "Enumdist"), "stratified": ("SC", "Enumdist")}
    published = {
        name: _slope({k: v for k, v in published_values(*place, "median_ae").items() if k >= 0.5})
        for name, place in places.items()
    }
    measured = f"slope of log mean error on log epsilon: {', '.join(parts)}"
    return measured, _verdict(good, known), published


def _slope(values: Mapping[float, float]) -> float:
    """Slope of log value on log key; NaN with fewer than two values above 0."""
    points = [(math.log(key), math.log(value)) for key, value in values.items() if value > 0]
    if len(points) < 2:
        return math.nan
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


def _county_district(sweep: Sweep) -> _Check:
    wide, low = (sweep.value("TC", level, "median_ae") for level in (sweep.middle, sweep.levels[-1]))
    ratio = _mean_ratio(wide, low)
    own, other = (published_values("TC", level, "median_ae") for level in ("County", "Enumdist"))
    measured = f"{sweep.middle} to {sweep.levels[-1]}: {ratio:.2f}, with {sweep.children:.1f} {sweep.levels[-1]} in a {sweep.middle}"
    return measured, _verdict(1.2 <= ratio <= 2.2, [ratio]), {"ratio": _mean_ratio(own, other)}


def _mean_ratio(top: Mapping[float, float], bottom: Mapping[float, float]) -> float:
    ratios = [top[key] / bottom[key] for key in top if bottom.get(key, 0) > 0 and top[key] > 0]
    return float(np.mean(ratios)) if ratios else math.nan


def _alike(sweep: Sweep) -> _Check:
    by_level = {
        level: sweep.value("SC", level, "median_ae", "as_published")
        for level in sweep.levels
        if level != sweep.levels[0]
    }
    spread = []
    for epsilon in next(iter(by_level.values())):
        values = [max(values[epsilon], 0.5) for values in by_level.values()]
        spread.append(max(values) / min(values))
    largest = max(spread) if spread else math.nan
    first = min(next(iter(by_level.values()), {0.0: 0.0}))
    medians = ", ".join(f"{level} {values[first]:.0f}" for level, values in by_level.items())
    measured = f"median error at epsilon {first:g}: {medians}; largest ratio of two levels {largest:.1f}"
    return measured, _verdict(largest <= 2.0, [largest]), {}


def _exact(sweep: Sweep) -> _Check:
    errors = [max(sweep.value("TC", level, "max_ae").values(), default=math.nan) for level in sweep.exact]
    measured = f"largest error of totals of {', '.join(sweep.exact) or 'no level'}: {max(errors, default=math.nan):g}"
    return measured, _verdict(bool(errors) and max(errors) == 0, errors), {}


def _far_below(sweep: Sweep) -> _Check:
    """Far below: at most three fifths of epsilon; the study's own largest share is 0.56, at epsilon 0.25."""
    parts: list[str] = []
    shares: dict[float, float] = {}
    for stat, level in (("TC", sweep.middle), ("TC", sweep.levels[-1]), ("SC", sweep.levels[-1])):
        values = {
            key: loss
            for key, loss in sweep.value(stat, level, "epl", "as_published").items()
            if math.isfinite(loss)
        }
        for key, value in values.items():
            shares[key] = max(shares.get(key, 0.0), value / key)
        if values:
            stated = {
                key: values[key] for key in sorted({min(values), *(k for k in values if k in (1.0, 8.0))})
            }
            numbers = ", ".join(f"{value:.3f} at {key:g}" for key, value in stated.items())
            parts.append(f"{stat} {level} {numbers}")
    known = published_values("SC", "Enumdist", "epl_max_abs")
    above = [key for key, share in shares.items() if share > _FAR]
    from_here = [key for key in sorted(shares) if not above or key > max(above)]
    verdict = "open" if not shares else "yes" if not above else "partly" if from_here else "no"
    start = f"; holds from epsilon {from_here[0]:g} on" if verdict == "partly" else ""
    published = {"quarter": known[0.25], "one": known[1.0], "eight": known[8.0]}
    return f"{'; '.join(parts) or 'none'}{start}", verdict, published


def _ends(sweep: Sweep) -> dict[float, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """By budget the most diverse and the most homogeneous class of at least ten areas, at the lowest level."""
    ends = {}
    rows = [row for row in sweep.bias if row["level"] == sweep.levels[-1] and row["mode"] == "as_published"]
    for setting in sorted({row["setting"] for row in rows}):
        own = [row for row in rows if row["setting"] == setting and row["n_areas"] >= 10]
        own = sorted((row for row in own if row["index"] < row["cells"]), key=lambda row: row["index"])
        if len(own) >= 2:
            ends[setting] = (own[0], own[-1])
    return ends


def _sign(sweep: Sweep) -> _Check:
    ends = _ends(sweep)
    good = [low["bias"] < 0 < high["bias"] for low, high in ends.values()]
    first = next(iter(ends), None)
    measured = "no two classes of ten areas"
    if first is not None:
        low, high = ends[first]
        measured = (
            f"{sweep.levels[-1]} at epsilon {first:g}: {low['bias']:.1f} (+-{2 * low['se']:.1f}) at index {low['index']}, "
            f"{high['bias']:.1f} (+-{2 * high['se']:.1f}) at index {high['index']}"
        )
    return measured, _verdict(all(good), good), {}


def _shrinking(sweep: Sweep) -> _Check:
    ends = _ends(sweep)
    gaps = {key: high["bias"] - low["bias"] for key, (low, high) in ends.items()}
    values = list(gaps.values())
    good = len(values) > 1 and values[-1] < values[0] and _slope(gaps) < 0
    by_budget = ", ".join(f"{value:.1f} ({key:g})" for key, value in gaps.items())
    measured = f"homogeneous less diverse: {by_budget or 'no two classes of ten areas'}"
    return measured, _verdict(good, values), {}


def _verdict(good: bool, known: Sequence[float]) -> str:
    if not known or any(math.isnan(value) for value in known):
        return "open"
    return "yes" if good else "no"


RATES: Final = (5, 10, 15, 20, 30, 40, 50, 60, 75, 85, 90, 95)
_MODES: Final[tuple[tuple[LossMode, ZeroCells], ...]] = (("as_published", "either"), ("corrected", "all"))
_METRICS: Final = (
    "count_median", "count_pct95", "median_ae", "mean_ae", "pct95_ae", "max_ae", "rmse", "me", "n_cells", "n_zero_zero",
)  # fmt: skip
_GROUPS: Final = 50


_Parts = dict[str, list[Any]]
"""Parts of the frames of a sweep by the names of their files: rows of the full table, and tables of the others."""


def loss_of_epsilon(definition: Definition, epsilon: Fraction) -> Fraction:
    """The loss that a configuration of a definition takes for an epsilon.

    Under zCDP the largest rho, in units of a millionth part of itself, of which the tight conversion is at most this epsilon
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
    frames: _Parts,
    population: EvaluatedPopulation,
    setting: Budget | float,
    runs: Sequence[PublishedRun],
    *,
    detail: bool,
    seed: int,
) -> None:
    """Add the rows of one budget, or of one sampling rate in percent, to the frames."""
    budget = setting if isinstance(setting, Budget) else None
    histogram = population.main
    pair = population.pairs[histogram.name].with_runs(runs)
    named = characteristics(histogram.schema)
    stats = {"TC": "total", "SC": named[-1].query}
    for level in population.levels:
        areas = level_areas(pair.spine, level)
        for stat, query in stats.items():
            cells = match_runs(pair, areas, query)
            for mode, zeros in _MODES:
                long = accuracy(cells, mode=mode).to_pylist()
                residuals = pooled_residuals(cells, zeros=zeros, groups=_GROUPS, seed=seed)
                summary = epl_summary(residuals, mode=mode, replicates=50, seed=seed)
                own = next(one for one in summary.to_pylist() if one["reported"])
                metrics = {row["metric"]: row for row in long if len(cells) == 1 or row["run_id"] == POOLED}
                # the same estimator applied to the level's own noise, before anything is fitted
                noise: Mapping[str, float] = {}
                if budget is not None and not math.isinf(own["value"]):
                    number = int(metrics["n_cells"]["value"])
                    estimates = noise_of_level(population.config, budget.loss, level, query, number)
                    noise = estimates.get((own["estimator"], own["statistic"]), {})
                frames["full_table"].append(
                    {
                        "method": "srs" if budget is None else "topdown",
                        "stat": stat,
                        "level": level,
                        "mode": mode,
                        "epsilon": None if budget is None else budget.epsilon,
                        "sample_pct": setting if budget is None else None,
                        "loss": None if budget is None else float(budget.loss),
                        "n_areas": len(cells[0].areas),
                        "n_runs": len(cells),
                        **{name: float(metrics[name]["value"]) for name in _METRICS},
                        "lo": metrics["mean_ae"]["lo"],
                        "hi": metrics["mean_ae"]["hi"],
                        "epl": own["value"],
                        "epl_estimator": f"{own['estimator']} {own['statistic']}",
                        "epl_lo": own["lo"],
                        "epl_hi": own["hi"],
                        "epl_reason": own["reason"],
                        "noise_loss": noise.get("truth"),
                        "noise_epl": noise.get("mean"),
                    }
                )
    if budget is not None:
        _bias(frames, population, pair, budget, detail=detail)
    if detail or budget is None:
        cells = match_runs(pair, level_areas(pair.spine, population.levels[-1]), stats["SC"])
        curve = epl_curve(pooled_residuals(cells, zeros="either"))
        frames["epl_curves"].append(_labeled(curve, setting))


def _bias(
    frames: _Parts, population: EvaluatedPopulation, pair: Pair, budget: Budget, *, detail: bool
) -> None:
    attributes = characteristics(population.main.schema)[-1].query.split(" * ")
    if len(attributes) < 2:  # no cells of several attributes, whose empty ones the index counts
        return
    for level in population.levels[1:]:
        areas = level_areas(pair.spine, level)
        for mode, _ in _MODES:
            frames["bias"].append(_labeled(bias_by_homogeneity(pair, areas, attributes, mode=mode), budget))
        if detail:
            residuals = residuals_by_homogeneity(pair, areas, attributes, mode="as_published")
            frames["violins"].append(_labeled(residuals, budget))


def _labeled(frame: pa.Table, setting: Budget | float) -> pa.Table:
    size = frame.num_rows
    method, value = ("topdown", setting.epsilon) if isinstance(setting, Budget) else ("srs", setting)
    frame = frame.append_column("method", pa.array([method] * size, pa.string()))
    return frame.append_column("setting", pa.array([value] * size, pa.float64()))


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


_DETAILED: Final = (
    0.5,
    1.0,
    2.0,
)  # budgets of curves and violins: those of the study, or else three in the middle
_MANY: Final = 100
_SHEETS: Final = ("full_table", "table_one", "findings")


def evaluate_sweep(
    source: SourceOf,
    out: Path,
    reading: ReadOptions,
    series: RunSeries,
    *,
    epsilons: Sequence[Fraction],
    losses: Sequence[Fraction],
    confidentiality: Confidentiality = Confidentiality.COMPARED,
) -> Evaluated:
    """Run TopDown several times at every budget, with simple random samples, and compare all with the truth."""
    population = source.open(reading)
    require_free(population.config, "a sweep over budgets")
    budgets = _budgets(population.config.definition, epsilons, losses)
    if confidentiality is Confidentiality.PUBLIC:
        return evaluate_noise(population.config, population.areas, out, reading, budgets)
    with evaluation_folder(
        out, population.identity("topdown sweep", series.seed), confidentiality=confidentiality
    ) as folder:
        requests = {one: series.requests(one.loss) for one in budgets}
        all_runs = [request for group in requests.values() for request in group]
        place, observer = folder.measurements, reading.observer
        run_all(population, source, all_runs, place, workers=series.workers, observer=observer)
        main = population.main.name
        read = {
            budget: partial(read_runs, population.pairs[main], main, group, place)
            for budget, group in requests.items()
        }
        return _compared(out, population, _Study(read, series.runs, series.seed, confidentiality), reading)


def evaluate_published_sweep(
    source: SourceOf,
    out: Path,
    reading: ReadOptions,
    *,
    published: Mapping[Fraction, Sequence[Path]],
    seed: int,
    confidentiality: Confidentiality = Confidentiality.COMPARED,
) -> Evaluated:
    """The same study on files that were published at several budgets, such as those of the 1940 demonstrations."""
    population = source.open(reading)
    require_free(population.config, "a sweep over budgets")
    definition = population.config.definition
    budgets = {one.loss: one for one in _budgets(definition, tuple(published), ())}
    read = {}
    for epsilon, paths in sorted(published.items()):
        budget = budgets[loss_of_epsilon(definition, epsilon)]
        runs = {f"{budget.epsilon:g}/{number}": path for number, path in enumerate(paths, 1)}
        pair = population.pairs[population.main.name]
        read[budget] = partial(read_published, population.config, population.main, pair, runs)
    names = ", ".join(f"{float(one):g}={path}" for one, paths in sorted(published.items()) for path in paths)
    identity = population.identity("topdown sweep of published files", seed) | {"published": names}
    with evaluation_folder(out, identity, confidentiality=confidentiality):
        study = _Study(
            read, max(len(paths) for paths in published.values()), seed, confidentiality, published=True
        )
        return _compared(out, population, study, reading)


@dataclass(frozen=True)
class _Study:
    """CONFIDENTIAL. Runs by budget, and how they are compared.

    Args:
        runs: of a budget, or of the budget of most runs; as many samples are drawn at each rate.
    """

    read: Mapping[Budget, Callable[[], Sequence[PublishedRun]]]
    runs: int
    seed: int
    confidentiality: Confidentiality
    published: bool = False


def _compared(out: Path, population: EvaluatedPopulation, study: _Study, reading: ReadOptions) -> Evaluated:
    """Measure all runs, write frames, workbook and page."""
    parts, sheets, counted = _measure(population, study, reading)
    tables = {"full_table": pa.Table.from_pylist(parts.pop("full_table"))}
    tables |= {name: stacked(frames) for name, frames in parts.items() if frames}
    middle = _middle(population)
    tables["table_one"] = table_one(tables["full_table"], middle)
    spine, declared = population.pairs[population.main.name].spine, exact_levels(population.main)
    statements = findings(
        Sweep(
            full=tables["full_table"].to_pylist(),
            bias=tables["bias"].to_pylist() if "bias" in tables else [],
            levels=population.levels,
            exact=[level for level in population.levels if level in declared],
            middle=middle,
            children=spine.leaf.nodes / spine.levels[spine.names.index(middle)].nodes,
        )
    )
    tables["findings"] = pa.Table.from_pylist(statements)
    losses = [one.loss for one in study.read]
    document = {
        "kind": "sweep",
        "runs": study.runs,
        "seed": study.seed,
        "middle": middle,
        **described(population),
        "standing": study.confidentiality.value,
        "epsilons": [one.epsilon for one in study.read],
        "losses": [float(one) for one in losses],
        "runs_of": counted,
        "published": study.published,
        **keep_configuration(out, population.config, losses),
    }
    return write_evaluation(
        out,
        tables,
        document,
        _summary(statements, study),
        reading,
        study.confidentiality,
        summary=sheets,
        sheets=_SHEETS,
    )


def _budgets(
    definition: Definition, epsilons: Sequence[Fraction], losses: Sequence[Fraction]
) -> list[Budget]:
    known = {loss_of_epsilon(definition, epsilon): float(epsilon) for epsilon in epsilons}
    for loss in losses:
        known.setdefault(loss, round(budget_of(definition, loss).epsilon, 4))
    return sorted((Budget(*one) for one in known.items()), key=lambda one: one.epsilon)


def _measure(
    population: EvaluatedPopulation, study: _Study, reading: ReadOptions
) -> tuple[_Parts, list[FilledTable], list[int]]:
    """Frames of all settings, the Bureau's tables of every budget on a sheet of its own, and the runs of every budget."""
    frames: _Parts = {"full_table": [], "epl_curves": [], "bias": [], "violins": []}
    sheets: list[FilledTable] = []
    counted: list[int] = []
    pair = population.pairs[population.main.name]
    epsilons = [one.epsilon for one in study.read]
    start = max(0, (len(epsilons) - 3) // 2)
    detailed = _DETAILED if set(_DETAILED) <= set(epsilons) else epsilons[start : start + 3]
    for budget, read in study.read.items():
        with reading.observer.stage(f"compare epsilon {budget.epsilon:g}"):
            runs = read()
            detail = budget.epsilon in detailed
            measure_setting(frames, population, budget, runs, detail=detail, seed=study.seed)
            sheets += budget_sheet(population, runs, f"epsilon {budget.epsilon:g}")
            counted.append(len(runs))
    for rate in RATES:
        with reading.observer.stage("compare samples"):
            sampled = sample_runs(pair, Fraction(rate, 100), replicates=study.runs, seed=study.seed + rate)
            measure_setting(frames, population, float(rate), sampled, detail=False, seed=study.seed)
    return frames, sheets, counted


def _middle(population: EvaluatedPopulation) -> str:
    """The level that stands for counties: the highest one of a hundred geounits that is not the lowest."""
    spine = population.pairs[population.main.name].spine
    inner = spine.levels[1:-1]
    many = [level.name for level in inner if level.nodes >= _MANY]
    return many[0] if many else (inner[-1] if inner else spine.leaf).name


def _summary(statements: Sequence[Mapping[str, str]], study: _Study) -> list[str]:
    lines = [
        f"{study.confidentiality.summary} What Petti & Flaxman found in the 1940 census, looked for here "
        f"({'at most ' if study.published else ''}{study.runs} run{'s' * (study.runs > 1)} a budget):"
    ]
    for statement in statements:
        lines += [
            f"  {statement['verdict']:<7}{statement['finding']}",
            f"       here: {statement['measured']}",
            f"       study: {statement['published']}",
        ]
    return lines
