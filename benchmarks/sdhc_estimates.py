"""Seconds of all S-DHC estimates of the nation, and how they do against known true counts.

    python benchmarks/sdhc_estimates.py [--json] [--persons N] [--scale S] [--repetitions R] [--ratios K] [--seed S] [--workers W]
                                        [--truth FILE] [--set KEY=VALUE ...]

True counts are those of a synthetic population of N persons in 51 states (as PHSafe's private path counts them, truncated to
tau), times S, so that 331,000 persons times 1,000 have the size of the nation. Noise with the production variances is drawn R times.

Speed: one set of noisy tables, nation and states, is estimated as `censafe estimate` does, files included.
Coverage: share of true counts of basis cells within their 90% intervals, by table, beside what is predicted for their true counts.
`plain` and `plain_shortest` have unrounded ends and are predicted by the table of coverage by true count over sigma, that is by
the integral over the noise that the table has at eight points, at each cell's own true count over sigma (`table`,
`table_shortest`). `equal` and `shortest` have ends rounded outwards, as they are published; `expected` and
`expected_shortest` are the same integrals with the same rounding. Sums in every twentieth repetition.
Ratios: K fits a repetition, drawn from all; root mean squared errors of estimate and raw ratio against the true ratio of the
truncated counts; groups whose true ratio is outside its bounds are left out of the errors.
With --truth the true counts (before they are multiplied) are stored in a file, and read from there when it exists. --set changes
settings of the estimates that are timed.

    python benchmarks/sdhc_estimates.py --write sdhc-by-true-count

writes the table of coverage by true count over sigma of docs/sdhc_estimates.md, which follows from integration alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from censafe.estimation.sdhc.counts import GroupedCells, estimate_counts, grouped
from censafe.estimation.sdhc.posteriors import shortest_interval, truncated_mean, truncated_quantile
from censafe.estimation.sdhc.ratios.intervals import RatioModel
from censafe.estimation.sdhc.ratios.quadrature import estimate_joint, estimate_single
from censafe.estimation.sdhc.settings import CountRules, RatioRules, parse_estimate_settings
from censafe.model.sdhc import EstimateSettings, NoisyCells
from censafe.products.phsafe.estimates import EstimatePart, estimate_rules, write_estimates
from censafe.products.phsafe.release import phsafe_codebook
from censafe.publication.tables.sdhc import StatementInput, find_folders, read_noisy_table
from harness import ROOT, TEST, censafe, markdown, parser_of, population, report, write_table

Floats = NDArray[np.float64]
SETTINGS = EstimateSettings()
FAR = 8.0
GRID = 4000
COLUMNS = ("region_type", "region", "iteration", "cell", "count", "variance", "geometric")
MARGIN = 1.6448536269514722
SPARSE = 20
BY_TRUE_COUNT, PAGE, SCRIPT = "sdhc-by-true-count", "docs/sdhc_estimates.md", "benchmarks/sdhc_estimates.py"
SIMULATED = {
    0.0: (0.000, 0.909),
    0.25: (0.869, 0.931),
    0.5: (0.925, 0.941),
    1.0: (0.945, 0.941),
    1.5: (0.939, 0.910),
    2.0: (0.924, 0.880),
    3.0: (0.905, 0.874),
    5.0: (0.900, 0.899),
}
"""Coverage of equal-tailed and of shortest intervals in the specification's simulation, by true count over sigma."""


def truths(folder: Path, arguments: argparse.Namespace) -> dict[str, NoisyCells]:
    """Counts of the private path, with the production variances and without noise."""
    path = arguments.truth
    if path is not None and path.exists():
        with np.load(path) as stored:
            return {
                table: NoisyCells(table, **{name: stored[f"{table}/{name}"] for name in COLUMNS})
                for table in dict.fromkeys(name.split("/")[0] for name in stored.files)
            }
    data, run = folder / "data", folder / "run"
    population(data, persons=arguments.persons, seed=arguments.seed, layout="phsafe")
    common = ("phsafe", "sdhc-us", str(data))
    truth = folder / "truth"
    censafe("run", *common, str(run), "--set", "reader=csv", *TEST)
    censafe(
        "truth", *common, str(truth), "--set", "reader=csv", "--confidential", "--private-path", "--quiet"
    )
    exact = {}
    names = tuple(estimate_rules().sources)
    for table, files in find_folders(run, names)[""].items():
        noisy, _ = read_noisy_table(table, files)
        exact[table] = replace(noisy, count=_exact(truth, table, noisy))
    if path is not None:
        columns = {
            f"{table}/{name}": getattr(cells, name) for table, cells in exact.items() for name in COLUMNS
        }
        np.savez_compressed(path, **columns)
    return exact


def _exact(truth: Path, table: str, noisy: NoisyCells) -> NDArray[np.int64]:
    """True counts in the order of the noisy rows; rows that the truth leaves out are 0."""
    path = next(truth.rglob(f"{table}/*.csv"))
    lines = path.read_text(encoding="utf-8").splitlines()
    header = lines[0].split("|")
    at = {name: header.index(name) for name in header}
    exact = {}
    for line in lines[1:]:
        row = line.split("|")
        iteration = row[at["ITERATION_CODE"]] if "ITERATION_CODE" in at else "*"
        key = (
            row[at["REGION_TYPE"]],
            row[at["REGION_ID"]],
            iteration,
            int(row[at[f"{table.upper()}_DATA_CELL"]]),
        )
        exact[key] = int(row[at["COUNT"]])
    keys = zip(
        noisy.region_type.tolist(),
        noisy.region.tolist(),
        noisy.iteration.tolist(),
        noisy.cell.tolist(),
        strict=True,
    )
    return np.array([exact.get(key, 0) for key in keys], np.int64)


Cells = TypeVar("Cells", GroupedCells, NoisyCells)


def with_noise(cells: Cells, rng: np.random.Generator) -> Cells:
    noise = np.rint(rng.normal(size=cells.count.shape) * np.sqrt(cells.variance)).astype(np.int64)
    return replace(cells, count=cells.count + noise)


def seconds(exact: dict[str, NoisyCells], folder: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """Wall and processor seconds of one whole set of estimates, written."""
    rng = np.random.default_rng(arguments.seed)
    noisy = {table: with_noise(cells, rng) for table, cells in exact.items()}
    wall, processor = time.perf_counter(), time.process_time()
    settings = parse_estimate_settings(dict(pair.split("=", 1) for pair in arguments.set))
    about = StatementInput(settings, phsafe_codebook(), {}, None)
    write_estimates(folder / "estimates", [EstimatePart("", noisy)], about, workers=arguments.workers)
    return time.perf_counter() - wall, time.process_time() - processor


def inside(truth: Floats, z: Floats, sigma: Floats) -> list[NDArray[np.bool_]]:
    """Whether intervals hold the truth: equal-tailed and shortest, each with its own ends and with rounded ones."""
    ends = (truncated_quantile(0.05, z, sigma**2), truncated_quantile(0.95, z, sigma**2))
    covered = []
    for low, high in (ends, shortest_interval(0.9, z, sigma**2)):
        covered += [(low <= truth) & (truth <= high), (np.floor(low) <= truth) & (truth <= np.ceil(high))]
    return covered


def expected_coverage(truth: Floats, sigma: Floats) -> Floats:
    """Mean coverage that integration over the noise predicts for the true counts, in the order of `inside`."""
    totals = np.zeros(4)
    pairs, number = np.unique(np.stack([truth.ravel(), sigma.ravel()]), axis=1, return_counts=True)
    far = pairs[0] > FAR * pairs[1]
    for count_true, wide, count in zip(pairs[0][~far], pairs[1][~far], number[~far], strict=True):
        fine = (np.arange(GRID) + 0.5) / GRID * 2 * FAR - FAR  # the table's own integral has no whole numbers
        whole_numbers = np.arange(-int(FAR * wide), int(FAR * wide) + 1)
        for kind, noise in ((0, fine * wide), (1, whole_numbers)):
            weight = np.exp(-(noise**2) / (2 * wide**2))
            covered = inside(count_true, count_true + noise, wide)
            totals[[kind, 2 + kind]] += (
                count * np.array([weight @ covered[kind], weight @ covered[2 + kind]]) / weight.sum()
            )
    # far from 0 a count is covered when the whole noise is at most the margin of error, rounded up
    reach = (np.ceil(MARGIN * pairs[1][far]) + 0.5) / pairs[1][far]
    rounded = float(number[far] @ (2 * ndtr(reach) - 1))
    totals += np.array([0.9 * number[far].sum(), rounded] * 2)
    return totals / truth.size


def by_true_count() -> list[str]:
    """Lines of the table of coverage, length, bias and error by true count over sigma, ends not rounded."""
    noise = (np.arange(10 * GRID) + 0.5) / GRID / 5 * FAR - FAR
    weight = np.exp(-(noise**2) / 2)
    weight /= weight.sum()
    rows = []
    for true, simulated in SIMULATED.items():
        z, row = true + noise, [f"{true:g}"]
        equal = truncated_quantile(0.05, z, 1.0), truncated_quantile(0.95, z, 1.0)
        for (low, high), known in zip((equal, shortest_interval(0.9, z, 1.0)), simulated, strict=True):
            row.append(f"{weight @ ((low <= true) & (true <= high)):.4f} ({known:.3f})")
            row.append(f"{weight @ (high - low):.2f}")
        error = truncated_mean(z, 1.0) - true
        rows.append([*row, f"{weight @ error:.3f}", f"{(weight @ error**2) ** 0.5:.3f}"])
    header = ["true count / sigma"]
    header += [name for interval in ("equal-tailed", "shortest") for name in (interval, "length / sigma")]
    return markdown([*header, "bias / sigma", "root mean squared error / sigma (noisy: 1)"], rows)


def counts(
    exact: NoisyCells, rules: CountRules, repetitions: int, rng: np.random.Generator
) -> dict[str, Any]:
    cells = grouped(exact, rules.basis)
    truth, sigma = cells.count.astype(np.float64), np.sqrt(cells.variance)
    expected = expected_coverage(truth, sigma)
    tallies, noisy_tally = np.zeros(4), 0.0
    sums: list[float] = []
    off, off_noisy, small = [], [], []
    near = truth < sigma
    for repetition in range(repetitions):
        drawn = with_noise(cells, rng)
        z = drawn.count.astype(np.float64)
        tallies += [np.mean(covered) for covered in inside(truth, z, sigma)]
        noisy_tally += float(np.mean(np.abs(z - truth) <= MARGIN * sigma))
        error = np.rint(truncated_mean(z, sigma**2)) - truth
        off.append(np.mean((error / sigma) ** 2))
        off_noisy.append(np.mean(((z - truth) / sigma) ** 2))
        if near.any():
            small.append(np.mean((error / sigma)[near]))
        if repetition % SPARSE == 0:
            estimates = estimate_counts(drawn, rules, SETTINGS)
            of = [
                cells.count[:, [cells.cells.index(c) for c in group]].sum(axis=1)
                for group in rules.margins.values()
            ]
            true_sums = np.stack(of, axis=1)
            width = estimates.sums
            sums.append(
                float(
                    np.mean(
                        (estimates.low[:, :width] <= true_sums) & (true_sums <= estimates.high[:, :width])
                    )
                )
            )
    plain, equal, plain_short, short = (float(tally) for tally in tallies / repetitions)
    return {
        "table": rules.table,
        "cells": truth.size,
        "plain": plain,
        "table_plain": expected[0],
        "plain_shortest": plain_short,
        "table_shortest": expected[2],
        "equal": equal,
        "expected": expected[1],
        "shortest": short,
        "expected_shortest": expected[3],
        "coverage_noisy": noisy_tally / repetitions,
        "sums": float(np.mean(sums)),
        "bias_small": float(np.mean(small)) if small else float("nan"),
        "rmse": float(np.sqrt(np.mean(off))),
        "rmse_noisy": float(np.sqrt(np.mean(off_noisy))),
    }


def ratios(
    exact: dict[str, NoisyCells], rules: RatioRules, arguments: argparse.Namespace, rng: np.random.Generator
) -> dict[str, Any]:
    top, bottom = (
        grouped(exact[rules.numerator], rules.parts),
        grouped(exact[rules.denominator], rules.denominators),
    )
    model = RatioModel(rules.lowest)
    errors, raw, covered, lengths, raw_out, skipped = [], [], [], [], [], 0
    for _ in range(arguments.repetitions):
        rows = rng.choice(len(top.keys), arguments.ratios, replace=False)
        for row in rows.tolist():
            truth_num, truth_den = top.count[row].sum(), bottom.count[row].sum()
            if truth_den < 1 or not rules.lowest <= truth_num / truth_den <= model.largest:
                skipped += 1
                continue
            num, den = with_noise(top.rows([row]), rng), with_noise(bottom.rows([row]), rng)
            pairs = [(float(z), float(v)) for z, v in zip(num.count[0], num.variance[0], strict=True)]
            below = [(float(z), float(v)) for z, v in zip(den.count[0], den.variance[0], strict=True)]
            if rules.form == "shared":
                estimate = estimate_joint(pairs[0], pairs[1], below[0], model)[0]
            else:
                estimate = estimate_single(
                    (pairs[0][0] + pairs[1][0], pairs[0][1] + pairs[1][1]),
                    (below[0][0] + below[1][0], below[0][1] + below[1][1]),
                    model,
                )
            truth = truth_num / truth_den
            noisy_den = float(den.count.sum())
            raw_ratio = float(num.count.sum()) / noisy_den if noisy_den else float("nan")
            errors.append(estimate.ratio - truth)
            raw.append(raw_ratio - truth)
            raw_out.append(not rules.lowest <= raw_ratio <= model.largest)
            covered.append(estimate.low <= truth <= estimate.high)
            lengths.append(estimate.high - estimate.low)
    return {
        "table": rules.table,
        "fits": len(errors),
        "outside": skipped / (skipped + len(errors)),
        "coverage": float(np.mean(covered)),
        "rmse": float(np.sqrt(np.mean(np.square(errors)))),
        "rmse_raw": float(np.sqrt(np.nanmean(np.square(raw)))),
        "raw_outside": float(np.mean(raw_out)),
        "length": float(np.mean(lengths)),
    }


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    rng, rules, repetitions = np.random.default_rng(arguments.seed), estimate_rules(), arguments.repetitions
    with TemporaryDirectory(dir=folder) as scratch:
        exact = {
            table: replace(cells, count=cells.count * arguments.scale)
            for table, cells in truths(Path(scratch), arguments).items()
        }
        wall, processor = seconds(exact, Path(scratch), arguments)
    return {
        "persons": arguments.persons * arguments.scale,
        "seconds": round(wall, 2),
        "processor_seconds": round(processor, 2),
        "workers": arguments.workers,
        "repetitions": repetitions,
        "counts": [counts(exact[rule.table], rule, repetitions, rng) for rule in rules.counts if repetitions],
        "ratios": [ratios(exact, rule, arguments, rng) for rule in rules.ratios if repetitions],
    }


def text(measured: dict[str, Any]) -> Iterator[str]:
    yield (
        "{persons:,} persons: all tables of nation and states in {seconds} s "
        "({processor_seconds} s of processor time, {workers} threads)"
    ).format(**measured)
    for rows in (measured["counts"], measured["ratios"]):
        if rows:
            yield " | ".join(rows[0])
        for row in rows:
            yield " | ".join(
                f"{value:.3f}" if isinstance(value, float) else f"{value}" for value in row.values()
            )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=331_000)
    parser.add_argument("--scale", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--ratios", type=int, default=50, help="fits a repetition and table")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--truth", type=Path, help="file that keeps the true counts")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    if arguments.write == BY_TRUE_COUNT:
        write_table(ROOT / PAGE, BY_TRUE_COUNT, SCRIPT, by_true_count())
        return
    report(arguments, measure, text)


if __name__ == "__main__":
    main()
