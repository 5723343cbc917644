"""CONFIDENTIAL. Comparator: a simple random sample of persons, weighted up. It is not differentially private."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

from censafe.evaluation.histograms.pairing import Pair, PublishedRun

__all__ = ["matching_rates", "sample_runs", "sample_variance"]


def sample_runs(pair: Pair, rate: Fraction, *, replicates: int, seed: int) -> tuple[PublishedRun, ...]:
    """Independent samples without replacement, drawn from the exact law of the cell counts.

    Args:
        pair: whose truth is sampled.
        rate: share of persons, in (0, 1].
        replicates: how many; each has its own stream of random numbers (the study drew one sample four times).
        seed: of all of them.
    """
    raise NotImplementedError


def sample_variance(cell: int, population: int, rate: Fraction) -> float:
    """Exact variance of the weighted count of a cell."""
    raise NotImplementedError


def matching_rates(topdown: pa.Table, srs: pa.Table) -> pa.Table:
    """The sampling rate that is most like each budget: nearest by abs(log ratio of median errors) + abs(log ratio of EPL).

    Args:
        topdown: columns epsilon, median_ae, epl.
        srs: columns sample_pct, median_ae, epl.

    Returns:
        Columns epsilon, sample_pct, distance.
    """
    raise NotImplementedError
