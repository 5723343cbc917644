"""CONFIDENTIAL. TopDown, block-by-block noise and raw noisy counts against the truth, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas import ComparedAreas, level_areas
from censafe.evaluation.counts.accuracy import accuracy
from censafe.evaluation.counts.cells import MatchedCells, match_runs
from censafe.evaluation.counts.comparators import block_by_block
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.topdown.noise import noisy_blocks, noisy_level
from censafe.evaluation.topdown.runs import EvaluatedPopulation, compared_characteristics
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.intake.equations import has_exact_sums

METHODS: Final[Mapping[str, str]] = {
    "topdown": "TopDown",
    "noisy": "noisy counts of the level",
    "blocks": "blocks one by one, fitted",
    "blocks_noise": "noisy blocks, added up",
}
"""Names of the methods, and their words."""
SHORT: Final[Mapping[str, str]] = {
    "topdown": "TopDown",
    "noisy": "Noisy counts",
    "blocks": "Fitted blocks",
    "blocks_noise": "Noisy blocks",
}
"""The same for the head of a table."""

_ONE_FIT: Final = 2_000_000  # blocks times cells; a cell takes about 25 microseconds
_NO_FITS: Final = 50_000_000
_FEWEST: Final = 10  # areas, below which no slope is fitted


@dataclass(frozen=True, eq=False)
class Compared:
    """CONFIDENTIAL. Counts of one characteristic at one level by every method, and the truth.

    Args:
        cells: by method, one entry a run.
    """

    histogram: str
    level: str
    characteristic: str
    cells: Mapping[str, tuple[MatchedCells, ...]]


def compare_methods(
    population: EvaluatedPopulation,
    histogram: MeasuredHistogram,
    runs: Sequence[PublishedRun],
    *,
    noise_runs: int,
    seed: int,
    lists: Sequence[ComparedAreas] = (),
) -> list[Compared]:
    """Bring all methods together for every characteristic and level of one histogram."""
    pair = population.pairs[histogram.name].with_runs(runs)
    blocks = pair.with_runs(_fitted_blocks(population, histogram, pair, noise_runs, seed))
    comparisons = []
    for characteristic in compared_characteristics(histogram):
        added = [
            noisy_blocks(population, histogram, characteristic.query, seed + run) for run in range(noise_runs)
        ]
        for level in population.levels:
            areas = level_areas(pair.spine, level)
            noisy = [
                noisy_level(population, histogram, level, characteristic.query, seed + run)
                for run in range(noise_runs)
            ]
            cells = {
                "topdown": match_runs(pair, areas, characteristic.query),
                "noisy": tuple(cell for cell in noisy if cell is not None),
                "blocks": match_runs(blocks, areas, characteristic.query),
                "blocks_noise": tuple(sums[level] for sums in added if sums),
            }
            comparisons.append(Compared(histogram.name, level, characteristic.query, cells))
        for areas in lists:
            sums = {
                "topdown": match_runs(pair, areas, characteristic.query),
                "blocks": match_runs(blocks, areas, characteristic.query),
            }
            comparisons.append(Compared(histogram.name, areas.level, characteristic.query, sums))
    return comparisons


def _fitted_blocks(
    population: EvaluatedPopulation, histogram: MeasuredHistogram, pair: Pair, runs: int, seed: int
) -> list[PublishedRun]:
    """Draws of fitted blocks: fewer where blocks are many and large, since each is a fit of its own."""
    work = pair.spine.leaf.nodes * pair.schema.schema.cells
    if work > _NO_FITS or has_exact_sums(histogram):
        return []
    facilities = population.loaded.facts.facilities
    return [
        block_by_block(
            pair,
            population.config,
            histogram.name,
            seed=seed + run,
            run_id=f"blocks/{run + 1}",
            facilities=facilities,
        )
        for run in range(1 if work > _ONE_FIT else runs)
    ]


def accuracy_frame(compared: Sequence[Compared]) -> pa.Table:
    """Every error metric of every method, long; the suite is ``histogram/method``."""
    return stacked(
        [
            accuracy(cells, suite=f"{comparison.histogram}/{method}")
            for comparison in compared
            for method, cells in comparison.cells.items()
            if cells
        ]
    )


def growth_frames(pair: Pair, compared: Sequence[Compared]) -> tuple[pa.Table, pa.Table]:
    """How the error of totals depends on the number of blocks of an area."""
    bins, slopes = [], []
    for comparison in compared:
        if comparison.characteristic != "total" or comparison.level not in pair.spine.names[1:-1]:
            continue
        number = np.bincount(level_areas(pair.spine, comparison.level).of_block)
        for method, cells in comparison.cells.items():
            if not cells:
                continue
            errors = np.zeros((len(cells), len(number)), np.int64)
            for run, own in enumerate(cells):
                np.add.at(errors[run], own.area_of_entry, own.residual)
            key = {"histogram": comparison.histogram, "method": method, "level": comparison.level}
            bins += [{**key, **row} for row in _bins(number, errors)]
            slope = _slope(number, (errors.astype(float) ** 2).mean(axis=0))
            slopes.append({**key, "n_areas": len(number), "slope": slope})
    return pa.Table.from_pylist(bins, schema=_BINS), pa.Table.from_pylist(slopes, schema=_SLOPES)


_PLACE: Final = [(name, pa.string()) for name in ("histogram", "method", "level")]
_BINS: Final = pa.schema(
    [
        *_PLACE,
        ("blocks_low", pa.int64()),
        ("blocks_high", pa.int64()),
        ("blocks_mean", pa.float64()),
        ("n_areas", pa.int64()),
        ("rmse", pa.float64()),
        ("mean_ae", pa.float64()),
    ]
)
_SLOPES: Final = pa.schema([*_PLACE, ("n_areas", pa.int64()), ("slope", pa.float64())])


def _bins(number: NDArray[np.int64], errors: NDArray[np.int64]) -> list[dict[str, float]]:
    rows = []
    place = np.floor(np.log2(np.maximum(number, 1))).astype(int)
    for power in np.unique(place).tolist():
        inside = place == power
        chosen = errors[:, inside].astype(float)
        rows.append(
            {
                "blocks_low": int(number[inside].min()),
                "blocks_high": int(number[inside].max()),
                "blocks_mean": float(number[inside].mean()),
                "n_areas": int(inside.sum()),
                "rmse": float(np.sqrt((chosen**2).mean())),
                "mean_ae": float(np.abs(chosen).mean()),
            }
        )
    return rows


def _slope(number: NDArray[np.int64], squares: NDArray[np.float64]) -> float:
    """Slope of log(expected squared error) on log(blocks): by maximum likelihood for squares that are chi-square about it."""
    use = number > 0
    if use.sum() < _FEWEST or len(np.unique(number[use])) < 2 or not squares[use].any():
        return float("nan")
    logs, values = np.log(number[use]), squares[use]
    slope = level = 0.0
    level = float(np.log(values.mean()))
    design = np.column_stack([np.ones(len(logs)), logs - logs.mean()])
    for _ in range(100):
        fitted = np.exp(np.clip(level + slope * design[:, 1], -30, 60))
        step = np.linalg.solve(design.T @ design, design.T @ (values / fitted - 1.0))
        step = np.clip(step, -1.0, 1.0)
        level, slope = level + step[0], slope + step[1]
        if np.abs(step).max() < 1e-10:
            break
    return float(slope)
