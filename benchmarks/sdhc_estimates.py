"""Seconds of all S-DHC estimates of the nation, and how they do against known true counts.

    python benchmarks/sdhc_estimates.py [--json] [--persons N] [--scale S] [--repetitions R] [--ratios K] [--seed S] [--workers W]

True counts are those of a synthetic population of N persons in 51 states (as PHSafe's private path counts them, truncated to
tau), times S, so that 331,000 persons times 1,000 have the size of the nation. Noise with the production variances is drawn R times.

Speed: one set of noisy tables, nation and states, is estimated as `censafe estimate` does, files included.
Coverage: share of true counts of basis cells within their 90% intervals, by table, beside what integration over the noise predicts
for their true counts (`expected`; `expected_table` without the rounding of the ends, as in the published table by true count over
sigma). Sums in every twentieth repetition.
Ratios: K fits a repetition, drawn from all; root mean squared errors of estimate and raw ratio against the true ratio of the
truncated counts; groups whose true ratio is outside its bounds are left out of the errors.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from censafe.estimation.sdhc.cells import GroupedCells, grouped
from censafe.estimation.sdhc.counts import estimate_counts
from censafe.estimation.sdhc.ratio_types import RatioModel
from censafe.estimation.sdhc.ratios import estimate_joint, estimate_single
from censafe.estimation.sdhc.rules import CountRules, RatioRules
from censafe.estimation.sdhc.truncated_normal import shortest_interval, truncated_mean, truncated_quantile
from censafe.model.sdhc_cells import NoisyCells
from censafe.model.sdhc_settings import EstimateSettings
from censafe.products.phsafe.estimate_rules import estimate_rules
from censafe.products.phsafe.estimates import EstimatePart, EstimateSources, write_estimates
from censafe.products.phsafe.release import phsafe_codebook
from censafe.publication.noisy_tables import find_folders, read_noisy_table
from child import censafe, population

Floats = NDArray[np.float64]
SETTINGS = EstimateSettings()
FAR = 8.0
MARGIN = 1.6448536269514722
SPARSE = 20


@dataclass(frozen=True)
class CellResult:
    table: str
    cells: int
    coverage: float
    expected: float
    expected_table: float
    shortest: float
    expected_shortest: float
    coverage_noisy: float
    sums: float
    bias_small: float
    rmse: float
    rmse_noisy: float


@dataclass(frozen=True)
class RatioResult:
    table: str
    fits: int
    outside: float
    coverage: float
    rmse: float
    rmse_raw: float
    raw_outside: float
    length: float


def truths(folder: Path, arguments: argparse.Namespace) -> dict[str, NoisyCells]:
    """Counts of the private path, with the production variances and without noise."""
    data, run = folder / "data", folder / "run"
    population(data, persons=arguments.persons, seed=arguments.seed, file_format="parquet", layout="phsafe")
    common = ["phsafe", "sdhc-us", str(data)]
    censafe(["run", *common, str(run), "--set", "reader=csv", "--test-key", "1", "--quiet"])
    truth = folder / "truth"
    censafe(
        ["truth", *common, str(truth), "--set", "reader=csv", "--confidential", "--private-path", "--quiet"]
    )
    found = {}
    names = tuple(estimate_rules().sources)
    for table, files in find_folders(run, names)[""].items():
        noisy, _ = read_noisy_table(table, files)
        found[table] = replace(noisy, count=_exact(truth, table, noisy) * arguments.scale)
    return found


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


def with_noise(cells: GroupedCells, rng: np.random.Generator) -> GroupedCells:
    noise = np.rint(rng.normal(size=cells.count.shape) * np.sqrt(cells.variance)).astype(np.int64)
    return replace(cells, count=cells.count + noise)


def seconds(exact: dict[str, NoisyCells], folder: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """Wall and processor seconds of one whole set of estimates, written."""
    rng = np.random.default_rng(arguments.seed)
    noisy = {
        table: replace(
            cells,
            count=cells.count
            + np.rint(rng.normal(size=cells.count.shape) * np.sqrt(cells.variance)).astype(np.int64),
        )
        for table, cells in exact.items()
    }
    sources = EstimateSources([EstimatePart("", noisy)], phsafe_codebook(), {}, None)
    wall, processor = time.perf_counter(), time.process_time()
    write_estimates(folder / "estimates", sources, SETTINGS, workers=arguments.workers)
    return time.perf_counter() - wall, time.process_time() - processor


def expected_coverage(truth: Floats, sigma: Floats) -> tuple[float, float, float]:
    """Mean coverage that integration over the noise predicts: both intervals with rounded ends, equal-tailed without."""
    totals = np.zeros(3)
    pairs, number = np.unique(np.stack([truth.ravel(), sigma.ravel()]), axis=1, return_counts=True)
    far = pairs[0] > FAR * pairs[1]
    for one, wide, count in zip(pairs[0][~far], pairs[1][~far], number[~far], strict=True):
        noise = np.arange(-int(FAR * wide), int(FAR * wide) + 1, max(int(wide / 25), 1))
        weight = np.exp(-(noise**2) / (2 * wide**2))
        z = one + noise
        low, high = truncated_quantile(0.05, z, wide**2), truncated_quantile(0.95, z, wide**2)
        near, end = shortest_interval(0.9, z, wide**2)
        held = (
            (np.floor(low) <= one) & (one <= np.ceil(high)),
            (np.floor(near) <= one) & (one <= np.ceil(end)),
            (low <= one) & (one <= high),
        )
        totals += count * np.array([weight @ inside for inside in held]) / weight.sum()
    # far from 0 a count is covered when the whole noise is at most the margin of error, rounded up
    reach = (np.ceil(MARGIN * pairs[1][far]) + 0.5) / pairs[1][far]
    rounded = float(number[far] @ (2 * ndtr(reach) - 1))
    totals += np.array([rounded, rounded, 0.9 * number[far].sum()])
    return float(totals[0] / truth.size), float(totals[1] / truth.size), float(totals[2] / truth.size)


def counts(exact: NoisyCells, rules: CountRules, repetitions: int, rng: np.random.Generator) -> CellResult:
    cells = grouped(exact, rules.basis)
    truth, sigma = cells.count.astype(np.float64), np.sqrt(cells.variance)
    equal, short, plain = expected_coverage(truth, sigma)
    tallies = np.zeros(3)
    sums: list[float] = []
    off, off_noisy, small = [], [], []
    near = truth < sigma
    for repetition in range(repetitions):
        drawn = with_noise(cells, rng)
        z = drawn.count.astype(np.float64)
        low, high = (
            np.floor(truncated_quantile(0.05, z, sigma**2)),
            np.ceil(truncated_quantile(0.95, z, sigma**2)),
        )
        tallies[0] += np.mean((low <= truth) & (truth <= high))
        low, high = shortest_interval(0.9, z, sigma**2)
        tallies[1] += np.mean((np.floor(low) <= truth) & (truth <= np.ceil(high)))
        tallies[2] += np.mean(np.abs(z - truth) <= MARGIN * sigma)
        error = np.rint(truncated_mean(z, sigma**2)) - truth
        off.append(np.mean((error / sigma) ** 2))
        off_noisy.append(np.mean(((z - truth) / sigma) ** 2))
        if near.any():
            small.append(np.mean((error / sigma)[near]))
        if repetition % SPARSE == 0:
            found = estimate_counts(drawn, rules, SETTINGS)
            of = [
                cells.count[:, [cells.cells.index(c) for c in group]].sum(axis=1)
                for group in rules.margins.values()
            ]
            held = np.stack(of, axis=1)
            width = found.sums
            sums.append(float(np.mean((found.low[:, :width] <= held) & (held <= found.high[:, :width]))))
    equal_found, short_found, noisy_found = tallies / repetitions
    return CellResult(
        rules.table, truth.size, equal_found, equal, plain, short_found, short, noisy_found,
        float(np.mean(sums)), float(np.mean(small)) if small else float("nan"),
        float(np.sqrt(np.mean(off))), float(np.sqrt(np.mean(off_noisy))),
    )  # fmt: skip


def ratios(
    exact: dict[str, NoisyCells], rules: RatioRules, arguments: argparse.Namespace, rng: np.random.Generator
) -> RatioResult:
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
                found = estimate_joint(pairs[0], pairs[1], below[0], model)[0]
            else:
                found = estimate_single(
                    (pairs[0][0] + pairs[1][0], pairs[0][1] + pairs[1][1]),
                    (below[0][0] + below[1][0], below[0][1] + below[1][1]),
                    model,
                )
            truth = truth_num / truth_den
            noisy_den = float(den.count.sum())
            raw_ratio = float(num.count.sum()) / noisy_den if noisy_den else float("nan")
            errors.append(found.ratio - truth)
            raw.append(raw_ratio - truth)
            raw_out.append(not rules.lowest <= raw_ratio <= model.largest)
            covered.append(found.low <= truth <= found.high)
            lengths.append(found.high - found.low)
    return RatioResult(
        rules.table, len(errors), skipped / (skipped + len(errors)), float(np.mean(covered)),
        float(np.sqrt(np.mean(np.square(errors)))), float(np.sqrt(np.nanmean(np.square(raw)))),
        float(np.mean(raw_out)), float(np.mean(lengths)),
    )  # fmt: skip


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(arguments.seed)
    rules = estimate_rules()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        exact = truths(folder, arguments)
        wall, processor = seconds(exact, folder, arguments)
    return {
        "persons": arguments.persons * arguments.scale,
        "seconds": round(wall, 2),
        "processor_seconds": round(processor, 2),
        "workers": arguments.workers,
        "repetitions": arguments.repetitions,
        "counts": [
            asdict(counts(exact[rule.table], rule, arguments.repetitions, rng)) for rule in rules.counts
        ]
        if arguments.repetitions
        else [],
        "ratios": [asdict(ratios(exact, rule, arguments, rng)) for rule in rules.ratios]
        if arguments.repetitions
        else [],
    }


def text(found: dict[str, Any]) -> str:
    lines = [
        f"{found['persons']:,} persons: all tables of nation and states in {found['seconds']} s "
        f"({found['processor_seconds']} s of processor time, {found['workers']} threads)"
    ]
    for kind in ("counts", "ratios"):
        if not found[kind]:
            continue
        names = list(found[kind][0])
        lines.append(" | ".join(names))
        lines += [
            " | ".join(
                f"{row[name]:.3f}" if isinstance(row[name], float) else f"{row[name]}" for name in names
            )
            for row in found[kind]
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--persons", type=int, default=331_000)
    parser.add_argument("--scale", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--ratios", type=int, default=50, help="fits a repetition and table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    found = measure(arguments)
    print(json.dumps(found) if arguments.json else text(found))


if __name__ == "__main__":
    main()
