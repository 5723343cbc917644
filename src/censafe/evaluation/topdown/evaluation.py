"""CONFIDENTIAL. ``evaluate topdown``: accuracy level by level, as frames and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from censafe.evaluation.areas.areas import ComparedAreas, level_areas
from censafe.evaluation.areas.files import read_named_lists
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.cells import match
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.outputs import (
    Evaluated,
    side_by_side,
    standing_of,
    wide_metrics,
    write_document,
    write_frame,
    write_frame_codebook,
)
from censafe.evaluation.pages.registry import write_report
from censafe.evaluation.pages.topdown import metric_values
from censafe.evaluation.pairs.inconsistencies import INCONSISTENCIES, inconsistencies
from censafe.evaluation.pairs.joined import count_contradictions
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.sheets import SHEETLESS, summarize, topdown_sources
from censafe.evaluation.topdown.accuracy import (
    METHODS,
    Compared,
    accuracy_frame,
    compare_methods,
    growth_frames,
)
from censafe.evaluation.topdown.bias import bias_frame, classes_of_areas
from censafe.evaluation.topdown.noise_alone import evaluate_noise, expected_errors, keep_configuration
from censafe.evaluation.topdown.population import EvaluatedPopulation, compared_characteristics
from censafe.evaluation.topdown.runs import RunRequest, RunSeries, SourceOf, read_runs, run_all
from censafe.evaluation.workbook import write_workbook
from censafe.model import CellQuery
from censafe.model.safe_text import file_name
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.files import named_areas
from censafe.products.topdown.labels import answer_words
from censafe.products.topdown.plan import plan_release

_MOST_BESIDE: Final = 20_000_000  # counts of one characteristic and level


def evaluate_topdown(
    source: SourceOf,
    out: Path,
    reading: ReadOptions,
    series: RunSeries,
    *,
    standing: Confidentiality = Confidentiality.COMPARED,
    areas: Sequence[Path] = (),
    names: Path | None = None,
) -> Evaluated:
    """Run TopDown with test keys and compare it, block-by-block noise and raw noisy counts with the truth."""
    population = source.open(reading)
    if names is not None:
        population = replace(population, names=named_areas(population.config, names))
        levels = population.pairs[population.main.name].spine.levels
        if words := population.names.remark({level.name: level.geounits for level in levels}):
            reading.observer.remark(words)
    if standing is Confidentiality.PUBLIC:
        return evaluate_noise(population.config, population.areas, out, reading)
    identity = {
        "kind": "topdown accuracy",
        "configuration": population.config.digest,
        "input": population.commitment,
        "seed": str(series.seed),
    }
    lists = read_named_lists(population.pairs[population.main.name].spine, areas)
    for words in dict.fromkeys(words for one in lists for words in one.remarks):
        reading.observer.remark(words)
    with evaluation_folder(out, identity, standing=standing) as folder:
        document = {"kind": "topdown", "runs": series.runs, "seed": series.seed, **described(population)}
        document |= {"standing": standing.value, "lists": [one.level for one in lists]}
        document |= keep_configuration(out, population.config)
        document["inconsistencies"] = {f"{one.number} {one.kind}": one.words for one in INCONSISTENCIES}
        requests = series.requests(plan_release(population.config).total)
        place = folder.measurements
        run_all(population, source, requests, place, workers=series.workers, observer=reading.observer)
        measured = _measure(population, requests, place, reading, lists)
        files = _write(out, document, measured, reading)
        with reading.observer.stage("report"):
            files += list(write_report(out))
    return Evaluated(tuple(_summary(out, document)), tuple(out / name for name in files))


def described(population: EvaluatedPopulation) -> dict[str, Any]:
    """What a page says about configuration and geography."""
    config = population.config
    plan = plan_release(config)
    return {
        "configuration": config.origin,
        "overrides": dict(config.overrides),
        "definition": config.definition.value,
        "symbol": config.definition.symbol,
        "loss": float(plan.total),
        "levels": list(population.levels),
        "geounits": population.areas,
        "histograms": {
            histogram.name: {one.query: one.words for one in compared_characteristics(histogram)}
            for histogram in config.histograms
        },
        "records": {histogram.schema.name: histogram.schema.record.value for histogram in config.histograms},
        "choices": {name: str(value).lower() for name, value in vars(config.choices).items()},
    }


@dataclass
class _Measured:
    """CONFIDENTIAL. What the evaluation writes."""

    frames: dict[str, pa.Table] = field(default_factory=dict)
    wide: dict[str, pa.Table] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    tables: Sequence[FilledTable] = ()


def _measure(
    population: EvaluatedPopulation,
    requests: Sequence[RunRequest],
    folder: Path,
    reading: ReadOptions,
    lists: Sequence[ComparedAreas],
) -> _Measured:
    """Compare the stored runs with the truth, histogram by histogram."""
    found = _Measured()
    accuracies, growths, sides = [], [], []
    every: list[Compared] = []
    read: dict[str, Sequence[PublishedRun]] = {}
    for histogram in population.config.histograms:
        runs = read_runs(population.pairs[histogram.name], histogram.name, requests, folder)
        read[histogram.name] = runs
        pair = population.pairs[histogram.name].with_runs(runs)
        with reading.observer.stage(f"compare {histogram.name}"):
            compared = compare_methods(
                population, histogram, runs, noise_runs=len(runs), seed=requests[0].seed, lists=lists
            )
            accuracies.append(accuracy_frame(compared))
            every += compared
            growths.append(growth_frames(pair, compared))
        sides += _side_by_side(population, histogram, pair, reading, lists, found)
    frames = found.frames
    frames["metrics_long"] = stacked(accuracies)
    frames["metrics_wide"] = wide_metrics(frames["metrics_long"])
    frames["topdown_vs_blocks"] = stacked([classes for classes, _ in growths])
    frames["slopes"] = stacked([slopes for _, slopes in growths])
    with reading.observer.stage("noise laws"):
        frames["expected"] = expected_errors(population.config, population.areas)
    frames["side_by_side_long"] = stacked(sides)
    with reading.observer.stage("summary"):
        sources = topdown_sources(population, read, lists)
        found.tables, found.frames = summarize(sources, frames)
    with reading.observer.stage("bias"):
        found.frames["bias_classes"] = bias_frame(every, classes_of_areas(sources.pairs[0]), found.answers)
    if len({pair.schema.record for pair in sources.pairs}) > 1:
        with reading.observer.stage("contradictions"):
            _contradict(population, sources, lists, found.frames)
    return found


def _contradict(
    population: EvaluatedPopulation,
    sources: SummarySources,
    lists: Sequence[ComparedAreas],
    frames: dict[str, pa.Table],
) -> None:
    """Add what persons and households say of the same homes."""
    areas = [*(level_areas(sources.pairs[0].spine, level) for level in population.levels), *lists]
    frames["inconsistency"] = inconsistencies(sources, areas, lowest=population.levels[-1])
    frames["contradictions"] = count_contradictions(sources, areas)


def _side_by_side(
    population: EvaluatedPopulation,
    histogram: MeasuredHistogram,
    pair: Pair,
    reading: ReadOptions,
    lists: Sequence[ComparedAreas],
    found: _Measured,
) -> list[pa.Table]:
    """True and published counts of every characteristic; adds the wide tables and the meanings of labels to what was found."""
    sides = []
    for one in compared_characteristics(histogram):
        query = pair.query(one.query)
        labels, words = answer_labels(query), list(answer_words(histogram.schema, query))
        found.meanings |= dict(zip(labels, words, strict=True))
        found.answers[f"{histogram.name}/{one.query}"] = words
        for where in (*(level_areas(pair.spine, level) for level in population.levels), *lists):
            if where.number * query.answers > _MOST_BESIDE:
                reading.observer.remark(
                    f"{histogram.name}, {one.words}: too many counts at {where.level} to be put side by side"
                )
                continue
            long, side = side_by_side(match(pair, where, query), labels, words, population.names)
            sides.append(long)
            if side is not None:
                name = f"{histogram.name}_{one.query.replace(' * ', '_')}_{where.level}"
                found.wide[f"side_by_side/{file_name(name)}"] = side
    return sides


def _write(out: Path, document: Mapping[str, Any], measured: _Measured, reading: ReadOptions) -> list[str]:
    standing = standing_of(document)
    with reading.observer.stage("write"):
        written = {
            write_frame(
                out, name, frame, standing=standing, parquet="/" in name or name.endswith("_long")
            ): frame.column_names
            for name, frame in {**measured.frames, **measured.wide}.items()
        }
        write_document(out, document)
        sheets = {
            name: frame
            for name, frame in measured.frames.items()
            if name not in (*SHEETLESS, "side_by_side_long")
        }
        books = [
            write_frame_codebook(out, written, measured.meanings),
            write_workbook(out, sheets, measured.tables, standing=standing),
        ]
    return [
        *(name for name in written if "/" not in name),
        *(["side_by_side"] if measured.wide else []),
        *books,
    ]


def answer_labels(query: CellQuery) -> list[str]:
    """A label for every answer of a query: attribute and level of each attribute that it tells apart.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> answer_labels(shipped_schemas()["pl94-persons"].query("votingage * hispanic"))[-1]
        'votingage1_hispanic1'
    """
    labels = [""]
    for name, size in zip(query.attributes, (size for size in query.shape if size > 1), strict=True):
        labels = [f"{label}_{name}{level}" for label in labels for level in range(size)]
    return [label.removeprefix("_") or "total" for label in labels]


def _summary(out: Path, document: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{standing_of(document).summary} Mean absolute errors of {document['runs']} runs against the truth."
    ]
    head = "".join(f"{words[:25]:>27}" for words in METHODS.values())
    lines.append(f"{'characteristic':<34}{'level':<14}{head}")
    for (_, characteristic, level), values in metric_values(out, "mean_ae").items():
        numbers = "".join(
            f"{values[name].value:>27,.2f}" if name in values else f"{'n/a':>27}" for name in METHODS
        )
        lines.append(f"{characteristic[:33]:<34}{level[:13]:<14}{numbers}")
    return lines
