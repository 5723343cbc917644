"""Time and memory of evaluations: every measure of a pair of block histograms the size of Texas, and a sweep over budgets.

    python benchmarks/evaluation.py [--json] [--part pair|sweep|both] [--persons N] [--data FOLDER] [--seed S]

The truth is a synthetic state of 29 million persons in some 700,000 blocks of 252 cells (voting age, origin, 63 races); the
published file is made from it by noise on the cells that are not empty and by new ones, about as many as TopDown makes. A
child process reads both files and computes all errors (six levels and a list of other areas, eight queries, population bins),
bias by homogeneity and diversity, impossible blocks, reliability, empirical privacy loss with intervals, one sample, and the
Bureau's tables of summary metrics.
Marks: 60 s and 6 GiB, reading included.

The sweep is ``censafe evaluate sweep`` with eight budgets and four runs of each on 10 million persons of 1940 in four states, so
that a county has some 40 districts as in the census of 1940, samples, frames and the page included. Mark: 600 s on two cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from censafe.evaluation.areas import (
    COUNTY_SIZES,
    ComparedAreas,
    areas_of_codes,
    in_threads,
    level_areas,
    size_classes,
)
from censafe.evaluation.counts.accuracy import (
    accuracy,
    bias_by_diversity,
    bias_by_homogeneity,
    race_groups,
    reliability,
)
from censafe.evaluation.counts.cells import match, true_answers
from censafe.evaluation.counts.comparators import sample_runs
from censafe.evaluation.counts.pairing import Pair, pair_files
from censafe.evaluation.loss import epl_curve, epl_summary, pooled_residuals
from censafe.evaluation.pairs.inconsistencies import inconsistencies
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import fill_book, summary_long
from censafe.evaluation.summary.tables import shipped_book
from censafe.geography.spines.tree import PL94_US
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.model.topdown.histograms import HistogramSchema
from censafe.population.synthetic.blocks import synthesize_histograms
from harness import STATES, censafe, child, parser_of, population, report

SCHEMA = HistogramSchema(
    Schema("people", (Attribute("votingage", 2), Attribute("hispanic", 2), Attribute("cenrace", 63))),
    ProtectedUnit.PERSON,
)
QUERIES = (
    "total", "votingage", "hispanic", "cenrace", "votingage * hispanic", "hispanic * cenrace", "votingage * cenrace",
    "detailed",
)  # fmt: skip
LOSS_QUERIES = ("total", "votingage * hispanic", "detailed")
TEXAS = STATES["TX"][1]
SECONDS, GIB = 60, 6
STATES_1940 = "17,34,36,42"
BUDGETS, RUNS, SWEEP_SECONDS = "0.25,0.5,0.75,1,2,4,6,8", 4, 600


def make(folder: Path, persons: int, seed: int) -> None:
    """Write the pair: truth.parquet, published.parquet and blocks.parquet."""
    if (folder / "published.parquet").exists():
        return
    report = synthesize_histograms(folder / "synthetic", persons=persons, states=("48",), seed=seed)
    tables = {}
    for name in ("histogram", "units"):
        files = [one for one in report.files if one.relative_to(report.folder).parts[0].startswith(name)]
        tables[name] = pa.concat_tables([pq.read_table(one) for one in files])
    codes = np.array(tables["units"].column("geocode").cast(pa.string()).to_pylist(), np.str_)
    order = np.argsort(codes)
    blocks = codes[order]
    of_row = np.searchsorted(
        blocks, np.array(tables["histogram"].column("geocode").cast(pa.string()).to_pylist(), np.str_)
    )
    cell = tables["histogram"].column("cell").to_numpy() % SCHEMA.schema.cells
    key, place = np.unique(of_row * SCHEMA.schema.cells + cell, return_inverse=True)
    count = np.bincount(place, tables["histogram"].column("count").to_numpy()).astype(np.int64)
    write(folder / "truth.parquet", blocks, key, count)
    rng = np.random.default_rng(seed)
    noise = rng.geometric(0.4, len(key)) - rng.geometric(0.4, len(key))
    new = rng.choice(key // SCHEMA.schema.cells, len(key) // 2) * SCHEMA.schema.cells
    new += rng.choice(cell, len(new))
    keys, place = np.unique(np.concatenate([key, new]), return_inverse=True)
    published = np.bincount(place, np.concatenate([np.maximum(count + noise, 0), np.ones(len(new))])).astype(
        np.int64
    )
    write(folder / "published.parquet", blocks, keys[published > 0], published[published > 0])
    pq.write_table(pa.table({"geocode": blocks}), folder / "blocks.parquet")


def write(
    path: Path, blocks: np.ndarray[Any, Any], key: np.ndarray[Any, Any], count: np.ndarray[Any, Any]
) -> None:
    index, cell = np.divmod(key, SCHEMA.schema.cells)
    geocode = pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pa.array(blocks.tolist()))
    pq.write_table(
        pa.table({"geocode": geocode, "cell": cell.astype(np.int32), "count": count.astype(np.int32)}), path
    )


def measure(folder: Path) -> dict[str, Any]:
    """Processor seconds of every family of measures; two lists of areas are measured at a time."""
    stages: dict[str, float] = {}
    with stage(stages, "read and match"):
        pair = pair_files(
            SCHEMA,
            PL94_US,
            folder / "truth.parquet",
            {"1": folder / "published.parquet"},
            domain=folder / "blocks.parquet",
        )
    # the largest first, so that no thread is left with it at the end
    lists = [*(level_areas(pair.spine, name) for name in reversed(pair.spine.names)), places(pair)]
    measured = in_threads(lambda areas: measure_areas(pair, areas), lists)
    with stage(stages, "sample of half the persons, its errors"):
        sampled = pair.with_runs(sample_runs(pair, Fraction(1, 2), replicates=1, seed=1))

    def sample_errors(areas: ComparedAreas) -> tuple[int, dict[str, float]]:
        own: dict[str, float] = {}
        with stage(own, "sample of half the persons, its errors"):
            rows = accuracy([match(sampled, areas, "detailed")]).num_rows
        return rows, own

    measured += in_threads(sample_errors, lists)
    started = time.process_time()  # two threads fill the tables, and nothing else runs
    tables = fill_book(shipped_book(), SummarySources((pair,), (lists[-1],)))
    numbers = summary_long(tables, ("1",)).num_rows
    stages["tables of the summary metrics"] = time.process_time() - started
    for _, own in measured:
        for name, seconds in own.items():
            stages[name] = stages.get(name, 0.0) + seconds
    rows = numbers + sum(one for one, _ in measured)
    return {"blocks": pair.spine.leaf.nodes, "cells": SCHEMA.schema.cells, "numbers": rows, "stages": stages}


@contextmanager
def stage(stages: dict[str, float], name: str) -> Iterator[None]:
    """Add the processor time of this thread."""
    started = time.thread_time()
    yield
    stages[name] = stages.get(name, 0.0) + time.thread_time() - started


def measure_areas(pair: Pair, areas: ComparedAreas) -> tuple[int, dict[str, float]]:
    """Every measure of one list of areas: how many numbers, and seconds by family."""
    stages: dict[str, float] = {}
    rows = 0
    groups = race_groups(SCHEMA)
    with stage(stages, "errors"):
        sizes = size_classes(true_answers(pair, areas), COUNTY_SIZES)
        matched = {}
        for query in QUERIES:
            cells = match(pair, areas, query)
            rows += accuracy([cells]).num_rows
            if query in ("total", "detailed"):
                rows += accuracy([cells], mode="as_published").num_rows
            if query == "total":
                rows += accuracy([cells], strata=sizes).num_rows
            if query == "votingage * hispanic":
                rows += accuracy([cells], by_answer=True).num_rows
            if query in LOSS_QUERIES:
                matched[query] = cells
    with stage(stages, "empirical privacy loss"):
        for query in LOSS_QUERIES:
            residuals = pooled_residuals([matched.pop(query)], zeros="either", groups=1024)
            rows += epl_summary(residuals).num_rows + epl_curve(residuals, bandwidth_factor=0.1).num_rows
    with stage(stages, "bias"):
        for mode in ("corrected", "as_published"):
            attributes = ("votingage", "hispanic", "cenrace")
            rows += bias_by_homogeneity(pair, areas, attributes, mode=mode).num_rows
        rows += bias_by_diversity(pair, areas, groups).num_rows
    with stage(stages, "reliability and impossible areas"):
        rows += reliability(pair, areas, groups)[2].num_rows
        rows += inconsistencies(SummarySources((pair,)), [areas]).num_rows
    return rows, stages


def places(pair: Pair) -> ComparedAreas:
    """Areas that cut across the spine: every seventh block group of a county together, a third of the blocks in none."""
    codes = pair.spine.leaf.codes
    place = np.where(codes // 10**4 % 3 == 0, -1, codes // 10**11 * 7 + codes // 10**4 % 7)
    return areas_of_codes(pair.spine, "place", codes, np.where(place < 0, "", place.astype(np.str_)))


def run_pair(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Make the pair, measure it in a child, and compare with the marks."""
    make(folder, options.persons, options.seed)
    run = child([sys.executable, __file__, "--measure", str(folder)])
    used = run.figures()
    return {
        **json.loads(run.text), "persons": options.persons, **used, "mark_seconds": SECONDS, "mark_gib": GIB,
        "met": used["seconds"] <= SECONDS and used["peak_gib"] <= GIB,
    }  # fmt: skip


def run_sweep(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Sweep over budgets on a synthetic population of 1940."""
    data, out, persons, states = folder / "e2e-1940", folder / "sweep", 10_000_000, STATES_1940.split(",")
    population(data, synthesize_histograms, persons=persons, states=states, seed=options.seed, layout="e2e")
    shutil.rmtree(out, ignore_errors=True)
    words = ["evaluate", "sweep", "topdown", "e2e-1940", str(data), str(out), "--epsilon", BUDGETS]
    used = censafe(*words, "--runs", str(RUNS), "--workers", "2", "--quiet").figures()
    return {
        "persons": persons, "budgets": len(BUDGETS.split(",")), "runs": RUNS, **used,
        "mark_seconds": SWEEP_SECONDS, "met": used["seconds"] <= SWEEP_SECONDS,
    }  # fmt: skip


PARTS: dict[str, Callable[[Path, argparse.Namespace], dict[str, Any]]] = {
    "pair": run_pair,
    "sweep": run_sweep,
}


def measure_parts(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    return {name: part(folder, options) for name, part in PARTS.items() if options.part in (name, "both")}


def text(measured: dict[str, Any]) -> Iterator[str]:
    for name, part in measured.items():
        if name == "pair":
            yield "pair of {blocks:,} blocks, {cells} cells, {persons:,} persons; {numbers:,} numbers".format(
                **part
            )
            for stage, seconds in part["stages"].items():
                yield f"{stage:<45}{seconds:>8.2f} s of processor time"
        else:
            yield "sweep of {budgets} budgets by {runs} runs on {persons:,} persons of 1940".format(**part)
        yield f"{'all, start of the process included':<45}{part['seconds']:>8.2f} s (mark {part['mark_seconds']})"
        yield f"{'processor time of all':<45}{part['cpu_seconds']:>8.2f} s"
        yield f"{'peak memory of the largest process':<45}{part['peak_gib']:>8.2f} GiB"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=TEXAS)
    parser.add_argument("--part", choices=[*PARTS, "both"], default="both")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options.measure)))
    else:
        report(options, measure_parts, text)


if __name__ == "__main__":
    main()
