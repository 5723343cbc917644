"""CONFIDENTIAL. ``evaluate topdown``: accuracy level by level, as frames and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas import (
    ComparedAreas,
    Strata,
    level_areas,
    read_named_lists,
    size_classes,
    size_edges,
)
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.accuracy import diversity_index, diversity_quintiles, race_groups
from censafe.evaluation.counts.cells import MatchedCells, match, true_answers
from censafe.evaluation.counts.error_metrics import DEVIATIONS
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.outputs import Evaluated, side_by_side, wide_metrics
from censafe.evaluation.pages.registry import write_evaluation
from censafe.evaluation.pages.topdown import metric_values
from censafe.evaluation.pairs.inconsistencies import INCONSISTENCIES, count_contradictions, inconsistencies
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.sheets import summarize, topdown_sources
from censafe.evaluation.topdown.accuracy import (
    METHODS,
    Compared,
    accuracy_frame,
    compare_methods,
    growth_frames,
)
from censafe.evaluation.topdown.noise_alone import evaluate_noise, expected_errors, keep_configuration
from censafe.evaluation.topdown.runs import (
    EvaluatedPopulation,
    RunRequest,
    RunSeries,
    SourceOf,
    compared_characteristics,
    described_histograms,
    read_runs,
    run_all,
)
from censafe.geography.own_codes import AREA_CODES, AreaCodes
from censafe.model import CellQuery
from censafe.model.safe_text import file_name
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.files import named_areas
from censafe.products.topdown.labels import answer_words
from censafe.products.topdown.plan import plan_release

_METHOD: Final = "topdown"
_MOST: Final = 100  # answers of a characteristic
_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("histogram", "level", "characteristic")),
        ("answer", pa.int64()),
        ("label", pa.string()),
        *((name, pa.string()) for name in ("classes", "class")),
        *((name, pa.int64()) for name in ("n_areas", "n_runs")),
        *((name, pa.float64()) for name in ("count_mean", "bias", "se", "lo", "hi")),
    ]
)


def classes_of_areas(pair: Pair) -> dict[str, tuple[Strata, ...]]:
    """Classes of the areas of every level: true persons (or other records), and quintiles of diversity.

    Quintiles are made of levels above the lowest, and only where the schema has race and origin.
    """
    lowest = pair.spine.leaf.name
    by_level: dict[str, tuple[Strata, ...]] = {}
    for level in pair.spine.names:
        areas = level_areas(pair.spine, level)
        classes = [size_classes(true_answers(pair, areas), size_edges(areas, lowest))]
        if level != lowest:
            try:
                quintile = diversity_quintiles(diversity_index(pair, areas, race_groups(pair.schema)))
            except UsageError:
                pass
            else:
                names = tuple(str(one) for one in range(5))
                classes.append(Strata("diversity", names, quintile.astype(np.int32)))
        by_level[level] = tuple(classes)
    return by_level


def bias_by_class(
    runs: Sequence[MatchedCells], of_area: NDArray[np.int32], classes: int
) -> dict[str, NDArray[Any]]:
    """Mean residual of every answer over the areas of each class, all runs together; empty answers count as residuals of 0.

    Args:
        of_area: class of every area, -1 for none, shape (areas,).

    Returns:
        ``n_areas``, shape (classes,); ``count_mean``, ``bias`` and ``se`` (areas as clusters), shape (classes, answers); NaN
        where a class has no area, or one only.
    """
    first = runs[0]
    answers, shape = first.answers, (classes, first.answers)
    place = np.concatenate([one.area_of_entry.astype(np.int64) * answers + one.answer for one in runs])
    residual = np.concatenate([one.residual for one in runs]).astype(np.float64)
    cells, of_cell = np.unique(place, return_inverse=True)
    mean = np.bincount(of_cell, residual, len(cells)) / len(runs)
    number = np.bincount(of_area[of_area >= 0], minlength=classes).astype(np.float64)

    def summed(entries: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        group = of_area[entries // answers].astype(np.int64)
        inside = group >= 0
        key = group[inside] * answers + entries[inside] % answers
        return np.bincount(key, values[inside], classes * answers).astype(np.float64).reshape(shape)

    own = first.area_of_entry.astype(np.int64) * answers + first.answer
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = summed(cells, mean) / number[:, None]
        spread = summed(cells, mean * mean) / number[:, None] - bias**2
        error = np.sqrt(np.maximum(spread, 0.0) / (number[:, None] - 1))
        count = summed(own, first.confidential.astype(np.float64)) / number[:, None]
    error[number < 2] = np.nan
    return {"n_areas": number.astype(np.int64), "count_mean": count, "bias": bias, "se": error}


def bias_frame(
    compared: Sequence[Compared],
    classes: Mapping[str, Sequence[Strata]],
    answers: Mapping[str, Sequence[str]],
) -> pa.Table:
    """Bias by class of the areas, of every characteristic of a hundred answers or fewer."""
    rows: list[dict[str, Any]] = []
    for comparison in compared:
        runs = comparison.cells[_METHOD]
        if not runs or runs[0].answers > _MOST:
            continue
        words = answers[f"{comparison.histogram}/{comparison.characteristic}"]
        for strata in classes.get(comparison.level, ()):
            biases = bias_by_class(runs, strata.of_area, len(strata.names))
            places = [(*place, *answer) for place in enumerate(strata.names) for answer in enumerate(words)]
            for place, name, answer, label in places:
                if not biases["n_areas"][place]:
                    continue
                count, bias, error = (
                    float(biases[key][place, answer]) for key in ("count_mean", "bias", "se")
                )
                rows.append(
                    {
                        "histogram": comparison.histogram,
                        "level": comparison.level,
                        "characteristic": comparison.characteristic,
                        "answer": answer,
                        "label": label,
                        "classes": strata.kind,
                        "class": name,
                        "n_areas": int(biases["n_areas"][place]),
                        "n_runs": len(runs),
                        "count_mean": count,
                        "bias": bias,
                        "se": error,
                        "lo": bias - DEVIATIONS * error,
                        "hi": bias + DEVIATIONS * error,
                    }
                )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


_MOST_COUNTS: Final = 20_000_000  # counts of one characteristic and level


def evaluate_topdown(
    source: SourceOf,
    out: Path,
    reading: ReadOptions,
    series: RunSeries,
    *,
    confidentiality: Confidentiality = Confidentiality.COMPARED,
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
    if confidentiality is Confidentiality.PUBLIC:
        return evaluate_noise(population.config, population.areas, out, reading)
    codes = population.loaded.area_files.get(AREA_CODES)
    own = None if codes is None else AreaCodes.of_text(codes)
    lists = read_named_lists(population.pairs[population.main.name].spine, areas, own)
    for words in dict.fromkeys(words for one in lists for words in one.remarks):
        reading.observer.remark(words)
    with evaluation_folder(
        out, population.identity("topdown accuracy", series.seed), confidentiality=confidentiality
    ) as folder:
        document = {"kind": "topdown", "runs": series.runs, "seed": series.seed, **described(population)}
        document |= {"standing": confidentiality.value, "lists": [one.level for one in lists]}
        document |= keep_configuration(out, population.config)
        document["inconsistencies"] = {f"{one.number} {one.kind}": one.words for one in INCONSISTENCIES}
        requests = series.requests(plan_release(population.config).total)
        place = folder.measurements
        run_all(population, source, requests, place, workers=series.workers, observer=reading.observer)
        frames, tables, meanings = _measure(population, requests, place, reading, lists)
        head = f"{confidentiality.summary} Mean absolute errors of {series.runs} runs against the truth."
        lines = [head, *_summary(frames["metrics_long"])]
        return write_evaluation(
            out, frames, document, lines, reading, confidentiality, summary=tables, meanings=meanings
        )


def described(population: EvaluatedPopulation) -> dict[str, Any]:
    """Configuration and geography for the page."""
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
        "histograms": described_histograms(config),
        "records": {histogram.schema.name: histogram.schema.record.value for histogram in config.histograms},
        "choices": {name: str(value).lower() for name, value in vars(config.choices).items()},
    }


def _measure(
    population: EvaluatedPopulation,
    requests: Sequence[RunRequest],
    folder: Path,
    reading: ReadOptions,
    lists: Sequence[ComparedAreas],
) -> tuple[dict[str, pa.Table], tuple[FilledTable, ...], dict[str, str]]:
    """Compare the stored runs with the truth, histogram by histogram: frames, tables of summary metrics, words of labels."""
    accuracies, growths = [], []
    compared: list[Compared] = []
    read: dict[str, Sequence[PublishedRun]] = {}
    longs: list[pa.Table] = []
    wides: dict[str, pa.Table] = {}
    meanings: dict[str, str] = {}
    answers: dict[str, list[str]] = {}
    for histogram in population.config.histograms:
        runs = read_runs(population.pairs[histogram.name], histogram.name, requests, folder)
        read[histogram.name] = runs
        pair = population.pairs[histogram.name].with_runs(runs)
        with reading.observer.stage(f"compare {histogram.name}"):
            own = compare_methods(
                population, histogram, runs, noise_runs=len(runs), seed=requests[0].seed, lists=lists
            )
            accuracies.append(accuracy_frame(own))
            compared += own
            growths.append(growth_frames(pair, own))
        for characteristic in compared_characteristics(histogram):
            query = pair.query(characteristic.query)
            labels, words = answer_labels(query), list(answer_words(histogram.schema, query))
            meanings |= dict(zip(labels, words, strict=True))
            answers[f"{histogram.name}/{characteristic.query}"] = words
            for where in (*(level_areas(pair.spine, level) for level in population.levels), *lists):
                if where.number * query.answers > _MOST_COUNTS:
                    reading.observer.remark(
                        f"{histogram.name}, {characteristic.words}: too many counts at {where.level} to be put side by side"
                    )
                    continue
                long, wide = side_by_side(match(pair, where, query), labels, words, population.names)
                longs.append(long)
                if wide is not None:
                    name = f"{histogram.name}_{characteristic.query.replace(' * ', '_')}_{where.level}"
                    wides[f"side_by_side/{file_name(name)}"] = wide
    frames = {"metrics_long": stacked(accuracies)}
    frames["metrics_wide"] = wide_metrics(frames["metrics_long"])
    frames["topdown_vs_blocks"] = stacked([classes for classes, _ in growths])
    frames["slopes"] = stacked([slopes for _, slopes in growths])
    with reading.observer.stage("noise laws"):
        frames["expected"] = expected_errors(population.config, population.areas)
    frames["side_by_side_long"] = stacked(longs)
    with reading.observer.stage("summary"):
        sources = topdown_sources(population, read, lists)
        tables, frames = summarize(sources, frames)
    with reading.observer.stage("bias"):
        frames["bias_classes"] = bias_frame(compared, classes_of_areas(sources.pairs[0]), answers)
    if len({pair.schema.record for pair in sources.pairs}) > 1:
        with reading.observer.stage("contradictions"):
            spine = sources.pairs[0].spine
            areas = [*(level_areas(spine, level) for level in population.levels), *lists]
            frames["inconsistency"] = inconsistencies(sources, areas, lowest=population.levels[-1])
            frames["contradictions"] = count_contradictions(sources, areas)
    return {**frames, **wides}, tables, meanings


def answer_labels(query: CellQuery) -> list[str]:
    """A label for every answer of a query: attribute and level of each attribute that it distinguishes.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> answer_labels(shipped_schemas()["pl94-persons"].query("votingage * hispanic"))[-1]
        'votingage1_hispanic1'
    """
    labels = [""]
    for name, size in zip(query.attributes, (size for size in query.shape if size > 1), strict=True):
        labels = [f"{label}_{name}{level}" for label in labels for level in range(size)]
    return [label.removeprefix("_") or "total" for label in labels]


def _summary(metrics: pa.Table) -> list[str]:
    head = "".join(f"{words[:25]:>27}" for words in METHODS.values())
    lines = [f"{'characteristic':<34}{'level':<14}{head}"]
    for (_, characteristic, level), values in metric_values(metrics, "mean_ae").items():
        numbers = "".join(
            f"{values[name].value:>27,.2f}" if name in values else f"{'n/a':>27}" for name in METHODS
        )
        lines.append(f"{characteristic[:33]:<34}{level[:13]:<14}{numbers}")
    return lines
