"""CONFIDENTIAL. Comparators: blocks that are protected one by one with the whole budget, and a simple random sample of persons."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
from numba import boolean, float64, int32, int64, void
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.evaluation.topdown.noise import answers_of, geounit_chunks, leaf_loss
from censafe.model.compiled import compiled
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.measure.claims import fingerprint
from censafe.privacy.noise.sampler import add_noise
from censafe.privacy.noise.variance import exact_variance
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import noise_law

_MOST: Final = 999_999_999  # persons that numpy's law of a sample takes


def sample_runs(
    pair: Pair, rate: Fraction, *, replicates: int, seed: int, mode: LossMode = "corrected"
) -> tuple[PublishedRun, ...]:
    """Independent samples without replacement, drawn from the exact law of the cell counts.

    Source: Petti & Flaxman (2020); multivariate hypergeometric law.
    """
    if not 0 < rate <= 1 or replicates < 1:
        raise UsageError("the rate of a sample must be above 0 and at most 1, with one replicate or more")
    truth = pair.confidential
    persons = int(truth.count.sum(dtype=np.int64))
    if persons > _MOST:
        raise UsageError(f"samples are drawn from at most {_MOST:,} persons; sample the states one by one")
    size = round(rate * persons)
    runs = []
    streams = np.random.SeedSequence(seed).spawn(replicates)
    for number, stream in enumerate(streams if mode == "corrected" else streams[:1] * replicates, start=1):
        rng = np.random.default_rng(stream)
        drawn = rng.multivariate_hypergeometric(truth.count, size, method="marginals")
        positive = drawn > 0
        ends = np.append(0, np.cumsum(positive))
        histograms = SparseLevel(
            truth.geounits,
            ends[truth.node_ptr].astype(np.int64),
            truth.cell[positive],
            drawn[positive].astype(np.int32),
        )
        runs.append(PublishedRun(f"sample {number}", histograms, 1 / rate, f"srs {rate}"))
    return tuple(runs)


def matching_rates(topdown: pa.Table, srs: pa.Table) -> pa.Table:
    """The sampling rate that is most like each budget: nearest by the log ratios of median errors and of privacy losses.

    The distance is the sum of both absolute log ratios. Of equal ones the smaller rate is taken.

    Example:
        >>> one = pa.table({"epsilon": [1.0], "median_ae": [6.0], "epl": [0.2]})
        >>> two = pa.table({"sample_pct": [5, 50], "median_ae": [19.0, 5.0], "epl": [0.03, 0.2]})
        >>> matching_rates(one, two).column("sample_pct").to_pylist()
        [50.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        budget, rate = (
            [np.log(np.asarray(table.column(name), np.float64)) for name in ("median_ae", "epl")]
            for table in (topdown, srs)
        )
        distance = sum(np.abs(one[:, None] - two[None, :]) for one, two in zip(budget, rate, strict=True))
    distance = np.where(np.isfinite(distance), distance, np.inf)
    percents = np.asarray(srs.column("sample_pct"), np.float64)
    order = np.argsort(percents, kind="stable")
    nearest = order[distance[:, order].argmin(axis=1)]
    smallest = distance[np.arange(len(nearest)), nearest]
    known = np.isfinite(smallest)
    return pa.table(
        {
            "epsilon": np.asarray(topdown.column("epsilon"), np.float64),
            "sample_pct": np.where(known, percents[nearest], np.nan),
            "distance": np.where(known, smallest, np.nan),
        }
    )


@compiled(
    void(
        int64[:, ::1],
        int32[:, ::1],
        int64[::1],
        float64[::1],
        boolean[:, ::1],
        float64,
        int64,
        int32[:, ::1],
    )
)
def fit_blocks(noisy, label, first, weight, allowed, tolerance, sweeps, out):  # type: ignore[no-untyped-def]  # noqa: C901
    """Least squares with weights, cell by cell in turn until no cell moves, then the largest fractions are rounded up.

    Args:
        noisy: answers of all queries, shape (blocks, answers).
        label: answer of every cell within its query, shape (queries, cells).
        first: where the answers of each query start, shape (queries,).
        weight: of the answers of each query, shape (queries,).
        allowed: cells that may hold records, shape (blocks, cells).
        out: receives whole counts whose sum is that of the fit, rounded; shape (blocks, cells).
    """
    blocks, answers = noisy.shape
    queries, cells = label.shape
    curvature = 0.0
    for query in range(queries):
        curvature += weight[query]
    apart = np.empty(answers)
    count = np.empty(cells)
    fraction = np.empty(cells)
    for block in range(blocks):
        for answer in range(answers):
            apart[answer] = -noisy[block, answer]
        count[:] = 0.0
        for _ in range(sweeps):
            moved = 0.0
            for cell in range(cells):
                if not allowed[block, cell]:
                    continue
                slope = 0.0
                for query in range(queries):
                    slope += weight[query] * apart[first[query] + label[query, cell]]
                value = max(0.0, count[cell] - slope / curvature)
                step = value - count[cell]
                if step != 0.0:
                    count[cell] = value
                    for query in range(queries):
                        apart[first[query] + label[query, cell]] += step
                    moved = max(moved, abs(step))
            if moved < tolerance:
                break
        total = 0.0
        placed = 0
        for cell in range(cells):
            floor = int(count[cell])
            out[block, cell] = floor
            fraction[cell] = floor - count[cell]
            total += count[cell]
            placed += floor
        more = int(total + 0.5) - placed
        if more > 0:
            order = np.argsort(fraction, kind="mergesort")
            for place in range(more):
                out[block, order[place]] += 1


_TOLERANCE: Final = 1e-3
_SWEEPS: Final = 1_000
_LEAST_VARIANCE: Final = 1e-4
_PART: Final = "blocks one by one"


def block_by_block(
    pair: Pair,
    config: TopdownConfig,
    histogram: str,
    *,
    seed: int,
    run_id: str = "",
    facilities: NDArray[np.integer] | None = None,
) -> PublishedRun:
    """Each block's queries with the whole budget of the histogram, fitted to whole counts of zero or more, block alone.

    The queries and their shares are those of the lowest level; the budget is what all levels of a run get together. Answers are
    fitted by least squares with one over the variance as weight (to a thousandth of a record), then the largest fractions are
    rounded up so that the total is the nearest whole number. Every block is estimated on its own.

    Args:
        facilities: published facilities, shape (blocks, kinds), as the readers give them: kinds without any have no persons. Without
            them every kind may hold records.
    """
    measured = config.histogram(histogram)
    loss = leaf_loss(config, measured)
    shares = measured.query_shares[config.run_levels[-1].name]
    queries = [measured.schema.query(text) for text in shares]
    laws = [noise_law(config.definition, loss * share) for share in shares.values()]
    label = np.ascontiguousarray(np.stack([query.label for query in queries]))
    ends = np.cumsum([query.answers for query in queries])
    starts = (ends - [query.answers for query in queries]).astype(np.int64)
    weight = np.array([1 / max(exact_variance(law), _LEAST_VARIANCE) for law in laws])
    exact, cells = pair.confidential, measured.schema.schema.cells
    nodes, fitted_cells, counts = [], [], []
    with TestKey(seed) as run_key:
        key = derive_part_key(run_key, "", b"evaluation", _PART)
    try:
        level = fingerprint(exact.node_ptr, exact.cell, exact.count)
        claims = [
            key.claim(ordinal, fingerprint(query.label, after=level).digest())
            for ordinal, query in enumerate(queries)
        ]
        for first, last in geounit_chunks(exact.nodes, max(int(ends[-1]), cells)):
            geounits = np.arange(first, last, dtype=np.uint64)
            noisy = np.empty((last - first, int(ends[-1])), np.int64)
            for ordinal, (query, law) in enumerate(zip(queries, laws, strict=True)):
                true = answers_of(exact, query, first, last)
                answers = slice(int(starts[ordinal]), int(ends[ordinal]))
                noisy[:, answers] = add_noise(true, law, key, claims[ordinal], geounits=geounits)
            fitted = np.zeros((last - first, cells), np.int32)
            allowed = _allowed(measured, facilities, first, last)
            fit_blocks(noisy, label, starts, weight, allowed, _TOLERANCE, _SWEEPS, fitted)
            node, cell = np.nonzero(fitted)
            nodes.append(node + first)
            fitted_cells.append(cell.astype(np.int32))
            counts.append(fitted[node, cell])
    finally:
        key.close()
    pointer = np.searchsorted(np.concatenate(nodes), np.arange(exact.nodes + 1)).astype(np.int64)
    histograms = SparseLevel(exact.geounits, pointer, np.concatenate(fitted_cells), np.concatenate(counts))
    return PublishedRun(run_id or f"blocks {seed}", histograms, setting="blocks one by one")


def _allowed(
    measured: MeasuredHistogram, facilities: NDArray[np.integer] | None, first: int, last: int
) -> NDArray[np.bool_]:
    """Cells that may hold records, shape (last - first, cells)."""
    allowed = np.broadcast_to(measured.schema.allowed(), (last - first, measured.schema.schema.cells)).copy()
    rule = measured.schema.facilities
    if facilities is not None and rule is not None:
        present = facilities[first:last, : len(rule.minimum)] > 0
        allowed &= present[:, measured.schema.query(rule.attribute).label]
    return np.ascontiguousarray(allowed)
