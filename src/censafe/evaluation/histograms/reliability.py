"""CONFIDENTIAL. From which population on the share of the largest group can be relied on, for redistricting."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.pairing import Pair
from censafe.model.schema import CellQuery

__all__ = ["Reliability", "reliability"]


@dataclass(frozen=True)
class Reliability:
    """Answer and evidence.

    Args:
        answer: smallest bin such that it and all larger ones are reliable, such as ``200-249``; empty when there is none.
        answer_alone: smallest reliable bin, whatever the larger ones are.
        bins: columns run_id, level, area_class, bin_low, bin, n_areas, n_reliable, share; bins without areas are left out.
    """

    answer: str
    answer_alone: str
    bins: pa.Table = field(repr=False)


def reliability(
    pair: Pair,
    areas: Areas,
    groups: CellQuery,
    *,
    run: int = 0,
    alpha: float = 0.05,
    beta: float = 0.05,
    bin_width: int = 50,
) -> Reliability:
    """The smallest population bin in which 95 % of areas have the share of their largest group within 5 points.

    Args:
        pair: truth (the reference) and published runs.
        areas: areas.
        groups: exclusive groups, of :func:`~.diversity.race_groups`.
        run: position of the published run.
        alpha: largest difference of the shares.
        beta: share of areas that may be off.
        bin_width: persons.

    Source: Wright & Irimata (SSS 2021-02).
    """
    raise NotImplementedError
