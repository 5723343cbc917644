"""CONFIDENTIAL. Comparator: a simple random sample of persons, weighted up. It is not differentially private."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from censafe.errors import UsageError
from censafe.evaluation.counts.frames import LossMode, frame_of
from censafe.evaluation.counts.pairing import Pair, PublishedRun
from censafe.model.sparse import SparseLevel

__all__ = ["matching_rates", "sample_runs"]

_MOST: Final = 999_999_999  # persons that numpy's law of a sample takes


def sample_runs(
    pair: Pair, rate: Fraction, *, replicates: int, seed: int, mode: LossMode = "corrected"
) -> tuple[PublishedRun, ...]:
    """Independent samples without replacement, drawn from the exact law of the cell counts.

    Args:
        pair: whose truth is sampled.
        rate: share of persons, in (0, 1].
        replicates: how many.
        seed: of all of them.
        mode: ``corrected`` gives each its own stream of random numbers; ``as_published`` restarts the same stream, as the
            study's code does, so that all replicates are one sample.

    Returns:
        Runs ``sample 1`` and so on, of weight one over the rate.

    Raises:
        UsageError: a rate outside (0, 1], no replicate, or more than 999,999,999 persons.

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

    Args:
        topdown: columns epsilon, median_ae, epl.
        srs: columns sample_pct, median_ae, epl.

    Returns:
        Columns epsilon, sample_pct, distance. A budget without finite distance to any rate has NaN.

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
    found = distance[np.arange(len(nearest)), nearest]
    known = np.isfinite(found)
    return frame_of(
        {
            "epsilon": np.asarray(topdown.column("epsilon"), np.float64),
            "sample_pct": np.where(known, percents[nearest], np.nan),
            "distance": np.where(known, found, np.nan),
        }
    )
