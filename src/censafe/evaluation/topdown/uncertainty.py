"""Approximate Monte Carlo, from a run folder alone: further runs on what was published estimate how far it is from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.estimation.topdown.intervals.simulated import SIZES, ErrorClass, size_class
from censafe.evaluation.areas import level_areas
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.cells import MatchedCells, match_runs
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.outputs import Evaluated, number_text
from censafe.evaluation.pages.registry import write_evaluation
from censafe.evaluation.topdown.evaluation import described
from censafe.evaluation.topdown.noise import answers_of
from censafe.evaluation.topdown.runs import (
    EvaluatedPopulation,
    PublishedSource,
    RunRequest,
    RunSeries,
    compared_characteristics,
    read_runs,
    run_all,
)
from censafe.geography.identifiers import AreaNames
from censafe.model.safe_text import file_name
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.labels import answer_words
from censafe.products.topdown.plan import plan_release


def error_classes(runs: Sequence[MatchedCells], confidence: float = 0.9) -> pa.Table:
    """Errors of further runs by size of the count that they gave, all runs and areas of a level together.

    Classes are those of the further run's count, since the question is how far the truth is from a published count of some
    size: a published 0 may stand for a true 3, although a 3 is rarely published as 0.

    Source: approximate Monte Carlo, arXiv 2503.19714.
    """
    rows: list[dict[str, Any]] = []
    sizes = [size_class(cells.published) for cells in runs]
    for place in range(len(SIZES)):
        pooled = np.concatenate(
            [cells.residual[size == place] for cells, size in zip(runs, sizes, strict=True)]
        )
        empty = sum(cells.zero_zero for cells in runs) if place == 0 else 0
        if len(pooled) + empty:
            errors = ErrorClass.of(pooled, empty)
            low, high = errors.ends(confidence)
            rows.append(
                {
                    "level": runs[0].level,
                    "characteristic": runs[0].query,
                    "size_class": str(SIZES[place]),
                    "n_cells": errors.number,
                    "bias": errors.moment(1),
                    "rmse": errors.moment(2) ** 0.5,
                    "mean_ae": errors.mean_size(),
                    "lo": 0.0 - high,
                    "hi": 0.0 - low,
                }
            )
    return pa.Table.from_pylist(rows)


def cell_intervals(
    runs: Sequence[MatchedCells],
    classes: pa.Table,
    published: NDArray[np.int64],
    labels: Sequence[str],
    areas: AreaNames | None = None,
) -> pa.Table:
    """Every published count of one characteristic and level with the error that is expected of it.

    Args:
        published: shape (areas, answers).

    A count of a size that no further run gave takes the errors of the nearest size.
    """
    known = {SIZES.index(int(row["size_class"])): row for row in classes.to_pylist()}
    nearest = [min((abs(own - at), own) for own in known)[1] for at in range(len(SIZES))]
    names = (areas or AreaNames()).of_level(runs[0].level, runs[0].areas)
    squares = np.zeros(published.shape)
    for cells in runs:
        squares[cells.area_of_entry, cells.answer] += cells.residual.astype(float) ** 2
    own = np.sqrt(squares / len(runs))
    flat = published.reshape(-1)
    expected = [known[nearest[one]] for one in size_class(flat).tolist()]
    return pa.table(
        {
            "geocode": np.repeat(runs[0].areas, published.shape[1]).tolist(),
            **{name: np.repeat(texts, published.shape[1]).tolist() for name, texts in names.items()},
            "label": list(labels) * len(published),
            "published": flat,
            "rmse": np.array([row["rmse"] for row in expected]),
            "own_rmse": own.reshape(-1),
            "lo": np.maximum(flat + np.array([row["lo"] for row in expected]), 0.0),
            "hi": np.maximum(flat + np.array([row["hi"] for row in expected]), 0.0),
        }
    )


_MOST_ROWS: Final = 5_000_000


def evaluate_uncertainty(
    source: PublishedSource,
    out: Path,
    reading: ReadOptions,
    series: RunSeries,
    *,
    confidence: float = 0.9,
) -> Evaluated:
    """Repeat the configuration of a finished run on what it published, and say how far that leads from it."""
    private = not source.manifest().test_key
    population = source.open(reading)
    identity = population.identity("topdown uncertainty", series.seed)
    with evaluation_folder(out, identity, confidentiality=Confidentiality.PUBLIC) as folder:
        requests = series.requests(plan_release(population.config).total)
        place, observer = folder.measurements, reading.observer
        run_all(population, source, requests, place, workers=series.workers, observer=observer)
        with reading.observer.stage("errors"):
            classes, tables = uncertainty_frames(population, requests, place, confidence)
        document = {"kind": "uncertainty", "runs": series.runs, "seed": series.seed}
        document |= {"confidence": confidence, "private": private, **described(population)}
        frames = {"uncertainty": classes}
        frames |= {f"intervals/{file_name(name)}": table for name, table in tables.items()}
        head = "Public: from published figures alone." if private else "NOT PRIVATE: the run used a test key."
        return write_evaluation(
            out, frames, document, [head, *_summary(classes)], reading, Confidentiality.PUBLIC
        )


def uncertainty_frames(
    population: EvaluatedPopulation, requests: Sequence[RunRequest], folder: Path, confidence: float
) -> tuple[pa.Table, dict[str, pa.Table]]:
    """Errors by class of counts, and every count with its interval, by histogram, characteristic and level."""
    classes, tables = [], {}
    for histogram in population.config.histograms:
        runs = read_runs(population.pairs[histogram.name], histogram.name, requests, folder)
        pair = population.pairs[histogram.name].with_runs(runs)
        for characteristic in compared_characteristics(histogram):
            query = pair.query(characteristic.query)
            words = list(answer_words(histogram.schema, query))
            for depth, level in enumerate(population.levels):
                cells = match_runs(pair, level_areas(pair.spine, level), query)
                errors = error_classes(cells, confidence)
                names = pa.array([histogram.name] * errors.num_rows)
                classes.append(errors.append_column("histogram", names))
                exact = population.exact[histogram.name][depth]
                if exact.nodes * query.answers > _MOST_ROWS:
                    continue
                published = answers_of(exact, query, 0, exact.nodes)
                name = f"{histogram.name}_{characteristic.query.replace(' * ', '_')}_{level}"
                tables[name] = cell_intervals(cells, errors, published, words, population.names)
    return stacked(classes), tables


def _summary(classes: pa.Table) -> list[str]:
    main = {row["histogram"]: row["characteristic"] for row in reversed(classes.to_pylist())}
    main_rows = [row for row in classes.to_pylist() if row["characteristic"] == main[row["histogram"]]]
    head = f"{'histogram':<12}{'characteristic':<34}{'level':<14}{'counts of':>12}{'rmse':>10}{'bias':>9}"
    return [
        head,
        *(
            f"{row['histogram'][:11]:<12}{row['characteristic'][:33]:<34}{row['level'][:13]:<14}"
            f"{int(row['size_class']):>11,}+{number_text(row['rmse'], 2):>10}{number_text(row['bias'], 2):>9}"
            for row in main_rows
        ),
        f"Root mean square error and bias of published counts by size; uncertainty.csv has the other {classes.num_rows - len(main_rows)} rows.",
    ]
