"""CONFIDENTIAL. ``evaluate sweep``: runs at every budget, frames, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Final

import pyarrow as pa

from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.evaluated import TopdownEvaluation
from censafe.evaluation.findings import Finding, Sweep, findings
from censafe.evaluation.histograms.sampling import sample_runs
from censafe.evaluation.noise_alone import DELTA, Budget
from censafe.evaluation.noise_evaluation import evaluate_noise, keep_configuration
from censafe.evaluation.outputs import write_codebook, write_document, write_frame
from censafe.evaluation.reporting import write_report
from censafe.evaluation.summary_filling import FilledTable
from censafe.evaluation.summary_topdown import budget_sheet
from censafe.evaluation.topdown_evaluation import described
from censafe.evaluation.topdown_population import Population
from censafe.evaluation.topdown_runs import RunRequest, SourceOf, read_runs, run_all
from censafe.evaluation.topdown_sweep import (
    RATES,
    Setting,
    SweepFrames,
    loss_of_epsilon,
    measure_setting,
    table_one,
)
from censafe.evaluation.workbook import write_workbook
from censafe.model import Definition
from censafe.privacy.conversions import tight_epsilon
from censafe.products.options import ReadOptions
from censafe.products.topdown.plan import exact_levels

__all__ = ["evaluate_sweep"]

_DETAILED: Final = (0.5, 1.0, 2.0)
_MANY: Final = 100
_SHEETS: Final = ("full_table", "table_one", "findings")


def evaluate_sweep(
    source: SourceOf,
    out: Path,
    reading: ReadOptions,
    *,
    epsilons: Sequence[Fraction],
    losses: Sequence[Fraction],
    runs: int,
    seed: int,
    workers: int,
    public: bool = False,
) -> TopdownEvaluation:
    """Run TopDown several times at every budget, beside simple random samples, and compare all with the truth.

    Args:
        source: configuration and records.
        out: a new or empty folder, or the folder of the same sweep, to which runs and budgets are added.
        reading: who is told of stages.
        epsilons: budgets of the whole run; under zCDP by the tight conversion at delta 1e-10.
        losses: further budgets in the unit of the configuration's definition.
        runs: independent runs of every budget.
        seed: of the test keys and samples.
        workers: processes.
        public: whether to write only what the noise laws imply, without any run.

    Raises:
        UsageError: the folder holds something else.
        InputError: the configuration or the records break a rule.
    """
    population = source.open(reading)
    settings = _settings(population, epsilons, losses)
    if public:
        budgets = [Budget(one.loss or Fraction(0), one.value) for one in settings]
        return evaluate_noise(population.config, population.areas, out, reading, budgets)
    identity = {
        "kind": "topdown sweep",
        "configuration": population.config.digest,
        "input": population.commitment,
        "seed": str(seed),
    }
    with evaluation_folder(out, identity) as folder:
        requests = {one: _requests(one, runs, seed) for one in settings}
        wanted = [request for group in requests.values() for request in group]
        run_all(population, source, wanted, folder.measurements, workers=workers, observer=reading.observer)
        frames, sheets = _measure(population, requests, folder.measurements, reading, runs=runs, seed=seed)
        tables = frames.tables()
        middle = _middle(population)
        tables["table_one"] = table_one(tables["full_table"], middle)
        found = findings(_sweep(population, tables, middle))
        tables["findings"] = pa.Table.from_pylist([asdict(one) for one in found])
        document = {"kind": "sweep", "runs": runs, "seed": seed, "middle": middle, **described(population)}
        document["epsilons"] = [one.value for one in settings]
        document["losses"] = [float(one.loss or 0) for one in settings]
        document |= keep_configuration(out, population.config, [one.loss or Fraction(0) for one in settings])
        with reading.observer.stage("write"):
            written = {write_frame(out, name, frame): frame.column_names for name, frame in tables.items()}
            write_document(out, document)
            files = [
                *written,
                write_codebook(out, written),
                write_workbook(out, {name: tables[name] for name in _SHEETS}, sheets),
            ]
        with reading.observer.stage("report"):
            files += write_report(out)
    return TopdownEvaluation(tuple(_summary(found, runs)), tuple(out / name for name in files))


def _settings(
    population: Population, epsilons: Sequence[Fraction], losses: Sequence[Fraction]
) -> list[Setting]:
    definition = population.config.definition
    found = {
        loss_of_epsilon(definition, epsilon): Setting(
            "topdown", float(epsilon), loss_of_epsilon(definition, epsilon)
        )
        for epsilon in epsilons
    }
    for loss in losses:
        value = float(loss) if definition is Definition.PURE else tight_epsilon(loss, DELTA)
        found.setdefault(loss, Setting("topdown", round(value, 4), loss))
    return sorted(found.values(), key=lambda one: one.value)


def _requests(setting: Setting, runs: int, seed: int) -> tuple[RunRequest, ...]:
    return tuple(RunRequest(setting.loss or Fraction(0), run + 1, seed) for run in range(runs))


def _measure(
    population: Population,
    requests: dict[Setting, tuple[RunRequest, ...]],
    folder: Path,
    reading: ReadOptions,
    *,
    runs: int,
    seed: int,
) -> tuple[SweepFrames, list[FilledTable]]:
    """Frames of all settings, and the Bureau's tables of every budget on a sheet of its own."""
    frames = SweepFrames()
    sheets: list[FilledTable] = []
    histogram = population.main
    pair = population.pairs[histogram.name]
    detailed = _detailed([one.value for one in requests])
    for setting, group in requests.items():
        with reading.observer.stage(f"compare epsilon {setting.value:g}"):
            published = read_runs(pair, histogram.name, group, folder)
            measure_setting(
                frames, population, setting, published, detail=setting.value in detailed, seed=seed
            )
            sheets += budget_sheet(population, published, f"epsilon {setting.value:g}")
    for rate in RATES:
        with reading.observer.stage("compare samples"):
            sampled = sample_runs(pair, Fraction(rate, 100), replicates=runs, seed=seed + rate)
            measure_setting(frames, population, Setting("srs", float(rate)), sampled, detail=False, seed=seed)
    return frames, sheets


def _detailed(epsilons: Sequence[float]) -> tuple[float, ...]:
    """Three budgets for the curves and violins: those of the study, or those in the middle."""
    if set(_DETAILED) <= set(epsilons):
        return _DETAILED
    first = max(0, (len(epsilons) - 3) // 2)
    return tuple(epsilons[first : first + 3])


def _middle(population: Population) -> str:
    """The level that stands for counties: the highest one of a hundred geounits that is not the lowest."""
    spine = population.pairs[population.main.name].spine
    inner = spine.levels[1:-1]
    many = [level.name for level in inner if level.nodes >= _MANY]
    return many[0] if many else (inner[-1] if inner else spine.leaf).name


def _sweep(population: Population, tables: dict[str, pa.Table], middle: str) -> Sweep:
    declared = exact_levels(population.main)
    spine = population.pairs[population.main.name].spine
    return Sweep(
        full=tables["full_table"].to_pylist(),
        bias=tables["bias"].to_pylist() if "bias" in tables else [],
        levels=population.levels,
        exact=[level for level in population.levels if level in declared],
        middle=middle,
        children=spine.leaf.nodes / spine.levels[spine.names.index(middle)].nodes,
    )


def _summary(found: Sequence[Finding], runs: int) -> list[str]:
    lines = [
        f"CONFIDENTIAL. What Petti & Flaxman found in the 1940 census, looked for here ({runs} runs a budget):"
    ]
    for one in found:
        lines += [
            f"  {one.verdict:<7}{one.finding}",
            f"       here: {one.measured}",
            f"       study: {one.published}",
        ]
    return lines
