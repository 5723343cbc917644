"""``evaluate uncertainty``: error of every published count of a finished run, from its folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from censafe.evaluation.confidential import Standing, evaluation_folder
from censafe.evaluation.histograms.areas import level_areas
from censafe.evaluation.histograms.cells import match_runs
from censafe.evaluation.histograms.frames import stacked
from censafe.evaluation.outputs import number_text, write_codebook, write_document, write_frame
from censafe.evaluation.reporting import write_report
from censafe.evaluation.topdown_evaluation import TopdownEvaluation, answer_labels, described
from censafe.evaluation.topdown_noise import answers_of
from censafe.evaluation.topdown_population import Population, compared_characteristics
from censafe.evaluation.topdown_published import PublishedSource
from censafe.evaluation.topdown_runs import RunRequest, read_runs, run_all
from censafe.evaluation.uncertainty import cell_intervals, error_classes
from censafe.model.file_names import file_name
from censafe.products.options import ReadOptions
from censafe.products.topdown.plan import plan_release

__all__ = ["evaluate_uncertainty", "uncertainty_frames"]

_MOST_ROWS: Final = 5_000_000


def evaluate_uncertainty(
    source: PublishedSource,
    out: Path,
    reading: ReadOptions,
    *,
    runs: int,
    seed: int,
    workers: int,
    confidence: float = 0.9,
) -> TopdownEvaluation:
    """Run the configuration of a finished run again on what it published, and say how far that leads from it.

    Args:
        source: folder of the finished run.
        out: a new or empty folder, or the folder of the same evaluation.
        reading: who is told of stages.
        runs: further runs.
        seed: of their noise.
        workers: processes.
        confidence: of the intervals.

    Raises:
        UsageError: folders that hold something else, or a run that did not keep its geography.
        CheckError: files of the run were changed.
    """
    private = not source.manifest().test_key
    population = source.open(reading)
    identity = {
        "kind": "topdown uncertainty",
        "configuration": population.config.digest,
        "input": population.commitment,
        "seed": str(seed),
    }
    with evaluation_folder(out, identity, standing=Standing.PUBLIC) as folder:
        loss = plan_release(population.config).total
        requests = [RunRequest(loss, run + 1, seed) for run in range(runs)]
        run_all(population, source, requests, folder.measurements, workers=workers, observer=reading.observer)
        with reading.observer.stage("errors"):
            classes, tables = uncertainty_frames(population, requests, folder.measurements, confidence)
        with reading.observer.stage("write"):
            written = {
                write_frame(out, "uncertainty", classes, standing=Standing.PUBLIC): classes.column_names
            }
            for name, table in tables.items():
                file = write_frame(
                    out, f"intervals/{file_name(name)}", table, standing=Standing.PUBLIC, parquet=True
                )
                written[file] = table.column_names
            document = {"kind": "uncertainty", "runs": runs, "seed": seed, "confidence": confidence}
            write_document(out, {**document, "private": private, **described(population)})
            files = ["uncertainty.csv", "intervals", write_codebook(out, written)]
        with reading.observer.stage("report"):
            files += write_report(out)
    lines = ["Public: from published figures alone." if private else "NOT PRIVATE: the run used a test key."]
    lines += _summary(classes)
    return TopdownEvaluation(tuple(lines), tuple(out / name for name in files))


def uncertainty_frames(
    population: Population, requests: Sequence[RunRequest], folder: Path, confidence: float
) -> tuple[pa.Table, dict[str, pa.Table]]:
    """Errors by class of counts, and every count with its interval, by histogram, characteristic and level.

    Args:
        population: the published run.
        requests: its further runs.
        folder: where they are kept.
        confidence: of the intervals.
    """
    classes, tables = [], {}
    for histogram in population.config.histograms:
        runs = read_runs(population.pairs[histogram.name], histogram.name, requests, folder)
        pair = population.pairs[histogram.name].with_runs(runs)
        for one in compared_characteristics(histogram):
            query = pair.query(one.query)
            for depth, level in enumerate(population.levels):
                cells = match_runs(pair, level_areas(pair.spine, level), query)
                found = error_classes(cells, confidence)
                names = pa.array([histogram.name] * found.num_rows)
                classes.append(found.append_column("histogram", names))
                exact = population.exact[histogram.name][depth]
                if exact.nodes * query.answers > _MOST_ROWS:
                    continue
                published = answers_of(exact, query, 0, exact.nodes)
                name = f"{histogram.name}_{one.query.replace(' * ', '_')}_{level}"
                tables[name] = cell_intervals(cells, found, published, answer_labels(query))
    return stacked(classes), tables


def _summary(classes: pa.Table) -> list[str]:
    head = f"{'histogram':<12}{'characteristic':<34}{'level':<14}{'counts of':>12}{'rmse':>10}{'bias':>9}"
    return [
        head,
        *(
            f"{row['histogram'][:11]:<12}{row['characteristic'][:33]:<34}{row['level'][:13]:<14}"
            f"{int(row['size_class']):>11,}+{number_text(row['rmse'], 2):>10}{number_text(row['bias'], 2):>9}"
            for row in classes.to_pylist()
        ),
    ]
