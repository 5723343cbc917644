"""Time and memory of an evaluation: every measure of a pair of block histograms the size of Texas.

    python benchmarks/evaluation.py [--json] [--persons N] [--data FOLDER] [--seed S]

The truth is a synthetic state of 29 million persons in some 700,000 blocks of 252 cells (voting age, origin, 63 races); the
published file is made from it by noise on the cells that are not empty and by new ones, about as many as TopDown makes. A
child process reads both files and computes all errors (six levels and a list of other areas, eight queries, population bins),
bias by homogeneity and diversity, impossible blocks, reliability, empirical privacy loss with intervals, and one sample.
Marks: 60 s and 6 GiB, reading included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from censafe.evaluation.histograms.accuracy import accuracy
from censafe.evaluation.histograms.areas import Areas, areas_of_codes, level_areas
from censafe.evaluation.histograms.cells import match, true_counts
from censafe.evaluation.histograms.diversity import bias_by_diversity, race_groups
from censafe.evaluation.histograms.epl import epl_curve, epl_summary
from censafe.evaluation.histograms.homogeneity import bias_by_homogeneity
from censafe.evaluation.histograms.impossible import impossible_areas
from censafe.evaluation.histograms.pairing import Pair, pair_files
from censafe.evaluation.histograms.reliability import reliability
from censafe.evaluation.histograms.residuals import pooled_residuals
from censafe.evaluation.histograms.sampling import sample_runs
from censafe.evaluation.histograms.strata import COUNTY_SIZES, size_classes
from censafe.geography.spine import PL94_US
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.population.synthetic.histograms import synthesize_histograms
from censafe.products.topdown.schemas import HistogramSchema
from child import in_folder, parser_of

SCHEMA = HistogramSchema(
    Schema("people", (Attribute("votingage", 2), Attribute("hispanic", 2), Attribute("cenrace", 63))),
    ProtectedUnit.PERSON,
)
QUERIES = (
    "total", "votingage", "hispanic", "cenrace", "votingage * hispanic", "hispanic * cenrace", "votingage * cenrace",
    "detailed",
)  # fmt: skip
TEXAS = 29_145_505
SECONDS, GIB = 60, 6


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
    held = np.bincount(place, np.concatenate([np.maximum(count + noise, 0), np.ones(len(new))])).astype(
        np.int64
    )
    write(folder / "published.parquet", blocks, keys[held > 0], held[held > 0])
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
    """Seconds of every family of measures."""
    stages: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Any:
        started = time.perf_counter()
        yield
        stages[name] = stages.get(name, 0.0) + time.perf_counter() - started

    with stage("read and match"):
        pair = pair_files(
            SCHEMA,
            PL94_US,
            folder / "truth.parquet",
            {"1": folder / "published.parquet"},
            domain=folder / "blocks.parquet",
        )
    groups = race_groups(SCHEMA)
    lists = [level_areas(pair.spine, name) for name in pair.spine.names] + [places(pair)]
    rows = 0
    for areas in lists:
        with stage("errors"):
            sizes = size_classes(true_counts(pair, areas), COUNTY_SIZES)
            for query in QUERIES:
                cells = match(pair, areas, query)
                rows += accuracy([cells]).num_rows
                if query in ("total", "detailed"):
                    rows += accuracy([cells], mode="as_published").num_rows
                if query == "total":
                    rows += accuracy([cells], strata=sizes).num_rows
                if query == "votingage * hispanic":
                    rows += accuracy([cells], by_answer=True).num_rows
        with stage("empirical privacy loss"):
            for query in ("total", "votingage * hispanic", "detailed"):
                residuals = pooled_residuals([match(pair, areas, query)], zeros="either", groups=1024)
                rows += epl_summary(residuals).num_rows + epl_curve(residuals, bandwidth_factor=0.1).num_rows
        with stage("bias"):
            for mode in ("corrected", "as_published"):
                attributes = ("votingage", "hispanic", "cenrace")
                rows += bias_by_homogeneity(pair, areas, attributes, mode=mode).num_rows
            rows += bias_by_diversity(pair, areas, groups).num_rows
        with stage("reliability and impossible areas"):
            rows += reliability(pair, areas, groups).bins.num_rows
            rows += impossible_areas(pair, None, areas).num_rows
    with stage("sample of half the persons, its errors"):
        sampled = pair.with_runs(sample_runs(pair, Fraction(1, 2), replicates=1, seed=1))
        for areas in lists:
            rows += accuracy([match(sampled, areas, "detailed")]).num_rows
    return {"blocks": pair.spine.leaf.nodes, "cells": SCHEMA.schema.cells, "numbers": rows, "stages": stages}


def places(pair: Pair) -> Areas:
    """Areas that cut across the spine: every seventh block group of a county together, a third of the blocks in none."""
    codes = pair.spine.leaf.codes
    place = np.where(codes // 10**4 % 3 == 0, -1, codes // 10**11 * 7 + codes // 10**4 % 7)
    return areas_of_codes(pair.spine, "place", codes, np.where(place < 0, "", place.astype(np.str_)))


def run_pair(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Make the pair, measure it in a child, and compare with the marks."""
    make(folder, options.persons, options.seed)
    started = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, __file__, "--measure", str(folder)], stdout=subprocess.PIPE, text=True
    )
    text = child.stdout.read() if child.stdout else ""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"the measurement failed with exit code {child.returncode}")
    seconds = time.perf_counter() - started
    gib = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1) / 2**20
    return {
        "pair": {
            **json.loads(text), "persons": options.persons, "seconds": round(seconds, 2),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2), "peak_gib": round(gib, 2),
            "mark_seconds": SECONDS, "mark_gib": GIB, "met": seconds <= SECONDS and gib <= GIB,
        }
    }  # fmt: skip


PARTS: tuple[Callable[[Path, argparse.Namespace], dict[str, Any]], ...] = (run_pair,)


def show(found: dict[str, Any]) -> None:
    pair = found["pair"]
    print(
        f"pair of {pair['blocks']:,} blocks, {pair['cells']} cells, {pair['persons']:,} persons; {pair['numbers']:,} numbers"
    )
    for name, seconds in pair["stages"].items():
        print(f"{name:<45}{seconds:>8.2f} s")
    print(f"{'all, start of the process included':<45}{pair['seconds']:>8.2f} s (mark {SECONDS})")
    print(f"{'processor time of all':<45}{pair['cpu_seconds']:>8.2f} s")
    print(f"{'peak memory':<45}{pair['peak_gib']:>8.2f} GiB (mark {GIB})")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=TEXAS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options.measure)))
        return
    found: dict[str, Any] = {}
    for part in PARTS:
        found |= in_folder(options.data, lambda folder, part=part: part(folder, options))  # type: ignore[misc]
    if options.json:
        print(json.dumps(found))
    else:
        show(found)


if __name__ == "__main__":
    main()
